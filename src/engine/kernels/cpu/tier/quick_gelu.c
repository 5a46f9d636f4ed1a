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

ATT_SIMD_KERNEL(quick_gelu, .bf16_in = 1, .bf16_out = 1, .run = quick_gelu_run);

static att_status quick_gelu_grad_run(const att_call *call)
{
    return pointwise_grad(call, v_quick_gelu_slope);
}

ATT_SIMD_KERNEL(quick_gelu_grad, .bf16_in = 3, .bf16_out = 1, .run = quick_gelu_grad_run);
