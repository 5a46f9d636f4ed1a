#include "engine/ops/context_broadcast.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* Sum over a sample's tokens of column c of input i. */
static double column_sum(const att_call *call, int i, int64_t sample, int64_t c)
{
    int64_t tokens = ref_dim(call, i, 0), columns = ref_dim(call, i, 1);
    double sum = 0;
    for (int64_t token = 0; token < tokens; token++)
        sum += ref_in(call, i, (sample * tokens + token) * columns + c);
    return sum;
}

static att_status run_broadcast(const att_call *call)
{
    enum { X, SCALE, RESIDUAL };
    const att_broadcast_attrs *attrs = call->problem->attrs;
    int64_t tokens = ref_dim(call, X, 0), columns = ref_dim(call, X, 1);
    bool shares = ref_has(call, SCALE) || attrs->share != 0;
    ref_range share = ref_share(call, columns * call->problem->group);
    for (int64_t item = share.begin; item < share.end; item++) {
        int64_t sample = item / columns, c = item % columns;
        double factor = ref_has(call, SCALE) ? ref_in(call, SCALE, c) : attrs->share;
        double shared = shares ? factor * column_sum(call, X, sample, c) / (double)tokens : 0;
        for (int64_t token = 0; token < tokens; token++) {
            int64_t e = (sample * tokens + token) * columns + c;
            double residual = ref_has(call, RESIDUAL) ? ref_in(call, RESIDUAL, e) : 0;
            ref_out(call, 0, e, attrs->keep * ref_in(call, X, e) + shared + residual);
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_context_broadcast = {.op = "context_broadcast", .name = "ref", .run = run_broadcast};

static att_status run_scale_grad(const att_call *call)
{
    enum { DY, X };
    int64_t tokens = ref_dim(call, X, 0);
    ref_range share = ref_share(call, ref_dim(call, X, 1));
    for (int64_t c = share.begin; c < share.end; c++) {
        double sum = 0;
        for (int64_t sample = 0; sample < call->problem->group; sample++)
            sum += column_sum(call, X, sample, c) / (double)tokens * column_sum(call, DY, sample, c);
        ref_sum(call, 0, c, sum);
    }
    return ATT_OK;
}

const att_kernel att_ref_context_broadcast_scale_grad = {
    .op = "context_broadcast_scale_grad", .name = "ref", .run = run_scale_grad};
