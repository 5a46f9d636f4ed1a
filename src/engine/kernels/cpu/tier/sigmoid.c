#include "engine/kernels/cpu/tier/pointwise.h"
#include "engine/kernels/cpu/tier/vmath.h"
#include "engine/kernels/cpu/tiered.h"

/* For x < -88 the result is that for -88, 6e-39. */
ATT_INLINE vf v_sigmoid(vf x)
{
    return v_set(1) / (v_exp(v_min(v_set(88), -x)) + 1);
}

static att_status sigmoid_run(const att_call *call)
{
    return pointwise(call, v_sigmoid);
}

ATT_SIMD_KERNEL(sigmoid, .bf16_in = 1, .bf16_out = 1, .run = sigmoid_run);

static att_status sigmoid_grad_run(const att_call *call)
{
    bool is_bf16 = att_is_bf16(&call->problem->out[0]);
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), VW);
    for (int64_t i = part.begin; i < part.end; i += VW) {
        vf dy = v_get_until(call->in[0], i, part.end, false), y = v_get_until(call->in[1], i, part.end, false);
        v_put_until(call->out[0], i, part.end, dy * y * (v_set(1) - y), is_bf16);
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(sigmoid_grad, .bf16_out = 1, .run = sigmoid_grad_run);
