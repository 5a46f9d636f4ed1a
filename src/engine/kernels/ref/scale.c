#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_scale(const att_call *call)
{
    int64_t columns = ref_dim(call, 0, -1);
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, ref_in(call, 0, e) * ref_in(call, 1, e % columns));
    return ATT_OK;
}

const att_kernel att_ref_scale = {.op = "scale", .name = "ref", .run = run_scale};

static att_status run_grad(const att_call *call)
{
    int64_t columns = ref_dim(call, 0, -1), count = ref_count(call, 0);
    ref_range share = ref_share(call, columns);
    for (int64_t c = share.begin; c < share.end; c++) {
        double sum = 0;
        for (int64_t e = c; e < count; e += columns)
            sum += ref_in(call, 0, e) * ref_in(call, 1, e);
        ref_sum(call, 0, c, sum);
    }
    return ATT_OK;
}

const att_kernel att_ref_scale_grad = {.op = "scale_grad", .name = "ref", .run = run_grad};
