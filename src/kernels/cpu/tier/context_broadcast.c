#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/rows.h"
#include "kernels/cpu/tiered.h"

static void sum_tokens(const float *x, int64_t tokens, int64_t columns, att_range part, float *sum)
{
    for (int64_t c = part.begin; c < part.end; c++)
        sum[c] = 0;
    rows_add(x, NULL, tokens, columns, part.begin, part.end, sum);
}

/* y = keep x + shift (+ residual). */
static void spread(const float *x, const float *shift, const float *residual, float keep, att_range part, float *y)
{
    if (residual) {
#pragma omp simd
        for (int64_t c = part.begin; c < part.end; c++)
            y[c] = keep * x[c] + shift[c] + residual[c];
    } else {
#pragma omp simd
        for (int64_t c = part.begin; c < part.end; c++)
            y[c] = keep * x[c] + shift[c];
    }
}

/* Parts share the columns of all samples: a mean needs all its tokens. */
static att_status context_broadcast_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    const att_broadcast_attrs *attrs = &problem->attrs->broadcast;
    const float *scale = call->in[1], *residual = call->in[2];
    int64_t tokens = problem->in[0].shape.dims[0], columns = problem->in[0].shape.dims[1];
    att_range part = att_part_of(call, columns, VW);
    float *shift = call->scratch;
    for (int64_t sample = 0; sample < problem->group; sample++) {
        int64_t at = sample * tokens * columns;
        const float *x = (const float *)call->in[0] + at;
        float *y = (float *)call->out[0] + at;
        sum_tokens(x, tokens, columns, part, shift);
        for (int64_t c = part.begin; c < part.end; c++)
            shift[c] *= (scale ? scale[c] : (float)attrs->share) / (float)tokens;
        for (int64_t row = 0; row < tokens; row++, x += columns, y += columns)
            spread(x, shift, residual ? residual + at + row * columns : NULL, (float)attrs->keep, part, y);
    }
    return ATT_OK;
}

static att_status context_broadcast_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)att_columns(&problem->in[0]) * sizeof(float);
    return ATT_OK;
}

const att_kernel ATT_TIERED(att_cpu_context_broadcast) = {.op = "context_broadcast",
                                                          .name = "simd",
                                                          .tier = ATT_TIER_VALUE,
                                                          .accepts = att_takes_f32,
                                                          .prepare = context_broadcast_prepare,
                                                          .run = context_broadcast_run};

static att_status scale_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    int64_t tokens = problem->in[0].shape.dims[0], columns = problem->in[0].shape.dims[1];
    att_range part = att_part_of(call, columns, VW);
    float *dy_sum = call->scratch, *x_sum = dy_sum + columns, *dscale = call->out[0];
    for (int64_t sample = 0; sample < problem->group; sample++) {
        int64_t at = sample * tokens * columns;
        sum_tokens((const float *)call->in[0] + at, tokens, columns, part, dy_sum);
        sum_tokens((const float *)call->in[1] + at, tokens, columns, part, x_sum);
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

const att_kernel ATT_TIERED(att_cpu_context_broadcast_scale_grad) = {.op = "context_broadcast_scale_grad",
                                                                     .name = "simd",
                                                                     .tier = ATT_TIER_VALUE,
                                                                     .accepts = att_takes_f32,
                                                                     .prepare = scale_grad_prepare,
                                                                     .run = scale_grad_run};
