#include "engine/ops/combine.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run(const att_call *call)
{
    const att_combine_attrs *attrs = ATT_ATTRS(call->problem, combine);
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, attrs->a * ref_in(call, 0, e) + (ref_has(call, 1) ? attrs->b * ref_in(call, 1, e) : 0));
    return ATT_OK;
}

const att_kernel att_ref_combine = {.op = "combine", .name = "ref", .run = run};
