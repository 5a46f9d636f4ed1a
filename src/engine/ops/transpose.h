/* ops/transpose.h - attributes of transpose. */
#ifndef ATT_OPS_TRANSPOSE_H
#define ATT_OPS_TRANSPOSE_H

#include <attscope/tensor.h>

/* Axis i of the result is axis axes[i] of x. Only the first `rank` elements of axes are used; the rest are 0. */
typedef struct att_transpose_attrs {
    int32_t rank;
    int32_t axes[ATT_MAX_RANK];
} att_transpose_attrs;

#endif
