/* nn/width.h - the size of a value's last axis: a token's width, a map's channels. */
#ifndef ATT_NN_WIDTH_H
#define ATT_NN_WIDTH_H

#include <attscope/nn.h>

/* Returns 0 if the graph has failed. */
static inline int64_t att_width_of(const att_scope *scope, att_value x)
{
    att_shape shape = att_value_shape(scope->graph, x);
    return shape.rank > 0 ? shape.dims[shape.rank - 1] : 0;
}

#endif
