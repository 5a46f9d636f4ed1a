/* core/clock.h - the monotonic clock, and pauses. */
#ifndef ATT_CORE_CLOCK_H
#define ATT_CORE_CLOCK_H

#include <time.h>

static inline double att_seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A signal may end the pause early. */
static inline void att_sleep(double seconds)
{
    const struct timespec pause = {.tv_sec = (time_t)seconds,
                                   .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&pause, NULL);
}

#endif
