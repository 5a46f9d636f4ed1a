#include <math.h>

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/layer_norm.h"

ATT_INLINE vf load(const float *row, int64_t i, int64_t columns)
{
    return v_get_until(row, i, columns, false);
}

ATT_INLINE void store(float *row, int64_t i, int64_t columns, vf value)
{
    v_put_until(row, i, columns, value, false);
}

/* x - mean; 0 past the row's end. */
ATT_INLINE vf centred(const float *row, int64_t i, int64_t columns, vf mean)
{
    if (columns - i >= VW)
        return v_load(row + i) - mean;
    float lane[VW];
    int64_t rest = columns - i;
    v_store(lane, v_load_part(row + i, rest) - mean);
    return v_load_part(lane, rest);
}

typedef struct moments {
    float mean, rstd;
} moments;

ATT_INLINE moments row_moments(const float *x, int64_t columns, double eps)
{
    vf sum[2] = {{0}};
    int64_t i = 0;
    for (; i + 2 * VW <= columns; i += 2 * VW) {
        sum[0] += v_load(x + i);
        sum[1] += v_load(x + i + VW);
    }
    for (; i < columns; i += VW)
        sum[0] += load(x, i, columns);
    float mean = v_sum(sum[0] + sum[1]) / (float)columns;
    vf centre = v_set(mean), square[2] = {{0}};
    for (i = 0; i + 2 * VW <= columns; i += 2 * VW) {
        vf a = v_load(x + i) - centre, b = v_load(x + i + VW) - centre;
        square[0] = v_fma(a, a, square[0]);
        square[1] = v_fma(b, b, square[1]);
    }
    for (; i < columns; i += VW) {
        vf a = centred(x, i, columns, centre);
        square[0] = v_fma(a, a, square[0]);
    }
    float variance = v_sum(square[0] + square[1]) / (float)columns;
    return (moments){mean, 1 / sqrtf(variance + (float)eps)};
}

/* The norm of elements [i, i + VW). */
ATT_INLINE vf normed(const float *x, int64_t i, vf mean, vf rstd, const float *gamma, const float *beta)
{
    return v_fma((v_load(x + i) - mean) * rstd, v_load(gamma + i), v_load(beta + i));
}

