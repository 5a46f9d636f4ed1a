#include "kernels/cpu/tier/floats.h"
#include "kernels/cpu/tier/vmath.h"
#include "kernels/cpu/tiered.h"

ATT_INLINE vf finished(const float *sum, const float *residual, bool gelu, int64_t i, int64_t count)
{
    vf value = v_get_until(sum, i, count, false);
    value = gelu ? v_gelu(value) : value;
    return residual ? value + v_get_until(residual, i, count, false) : value;
}

ATT_INLINE void finish_as(const float *sum, const float *residual, bool gelu, int64_t count, void *y, bool narrow)
{
    int64_t i = 0;
    for (; i + 2 * VW <= count; i += 2 * VW)
        v_put_pair(y, i, finished(sum, residual, gelu, i, count), finished(sum, residual, gelu, i + VW, count), narrow);
    for (; i < count; i += VW)
        v_put_until(y, i, count, finished(sum, residual, gelu, i, count), narrow);
}

static void finish(const float *sum, const float *residual, bool gelu, int64_t count, void *y, bool narrow)
{
    if (gelu && !residual && narrow)
        finish_as(sum, NULL, true, count, y, true);
    else if (gelu && !residual)
        finish_as(sum, NULL, true, count, y, false);
    else if (!gelu && residual && !narrow)
        finish_as(sum, residual, false, count, y, false);
    else
        finish_as(sum, residual, gelu, count, y, narrow);
}

/* What a gradient is finished with; NULL: nothing. */
typedef struct gradient_form {
    const void *residual, *passed;
    bool narrow_residual, narrow_passed, narrow;
} gradient_form;

ATT_INLINE vf finished_gradient(const float *sum, gradient_form f, int64_t i, int64_t count)
{
    vf value = v_get_until(sum, i, count, false);
    if (f.residual)
        value += v_get_until(f.residual, i, count, f.narrow_residual);
    return f.passed ? v_where(v_get_until(f.passed, i, count, f.narrow_passed) > (vf){0}, value) : value;
}

ATT_INLINE void finish_gradient_as(const float *sum, gradient_form f, int64_t count, void *dx)
{
    int64_t i = 0;
    for (; i + 2 * VW <= count; i += 2 * VW)
        v_put_pair(dx, i, finished_gradient(sum, f, i, count), finished_gradient(sum, f, i + VW, count), f.narrow);
    for (; i < count; i += VW)
        v_put_until(dx, i, count, finished_gradient(sum, f, i, count), f.narrow);
}

static void finish_gradient(const float *sum, const void *residual, bool narrow_residual, const void *passed,
                            bool narrow_passed, int64_t count, void *dx, bool narrow)
{
    if (residual && passed && narrow_residual && narrow_passed && narrow)
        finish_gradient_as(sum, (gradient_form){residual, passed, true, true, true}, count, dx);
    else if (residual && passed && !narrow_residual && !narrow_passed && !narrow)
        finish_gradient_as(sum, (gradient_form){residual, passed, false, false, false}, count, dx);
    else
        finish_gradient_as(sum, (gradient_form){residual, passed, narrow_residual, narrow_passed, narrow}, count, dx);
}

ATT_INLINE void finish_channels_as(const float *sum, const float *scale, const float *shift, const void *residual,
                                   bool narrow_residual, float least, int64_t rows, int64_t columns, void *y,
                                   bool narrow)
{
    for (int64_t row = 0; row < rows; row++) {
        int64_t first = row * columns, end = first + columns;
        for (int64_t c = 0; c < columns; c += VW) {
            int64_t i = first + c;
            vf value = v_fma(v_get_until(sum, i, end, false), v_get_until(scale, c, columns, false),
                             v_get_until(shift, c, columns, false));
            if (residual)
                value += v_get_until(residual, i, end, narrow_residual);
            v_put_until(y, i, end, v_max(v_set(least), value), narrow);
        }
    }
}

static void finish_channels(const float *sum, const float *scale, const float *shift, const void *residual,
                            bool narrow_residual, float least, int64_t rows, int64_t columns, void *y, bool narrow)
{
    if (!residual && !narrow)
        finish_channels_as(sum, scale, shift, NULL, false, least, rows, columns, y, false);
    else if (!residual)
        finish_channels_as(sum, scale, shift, NULL, false, least, rows, columns, y, true);
    else if (narrow && narrow_residual)
        finish_channels_as(sum, scale, shift, residual, true, least, rows, columns, y, true);
    else
        finish_channels_as(sum, scale, shift, residual, narrow_residual, least, rows, columns, y, narrow);
}

static void widen(const uint16_t *x, int64_t count, float *y)
{
    for (int64_t i = 0; i < count; i += VW)
        v_put_until(y, i, count, v_get_until(x, i, count, true), false);
}

const att_tier_functions ATT_TIERED(att_cpu_functions) = {
    .finish = finish, .finish_gradient = finish_gradient, .finish_channels = finish_channels, .widen = widen};
