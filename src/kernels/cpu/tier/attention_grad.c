#include "kernels/cpu/tier/attention.h"
#include "kernels/cpu/tiered.h"

enum { DO, O, LSE, Q };

/* Loops over tiles of TILE keys and, for each tile, over blocks of ROWS queries. A tile's data stays in the
 * second-level cache. Larger ROWS means fewer additions to the tile's dk and dv. */
enum { ROWS = 64, TILE = 512 };

/* Scratch. Keys are stored as rows (for dq) and as panels of their transpose (for scores); values as panels only. */
typedef struct workspace {
    float *dq;                       /* [heads of the unit][queries, padded] */
    float *key_panels, *keys, *dk;   /* [tile, padded] */
    float *value_panels, *dv;        /* [tile, value_padded] */
    float *q, *dout;                 /* [ROWS, padded], [ROWS, value_padded] */
    float *q_columns, *dout_columns; /* operand B of products; equal to q and dout unless elements are pairs */
    float *p, *ds;                   /* [ROWS, tile] */
} workspace;

/* Products are of pairs only if all their operands are bf16. */
static head_shape shape_of(const att_problem *problem)
{
    return head_shape_of(problem, Q, V_MULTIPLIES_PAIRS && att_is_bf16(&problem->in[DO]), TILE);
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : greatest_divisor(b, a % b);
}

/* A unit of work is the heads that share a head of the keys or of the values with each other. */
static int64_t units_of(const head_shape *h)
{
    return greatest_divisor(h->operand[HEAD_K].heads, h->operand[HEAD_V].heads);
}

static int64_t workspace_divide(const head_shape *h, float *from, workspace *w)
{
    int64_t keys = h->tile * h->padded, values = h->tile * h->value_padded;
    int64_t q = ROWS * h->padded, dout = ROWS * h->value_padded, piece = ROWS * h->tile;
    if (w) {
        float *block = from + 3 * keys + 2 * values, *columns = block + q + dout, *map = columns + q + dout;
        bool pairs = h->elements == GEMM_PAIRS;
        *w = (workspace){.key_panels = from,
                         .keys = from + keys,
                         .dk = from + 2 * keys,
                         .value_panels = from + 3 * keys,
                         .dv = from + 3 * keys + values,
                         .q = block,
                         .dout = block + q,
                         .q_columns = pairs ? columns : block,
                         .dout_columns = pairs ? columns + q : block + q,
                         .p = map,
                         .ds = map + piece,
                         .dq = map + 2 * piece};
    }
    return 3 * keys + 2 * values + 2 * (q + dout) + 2 * piece + h->heads / units_of(h) * h->queries * h->padded;
}

