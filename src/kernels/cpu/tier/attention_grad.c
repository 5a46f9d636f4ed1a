#include "kernels/cpu/tier/attention.h"
#include "kernels/cpu/tiered.h"

enum { DO, QKV, O, LSE };

/* Scratch of one head. Keys serve as rows (dq) and as panels of their transpose (scores); values as panels only. */
typedef struct workspace {
    float *key_panels, *value_panels, *keys; /* all tokens */
    float *dk, *dv;                          /* [tokens, padded] */
    float *q, *dout, *dq;                    /* [rows, padded] */
    float *p, *ds;                           /* [rows, tile] */
} workspace;

static int64_t workspace_cut(const head_shape *h, float *from, workspace *w)
{
    int64_t head = head_elements(h), rows = ATTENTION_ROWS * h->padded, piece = ATTENTION_ROWS * h->tile;
    if (w)
        *w = (workspace){from,
                         from + head,
                         from + 2 * head,
                         from + 3 * head,
                         from + 4 * head,
                         from + 5 * head,
                         from + 5 * head + rows,
                         from + 5 * head + 2 * rows,
                         from + 5 * head + 3 * rows,
                         from + 5 * head + 3 * rows + piece};
    return 5 * head + 3 * rows + 2 * piece;
}

/* a . b, b from element `at`. */
ATT_INLINE float dot(const float *a, const void *b, int64_t at, int64_t count, bool narrow)
{
    vf sum = {0};
    int64_t i = 0;
    for (; i + VW <= count; i += VW)
        sum = v_fma(v_load(a + i), v_get(b, at + i, narrow), sum);
    if (i < count)
        sum = v_fma(v_load_part(a + i, count - i), v_get_part(b, at + i, count - i, narrow), sum);
    return v_sum(sum);
}

/* Scores become p = e^(score - lse), dp becomes ds = p (dp - do . o). */
static void row_gradient(float *p, float *ds, float lse, float do_o, int64_t length)
{
    for (int64_t i = 0; i < length; i += VW) {
        vf e = v_exp(v_load(p + i) - lse);
        v_store(p + i, e);
        v_store(ds + i, e * (v_load(ds + i) - do_o));
    }
}

typedef struct rows {
    const float *lse;
    float do_o[ATTENTION_ROWS];
    int64_t count;
    bool first; /* the head's first rows: sums start here */
} rows;

/* dv += p' do; dq += scale ds k; dk += scale ds' q, for the keys [first, first + count). */
static void run_tile(const head_shape *h, const workspace *w, const rows *r, int64_t first, int64_t count)
{
    int64_t columns = whole_vectors(count), at = first * h->padded;
    gemm(r->count, columns, h->width, (gemm_a){w->q, h->padded, 1}, (gemm_b){w->key_panels + first * h->width, 0},
         (gemm_c){w->p, h->tile, h->scale, false});
    gemm(r->count, columns, h->width, (gemm_a){w->dout, h->padded, 1}, (gemm_b){w->value_panels + first * h->width, 0},
         (gemm_c){w->ds, h->tile, 1, false});
    for (int64_t i = 0; i < r->count; i++)
        row_gradient(w->p + i * h->tile, w->ds + i * h->tile, r->lse[i], r->do_o[i], columns);
    gemm(count, h->padded, r->count, (gemm_a){w->p, 1, h->tile}, (gemm_b){w->dout, h->padded},
         (gemm_c){w->dv + at, h->padded, 1, !r->first});
    gemm(r->count, h->padded, count, (gemm_a){w->ds, h->tile, 1}, (gemm_b){w->keys + at, h->padded},
         (gemm_c){w->dq, h->padded, h->scale, first > 0});
    gemm(count, h->padded, r->count, (gemm_a){w->ds, 1, h->tile}, (gemm_b){w->q, h->padded},
         (gemm_c){w->dk + at, h->padded, h->scale, !r->first});
}

