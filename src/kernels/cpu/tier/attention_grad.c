#include "kernels/cpu/tier/attention.h"
#include "kernels/cpu/tiered.h"

enum { DO, QKV, O, LSE };

/* Loops over tiles of TILE keys and, for each tile, over blocks of ROWS queries. A tile's data stays in the
 * second-level cache. Larger ROWS means fewer additions to the tile's dk and dv. */
enum { ROWS = 64, TILE = 512 };

/* Scratch. Keys are stored as rows (for dq) and as panels of their transpose (for scores); values as panels only. */
typedef struct workspace {
    float *dq;                                         /* [tokens, padded] */
    float *key_panels, *value_panels, *keys, *dk, *dv; /* [tile, padded] */
    float *q, *dout;                                   /* [ROWS, padded] */
    float *q_columns, *dout_columns; /* operand B of products; equal to q and dout unless elements are pairs */
    float *p, *ds;                   /* [ROWS, tile] */
} workspace;

/* Pairs are only used if both operands are bf16. */
static gemm_elements elements_of(const att_problem *problem, int in)
{
    bool pairs = V_MULTIPLIES_PAIRS && att_is_bf16(&problem->in[QKV]) && att_is_bf16(&problem->in[DO]);
    return gemm_elements_of(att_is_bf16(&problem->in[in]), pairs);
}

static head_shape shape_of(const att_problem *problem)
{
    return head_shape_of(problem, &problem->in[QKV], elements_of(problem, QKV), TILE);
}

static int64_t workspace_divide(const head_shape *h, float *from, workspace *w)
{
    int64_t tile = h->tile * h->padded, rows = ROWS * h->padded, piece = ROWS * h->tile;
    if (w) {
        float *block = from + 5 * tile, *map = block + 4 * rows;
        bool pairs = h->elements == GEMM_PAIRS;
        *w = (workspace){.key_panels = from,
                         .value_panels = from + tile,
                         .keys = from + 2 * tile,
                         .dk = from + 3 * tile,
                         .dv = from + 4 * tile,
                         .q = block,
                         .dout = block + rows,
                         .q_columns = pairs ? block + 2 * rows : block,
                         .dout_columns = pairs ? block + 3 * rows : block + rows,
                         .p = map,
                         .ds = map + piece,
                         .dq = map + 2 * piece};
    }
    return 5 * tile + 4 * rows + 2 * piece + h->tokens * h->padded;
}

/* The current head and tile. */
typedef struct place {
    const att_call *call;
    head_shape h;
    workspace w;
    int64_t sample, head;
    int64_t key, keys; /* of the tile: the first key, and the number of keys */
} place;

/* Dot product of `count` elements of a and b from index `at` on. */
static float dot(const void *a, bool a_is_bf16, const void *b, bool b_is_bf16, int64_t at, int64_t count)
{
    vf sum = {0};
    for (int64_t i = 0; i < count; i += VW)
        sum = v_fma(v_get_until(a, at + i, at + count, a_is_bf16), v_get_until(b, at + i, at + count, b_is_bf16), sum);
    return v_sum(sum);
}

typedef struct gradient {
    vf p, ds;
} gradient;

/* p = e^(score - lse), ds = p (dp - do . o). */
ATT_INLINE gradient gradient_of(const float *score, const float *dp, float lse, float do_o)
{
    vf p = v_exp(v_load(score) - lse);
    return (gradient){p, p * (v_load(dp) - do_o)};
}

typedef struct rows {
    const float *lse;
    float do_o[ROWS];
    int64_t first, count;
} rows;

/* Replaces scores by p and dp by ds. */
static void row_gradient(const rows *r, int64_t row, float *p, float *ds, int64_t length)
{
    for (int64_t i = 0; i < length; i += VW) {
        gradient g = gradient_of(p + i, ds + i, r->lse[row], r->do_o[row]);
        v_store(p + i, g.p);
        v_store(ds + i, g.ds);
    }
}

/* The same for rows `row` and row + 1, which are `stride` apart, with results as pairs. The pairs of both rows' p
 * replace the first row's scores; the pairs of both rows' ds replace the second row's scores. Each row's ds as pairs of
 * adjacent keys replaces its dp. With an odd number of keys the last pair is padded with zero. */
