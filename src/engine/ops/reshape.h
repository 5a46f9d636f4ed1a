/* ops/reshape.h - attributes of reshape. */
#ifndef ATT_OPS_RESHAPE_H
#define ATT_OPS_RESHAPE_H

#include <attscope/tensor.h>

/* The output's shape. */
typedef struct att_reshape_attrs {
    int64_t rank;
    int64_t dims[ATT_MAX_RANK];
} att_reshape_attrs;

#endif
