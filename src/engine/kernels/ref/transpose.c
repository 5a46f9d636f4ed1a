#include "engine/ops/transpose.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* Index in x of element `e` of y, both within one sample. */
static int64_t source_of(const att_call *call, int64_t e)
{
    const att_transpose_attrs *attrs = call->problem->attrs;
    const att_shape *x = &call->problem->in[0].shape, *y = &call->problem->out[0].shape;
    int64_t index[ATT_MAX_RANK] = {0}, at = 0;
    for (int i = y->rank - 1; i >= 0; i--, e /= y->dims[i + 1])
        index[attrs->axes[i]] = e % y->dims[i];
    for (int i = 0; i < x->rank; i++)
        at = at * x->dims[i] + index[i];
    return at;
}

static att_status run(const att_call *call)
{
    int64_t count = att_shape_count(call->problem->in[0].shape);
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, ref_in(call, 0, e / count * count + source_of(call, e % count)));
    return ATT_OK;
}

const att_kernel att_ref_transpose = {.op = "transpose", .name = "ref", .run = run};
