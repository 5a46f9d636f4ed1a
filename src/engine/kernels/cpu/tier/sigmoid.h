/* kernels/cpu/tier/sigmoid.h - logistic function and SiLU of a vector. NaN stays NaN. */
#ifndef ATT_KERNELS_CPU_TIER_SIGMOID_H
#define ATT_KERNELS_CPU_TIER_SIGMOID_H

#include "engine/kernels/cpu/tier/vmath.h"

/* s = 1 / (1 + e), e = exp(-x); 1 - s = e s. For x < -88, where exp(-x) overflows, s is 0. */
typedef struct sigmoid {
    vf s, e;
} sigmoid;

ATT_INLINE sigmoid sigmoid_of(vf x)
{
    vf e = v_exp(v_min(v_set(88), -x));
    return (sigmoid){v_where(~(x < v_set(-88)), v_set(1) / (e + 1)), e};
}

/* x s(x) and its derivative s (1 + x (1 - s)). */
ATT_INLINE vf v_silu(vf x)
{
    return x * sigmoid_of(x).s;
}

ATT_INLINE vf v_silu_slope(vf x)
{
    sigmoid of = sigmoid_of(x);
    return of.s * v_fma(x, of.e * of.s, v_set(1));
}

#endif
