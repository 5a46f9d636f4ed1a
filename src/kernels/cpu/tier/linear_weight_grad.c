#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/floats.h"
#include "kernels/cpu/tier/gemm.h"
#include "kernels/cpu/tier/gemm_bf16.h"
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

static void add_f32(const att_call *call, int64_t rows, att_range part)
{
    int64_t outputs = att_columns(&call->problem->in[DY]), inputs = att_columns(&call->problem->in[X]);
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
}

/* --- bf16 ----------------------------------------------------------------------------------------------------------
 */

#if defined(__AVX512BF16__)

enum { PAIRS = 128 }; /* of rows, in one pass */

/* Pairs of rows of x [rows, width] in panels, the last vector filled up with zeros. */
static void pack_pairs(const uint16_t *x, int64_t rows, int64_t width, uint32_t *to)
{
    int64_t vectors = width / VW, pairs = (rows + 1) / 2;
    for (int64_t done = 0, panel; done < vectors; done += panel, to += pairs * panel * VW) {
        panel = gemm_panel(vectors - done);
        gemm_pack_pairs(x + done * VW, width, rows, panel * VW, to, panel * VW);
    }
    if (width % VW)
        gemm_pack_pairs(x + vectors * VW, width, rows, width % VW, to, VW);
}

/* db [count] += the sums of pairs [pairs, BLOCK]. */
static void add_pairs(const uint32_t *dy, int64_t pairs, int64_t count, float *db)
{
    const __m512i ones = _mm512_set1_epi32(0x3f803f80);
    for (int64_t c = 0; c < count; c += VW) {
        __m512 sum = _mm512_setzero_ps();
        for (int64_t k = 0; k < pairs; k++)
            sum = gemm_dot(sum, _mm512_loadu_si512(dy + k * BLOCK + c), ones);
        int64_t left = count - c < VW ? count - c : VW;
        v_store_part(db + c, v_load_part(db + c, left) + (vf)sum, left);
    }
}

/* dw [count, inputs] += dy' x, both in pairs. */
static void add_block_bf16(int64_t count, int64_t pairs, const uint32_t *dy, const uint32_t *x, float *dw,
                           int64_t inputs)
{
    int64_t vectors = inputs / VW, rest = inputs % VW;
    gemm_bf16(count, vectors, pairs, (gemm_pairs){dy, BLOCK}, x, dw, inputs);
    if (!rest)
        return;
    float edge[BLOCK * VW] = {0};
    gemm_bf16(count, 1, pairs, (gemm_pairs){dy, BLOCK}, x + pairs * vectors * VW, edge, VW);
    for (int64_t row = 0; row < count; row++) {
        float *to = dw + row * inputs + vectors * VW;
        v_store_part(to, v_load_part(to, rest) + v_load(edge + row * VW), rest);
    }
}

static size_t x_pairs(const att_problem *problem)
{
    return PAIRS * (size_t)whole_vectors(att_columns(&problem->in[X]));
}

static size_t bf16_scratch_bytes(const att_problem *problem)
{
    return (x_pairs(problem) + PAIRS * BLOCK) * sizeof(uint32_t);
}

static void add_bf16(const att_call *call, int64_t rows, att_range part)
{
    int64_t outputs = att_columns(&call->problem->in[DY]), inputs = att_columns(&call->problem->in[X]);
    uint32_t *x = call->scratch, *dy = x + x_pairs(call->problem);
    float *dw = call->out[DW], *db = call->out[DB];
    for (int64_t row = 0; row < rows; row += 2 * PAIRS) {
        int64_t depth = rows - row < 2 * PAIRS ? rows - row : 2 * PAIRS, pairs = (depth + 1) / 2;
        if (dw)
            pack_pairs((const uint16_t *)call->in[X] + row * inputs, depth, inputs, x);
        for (int64_t first = part.begin; first < part.end; first += BLOCK) {
            int64_t count = part.end - first < BLOCK ? part.end - first : BLOCK;
            gemm_pack_pairs((const uint16_t *)call->in[DY] + row * outputs + first, outputs, depth, count, dy, BLOCK);
            if (db)
                add_pairs(dy, pairs, count, db + first);
            if (dw)
                add_block_bf16(count, pairs, dy, x, dw + first * inputs, inputs);
        }
    }
}

static bool is_bf16(const att_problem *problem)
{
    return problem->in[DY].dtype == ATT_BF16 && problem->in[X].dtype == ATT_BF16 && problem->out[DW].dtype == ATT_F32 &&
           problem->out[DB].dtype == ATT_F32;
}

#else

static size_t bf16_scratch_bytes(const att_problem *problem)
{
    (void)problem;
    return 0;
}

static void add_bf16(const att_call *call, int64_t rows, att_range part)
{
    (void)call, (void)rows, (void)part;
}

static bool is_bf16(const att_problem *problem)
{
    (void)problem;
    return false;
}

#endif

/* dW [O, I] += dy' [O, rows] x [rows, I] and db += the column sums of dy; parts share O. (oneDNN's product transposes
 * dy first: 5 to 10 % slower here, and it is slow on a share of dy's columns.) */
static att_status linear_weight_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    int64_t rows = att_rows(call, &problem->in[DY]);
    att_range part = att_part_of(call, att_columns(&problem->in[DY]), VW);
    if (is_bf16(problem))
        add_bf16(call, rows, part);
    else
        add_f32(call, rows, part);
    return ATT_OK;
}

static bool linear_weight_grad_accepts(const att_problem *problem)
{
    return att_takes_f32(problem) || is_bf16(problem);
}

static att_status linear_weight_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    size_t floats = DEPTH * (size_t)whole_vectors(att_columns(&problem->in[X]));
    prepared->scratch_bytes = is_bf16(problem) ? bf16_scratch_bytes(problem) : floats * sizeof(float);
    return ATT_OK;
}

const att_kernel ATT_TIERED(att_cpu_linear_weight_grad) = {.op = "linear_weight_grad",
                                                           .name = "simd",
                                                           .tier = ATT_TIER_VALUE,
                                                           .accepts = linear_weight_grad_accepts,
                                                           .prepare = linear_weight_grad_prepare,
                                                           .run = linear_weight_grad_run};