/* The current head and tile. */
typedef struct place {
    const att_call *call;
    head_shape h;
    workspace w;
    int64_t sample, head;
    int64_t key, keys;   /* of the tile: the first key, and the number of keys */
    bool adds_k, adds_v; /* heads before this one have added to dk, or to dv, of the tile */
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

/* dq of the current head. */
static float *dq_of(const place *at)
{
    return at->w.dq + at->head % (at->h.heads / units_of(&at->h)) * at->h.queries * at->h.padded;
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
    gemm(e, r->count, columns, h->value_inner, (gemm_a){w->dout, h->value_padded, 1}, (gemm_b){w->value_panels, 0},
         (gemm_c){w->ds, h->tile, 1, false});
    factors f = find_gradients(h, w, r, at->keys);
    gemm(e, at->keys, h->value_padded, queries, f.p_columns, (gemm_b){w->dout_columns, h->value_padded},
         (gemm_c){w->dv, h->value_padded, 1, r->first > 0 || at->adds_v});
    gemm(e, r->count, h->padded, gemm_count(e, at->keys), f.ds, (gemm_b){w->keys, h->padded},
         (gemm_c){dq_of(at) + r->first * h->padded, h->padded, h->scale, at->key > 0});
    gemm(e, at->keys, h->padded, queries, f.ds_columns, (gemm_b){w->q_columns, h->padded},
         (gemm_c){w->dk, h->padded, h->scale, r->first > 0 || at->adds_k});
}

/* A matrix of gradients in scratch memory. */
typedef struct gradient_rows {
    const float *data; /* [count, padded] */
    int64_t first, count, padded;
} gradient_rows;

/* Copies rows to the gradient of an input, the first to index `to`. */
ATT_INLINE void write_rows_as(bool is_bf16, const gradient_rows *from, const att_attention_operand *operand, void *out,
                              int64_t to)
{
    const float *data = from->data;
    for (int64_t row = 0; row < from->count; row++, data += from->padded, to += operand->stride)
        for (int64_t i = 0; i < operand->width; i += VW)
            v_put_until(out, to + i, to + operand->width, v_load(data + i), is_bf16);
}

/* The output for the gradient of input `input` of q, k and v. */
static int output_of(const head_shape *h, int input)
{
    int output = 0;
    for (int o = 0; o < input; o++)
        output += h->operand[o].input == o;
    return output;
}

/* Writes rows of dq, dk or dv of the current head, if anybody reads them. */
static void write_rows(const place *at, int which, gradient_rows from)
{
    const att_attention_operand *operand = &at->h.operand[which];
    int out = output_of(&at->h, operand->input);
    int64_t to = head_at(&at->h, which, at->sample, at->head) + from.first * operand->stride;
    if (!at->call->out[out])
        return;
    if (att_is_bf16(&at->call->problem->out[out]))
        write_rows_as(true, &from, operand, at->call->out[out], to);
    else
        write_rows_as(false, &from, operand, at->call->out[out], to);
}

/* A matrix with rows in an input. */
typedef struct source {
    const void *x;
    int64_t from, stride, width, padded;
    gemm_elements elements;
} source;

/* Copies rows of a block as operand A and, if `columns` differs from `to`, as operand B. */
static void copy_block(const source *s, int64_t count, float *to, float *columns)
{
    gemm_copy_rows(s->elements, s->x, s->from, s->stride, count, s->width, to, s->padded);
    if (columns != to)
        gemm_copy_columns(s->elements, s->x, s->from, s->stride, count, s->width, columns, s->padded);
}

/* Rows of operand `which` of the current head, from token `first` on. */
static source operand_at(const place *at, int which, int64_t first)
{
    const head_shape *h = &at->h;
    const att_attention_operand *operand = &h->operand[which];
    return (source){.x = at->call->in[Q + operand->input],
                    .from = head_at(h, which, at->sample, at->head) + first * operand->stride,
                    .stride = operand->stride,
                    .width = operand->width,
                    .padded = whole_vectors(operand->width),
                    .elements = h->copied[which]};
}

/* Rows of do of the current head. */
static source dout_at(const place *at, int64_t first)
{
    const head_shape *h = &at->h;
    int64_t stride = h->heads * h->value_width;
    return (source){.x = at->call->in[DO],
                    .from = (at->sample * h->queries + first) * stride + at->head * h->value_width,
                    .stride = stride,
                    .width = h->value_width,
                    .padded = h->value_padded,
                    .elements = gemm_elements_of(att_is_bf16(&at->call->problem->in[DO]), h->elements == GEMM_PAIRS)};
}

static void run_rows(const place *at, int64_t first)
{
    const head_shape *h = &at->h;
    const att_call *call = at->call;
    const att_desc *in = call->problem->in;
    source q = operand_at(at, HEAD_Q, first), dout = dout_at(at, first);
    rows r = {.lse = (const float *)call->in[LSE] + (at->sample * h->heads + at->head) * h->queries + first,
              .first = first,
              .count = h->queries - first < ROWS ? h->queries - first : ROWS};
    copy_block(&q, r.count, at->w.q, at->w.q_columns);
    copy_block(&dout, r.count, at->w.dout, at->w.dout_columns);
    for (int64_t i = 0; i < r.count; i++)
        r.do_o[i] = dot(call->in[DO], att_is_bf16(&in[DO]), call->in[O], att_is_bf16(&in[O]),
                        dout.from + i * dout.stride, h->value_width);
    run_piece(at, &r);
}

static void pack_keys(const place *at)
{
    source k = operand_at(at, HEAD_K, at->key);
    gemm_pack_transposed(k.elements, k.x, k.from, k.stride, at->keys, k.width, at->w.key_panels);
    gemm_copy_columns(k.elements, k.x, k.from, k.stride, at->keys, k.width, at->w.keys, k.padded);
}

static void pack_values(const place *at)
{
    source v = operand_at(at, HEAD_V, at->key);
    gemm_pack_transposed(v.elements, v.x, v.from, v.stride, at->keys, v.width, at->w.value_panels);
}

/* Whether the next head of the unit, which ends before head `end`, shares the current head's keys or values. */
static bool next_shares(const place *at, int which, int64_t end)
{
    return at->head + 1 < end && head_used(&at->h, which, at->head + 1) == head_used(&at->h, which, at->head);
}

static void run_tile(place *at, int64_t begin, int64_t end)
{
    const head_shape *h = &at->h;
    at->adds_k = at->adds_v = false;
    for (at->head = begin; at->head < end; at->head++) {
        if (!at->adds_k)
            pack_keys(at);
        if (!at->adds_v)
            pack_values(at);
        for (int64_t first = 0; first < h->queries; first += ROWS)
            run_rows(at, first);
        at->adds_k = next_shares(at, HEAD_K, end);
        if (!at->adds_k)
            write_rows(at, HEAD_K, (gradient_rows){at->w.dk, at->key, at->keys, h->padded});
        at->adds_v = next_shares(at, HEAD_V, end);
        if (!at->adds_v)
            write_rows(at, HEAD_V, (gradient_rows){at->w.dv, at->key, at->keys, h->value_padded});
    }
}

static void run_unit(place *at, int64_t begin, int64_t end)
{
    const head_shape *h = &at->h;
    for (at->key = 0; at->key < h->keys; at->key += h->tile) {
        at->keys = h->keys - at->key < h->tile ? h->keys - at->key : h->tile;
        run_tile(at, begin, end);
    }
    for (at->head = begin; at->head < end; at->head++)
        write_rows(at, HEAD_Q, (gradient_rows){dq_of(at), 0, h->queries, h->padded});
}

/* Parts share the units of all samples. */
static att_status attention_grad_run(const att_call *call)
{
    place at = {.call = call, .h = shape_of(call->problem)};
    int64_t units = units_of(&at.h), heads = at.h.heads / units;
    workspace_divide(&at.h, call->scratch, &at.w);
    att_range part = att_part_of(call, call->problem->group * units, 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        at.sample = i / units;
        run_unit(&at, i % units * heads, (i % units + 1) * heads);
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
    return att_accepts_bf16(problem, 1u << DO | 1u << O | 7u << Q, 7);
}

const att_kernel ATT_TIERED(att_cpu_attention_grad) = {.op = "attention_grad",
                                                       .name = "simd",
                                                       .tier = ATT_TIER_VALUE,
                                                       .accepts = attention_grad_accepts,
                                                       .prepare = attention_grad_prepare,
                                                       .run = attention_grad_run};
