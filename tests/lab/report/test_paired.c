/* Paired differences: the quantiles of Student's t, intervals by hand, and the ranking of settings. */

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
    near(att_student_quantile(1), tan(0.475 * 3.14159265358979323846), 1e-12);
    near(att_student_quantile(2), 0.95 * sqrt(2 / (1 - 0.95 * 0.95)), 1e-12);
    near(att_student_quantile(3), 3.1824463052837078, 1e-12);
    near(att_student_quantile(4), 2.7764451051977934, 1e-12);
    near(att_student_quantile(9), 2.262157162798205, 1e-12);
    near(att_student_quantile(100), 1.9839715185235518, 1e-11);
    near(att_student_quantile(255), 1.9693105698498752, 1e-11);
    assert_true(isnan(att_student_quantile(0)));
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
}
