#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_exp(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, exp(ref_in(call, 0, e)));
    return ATT_OK;
}

const att_kernel att_ref_exp = {.op = "exp", .name = "ref", .run = run_exp};

static att_status run_grad(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, ref_in(call, 0, e) * ref_in(call, 1, e));
    return ATT_OK;
}

const att_kernel att_ref_exp_grad = {.op = "exp_grad", .name = "ref", .run = run_grad};
