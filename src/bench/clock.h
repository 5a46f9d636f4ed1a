/* bench/clock.h - what every measurement needs. */
#ifndef ATT_BENCH_CLOCK_H
#define ATT_BENCH_CLOCK_H

#include <stdint.h>

/* Seconds from some fixed instant. */
double att_clock_now(void);
/* Sorts the values. count 1 or more; an even count gives the mean of the middle two. */
double att_clock_median(double *values, int count);
/* The most memory this process has had at a time (VmHWM); 0 where the system does not say. */
int64_t att_clock_peak_bytes(void);

#endif
