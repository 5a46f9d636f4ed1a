/* kernels/ref/gelu.h - GELU of one number. */
#ifndef ATT_KERNELS_REF_GELU_H
#define ATT_KERNELS_REF_GELU_H

#include <math.h>

/* Phi(x), computed with erfc, which is accurate in the left tail. */
static inline double ref_normal_cdf(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

static inline double ref_gelu(double x)
{
    return x * ref_normal_cdf(x);
}

#endif
