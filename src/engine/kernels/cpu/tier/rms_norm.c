#include "engine/ops/rms_norm.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/norm_rows.h"
#include "engine/kernels/cpu/tiered.h"

ATT_INLINE vf load(const float *row, int64_t i, int64_t end)
{
    return v_get_until(row, i, end, false);
}

ATT_INLINE void rms_norm_as(const att_call *call, bool y_is_bf16)
{
    const float *gamma = call->in[1];
    float *out_rstd = call->out[1], eps = (float)ATT_ATTRS(call->problem, rms_norm)->eps;
    int64_t columns = att_columns(&call->problem->in[0]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t at = row * columns;
        const float *x = (const float *)call->in[0] + at;
        float rstd = row_inverse_rms(x, columns, eps);
        if (out_rstd)
            out_rstd[row] = rstd;
        for (int64_t i = 0; call->out[0] && i < columns; i += VW)
            v_put_until(call->out[0], at + i, at + columns, load(x, i, columns) * rstd * load(gamma, i, columns),
                        y_is_bf16);
    }
}

static att_status rms_norm_run(const att_call *call)
{
    return run_for_type(call, rms_norm_as, &call->problem->out[0]);
}

ATT_SIMD_KERNEL(rms_norm, .bf16_out = 1, .run = rms_norm_run);

enum { ROWS = 4 }; /* rows per pass over the column sums */

typedef struct grad {
    const void *dy;
    const float *x, *gamma, *rstd;
    float *dx;
    int64_t columns;
} grad;

/* dx = rstd (g - n mean(g n)), g = dy gamma, n = x rstd. */
ATT_INLINE void row_dx(const grad *g, int64_t row, bool dy_is_bf16)
{
    int64_t at = row * g->columns, end = at + g->columns;
    vf rstd = v_set(g->rstd[row]), product = {0};
    for (int64_t i = at; i < end; i += VW) {
        vf scaled = v_get_until(g->dy, i, end, dy_is_bf16) * load(g->gamma, i - at, g->columns);
        product = v_fma(scaled, load(g->x, i, end) * rstd, product);
    }
    vf mean = v_set(v_sum(product) / (float)g->columns);
    for (int64_t i = at; i < end; i += VW) {
        vf scaled = v_get_until(g->dy, i, end, dy_is_bf16) * load(g->gamma, i - at, g->columns);
        v_put_until(g->dx, i, end, v_fma(load(g->x, i, end) * rstd, -mean, scaled) * rstd, false);
    }
}

/* Adds rows [row, end) of dy n to the sums of a range of columns, in order of the rows. */
ATT_INLINE void add_products(const grad *g, int64_t row, int64_t end, att_range columns, float *sum, bool dy_is_bf16)
{
    for (int64_t i = columns.begin; i < columns.end; i += VW) {
        vf total = load(sum, i, columns.end);
        for (int64_t r = row; r < end; r++) {
            int64_t at = r * g->columns;
            vf n = load(g->x + at, i, columns.end) * v_set(g->rstd[r]);
            total = v_fma(v_get_until(g->dy, at + i, at + columns.end, dy_is_bf16), n, total);
        }
        v_put_until(sum, i, columns.end, total, false);
    }
}

/* Parts share the rows of dx, and the columns of dgamma. With one part, both are computed while a few rows are in
 * cache. */
ATT_INLINE void rms_norm_grad_as(const att_call *call, bool dy_is_bf16)
{
    const att_problem *problem = call->problem;
    grad g = {call->in[0], call->in[1], call->in[2], call->in[3], call->out[0], att_columns(&problem->in[1])};
    int64_t count = att_rows(call, &problem->in[1]);
    att_range rows = att_part_of(call, count, ROWS), columns = att_part_of(call, g.columns, VW);
    float *dgamma = call->out[1], *sum = call->scratch;
    memset(sum, 0, (size_t)g.columns * sizeof(float));
    for (int64_t first = 0; first < count; first += ROWS) {
        int64_t end = first + ROWS < count ? first + ROWS : count;
        for (int64_t row = first; g.dx && first >= rows.begin && first < rows.end && row < end; row++)
            row_dx(&g, row, dy_is_bf16);
        if (dgamma)
            add_products(&g, first, end, columns, sum, dy_is_bf16);
    }
    for (int64_t i = columns.begin; dgamma && i < columns.end; i++)
        dgamma[i] += sum[i];
}

static att_status rms_norm_grad_run(const att_call *call)
{
    return run_for_type(call, rms_norm_grad_as, &call->problem->in[0]);
}

static att_status rms_norm_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)att_columns(&problem->in[1]) * sizeof(float);
    return ATT_OK;
}

ATT_SIMD_KERNEL(rms_norm_grad, .bf16_in = 1, .prepare = rms_norm_grad_prepare, .run = rms_norm_grad_run);
