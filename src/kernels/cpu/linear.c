#include "core/error.h"
#include "core/memory.h"
#include "kernels/cpu/list.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/shape.h"
#include "kernels/cpu/tiered.h"

enum { X, WEIGHT, BIAS, RESIDUAL };

/* Results beyond this many elements are made in blocks of rows, for GELU and residual to find them still in cache. Of
 * smaller ones cut into 50 rows the product was 5 % slower, and nothing was won. */
enum { BLOCK_ELEMENTS = 1 << 20, LEAST_ROWS = 192 };

/* The rows of all samples are cut into blocks of equal size but for the last, which parts share. */
typedef struct linear {
    att_product *product, *last; /* the same where all blocks are equal */
    const att_tier_functions *functions;
    int64_t rows, inputs, outputs, block, blocks;
} linear;

static bool has_finish(const att_problem *problem)
{
    return problem->attrs->linear.activation == ATT_ACT_GELU || att_desc_present(&problem->in[RESIDUAL]);
}

static void cut_rows(const att_problem *problem, linear *l)
{
    int64_t block = l->rows;
    if (has_finish(problem) && block * l->outputs > BLOCK_ELEMENTS) {
        block = BLOCK_ELEMENTS / l->outputs;
        block = block > LEAST_ROWS ? block : LEAST_ROWS;
    }
    int64_t blocks = (l->rows + block - 1) / block;
    if (blocks < problem->parts)
        blocks = problem->parts < l->rows ? problem->parts : l->rows;
    l->block = (l->rows + blocks - 1) / blocks;
    l->blocks = (l->rows + l->block - 1) / l->block;
}

/* A transposed weight lies as a product takes it: packing it won nothing measurable in a training step of ViT-Ti or
 * ViT-S, and costs a copy of the weights. */
static bool is_packed(const att_problem *problem)
{
    return !problem->attrs->linear.transposed;
}

static att_status make_products(const att_problem *problem, linear *l)
{
    att_product_spec spec = {.rows = l->block,
                             .inner = l->inputs,
                             .columns = l->outputs,
                             .b_transposed = !problem->attrs->linear.transposed,
                             .pack = is_packed(problem),
                             .bias = att_desc_present(&problem->in[BIAS])};
    ATT_TRY(att_product_create(problem->context, &spec, &l->product));
    l->last = l->product;
    spec.rows = l->rows - (l->blocks - 1) * l->block;
    spec.layout_of = spec.pack ? l->product : NULL;
    return spec.rows == l->block ? ATT_OK : att_product_create(problem->context, &spec, &l->last);
}

static void release(att_context *context, void *state)
{
    linear *l = state;
    if (l->last != l->product)
        att_product_destroy(context, l->last);
    att_product_destroy(context, l->product);
    att_free(context, l);
}

static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    linear *l = att_allocate(problem->context, sizeof *l);
    if (!l)
        return att_fail_memory(problem->context, sizeof *l, "a linear layer");
    l->inputs = att_columns(&problem->in[X]);
    l->outputs = att_columns(&problem->out[0]);
    l->rows = att_problem_count(problem, &problem->in[X]) / l->inputs;
    l->functions = att_cpu_functions(problem->context);
    cut_rows(problem, l);
    att_status status = make_products(problem, l);
    if (status != ATT_OK) {
        release(problem->context, l);
        return status;
    }
    size_t a = att_product_scratch_bytes(l->product), b = att_product_scratch_bytes(l->last);
    *prepared = (att_prepared){.state = l, .scratch_bytes = a > b ? a : b};
    if (is_packed(problem)) {
        prepared->packed_bytes = att_product_packed_bytes(l->product);
        prepared->packed_input = WEIGHT;
        prepared->packed_key = att_product_packed_key(l->product);
    }
    return ATT_OK;
}

static att_status pack(const att_problem *problem, void *state, const void *shared, void *packed)
{
    (void)problem;
    return att_product_pack(((const linear *)state)->product, shared, packed);
}

static att_status run_block(const att_call *call, const linear *l, int64_t block)
{
    int64_t row = block * l->block, rows = l->rows - row < l->block ? l->rows - row : l->block;
    const float *x = (const float *)call->in[X] + row * l->inputs;
    float *y = (float *)call->out[0] + row * l->outputs;
    const void *weight = call->packed ? call->packed : call->in[WEIGHT];
    ATT_TRY(att_product_run(rows == l->block ? l->product : l->last, x, weight, call->in[BIAS], y, call->scratch));
    const float *residual = call->in[RESIDUAL] ? (const float *)call->in[RESIDUAL] + row * l->outputs : NULL;
    bool gelu = call->problem->attrs->linear.activation == ATT_ACT_GELU;
    l->functions->finish(y, residual, gelu, rows * l->outputs);
    return ATT_OK;
}

static att_status run(const att_call *call)
{
    const linear *l = call->state;
    att_range part = att_part_of(call, l->blocks, 1);
    for (int64_t block = part.begin; block < part.end; block++)
        ATT_TRY(run_block(call, l, block));
    return ATT_OK;
}

const att_kernel att_cpu_linear = {.op = "linear",
                                   .name = "onednn",
                                   .accepts = att_takes_f32,
                                   .prepare = prepare,
                                   .pack = pack,
                                   .run = run,
                                   .release = release};
