/* bench_figures.c - helpers of the benchmarks: points to visit, medians, interpolation between neighbours. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "bench.h"

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return 0.5 * (values[(count - 1) / 2] + values[count / 2]);
}

static int read_points(const char *text, int most, int points[BENCH_POINTS])
{
    int count = 0;
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        long value = strtol(at, &end, 10);
        if (end == at || errno != 0 || value < 1 || value > most || (*end != ',' && *end != '\0'))
            break;
        if (count == BENCH_POINTS || (count > 0 && value <= points[count - 1]))
            break;
        points[count++] = (int)value;
        if (*end == '\0')
            return count;
        at = end;
    }
    cli_say("--points %s: expected up to %d ascending numbers from 1 to %d, separated by commas", text, BENCH_POINTS,
            most);
    return -1;
}

int bench_points(const bench_settings *s, const int *standard, int most, int points[BENCH_POINTS])
{
    if (s->measure.points)
        return read_points(s->measure.points, most, points);
    int count = 0;
    while (count < BENCH_POINTS && standard[count] > 0) {
        points[count] = standard[count];
        count++;
    }
    return count;
}

double bench_relative(const int *points, const double *rates, int count, int i)
{
    if (i == 0 || i == count - 1)
        return 0;
    double at = log((double)points[i] / points[i - 1]) / log((double)points[i + 1] / points[i - 1]);
    return rates[i] / exp((1 - at) * log(rates[i - 1]) + at * log(rates[i + 1]));
}

void bench_print_relative(double relative)
{
    if (relative == 0)
        cli_print("%8s", "");
    else
        cli_print(" %5.2f %c", relative, relative < 0.8 ? '<' : ' ');
}
