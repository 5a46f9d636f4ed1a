/* Cross entropy and argmax of logits that are interpolated pixel by pixel. For a row of the large map, the logits are
 * first interpolated between two rows of the small map; each of its pixels is then interpolated between two columns of
 * the result. A thread holds a few rows of the small map. */
#include <math.h>

#include <attscope/ops.h>

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tier/vmath.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/upsample_bilinear.h"
#include "engine/ops/upsampled_cross_entropy.h"

/* The logits [h, w, C] in input `logits`, and the size [H, W] to which they are upsampled. In scratch, the classes of a
 * pixel are filled up to `wide`, which is a multiple of VW. */
typedef struct dense {
    const att_call *call;
    int logits;
    bool is_bf16;
    int64_t h, w, classes, wide, height, width;
} dense;

/* What fills up the classes. Sums of shares of it are finite, and less than any logit. */
static const float least = -0x1p126f;

static dense dense_of(const att_call *call, int logits, const att_desc *map)
{
    const att_desc *x = &call->problem->in[logits];
    const int64_t *from = x->shape.dims, *to = map->shape.dims;
    return (dense){call,
                   logits,
                   att_is_bf16(x),
                   from[0],
                   from[1],
                   from[2],
                   .wide = whole_vectors(from[2]),
                   .height = to[0],
                   .width = to[1]};
}

/* `rows` rows of the small map, and a pixel. */
static size_t scratch_bytes(const att_desc *logits, int rows)
{
    const int64_t *size = logits->shape.dims;
    return (size_t)((rows * size[1] + 1) * whole_vectors(size[2])) * sizeof(float);
}

/* The logits of a row of the large map, in the columns of the small one: y [w, wide]. */
ATT_INLINE void make_row_as(const dense *d, int64_t sample, att_upsample_place place, float *y, bool is_bf16)
{
    const void *x = d->call->in[d->logits];
    vf low_share = v_set((float)(1 - place.share)), high_share = v_set((float)place.share);
    for (int64_t j = 0; j < d->w; j++, y += d->wide) {
        int64_t low = ((sample * d->h + place.low) * d->w + j) * d->classes;
        int64_t high = ((sample * d->h + place.high) * d->w + j) * d->classes;
        for (int64_t c = 0; c < d->classes; c += VW) {
            vf below = high_share * v_get_until(x, high + c, high + d->classes, is_bf16);
            v_store(y + c, v_fma(low_share, v_get_until(x, low + c, low + d->classes, is_bf16), below));
        }
        for (int64_t c = d->classes; c < d->wide; c++)
            y[c] = least;
    }
}

static void make_row(const dense *d, int64_t sample, att_upsample_place place, float *y)
{
    if (d->is_bf16)
        make_row_as(d, sample, place, y, true);
    else
        make_row_as(d, sample, place, y, false);
}

/* Interpolates a pixel's logits x [wide] from a row of make_row(). Returns the largest; NaN does not count. */
ATT_INLINE float make_pixel(const dense *d, const float *row, att_upsample_place column, float *x)
{
    const float *left = row + column.low * d->wide, *right = row + column.high * d->wide;
    vf left_share = v_set((float)(1 - column.share)), right_share = v_set((float)column.share), most = v_set(least);
    for (int64_t c = 0; c < d->wide; c += VW) {
        vf y = v_fma(left_share, v_load(left + c), right_share * v_load(right + c));
        v_store(x + c, y);
        most = v_max(y, most);
    }
    float lane[VW], largest = least;
    v_store(lane, most);
    for (int i = 0; i < VW; i++)
        largest = lane[i] > largest ? lane[i] : largest;
    return largest;
}

static const int32_t *mask_row(const dense *d, int64_t sample, int64_t i)
{
    return (const int32_t *)d->call->in[d->logits + 1] + (sample * d->height + i) * d->width;
}

/* H / n; 0 if n is 0. */
static double factor_of(const dense *d, int64_t sample)
{
    const att_upsampled_cross_entropy_attrs *attrs = ATT_ATTRS(d->call->problem, upsampled_cross_entropy);
    const int32_t *mask = mask_row(d, sample, 0);
    int64_t count = 0;
    if (attrs->mean == ATT_MEAN_OF_ALL)
        return 1 / (double)d->width;
    for (int64_t i = 0; i < d->height * d->width; i++)
        count += mask[i] != attrs->ignored;
    return count ? (double)d->height / (double)count : 0;
}

