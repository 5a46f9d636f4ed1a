#include "engine/ops/token_mean.h"
#include "engine/kernels/cpu/tier/channels.h"
#include "engine/kernels/cpu/tiered.h"

/* Parts share the channels of all samples. */
ATT_INLINE void token_mean_as(const att_call *call, bool is_bf16)
{
    const att_problem *problem = call->problem;
    channels c = channels_of(&problem->in[0]);
    const att_mean_attrs *attrs = problem->attrs;
    int64_t rows = att_rows(call, &problem->in[0]) / problem->group, first = attrs->first;
    float divisor = (float)((double)(rows - first) / attrs->factor);
    att_range own_pieces = att_part_of(call, channels_pieces(&c) * problem->group, 1);
    float *sum = call->scratch;
    for (int64_t sample = 0; sample < problem->group; sample++) {
        att_range share = channels_share(&c, own_pieces, sample), kept = channels_kept(&c, share);
        if (share.begin == share.end)
            continue;
        memset(sum, 0, (size_t)c.wide * sizeof *sum);
        channel_sums sums = {.a = call->in[0], .sum = sum};
        channels_sum(sums, &c, sample * rows + first, (sample + 1) * rows, share, is_bf16, false);
        channels_fold(&c, sum);
        float *y = (float *)call->out[0] + sample * c.columns;
        for (int64_t i = kept.begin; i < kept.end; i++)
            y[i] = sum[i] / divisor;
    }
}

static att_status token_mean_run(const att_call *call)
{
    return run_for_type(call, token_mean_as, &call->problem->in[0]);
}

static att_status token_mean_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = channels_scratch(&problem->in[0], 1);
    return ATT_OK;
}

ATT_SIMD_KERNEL(token_mean, .bf16_in = 1, .prepare = token_mean_prepare, .run = token_mean_run);

/* Parts share the rows of each sample. Rows before the first are set to zero, not multiplied by 0, which would keep
 * NaN. */
static att_status token_mean_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    const att_mean_attrs *attrs = problem->attrs;
    bool is_bf16 = att_is_bf16(&problem->out[0]);
    int64_t columns = att_columns(&problem->in[0]);
    size_t bytes = (size_t)columns * att_float_size(is_bf16);
    att_range part = att_part_of(call, attrs->total, 1);
    float share = (float)attrs->factor / (float)(attrs->total - attrs->first);
    for (int64_t sample = 0; sample < problem->group; sample++) {
        const float *dy = (const float *)call->in[0] + sample * columns;
        for (int64_t c = 0; c < columns; c++)
            att_float_put(call->scratch, c, dy[c] * share, is_bf16);
        for (int64_t row = part.begin; row < part.end; row++) {
            char *dx = (char *)call->out[0] + (size_t)(sample * attrs->total + row) * bytes;
            if (row < attrs->first)
                memset(dx, 0, bytes);
            else
                memcpy(dx, call->scratch, bytes);
        }
    }
    return ATT_OK;
}

static att_status token_mean_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)att_columns(&problem->in[0]) * sizeof(float);
    return ATT_OK;
}

ATT_SIMD_KERNEL(token_mean_grad, .bf16_out = 1, .prepare = token_mean_grad_prepare, .run = token_mean_grad_run);
