/* core/spread.h - mean and standard deviation of numbers that come one at a time, or of parts of them. */
#ifndef ATT_CORE_SPREAD_H
#define ATT_CORE_SPREAD_H

#include <stdint.h>

#include "core/export.h"

/* Count, mean and sum of squared deviations of the numbers so far. Zero bytes: none. */
typedef struct att_spread {
    int64_t count;
    double mean, squares;
} att_spread;

/* One more number (Welford 1962). */
ATT_FOR_LAB void att_spread_add(att_spread *spread, double value);
/* The numbers of another spread, after its own (Chan, Golub and LeVeque 1979). Where one of the two is empty, the
 * result has the bits of the other. */
void att_spread_merge(att_spread *spread, const att_spread *later);
/* NaN without numbers. */
ATT_FOR_LAB double att_spread_mean(const att_spread *spread);
/* The standard deviation (n - 1); NaN for fewer than two numbers. */
ATT_FOR_LAB double att_spread_deviation(const att_spread *spread);

#endif
