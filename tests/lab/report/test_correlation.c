/* Rank correlations against scipy 1.17 (kendalltau, spearmanr; p from all permutations with these statistics). */
#include <attscope/lab/correlation.h>

#include "base/io/scratch.h"
#include "lab/report/correlations.h"

static att_correlation correlate(scratch *self, const double *x, const double *y, int count)
{
    att_correlation c = {0};
    CHECK(self->context, att_correlate(self->context, x, y, NULL, count, 1, &c));
    return c;
}

/* Checks |error| <= limit, so that NaN fails. */
static void near(double value, double expected, double limit)
{
    if (!(fabs(value - expected) <= limit))
        fail_msg("%.17g, expected %.17g", value, expected);
}

SCRATCH_TEST(correlations_without_ties_equal_scipys)
{
    const double x[] = {1, 2, 3, 4, 5}, y[] = {2, 1, 4, 3, 5};
    att_correlation c = correlate(self, x, y, 5);
    assert_int_equal(c.count, 5);
    assert_true(c.exact);
    assert_int_equal(c.permutations, 120);
    near(c.kendall.value, 0.6, 1e-15);
    near(c.spearman.value, 0.8, 1e-15);
    near(c.kendall.p, 28.0 / 120, 1e-15);
    near(c.spearman.p, 16.0 / 120, 1e-15);
    assert_true(c.kendall.low <= 0.6 && c.kendall.high >= 0.6);
}

SCRATCH_TEST(correlations_with_ties_equal_scipys)
{
    const double x[] = {1, 2, 2, 3, 4, 4}, y[] = {5, 1, 2, 2, 6, 4};
    att_correlation c = correlate(self, x, y, 6);
    near(c.kendall.value, 0.29649972666444047, 1e-15);
    near(c.spearman.value, 0.31346775286392936, 1e-15);
    near(c.kendall.p, 400.0 / 720, 1e-15);
    near(c.spearman.p, 408.0 / 720, 1e-15);
}

/* Beyond 8 pairs, permutations are drawn at random. scipy with 40,000 draws of its own gives p = 0.1832 and 0.0646, and
 * the bootstrap intervals (-0.100, 0.737) and (0.006, 0.862). */
SCRATCH_TEST(drawn_permutations_agree_with_scipy)
{
    const double x[] = {92.1, 92.4, 91.8, 93.0, 92.7, 92.2, 93.1, 92.9, 92.4, 91.5},
                 y[] = {0.31, 0.28, 0.35, 0.41, 0.44, 0.29, 0.39, 0.52, 0.33, 0.30};
    att_correlation c = correlate(self, x, y, 10), again = correlate(self, x, y, 10);
    assert_false(c.exact);
    assert_int_equal(c.permutations, ATT_CORRELATE_PERMUTATIONS);
    near(c.kendall.value, 0.35957325998039574, 1e-15);
    near(c.spearman.value, 0.6139845991168652, 1e-15);
    near(c.kendall.p, 0.1832, 0.015); /* the standard deviation of a share of 10,000 draws is 0.004 */
    near(c.spearman.p, 0.0646, 0.01);
    near(c.kendall.low, -0.1, 0.06);
    near(c.kendall.high, 0.737, 0.06);
    near(c.spearman.low, 0.006, 0.06);
    near(c.spearman.high, 0.862, 0.06);
    assert_true(c.kendall.p == again.kendall.p && c.spearman.low == again.spearman.low &&
                c.kendall.high == again.kendall.high);
}

SCRATCH_TEST(short_and_constant_series_lack_p_and_interval)
{
    const double x[] = {1, 2, 3}, down[] = {3, 2, 1}, flat[] = {5, 5, 5};
    att_correlation c = correlate(self, x, down, 3);
    near(c.kendall.value, -1, 0);
    near(c.spearman.value, -1, 0);
    near(c.kendall.p, 2.0 / 6, 1e-15);
    assert_true(isnan(c.kendall.low) && c.resamples == 0);
    c = correlate(self, x, flat, 3);
    assert_true(isnan(c.kendall.value) && isnan(c.spearman.value) && isnan(c.kendall.p) && isnan(c.kendall.low));
    assert_int_equal(c.permutations, 0);
    c = correlate(self, x, down, 2);
    near(c.kendall.value, -1, 0);
    assert_true(isnan(c.kendall.p) && isnan(c.spearman.high));
    c = correlate(self, x, down, 0);
    assert_true(isnan(c.kendall.value) && c.count == 0);
}

/* Three settings of two runs, in the same order in x and y. Of the 6 orders of the settings' y, by hand: the observed
 * one has no discordant pair (tau 1); a change of two neighbours 4 (7/15); a cycle 8 (-1/15); the reverse order 12
 * (-9/15). */
