/* kernels/cpu/tier/norm_rows.h - row operations of norms that do not subtract the mean. */
#ifndef ATT_KERNELS_CPU_TIER_NORM_ROWS_H
#define ATT_KERNELS_CPU_TIER_NORM_ROWS_H

#include <float.h>
#include <math.h>

#include "engine/kernels/cpu/tier/floats.h"

/* The sum of (scale x)^2. */
ATT_INLINE float row_squares(const float *x, int64_t columns, float scale)
{
    vf sum[2] = {{0}};
    int64_t i = 0;
    for (; i + 2 * VW <= columns; i += 2 * VW) {
        vf a = v_load(x + i) * scale, b = v_load(x + i + VW) * scale;
        sum[0] = v_fma(a, a, sum[0]);
        sum[1] = v_fma(b, b, sum[1]);
    }
    for (; i < columns; i += VW) {
        vf a = v_get_until(x, i, columns, false) * scale;
        sum[0] = v_fma(a, a, sum[0]);
    }
    return v_sum(sum[0] + sum[1]);
}

/* Scale for rows whose sum of squares overflows: f32 cannot hold the squares of numbers beyond 1.8e19. */
#define DOWNSCALE 0x1p-80f

/* sqrt(sum of x^2). */
ATT_INLINE float row_length(const float *x, int64_t columns)
{
    float squares = row_squares(x, columns, 1);
    return squares <= FLT_MAX ? sqrtf(squares) : sqrtf(row_squares(x, columns, DOWNSCALE)) / DOWNSCALE;
}

/* 1 / sqrt(mean of x^2 + eps). If the sum exceeds FLT_MAX, eps is negligible. */
ATT_INLINE float row_inverse_rms(const float *x, int64_t columns, float eps)
{
    float squares = row_squares(x, columns, 1), count = (float)columns;
    return squares <= FLT_MAX ? 1 / sqrtf(squares / count + eps)
                              : DOWNSCALE / sqrtf(row_squares(x, columns, DOWNSCALE) / count);
}

#endif
