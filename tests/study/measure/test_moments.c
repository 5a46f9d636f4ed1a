/* Moments of two variables, against sums over all pairs. */
#include "study/measure/moments.h"
#include "test.h"

static const double xs[] = {1, 4, 2, 8, 5}, ys[] = {3, 1, 4, 1, -5};
enum { COUNT = 5 };

static void moments_of(int first, int end, att_moments *moments)
{
    *moments = (att_moments){0};
    for (int i = first; i < end; i++)
        att_moments_add(moments, xs[i], ys[i]);
}

TEST(the_correlation_is_that_of_all_pairs_however_they_are_merged)
{
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (int i = 0; i < COUNT; i++)
        x += xs[i] / COUNT, y += ys[i] / COUNT;
    for (int i = 0; i < COUNT; i++)
        xx += (xs[i] - x) * (xs[i] - x), yy += (ys[i] - y) * (ys[i] - y), xy += (xs[i] - x) * (ys[i] - y);
    for (int cut = 0; cut <= COUNT; cut++) {
        att_moments first, second;
        moments_of(0, cut, &first);
        moments_of(cut, COUNT, &second);
        att_moments_merge(&first, &second);
        assert_int_equal(first.count, COUNT);
        assert_true(fabs(att_moments_correlation(&first) - xy / sqrt(xx * yy)) < 1e-14);
    }
}

TEST(pairs_without_numbers_are_counted_and_left_out)
{
    att_moments moments, other = {0};
    moments_of(0, COUNT, &moments);
    const double before = att_moments_correlation(&moments);
    att_moments_add(&moments, NAN, 1);
    att_moments_add(&moments, 1, -INFINITY);
    att_moments_add(&other, NAN, NAN);
    att_moments_merge(&moments, &other);
    assert_int_equal(moments.undefined, 3);
    assert_int_equal(moments.count, COUNT);
    assert_true(att_moments_correlation(&moments) == before);
}

/* Deviations of 1e-7 of the mean are rounding of f32, those of 1e-5 are not. */
TEST(a_constant_has_no_correlation)
{
    static const double deviations[] = {0, 1e-7, 1e-5};
    for (int i = 0; i < 3; i++)
        for (int swap = 0; swap < 2; swap++) {
            att_moments moments = {0};
            for (int k = 0; k < COUNT; k++) {
                const double constant = 2 * (1 + (k % 2 ? 1 : -1) * deviations[i]);
                att_moments_add(&moments, swap ? xs[k] : constant, swap ? constant : xs[k]);
            }
            assert_true(isnan(att_moments_correlation(&moments)) == (i < 2));
        }
}

TEST(two_pairs_have_no_correlation)
{
    att_moments moments;
    moments_of(0, 2, &moments);
    assert_true(isnan(att_moments_correlation(&moments)));
    moments_of(0, 3, &moments);
    assert_true(isfinite(att_moments_correlation(&moments)));
}
