#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/gate.h"

static att_status run_gate(const att_call *call)
{
    enum { X, GATE, RESIDUAL };
    int64_t columns = ref_dim(call, X, -1);
    ref_range share = ref_share(call, ref_count(call, X));
    for (int64_t e = share.begin; e < share.end; e++) {
        double y = ref_in(call, X, e) * ref_in(call, GATE, e / columns);
        y += ref_has(call, RESIDUAL) ? ref_in(call, RESIDUAL, e) : 0;
        ref_out(call, 0, e, ref_act(ATT_ATTRS(call->problem, gate)->activation, y));
    }
    return ATT_OK;
}

const att_kernel att_ref_pixel_gate = {.op = "pixel_gate", .name = "ref", .run = run_gate};

static att_status run_dot(const att_call *call)
{
    int64_t columns = ref_dim(call, 0, -1);
    ref_range rows = ref_share(call, ref_rows(call, 0));
    for (int64_t row = rows.begin; row < rows.end; row++) {
        double sum = 0;
        for (int64_t e = row * columns; e < (row + 1) * columns; e++)
            sum += ref_in(call, 0, e) * ref_in(call, 1, e);
        ref_out(call, 0, row, sum);
    }
    return ATT_OK;
}

const att_kernel att_ref_pixel_dot = {.op = "pixel_dot", .name = "ref", .run = run_dot};