ATT_INLINE void two_row_gradients(const rows *r, int64_t row, bool both, float *p, float *ds, int64_t stride,
                                  int64_t count)
{
    for (int64_t i = 0; i < whole_vectors(count); i += VW) {
        gradient a = gradient_of(p + i, ds + i, r->lse[row], r->do_o[row]), b = {{0}, {0}};
        if (both)
            b = gradient_of(p + stride + i, ds + stride + i, r->lse[row + 1], r->do_o[row + 1]);
        v_store(p + i, v_pair(a.p, b.p));
        v_store(p + stride + i, v_pair(a.ds, b.ds));
        v_put_halves(ds, i, a.ds);
        v_put_halves(ds + stride, i, b.ds);
    }
    for (int64_t i = 0; count % 2 && i < 2; i++)
        memset((bf16 *)(ds + i * stride) + count, 0, sizeof(bf16));
}

/* Left operands of the products that compute dq, dk and dv. */
typedef struct factors {
    gemm_a p_columns, ds, ds_columns; /* columns: transposed */
} factors;

static factors find_gradients(const head_shape *h, const workspace *w, const rows *r, int64_t count)
{
    if (h->elements != GEMM_PAIRS) {
        for (int64_t i = 0; i < r->count; i++)
            row_gradient(r, i, w->p + i * h->tile, w->ds + i * h->tile, whole_vectors(count));
        return (factors){{w->p, 1, h->tile}, {w->ds, h->tile, 1}, {w->ds, 1, h->tile}};
    }
    int64_t whole = r->count / 2 * 2;
    for (int64_t i = 0; i < whole; i += 2)
        two_row_gradients(r, i, true, w->p + i * h->tile, w->ds + i * h->tile, h->tile, count);
    if (whole < r->count)
        two_row_gradients(r, whole, false, w->p + whole * h->tile, w->ds + whole * h->tile, h->tile, count);
    return (factors){{w->p, 1, 2 * h->tile}, {w->ds, h->tile, 1}, {w->p + h->tile, 1, 2 * h->tile}};
}

/* For one tile of keys: dv += p' do; dq += scale ds k; dk += scale ds' q. */
static void run_piece(const place *at, const rows *r)
{
    const head_shape *h = &at->h;
    const workspace *w = &at->w;
    gemm_elements e = h->elements;
    int64_t columns = whole_vectors(at->keys), queries = gemm_count(e, r->count);
    gemm(e, r->count, columns, h->inner, (gemm_a){w->q, h->padded, 1}, (gemm_b){w->key_panels, 0},
         (gemm_c){w->p, h->tile, h->scale, false});
    gemm(e, r->count, columns, h->inner, (gemm_a){w->dout, h->padded, 1}, (gemm_b){w->value_panels, 0},
         (gemm_c){w->ds, h->tile, 1, false});
    factors f = find_gradients(h, w, r, at->keys);
    gemm(e, at->keys, h->padded, queries, f.p_columns, (gemm_b){w->dout_columns, h->padded},
         (gemm_c){w->dv, h->padded, 1, r->first > 0});
    gemm(e, r->count, h->padded, gemm_count(e, at->keys), f.ds, (gemm_b){w->keys, h->padded},
         (gemm_c){w->dq + r->first * h->padded, h->padded, h->scale, at->key > 0});
    gemm(e, at->keys, h->padded, queries, f.ds_columns, (gemm_b){w->q_columns, h->padded},
         (gemm_c){w->dk, h->padded, h->scale, r->first > 0});
}

/* Copies rows to dqkv, the first to index `to`. */
ATT_INLINE void write_rows_as(bool is_bf16, const head_shape *h, const float *from, int64_t count, void *dqkv,
                              int64_t to)
{
    for (int64_t row = 0; row < count; row++, from += h->padded, to += head_stride(h))
        for (int64_t i = 0; i < h->width; i += VW)
            v_put_until(dqkv, to + i, to + h->width, v_load(from + i), is_bf16);
}

