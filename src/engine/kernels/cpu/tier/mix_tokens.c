#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/gemm.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/attention.h"

/* Rows of y that are computed together: their rows of the map stay in cache for all columns of the values. The gradient
 * packs a head of x again for each block of rows, so that its blocks are as large as the second-level cache allows. */
enum { ROWS = 64, GRADIENT_BLOCK = 1 << 16 /* elements of the map */ };

/* y_s = sum over t of A_(s maps + t) x_(s maps + t), for each head s of y, where A_i is a matrix of the map [heads, N,
 * N] and neighbouring matrices share a head of x. Forward, y are the outputs, and each has one matrix; in the gradient
 * of the values, y are the values, and the matrices are those of all heads that share one, transposed. */
typedef struct product {
    const att_call *call;
    const float *map;
    int64_t tokens, slots, maps, sources; /* slots: heads of y; sources: heads of x */
    int64_t width, padded;                /* of a head; as whole vectors */
    int64_t rows;                         /* computed together */
    float *packed, *sums;                 /* panels of one head of x; [rows, padded] */
} product;

static int64_t rows_of_block(int64_t tokens, bool gradient)
{
    int64_t rows = gradient && GRADIENT_BLOCK / tokens > ROWS ? GRADIENT_BLOCK / tokens : ROWS;
    return rows < tokens ? rows : tokens;
}

static product product_of(const att_problem *problem, bool gradient)
{
    const att_attention_attrs *attrs = problem->attrs;
    const int64_t *dims = problem->in[0].shape.dims;
    int64_t heads = attrs->heads, values = attrs->value_heads;
    product p = {.tokens = dims[0], .slots = heads, .maps = 1, .sources = values};
    if (gradient)
        p.slots = values, p.maps = heads / values, p.sources = heads;
    p.width = dims[1] / p.sources;
    p.padded = whole_vectors(p.width);
    p.rows = rows_of_block(p.tokens, gradient);
    return p;
}

static int64_t packed_count(const product *p)
{
    return p->tokens * p->padded;
}

/* Copies one head of x to panels of a product, see gemm_b. */
static void pack_source(const product *p, int64_t sample, int64_t source)
{
    const att_problem *problem = p->call->problem;
    bool is_bf16 = att_is_bf16(&problem->in[0]);
    int64_t stride = p->sources * p->width, from = sample * p->tokens * stride + source * p->width;
    float *to = p->packed;
    for (int64_t done = 0, panel; done < p->padded / VW; done += panel) {
        panel = gemm_panel(p->padded / VW - done);
        for (int64_t token = 0; token < p->tokens; token++)
            for (int64_t v = done; v < done + panel; v++, to += VW) {
                int64_t row = from + token * stride;
                v_store(to, v_get_until(p->call->in[0], row + v * VW, row + p->width, is_bf16));
            }
    }
}

static void write_rows(const product *p, int64_t sample, int64_t slot, int64_t first, int64_t rows)
{
    bool is_bf16 = att_is_bf16(&p->call->problem->out[0]);
    for (int64_t row = 0; row < rows; row++) {
        int64_t at = ((sample * p->tokens + first + row) * p->slots + slot) * p->width;
        for (int64_t i = 0; i < p->width; i += VW)
            v_put_until(p->call->out[0], at + i, at + p->width, v_load(p->sums + row * p->padded + i), is_bf16);
    }
}

/* Parts share blocks of rows of all heads of all samples. */
static att_status run(const att_call *call, bool gradient)
{
    product p = product_of(call->problem, gradient);
    p.call = call;
    p.map = gradient ? call->packed : call->in[1];
    p.packed = call->scratch, p.sums = p.packed + packed_count(&p);
    int64_t blocks = (p.tokens + p.rows - 1) / p.rows, heads = p.slots * p.maps, in_packed = -1;
    att_range part = att_part_of(call, call->problem->group * p.slots * blocks, 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        int64_t first = i % blocks * p.rows, slot = i / blocks % p.slots, sample = i / blocks / p.slots;
        int64_t rows = p.tokens - first < p.rows ? p.tokens - first : p.rows;
        for (int64_t map = slot * p.maps; map < (slot + 1) * p.maps; map++) {
            int64_t source = map / (heads / p.sources);
            if (in_packed != sample * p.sources + source)
                pack_source(&p, sample, source);
            in_packed = sample * p.sources + source;
            gemm(GEMM_F32, rows, p.padded, p.tokens, (gemm_a){p.map + (map * p.tokens + first) * p.tokens, p.tokens, 1},
                 (gemm_b){p.packed, 0}, (gemm_c){p.sums, p.padded, 1, map > slot * p.maps});
        }
        write_rows(&p, sample, slot, first, rows);
    }
    return ATT_OK;
}

