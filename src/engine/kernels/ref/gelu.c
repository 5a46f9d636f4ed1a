#include "engine/kernels/ref/gelu.h"

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_gelu(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++)
        ref_out(call, 0, e, ref_gelu(ref_in(call, 0, e)));
    return ATT_OK;
}

const att_kernel att_ref_gelu = {.op = "gelu", .name = "ref", .run = run_gelu};

static att_status run_grad(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double x = ref_in(call, 1, e);
        double density = 0.39894228040143267794 * exp(-0.5 * x * x); /* 1 / sqrt(2 pi) */
        ref_out(call, 0, e, ref_in(call, 0, e) * (ref_normal_cdf(x) + x * density));
    }
    return ATT_OK;
}

const att_kernel att_ref_gelu_grad = {.op = "gelu_grad", .name = "ref", .run = run_grad};
