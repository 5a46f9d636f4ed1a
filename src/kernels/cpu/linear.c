#include "core/error.h"
#include "core/memory.h"
#include "kernels/cpu/list.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/shape.h"
#include "kernels/cpu/tiered.h"

enum { X, WEIGHT, BIAS, RESIDUAL };

/* Results beyond this many elements are made in blocks of rows, for GELU and residual to find them still in cache. Of
 * smaller ones cut into 50 rows the f32 product was 5 % slower, and nothing was won. Sums that become bf16 lie in
 * scratch memory, which should stay in the second-level cache. */
enum { BLOCK_ELEMENTS = 1 << 20, LEAST_ROWS = 192, NARROW_ELEMENTS = 1 << 16, LEAST_NARROW_ROWS = 48 };

/* The rows of all samples are cut into blocks of equal size but for the last, which parts share. */
typedef struct linear {
    att_product *product, *last; /* the same where all blocks are equal */
    const att_tier_functions *functions;
    int64_t rows, inputs, outputs, block, blocks;
    att_dtype dtype, to;   /* of x, of y */
    size_t sums_at;        /* in scratch, a block's sums before they become bf16 */
    bool has_finish, sums; /* something comes after the product; it is made in scratch first */
} linear;

static void cut_rows(const att_problem *problem, linear *l)
{
    int64_t block = l->rows, most = l->sums ? NARROW_ELEMENTS : BLOCK_ELEMENTS;
    if (l->has_finish && block * l->outputs > most) {
        int64_t least = l->sums ? LEAST_NARROW_ROWS : LEAST_ROWS;
        block = most / l->outputs;
        block = block > least ? block : least;
    }
    int64_t blocks = (l->rows + block - 1) / block;
    if (blocks < problem->parts)
        blocks = problem->parts < l->rows ? problem->parts : l->rows;
    l->block = (l->rows + blocks - 1) / blocks;
    l->blocks = (l->rows + l->block - 1) / l->block;
}

/* A transposed weight in f32 lies as a product takes it: packing it won nothing measurable in a training step of ViT-Ti
 * or ViT-S, and costs a copy of the weights. */
static bool is_packed(const att_problem *problem)
{
    return !problem->attrs->linear.transposed || problem->in[X].dtype == ATT_BF16;
}

static att_status make_products(const att_problem *problem, linear *l)
{
    att_product_spec spec = {.rows = l->block,
                             .inner = l->inputs,
                             .columns = l->outputs,
                             .dtype = l->dtype,
                             .to = l->sums ? ATT_F32 : l->to,
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

static void describe(const att_problem *problem, linear *l)
{
    l->inputs = att_columns(&problem->in[X]);
    l->outputs = att_columns(&problem->out[0]);
    l->rows = att_problem_count(problem, &problem->in[X]) / l->inputs;
    l->dtype = problem->in[X].dtype;
    l->to = problem->out[0].dtype;
    l->has_finish = problem->attrs->linear.activation == ATT_ACT_GELU || att_desc_present(&problem->in[RESIDUAL]);
    l->sums = l->has_finish && l->to == ATT_BF16;
    l->functions = att_cpu_functions(problem->context);
}

static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    linear *l = att_allocate(problem->context, sizeof *l);
    if (!l)
        return att_fail_memory(problem->context, sizeof *l, "a linear layer");
    describe(problem, l);
    cut_rows(problem, l);
    att_status status = make_products(problem, l);
    if (status != ATT_OK) {
        release(problem->context, l);
        return status;
    }
    size_t a = att_product_scratch_bytes(l->product), b = att_product_scratch_bytes(l->last);
    l->sums_at = ((a > b ? a : b) + 63) / 64 * 64;
    size_t sums = l->sums ? (size_t)(l->block * l->outputs) * sizeof(float) : 0;
    *prepared = (att_prepared){.state = l, .scratch_bytes = l->sums_at + sums};
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
    const void *x = att_float_at(call->in[X], row * l->inputs, l->dtype == ATT_BF16);
    char *y = (char *)call->out[0] + (size_t)(row * l->outputs) * att_dtype_size(l->to);
    void *sums = l->sums ? (char *)call->scratch + l->sums_at : y;
    const void *weight = call->packed ? call->packed : call->in[WEIGHT];
    ATT_TRY(att_product_run(rows == l->block ? l->product : l->last, x, weight, call->in[BIAS], sums, call->scratch));
    if (!l->has_finish)
        return ATT_OK;
    const float *residual = call->in[RESIDUAL] ? (const float *)call->in[RESIDUAL] + row * l->outputs : NULL;
    bool gelu = call->problem->attrs->linear.activation == ATT_ACT_GELU;
    l->functions->finish(sums, residual, gelu, rows * l->outputs, y, l->sums);
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

static bool takes_bf16(const att_problem *problem)
{
    return problem->in[X].dtype == ATT_BF16 && att_takes_narrow(problem, 1, 1);
}

const att_kernel att_cpu_linear_bf16 = {.op = "linear",
                                        .name = "onednn-bf16",
                                        .tier = ATT_TIER_AVX512_BF16,
                                        .accepts = takes_bf16,
                                        .prepare = prepare,
                                        .pack = pack,
                                        .run = run,
                                        .release = release};
