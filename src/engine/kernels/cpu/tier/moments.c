#include "engine/kernels/cpu/tier/moments.h"
#include "engine/ops/global_style.h"

#include "engine/kernels/cpu/tiered.h"

/* Stores outputs from the moments of the channels `kept` of one sample with `rows` rows. */
typedef void moments_use(const att_call *call, moments m, int64_t sample, int64_t rows, att_range kept);

/* Parts share the channels of all samples. */
ATT_INLINE void each_sample(const att_call *call, moments_use *use, bool is_bf16)
{
    const att_problem *problem = call->problem;
    channels c = channels_of(&problem->in[0]);
    moments m = moments_at(&c, call->scratch);
    int64_t rows = att_rows(call, &problem->in[0]) / problem->group;
    att_range own_pieces = att_part_of(call, channels_pieces(&c) * problem->group, 1);
    for (int64_t sample = 0; sample < problem->group; sample++) {
        att_range share = channels_share(&c, own_pieces, sample);
        if (share.begin == share.end)
            continue;
        moments_of(m, &c, call->in[0], sample * rows, (sample + 1) * rows, share, is_bf16);
        use(call, m, sample, rows, channels_kept(&c, share));
    }
}

static att_status run_for(const att_call *call, moments_use *use)
{
    if (att_is_bf16(&call->problem->in[0]))
        each_sample(call, use, true);
    else
        each_sample(call, use, false);
    return ATT_OK;
}

static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = channels_scratch(&problem->in[0], MOMENTS_ROWS);
    return ATT_OK;
}

static void put_moments(const att_call *call, moments m, int64_t sample, int64_t rows, att_range kept)
{
    (void)rows;
    int64_t columns = att_columns(&call->problem->in[0]);
    size_t bytes = (size_t)(kept.end - kept.begin) * sizeof(float);
    float *to = (float *)call->out[0] + sample * 2 * columns + kept.begin;
    memcpy(to, m.mean + kept.begin, bytes);
    memcpy(to + columns, m.squares + kept.begin, bytes);
}

static att_status channel_moments_run(const att_call *call)
{
    return run_for(call, put_moments);
}

ATT_SIMD_KERNEL(channel_moments, .bf16_in = 1, .prepare = prepare, .run = channel_moments_run);

static void put_style(const att_call *call, moments m, int64_t sample, int64_t rows, att_range kept)
{
    float *to = (float *)call->out[0] + sample * 2 * att_columns(&call->problem->in[0]);
    float eps = (float)ATT_ATTRS(call->problem, style)->eps, share = 1 / (float)(rows - 1);
    for (int64_t i = kept.begin; i < kept.end; i++) {
        to[2 * i] = m.mean[i];
        to[2 * i + 1] = sqrtf(m.squares[i] * share + eps);
    }
}

static att_status global_style_run(const att_call *call)
{
    return run_for(call, put_style);
}

ATT_SIMD_KERNEL(global_style, .bf16_in = 1, .prepare = prepare, .run = global_style_run);

/* dx = dmean / n + dstd (x - mean) / ((n - 1) std). Parts share the rows of each sample. */
ATT_INLINE void style_grad_as(const att_call *call, bool x_is_bf16, bool dx_is_bf16)
{
    const att_problem *problem = call->problem;
    channels c = channels_of(&problem->in[1]);
    float *centre = call->scratch, *slope = centre + c.wide, *shift = slope + c.wide;
    int64_t rows = att_rows(call, &problem->in[1]) / problem->group;
    att_range part = att_part_of(call, rows, c.fold);
    channel_map map = {
        .x = call->in[1], .y = call->out[0], .centre = centre, .slope = slope, .shift = shift, .floor = -INFINITY};
    channel_form form = {.centred = true, .rest = CHANNELS_SHIFT, .x_is_bf16 = x_is_bf16, .y_is_bf16 = dx_is_bf16};
    for (int64_t sample = 0; sample < problem->group; sample++) {
        const float *dy = (const float *)call->in[0] + sample * 2 * c.columns;
        const float *style = (const float *)call->in[2] + sample * 2 * c.columns;
        for (int64_t i = 0; i < c.columns; i++) {
            centre[i] = style[2 * i];
            slope[i] = dy[2 * i + 1] / ((float)(rows - 1) * style[2 * i + 1]);
            shift[i] = dy[2 * i] / (float)rows;
        }
        channels_repeat(&c, centre);
        channels_repeat(&c, slope);
        channels_repeat(&c, shift);
        channels_map(&map, form, &c, sample * rows + part.begin, sample * rows + part.end);
    }
}

static att_status style_grad_run(const att_call *call)
{
    return run_for_types(call, style_grad_as, &call->problem->in[1], &call->problem->out[0]);
}

static att_status style_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = channels_scratch(&problem->in[1], 3);
    return ATT_OK;
}

ATT_SIMD_KERNEL(global_style_grad, .bf16_in = 2, .bf16_out = 1, .prepare = style_grad_prepare, .run = style_grad_run);
