#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_tanh(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, tanh(ref_in(call, 0, e)));
    return ATT_OK;
}

const att_kernel att_ref_tanh = {.op = "tanh", .name = "ref", .run = run_tanh};

static att_status run_grad(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double y = ref_in(call, 1, e);
        ref_out(call, 0, e, ref_in(call, 0, e) * (1 - y * y));
    }
    return ATT_OK;
}

const att_kernel att_ref_tanh_grad = {.op = "tanh_grad", .name = "ref", .run = run_grad};
