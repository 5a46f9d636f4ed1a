#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run(const att_call *call)
{
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++)
        ref_out(call, 0, sample, call->run->scale);
    return ATT_OK;
}

const att_kernel att_ref_loss_seed = {.op = "loss_seed", .name = "ref", .run = run};
