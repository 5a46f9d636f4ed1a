/* Intervals of differences. tests/web/page.py has the same cases for the page of a report. */
#include <math.h>

#include "cells.h"
#include "test.h"

TEST(an_interval_has_three_digits_of_its_half_and_rounds_ties_away_from_zero)
{
    static const struct {
        double mean, low, high;
        const char *text;
    } cases[] = {
        {2.5, -10.25, 15.25, "+2.5 [-10.3, 15.3]"},
        {-2.5, -152.5, 147.5, "-3 [-153, 148]"},
        {2.5, -123.5, 128.5, "+3 [-124, 129]"},
        {-0.125, -0.25, 0, "-0.125 [-0.250, 0.000]"},
        {1.25, NAN, NAN, "+1.25"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        cli_format_interval(cases[i].mean, cases[i].low, cases[i].high, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}
