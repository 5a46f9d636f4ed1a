#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"

static att_status run_relu(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, ref_relu(ref_in(call, 0, e)));
    return ATT_OK;
}

const att_kernel att_ref_relu = {.op = "relu", .name = "ref", .run = run_relu};

static att_status run_grad(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, ref_in(call, 1, e) > 0 ? ref_in(call, 0, e) : 0);
    return ATT_OK;
}

const att_kernel att_ref_relu_grad = {.op = "relu_grad", .name = "ref", .run = run_grad};
