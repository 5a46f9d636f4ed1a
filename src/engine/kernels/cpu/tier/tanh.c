#include "engine/kernels/cpu/tier/pointwise.h"
#include "engine/kernels/cpu/tier/vmath.h"
#include "engine/kernels/cpu/tiered.h"

static att_status tanh_run(const att_call *call)
{
    return pointwise(call, v_tanh);
}

ATT_SIMD_KERNEL(tanh, .bf16_in = 1, .bf16_out = 1, .run = tanh_run);

/* The derivative of tanh, from its value y. */
ATT_INLINE vf slope_at(vf y)
{
    return v_fma(-y, y, v_set(1));
}

static att_status tanh_grad_run(const att_call *call)
{
    return pointwise_grad(call, slope_at);
}

ATT_SIMD_KERNEL(tanh_grad, .bf16_in = 3, .bf16_out = 1, .run = tanh_grad_run);
