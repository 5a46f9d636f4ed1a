/* ops/rotary.h - attributes of rotary positions and their gradient. */
#ifndef ATT_OPS_ROTARY_H
#define ATT_OPS_ROTARY_H

#include "engine/graph/op.h"

typedef struct att_rotary_attrs {
    int32_t heads;  /* heads that are turned, from the left */
    int32_t prefix; /* tokens that are not */
    int32_t halves; /* pairs are (i, i + d / 2), else (2i, 2i + 1) */
} att_rotary_attrs;

/* How the rows of x and of the table are divided. */
typedef struct att_rotary_shape {
    int64_t tokens, columns;
    int64_t width, entries; /* d; K of the table */
} att_rotary_shape;

/* x [N, C], table [N - prefix, d] or [N - prefix, K, d]. */
static inline att_rotary_shape att_rotary_shape_of(const att_desc *x, const att_desc *table)
{
    const att_shape *t = &table->shape;
    return (att_rotary_shape){.tokens = x->shape.dims[0],
                              .columns = x->shape.dims[1],
                              .width = t->dims[t->rank - 1],
                              .entries = t->rank == 3 ? t->dims[1] : 1};
}

#endif