/* Writes rows of dq, dk or dv (which: 0, 1, 2) from token `first` on. */
static void write_rows(const place *at, const float *from, int64_t first, int64_t count, int64_t which)
{
    int64_t to = head_at(&at->h, at->sample, at->head, which) + first * head_stride(&at->h);
    if (att_is_bf16(&at->call->problem->out[0]))
        write_rows_as(true, &at->h, from, count, at->call->out[0], to);
    else
        write_rows_as(false, &at->h, from, count, at->call->out[0], to);
}

/* Copies rows of a block as operand A and, if `columns` differs from `to`, as operand B. */
static void copy_block(const head_shape *h, gemm_elements elements, const void *x, int64_t from, int64_t stride,
                       int64_t count, float *to, float *columns)
{
    gemm_copy_rows(elements, x, from, stride, count, h->width, to, h->padded);
    if (columns != to)
        gemm_copy_columns(elements, x, from, stride, count, h->width, columns, h->padded);
}

static void run_rows(const place *at, int64_t first)
{
    const head_shape *h = &at->h;
    const att_call *call = at->call;
    const att_desc *in = call->problem->in;
    int64_t out_stride = h->heads * h->width;
    int64_t out = (at->sample * h->tokens + first) * out_stride + at->head * h->width;
    rows r = {.lse = (const float *)call->in[LSE] + (at->sample * h->heads + at->head) * h->tokens + first,
              .first = first,
              .count = h->tokens - first < ROWS ? h->tokens - first : ROWS};
    copy_block(h, h->elements, call->in[QKV], head_at(h, at->sample, at->head, 0) + first * head_stride(h),
               head_stride(h), r.count, at->w.q, at->w.q_columns);
    copy_block(h, elements_of(call->problem, DO), call->in[DO], out, out_stride, r.count, at->w.dout,
               at->w.dout_columns);
    for (int64_t i = 0; i < r.count; i++)
        r.do_o[i] =
            dot(call->in[DO], att_is_bf16(&in[DO]), call->in[O], att_is_bf16(&in[O]), out + i * out_stride, h->width);
    run_piece(at, &r);
}

static void run_tile(const place *at)
{
    const head_shape *h = &at->h;
    const void *qkv = at->call->in[QKV];
    int64_t stride = head_stride(h), tile = at->key * stride;
    int64_t k = head_at(h, at->sample, at->head, 1) + tile, v = head_at(h, at->sample, at->head, 2) + tile;
    gemm_pack_transposed(h->elements, qkv, k, stride, at->keys, h->width, at->w.key_panels);
    gemm_pack_transposed(h->elements, qkv, v, stride, at->keys, h->width, at->w.value_panels);
    gemm_copy_columns(h->elements, qkv, k, stride, at->keys, h->width, at->w.keys, h->padded);
    for (int64_t first = 0; first < h->tokens; first += ROWS)
        run_rows(at, first);
    write_rows(at, at->w.dk, at->key, at->keys, 1);
    write_rows(at, at->w.dv, at->key, at->keys, 2);
}

/* Parts share the heads of all samples. */
static att_status attention_grad_run(const att_call *call)
{
    place at = {.call = call, .h = shape_of(call->problem)};
    int64_t tokens = at.h.tokens, heads = at.h.heads, tile = at.h.tile;
    workspace_divide(&at.h, call->scratch, &at.w);
    att_range part = att_part_of(call, call->problem->group * heads, 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        at.sample = i / heads, at.head = i % heads;
        for (at.key = 0; at.key < tokens; at.key += tile) {
            at.keys = tokens - at.key < tile ? tokens - at.key : tile;
            run_tile(&at);
        }
        write_rows(&at, at.w.dq, 0, tokens, 0);
    }
    return ATT_OK;
}

static att_status attention_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    head_shape h = shape_of(problem);
    prepared->scratch_bytes = (size_t)workspace_divide(&h, NULL, NULL) * sizeof(float);
    return ATT_OK;
}

static bool attention_grad_accepts(const att_problem *problem)
{
    return att_accepts_bf16(problem, 1u << DO | 1u << QKV | 1u << O, 1);
}

const att_kernel ATT_TIERED(att_cpu_attention_grad) = {.op = "attention_grad",
                                                       .name = "simd",
                                                       .tier = ATT_TIER_VALUE,
                                                       .accepts = attention_grad_accepts,
                                                       .prepare = attention_grad_prepare,
                                                       .run = attention_grad_run};
