/* train/clock.h - the monotonic clock. */
#ifndef ATT_TRAIN_CLOCK_H
#define ATT_TRAIN_CLOCK_H

#include <time.h>

static inline double att_seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* part / whole; 0 if `whole` is 0. */
static inline double att_ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

#endif
