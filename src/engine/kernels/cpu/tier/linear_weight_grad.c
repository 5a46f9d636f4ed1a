#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/gemm.h"
#include "engine/kernels/cpu/tier/rows.h"
#include "engine/kernels/cpu/tiered.h"

enum { DY, X };
enum { DW, DB };

/* DEPTH: rows (or pairs of rows) of x and dy per pass, so that a panel of x fits into the first-level cache, and all
 * panels with BLOCK columns of dy into the second. */
enum { DEPTH = 128, BLOCK = 256 };

static size_t x_elements(const att_problem *problem)
{
    return DEPTH * (size_t)whole_vectors(att_columns(&problem->in[X]));
}

/* Packs rows [count, width] of x, which begin at number `from`, in panels for gemm(). Columns after the last whole
 * vector form one more panel, zero-padded. */
static void pack_rows(gemm_elements elements, const void *x, int64_t from, int64_t count, int64_t width, float *to)
{
    int64_t vectors = width / VW, depth = gemm_count(elements, count);
    for (int64_t done = 0, panel; done < vectors; done += panel, to += depth * panel * VW) {
        panel = gemm_panel(vectors - done);
        gemm_copy_columns(elements, (gemm_source){x, from + done * VW, width, NULL}, count, panel * VW, to, panel * VW);
    }
    if (width % VW)
        gemm_copy_columns(elements, (gemm_source){x, from + vectors * VW, width, NULL}, count, width % VW, to, VW);
}

/* dw [count, inputs] += dy' x, both packed. */
static void add_block(gemm_elements elements, int64_t count, int64_t depth, const float *dy, const float *x, float *dw,
                      int64_t inputs)
{
    int64_t whole = inputs / VW * VW;
    gemm_packed(elements, count, whole, depth, dy, (gemm_b){x, 0}, (gemm_c){dw, inputs, 1, true});
    if (whole == inputs)
        return;
    float edge[BLOCK * VW];
    gemm_packed(elements, count, VW, depth, dy, (gemm_b){x + depth * whole, 0}, (gemm_c){edge, VW, 1, false});
    for (int64_t row = 0; row < count; row++)
        for (int64_t c = whole; c < inputs; c++)
            dw[row * inputs + c] += edge[row * VW + c - whole];
}

/* db [count] += the sums of pairs, which are packed with `depth` of them per column. */
static void add_pairs(const float *dy, int64_t depth, int64_t count, float *db)
{
    vf ones = v_pair(v_set(1), v_set(1));
    int64_t tile = depth * GEMM_ROWS;
    for (int64_t first = 0; first < count; first += GEMM_ROWS, dy += tile) {
        vf sum = {0};
        for (int64_t i = 0; i < tile; i += VW)
            sum = v_dot(v_get_until(dy, i, tile, false), ones, sum);
        for (int64_t i = 0; i < VW; i++)
            if (first + i % GEMM_ROWS < count)
                db[first + i % GEMM_ROWS] += sum[i];
    }
}

/* Adds rows [row, row + count) of x and dy. */
static void add_pass(const att_call *call, gemm_elements elements, int64_t row, int64_t count, att_range part)
{
    int64_t outputs = att_columns(&call->problem->in[DY]), inputs = att_columns(&call->problem->in[X]);
    float *x = call->scratch, *dy = x + x_elements(call->problem), *dw = call->out[DW], *db = call->out[DB];
    int64_t depth = gemm_count(elements, count);
    if (dw)
        pack_rows(elements, call->in[X], row * inputs, count, inputs, x);
    for (int64_t first = part.begin; first < part.end; first += BLOCK) {
        int64_t width = part.end - first < BLOCK ? part.end - first : BLOCK;
        gemm_pack_rows(elements, (gemm_source){call->in[DY], row * outputs + first, outputs, NULL}, count, width, dy);
        if (db && elements == GEMM_PAIRS)
            add_pairs(dy, depth, width, db + first);
        if (dw)
            add_block(elements, width, depth, dy, x, dw + first * inputs, inputs);
    }
}

/* Both operands are f32, or both bf16 where products of pairs are fast. */
static bool linear_weight_grad_accepts(const att_problem *problem)
{
    bool is_bf16 = att_is_bf16(&problem->in[DY]);
    return is_bf16 == att_is_bf16(&problem->in[X]) && (!is_bf16 || V_MULTIPLIES_PAIRS);
}

/* dW [O, I] += dy' [O, rows] x [rows, I], and db += the column sums of dy. Parts share O. (oneDNN's product first
 * transposes dy, and is slow for a range of dy's columns.) */
static att_status linear_weight_grad_run(const att_call *call)
{
    const att_desc *dy = &call->problem->in[DY];
    gemm_elements elements = gemm_elements_of(att_is_bf16(dy), true);
    int64_t rows = att_rows(call, dy), pass = elements == GEMM_PAIRS ? 2 * DEPTH : DEPTH;
    att_range part = att_part_of(call, att_columns(dy), VW);
    if (call->out[DB] && elements == GEMM_F32)
        rows_add(call->in[DY], NULL, rows, att_columns(dy), part.begin, part.end, call->out[DB]);
    for (int64_t row = 0; row < rows; row += pass)
        add_pass(call, elements, row, rows - row < pass ? rows - row : pass, part);
    return ATT_OK;
}

static att_status linear_weight_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (x_elements(problem) + DEPTH * BLOCK) * sizeof(float);
    return ATT_OK;
}

ATT_SIMD_KERNEL(linear_weight_grad, .bf16_in = 1u << DY | 1u << X, .accepts = linear_weight_grad_accepts,
                .prepare = linear_weight_grad_prepare, .run = linear_weight_grad_run);
