/* ops/token_mean.h - attributes of token_mean and its gradient. */
#ifndef ATT_OPS_TOKEN_MEAN_H
#define ATT_OPS_TOKEN_MEAN_H

#include <stdint.h>

/* mean over rows [first, N): out [C]; its gradient spreads over `total`, which are rows of a map that is `width` wide,
 * or tokens where that is 0. */
typedef struct att_mean_attrs {
    int32_t first, total, width;
} att_mean_attrs;

#endif
