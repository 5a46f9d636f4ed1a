#include "engine/ops/matmul.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/onednn.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tiered.h"

enum { A, B };

/* One product for each matrix of all samples. Parts share the matrices. */
typedef struct matmul {
    att_product *product;
    const att_tier_functions *functions;
    int64_t matrices, rows, inner, columns;
    float scale;
    bool in_is_bf16, out_is_bf16;
    bool widened;               /* the operands are bf16, the product runs in f32 */
    bool sums;                  /* the product's f32 result is in scratch, not in y */
    size_t a_at, b_at, sums_at; /* offsets in scratch */
} matmul;

static void describe(const att_problem *problem, matmul *m)
{
    const att_matmul_attrs *attrs = problem->attrs;
    const att_shape *a = &problem->in[A].shape, *y = &problem->out[0].shape;
    m->rows = y->dims[y->rank - 2];
    m->columns = y->dims[y->rank - 1];
    m->inner = a->dims[a->rank - (attrs->a_transposed ? 2 : 1)];
    m->matrices = att_problem_count(problem, &problem->out[0]) / (m->rows * m->columns);
    m->scale = (float)attrs->scale;
    m->in_is_bf16 = att_is_bf16(&problem->in[A]);
    m->out_is_bf16 = att_is_bf16(&problem->out[0]);
    m->widened = m->in_is_bf16 && !att_context_has_bf16(problem->context);
    m->sums = m->out_is_bf16 && (m->widened || !m->in_is_bf16 || m->scale != 1);
    m->functions = att_cpu_functions(problem->context);
}

static att_status make_product(const att_problem *problem, matmul *m)
{
    const att_matmul_attrs *attrs = problem->attrs;
    const att_product_spec spec = {.rows = m->rows,
                                   .inner = m->inner,
                                   .columns = m->columns,
                                   .dtype = m->in_is_bf16 && !m->widened ? ATT_BF16 : ATT_F32,
                                   .to = m->out_is_bf16 && !m->sums ? ATT_BF16 : ATT_F32,
                                   .a_transposed = attrs->a_transposed,
                                   .b_transposed = attrs->b_transposed};
    return att_product_create(problem->context, &spec, &m->product);
}

/* Reserves `count` floats of scratch and returns their offset. */
static size_t reserve_scratch(size_t *top, int64_t count)
{
    size_t at = (*top + 63) / 64 * 64;
    *top = at + (size_t)count * sizeof(float);
    return at;
}

static size_t lay_out_scratch(matmul *m)
{
    size_t top = att_product_scratch_bytes(m->product);
    m->a_at = reserve_scratch(&top, m->widened ? m->rows * m->inner : 0);
    m->b_at = reserve_scratch(&top, m->widened ? m->inner * m->columns : 0);
    m->sums_at = reserve_scratch(&top, m->sums ? m->rows * m->columns : 0);
    return top;
}

static void release(att_context *context, void *state)
{
    att_product_destroy(context, ((matmul *)state)->product);
    att_free(context, state);
}

static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    matmul *m;
    ATT_TRY(att_new(problem->context, &m, 1, "a matrix product"));
    describe(problem, m);
    att_status status = make_product(problem, m);
    if (status != ATT_OK) {
        release(problem->context, m);
        return status;
    }
    *prepared = (att_prepared){.state = m, .scratch_bytes = lay_out_scratch(m)};
    return ATT_OK;
}

/* Matrix `matrix` of operand i, with `count` elements, widened if necessary. */
static const void *operand(const att_call *call, const matmul *m, int i, int64_t matrix, int64_t count, size_t wide_at)
{
    const void *x = att_float_at(call->in[i], matrix * count, m->in_is_bf16);
    if (!m->widened)
        return x;
    float *wide = (float *)((char *)call->scratch + wide_at);
    m->functions->widen(x, count, wide);
    return wide;
}

static att_status run_matrix(const att_call *call, const matmul *m, int64_t matrix)
{
    int64_t count = m->rows * m->columns;
    const void *a = operand(call, m, A, matrix, m->rows * m->inner, m->a_at);
    const void *b = operand(call, m, B, matrix, m->inner * m->columns, m->b_at);
    void *y = (char *)call->out[0] + (size_t)(matrix * count) * att_float_size(m->out_is_bf16);
    float *sums = m->sums ? (float *)((char *)call->scratch + m->sums_at) : y;
    ATT_TRY(att_product_run(m->product, a, b, NULL, sums, call->scratch));
    for (int64_t i = 0; i < count && m->scale != 1; i++)
        sums[i] *= m->scale;
    if (m->sums)
        m->functions->finish(sums, NULL, false, count, y, true);
    return ATT_OK;
}

static att_status run(const att_call *call)
{
    const matmul *m = call->state;
    att_range part = att_part_of(call, m->matrices, 1);
    for (int64_t matrix = part.begin; matrix < part.end; matrix++)
        ATT_TRY(run_matrix(call, m, matrix));
    return ATT_OK;
}

/* Both operands are f32, or both bf16. */
static bool accepts(const att_problem *problem)
{
    return att_is_bf16(&problem->in[A]) == att_is_bf16(&problem->in[B]);
}

ATT_CPU_KERNEL(matmul, "matmul", "onednn", .f32 = true, .bf16_in = 3, .bf16_out = 1, .accepts = accepts,
               .prepare = prepare, .run = run, .release = release);
