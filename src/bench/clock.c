#include "bench/clock.h"

#include <stdio.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double att_clock_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return 0.5 * (values[(count - 1) / 2] + values[count / 2]);
}

int64_t att_clock_peak_bytes(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long long kilobytes = 0;
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %lld kB", &kilobytes) == 1)
            break;
    if (status)
        fclose(status);
    return 1024 * (int64_t)kilobytes;
}
