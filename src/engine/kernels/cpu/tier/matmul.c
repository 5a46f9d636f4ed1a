#include "engine/ops/matmul.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/gemm.h"
#include "engine/kernels/cpu/tiered.h"

/* Products of small matrices: a call of oneDNN takes microseconds, longer than many of these products. */

enum { A, B };

enum {
    SMALL = 15 * 1024, /* most elements of b; oneDNN is as fast from about 128 x 128 on, and faster from 256 x 256 on */
    BLOCK_ROWS = 32    /* rows of y per block, if they are computed in scratch */
};

/* y [rows, columns] = a [rows, inner] b [inner, columns]. Operands that gemm() cannot read or write in place are copied
 * to scratch, at the offsets a_at, b_at and y_at, in floats. */
typedef struct product {
    int64_t rows, inner, columns, padded; /* padded: columns rounded up to whole vectors */
    gemm_elements elements;
    bool a_transposed, b_transposed, in_is_bf16, y_is_bf16;
    bool copies_a, copies_b, copies_y;
    float scale;
    int64_t a_stride, a_at, b_at, y_at, scratch;
} product;

static product product_of(const att_problem *problem)
{
    const att_matmul_attrs *attrs = problem->attrs;
    const att_shape *a = &problem->in[A].shape, *y = &problem->out[0].shape;
    product p = {.rows = y->dims[y->rank - 2],
                 .columns = y->dims[y->rank - 1],
                 .inner = a->dims[a->rank - (attrs->a_transposed ? 2 : 1)],
                 .a_transposed = attrs->a_transposed,
                 .b_transposed = attrs->b_transposed,
                 .in_is_bf16 = att_is_bf16(&problem->in[A]),
                 .y_is_bf16 = att_is_bf16(&problem->out[0]),
                 .scale = (float)attrs->scale};
    p.padded = whole_vectors(p.columns);
    p.elements = gemm_elements_of(p.in_is_bf16, V_MULTIPLIES_PAIRS);
    p.copies_a = p.in_is_bf16;
    p.copies_b = p.in_is_bf16 || p.b_transposed || p.padded != p.columns;
    p.copies_y = p.y_is_bf16 || p.padded != p.columns;
    int64_t inner = gemm_count(p.elements, p.inner);
    p.a_stride = whole_vectors(p.a_transposed ? p.rows : inner);
    p.b_at = p.copies_a ? p.a_stride * (p.a_transposed ? inner : p.rows) : 0;
    p.y_at = p.b_at + (p.copies_b ? p.padded * inner : 0);
    p.scratch = p.y_at + (p.copies_y ? BLOCK_ROWS * p.padded : 0);
    return p;
}

/* Matrix `matrix` of input a, as gemm() reads it. */
static gemm_a operand_a(const att_call *call, const product *p, int64_t matrix)
{
    int64_t from = matrix * p->rows * p->inner;
    float *to = (float *)call->scratch + p->a_at;
    if (!p->copies_a)
        return (gemm_a){(const float *)call->in[A] + from, p->a_transposed ? 1 : p->inner,
                        p->a_transposed ? p->rows : 1};
    if (p->a_transposed) {
        gemm_copy_columns(p->elements, (gemm_source){call->in[A], from, p->rows, NULL}, p->inner, p->rows, to,
                          p->a_stride);
        return (gemm_a){to, 1, p->a_stride};
    }
    gemm_copy_rows(p->elements, (gemm_source){call->in[A], from, p->inner, NULL}, p->rows, p->inner, to, p->a_stride);
    return (gemm_a){to, p->a_stride, 1};
}

static gemm_b operand_b(const att_call *call, const product *p, int64_t matrix)
{
    int64_t from = matrix * p->inner * p->columns;
    float *to = (float *)call->scratch + p->b_at;
    if (!p->copies_b)
        return (gemm_b){(const float *)call->in[B] + from, p->columns};
    if (p->b_transposed) {
        gemm_pack_transposed(p->elements, (gemm_source){call->in[B], from, p->inner, NULL}, p->columns, p->inner, to);
        return (gemm_b){to, 0};
    }
    gemm_copy_columns(p->elements, (gemm_source){call->in[B], from, p->columns, NULL}, p->inner, p->columns, to,
                      p->padded);
    return (gemm_b){to, p->padded};
}

/* Copies `rows` rows from scratch to y, the first to element `first`. */
static void put_rows(const att_call *call, const product *p, const float *from, int64_t rows, int64_t first)
{
    for (int64_t row = 0; row < rows; row++, from += p->padded, first += p->columns)
        for (int64_t i = 0; i < p->columns; i += VW)
            v_put_until(call->out[0], first + i, first + p->columns, v_load(from + i), p->y_is_bf16);
}

static void run_matrix(const att_call *call, const product *p, int64_t matrix)
{
    gemm_a a = operand_a(call, p, matrix);
    gemm_b b = operand_b(call, p, matrix);
    int64_t first = matrix * p->rows * p->columns, inner = gemm_count(p->elements, p->inner);
    if (!p->copies_y) {
        gemm_c y = {(float *)call->out[0] + first, p->columns, p->scale, false};
        gemm(p->elements, p->rows, p->padded, inner, a, b, y);
        return;
    }
    gemm_c block = {(float *)call->scratch + p->y_at, p->padded, p->scale, false};
    for (int64_t row = 0; row < p->rows; row += BLOCK_ROWS) {
        int64_t rows = p->rows - row < BLOCK_ROWS ? p->rows - row : BLOCK_ROWS;
        gemm(p->elements, rows, p->padded, inner, (gemm_a){a.data + row * a.row, a.row, a.inner}, b, block);
        put_rows(call, p, block.data, rows, first + row * p->columns);
    }
}

/* Parts share the matrices of all samples. */
static att_status matmul_run(const att_call *call)
{
    product p = product_of(call->problem);
    att_range part = att_part_of(call, att_elements(call, &call->problem->out[0]) / (p.rows * p.columns), 1);
    for (int64_t matrix = part.begin; matrix < part.end; matrix++)
        run_matrix(call, &p, matrix);
    return ATT_OK;
}

/* Both operands are f32, or both bf16. */
static bool matmul_accepts(const att_problem *problem)
{
    product p = product_of(problem);
    return att_is_bf16(&problem->in[A]) == att_is_bf16(&problem->in[B]) && p.inner * p.columns <= SMALL;
}

static att_status matmul_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)product_of(problem).scratch * sizeof(float);
    return ATT_OK;
}

ATT_SIMD_KERNEL(matmul, .bf16_in = 3, .bf16_out = 1, .accepts = matmul_accepts, .prepare = matmul_prepare,
                .run = matmul_run);
