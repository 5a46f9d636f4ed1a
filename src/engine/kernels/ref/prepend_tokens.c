#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run(const att_call *call)
{
    int64_t tokens = ref_count(call, 0), old = att_shape_count(call->problem->in[1].shape), all = tokens + old;
    ref_range share = ref_share(call, all * call->problem->group);
    for (int64_t e = share.begin; e < share.end; e++) {
        int64_t sample = e / all, i = e % all;
        ref_out(call, 0, e, i < tokens ? ref_in(call, 0, i) : ref_in(call, 1, sample * old + i - tokens));
    }
    return ATT_OK;
}

const att_kernel att_ref_prepend_tokens = {.op = "prepend_tokens", .name = "ref", .run = run};
