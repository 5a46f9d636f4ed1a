#include "engine/ops/batch_norm.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"

static att_status run_batch_norm(const att_call *call)
{
    enum { X, GAMMA, BETA, MEAN, VARIANCE };
    const att_batch_norm_attrs *attrs = call->problem->attrs;
    int64_t columns = ref_dim(call, X, -1);
    ref_range share = ref_share(call, ref_count(call, X));
    for (int64_t e = share.begin; e < share.end; e++) {
        int64_t c = e % columns;
        double normal = (ref_in(call, X, e) - ref_in(call, MEAN, c)) / sqrt(ref_in(call, VARIANCE, c) + attrs->eps);
        ref_out(call, 0, e, ref_act(attrs->activation, normal * ref_in(call, GAMMA, c) + ref_in(call, BETA, c)));
    }
    return ATT_OK;
}

const att_kernel att_ref_batch_norm = {.op = "batch_norm", .name = "ref", .run = run_batch_norm};

enum { DY, GRAD_X, GAMMA, MEAN, VARIANCE };

static double rstd_of(const att_call *call, int64_t c)
{
    return 1 / sqrt(ref_in(call, VARIANCE, c) + ATT_ATTRS(call->problem, batch_norm)->eps);
}

static void sum_channel(const att_call *call, int64_t c)
{
    int64_t columns = ref_dim(call, GRAD_X, -1), count = ref_count(call, GRAD_X);
    double dgamma = 0, dbeta = 0;
    for (int64_t e = c; e < count; e += columns) {
        dgamma += ref_in(call, DY, e) * (ref_in(call, GRAD_X, e) - ref_in(call, MEAN, c)) * rstd_of(call, c);
        dbeta += ref_in(call, DY, e);
    }
    ref_sum(call, 1, c, dgamma);
    ref_sum(call, 2, c, dbeta);
}

static att_status run_grad(const att_call *call)
{
    int64_t columns = ref_dim(call, DY, -1);
    ref_range elements = ref_share(call, ref_count(call, DY)), channels = ref_share(call, columns);
    for (int64_t e = elements.begin; e < elements.end; e++)
        ref_out(call, 0, e, ref_in(call, DY, e) * ref_in(call, GAMMA, e % columns) * rstd_of(call, e % columns));
    for (int64_t c = channels.begin; c < channels.end && call->in[GRAD_X]; c++)
        sum_channel(call, c);
    return ATT_OK;
}

const att_kernel att_ref_batch_norm_grad = {.op = "batch_norm_grad", .name = "ref", .run = run_grad};
