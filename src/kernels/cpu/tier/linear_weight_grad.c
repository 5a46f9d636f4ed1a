#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/gemm.h"
#include "kernels/cpu/tier/rows.h"
#include "kernels/cpu/tiered.h"

enum { DY, X };
enum { DW, DB };

/* Rows of x and dy that one pass sums over: a panel of x lies in the first-level cache then, and all of them beside
 * BLOCK columns of dy in the second. */
enum { DEPTH = 128, BLOCK = 256 };

/* Rows [depth, width] of x in panels, as gemm() takes them; the columns after the last whole vector, filled up with
 * zeros, make one more. */
static void pack_rows(const float *x, int64_t depth, int64_t width, float *to)
{
    int64_t vectors = width / VW;
    for (int64_t done = 0, panel; done < vectors; done += panel, to += depth * panel * VW) {
        panel = gemm_panel(vectors - done);
        gemm_copy_rows(x + done * VW, width, depth, panel * VW, to, panel * VW);
    }
    if (width % VW)
        gemm_copy_rows(x + vectors * VW, width, depth, width % VW, to, VW);
}

/* dw [count, inputs] += dy' packed. */
static void add_block(int64_t count, int64_t depth, gemm_a dy, const float *packed, float *dw, int64_t inputs)
{
    int64_t whole = inputs / VW * VW;
    gemm(count, whole, depth, dy, (gemm_b){packed, 0}, (gemm_c){dw, inputs, 1, true});
    if (whole == inputs)
        return;
    float edge[BLOCK * VW];
    gemm(count, VW, depth, dy, (gemm_b){packed + depth * whole, 0}, (gemm_c){edge, VW, 1, false});
    for (int64_t row = 0; row < count; row++)
        for (int64_t c = whole; c < inputs; c++)
            dw[row * inputs + c] += edge[row * VW + c - whole];
}

/* dW [O, I] += dy' [O, rows] x [rows, I] and db += the column sums of dy; parts share O. (oneDNN's product transposes
 * dy first: 5 to 10 % slower here, and it is slow on a share of dy's columns.) */
static att_status linear_weight_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    int64_t outputs = att_columns(&problem->in[DY]), inputs = att_columns(&problem->in[X]);
    int64_t rows = att_rows(call, &problem->in[DY]);
    att_range part = att_part_of(call, outputs, VW);
    const float *dy = call->in[DY], *x = call->in[X];
    float *dw = call->out[DW];
    if (call->out[DB])
        rows_add(dy, NULL, rows, outputs, part.begin, part.end, call->out[DB]);
    for (int64_t row = 0; dw && row < rows; row += DEPTH) {
        int64_t depth = rows - row < DEPTH ? rows - row : DEPTH;
        pack_rows(x + row * inputs, depth, inputs, call->scratch);
        for (int64_t first = part.begin; first < part.end; first += BLOCK)
            add_block(part.end - first < BLOCK ? part.end - first : BLOCK, depth,
                      (gemm_a){dy + row * outputs + first, 1, outputs}, call->scratch, dw + first * inputs, inputs);
    }
    return ATT_OK;
}

static att_status linear_weight_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = DEPTH * (size_t)whole_vectors(att_columns(&problem->in[X])) * sizeof(float);
    return ATT_OK;
}

const att_kernel ATT_TIERED(att_cpu_linear_weight_grad) = {.op = "linear_weight_grad",
                                                           .name = "simd",
                                                           .tier = ATT_TIER_VALUE,
                                                           .accepts = att_takes_f32,
                                                           .prepare = linear_weight_grad_prepare,
                                                           .run = linear_weight_grad_run};
