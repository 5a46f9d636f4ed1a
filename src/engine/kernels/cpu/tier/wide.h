/* kernels/cpu/tier/wide.h - a vector of f64, as wide as the tier's registers. */
#ifndef ATT_KERNELS_CPU_TIER_WIDE_H
#define ATT_KERNELS_CPU_TIER_WIDE_H

#include "base/core/simd.h"

enum { WIDE = VW / 2 };
typedef double vd __attribute__((vector_size(8 * WIDE)));
typedef double vd_unaligned __attribute__((vector_size(8 * WIDE), may_alias, aligned(8)));

ATT_INLINE vd vd_load(const double *from)
{
    return *(const vd_unaligned *)from;
}

ATT_INLINE double vd_sum(vd x)
{
    double sum = 0;
    for (int i = 0; i < WIDE; i++)
        sum += x[i];
    return sum;
}

/* The sum of a[i] b[i], i < count. */
static inline double wide_dot(const double *a, const double *b, int64_t count)
{
    vd sum = {0};
    int64_t i = 0;
    for (; i + WIDE <= count; i += WIDE)
        sum += vd_load(a + i) * vd_load(b + i);
    double all = vd_sum(sum);
    for (; i < count; i++)
        all += a[i] * b[i];
    return all;
}

#endif
