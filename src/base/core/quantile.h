/* core/quantile.h - quantiles, in the one definition of all figures: linear interpolation between order statistics
 * (Hyndman and Fan 1996, type 7; numpy's default). Quantile q of n numbers is at place q (n - 1) of their ascending
 * order, counted from 0. The median is quantile 1/2. As in numpy, a quantile strictly between -infinity and a number
 * above it is NaN, and one strictly between a finite number and infinity is infinite. */
#ifndef ATT_CORE_QUANTILE_H
#define ATT_CORE_QUANTILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/core/export.h"

/* count is at least 1, and fraction in 0..1. */
ATT_FOR_LAB double att_quantile(const double *ascending, int64_t count, double fraction);
ATT_FOR_LAB void att_sort_ascending(double *values, int64_t count);
/* Sorts the values. */
ATT_FOR_LAB double att_median(double *values, int64_t count);

/* Of numbers in any order, without memory for sorting; with `magnitudes`, of their absolute values. NaN if one is NaN.
 */
double att_quantile_of(const float *values, int64_t count, double fraction, bool magnitudes);

#endif
