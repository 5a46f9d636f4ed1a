#include "engine/ops/drop.h"
#include "engine/kernels/ref/drop.h"
#include "engine/kernels/ref/list.h"

/* whole: the sample's draw 0 decides for all elements. */
static att_status run(const att_call *call, bool whole)
{
    const att_drop_attrs *attrs = call->problem->attrs;
    int64_t count = att_shape_count(call->problem->in[0].shape);
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double kept = ref_drop_factor(call, attrs->rate, attrs->stream, e / count, whole ? 0 : e % count);
        ref_out(call, 0, e, kept == 0 ? 0 : kept * ref_in(call, 0, e));
    }
    return ATT_OK;
}

static att_status run_dropout(const att_call *call)
{
    return run(call, false);
}

static att_status run_drop_path(const att_call *call)
{
    return run(call, true);
}

const att_kernel att_ref_dropout = {.op = "dropout", .name = "ref", .run = run_dropout};
const att_kernel att_ref_drop_path = {.op = "drop_path", .name = "ref", .run = run_drop_path};
