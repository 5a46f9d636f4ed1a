#include "engine/ops/context_broadcast.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/rows.h"
#include "engine/kernels/cpu/tiered.h"

static void sum_tokens(rows_of x, int64_t tokens, int64_t columns, att_range part, float *sum)
{
    static const rows_of none = {NULL, 0, false};
    for (int64_t c = part.begin; c < part.end; c++)
        sum[c] = 0;
    if (x.is_bf16)
        rows_add_as((rows_of){x.x, x.first, true}, none, tokens, columns, part.begin, part.end, sum);
    else
        rows_add_as((rows_of){x.x, x.first, false}, none, tokens, columns, part.begin, part.end, sum);
}

/* y = keep x + shift (+ residual), for the row at element `at`. */
ATT_INLINE void spread(const att_call *call, int64_t at, const float *shift, att_range part, bool x_is_bf16,
                       bool y_is_bf16)
{
    const float *residual = call->in[2];
    float keep = (float)ATT_ATTRS(call->problem, broadcast)->keep;
    if (residual) {
#pragma omp simd
        for (int64_t c = part.begin; c < part.end; c++)
            att_float_put(call->out[0], at + c,
                          keep * att_float_get(call->in[0], at + c, x_is_bf16) + shift[c] + residual[at + c],
                          y_is_bf16);
    } else {
#pragma omp simd
        for (int64_t c = part.begin; c < part.end; c++)
            att_float_put(call->out[0], at + c, keep * att_float_get(call->in[0], at + c, x_is_bf16) + shift[c],
                          y_is_bf16);
    }
}

/* Parts share the columns of each sample, because a mean needs all tokens. */
ATT_INLINE void context_broadcast_as(const att_call *call, bool x_is_bf16, bool y_is_bf16)
{
    const att_problem *problem = call->problem;
    const float *scale = call->in[1];
    float share = (float)ATT_ATTRS(problem, broadcast)->share;
    int64_t tokens = problem->in[0].shape.dims[0], columns = problem->in[0].shape.dims[1];
    int64_t summed = scale || share != 0 ? tokens : 0;
    att_range part = att_part_of(call, columns, VW);
    float *shift = call->scratch;
    for (int64_t sample = 0; sample < problem->group; sample++) {
        int64_t at = sample * tokens * columns;
        sum_tokens((rows_of){call->in[0], at, x_is_bf16}, summed, columns, part, shift);
        for (int64_t c = part.begin; c < part.end; c++)
            shift[c] *= (scale ? scale[c] : share) / (float)tokens;
        for (int64_t row = 0; row < tokens; row++)
            spread(call, at + row * columns, shift, part, x_is_bf16, y_is_bf16);
    }
}

/* Forward, x and y are bf16 in a branch; y is f32 in the residual stream. In the gradient, x is f32. */
static att_status context_broadcast_run(const att_call *call)
{
    bool x = att_is_bf16(&call->problem->in[0]), y = att_is_bf16(&call->problem->out[0]);
    if (x && y)
        context_broadcast_as(call, true, true);
    else if (y)
        context_broadcast_as(call, false, true);
    else if (x)
        context_broadcast_as(call, true, false);
    else
        context_broadcast_as(call, false, false);
    return ATT_OK;
}

static att_status context_broadcast_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)att_columns(&problem->in[0]) * sizeof(float);
    return ATT_OK;
}

ATT_SIMD_KERNEL(context_broadcast, .bf16_in = 1, .bf16_out = 1, .prepare = context_broadcast_prepare,
                .run = context_broadcast_run);

static att_status scale_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    int64_t tokens = problem->in[0].shape.dims[0], columns = problem->in[0].shape.dims[1];
    att_range part = att_part_of(call, columns, VW);
    float *dy_sum = call->scratch, *x_sum = dy_sum + columns, *dscale = call->out[0];
    for (int64_t sample = 0; sample < problem->group; sample++) {
        int64_t at = sample * tokens * columns;
        sum_tokens((rows_of){call->in[0], at, att_is_bf16(&problem->in[0])}, tokens, columns, part, dy_sum);
        sum_tokens((rows_of){call->in[1], at, att_is_bf16(&problem->in[1])}, tokens, columns, part, x_sum);
        for (int64_t c = part.begin; c < part.end; c++)
            dscale[c] += dy_sum[c] * (x_sum[c] / (float)tokens);
    }
    return ATT_OK;
}

static att_status scale_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = 2 * (size_t)att_columns(&problem->in[0]) * sizeof(float);
    return ATT_OK;
}

ATT_SIMD_KERNEL(context_broadcast_scale_grad, .bf16_in = 3, .prepare = scale_grad_prepare, .run = scale_grad_run);
