#include "engine/kernels/cpu/tier/channels.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/activation.h"
#include "engine/ops/batch_norm.h"

enum { DY, X };

/* r = 1 / sqrt(variance + eps). */
static void fill_rstd(const channels *c, const float *variance, float eps, float *rstd)
{
#pragma omp simd
    for (int64_t i = 0; i < c->columns; i++)
        rstd[i] = 1 / sqrtf(variance[i] + eps);
}

/* channels_sum() for the types of the call. */
static void sum_rows(const att_call *call, channel_sums sums, const channels *c, int64_t begin, int64_t end,
                     att_range columns)
{
    bool dy = att_is_bf16(&call->problem->in[DY]), x = att_is_bf16(&call->problem->in[X]);
    if (dy && x)
        channels_sum(sums, c, begin, end, columns, true, true);
    else if (!dy && !x)
        channels_sum(sums, c, begin, end, columns, false, false);
    else
        channels_sum(sums, c, begin, end, columns, dy, x);
}

/* --- batch_norm_grad: running statistics-------------------------------------------------------------------------- */

ATT_INLINE void frozen_dx_as(const att_call *call, const channels *c, const float *slope, bool dy_is_bf16,
                             bool dx_is_bf16)
{
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[DY]), c->fold);
    channel_map map = {.x = call->in[DY], .y = call->out[0], .slope = slope, .floor = -INFINITY};
    channels_map(&map, (channel_form){.x_is_bf16 = dy_is_bf16, .y_is_bf16 = dx_is_bf16}, c, part.begin, part.end);
}

static void frozen_dx(const att_call *call, const channels *c, const float *slope)
{
    bool dy = att_is_bf16(&call->problem->in[DY]), dx = att_is_bf16(&call->problem->out[0]);
    if (dy && dx)
        frozen_dx_as(call, c, slope, true, true);
    else if (!dy && !dx)
        frozen_dx_as(call, c, slope, false, false);
    else
        frozen_dx_as(call, c, slope, dy, dx);
}

static void add_scaled(float *to, const float *sum, const float *factor, att_range kept)
{
    for (int64_t i = kept.begin; to && i < kept.end; i++)
        to[i] += factor ? sum[i] * factor[i] : sum[i];
}

/* The sums over all samples. Parts share the channels. */
static void frozen_sums(const att_call *call, const channels *c, const float *rstd, float *rows)
{
    att_range pieces = att_part_of(call, channels_pieces(c), 1);
    att_range columns = channels_columns(c, pieces.begin, pieces.end), kept = channels_kept(c, columns);
    float *centre = rows, *sum = centre + c->wide, *product = sum + c->wide;
    memset(sum, 0, 2 * (size_t)c->wide * sizeof *sum);
    channels_spread(c, call->in[3], centre);
    channel_sums sums = {.a = call->in[DY], .b = call->in[X], .centre = centre, .sum = sum, .product = product};
    sum_rows(call, sums, c, 0, att_rows(call, &call->problem->in[X]), columns);
    channels_fold(c, sum);
    channels_fold(c, product);
    add_scaled(call->out[1], product, rstd, kept);
    add_scaled(call->out[2], sum, NULL, kept);
}

static att_status batch_norm_grad_run(const att_call *call)
{
    const float *gamma = call->in[2];
    channels c = channels_of(&call->problem->in[DY]);
    float *rstd = call->scratch, *slope = rstd + c.wide;
    fill_rstd(&c, call->in[4], (float)ATT_ATTRS(call->problem, batch_norm)->eps, rstd);
    for (int64_t i = 0; i < c.columns; i++)
        slope[i] = gamma[i] * rstd[i];
    channels_repeat(&c, slope);
    if (call->out[0])
        frozen_dx(call, &c, slope);
    if (call->in[X] && (call->out[1] || call->out[2]))
        frozen_sums(call, &c, rstd, slope + c.wide);
    return ATT_OK;
}

static att_status batch_norm_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = channels_scratch(&problem->in[DY], 5);
    return ATT_OK;
}

ATT_SIMD_KERNEL(batch_norm_grad, .bf16_in = 3, .bf16_out = 1, .prepare = batch_norm_grad_prepare,
                .run = batch_norm_grad_run);

/* --- normalize_sums, normalize_grad: statistics of the batch------------------------------------------------------ */

enum { STATS = 2, GAMMA, BETA, MEAN_DY, MEAN_DY_NORMAL, FACTOR, POOLED };

static channel_norm batch_statistics(const att_call *call)
{
    const float *stats = call->in[STATS];
    return (channel_norm){stats, stats + att_columns(&call->problem->in[X]), call->in[GAMMA], call->in[BETA]};
}

static bool is_masked(const att_problem *problem)
{
    return ATT_ATTRS(problem, batch_norm)->activation == ATT_ACT_RELU;
}