/* Rows to dqkv, the first at element `to`. */
ATT_INLINE void write_rows_as(bool narrow, const head_shape *h, const float *from, int64_t count, void *dqkv,
                              int64_t to)
{
    for (int64_t row = 0; row < count; row++, from += h->padded, to += head_stride(h))
        for (int64_t i = 0; i < h->width; i += VW)
            v_put_until(dqkv, to + i, to + h->width, v_load(from + i), narrow);
}

static void write_rows(const att_call *call, const head_shape *h, const float *from, int64_t count, int64_t to)
{
    if (att_is_narrow(&call->problem->out[0]))
        write_rows_as(true, h, from, count, call->out[0], to);
    else
        write_rows_as(false, h, from, count, call->out[0], to);
}

static void run_rows(const att_call *call, const head_shape *h, const workspace *w, int64_t sample, int64_t head,
                     int64_t first)
{
    const att_desc *in = call->problem->in;
    int64_t out_stride = h->heads * h->width, at = (sample * h->tokens + first) * out_stride + head * h->width;
    int64_t qkv_at = head_at(h, sample, head, 0) + first * head_stride(h);
    rows r = {.lse = (const float *)call->in[LSE] + (sample * h->heads + head) * h->tokens + first,
              .count = h->tokens - first < ATTENTION_ROWS ? h->tokens - first : ATTENTION_ROWS,
              .first = first == 0};
    gemm_take_rows(att_is_narrow(&in[QKV]), call->in[QKV], qkv_at, head_stride(h), r.count, h->width, w->q, h->padded);
    gemm_take_rows(att_is_narrow(&in[DO]), call->in[DO], at, out_stride, r.count, h->width, w->dout, h->padded);
    for (int64_t i = 0; i < r.count; i++)
        r.do_o[i] = dot(w->dout + i * h->padded, call->in[O], at + i * out_stride, h->width, att_is_narrow(&in[O]));
    for (int64_t key = 0; key < h->tokens; key += h->tile)
        run_tile(h, w, &r, key, h->tokens - key < h->tile ? h->tokens - key : h->tile);
    write_rows(call, h, w->dq, r.count, qkv_at);
}

/* Parts share the heads of all samples. */
static att_status attention_grad_run(const att_call *call)
{
    head_shape h = head_shape_of(call->problem, &call->problem->in[QKV]);
    workspace w;
    workspace_cut(&h, call->scratch, &w);
    const void *qkv = call->in[QKV];
    bool narrow = att_is_narrow(&call->problem->in[QKV]);
    att_range part = att_part_of(call, call->problem->group * h.heads, 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        int64_t sample = i / h.heads, head = i % h.heads;
        int64_t k = head_at(&h, sample, head, 1), v = head_at(&h, sample, head, 2);
        pack_tiles(&h, narrow, qkv, k, w.key_panels);
        pack_tiles(&h, narrow, qkv, v, w.value_panels);
        gemm_take_rows(narrow, qkv, k, head_stride(&h), h.tokens, h.width, w.keys, h.padded);
        for (int64_t first = 0; first < h.tokens; first += ATTENTION_ROWS)
            run_rows(call, &h, &w, sample, head, first);
        write_rows(call, &h, w.dk, h.tokens, k);
        write_rows(call, &h, w.dv, h.tokens, v);
    }
    return ATT_OK;
}

static att_status attention_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    head_shape h = head_shape_of(problem, &problem->in[QKV]);
    prepared->scratch_bytes = (size_t)workspace_cut(&h, NULL, NULL) * sizeof(float);
    return ATT_OK;
}

static bool attention_grad_accepts(const att_problem *problem)
{
    return att_takes_narrow(problem, 1u << DO | 1u << QKV | 1u << O, 1);
}

const att_kernel ATT_TIERED(att_cpu_attention_grad) = {.op = "attention_grad",
                                                       .name = "simd",
                                                       .tier = ATT_TIER_VALUE,
                                                       .accepts = attention_grad_accepts,
                                                       .prepare = attention_grad_prepare,
                                                       .run = attention_grad_run};
