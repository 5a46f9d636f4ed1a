/* kernels/ref/call.h - access to a call's inputs and outputs as f64, and the part's share of the work. */
#ifndef ATT_KERNELS_REF_CALL_H
#define ATT_KERNELS_REF_CALL_H

#include "engine/backend/kernel.h"
#include "engine/kernels/ref/element.h"

typedef struct ref_range {
    int64_t begin, end;
} ref_range;

static inline ref_range ref_share(const att_call *call, int64_t count)
{
    ref_range range;
    att_share(count, 1, call->part, call->parts, &range.begin, &range.end);
    return range;
}

/* Whether optional input i is present. */
static inline bool ref_has(const att_call *call, int i)
{
    return call->in[i] != NULL;
}

/* Element `e` of input i. */
static inline double ref_in(const att_call *call, int i, int64_t e)
{
    return att_element_load(call->problem->in[i].dtype, call->in[i], e);
}

/* Overwrites element `e` of output i, unless nobody reads the output. */
static inline void ref_out(const att_call *call, int i, int64_t e, double value)
{
    if (call->out[i])
        att_element_store(call->problem->out[i].dtype, call->out[i], e, value);
}

/* Element `e` of output i, for outputs that are updated in place. */
static inline double ref_old(const att_call *call, int i, int64_t e)
{
    return att_element_load(call->problem->out[i].dtype, call->out[i], e);
}

/* Adds to element `e` of summed output i, unless nobody reads the output. */
static inline void ref_sum(const att_call *call, int i, int64_t e, double value)
{
    if (call->out[i])
        att_element_add(call->problem->out[i].dtype, call->out[i], e, value);
}

/* Size of axis `axis` of input i; negative axes count from the last. */
static inline int64_t ref_dim(const att_call *call, int i, int axis)
{
    const att_shape *shape = &call->problem->in[i].shape;
    return shape->dims[axis < 0 ? shape->rank + axis : axis];
}

/* Elements of input i for the whole group, and its rows (all axes but the last). */
static inline int64_t ref_count(const att_call *call, int i)
{
    return att_problem_count(call->problem, &call->problem->in[i]);
}

static inline int64_t ref_rows(const att_call *call, int i)
{
    return ref_count(call, i) / ref_dim(call, i, -1);
}

#endif
