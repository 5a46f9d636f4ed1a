#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_norm(const att_call *call)
{
    double sum = 0;
    for (int64_t i = 0; i < ref_count(call, 0); i++)
        sum += ref_in(call, 0, i);
    ref_out(call, 0, 0, sqrt(sum));
    return ATT_OK;
}

static att_status run_factor(const att_call *call)
{
    double most = call->run->hyper->clip_norm, factor = most > 0 ? most / (ref_in(call, 0, 0) + 1e-6) : 1;
    ref_out(call, 0, 0, factor < 1 ? factor : 1);
    return ATT_OK;
}

const att_kernel att_ref_gradient_norm = {.op = "gradient_norm", .name = "ref", .run = run_norm};
const att_kernel att_ref_clip_factor = {.op = "clip_factor", .name = "ref", .run = run_factor};
