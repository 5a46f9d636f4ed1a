/* ops/binary_cross_entropy.h - attributes of binary_cross_entropy and its gradient. */
#ifndef ATT_OPS_BINARY_CROSS_ENTROPY_H
#define ATT_OPS_BINARY_CROSS_ENTROPY_H

#include <attscope/ops.h>

typedef struct att_binary_cross_entropy_attrs {
    double smoothing, threshold, positive_weight;
    int32_t binary, sum; /* bools */
} att_binary_cross_entropy_attrs;

#endif