/* Parts share the channels of all samples. */
static att_status normalize_sums_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    channel_norm norm = batch_statistics(call);
    channels c = channels_of(&problem->in[X]);
    float eps = (float)ATT_ATTRS(problem, batch_norm)->eps;
    float *rstd = call->scratch, *centre = rstd + c.wide, *slope = centre + c.wide, *shift = slope + c.wide;
    float *sum = shift + c.wide, *product = sum + c.wide;
    int64_t rows = att_rows(call, &problem->in[X]) / problem->group;
    att_range own_pieces = att_part_of(call, channels_pieces(&c) * problem->group, 1);
    bool masked = is_masked(problem);
    fill_rstd(&c, norm.variance, eps, rstd);
    channels_norm(&c, norm, eps, centre, slope, shift);
    for (int64_t sample = 0; sample < problem->group; sample++) {
        att_range share = channels_share(&c, own_pieces, sample), kept = channels_kept(&c, share);
        if (share.begin == share.end)
            continue;
        memset(sum, 0, 2 * (size_t)c.wide * sizeof *sum);
        channel_sums sums = {.a = call->in[DY],
                             .b = call->in[X],
                             .centre = centre,
                             .slope = masked ? slope : NULL,
                             .shift = shift,
                             .sum = sum,
                             .product = product};
        sum_rows(call, sums, &c, sample * rows, (sample + 1) * rows, share);
        channels_fold(&c, sum);
        channels_fold(&c, product);
        channels_put(call->out[0], sample * c.columns, sum, NULL, kept);
        channels_put(call->out[1], sample * c.columns, product, rstd, kept);
    }
    return ATT_OK;
}

static att_status normalize_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = channels_scratch(&problem->in[X], 8);
    return ATT_OK;
}

ATT_SIMD_KERNEL(normalize_sums, .bf16_in = 3, .prepare = normalize_prepare, .run = normalize_sums_run);

/* Computes a sample's coefficients from those of all samples (`other`, `shift`), its factor and its pooled gradient. */
static void sample_coefficients(const att_call *call, const channels *c, int64_t sample, const float *other,
                                const float *shift, channel_map *map, float *own)
{
    float *own_shift = own + c->wide, share = 1 / (float)(att_rows(call, &call->problem->in[X]) / call->problem->group);
    const float *factor = call->in[FACTOR], *pooled = call->in[POOLED];
    for (int64_t i = 0, k = sample * c->columns; i < c->columns; i++, k++) {
        own[i] = factor ? other[i] * factor[k] : other[i];
        own_shift[i] = pooled ? shift[i] + other[i] * share * pooled[k] : shift[i];
    }
    channels_repeat(c, own);
    channels_repeat(c, own_shift);
    map->other = own;
    map->shift = own_shift;
}

/* dx = s (dy - m) - (x - mean) s r p, with s = gamma r, and m and p the means of dy and dy n. After a ReLU, dy is 0
 * where the ReLU's output is 0. Parts share the rows of each sample. */
ATT_INLINE void normalize_grad_as(const att_call *call, bool masked, bool dy_is_bf16, bool x_is_bf16, bool dx_is_bf16)
{
    const att_problem *problem = call->problem;
    channel_norm norm = batch_statistics(call);
    const float *mean_dy = call->in[MEAN_DY], *mean_product = call->in[MEAN_DY_NORMAL];
    channels c = channels_of(&problem->in[X]);
    float eps = (float)ATT_ATTRS(problem, batch_norm)->eps;
    float *centre = call->scratch, *slope = centre + c.wide, *other = slope + c.wide, *shift = other + c.wide;
    float *gate_slope = shift + c.wide, *gate_shift = gate_slope + c.wide, *own = gate_shift + c.wide;
    channels_norm(&c, norm, eps, centre, gate_slope, gate_shift);
    fill_rstd(&c, norm.variance, eps, slope);
#pragma omp simd
    for (int64_t i = 0; i < c.columns; i++) {
        other[i] = norm.gamma[i] * slope[i];
        shift[i] = -other[i] * mean_dy[i];
        slope[i] = -other[i] * slope[i] * mean_product[i];
    }
    channels_repeat(&c, slope);
    channel_map map = {.x = call->in[X],
                       .z = call->in[DY],
                       .y = call->out[0],
                       .centre = centre,
                       .slope = slope,
                       .gate_slope = gate_slope,
                       .gate_shift = gate_shift,
                       .floor = -INFINITY};
    channel_form form = {true, masked, CHANNELS_Z_OTHER_SHIFT, x_is_bf16, dy_is_bf16, dx_is_bf16};
    bool is_uniform = !call->in[FACTOR] && !call->in[POOLED]; /* all rows are treated as one sample */
    int64_t samples = is_uniform ? 1 : problem->group, rows = att_rows(call, &problem->in[X]) / samples;
    att_range part = att_part_of(call, rows, c.fold);
    for (int64_t sample = 0; sample < samples; sample++) {
        sample_coefficients(call, &c, sample, other, shift, &map, own);
        channels_map(&map, form, &c, sample * rows + part.begin, sample * rows + part.end);
    }
}

static att_status normalize_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    bool dy = att_is_bf16(&problem->in[DY]), x = att_is_bf16(&problem->in[X]), dx = att_is_bf16(&problem->out[0]);
    bool masked = is_masked(problem);
    if (masked && dy && x && dx)
        normalize_grad_as(call, true, true, true, true);
    else if (dy && x && dx)
        normalize_grad_as(call, false, true, true, true);
    else if (masked && !dy && !x && !dx)
        normalize_grad_as(call, true, false, false, false);
    else if (!dy && !x && !dx)
        normalize_grad_as(call, false, false, false, false);
    else
        normalize_grad_as(call, masked, dy, x, dx);
    return ATT_OK;
}

ATT_SIMD_KERNEL(normalize_grad, .bf16_in = 3, .bf16_out = 1, .prepare = normalize_prepare, .run = normalize_grad_run);
