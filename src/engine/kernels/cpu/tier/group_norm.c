#include "engine/ops/group_norm.h"
#include "engine/kernels/cpu/tier/channels.h"
#include "engine/kernels/cpu/tiered.h"

static int64_t rows_of(const att_call *call, const att_desc *x)
{
    return att_rows(call, x) / call->problem->group;
}

/* For one sample of `rows` rows: the mean of each channel's group, and 1 / sqrt(variance + eps). All channels have the
 * same number of rows, so a group's mean is the mean of its channel means. The group's sum of squares is the sum of its
 * channels' sums, plus rows times the squared distances of the channel means from the group's mean. */
static void fill_statistics(const att_group_norm_attrs *attrs, const channels *c, const float *moments, int64_t rows,
                            float *mean, float *rstd)
{
    int64_t width = c->columns / attrs->groups;
    const float *squares = moments + c->columns;
    for (int64_t first = 0; first < c->columns; first += width) {
        double sum = 0, all = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = first; i < first + width; i++)
            sum += moments[i];
        double centre = sum / (double)width;
#pragma omp simd reduction(+ : all)
        for (int64_t i = first; i < first + width; i++) {
            double difference = moments[i] - centre;
            all += squares[i] + (double)rows * difference * difference;
        }
        float variance = (float)(all / (double)(rows * width));
        for (int64_t i = first; i < first + width; i++) {
            mean[i] = (float)centre;
            rstd[i] = variance;
        }
    }
    float eps = (float)attrs->eps;
#pragma omp simd
    for (int64_t i = 0; i < c->columns; i++)
        rstd[i] = 1 / sqrtf(rstd[i] + eps);
}

/* The part's rows that belong to `sample`, counted over all samples. */
static att_range rows_in_sample(att_range part, int64_t sample, int64_t rows)
{
    int64_t begin = sample * rows, end = begin + rows;
    return (att_range){part.begin > begin ? part.begin : begin, part.end < end ? part.end : end};
}

/* Parts share the rows of all samples. */
ATT_INLINE void group_norm_as(const att_call *call, bool y_is_bf16)
{
    const att_desc *x = &call->problem->in[0];
    const float *gamma = call->in[2], *beta = call->in[3];
    channels c = channels_of(x);
    float *centre = call->scratch, *slope = centre + c.wide, *shift = slope + c.wide;
    int64_t rows = rows_of(call, x);
    att_range part = att_part_of(call, att_rows(call, x), 1);
    channel_map map = {
        .x = call->in[0], .y = call->out[0], .centre = centre, .slope = slope, .shift = shift, .floor = -INFINITY};
    channel_form form = {.centred = true, .rest = CHANNELS_SHIFT, .y_is_bf16 = y_is_bf16};
    for (int64_t sample = part.begin / rows; sample * rows < part.end; sample++) {
        const float *moments = (const float *)call->in[1] + sample * 2 * c.columns;
        fill_statistics(call->problem->attrs, &c, moments, rows, centre, slope);
        for (int64_t i = 0; i < c.columns; i++) {
            slope[i] = gamma ? slope[i] * gamma[i] : slope[i];
            shift[i] = beta ? beta[i] : 0;
        }
        channels_repeat(&c, centre);
        channels_repeat(&c, slope);
        channels_repeat(&c, shift);
        att_range sample_rows = rows_in_sample(part, sample, rows);
        channels_map(&map, form, &c, sample_rows.begin, sample_rows.end);
    }
}

static att_status group_norm_run(const att_call *call)
{
    return run_for_type(call, group_norm_as, &call->problem->out[0]);
}

static att_status group_norm_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = channels_scratch(&problem->in[0], 3);
    return ATT_OK;
}

ATT_SIMD_KERNEL(group_norm, .bf16_out = 1, .prepare = group_norm_prepare, .run = group_norm_run);

enum { DY, X, MOMENTS, GAMMA, SUM_DY, SUM_DY_NORMAL };

static att_status grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = channels_scratch(&problem->in[X], 4);
    return ATT_OK;
}

