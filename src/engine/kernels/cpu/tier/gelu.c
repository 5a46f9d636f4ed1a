#include "engine/kernels/cpu/tier/pointwise.h"
#include "engine/kernels/cpu/tier/vmath.h"
#include "engine/kernels/cpu/tiered.h"

static att_status gelu_run(const att_call *call)
{
    return pointwise(call, v_gelu);
}

ATT_SIMD_KERNEL(gelu, .bf16_in = 1, .bf16_out = 1, .run = gelu_run);

static att_status gelu_grad_run(const att_call *call)
{
    return pointwise_grad(call, v_gelu_slope);
}

ATT_SIMD_KERNEL(gelu_grad, .bf16_in = 3, .bf16_out = 1, .run = gelu_grad_run);
