/* measure/moments.h - online moments of one variable, and of two with their correlation, with merging of partial
 * results. */
#ifndef ATT_MEASURE_MOMENTS_H
#define ATT_MEASURE_MOMENTS_H

#include <stdint.h>

#include <attscope/measure.h>

#include "base/core/spread.h"

/* The finite numbers of a figure, and how many were not finite. Zero-initialise. */
typedef struct att_tally {
    att_spread spread;
    int64_t undefined;
} att_tally;

void att_tally_add(att_tally *tally, double value);
/* Adds the numbers of `count` later tallies to those of `count` tallies. */
void att_tallies_merge(att_tally *tallies, const att_tally *later, int64_t count);
/* Mean and deviation of the finite numbers, and the count of all. */
att_figure att_tally_figure(const att_tally *tally);

/* Means of x and y, and the sums of squares and of products of their deviations, over the pairs whose numbers are both
 * finite. Zero-initialise. */
typedef struct att_moments {
    int64_t count, undefined; /* undefined: the other pairs */
    double x, y, xx, yy, xy;
} att_moments;

void att_moments_add(att_moments *moments, double x, double y);
/* Adds the pairs of `later` (Chan, Golub and LeVeque 1979; for products, Pébay 2008). */
void att_moments_merge(att_moments *moments, const att_moments *later);
/* Pearson's correlation. NaN if it is not defined: of fewer than 3 pairs, or if a variable is constant. Values are
 * computed in f32, so a variable counts as constant if its standard deviation is at most 1e-6 of its mean. */
double att_moments_correlation(const att_moments *moments);

#endif
