/* ops/adaptive_avg_pool.h - attributes of adaptive_avg_pool and its gradient. */
#ifndef ATT_OPS_ADAPTIVE_AVG_POOL_H
#define ATT_OPS_ADAPTIVE_AVG_POOL_H

#include <stdint.h>

/* out_h, out_w: size of the output. height, width: size of x, for the gradient. */
typedef struct att_adaptive_attrs {
    int32_t out_h, out_w;
    int32_t height, width;
} att_adaptive_attrs;

#endif
