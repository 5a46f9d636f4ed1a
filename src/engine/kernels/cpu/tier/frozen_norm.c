#include "engine/ops/frozen_norm.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tiered.h"

enum { X = ATT_FROZEN_X, GAMMA = ATT_FROZEN_GAMMA, STATS = ATT_FROZEN_STATS, BETA = ATT_FROZEN_BETA };

ATT_INLINE float mean_of_row(const float *x, int64_t columns, float shift)
{
    vf sum = {0};
    int64_t i = 0;
    for (; i + VW <= columns; i += VW)
        sum += v_load(x + i) - shift;
    float rest = 0;
    for (; i < columns; i++)
        rest += x[i] - shift;
    return (v_sum(sum) + rest) / (float)columns;
}

static att_status frozen_norm_run(const att_call *call)
{
    const float *gamma = call->in[GAMMA], *stats = call->in[STATS], *beta = call->in[BETA];
    const att_frozen_norm_attrs *attrs = call->problem->attrs;
    int64_t columns = att_columns(&call->problem->in[X]), numbers = ATT_FROZEN_NUMBERS(attrs);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[X]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        const float *x = (const float *)call->in[X] + row * columns;
        /* The mean in two parts, so that a large one loses no digits of the differences to it. */
        float mean = attrs->centred ? mean_of_row(x, columns, 0) : 0;
        float rest = attrs->centred ? mean_of_row(x, columns, mean) : 0;
        vf rstd = v_set(stats[row * numbers + numbers - 1]);
        for (int64_t i = 0; i < columns; i += VW) {
            vf factor = rstd * v_get_until(gamma, i, columns, false);
            vf y = (v_get_until(x, i, columns, false) - mean - rest) * factor;
            if (beta)
                y += v_get_until(beta, i, columns, false);
            v_put_until((float *)call->out[0] + row * columns, i, columns, y, false);
        }
    }
    return ATT_OK;
}

ATT_SIMD_KERNEL(frozen_norm, .run = frozen_norm_run);
