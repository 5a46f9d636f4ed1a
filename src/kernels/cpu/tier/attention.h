/* kernels/cpu/tier/attention.h - how attention and its gradient divide a head into tiles. */
#ifndef ATT_KERNELS_CPU_TIER_ATTENTION_H
#define ATT_KERNELS_CPU_TIER_ATTENTION_H

#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/gemm.h"
#include "kernels/cpu/tier/vmath.h"
#include "ops/attention.h"

typedef struct head_shape {
    int64_t tokens, heads, width; /* width of one head */
    int64_t padded;               /* width rounded up to whole vectors */
    gemm_elements elements;       /* how products read q, k and v */
    int64_t inner;                /* width, counted in elements of the product */
    int64_t tile;                 /* keys per tile, and row length of a tile of the map */
    float scale;
} head_shape;

/* longest_tile: a multiple of VW. */
static inline head_shape head_shape_of(const att_problem *problem, const att_desc *qkv, gemm_elements elements,
                                       int64_t longest_tile)
{
    const att_attention_attrs *attrs = problem->attrs;
    head_shape h = {
        .tokens = qkv->shape.dims[0], .heads = attrs->heads, .elements = elements, .scale = (float)attrs->scale};
    h.width = qkv->shape.dims[1] / 3 / h.heads;
    h.padded = whole_vectors(h.width);
    h.inner = gemm_count(elements, h.width);
    h.tile = whole_vectors(h.tokens < longest_tile ? h.tokens : longest_tile);
    return h;
}

/* Index of row 0 of matrix `which` (0: q, 1: k, 2: v) of one head in [samples, tokens, 3 heads width]. */
static inline int64_t head_at(const head_shape *h, int64_t sample, int64_t head, int64_t which)
{
    return (sample * h->tokens * 3 + which) * h->heads * h->width + head * h->width;
}

static inline int64_t head_stride(const head_shape *h)
{
    return 3 * h->heads * h->width;
}

#endif
