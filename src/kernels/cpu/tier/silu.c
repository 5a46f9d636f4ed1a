#include "kernels/cpu/tier/pointwise.h"
#include "kernels/cpu/tier/vmath.h"
#include "kernels/cpu/tiered.h"

/* s = 1 / (1 + e), e = exp(-x); 1 - s = e s. For x < -88, where exp(-x) overflows, s is 0. */
typedef struct sigmoid {
    vf s, e;
} sigmoid;

ATT_INLINE sigmoid sigmoid_of(vf x)
{
    vf e = v_exp(v_min(v_set(88), -x));
    return (sigmoid){v_where(~(x < v_set(-88)), v_set(1) / (e + 1)), e};
}

ATT_INLINE vf v_silu(vf x)
{
    return x * sigmoid_of(x).s;
}

ATT_INLINE vf v_silu_slope(vf x)
{
    sigmoid of = sigmoid_of(x);
    return of.s * v_fma(x, of.e * of.s, v_set(1));
}

static att_status silu_run(const att_call *call)
{
    return pointwise(call, v_silu);
}

const att_kernel ATT_TIERED(att_cpu_silu) = {
    .op = "silu", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = pointwise_accepts, .run = silu_run};

static att_status silu_grad_run(const att_call *call)
{
    return pointwise_grad(call, v_silu_slope);
}

const att_kernel ATT_TIERED(att_cpu_silu_grad) = {
    .op = "silu_grad", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = pointwise_grad_accepts, .run = silu_grad_run};
