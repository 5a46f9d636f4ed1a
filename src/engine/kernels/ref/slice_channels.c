#include "engine/ops/slice_channels.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_slice(const att_call *call)
{
    const att_channels_attrs *attrs = call->problem->attrs;
    int64_t total = ref_dim(call, 0, -1);
    ref_range share = ref_share(call, ref_rows(call, 0) * attrs->count);
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, ref_in(call, 0, e / attrs->count * total + attrs->first + e % attrs->count));
    return ATT_OK;
}

const att_kernel att_ref_slice_channels = {.op = "slice_channels", .name = "ref", .run = run_slice};

static att_status run_grad(const att_call *call)
{
    const att_channels_attrs *attrs = call->problem->attrs;
    ref_range share = ref_share(call, ref_rows(call, 0) * attrs->total);
    for (int64_t e = share.begin; e < share.end; e++) {
        int64_t channel = e % attrs->total - attrs->first;
        bool inside = channel >= 0 && channel < attrs->count;
        ref_out(call, 0, e, inside ? ref_in(call, 0, e / attrs->total * attrs->count + channel) : 0);
    }
    return ATT_OK;
}

const att_kernel att_ref_slice_channels_grad = {.op = "slice_channels_grad", .name = "ref", .run = run_grad};
