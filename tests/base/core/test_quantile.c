/* Quantiles against values of numpy.quantile(), sorted or not, with ties, signs, NaN and infinity. */
#include "base/core/quantile.h"
#include "base/core/random.h"
#include "test.h"

TEST(the_median_of_an_even_count_is_the_mean_of_the_middle_two)
{
    double odd[] = {3, 1, 9}, even[] = {8, 1, 4, 2}, one[] = {5};
    assert_true(att_median(odd, 3) == 3);
    assert_true(att_median(even, 4) == 3);
    assert_true(att_median(one, 1) == 5);
}

/* numpy.quantile([-2.5, -1, 0, 0.25, 0.25, 4, 7.5], q) */
TEST(quantiles_are_those_of_numpy)
{
    static const double ascending[] = {-2.5, -1, 0, 0.25, 0.25, 4, 7.5};
    static const float mixed[] = {0.25f, 7.5f, -1, 4, -2.5f, 0.25f, 0};
    static const double expected[][2] = {{0, -2.5},   {0.1, -1.6},   {0.25, -0.5}, {0.4, 0.1}, {0.5, 0.25},
                                         {0.6, 0.25}, {0.75, 2.125}, {0.9, 5.4},   {1, 7.5}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_true(fabs(att_quantile(ascending, 7, expected[i][0]) - expected[i][1]) < 1e-15);
        assert_true(fabs(att_quantile_of(mixed, 7, expected[i][0], false) - expected[i][1]) < 1e-15);
    }
    /* of 0, 0.25, 0.25, 1, 2.5, 4, 7.5 */
    assert_true(att_quantile_of(mixed, 7, 0.5, true) == 1);
    assert_true(fabs(att_quantile_of(mixed, 7, 0.9, true) - 5.4) < 1e-15);
}

/* Also of many equal numbers, as gates near 1/2 are. */
TEST(numbers_need_not_be_sorted)
{
    enum { COUNT = 1000 };
    float values[COUNT];
    double sorted[COUNT];
    att_random random = att_random_from(3);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < COUNT; i++)
            sorted[i] = values[i] = (float)(round % 2 ? floor(att_random_normal(&random)) : att_random_normal(&random));
        att_sort_ascending(sorted, COUNT);
        for (int q = 0; q <= 20; q++)
            assert_true(att_quantile_of(values, COUNT, q / 20.0, false) == att_quantile(sorted, COUNT, q / 20.0));
    }
}

TEST(nan_and_infinity_stay)
{
    static const float with_nan[] = {1, NAN, 2}, infinite[] = {1, INFINITY, 2, INFINITY, 0};
    assert_true(isnan(att_quantile_of(with_nan, 3, 0, false)));
    assert_true(att_quantile_of(infinite, 5, 0.5, false) == 2);
    assert_true(isinf(att_quantile_of(infinite, 5, 0.9, false)));
    static const float lowest[] = {-INFINITY, 1};
    assert_true(isnan(att_quantile_of(lowest, 2, 0.5, false)) && att_quantile_of(lowest, 2, 1, false) == 1);
}
