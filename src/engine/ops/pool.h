/* ops/pool.h - attributes of max_pool, avg_pool and their gradients. */
#ifndef ATT_OPS_POOL_H
#define ATT_OPS_POOL_H

#include <stdint.h>

/* Attributes of max_pool and avg_pool. height, width: size of x, for the gradient. */
typedef struct att_pool_attrs {
    int32_t kernel, stride, padding;
    int32_t height, width;
    int32_t ceil, count_padding; /* bools */
} att_pool_attrs;

#endif
