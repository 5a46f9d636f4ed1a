/* collapse/gelu.h - GELU (erf) and its derivative. */
#ifndef ATT_COLLAPSE_GELU_H
#define ATT_COLLAPSE_GELU_H

#include <math.h>

/* gelu(v) = v to all digits beyond; below -ATT_GELU_STRAIGHT it is 0. */
#define ATT_GELU_STRAIGHT 40.0

/* Distribution of the standard normal distribution: gelu(x) = x times it. */
static inline double att_normal_cumulative(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

static inline double att_normal_density(double x)
{
    return 0.5 * M_2_SQRTPI * M_SQRT1_2 * exp(-0.5 * x * x);
}

/* gelu'(x), which is 0 or 1 at infinity */
static inline double att_gelu_slope(double x)
{
    return att_normal_cumulative(x) + (fabs(x) < ATT_GELU_STRAIGHT ? x * att_normal_density(x) : 0);
}

#endif
