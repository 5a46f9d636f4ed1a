#include "engine/ops/slice_tokens.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_slice(const att_call *call)
{
    const att_slice_attrs *attrs = call->problem->attrs;
    int64_t total = ref_dim(call, 0, 0), columns = ref_dim(call, 0, 1), kept = attrs->count * columns;
    ref_range share = ref_share(call, kept * call->problem->group);
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, ref_in(call, 0, (e / kept * total + attrs->first) * columns + e % kept));
    return ATT_OK;
}

const att_kernel att_ref_slice_tokens = {.op = "slice_tokens", .name = "ref", .run = run_slice};

static att_status run_grad(const att_call *call)
{
    const att_slice_attrs *attrs = call->problem->attrs;
    int64_t columns = ref_dim(call, 0, 1), all = attrs->total * columns;
    ref_range share = ref_share(call, all * call->problem->group);
    for (int64_t e = share.begin; e < share.end; e++) {
        int64_t token = e % all / columns - attrs->first;
        bool inside = token >= 0 && token < attrs->count;
        ref_out(call, 0, e, inside ? ref_in(call, 0, (e / all * attrs->count + token) * columns + e % columns) : 0);
    }
    return ATT_OK;
}

const att_kernel att_ref_slice_tokens_grad = {.op = "slice_tokens_grad", .name = "ref", .run = run_grad};
