#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static const double SLOPE = 1.702;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static att_status run_quick_gelu(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double x = ref_in(call, 0, e);
        ref_out(call, 0, e, x * sigmoid(SLOPE * x));
    }
    return ATT_OK;
}

const att_kernel att_ref_quick_gelu = {.op = "quick_gelu", .name = "ref", .run = run_quick_gelu};

static att_status run_grad(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double x = ref_in(call, 1, e), s = sigmoid(SLOPE * x);
        ref_out(call, 0, e, ref_in(call, 0, e) * s * (1 + SLOPE * x * (1 - s)));
    }
    return ATT_OK;
}

const att_kernel att_ref_quick_gelu_grad = {.op = "quick_gelu_grad", .name = "ref", .run = run_grad};
