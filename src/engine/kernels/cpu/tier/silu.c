#include "engine/kernels/cpu/tier/pointwise.h"
#include "engine/kernels/cpu/tier/sigmoid.h"
#include "engine/kernels/cpu/tiered.h"

static att_status silu_run(const att_call *call)
{
    return pointwise(call, v_silu);
}

const att_kernel ATT_TIERED(att_cpu_silu) = {
    .op = "silu", .name = "simd", .features = ATT_TIER_FEATURES, .accepts = pointwise_accepts, .run = silu_run};

static att_status silu_grad_run(const att_call *call)
{
    return pointwise_grad(call, v_silu_slope);
}

const att_kernel ATT_TIERED(att_cpu_silu_grad) = {.op = "silu_grad",
                                                  .name = "simd",
                                                  .features = ATT_TIER_FEATURES,
                                                  .accepts = pointwise_grad_accepts,
                                                  .run = silu_grad_run};
