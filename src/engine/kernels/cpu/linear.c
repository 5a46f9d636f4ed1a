#include "engine/ops/linear.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/onednn.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/activation.h"

enum { X, WEIGHT, BIAS, RESIDUAL };

/* Block size in elements for GELU, residual and rounding, so that the product's result is still cached. The third cache
 * level is sufficient; smaller blocks make the product slower. */
enum { BLOCK_ELEMENTS = 1 << 20, LEAST_ROWS = 192 };

/* The rows of all samples are split into blocks of equal size, the last one possibly smaller. Parts share the blocks.
 */
typedef struct linear {
    att_product *product, *last; /* last: equal to product if all blocks have the same size */
    const att_tier_functions *functions;
    int64_t rows, inputs, outputs, block, blocks;
    att_dtype from, dtype, to; /* types of x, of the product's operands, of y */
    size_t x_at, sums_at;      /* offsets in scratch: a block's widened x; its f32 sums before rounding to bf16 */
    bool gelu, widened, sums;  /* widened: x is bf16, the product runs in f32 */
    bool has_finish;           /* the product is followed by GELU, a residual or rounding */
    bool packed;
} linear;

static void split_rows(const att_problem *problem, linear *l)
{
    int64_t block = l->rows;
    if (l->has_finish && block * l->outputs > BLOCK_ELEMENTS) {
        block = BLOCK_ELEMENTS / l->outputs;
        block = block > LEAST_ROWS ? block : LEAST_ROWS;
    }
    int64_t blocks = (l->rows + block - 1) / block;
    if (blocks < problem->parts)
        blocks = problem->parts < l->rows ? problem->parts : l->rows;
    l->block = (l->rows + blocks - 1) / blocks;
    l->blocks = (l->rows + l->block - 1) / l->block;
}

static att_status make_products(const att_problem *problem, linear *l)
{
    bool transposed = ATT_ATTRS(problem, linear)->transposed;
    att_product_spec spec = {.rows = l->block,
                             .inner = l->inputs,
                             .columns = l->outputs,
                             .dtype = l->dtype,
                             .to = l->sums ? ATT_F32 : l->to,
                             .b_transposed = !transposed,
                             .bias = att_desc_present(&problem->in[BIAS])};
    /* Most products read a transposed f32 weight as fast as a packed copy, which would take memory. */
    spec.pack = l->packed = !transposed || att_product_needs_packing(problem->context, &spec);
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
    l->from = problem->in[X].dtype;
    l->widened = l->from == ATT_BF16 && !att_context_has_bf16(problem->context);
    l->dtype = l->widened ? ATT_F32 : l->from;
    l->to = problem->out[0].dtype;
    l->gelu = ATT_ATTRS(problem, linear)->activation == ATT_ACT_GELU;
    bool adds = att_desc_present(&problem->in[RESIDUAL]), rounds = l->widened && l->to == ATT_BF16;
    l->has_finish = l->gelu || adds || rounds;
    l->sums = l->has_finish && l->to == ATT_BF16;
    l->functions = att_cpu_functions(problem->context);
}

static size_t take(size_t *top, size_t bytes)
{
    size_t at = (*top + 63) / 64 * 64;
    *top = at + bytes;
    return at;
}

static size_t lay_out_scratch(linear *l)
{
    size_t a = att_product_scratch_bytes(l->product), b = att_product_scratch_bytes(l->last), top = a > b ? a : b;
    l->x_at = take(&top, l->widened ? (size_t)(l->block * l->inputs) * sizeof(float) : 0);
    l->sums_at = take(&top, l->sums ? (size_t)(l->block * l->outputs) * sizeof(float) : 0);
    return top;
}

static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    linear *l;
    ATT_TRY(att_new(problem->context, &l, 1, "a linear layer"));
    describe(problem, l);
    split_rows(problem, l);
    att_status status = make_products(problem, l);
    if (status != ATT_OK) {
        release(problem->context, l);
        return status;
    }
    *prepared = (att_prepared){.state = l, .scratch_bytes = lay_out_scratch(l)};
    if (l->packed) {
        prepared->packed_bytes = att_product_packed_bytes(l->product);
        prepared->packed_key = att_product_packed_key(l->product);
    }
    return ATT_OK;
}

static att_status pack(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    (void)problem;
    return att_product_pack(((const linear *)state)->product, in[WEIGHT], packed);
}

static const void *block_of_x(const att_call *call, const linear *l, int64_t row, int64_t rows)
{
    const void *x = att_float_at(call->in[X], row * l->inputs, l->from == ATT_BF16);
    if (!l->widened)
        return x;
    float *wide = (float *)((char *)call->scratch + l->x_at);
    l->functions->widen(x, rows * l->inputs, wide);
    return wide;
}

static att_status run_block(const att_call *call, const linear *l, int64_t block)
{
    int64_t row = block * l->block, rows = l->rows - row < l->block ? l->rows - row : l->block;
    char *y = (char *)call->out[0] + (size_t)(row * l->outputs) * att_dtype_size(l->to);
    void *sums = l->sums ? (char *)call->scratch + l->sums_at : y;
    const void *x = block_of_x(call, l, row, rows), *weight = call->packed ? call->packed : call->in[WEIGHT];
    ATT_TRY(att_product_run(rows == l->block ? l->product : l->last, x, weight, call->in[BIAS], sums, call->scratch));
    if (!l->has_finish)
        return ATT_OK;
    const float *residual = call->in[RESIDUAL] ? (const float *)call->in[RESIDUAL] + row * l->outputs : NULL;
    l->functions->finish(sums, residual, l->gelu, rows * l->outputs, y, l->sums);
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

static bool takes_bf16(const att_problem *problem)
{
    return problem->in[X].dtype == ATT_BF16;
}

#define KERNEL(symbol, name, ...)                                                                            \
    ATT_CPU_KERNEL(symbol, "linear", name, .prepare = prepare, .pack = pack, .run = run, .release = release, \
                   .f32 = true, .packed_in = 1u << WEIGHT, __VA_ARGS__);
#define BF16 .bf16_in = 1, .bf16_out = 1, .accepts = takes_bf16

KERNEL(linear, "onednn", .features = 0)
KERNEL(linear_bf16, "onednn-bf16", .features = ATT_AVX512_BF16, BF16)
/* For processors without bf16 products; slower than f32. */
KERNEL(linear_widened, "onednn-widened", BF16)
