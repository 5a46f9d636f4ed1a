#include "engine/ops/gate.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"

static att_status multiply(const att_call *call, bool per_channel)
{
    enum { X, GATE, RESIDUAL };
    int64_t columns = ref_dim(call, X, -1), all = att_shape_count(call->problem->in[X].shape);
    ref_range share = ref_share(call, ref_count(call, X));
    for (int64_t e = share.begin; e < share.end; e++) {
        double y = ref_in(call, X, e) * ref_in(call, GATE, per_channel ? e / all * columns + e % columns : e / columns);
        y += ref_has(call, RESIDUAL) ? ref_in(call, RESIDUAL, e) : 0;
        ref_out(call, 0, e, ref_act(ATT_ATTRS(call->problem, gate)->activation, y));
    }
    return ATT_OK;
}

static att_status run_gate(const att_call *call)
{
    return multiply(call, true);
}

static att_status run_pixel_gate(const att_call *call)
{
    return multiply(call, false);
}

const att_kernel att_ref_gate = {.op = "gate", .name = "ref", .run = run_gate};
const att_kernel att_ref_pixel_gate = {.op = "pixel_gate", .name = "ref", .run = run_pixel_gate};

/* out[k] = the sum of dy (.) x over these elements */
static void dot(const att_call *call, int64_t k, ref_channel elements)
{
    double sum = 0;
    for (int64_t e = elements.begin; e < elements.end; e += elements.step)
        sum += ref_in(call, 0, e) * ref_in(call, 1, e);
    ref_out(call, 0, k, sum);
}

static att_status run_channel_dot(const att_call *call)
{
    ref_range share = ref_share(call, ref_dim(call, 0, -1) * call->problem->group);
    for (int64_t k = share.begin; k < share.end; k++)
        dot(call, k, ref_channel_of(call, 0, k));
    return ATT_OK;
}

static att_status run_pixel_dot(const att_call *call)
{
    int64_t columns = ref_dim(call, 0, -1);
    ref_range rows = ref_share(call, ref_rows(call, 0));
    for (int64_t row = rows.begin; row < rows.end; row++)
        dot(call, row, (ref_channel){.begin = row * columns, .end = (row + 1) * columns, .step = 1});
    return ATT_OK;
}

const att_kernel att_ref_channel_dot = {.op = "channel_dot", .name = "ref", .run = run_channel_dot};
const att_kernel att_ref_pixel_dot = {.op = "pixel_dot", .name = "ref", .run = run_pixel_dot};
