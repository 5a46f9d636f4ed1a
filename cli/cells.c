#include "cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"

enum { EXPLAIN = 13 };

/* Width in characters: printf counts bytes, and "±" has two. */
int cli_width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

int cli_wider(int width, const char *text)
{
    int own = cli_width_of(text);
    return own > width ? own : width;
}

void cli_left(const char *text, int width)
{
    int used = cli_width_of(text);
    cli_print("  %s%*s", text, used < width ? width - used : 0, "");
}

void cli_right(const char *text, int width)
{
    int used = cli_width_of(text);
    cli_print("  %*s%s", used < width ? width - used : 0, "", text);
}

static void cli_format_number(double value, char *text, size_t size)
{
    if (isnan(value))
        snprintf(text, size, "-");
    else
        snprintf(text, size, fabs(value) >= 1000 && fabs(value) < 1e6 ? "%.0f" : "%.4g", value);
}

/* Formats the deviation with two significant digits, and the mean to the same precision. The page of a report does the
 * same. */
void cli_format_spread(double mean, double deviation, char *text, size_t size)
{
    char rounded[32];
    snprintf(rounded, sizeof rounded, "%.1e", deviation);
    double spread = strtod(rounded, NULL), largest = fmax(fabs(mean), spread);
    if (isnan(mean) || isnan(deviation)) {
        cli_format_number(mean, text, size);
        return;
    }
    if (!(spread > largest * 1e-8) || isinf(largest)) {
        snprintf(text, size, "%.4g ± %.2g", mean, deviation);
        return;
    }
    int power = largest < 1e-4 || largest >= 1e6 ? (int)floor(log10(largest)) : 0;
    int last = (int)strtol(strchr(rounded, 'e') + 1, NULL, 10) - 1 - power, decimals = last < 0 ? -last : 0;
    double unit = pow(10, power), step = last > 0 ? pow(10, last) : 1;
    mean = last > 0 ? round(mean / unit / step) * step : mean / unit;
    if (power == 0)
        snprintf(text, size, "%.*f ± %.*f", decimals, mean, decimals, spread);
    else
        snprintf(text, size, "(%.*f ± %.*f)e%d", decimals, mean, decimals, spread / unit, power);
}

/* Rounds ties away from zero, unlike printf, which rounds 2.5 to 2. */
static double round_to(double value, int decimals)
{
    const double scale = pow(10, decimals);
    return round(value * scale) / scale;
}

void cli_format_interval(double mean, double low, double high, char *text, size_t size)
{
    double half = (high - low) / 2;
    int digits = half > 0 && isfinite(half) ? 2 - (int)floor(log10(half)) : 4, decimals = digits > 0 ? digits : 0;
    if (isnan(half))
        snprintf(text, size, isnan(mean) ? "-" : "%+.4g", mean);
    else if (half >= 1e6 || (half > 0 && half < 1e-6))
        snprintf(text, size, "%+.2e [%.2e, %.2e]", mean, low, high);
    else
        snprintf(text, size, "%+.*f [%.*f, %.*f]", decimals, round_to(mean, decimals), decimals,
                 round_to(low, decimals), decimals, round_to(high, decimals));
}

void cli_explain(const char *what, const char *text)
{
    cli_print("  %-*s", EXPLAIN - 2, what);
    cli_print_wrapped(stdout, text, EXPLAIN);
}
