/* kernels/cpu/shape.h - problems as rows of equal width, or as one run of elements. Static functions only, so that tier
 * objects can use it. */
#ifndef ATT_KERNELS_CPU_SHAPE_H
#define ATT_KERNELS_CPU_SHAPE_H

#include "engine/backend/kernel.h"
#include "engine/kernels/cpu/floats.h"

/* Size of the last axis; 1 for a scalar. */
static inline int64_t att_columns(const att_desc *desc)
{
    return desc->shape.rank > 0 ? desc->shape.dims[desc->shape.rank - 1] : 1;
}

/* Elements in one call, of all samples for sample values. (Cannot overflow: shapes are checked when a graph is built.)
 */
static inline int64_t att_elements(const att_call *call, const att_desc *desc)
{
    int64_t count = desc->kind == ATT_SAMPLE ? call->problem->group : 1;
    for (int i = 0; i < desc->shape.rank; i++)
        count *= desc->shape.dims[i];
    return count;
}

/* Product of all axes but the last, times the group. */
static inline int64_t att_rows(const att_call *call, const att_desc *desc)
{
    int64_t columns = att_columns(desc);
    return columns > 0 ? att_elements(call, desc) / columns : 0;
}

/* A part's share of a range. */
typedef struct att_range {
    int64_t begin, end;
} att_range;

static inline att_range att_part_of(const att_call *call, int64_t count, int64_t grain)
{
    att_range range;
    att_share(count, grain, call->part, call->parts, &range.begin, &range.end);
    return range;
}

#endif
