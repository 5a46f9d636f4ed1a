/* kernels/cpu/tier/attention.h - how attention and its gradient divide a head into tiles. */
#ifndef ATT_KERNELS_CPU_TIER_ATTENTION_H
#define ATT_KERNELS_CPU_TIER_ATTENTION_H

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/attention_terms.h"
#include "engine/kernels/cpu/tier/draws.h"
#include "engine/kernels/cpu/tier/gemm.h"
#include "engine/kernels/cpu/tier/vmath.h"
#include "engine/ops/attention.h"

enum { HEAD_Q = ATT_ATTENTION_Q, HEAD_K = ATT_ATTENTION_K, HEAD_V = ATT_ATTENTION_V };

typedef struct head_shape {
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    gemm_elements copied[ATT_ATTENTION_OPERANDS]; /* how they are converted for products */
    int64_t heads, windows;
    int64_t tokens;               /* queries of a sample */
    int64_t queries, keys;        /* of a window; without windows all are in one */
    int64_t width, value_width;   /* of one head */
    int64_t padded, value_padded; /* widths rounded up to whole vectors */
    gemm_elements elements;       /* of products: GEMM_F32 or GEMM_PAIRS */
    int64_t inner, value_inner;   /* widths, counted in elements of a product */
    int64_t tile;                 /* keys per tile, and row length of a tile of the map */
    float scale;
} head_shape;

/* first: the node's input q. pairs: whether products are of pairs, if q, k and v are bf16. longest_tile: a multiple of
 * VW. */
static inline head_shape head_shape_of(const att_problem *problem, int first, bool pairs, int64_t longest_tile)
{
    const att_attention_attrs *attrs = problem->attrs;
    const att_desc *in = problem->in + first;
    head_shape h = {.scale = (float)attrs->scale};
    att_attention_divide(in, attrs, h.operand);
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++)
        pairs = pairs && att_is_bf16(&in[h.operand[o].input]);
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++)
        h.copied[o] = gemm_elements_of(att_is_bf16(&in[h.operand[o].input]), pairs);
    h.elements = pairs ? GEMM_PAIRS : GEMM_F32;
    h.heads = h.operand[HEAD_Q].heads, h.windows = att_attention_windows(attrs), h.tokens = h.operand[HEAD_Q].tokens;
    h.queries = h.tokens / h.windows, h.keys = h.operand[HEAD_K].tokens / h.windows;
    h.width = h.operand[HEAD_Q].width, h.value_width = h.operand[HEAD_V].width;
    h.padded = whole_vectors(h.width), h.value_padded = whole_vectors(h.value_width);
    h.inner = gemm_count(h.elements, h.width), h.value_inner = gemm_count(h.elements, h.value_width);
    h.tile = whole_vectors(h.keys < longest_tile ? h.keys : longest_tile);
    return h;
}

/* The head of operand `which` that head `head` of the queries uses. */
static inline int64_t head_used(const head_shape *h, int which, int64_t head)
{
    return head / (h->heads / h->operand[which].heads);
}

/* Index of row 0 of operand `which` of one head, in its input with all samples. */
static inline int64_t head_at(const head_shape *h, int which, int64_t sample, int64_t head)
{
    const att_attention_operand *operand = &h->operand[which];
    return sample * operand->tokens * operand->stride + operand->offset + head_used(h, which, head) * operand->width;
}

/* The tokens of a window in the order of its rows; NULL: all tokens in their order. */
static inline const int32_t *window_order(const window_tokens *windows, int64_t window)
{
    return windows ? windows->index + window * windows->tokens : NULL;
}

/* Rows of operand `which` of one head, of the tokens of a window. first: the node's input q. */
static inline gemm_source head_rows(const head_shape *h, const att_call *call, int first, int which, int64_t sample,
                                    int64_t head, const int32_t *order)
{
    const att_attention_operand *operand = &h->operand[which];
    return (gemm_source){.x = call->in[first + operand->input],
                         .from = head_at(h, which, sample, head),
                         .stride = operand->stride,
                         .order = order};
}

/* Elements of scratch memory for the factors of one row; 0 without dropout. */
static inline int64_t drop_scratch(const att_problem *problem, const head_shape *h)
{
    return ATT_ATTRS(problem, attention)->drops ? h->tile + VW : 0;
}

/* Dropout of the map. */
typedef struct map_drop {
    bool drops;
    draws draws;
    int64_t position; /* of the call's first sample */
} map_drop;

static inline map_drop map_drop_of(const att_call *call)
{
    const att_attention_attrs *attrs = call->problem->attrs;
    if (!attrs->drops)
        return (map_drop){.drops = false};
    return (map_drop){true, draws_of(call, attrs->drop_rate, attrs->drop_stream), call->position};
}

/* Writes the factors of the weights of query `token`, counted in its sample, and `count` keys from key `first` on, a
 * multiple of VW. factors: drop_scratch() elements. Returns them. */
static inline const float *drop_row(const map_drop *d, const head_shape *h, int64_t sample, int64_t head, int64_t token,
                                    int64_t first, int64_t count, float *factors)
{
    int64_t row = att_attention_first_draw(head * h->tokens + token, h->keys);
    drop_factors(&d->draws, d->position + sample, row + first, count, factors);
    return factors;
}

#endif
