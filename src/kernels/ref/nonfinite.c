#include "kernels/ref/call.h"
#include "kernels/ref/list.h"

static att_status run(const att_call *call)
{
    int64_t count = att_shape_count(call->problem->in[0].shape);
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        int64_t found = 0;
        for (int64_t e = 0; e < count; e++)
            found += !isfinite(ref_in(call, 0, sample * count + e));
        ref_out(call, 0, sample, (double)found);
    }
    return ATT_OK;
}

const att_kernel att_ref_nonfinite = {.op = "nonfinite", .name = "ref", .run = run};
