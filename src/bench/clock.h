/* bench/clock.h - time, median and peak memory. */
#ifndef ATT_BENCH_CLOCK_H
#define ATT_BENCH_CLOCK_H

#include <stdint.h>

#include "core/clock.h"

/* Returns the median; for an even count, the mean of the middle two. Sorts the values. count: at least 1. */
double att_clock_median(double *values, int count);
/* Peak resident memory of this process (VmHWM); 0 if unknown. */
int64_t att_clock_peak_bytes(void);

#endif
