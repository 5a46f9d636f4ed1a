#include "engine/ops/batch_norm.h"
#include "engine/kernels/cpu/tier/channels.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/activation.h"

/* x is input 0. Parts share the rows. */
ATT_INLINE void norm_as(const att_call *call, channel_norm n, bool x_is_bf16, bool y_is_bf16)
{
    const att_problem *problem = call->problem;
    const att_batch_norm_attrs *attrs = problem->attrs;
    channels c = channels_of(&problem->in[0]);
    float *centre = call->scratch, *slope = centre + c.wide, *shift = slope + c.wide;
    att_range part = att_part_of(call, att_rows(call, &problem->in[0]), c.fold);
    channels_norm(&c, n, (float)attrs->eps, centre, slope, shift);
    channel_map map = {.x = call->in[0],
                       .y = call->out[0],
                       .centre = centre,
                       .slope = slope,
                       .shift = shift,
                       .floor = attrs->activation == ATT_ACT_RELU ? 0 : -INFINITY};
    channel_form form = {.centred = true, .rest = CHANNELS_SHIFT, .x_is_bf16 = x_is_bf16, .y_is_bf16 = y_is_bf16};
    channels_map(&map, form, &c, part.begin, part.end);
}

static void norm_run(const att_call *call, channel_norm n)
{
    bool x = att_is_bf16(&call->problem->in[0]), y = att_is_bf16(&call->problem->out[0]);
    if (x && y)
        norm_as(call, n, true, true);
    else if (!x && !y)
        norm_as(call, n, false, false);
    else
        norm_as(call, n, x, y);
}

static att_status norm_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = channels_scratch(&problem->in[0], 3);
    return ATT_OK;
}

static att_status batch_norm_run(const att_call *call)
{
    norm_run(call, (channel_norm){call->in[3], call->in[4], call->in[1], call->in[2]});
    return ATT_OK;
}

ATT_SIMD_KERNEL(batch_norm, .bf16_in = 1, .bf16_out = 1, .prepare = norm_prepare, .run = batch_norm_run);

static att_status normalize_run(const att_call *call)
{
    const float *mean = call->in[1];
    norm_run(call, (channel_norm){mean, mean + att_columns(&call->problem->in[1]), call->in[2], call->in[3]});
    return ATT_OK;
}

ATT_SIMD_KERNEL(normalize, .bf16_in = 1, .bf16_out = 1, .prepare = norm_prepare, .run = normalize_run);
