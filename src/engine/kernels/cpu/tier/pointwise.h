/* kernels/cpu/tier/pointwise.h - kernels of elementwise functions and their gradients, made from a function on vectors,
 * for f32 and bf16. The loops are compiled for each function and for the most frequent types. */
#ifndef ATT_KERNELS_CPU_TIER_POINTWISE_H
#define ATT_KERNELS_CPU_TIER_POINTWISE_H

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"

typedef vf (*vector_function)(vf x);

ATT_INLINE void pointwise_as(const att_call *call, vector_function f, bool x_is_bf16, bool y_is_bf16)
{
    const void *x = call->in[0];
    void *y = call->out[0];
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), VW);
    int64_t i = part.begin;
    for (; i + 2 * VW <= part.end; i += 2 * VW)
        v_put_pair(y, i, f(v_get(x, i, x_is_bf16)), f(v_get(x, i + VW, x_is_bf16)), y_is_bf16);
    for (; i < part.end; i += VW)
        v_put_until(y, i, part.end, f(v_get_until(x, i, part.end, x_is_bf16)), y_is_bf16);
}

/* y = f(x), x = input 0. */
ATT_INLINE att_status pointwise(const att_call *call, vector_function f)
{
    bool x = att_is_bf16(&call->problem->in[0]), y = att_is_bf16(&call->problem->out[0]);
    if (!x && !y)
        pointwise_as(call, f, false, false);
    else if (x && y)
        pointwise_as(call, f, true, true);
    else
        pointwise_as(call, f, x, y);
    return ATT_OK;
}

ATT_INLINE vf slope_times(const void *dy, const void *x, vector_function slope, int64_t i, int64_t end, bool dy_is_bf16,
                          bool x_is_bf16)
{
    return v_get_until(dy, i, end, dy_is_bf16) * slope(v_get_until(x, i, end, x_is_bf16));
}

ATT_INLINE void pointwise_grad_as(const att_call *call, vector_function slope, bool dy_is_bf16, bool x_is_bf16,
                                  bool dx_is_bf16)
{
    const void *dy = call->in[0], *x = call->in[1];
    void *dx = call->out[0];
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), VW);
    int64_t i = part.begin, end = part.end;
    for (; i + 2 * VW <= end; i += 2 * VW)
        v_put_pair(dx, i, slope_times(dy, x, slope, i, end, dy_is_bf16, x_is_bf16),
                   slope_times(dy, x, slope, i + VW, end, dy_is_bf16, x_is_bf16), dx_is_bf16);
    for (; i < end; i += VW)
        v_put_until(dx, i, end, slope_times(dy, x, slope, i, end, dy_is_bf16, x_is_bf16), dx_is_bf16);
}

/* dx = dy slope(x), dy = input 0, x = input 1. If input 1 is the function's output y, slope is a function of y. */
ATT_INLINE att_status pointwise_grad(const att_call *call, vector_function slope)
{
    const att_problem *problem = call->problem;
    bool dy = att_is_bf16(&problem->in[0]), x = att_is_bf16(&problem->in[1]), dx = att_is_bf16(&problem->out[0]);
    if (!dy && !x && !dx)
        pointwise_grad_as(call, slope, false, false, false);
    else if (dy && x && dx)
        pointwise_grad_as(call, slope, true, true, true);
    else
        pointwise_grad_as(call, slope, dy, x, dx);
    return ATT_OK;
}

#endif
