/* kernels/ref/gelu.h - GELU of one number, for the kernels that end in it. */
#ifndef ATT_KERNELS_REF_GELU_H
#define ATT_KERNELS_REF_GELU_H

#include <math.h>

/* Phi(x), by erfc so that the left tail keeps its digits. */
static inline double ref_normal_cdf(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

static inline double ref_gelu(double x)
{
    return x * ref_normal_cdf(x);
}

#endif
