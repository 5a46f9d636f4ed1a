#include <math.h>

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/wide.h"
#include "engine/kernels/cpu/wide.h"
#include "engine/ops/linear.h"

enum { X, WEIGHT, BIAS, RESIDUAL };
enum { TILE = 4 }; /* rows and outputs whose products are computed together */

static bool linear_wide_accepts(const att_problem *problem)
{
    return problem->in[X].dtype == ATT_F64 && !((const att_linear_attrs *)problem->attrs)->transposed;
}

/* sums[r][o] = x_r . w_o for TILE rows of x and of w. */
static void multiply_tile(const double *x, const double *w, int64_t inputs, double sums[TILE][TILE])
{
    vd part[TILE][TILE] = {0};
    int64_t i = 0;
    for (; i + WIDE <= inputs; i += WIDE)
        for (int r = 0; r < TILE; r++)
            for (int o = 0; o < TILE; o++)
                part[r][o] += vd_load(x + r * inputs + i) * vd_load(w + o * inputs + i);
    for (int r = 0; r < TILE; r++)
        for (int o = 0; o < TILE; o++) {
            sums[r][o] = vd_sum(part[r][o]);
            for (int64_t rest = i; rest < inputs; rest++)
                sums[r][o] += x[r * inputs + rest] * w[o * inputs + rest];
        }
}

static double finish(const att_call *call, double sum, int64_t row, int64_t output, int64_t outputs)
{
    const att_linear_attrs *attrs = call->problem->attrs;
    const double *bias = call->in[BIAS], *residual = call->in[RESIDUAL];
    double y = bias ? sum + bias[output] : sum;
    if (attrs->activation == ATT_ACT_GELU)
        y = y / 2 * (1 + erf(y * 0.70710678118654752440));
    return residual ? y + residual[row * outputs + output] : y;
}

static att_status linear_wide_run(const att_call *call)
{
    const double *x = call->in[X], *w = call->in[WEIGHT];
    double *y = call->out[0];
    const int64_t inputs = att_columns(&call->problem->in[X]), outputs = att_columns(&call->problem->out[0]);
    const att_range rows = att_part_of(call, att_rows(call, &call->problem->in[X]), TILE);
    for (int64_t row = rows.begin; row < rows.end; row += TILE)
        for (int64_t o = 0; o < outputs; o += TILE) {
            double sums[TILE][TILE];
            const int64_t row_end = row + TILE < rows.end ? row + TILE : rows.end;
            const int64_t o_end = o + TILE < outputs ? o + TILE : outputs;
            const bool whole = row_end - row == TILE && o_end - o == TILE;
            if (whole)
                multiply_tile(x + row * inputs, w + o * inputs, inputs, sums);
            for (int64_t r = row; r < row_end; r++)
                for (int64_t c = o; c < o_end; c++) {
                    double sum = whole ? sums[r - row][c - o] : wide_dot(x + r * inputs, w + c * inputs, inputs);
                    y[r * outputs + c] = finish(call, sum, r, c, outputs);
                }
        }
    return ATT_OK;
}

ATT_TIER_KERNEL(linear_wide, "linear", "f64", .accepts = linear_wide_accepts, .run = linear_wide_run);
