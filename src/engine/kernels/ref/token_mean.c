#include "engine/ops/token_mean.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_mean(const att_call *call)
{
    const att_mean_attrs *attrs = call->problem->attrs;
    int64_t first = attrs->first, columns = ref_dim(call, 0, -1);
    int64_t total = ref_rows(call, 0) / call->problem->group;
    ref_range share = ref_share(call, columns * call->problem->group);
    for (int64_t e = share.begin; e < share.end; e++) {
        double sum = 0;
        for (int64_t token = first; token < total; token++)
            sum += ref_in(call, 0, (e / columns * total + token) * columns + e % columns);
        ref_out(call, 0, e, attrs->factor * sum / (double)(total - first));
    }
    return ATT_OK;
}

const att_kernel att_ref_token_mean = {.op = "token_mean", .name = "ref", .run = run_mean};

static att_status run_grad(const att_call *call)
{
    const att_mean_attrs *attrs = call->problem->attrs;
    int64_t columns = ref_dim(call, 0, 0), all = attrs->total * columns;
    ref_range share = ref_share(call, all * call->problem->group);
    for (int64_t e = share.begin; e < share.end; e++) {
        bool counted = e % all / columns >= attrs->first;
        double dy = ref_in(call, 0, e / all * columns + e % columns);
        ref_out(call, 0, e, counted ? attrs->factor * dy / (attrs->total - attrs->first) : 0);
    }
    return ATT_OK;
}

const att_kernel att_ref_token_mean_grad = {.op = "token_mean_grad", .name = "ref", .run = run_grad};