/* Parts share the channels of all samples. */
ATT_INLINE void sums_as(const att_call *call, bool dy_is_bf16)
{
    const att_problem *problem = call->problem;
    channels c = channels_of(&problem->in[X]);
    float *centre = call->scratch, *rstd = centre + c.wide, *sum = rstd + c.wide, *product = sum + c.wide;
    int64_t rows = rows_of(call, &problem->in[X]);
    att_range own_pieces = att_part_of(call, channels_pieces(&c) * problem->group, 1);
    for (int64_t sample = 0; sample < problem->group; sample++) {
        att_range share = channels_share(&c, own_pieces, sample), kept = channels_kept(&c, share);
        if (share.begin == share.end)
            continue;
        fill_statistics(problem->attrs, &c, (const float *)call->in[MOMENTS] + sample * 2 * c.columns, rows, centre,
                        rstd);
        channels_repeat(&c, centre);
        memset(sum, 0, 2 * (size_t)c.wide * sizeof *sum);
        channel_sums sums = {.a = call->in[DY], .b = call->in[X], .centre = centre, .sum = sum, .product = product};
        channels_sum(sums, &c, sample * rows, (sample + 1) * rows, share, dy_is_bf16, false);
        channels_fold(&c, sum);
        channels_fold(&c, product);
        channels_put(call->out[0], sample * c.columns, sum, NULL, kept);
        channels_put(call->out[1], sample * c.columns, product, rstd, kept);
    }
}

static att_status sums_run(const att_call *call)
{
    return run_for_type(call, sums_as, &call->problem->in[DY]);
}

ATT_SIMD_KERNEL(group_norm_sums, .bf16_in = 1u << DY, .prepare = grad_prepare, .run = sums_run);

/* Coefficients of dx = r (g - m) - (x - mean) r^2 p, with g = dy gamma, and m and p the means of g and g n over the
 * group. On entry slope is r; on return slope is the coefficient of x, other that of dy, and shift the constant. */
static void fill_coefficients(const att_call *call, const channels *c, int64_t sample, int64_t rows, float *slope,
                              float *other, float *shift)
{
    const float *gamma = call->in[GAMMA], *dy = (const float *)call->in[SUM_DY] + sample * c->columns;
    const float *dy_normal = (const float *)call->in[SUM_DY_NORMAL] + sample * c->columns;
    int64_t width = c->columns / ATT_ATTRS(call->problem, group_norm)->groups;
    double count = (double)(rows * width);
    for (int64_t i = 0; i < c->columns; i++)
        other[i] = gamma ? gamma[i] : 1;
    for (int64_t first = 0; first < c->columns; first += width) {
        double sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
        for (int64_t i = first; i < first + width; i++) {
            sum += (double)other[i] * dy[i];
            product += (double)other[i] * dy_normal[i];
        }
        float rstd = slope[first], m = (float)(sum / count), p = (float)(product / count);
        for (int64_t i = first; i < first + width; i++) {
            other[i] *= rstd;
            shift[i] = -rstd * m;
            slope[i] = -rstd * rstd * p;
        }
    }
}

/* Parts share the rows of all samples. */
ATT_INLINE void grad_as(const att_call *call, bool dy_is_bf16)
{
    const att_desc *x = &call->problem->in[X];
    channels c = channels_of(x);
    float *centre = call->scratch, *slope = centre + c.wide, *other = slope + c.wide, *shift = other + c.wide;
    int64_t rows = rows_of(call, x);
    att_range part = att_part_of(call, att_rows(call, x), 1);
    channel_map map = {.x = call->in[X],
                       .z = call->in[DY],
                       .y = call->out[0],
                       .centre = centre,
                       .slope = slope,
                       .other = other,
                       .shift = shift,
                       .floor = -INFINITY};
    channel_form form = {.centred = true, .rest = CHANNELS_Z_OTHER_SHIFT, .z_is_bf16 = dy_is_bf16};
    for (int64_t sample = part.begin / rows; sample * rows < part.end; sample++) {
        const float *moments = (const float *)call->in[MOMENTS] + sample * 2 * c.columns;
        fill_statistics(call->problem->attrs, &c, moments, rows, centre, slope);
        fill_coefficients(call, &c, sample, rows, slope, other, shift);
        channels_repeat(&c, centre);
        channels_repeat(&c, slope);
        channels_repeat(&c, other);
        channels_repeat(&c, shift);
        att_range sample_rows = rows_in_sample(part, sample, rows);
        channels_map(&map, form, &c, sample_rows.begin, sample_rows.end);
    }
}

static att_status grad_run(const att_call *call)
{
    return run_for_type(call, grad_as, &call->problem->in[DY]);
}

ATT_SIMD_KERNEL(group_norm_grad, .bf16_in = 1u << DY, .prepare = grad_prepare, .run = grad_run);