SCRATCH_TEST(groups_are_permuted_as_a_whole)
{
    const double x[] = {1, 2, 3, 4, 5, 6}, y[] = {1, 2, 3, 4, 5, 6}, reverse[] = {5, 6, 3, 4, 1, 2},
                 swapped[] = {3, 4, 1, 2, 5, 6};
    const int groups[] = {7, 7, 3, 3, 5, 5};
    att_correlation c;
    assert_int_equal(att_correlate(self->context, x, y, groups, 6, 1, &c), ATT_OK);
    assert_true(c.exact && c.permutations == 6 && c.groups == 3 && c.count == 6);
    near(c.kendall.value, 1, 1e-15);
    near(c.kendall.p, 1.0 / 6, 1e-15); /* 2/720 if the runs were exchangeable */
    near(c.kendall.least_p, 1.0 / 6, 1e-15);
    near(c.spearman.p, 1.0 / 6, 1e-15);
    assert_true(isnan(c.kendall.low)); /* no interval with three settings */
    assert_true(c.kendall.adjusted_p == c.kendall.p);
    assert_int_equal(att_correlate(self->context, x, reverse, groups, 6, 1, &c), ATT_OK);
    near(c.kendall.value, -9.0 / 15, 1e-15);
    near(c.kendall.p, 2.0 / 6, 1e-15);
    near(c.kendall.least_p, 1.0 / 6, 1e-15);
    assert_int_equal(att_correlate(self->context, x, swapped, groups, 6, 1, &c), ATT_OK);
    near(c.kendall.value, 7.0 / 15, 1e-15);
    near(c.kendall.p, 4.0 / 6, 1e-15);
}

/* Pairs of a group need not be neighbours. */
SCRATCH_TEST(groups_may_be_interleaved)
{
    const double x[] = {1, 3, 5, 2, 4, 6};
    const int groups[] = {0, 1, 2, 0, 1, 2};
    att_correlation c;
    assert_int_equal(att_correlate(self->context, x, x, groups, 6, 1, &c), ATT_OK);
    near(c.kendall.p, 1.0 / 6, 1e-15);
}

SCRATCH_TEST(only_groups_of_one_size_change_places)
{
    const double x[] = {1, 2, 3, 4, 5, 6};
    const int groups[] = {0, 0, 1, 1, 1, 2}, one[] = {0, 0, 0, 0, 0, 0}, two[] = {0, 0, 1, 1, 2, 3};
    att_correlation c;
    assert_int_equal(att_correlate(self->context, x, x, groups, 6, 1, &c), ATT_OK);
    assert_true(c.permutations == 1 && c.groups == 3);
    near(c.kendall.p, 1, 0);
    near(c.kendall.least_p, 1, 0);
    assert_int_equal(att_correlate(self->context, x, x, two, 6, 1, &c), ATT_OK);
    assert_int_equal(c.permutations, 4);
    near(c.kendall.p, 0.25, 1e-15);
    assert_int_equal(att_correlate(self->context, x, x, one, 6, 1, &c), ATT_OK);
    assert_true(isnan(c.kendall.p) && isnan(c.kendall.least_p) && c.groups == 1 && c.kendall.value == 1);
}

/* Nine settings of two equal runs: 9! permutations are drawn at random. A resample of whole settings whose x and y
 * agree has tau 1, so the interval is a point; resampled runs of x and y shuffled within settings would not. */
SCRATCH_TEST(many_groups_are_drawn_at_random_and_resampled)
{
    double x[18];
    int groups[18];
    for (int i = 0; i < 18; i++) {
        groups[i] = i / 2;
        x[i] = i / 2;
    }
    att_correlation c;
    assert_int_equal(att_correlate(self->context, x, x, groups, 18, 1, &c), ATT_OK);
    assert_true(!c.exact && c.permutations == ATT_CORRELATE_PERMUTATIONS && c.groups == 9);
    near(c.kendall.least_p, 1.0 / (1 + ATT_CORRELATE_PERMUTATIONS), 1e-15);
    near(c.kendall.p, 1.0 / (1 + ATT_CORRELATE_PERMUTATIONS), 3e-4);
    assert_int_equal(c.resamples, ATT_CORRELATE_RESAMPLES);
    near(c.kendall.low, 1, 1e-12);
    near(c.kendall.high, 1, 1e-12);
}

SCRATCH_TEST(holms_correction_is_monotone_and_skips_undefined_tests)
{
    const double p[] = {0.01, 0.04, NAN, 0.03}, equal[] = {0.4, 0.4, 0.9};
    double adjusted[4];
    att_holm(p, 4, adjusted); /* 3 * 0.01; 2 * 0.03; 1 * 0.04 raised to the one before */
    near(adjusted[0], 0.03, 1e-15);
    near(adjusted[1], 0.06, 1e-15);
    near(adjusted[3], 0.06, 1e-15);
    assert_true(isnan(adjusted[2]));
    att_holm(equal, 3, adjusted);
    near(adjusted[0], 1, 0);
    near(adjusted[1], 1, 0);
    near(adjusted[2], 1, 0);
    att_holm(p, 1, adjusted);
    near(adjusted[0], 0.01, 0);
}

SCRATCH_TEST(unusable_series_are_refused)
{
    double x[] = {1, 2, NAN}, y[] = {1, 2, 3}, infinite[] = {1, INFINITY, 2};
    att_correlation c;
    assert_int_equal(att_correlate(self->context, x, y, NULL, 3, 1, &c), ATT_ERR_NONFINITE);
    assert_int_equal(att_correlate(self->context, y, infinite, NULL, 3, 1, &c), ATT_ERR_NONFINITE);
    assert_int_equal(att_correlate(self->context, x, y, NULL, -1, 1, &c), ATT_ERR_ARGUMENT);
    assert_int_equal(att_correlate(self->context, x, y, NULL, ATT_CORRELATE_MOST + 1, 1, &c), ATT_ERR_ARGUMENT);
    self->memory.left = 0;
    att_status status = att_correlate(self->context, y, y, NULL, 3, 1, &c);
    self->memory.left = -1;
    assert_int_equal(status, ATT_ERR_MEMORY);
}
