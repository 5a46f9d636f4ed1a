#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"

static att_status run_max(const att_call *call)
{
    ref_range share = ref_share(call, ref_dim(call, 0, -1) * call->problem->group);
    for (int64_t k = share.begin; k < share.end; k++) {
        ref_channel channel = ref_channel_of(call, 0, k);
        double largest = ref_in(call, 0, channel.begin);
        for (int64_t e = channel.begin; e < channel.end; e += channel.step)
            largest = ref_larger(largest, ref_in(call, 0, e));
        ref_out(call, 0, k, largest);
    }
    return ATT_OK;
}

const att_kernel att_ref_global_max = {.op = "global_max", .name = "ref", .run = run_max};

static att_status run_grad(const att_call *call)
{
    enum { DY, X, Y };
    ref_range share = ref_share(call, ref_dim(call, X, -1) * call->problem->group);
    for (int64_t k = share.begin; k < share.end; k++) {
        ref_channel channel = ref_channel_of(call, X, k);
        bool given = false;
        for (int64_t e = channel.begin; e < channel.end; e += channel.step) {
            bool first = !given && ref_in(call, X, e) == ref_in(call, Y, k);
            ref_out(call, 0, e, first ? ref_in(call, DY, k) : 0);
            given |= first;
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_global_max_grad = {.op = "global_max_grad", .name = "ref", .run = run_grad};
