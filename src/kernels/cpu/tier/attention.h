/* kernels/cpu/tier/attention.h - how attention and its gradient cut a head into pieces. */
#ifndef ATT_KERNELS_CPU_TIER_ATTENTION_H
#define ATT_KERNELS_CPU_TIER_ATTENTION_H

#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/gemm.h"
#include "kernels/cpu/tier/vmath.h"

/* Queries are taken ROWS at a time, keys TILE at a time: a piece of the map is at most ROWS x TILE. */
enum { ATTENTION_ROWS = 32, ATTENTION_TILE = 1024 };

typedef struct head_shape {
    int64_t tokens, heads, width; /* width of one head */
    int64_t padded;               /* width up to whole vectors */
    int64_t tile;                 /* row length of a piece of the map */
    float scale;
} head_shape;

static inline head_shape head_shape_of(const att_problem *problem, const att_desc *qkv)
{
    const att_attention_attrs *attrs = &problem->attrs->attention;
    head_shape h = {.tokens = qkv->shape.dims[0], .heads = attrs->heads, .scale = (float)attrs->scale};
    h.width = qkv->shape.dims[1] / 3 / h.heads;
    h.padded = whole_vectors(h.width);
    h.tile = whole_vectors(h.tokens < ATTENTION_TILE ? h.tokens : ATTENTION_TILE);
    return h;
}

/* Elements of one matrix [tokens, width], in rows or in panels, with all its padding. */
static inline int64_t head_elements(const head_shape *h)
{
    return whole_vectors(h->tokens) * h->padded;
}

/* Row 0 of matrix `which` (0 q, 1 k, 2 v) of one head in a sample's [tokens, 3 heads width]. */
static inline int64_t head_at(const head_shape *h, int64_t sample, int64_t head, int64_t which)
{
    return (sample * h->tokens * 3 + which) * h->heads * h->width + head * h->width;
}

static inline int64_t head_stride(const head_shape *h)
{
    return 3 * h->heads * h->width;
}

/* Panels of all key tiles of the rows whose first is at element `from` of qkv, a tile's behind the other's. */
static inline void pack_tiles(const head_shape *h, bool narrow, const void *qkv, int64_t from, float *to)
{
    for (int64_t first = 0; first < h->tokens; first += h->tile) {
        int64_t count = h->tokens - first < h->tile ? h->tokens - first : h->tile;
        gemm_pack_transposed(narrow, qkv, from + first * head_stride(h), head_stride(h), count, h->width,
                             to + first * h->width);
    }
}

#endif
