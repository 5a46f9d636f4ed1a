#include "engine/kernels/cpu/tier/pointwise.h"
#include "engine/kernels/cpu/tiered.h"

/* NaN stays NaN. */
ATT_INLINE vf v_relu(vf x)
{
    return v_max((vf){0}, x);
}

static att_status relu_run(const att_call *call)
{
    return pointwise(call, v_relu);
}

ATT_SIMD_KERNEL(relu, .bf16_in = 1, .bf16_out = 1, .run = relu_run);

ATT_INLINE vf masked_gradient(const void *dy, const void *y, int64_t i, int64_t end, bool dy_is_bf16, bool y_is_bf16)
{
    vi keep = v_get_until(y, i, end, y_is_bf16) > (vf){0};
    return v_where(keep, v_get_until(dy, i, end, dy_is_bf16));
}

ATT_INLINE void relu_grad_as(const att_call *call, bool dy_is_bf16, bool y_is_bf16, bool dx_is_bf16)
{
    const void *dy = call->in[0], *y = call->in[1];
    void *dx = call->out[0];
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), VW);
    int64_t i = part.begin, end = part.end;
    for (; i + 2 * VW <= end; i += 2 * VW)
        v_put_pair(dx, i, masked_gradient(dy, y, i, end, dy_is_bf16, y_is_bf16),
                   masked_gradient(dy, y, i + VW, end, dy_is_bf16, y_is_bf16), dx_is_bf16);
    for (; i < end; i += VW)
        v_put_until(dx, i, end, masked_gradient(dy, y, i, end, dy_is_bf16, y_is_bf16), dx_is_bf16);
}

static att_status relu_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    bool dy = att_is_bf16(&problem->in[0]), y = att_is_bf16(&problem->in[1]), dx = att_is_bf16(&problem->out[0]);
    if (dy && y && dx)
        relu_grad_as(call, true, true, true);
    else if (!dy && !y && !dx)
        relu_grad_as(call, false, false, false);
    else
        relu_grad_as(call, dy, y, dx);
    return ATT_OK;
}

ATT_SIMD_KERNEL(relu_grad, .bf16_in = 3, .bf16_out = 1, .run = relu_grad_run);