ATT_INLINE void layer_norm_as(const att_call *call, bool y_is_bf16)
{
    const att_problem *problem = call->problem;
    const float *gamma = call->in[1], *beta = call->in[2];
    float *stats = call->out[1];
    int64_t columns = att_columns(&problem->in[0]);
    att_range part = att_part_of(call, att_rows(call, &problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t at = row * columns;
        const float *x = (const float *)call->in[0] + at;
        moments m = row_moments(x, columns, ATT_ATTRS(problem, layer_norm)->eps);
        if (stats) {
            stats[2 * row] = m.mean;
            stats[2 * row + 1] = m.rstd;
        }
        if (!call->out[0])
            continue;
        vf mean = v_set(m.mean), rstd = v_set(m.rstd);
        int64_t i = 0;
        for (; i + 2 * VW <= columns; i += 2 * VW)
            v_put_pair(call->out[0], at + i, normed(x, i, mean, rstd, gamma, beta),
                       normed(x, i + VW, mean, rstd, gamma, beta), y_is_bf16);
        for (; i < columns; i += VW) {
            vf n = (load(x, i, columns) - mean) * rstd;
            v_put_until(call->out[0], at + i, at + columns, v_fma(n, load(gamma, i, columns), load(beta, i, columns)),
                        y_is_bf16);
        }
    }
}

static att_status layer_norm_run(const att_call *call)
{
    return run_for_type(call, layer_norm_as, &call->problem->out[0]);
}

ATT_SIMD_KERNEL(layer_norm, .bf16_out = 1, .run = layer_norm_run);

enum { ROWS = 4 }; /* rows per pass over the column sums */

typedef struct grad {
    const void *dy;
    const float *x, *gamma, *stats, *addend;
    float *dx;
    int64_t columns;
} grad;

/* dx = rstd (g - mean(g) - n mean(g n)) + addend, g = dy gamma, n = (x - mean) rstd. */
ATT_INLINE void row_dx(const grad *g, int64_t row, bool dy_is_bf16, bool add)
{
    int64_t columns = g->columns, at = row * columns;
    const float *x = g->x + at;
    vf mean = v_set(g->stats[2 * row]), rstd = v_set(g->stats[2 * row + 1]), sum = {0}, product = {0};
    for (int64_t i = 0; i < columns; i += VW) {
        vf scaled = v_get_until(g->dy, at + i, at + columns, dy_is_bf16) * load(g->gamma, i, columns);
        sum += scaled;
        product = v_fma(scaled, (load(x, i, columns) - mean) * rstd, product);
    }
    vf mean_sum = v_set(v_sum(sum) / (float)columns), mean_product = v_set(v_sum(product) / (float)columns);
    for (int64_t i = 0; i < columns; i += VW) {
        vf n = (load(x, i, columns) - mean) * rstd;
        vf inner = v_fma(v_get_until(g->dy, at + i, at + columns, dy_is_bf16), load(g->gamma, i, columns),
                         -v_fma(n, mean_product, mean_sum));
        store(g->dx + at, i, columns, add ? v_fma(inner, rstd, load(g->addend + at, i, columns)) : inner * rstd);
    }
}

/* Adds rows [row, row + count) of dy n and dy to the sums of columns [begin, end), in order of the rows. */
ATT_INLINE void add_sums(const grad *g, int64_t row, int64_t count, int64_t begin, int64_t end, float *gamma_sum,
                         float *beta_sum, bool dy_is_bf16)
{
    for (int64_t i = begin; i < end; i += VW) {
        vf a = load(gamma_sum, i, end), b = load(beta_sum, i, end);
        for (int64_t r = row; r < row + count; r++) {
            int64_t at = r * g->columns;
            vf dy = v_get_until(g->dy, at + i, at + end, dy_is_bf16);
            vf n = (load(g->x + at, i, end) - v_set(g->stats[2 * r])) * v_set(g->stats[2 * r + 1]);
            a = v_fma(dy, n, a);
            b += dy;
        }
        store(gamma_sum, i, end, a);
        store(beta_sum, i, end, b);
    }
}

static void add_to(float *out, const float *sum, att_range range)
{
    for (int64_t i = range.begin; out && i < range.end; i++)
        out[i] += sum[i];
}

ATT_INLINE void rows_dx(const grad *g, int64_t begin, int64_t end, bool dy_is_bf16)
{
    for (int64_t row = begin; g->dx && row < end; row++) {
        if (g->addend)
            row_dx(g, row, dy_is_bf16, true);
        else
            row_dx(g, row, dy_is_bf16, false);
    }
}

/* Parts share the rows of dx, and the columns of the sums. With one part, both are computed while a few rows are in
 * cache. */
ATT_INLINE void layer_norm_grad_as(const att_call *call, bool dy_is_bf16)
{
    const att_problem *problem = call->problem;
    grad g = {
        call->in[0], call->in[1], call->in[2], call->in[3], call->in[4], call->out[0], att_columns(&problem->in[1])};
    int64_t count = att_rows(call, &problem->in[1]);
    att_range rows = att_part_of(call, count, ROWS), columns = att_part_of(call, g.columns, VW);
    float *gamma_sum = call->scratch, *beta_sum = gamma_sum + g.columns;
    memset(gamma_sum, 0, 2 * (size_t)g.columns * sizeof(float));
    bool summed = call->out[1] || call->out[2];
    for (int64_t row = 0; row < count; row += ROWS) {
        int64_t end = row + ROWS < count ? row + ROWS : count;
        if (row >= rows.begin && row < rows.end)
            rows_dx(&g, row, end, dy_is_bf16);
        if (!summed)
            continue;
        if (end - row == ROWS)
            add_sums(&g, row, ROWS, columns.begin, columns.end, gamma_sum, beta_sum, dy_is_bf16);
        else
            add_sums(&g, row, end - row, columns.begin, columns.end, gamma_sum, beta_sum, dy_is_bf16);
    }
    add_to(call->out[1], gamma_sum, columns);
    add_to(call->out[2], beta_sum, columns);
}

static att_status layer_norm_grad_run(const att_call *call)
{
    return run_for_type(call, layer_norm_grad_as, &call->problem->in[0]);
}

static att_status layer_norm_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = 2 * (size_t)att_columns(&problem->in[1]) * sizeof(float);
    return ATT_OK;
}

ATT_SIMD_KERNEL(layer_norm_grad, .bf16_in = 1, .prepare = layer_norm_grad_prepare, .run = layer_norm_grad_run);