static size_t scratch_bytes(const att_problem *problem, bool gradient)
{
    product p = product_of(problem, gradient);
    return (size_t)(packed_count(&p) + p.rows * p.padded) * sizeof(float);
}

static att_status mix_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = scratch_bytes(problem, false);
    return ATT_OK;
}

static att_status mix_run(const att_call *call)
{
    return run(call, false);
}

ATT_SIMD_KERNEL(mix_tokens, .bf16_in = 1, .bf16_out = 1, .prepare = mix_prepare, .run = mix_run);

/* The packed map is transposed. */
static att_status values_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    product p = product_of(problem, true);
    prepared->scratch_bytes = scratch_bytes(problem, true);
    prepared->packed_bytes = (size_t)(p.sources * p.tokens * p.tokens) * sizeof(float);
    return ATT_OK;
}

static att_status values_grad_pack(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    (void)state;
    product p = product_of(problem, true);
    const float *map = in[1];
    float *to = packed;
    for (int64_t head = 0; head < p.sources; head++, map += p.tokens * p.tokens)
        for (int64_t j = 0; j < p.tokens; j++)
            for (int64_t i = 0; i < p.tokens; i++)
                *to++ = map[i * p.tokens + j];
    return ATT_OK;
}

static att_status values_grad_run(const att_call *call)
{
    return run(call, true);
}

ATT_SIMD_KERNEL(mix_tokens_values_grad, .bf16_in = 1, .bf16_out = 1, .prepare = values_grad_prepare,
                .pack = values_grad_pack, .run = values_grad_run);

/* The gradient of one matrix of the map: sum over the samples of dy v'. */
typedef struct map_gradient {
    int64_t tokens, heads, values;
    int64_t width, padded, columns; /* of a head; as whole vectors; tokens as whole vectors */
    float *dy, *v, *sums;           /* [tokens, padded]; panels of v'; [tokens, columns] */
} map_gradient;

static map_gradient map_gradient_of(const att_problem *problem, float *scratch)
{
    const att_attention_attrs *attrs = problem->attrs;
    const int64_t *dims = problem->in[0].shape.dims;
    map_gradient g = {.tokens = dims[0], .heads = attrs->heads, .values = attrs->value_heads};
    g.width = dims[1] / g.heads;
    g.padded = whole_vectors(g.width), g.columns = whole_vectors(g.tokens);
    if (scratch) {
        g.dy = scratch;
        g.v = g.dy + g.tokens * g.padded;
        g.sums = g.v + g.width * g.columns;
    }
    return g;
}

static gemm_source head_of(const void *x, int64_t tokens, int64_t sample, int64_t heads, int64_t head, int64_t width)
{
    return (gemm_source){
        .x = x, .from = (sample * tokens * heads + head) * width, .stride = heads * width, .order = NULL};
}

static void add_to_map(const map_gradient *g, float *map)
{
    for (int64_t row = 0; row < g->tokens; row++, map += g->tokens)
        for (int64_t i = 0; i < g->tokens; i += VW)
            v_put_until(map, i, g->tokens,
                        v_get_until(map, i, g->tokens, false) + v_load(g->sums + row * g->columns + i), false);
}

/* Parts share the heads, because all samples add to the same map. */
static att_status map_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    map_gradient g = map_gradient_of(problem, call->scratch);
    gemm_elements of_dy = gemm_elements_of(att_is_bf16(&problem->in[0]), false),
                  of_v = gemm_elements_of(att_is_bf16(&problem->in[1]), false);
    att_range part = att_part_of(call, g.heads, 1);
    for (int64_t head = part.begin; head < part.end; head++) {
        for (int64_t sample = 0; sample < problem->group; sample++) {
            gemm_copy_rows(of_dy, head_of(call->in[0], g.tokens, sample, g.heads, head, g.width), g.tokens, g.width,
                           g.dy, g.padded);
            gemm_pack_transposed(of_v,
                                 head_of(call->in[1], g.tokens, sample, g.values, head / (g.heads / g.values), g.width),
                                 g.tokens, g.width, g.v);
            gemm(GEMM_F32, g.tokens, g.columns, g.width, (gemm_a){g.dy, g.padded, 1}, (gemm_b){g.v, 0},
                 (gemm_c){g.sums, g.columns, 1, sample > 0});
        }
        add_to_map(&g, (float *)call->out[0] + head * g.tokens * g.tokens);
    }
    return ATT_OK;
}

static att_status map_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    map_gradient g = map_gradient_of(problem, NULL);
    prepared->scratch_bytes =
        (size_t)(g.tokens * g.padded + g.width * g.columns + g.tokens * g.columns) * sizeof(float);
    return ATT_OK;
}

ATT_SIMD_KERNEL(mix_tokens_map_grad, .bf16_in = 3, .prepare = map_grad_prepare, .run = map_grad_run);
