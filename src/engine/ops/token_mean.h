/* ops/token_mean.h - attributes of token_mean and its gradient. */
#ifndef ATT_OPS_TOKEN_MEAN_H
#define ATT_OPS_TOKEN_MEAN_H

#include <stdint.h>

/* `factor` times the mean over rows [first, N), output [C]. For the gradient: total is N, and width is the width of the
 * map, or 0 if x is tokens. */
typedef struct att_mean_attrs {
    int32_t first, total;
    int64_t width;
    double factor;
} att_mean_attrs;

#endif
