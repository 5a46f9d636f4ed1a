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

static void widen(const uint16_t *x, int64_t count, float *y)
{
    for (int64_t i = 0; i < count; i += VW)
        v_put_until(y, i, count, v_get_until(x, i, count, true), false);
}

const att_tier_functions ATT_TIERED(att_cpu_functions) = {.finish = finish, .widen = widen};
