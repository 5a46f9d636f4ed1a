/* ops/cosine_heads.h - attributes of cosine_heads and its gradient. */
#ifndef ATT_OPS_COSINE_HEADS_H
#define ATT_OPS_COSINE_HEADS_H

#include <stdint.h>

typedef struct att_cosine_heads_attrs {
    double eps;
    int32_t heads, key_heads; /* divided by their norms, from the left; those of `heads` have logits */
    int64_t width;            /* channels of each */
} att_cosine_heads_attrs;

static inline int64_t att_cosine_heads_count(const att_cosine_heads_attrs *attrs)
{
    return (int64_t)attrs->heads + attrs->key_heads;
}

/* ln 100, the limit of logits: factors are at most 100. */
#define ATT_COSINE_HEADS_LIMIT 4.605170185988092

#endif
