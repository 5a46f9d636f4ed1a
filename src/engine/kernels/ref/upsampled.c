#include <attscope/ops.h>

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/corners.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/upsampled_cross_entropy.h"

/* The logits [h, w, C] in input `logits`, and the size [H, W] to which they are upsampled. */
typedef struct dense {
    const att_call *call;
    int logits;
    const int64_t *from, *to;
    int64_t classes, pixels, elements; /* C, H W, h w C */
} dense;

static dense dense_of(const att_call *call, int logits, const att_desc *map)
{
    const int64_t *from = call->problem->in[logits].shape.dims, *to = map->shape.dims;
    return (dense){call, logits, from, to, from[2], to[0] * to[1], from[0] * from[1] * from[2]};
}

static void interpolate(const dense *d, int64_t sample, const ref_corner corners[REF_CORNERS], double *x)
{
    for (int64_t c = 0; c < d->classes; c++) {
        x[c] = 0;
        for (int i = 0; i < REF_CORNERS; i++)
            x[c] +=
                corners[i].share * ref_in(d->call, d->logits, sample * d->elements + corners[i].pixel * d->classes + c);
    }
}

static const int32_t *mask_of(const dense *d, int64_t sample)
{
    return (const int32_t *)d->call->in[d->logits + 1] + sample * d->pixels;
}

static bool is_ignored(const dense *d, int32_t class)
{
    return class == ATT_ATTRS(d->call->problem, upsampled_cross_entropy)->ignored;
}

/* H / n; 0 if n is 0. */
static double factor_of(const dense *d, int64_t sample)
{
    int64_t count = 0;
    bool all = ATT_ATTRS(d->call->problem, upsampled_cross_entropy)->mean == ATT_MEAN_OF_ALL;
    for (int64_t pixel = 0; pixel < d->pixels; pixel++)
        count += all || !is_ignored(d, mask_of(d, sample)[pixel]);
    return count ? (double)d->to[0] / (double)count : 0;
}

/* ln of the sum of e^x over the classes. */
static double log_sum_exp(const double *x, int64_t classes)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < classes; c++)
        largest = fmax(largest, x[c]);
    for (int64_t c = 0; c < classes; c++)
        sum += exp(x[c] - largest);
    return largest + log(sum);
}

static double pixel_loss(const dense *d, int64_t sample, int64_t pixel, double *x)
{
    ref_corner corners[REF_CORNERS];
    int32_t class = mask_of(d, sample)[pixel];
    if (is_ignored(d, class))
        return 0;
    if (class < 0 || class >= d->classes)
        return NAN;
    ref_corners_of(d->from, d->to, pixel, corners);
    interpolate(d, sample, corners, x);
    return log_sum_exp(x, d->classes) - x[class];
}

/* Parts share the rows of the masks of all samples. */
static att_status run_loss(const att_call *call)
{
    dense d = dense_of(call, 0, &call->problem->in[1]);
    ref_range share = ref_share(call, call->problem->group * d.to[0]);
    for (int64_t row = share.begin; row < share.end; row++) {
        int64_t sample = row / d.to[0], first = row % d.to[0] * d.to[1];
        double sum = 0;
        for (int64_t pixel = first; pixel < first + d.to[1]; pixel++)
            sum += pixel_loss(&d, sample, pixel, call->scratch);
        ref_out(call, 0, row, factor_of(&d, sample) * sum);
    }
    return ATT_OK;
}

static att_status prepare_classes(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)problem->in[0].shape.dims[2] * sizeof(double);
    return ATT_OK;
}

const att_kernel att_ref_upsampled_cross_entropy = {
    .op = "upsampled_cross_entropy", .name = "ref", .prepare = prepare_classes, .run = run_loss};

/* Adds factor (softmax - onehot) of a pixel to the sums of its corners. 1 - softmax of the class is the sum of the
 * other terms, because softmax may be close to 1. */
static void add_gradient(const dense *d, int64_t sample, int64_t pixel, double factor, double *x, double *sums)
{
    ref_corner corners[REF_CORNERS];
    int32_t class = mask_of(d, sample)[pixel];
    if (is_ignored(d, class))
        return;
    ref_corners_of(d->from, d->to, pixel, corners);
    interpolate(d, sample, corners, x);
    double lse = log_sum_exp(x, d->classes), others = class < 0 || class >= d->classes || isnan(lse) ? NAN : 0;
    for (int64_t c = 0; c < d->classes; c++) {
        x[c] = exp(x[c] - lse);
        others += c == class ? 0 : x[c];
    }
    for (int64_t c = 0; c < d->classes; c++)
        for (int i = 0; i < REF_CORNERS; i++)
            sums[corners[i].pixel * d->classes + c] +=
                factor * corners[i].share * (c == class || isnan(others) ? -others : x[c]);
}

/* Parts share the samples. Sums are in f64 and stored once. */
static att_status run_grad(const att_call *call)
{
    dense d = dense_of(call, 1, &call->problem->in[2]);
    double *sums = call->scratch, *x = sums + d.elements;
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        double factor = factor_of(&d, sample);
        for (int64_t e = 0; e < d.elements; e++)
            sums[e] = 0;
        for (int64_t pixel = 0; pixel < d.pixels; pixel++)
            add_gradient(&d, sample, pixel, factor * ref_in(call, 0, sample * d.to[0] + pixel / d.to[1]), x, sums);
        for (int64_t e = 0; e < d.elements; e++)
            ref_out(call, 0, sample * d.elements + e, sums[e]);
    }
    return ATT_OK;
}

static att_status prepare_grad(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *logits = problem->in[1].shape.dims;
    prepared->scratch_bytes = (size_t)((logits[0] * logits[1] + 1) * logits[2]) * sizeof(double);
    return ATT_OK;
}

const att_kernel att_ref_upsampled_cross_entropy_grad = {
    .op = "upsampled_cross_entropy_grad", .name = "ref", .prepare = prepare_grad, .run = run_grad};

static att_status run_argmax(const att_call *call)
{
    dense d = dense_of(call, 0, &call->problem->out[0]);
    double *x = call->scratch;
    ref_range share = ref_share(call, call->problem->group * d.pixels);
    for (int64_t pixel = share.begin; pixel < share.end; pixel++) {
        ref_corner corners[REF_CORNERS];
        double largest = -INFINITY;
        int64_t top = 0;
        ref_corners_of(d.from, d.to, pixel % d.pixels, corners);
        interpolate(&d, pixel / d.pixels, corners, x);
        for (int64_t c = 0; c < d.classes; c++)
            if (x[c] > largest) {
                largest = x[c];
                top = c;
            }
        ref_out(call, 0, pixel, (double)top);
    }
    return ATT_OK;
}

const att_kernel att_ref_upsampled_argmax = {
    .op = "upsampled_argmax", .name = "ref", .prepare = prepare_classes, .run = run_argmax};
