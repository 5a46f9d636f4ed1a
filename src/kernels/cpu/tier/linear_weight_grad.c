#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/gemm.h"
#include "kernels/cpu/tier/rows.h"
#include "kernels/cpu/tiered.h"

enum { DY, X };
enum { DW, DB };

/* Rows of x and dy that one pass sums over, so that what it reads again and again of x lies in the first-level cache.
 */
enum { DEPTH = 128, PANEL = GEMM_VECTORS * VW };

typedef struct weights {
    float *dw; /* [outputs, inputs] */
    int64_t outputs, inputs;
} weights;

/* dw's columns from `column` on += dy' panel, for the outputs of `part`. The last columns may not fill a vector: their
 * sum goes through `edge` [outputs, VW]. */
static void add_panel(const weights *w, gemm_a dy, int64_t depth, const float *panel, int64_t column, int64_t width,
                      att_range part, float *edge)
{
    int64_t count = part.end - part.begin, whole = whole_vectors(width);
    float *to = w->dw + part.begin * w->inputs + column;
    if (width == whole) {
        gemm(count, width, depth, dy, (gemm_b){panel, width}, (gemm_c){to, w->inputs, 1, true});
        return;
    }
    gemm(count, whole, depth, dy, (gemm_b){panel, whole}, (gemm_c){edge, whole, 1, false});
    for (int64_t row = 0; row < count; row++)
        for (int64_t c = 0; c < width; c++)
            to[row * w->inputs + c] += edge[row * whole + c];
}

/* dW [O, I] += dy' [O, rows] x [rows, I] and db += the column sums of dy; parts share O. (oneDNN's product transposes
 * dy first: 5 to 10 % slower here, and it is slow on a share of dy's columns.) */
static att_status linear_weight_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    weights w = {call->out[DW], att_columns(&problem->in[DY]), att_columns(&problem->in[X])};
    int64_t rows = att_rows(call, &problem->in[DY]);
    att_range part = att_part_of(call, w.outputs, VW);
    const float *dy = call->in[DY], *x = call->in[X];
    float *panel = call->scratch, *edge = panel + DEPTH * PANEL;
    if (call->out[DB])
        rows_add(dy, NULL, rows, w.outputs, part.begin, part.end, call->out[DB]);
    for (int64_t row = 0, depth; w.dw && row < rows; row += depth) {
        depth = rows - row < DEPTH ? rows - row : DEPTH;
        gemm_a a = {dy + row * w.outputs + part.begin, 1, w.outputs};
        for (int64_t column = 0, width; column < w.inputs; column += width) {
            width = gemm_panel(whole_vectors(w.inputs - column) / VW) * VW;
            width = width < w.inputs - column ? width : w.inputs - column;
            gemm_copy_rows(x + row * w.inputs + column, w.inputs, depth, width, panel, whole_vectors(width));
            add_panel(&w, a, depth, panel, column, width, part, edge);
        }
    }
    return ATT_OK;
}

static att_status linear_weight_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    size_t edge = (size_t)att_columns(&problem->in[DY]) * PANEL;
    bool whole = att_columns(&problem->in[X]) % VW == 0;
    prepared->scratch_bytes = (DEPTH * PANEL + (whole ? 0 : edge)) * sizeof(float);
    return ATT_OK;
}

const att_kernel ATT_TIERED(att_cpu_linear_weight_grad) = {.op = "linear_weight_grad",
                                                           .name = "simd",
                                                           .tier = ATT_TIER_VALUE,
                                                           .accepts = att_takes_f32,
                                                           .prepare = linear_weight_grad_prepare,
                                                           .run = linear_weight_grad_run};
