#include "engine/ops/gate.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"

static att_status run_gate(const att_call *call)
{
    enum { X, GATE, RESIDUAL };
    int64_t columns = ref_dim(call, X, -1), all = att_shape_count(call->problem->in[X].shape);
    ref_range share = ref_share(call, ref_count(call, X));
    for (int64_t e = share.begin; e < share.end; e++) {
        double y = ref_in(call, X, e) * ref_in(call, GATE, e / all * columns + e % columns);
        y += ref_has(call, RESIDUAL) ? ref_in(call, RESIDUAL, e) : 0;
        ref_out(call, 0, e, ref_act(ATT_ATTRS(call->problem, gate)->activation, y));
    }
    return ATT_OK;
}

const att_kernel att_ref_gate = {.op = "gate", .name = "ref", .run = run_gate};

static att_status run_dot(const att_call *call)
{
    ref_range share = ref_share(call, ref_dim(call, 0, -1) * call->problem->group);
    for (int64_t k = share.begin; k < share.end; k++) {
        ref_channel channel = ref_channel_of(call, 0, k);
        double sum = 0;
        for (int64_t e = channel.begin; e < channel.end; e += channel.step)
            sum += ref_in(call, 0, e) * ref_in(call, 1, e);
        ref_out(call, 0, k, sum);
    }
    return ATT_OK;
}

const att_kernel att_ref_channel_dot = {.op = "channel_dot", .name = "ref", .run = run_dot};
