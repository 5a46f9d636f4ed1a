/* train/clock.h - the monotonic clock, and shares of times. */
#ifndef ATT_TRAIN_CLOCK_H
#define ATT_TRAIN_CLOCK_H

#include "base/core/clock.h"

/* part / whole; 0 if `whole` is 0. */
static inline double att_ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

#endif
