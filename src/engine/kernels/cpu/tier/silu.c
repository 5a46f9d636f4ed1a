#include "engine/kernels/cpu/tier/pointwise.h"
#include "engine/kernels/cpu/tier/sigmoid.h"
#include "engine/kernels/cpu/tiered.h"

static att_status silu_run(const att_call *call)
{
    return pointwise(call, v_silu);
}

ATT_SIMD_KERNEL(silu, .bf16_in = 1, .bf16_out = 1, .run = silu_run);

static att_status silu_grad_run(const att_call *call)
{
    return pointwise_grad(call, v_silu_slope);
}

ATT_SIMD_KERNEL(silu_grad, .bf16_in = 3, .bf16_out = 1, .run = silu_grad_run);