/* The sums of e^(x - largest), of a pixel's class and of all other classes. */
typedef struct terms {
    float own, others;
} terms;

/* If `keep`, x becomes e^(x - largest), and 0 for the class. */
ATT_INLINE terms terms_of(float *x, int32_t class, float largest, int64_t wide, bool keep)
{
    vf most = v_set(largest), sum = {0}, own = v_exp(v_set(x[class] - largest));
    x[class] = -INFINITY;
    for (int64_t c = 0; c < wide; c += VW) {
        vf e = v_exp(v_load(x + c) - most);
        sum += e;
        if (keep)
            v_store(x + c, e);
    }
    return (terms){own[0], v_sum(sum)};
}

/* The sum of the losses of a row's pixels. */
static double row_loss(const dense *d, const float *row, const int32_t *mask, float *x)
{
    int32_t ignored = ATT_ATTRS(d->call->problem, upsampled_cross_entropy)->ignored;
    double loss = 0;
    for (int64_t j = 0; j < d->width; j++) {
        if (mask[j] == ignored)
            continue;
        if (mask[j] < 0 || mask[j] >= d->classes)
            return NAN;
        float largest = make_pixel(d, row, att_upsample_place_of(j, d->w, d->width), x), own = x[mask[j]];
        terms of = terms_of(x, mask[j], largest, d->wide, false);
        /* The largest term is 1: if it is that of the class, the others are kept to their last digit. */
        loss += ((double)largest - own) + log1p((double)of.others + ((double)of.own - 1));
    }
    return loss;
}

/* Parts share the rows of the masks of all samples. */
static att_status upsampled_cross_entropy_run(const att_call *call)
{
    dense d = dense_of(call, 0, &call->problem->in[1]);
    att_range part = att_part_of(call, call->problem->group * d.height, 1);
    float *row = call->scratch, *x = row + d.w * d.wide;
    double factor = 0;
    for (int64_t number = part.begin; number < part.end; number++) {
        int64_t sample = number / d.height, i = number % d.height;
        if (number == part.begin || i == 0)
            factor = factor_of(&d, sample);
        make_row(&d, sample, att_upsample_place_of(i, d.h, d.height), row);
        ((float *)call->out[0])[number] = (float)(factor * row_loss(&d, row, mask_row(&d, sample, i), x));
    }
    return ATT_OK;
}

static att_status upsampled_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = scratch_bytes(&problem->in[0], 1);
    return ATT_OK;
}

ATT_SIMD_KERNEL(upsampled_cross_entropy, .bf16_in = 1, .prepare = upsampled_prepare,
                .run = upsampled_cross_entropy_run);

/* Adds factor (softmax - onehot) of a pixel to the gradients of its two columns. */
ATT_INLINE void add_pixel(const dense *d, const float *row, att_upsample_place column, int32_t class, double factor,
                          float *x, float *drow)
{
    bool is_class = class >= 0 && class < d->classes;
    class = is_class ? class : 0;
    float largest = make_pixel(d, row, column, x);
    terms of = terms_of(x, class, largest, d->wide, true);
    x[class] = -of.others; /* (softmax - 1) (own + others), without the difference of close numbers */
    double scale = is_class ? factor / ((double)of.own + of.others) : NAN;
    vf left_share = v_set((float)(scale * (1 - column.share))), right_share = v_set((float)(scale * column.share));
    float *left = drow + column.low * d->wide, *right = drow + column.high * d->wide;
    for (int64_t c = 0; c < d->wide; c += VW) {
        vf y = v_load(x + c);
        v_store(left + c, v_fma(left_share, y, v_load(left + c)));
        v_store(right + c, v_fma(right_share, y, v_load(right + c)));
    }
}

/* The gradient of a row of make_row(): drow [w, wide]. */
static void make_drow(const dense *d, const float *row, const int32_t *mask, double factor, float *x, float *drow)
{
    int32_t ignored = ATT_ATTRS(d->call->problem, upsampled_cross_entropy)->ignored;
    memset(drow, 0, (size_t)(d->w * d->wide) * sizeof *drow);
    for (int64_t j = 0; j < d->width; j++)
        if (mask[j] != ignored)
            add_pixel(d, row, att_upsample_place_of(j, d->w, d->width), mask[j], factor, x, drow);
}

