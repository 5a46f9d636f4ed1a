#include "engine/kernels/cpu/tier/pointwise.h"
#include "engine/kernels/cpu/tier/sigmoid.h"
#include "engine/kernels/cpu/tiered.h"

static const float SLOPE = 1.702f;

ATT_INLINE vf v_quick_gelu(vf x)
{
    return x * sigmoid_of(SLOPE * x).s;
}

ATT_INLINE vf v_quick_gelu_slope(vf x)
{
    return v_silu_slope(SLOPE * x);
}

static att_status quick_gelu_run(const att_call *call)
{
    return pointwise(call, v_quick_gelu);
}

const att_kernel ATT_TIERED(att_cpu_quick_gelu) = {.op = "quick_gelu",
                                                   .name = "simd",
                                                   .features = ATT_TIER_FEATURES,
                                                   .accepts = pointwise_accepts,
                                                   .run = quick_gelu_run};

static att_status quick_gelu_grad_run(const att_call *call)
{
    return pointwise_grad(call, v_quick_gelu_slope);
}

const att_kernel ATT_TIERED(att_cpu_quick_gelu_grad) = {.op = "quick_gelu_grad",
                                                        .name = "simd",
                                                        .features = ATT_TIER_FEATURES,
                                                        .accepts = pointwise_grad_accepts,
                                                        .run = quick_gelu_grad_run};
