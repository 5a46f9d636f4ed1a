#include <math.h>

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tier/vmath.h"
#include "engine/kernels/cpu/tiered.h"

/* Elements [i, i + VW); minus infinity from `end` on, which affects neither the maximum nor the sum of exponentials. */
ATT_INLINE vf load_or_lowest(const void *x, int64_t i, int64_t end, bool is_bf16)
{
    if (end - i >= VW)
        return v_get(x, i, is_bf16);
    float lane[VW];
    v_store(lane, v_set(-INFINITY));
    v_store_part(lane, v_get_part(x, i, end - i, is_bf16), end - i);
    return v_load(lane);
}

/* The largest element of [begin, end), ignoring NaN. */
ATT_INLINE float largest_of(const void *x, int64_t begin, int64_t end, bool is_bf16)
{
    vf largest = v_set(-INFINITY);
    for (int64_t i = begin; i < end; i += VW)
        largest = v_max(load_or_lowest(x, i, end, is_bf16), largest);
    return v_largest(largest);
}

/* e: memory for one row, in whole vectors. */
ATT_INLINE void softmax_as(const att_call *call, float *e, bool x_is_bf16, bool y_is_bf16)
{
    int64_t columns = att_columns(&call->problem->in[0]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t at = row * columns, end = at + columns;
        vf largest = v_set(largest_of(call->in[0], at, end, x_is_bf16)), sum = {0};
        for (int64_t i = 0; i < columns; i += VW) {
            vf value = v_exp(load_or_lowest(call->in[0], at + i, end, x_is_bf16) - largest);
            v_store(e + i, value);
            sum += value;
        }
        vf share = v_set(1 / v_sum(sum));
        for (int64_t i = 0; i < columns; i += VW)
            v_put_until(call->out[0], at + i, end, v_load(e + i) * share, y_is_bf16);
    }
}

static att_status softmax_run(const att_call *call)
{
    bool x = att_is_bf16(&call->problem->in[0]), y = att_is_bf16(&call->problem->out[0]);
    if (!x && !y)
        softmax_as(call, call->scratch, false, false);
    else if (x && y)
        softmax_as(call, call->scratch, true, true);
    else
        softmax_as(call, call->scratch, x, y);
    return ATT_OK;
}

static att_status softmax_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)whole_vectors(att_columns(&problem->in[0])) * sizeof(float);
    return ATT_OK;
}

ATT_SIMD_KERNEL(softmax, .bf16_in = 1, .bf16_out = 1, .prepare = softmax_prepare, .run = softmax_run);

ATT_INLINE void softmax_grad_as(const att_call *call, bool dy_is_bf16, bool y_is_bf16, bool dx_is_bf16)
{
    const void *dy = call->in[0], *y = call->in[1];
    int64_t columns = att_columns(&call->problem->in[1]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[1]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t at = row * columns, end = at + columns;
        vf sum = {0};
        for (int64_t i = at; i < end; i += VW)
            sum = v_fma(v_get_until(dy, i, end, dy_is_bf16), v_get_until(y, i, end, y_is_bf16), sum);
        vf mean = v_set(v_sum(sum));
        for (int64_t i = at; i < end; i += VW)
            v_put_until(call->out[0], i, end,
                        v_get_until(y, i, end, y_is_bf16) * (v_get_until(dy, i, end, dy_is_bf16) - mean), dx_is_bf16);
    }
}

static att_status softmax_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    bool dy = att_is_bf16(&problem->in[0]), y = att_is_bf16(&problem->in[1]), dx = att_is_bf16(&problem->out[0]);
    if (!dy && !y && !dx)
        softmax_grad_as(call, false, false, false);
    else if (dy && y && dx)
        softmax_grad_as(call, true, true, true);
    else
        softmax_grad_as(call, dy, y, dx);
    return ATT_OK;
}

ATT_SIMD_KERNEL(softmax_grad, .bf16_in = 3, .bf16_out = 1, .run = softmax_grad_run);
