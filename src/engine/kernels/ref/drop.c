#include "engine/ops/drop.h"
#include "engine/kernels/ref/drop.h"
#include "engine/kernels/ref/list.h"

/* Draw e % period of the sample decides for element e. */
static att_status run(const att_call *call, int64_t period)
{
    const att_drop_attrs *attrs = call->problem->attrs;
    int64_t count = att_shape_count(call->problem->in[0].shape);
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double kept = ref_drop_factor(call, attrs->rate, attrs->stream, e / count, e % count % period);
        ref_out(call, 0, e, kept == 0 ? 0 : kept * ref_in(call, 0, e));
    }
    return ATT_OK;
}

static att_status run_dropout(const att_call *call)
{
    return run(call, att_shape_count(call->problem->in[0].shape));
}

static att_status run_channel_dropout(const att_call *call)
{
    const att_shape *x = &call->problem->in[0].shape;
    return run(call, x->dims[x->rank - 1]);
}

static att_status run_drop_path(const att_call *call)
{
    return run(call, 1);
}

const att_kernel att_ref_dropout = {.op = "dropout", .name = "ref", .run = run_dropout};
const att_kernel att_ref_channel_dropout = {.op = "channel_dropout", .name = "ref", .run = run_channel_dropout};
const att_kernel att_ref_drop_path = {.op = "drop_path", .name = "ref", .run = run_drop_path};
