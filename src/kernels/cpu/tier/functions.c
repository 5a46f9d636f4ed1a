#include "kernels/cpu/tier/rows.h"
#include "kernels/cpu/tier/vmath.h"
#include "kernels/cpu/tiered.h"

static void add_rows(const float *x, int64_t rows, int64_t columns, int64_t begin, int64_t end, float *sum)
{
    rows_add(x, NULL, rows, columns, begin, end, sum);
}

ATT_INLINE void finish_as(float *y, const float *residual, bool gelu, int64_t count)
{
    int64_t i = 0;
    for (; i + VW <= count; i += VW) {
        vf value = v_load(y + i);
        value = gelu ? v_gelu(value) : value;
        v_store(y + i, residual ? value + v_load(residual + i) : value);
    }
    if (i < count) {
        vf value = v_load_part(y + i, count - i);
        value = gelu ? v_gelu(value) : value;
        v_store_part(y + i, residual ? value + v_load_part(residual + i, count - i) : value, count - i);
    }
}

static void finish(float *y, const float *residual, bool gelu, int64_t count)
{
    if (gelu && residual)
        finish_as(y, residual, true, count);
    else if (gelu)
        finish_as(y, NULL, true, count);
    else if (residual)
        finish_as(y, residual, false, count);
}

const att_tier_functions ATT_TIERED(att_cpu_functions) = {.add_rows = add_rows, .finish = finish};
