#include "engine/kernels/cpu/tier/pointwise.h"
#include "engine/kernels/cpu/tier/vmath.h"
#include "engine/kernels/cpu/tiered.h"

static att_status gelu_run(const att_call *call)
{
    return pointwise(call, v_gelu);
}

const att_kernel ATT_TIERED(att_cpu_gelu) = {
    .op = "gelu", .name = "simd", .features = ATT_TIER_FEATURES, .accepts = pointwise_accepts, .run = gelu_run};

static att_status gelu_grad_run(const att_call *call)
{
    return pointwise_grad(call, v_gelu_slope);
}

const att_kernel ATT_TIERED(att_cpu_gelu_grad) = {.op = "gelu_grad",
                                                  .name = "simd",
                                                  .features = ATT_TIER_FEATURES,
                                                  .accepts = pointwise_grad_accepts,
                                                  .run = gelu_grad_run};
