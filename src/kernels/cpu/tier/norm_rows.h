/* kernels/cpu/tier/norm_rows.h - what norms that subtract no mean do with a row. */
#ifndef ATT_KERNELS_CPU_TIER_NORM_ROWS_H
#define ATT_KERNELS_CPU_TIER_NORM_ROWS_H

#include "kernels/cpu/tier/floats.h"

ATT_INLINE float row_squares(const float *x, int64_t columns)
{
    vf sum[2] = {{0}};
    int64_t i = 0;
    for (; i + 2 * VW <= columns; i += 2 * VW) {
        vf a = v_load(x + i), b = v_load(x + i + VW);
        sum[0] = v_fma(a, a, sum[0]);
        sum[1] = v_fma(b, b, sum[1]);
    }
    for (; i < columns; i += VW) {
        vf a = v_get_until(x, i, columns, false);
        sum[0] = v_fma(a, a, sum[0]);
    }
    return v_sum(sum[0] + sum[1]);
}

#endif
