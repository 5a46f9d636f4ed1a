/* Paired differences: the quantiles of Student's t, intervals by hand, and the ranking of settings. */

#include "base/core/random.h"
#include "base/io/scratch.h"
#include "lab/report/paired.h"

/* Checks |error| <= limit, so that NaN fails. */
static void near(double value, double expected, double limit)
{
    if (!(fabs(value - expected) <= limit))
        fail_msg("%.17g, expected %.17g", value, expected);
}

/* One degree: tan(0.475 pi). Two: 0.95 sqrt(2 / (1 - 0.95^2)). The others: values of Student's t from scipy 1.17
 * (t.ppf).
 */
TEST(quantiles_are_those_of_students_t)
{
    near(att_student_quantile(1, 0.95), tan(0.475 * 3.14159265358979323846), 1e-12);
    near(att_student_quantile(2, 0.95), 0.95 * sqrt(2 / (1 - 0.95 * 0.95)), 1e-12);
    near(att_student_quantile(3, 0.95), 3.1824463052837078, 1e-12);
    near(att_student_quantile(4, 0.95), 2.7764451051977934, 1e-12);
    near(att_student_quantile(9, 0.95), 2.262157162798205, 1e-12);
    near(att_student_quantile(100, 0.95), 1.9839715185235518, 1e-11);
    near(att_student_quantile(255, 0.95), 1.9693105698498752, 1e-11);
    assert_true(isnan(att_student_quantile(0, 0.95)));
}

/* d = 1, 2, 3: mean 2, deviation 1, half of the interval 4.302653 / sqrt(3) */
TEST(intervals_are_of_the_differences)
{
    const double a[] = {11, 22, 33, 5, NAN}, b[] = {10, 20, 30, NAN, 1};
    att_paired paired = att_paired_difference(a, b, 5);
    assert_int_equal(paired.count, 3); /* pairs with NaN do not count */
    near(paired.mean, 2, 1e-15);
    near(paired.deviation, 1, 1e-15);
    near(paired.low, 2 - 0.95 * sqrt(2 / (1 - 0.95 * 0.95)) / sqrt(3), 1e-12);
    near(paired.high, 2 + 0.95 * sqrt(2 / (1 - 0.95 * 0.95)) / sqrt(3), 1e-12);
    assert_false(att_paired_is_separated(&paired));
    const double closer[] = {11, 21.1, 30.9};
    paired = att_paired_difference(closer, b, 3);
    assert_true(att_paired_is_separated(&paired) && paired.low > 0); /* 1 +- 0.25 */
    const double below[] = {9, 18.9, 29.1};
    paired = att_paired_difference(below, b, 3);
    assert_true(att_paired_is_separated(&paired) && paired.high < 0);
}

TEST(one_pair_has_no_interval)
{
    const double a[] = {3}, b[] = {1};
    att_paired paired = att_paired_difference(a, b, 1);
    assert_true(paired.count == 1 && paired.mean == 2);
    assert_true(isnan(paired.deviation) && isnan(paired.low) && isnan(paired.high));
    assert_false(att_paired_is_separated(&paired));
    paired = att_paired_difference(a, b, 0);
    assert_true(paired.count == 0 && isnan(paired.mean));
    paired = att_paired_difference(a, NULL, 1);
    assert_true(paired.count == 1 && paired.mean == 3);
}

/* Two degrees: share sqrt(2 / (1 - share^2)). One: tan(pi share / 2). */
TEST(simultaneous_intervals_are_wider)
{
    const double a[] = {11, 22, 33}, b[] = {10, 20, 30};
    att_paired paired = att_paired_difference(a, b, 3);
    const double share = 1 - 0.05 / 4;
    att_paired_widen(&paired, 4);
    near(paired.high, 2 + share * sqrt(2 / (1 - share * share)) / sqrt(3), 1e-12);
    near(paired.low + paired.high, 4, 1e-12);
    near(att_student_quantile(1, 1 - 1e-6), tan((1 - 1e-6) * 3.14159265358979323846 / 2), 1e-3);
}

/* --- planted gains ------------------------------------------------------------------------------------------------ */

enum { SEEDS = 5, CANDIDATES = 4, EXPERIMENTS = 20, LONG = 4000 };

/* Scores of an experiment: a baseline with noise of 0.3 for each seed, and candidates whose noise beside it is 0.2;
 * `gain` is added to the first one. Counts the candidates whose simultaneous interval excludes 0. first: whether that
 * of the first one lies above 0. */
static int count_found(int experiment, double gain, bool *first)
{
    att_random random = att_random_from(att_random_key((uint64_t)experiment, att_random_hash("planted"), 0));
    double baseline[SEEDS], scores[SEEDS];
    int found = 0;
    for (int s = 0; s < SEEDS; s++)
        baseline[s] = 91 + 0.3 * att_random_normal(&random);
    for (int c = 0; c < CANDIDATES; c++) {
        for (int s = 0; s < SEEDS; s++)
            scores[s] = baseline[s] + 0.2 * att_random_normal(&random) + (c == 0 ? gain : 0);
        att_paired paired = att_paired_difference(scores, baseline, SEEDS);
        att_paired_widen(&paired, CANDIDATES);
        found += att_paired_is_separated(&paired);
        *first = c == 0 ? paired.low > 0 : *first;
    }
    return found;
}

/* At least 19 of 20 experiments without a gain find none, and 18 of 20 find a gain of 0.8 points. Over 4,000 the rate
 * of false findings is 0.0485: the candidates' noise is independent here, so that the bound of 0.05 is
 * almost reached. */
TEST(planted_gains_are_found_and_nulls_are_not)
{
    int nulls = 0, gains = 0, false_findings = 0;
    bool first;
    for (int e = 1; e <= EXPERIMENTS; e++) {
        nulls += count_found(e, 0, &first) == 0;
        count_found(e, 0.8, &first);
        gains += first;
    }
    for (int e = 0; e < LONG; e++)
        false_findings += count_found(1000 + e, 0, &first) > 0;
    print_message("no evidence in %d of %d nulls, %d of %d gains found, rate of false findings %.4f\n", nulls,
                  EXPERIMENTS, gains, EXPERIMENTS, (double)false_findings / LONG);
    assert_true(nulls >= 19);
    assert_true(gains >= 18);
    assert_true(false_findings <= 0.06 * LONG);
}
