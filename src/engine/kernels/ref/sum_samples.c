#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run(const att_call *call)
{
    int64_t count = ref_count(call, 0), kept = att_shape_count(call->problem->out[0].shape);
    double times = call->problem->in[0].kind == ATT_BATCH ? (double)call->problem->group : 1;
    ref_range share = ref_share(call, kept);
    for (int64_t k = share.begin; k < share.end; k++) {
        double sum = 0;
        for (int64_t e = k; e < count; e += kept)
            sum += ref_in(call, 0, e);
        ref_sum(call, 0, k, sum * times);
    }
    return ATT_OK;
}

const att_kernel att_ref_sum_samples = {.op = "sum_samples", .name = "ref", .run = run};
