/* core/spread.h - online mean and standard deviation, with merging of partial results. */
#ifndef ATT_CORE_SPREAD_H
#define ATT_CORE_SPREAD_H

#include <stdint.h>

#include "base/core/export.h"

/* Count, mean and sum of squared deviations of the numbers so far. Zero-initialise. */
typedef struct att_spread {
    int64_t count;
    double mean, squares;
} att_spread;

/* Adds one number (Welford 1962). */
ATT_FOR_LAB void att_spread_add(att_spread *spread, double value);
/* Adds the numbers of `later` (Chan, Golub and LeVeque 1979). If either is empty, the result is bitwise equal to the
 * other. */
void att_spread_merge(att_spread *spread, const att_spread *later);
/* Returns NaN if there are no numbers. */
ATT_FOR_LAB double att_spread_mean(const att_spread *spread);
/* Returns the sample standard deviation (divisor n - 1), or NaN if there are fewer than two numbers. */
ATT_FOR_LAB double att_spread_deviation(const att_spread *spread);

#endif
