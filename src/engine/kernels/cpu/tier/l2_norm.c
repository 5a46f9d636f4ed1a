#include "engine/ops/l2_norm.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/norm_rows.h"
#include "engine/kernels/cpu/tiered.h"

/* NaN stays NaN. */
ATT_INLINE float inverse_of(float norm, float eps)
{
    return 1 / (norm < eps ? eps : norm);
}

ATT_INLINE void l2_norm_as(const att_call *call, bool y_is_bf16)
{
    float *norms = call->out[1], eps = (float)ATT_ATTRS(call->problem, l2_norm)->eps;
    int64_t columns = att_columns(&call->problem->in[0]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t at = row * columns, end = at + columns;
        float norm = row_length((const float *)call->in[0] + at, columns);
        if (norms)
            norms[row] = norm;
        vf inverse = v_set(inverse_of(norm, eps));
        for (int64_t i = at; call->out[0] && i < end; i += VW)
            v_put_until(call->out[0], i, end, v_get_until(call->in[0], i, end, false) * inverse, y_is_bf16);
    }
}

static att_status l2_norm_run(const att_call *call)
{
    return run_for_type(call, l2_norm_as, &call->problem->out[0]);
}

ATT_SIMD_KERNEL(l2_norm, .bf16_out = 1, .run = l2_norm_run);

/* Sum over [at, end) of dy n, n = x inverse. */
ATT_INLINE float product_of(const att_call *call, int64_t at, int64_t end, vf inverse, bool dy_is_bf16)
{
    vf sum = {0};
    for (int64_t i = at; i < end; i += VW)
        sum =
            v_fma(v_get_until(call->in[0], i, end, dy_is_bf16), v_get_until(call->in[1], i, end, false) * inverse, sum);
    return v_sum(sum);
}

/* A row whose norm is below eps is divided by the constant eps, which has no gradient. */
ATT_INLINE void l2_norm_grad_as(const att_call *call, bool dy_is_bf16)
{
    const float *norms = call->in[2];
    float eps = (float)ATT_ATTRS(call->problem, l2_norm)->eps;
    int64_t columns = att_columns(&call->problem->in[1]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[1]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t at = row * columns, end = at + columns;
        bool clamped = norms[row] <= eps;
        vf inverse = v_set(inverse_of(norms[row], eps));
        vf product = v_set(clamped ? 0 : product_of(call, at, end, inverse, dy_is_bf16));
        for (int64_t i = at; i < end; i += VW) {
            vf dy = v_get_until(call->in[0], i, end, dy_is_bf16), x = v_get_until(call->in[1], i, end, false);
            vf across = clamped ? dy : v_fma(x * inverse, -product, dy);
            v_put_until(call->out[0], i, end, across * inverse, false);
        }
    }
}

static att_status l2_norm_grad_run(const att_call *call)
{
    return run_for_type(call, l2_norm_grad_as, &call->problem->in[0]);
}

ATT_SIMD_KERNEL(l2_norm_grad, .bf16_in = 1, .run = l2_norm_grad_run);
