#include "engine/ops/gate.h"
#include "engine/kernels/cpu/tier/channels.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/activation.h"

enum { X, GATE, RESIDUAL };

/* Parts share the rows of each sample. */
ATT_INLINE void gate_as(const att_call *call, bool added, bool x_is_bf16, bool residual_is_bf16, bool y_is_bf16)
{
    const att_problem *problem = call->problem;
    channels c = channels_of(&problem->in[X]);
    int64_t rows = att_rows(call, &problem->in[X]) / problem->group;
    att_range part = att_part_of(call, rows, c.fold);
    float *slope = call->scratch;
    channel_map map = {.x = call->in[X],
                       .z = call->in[RESIDUAL],
                       .y = call->out[0],
                       .slope = slope,
                       .floor = ATT_ATTRS(problem, gate)->activation == ATT_ACT_RELU ? 0 : -INFINITY};
    channel_form form = {.rest = added ? CHANNELS_Z : CHANNELS_NONE,
                         .x_is_bf16 = x_is_bf16,
                         .z_is_bf16 = residual_is_bf16,
                         .y_is_bf16 = y_is_bf16};
    for (int64_t sample = 0; sample < problem->group; sample++) {
        channels_spread(&c, (const float *)call->in[GATE] + sample * c.columns, slope);
        channels_map(&map, form, &c, sample * rows + part.begin, sample * rows + part.end);
    }
}

static att_status gate_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    bool added = call->in[RESIDUAL] != NULL, x = att_is_bf16(&problem->in[X]);
    bool residual = added && att_is_bf16(&problem->in[RESIDUAL]), y = att_is_bf16(&problem->out[0]);
    if (!added && x && y)
        gate_as(call, false, true, false, true);
    else if (!added && !x && !y)
        gate_as(call, false, false, false, false);
    else if (added && x && residual && y)
        gate_as(call, true, true, true, true);
    else if (added && !x && !residual && !y)
        gate_as(call, true, false, false, false);
    else
        gate_as(call, added, x, residual, y);
    return ATT_OK;
}

static att_status gate_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = channels_scratch(&problem->in[X], 1);
    return ATT_OK;
}

ATT_SIMD_KERNEL(gate, .bf16_in = 1u << X | 1u << RESIDUAL, .bf16_out = 1, .prepare = gate_prepare, .run = gate_run);

/* Parts share the channels of all samples. */
ATT_INLINE void dot_as(const att_call *call, bool dy_is_bf16, bool x_is_bf16)
{
    const att_problem *problem = call->problem;
    channels c = channels_of(&problem->in[1]);
    float *sum = call->scratch;
    int64_t rows = att_rows(call, &problem->in[1]) / problem->group;
    att_range own_pieces = att_part_of(call, channels_pieces(&c) * problem->group, 1);
    for (int64_t sample = 0; sample < problem->group; sample++) {
        att_range share = channels_share(&c, own_pieces, sample), kept = channels_kept(&c, share);
        if (share.begin == share.end)
            continue;
        memset(sum, 0, (size_t)c.wide * sizeof *sum);
        channel_sums sums = {.a = call->in[0], .b = call->in[1], .product = sum};
        channels_sum(sums, &c, sample * rows, (sample + 1) * rows, share, dy_is_bf16, x_is_bf16);
        channels_fold(&c, sum);
        memcpy((float *)call->out[0] + sample * c.columns + kept.begin, sum + kept.begin,
               (size_t)(kept.end - kept.begin) * sizeof *sum);
    }
}

static att_status dot_run(const att_call *call)
{
    bool dy = att_is_bf16(&call->problem->in[0]), x = att_is_bf16(&call->problem->in[1]);
    if (dy && x)
        dot_as(call, true, true);
    else if (!dy && !x)
        dot_as(call, false, false);
    else
        dot_as(call, dy, x);
    return ATT_OK;
}

static att_status dot_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = channels_scratch(&problem->in[1], 1);
    return ATT_OK;
}

ATT_SIMD_KERNEL(channel_dot, .bf16_in = 3, .prepare = dot_prepare, .run = dot_run);
