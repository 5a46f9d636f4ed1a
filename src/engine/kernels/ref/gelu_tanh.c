#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static const double ROOT = 0.79788456080286535588; /* sqrt(2 / pi) */
static const double CUBIC = 0.044715;

static double inner(double x)
{
    return ROOT * (x + CUBIC * x * x * x);
}

static att_status run_gelu_tanh(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double x = ref_in(call, 0, e);
        ref_out(call, 0, e, 0.5 * x * (1 + tanh(inner(x))));
    }
    return ATT_OK;
}

const att_kernel att_ref_gelu_tanh = {.op = "gelu_tanh", .name = "ref", .run = run_gelu_tanh};

static att_status run_grad(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        double x = ref_in(call, 1, e), t = tanh(inner(x));
        double slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * ROOT * (1 + 3 * CUBIC * x * x);
        ref_out(call, 0, e, ref_in(call, 0, e) * slope);
    }
    return ATT_OK;
}

const att_kernel att_ref_gelu_tanh_grad = {.op = "gelu_tanh_grad", .name = "ref", .run = run_grad};
