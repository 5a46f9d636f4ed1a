#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tier/vmath.h"
#include "engine/kernels/cpu/tiered.h"

ATT_INLINE vf finished(const float *sum, const float *residual, bool gelu, int64_t i, int64_t count)
{
    vf value = v_get_until(sum, i, count, false);
    value = gelu ? v_gelu(value) : value;
    return residual ? value + v_get_until(residual, i, count, false) : value;
}

ATT_INLINE void finish_as(const float *sum, const float *residual, bool gelu, int64_t count, void *y, bool is_bf16)
{
    int64_t i = 0;
    for (; i + 2 * VW <= count; i += 2 * VW)
        v_put_pair(y, i, finished(sum, residual, gelu, i, count), finished(sum, residual, gelu, i + VW, count),
                   is_bf16);
    for (; i < count; i += VW)
        v_put_until(y, i, count, finished(sum, residual, gelu, i, count), is_bf16);
}

static void finish(const float *sum, const float *residual, bool gelu, int64_t count, void *y, bool is_bf16)
{
    if (gelu && !residual && is_bf16)
        finish_as(sum, NULL, true, count, y, true);
    else if (gelu && !residual)
        finish_as(sum, NULL, true, count, y, false);
    else if (!gelu && residual && !is_bf16)
        finish_as(sum, residual, false, count, y, false);
    else
        finish_as(sum, residual, gelu, count, y, is_bf16);
}

ATT_INLINE vf finished_gradient(const float *sum, att_gradient_form f, vf shared, int64_t i, int64_t end)
{
    vf value = v_get_until(sum, i, end, false) + shared;
    if (f.residual)
        value += v_get_until(f.residual, i, end, f.residual_is_bf16);
    return f.relu_output ? v_where(v_get_until(f.relu_output, i, end, f.relu_output_is_bf16) > (vf){0}, value) : value;
}

ATT_INLINE vf shared_at(att_gradient_form f, int64_t i, int64_t count)
{
    return f.pooled ? v_set(f.share) * v_get_until(f.pooled, i, count, false) : (vf){0};
}

/* Finishes elements [first, first + count); the first of them belongs to channel 0. */
ATT_INLINE void finish_elements(const float *sum, att_gradient_form f, int64_t first, int64_t count, void *dx)
{
    int64_t i = 0, end = first + count;
    for (; i + 2 * VW <= count; i += 2 * VW)
        v_put_pair(dx, first + i, finished_gradient(sum, f, shared_at(f, i, count), first + i, end),
                   finished_gradient(sum, f, shared_at(f, i + VW, count), first + i + VW, end), f.is_bf16);
    for (; i < count; i += VW)
        v_put_until(dx, first + i, end, finished_gradient(sum, f, shared_at(f, i, count), first + i, end), f.is_bf16);
}

ATT_INLINE void finish_gradient_as(const float *sum, att_gradient_form f, int64_t rows, int64_t columns, void *dx)
{
    if (!f.pooled)
        finish_elements(sum, f, 0, rows * columns, dx);
    for (int64_t row = 0; f.pooled && row < rows; row++)
        finish_elements(sum, f, row * columns, columns, dx);
}

static void finish_gradient(const float *sum, const att_gradient_form *form, int64_t rows, int64_t columns, void *dx)
{
    att_gradient_form f = *form;
    bool both = f.residual && f.relu_output, is_bf16 = f.residual_is_bf16 && f.relu_output_is_bf16 && f.is_bf16;
    if (both && is_bf16) {
        f.residual_is_bf16 = f.relu_output_is_bf16 = f.is_bf16 = true;
        finish_gradient_as(sum, f, rows, columns, dx);
    } else if (both && !f.residual_is_bf16 && !f.relu_output_is_bf16 && !f.is_bf16) {
        f.residual_is_bf16 = f.relu_output_is_bf16 = f.is_bf16 = false;
        finish_gradient_as(sum, f, rows, columns, dx);
    } else {
        finish_gradient_as(sum, f, rows, columns, dx);
    }
}

ATT_INLINE void finish_channels_as(const float *sum, const float *scale, const float *shift, const void *residual,
                                   bool residual_is_bf16, float least, int64_t rows, int64_t columns, void *y,
                                   bool is_bf16)
{
    for (int64_t row = 0; row < rows; row++) {
        int64_t first = row * columns, end = first + columns;
        for (int64_t c = 0; c < columns; c += VW) {
            int64_t i = first + c;
            vf value = v_fma(v_get_until(sum, i, end, false), v_get_until(scale, c, columns, false),
                             v_get_until(shift, c, columns, false));
            if (residual)
                value += v_get_until(residual, i, end, residual_is_bf16);
            v_put_until(y, i, end, v_max(v_set(least), value), is_bf16);
        }
    }
}

static void finish_channels(const float *sum, const float *scale, const float *shift, const void *residual,
                            bool residual_is_bf16, float least, int64_t rows, int64_t columns, void *y, bool is_bf16)
{
    if (!residual && !is_bf16)
        finish_channels_as(sum, scale, shift, NULL, false, least, rows, columns, y, false);
    else if (!residual)
        finish_channels_as(sum, scale, shift, NULL, false, least, rows, columns, y, true);
    else if (is_bf16 && residual_is_bf16)
        finish_channels_as(sum, scale, shift, residual, true, least, rows, columns, y, true);
    else
        finish_channels_as(sum, scale, shift, residual, residual_is_bf16, least, rows, columns, y, is_bf16);
}

static void widen(const uint16_t *x, int64_t count, float *y)
{
    for (int64_t i = 0; i < count; i += VW)
        v_put_until(y, i, count, v_get_until(x, i, count, true), false);
}

const att_tier_functions ATT_TIERED(att_cpu_functions) = {
    .finish = finish, .finish_gradient = finish_gradient, .finish_channels = finish_channels, .widen = widen};
