#include "engine/ops/upsample_bilinear.h"
#include "base/core/simd.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tiered.h"

/* y [channels] += share x [channels], or = if `first`. */
ATT_INLINE void add_share(float *y, const float *x, double share, int64_t channels, bool first)
{
    float factor = (float)share;
#pragma omp simd
    for (int64_t c = 0; c < channels; c++)
        y[c] = first ? factor * x[c] : y[c] + factor * x[c];
}

static void make_pixel(const float *x, const int64_t *size, att_upsample_place row, att_upsample_place column, float *y)
{
    const float *low = x + row.low * size[1] * size[2], *high = x + row.high * size[1] * size[2];
    int64_t left = column.low * size[2], right = column.high * size[2];
    add_share(y, low + left, (1 - row.share) * (1 - column.share), size[2], true);
    add_share(y, low + right, (1 - row.share) * column.share, size[2], false);
    add_share(y, high + left, row.share * (1 - column.share), size[2], false);
    add_share(y, high + right, row.share * column.share, size[2], false);
}

/* Parts share the pixels of y of all samples. */
static att_status upsample_bilinear_run(const att_call *call)
{
    const int64_t *x = call->problem->in[0].shape.dims, *y = call->problem->out[0].shape.dims;
    att_range part = att_part_of(call, call->problem->group * y[0] * y[1], 1);
    for (int64_t pixel = part.begin; pixel < part.end; pixel++) {
        const float *from = (const float *)call->in[0] + pixel / (y[0] * y[1]) * (x[0] * x[1] * x[2]);
        make_pixel(from, x, att_upsample_place_of(pixel / y[1] % y[0], x[0], y[0]),
                   att_upsample_place_of(pixel % y[1], x[1], y[1]), (float *)call->out[0] + pixel * y[2]);
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(upsample_bilinear, .run = upsample_bilinear_run);

/* Adds `share` times a row dy [y[1], channels] to a row dx [x[1], channels]. */
static void add_row(const float *dy, const int64_t *y, double share, float *dx, const int64_t *x)
{
    for (int64_t j = 0; j < y[1]; j++) {
        att_upsample_place column = att_upsample_place_of(j, x[1], y[1]);
        add_share(dx + column.low * x[2], dy + j * y[2], share * (1 - column.share), x[2], false);
        add_share(dx + column.high * x[2], dy + j * y[2], share * column.share, x[2], false);
    }
}

/* Parts share the rows of dx of all samples. */
static att_status upsample_bilinear_grad_run(const att_call *call)
{
    const int64_t *x = call->problem->out[0].shape.dims, *y = call->problem->in[0].shape.dims;
    att_range part = att_part_of(call, call->problem->group * x[0], 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        float *dx = (float *)call->out[0] + row * x[1] * x[2];
        const float *dy = (const float *)call->in[0] + row / x[0] * (y[0] * y[1] * y[2]);
        att_float_clear(dx, 0, false, x[1] * x[2]);
        for (int64_t i = 0; i < y[0]; i++) {
            att_upsample_place place = att_upsample_place_of(i, x[0], y[0]);
            if (place.low == row % x[0])
                add_row(dy + i * y[1] * y[2], y, 1 - place.share, dx, x);
            if (place.high == row % x[0])
                add_row(dy + i * y[1] * y[2], y, place.share, dx, x);
        }
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(upsample_bilinear_grad, .run = upsample_bilinear_grad_run);
