/* ops/slice_tokens.h - attributes of slice_tokens and its gradient. */
#ifndef ATT_OPS_SLICE_TOKENS_H
#define ATT_OPS_SLICE_TOKENS_H

#include <stdint.h>

/* Rows [first, first + count) of [N, C]. total: N, for the gradient. */
typedef struct att_slice_attrs {
    int32_t first, count, total;
} att_slice_attrs;

#endif