static void add_share(const dense *d, float *y, const float *x, double share)
{
    float factor = (float)share;
#pragma omp simd
    for (int64_t i = 0; i < d->w * d->wide; i++)
        y[i] += factor * x[i];
}

/* The gradients of rows `next` and next + 1 of the small map, in slots next % 2 and (next + 1) % 2. */
typedef struct sums {
    float *slot[2];
    int64_t next;
} sums;

/* Stores the rows before `until`, to which nothing will be added. */
static void store_rows(const dense *d, int64_t sample, sums *of, int64_t until)
{
    bool is_bf16 = att_is_bf16(&d->call->problem->out[0]);
    for (; of->next < until; of->next++) {
        float *row = of->slot[of->next % 2];
        int64_t first = (sample * d->h + of->next) * d->w * d->classes;
        for (int64_t j = 0; j < d->w; j++)
            att_float_move(row + j * d->wide, 0, false, d->call->out[0], first + j * d->classes, is_bf16, d->classes);
        memset(row, 0, (size_t)(d->w * d->wide) * sizeof *row);
    }
}

/* Rows [begin, end) of a sample's gradient. A row of the large map adds to two rows of the small one, in order, also if
 * one of them belongs to another part. */
static void make_rows(const dense *d, int64_t sample, int64_t begin, int64_t end)
{
    int64_t size = d->w * d->wide;
    float *row = d->call->scratch, *drow = row + size, *x = row + 4 * size;
    sums of = {{row + 2 * size, row + 3 * size}, begin};
    const float *factors = (const float *)d->call->in[0] + sample * d->height;
    double factor = factor_of(d, sample);
    memset(of.slot[0], 0, (size_t)(2 * size) * sizeof(float));
    for (int64_t i = 0; i < d->height; i++) {
        att_upsample_place place = att_upsample_place_of(i, d->h, d->height);
        if (place.high < begin || place.low >= end)
            continue;
        store_rows(d, sample, &of, place.low);
        make_row(d, sample, place, row);
        make_drow(d, row, mask_row(d, sample, i), factor * factors[i], x, drow);
        if (place.low >= begin)
            add_share(d, of.slot[place.low % 2], drow, 1 - place.share);
        if (place.high < end)
            add_share(d, of.slot[place.high % 2], drow, place.share);
    }
    store_rows(d, sample, &of, end);
}

/* Parts share the rows of the gradients of all samples. */
static att_status upsampled_cross_entropy_grad_run(const att_call *call)
{
    dense d = dense_of(call, 1, &call->problem->in[2]);
    att_range part = att_part_of(call, call->problem->group * d.h, 1);
    while (part.begin < part.end) {
        int64_t sample = part.begin / d.h, begin = part.begin % d.h, rest = part.end - sample * d.h;
        make_rows(&d, sample, begin, rest < d.h ? rest : d.h);
        part.begin = (sample + 1) * d.h;
    }
    return ATT_OK;
}

static att_status upsampled_cross_entropy_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = scratch_bytes(&problem->in[1], 4);
    return ATT_OK;
}

ATT_SIMD_KERNEL(upsampled_cross_entropy_grad, .bf16_in = 2, .bf16_out = 1,
                .prepare = upsampled_cross_entropy_grad_prepare, .run = upsampled_cross_entropy_grad_run);

/* The first class with the largest logit; 0 if there is none, because all are NaN. */
static int32_t place_of(float largest, const float *x, int64_t classes)
{
    int32_t c = 0;
    while (c < classes && x[c] != largest)
        c++;
    return c < classes ? c : 0;
}

/* Parts share the rows of the class maps of all samples. */
static att_status upsampled_argmax_run(const att_call *call)
{
    dense d = dense_of(call, 0, &call->problem->out[0]);
    att_range part = att_part_of(call, call->problem->group * d.height, 1);
    float *row = call->scratch, *x = row + d.w * d.wide;
    for (int64_t number = part.begin; number < part.end; number++) {
        int32_t *y = (int32_t *)call->out[0] + number * d.width;
        make_row(&d, number / d.height, att_upsample_place_of(number % d.height, d.h, d.height), row);
        for (int64_t j = 0; j < d.width; j++) {
            float largest = make_pixel(&d, row, att_upsample_place_of(j, d.w, d.width), x);
            y[j] = place_of(largest, x, d.classes);
        }
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(upsampled_argmax, .bf16_in = 1, .prepare = upsampled_prepare, .run = upsampled_argmax_run);
