#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_sigmoid(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, 1 / (1 + exp(-ref_in(call, 0, e))));
    return ATT_OK;
}

const att_kernel att_ref_sigmoid = {.op = "sigmoid", .name = "ref", .run = run_sigmoid};

static att_status run_grad(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double y = ref_in(call, 1, e);
        ref_out(call, 0, e, ref_in(call, 0, e) * y * (1 - y));
    }
    return ATT_OK;
}

const att_kernel att_ref_sigmoid_grad = {.op = "sigmoid_grad", .name = "ref", .run = run_grad};
