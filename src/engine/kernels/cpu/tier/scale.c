#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/rows.h"
#include "engine/kernels/cpu/tiered.h"

ATT_INLINE void scale_as(const att_call *call, bool x_is_bf16, bool y_is_bf16)
{
    const att_problem *problem = call->problem;
    const float *gamma = call->in[1];
    int64_t columns = att_columns(&problem->in[0]);
    att_range part = att_part_of(call, att_rows(call, &problem->in[0]), 1);
    for (int64_t at = part.begin * columns; at < part.end * columns; at += columns) {
#pragma omp simd
        for (int64_t c = 0; c < columns; c++)
            att_float_put(call->out[0], at + c, att_float_get(call->in[0], at + c, x_is_bf16) * gamma[c], y_is_bf16);
    }
}

/* Forward, x and y are bf16 in a branch. In the gradient, x is the f32 gradient of the residual stream. */
static att_status scale_run(const att_call *call)
{
    bool x = att_is_bf16(&call->problem->in[0]), y = att_is_bf16(&call->problem->out[0]);
    if (x && y)
        scale_as(call, true, true);
    else if (y)
        scale_as(call, false, true);
    else if (x)
        scale_as(call, true, false);
    else
        scale_as(call, false, false);
    return ATT_OK;
}

ATT_INLINE void scale_grad_as(const att_call *call, bool dy_is_bf16, bool x_is_bf16)
{
    const att_problem *problem = call->problem;
    int64_t columns = att_columns(&problem->in[0]);
    att_range part = att_part_of(call, columns, VW);
    rows_add_as((rows_of){call->in[0], 0, dy_is_bf16}, (rows_of){call->in[1], 0, x_is_bf16},
                att_rows(call, &problem->in[0]), columns, part.begin, part.end, call->out[0]);
}

static att_status scale_grad_run(const att_call *call)
{
    bool dy = att_is_bf16(&call->problem->in[0]), x = att_is_bf16(&call->problem->in[1]);
    if (!dy && !x)
        scale_grad_as(call, false, false);
    else if (!dy && x)
        scale_grad_as(call, false, true);
    else
        scale_grad_as(call, dy, x);
    return ATT_OK;
}

ATT_SIMD_KERNEL(scale, .bf16_in = 1, .bf16_out = 1, .run = scale_run);
ATT_SIMD_KERNEL(scale_grad, .bf16_in = 3, .run = scale_grad_run);
