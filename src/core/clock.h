/* core/clock.h - the monotonic clock. */
#ifndef ATT_CORE_CLOCK_H
#define ATT_CORE_CLOCK_H

#include <time.h>

static inline double att_seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
