#include "engine/ops/add.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"

static att_status run(const att_call *call)
{
    int64_t period = ref_count(call, 1); /* a shared b is repeated */
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e,
                ref_act(ATT_ATTRS(call->problem, add)->activation, ref_in(call, 0, e) + ref_in(call, 1, e % period)));
    return ATT_OK;
}

const att_kernel att_ref_add = {.op = "add", .name = "ref", .run = run};
