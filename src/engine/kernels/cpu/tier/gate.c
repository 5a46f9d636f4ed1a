#include "engine/kernels/cpu/tier/gate.h"
#include "engine/kernels/cpu/tier/channels.h"
#include "engine/kernels/cpu/tiered.h"

/* Parts share the rows of each sample. */
ATT_INLINE void gate_as(const att_call *call, bool added, bool x_is_bf16, bool residual_is_bf16, bool y_is_bf16)
{
    const att_problem *problem = call->problem;
    channels c = channels_of(&problem->in[X]);
    int64_t rows = att_rows(call, &problem->in[X]) / problem->group;
    att_range part = att_part_of(call, rows, c.fold);
    float *slope = call->scratch;
    channel_map map = {
        .x = call->in[X], .z = call->in[RESIDUAL], .y = call->out[0], .slope = slope, .floor = gate_floor(call)};
    channel_form form = {.rest = added ? CHANNELS_Z : CHANNELS_NONE,
                         .x_is_bf16 = x_is_bf16,
                         .z_is_bf16 = residual_is_bf16,
                         .y_is_bf16 = y_is_bf16};
    for (int64_t sample = 0; sample < problem->group; sample++) {
        channels_spread(&c, (const float *)call->in[GATE] + sample * c.columns, slope);
        channels_map(&map, form, &c, sample * rows + part.begin, sample * rows + part.end);
    }
}

static att_status channel_gate_run(const att_call *call)
{
    return run_gate(call, gate_as);
}

static att_status gate_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = channels_scratch(&problem->in[X], 1);
    return ATT_OK;
}

ATT_SIMD_KERNEL(gate, .bf16_in = 1u << X | 1u << RESIDUAL, .bf16_out = 1, .prepare = gate_prepare,
                .run = channel_gate_run);

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
    return run_for_types(call, dot_as, &call->problem->in[0], &call->problem->in[1]);
}

static att_status dot_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = channels_scratch(&problem->in[1], 1);
    return ATT_OK;
}

ATT_SIMD_KERNEL(channel_dot, .bf16_in = 3, .prepare = dot_prepare, .run = dot_run);
