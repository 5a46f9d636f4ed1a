#include "engine/kernels/cpu/tier/pointwise.h"
#include "engine/kernels/cpu/tier/vmath.h"
#include "engine/kernels/cpu/tiered.h"

static att_status tanh_run(const att_call *call)
{
    return pointwise(call, v_tanh);
}

const att_kernel ATT_TIERED(att_cpu_tanh) = {
    .op = "tanh", .name = "simd", .features = ATT_TIER_FEATURES, .accepts = pointwise_accepts, .run = tanh_run};

/* The derivative of tanh, from its value y. */
ATT_INLINE vf slope_at(vf y)
{
    return v_fma(-y, y, v_set(1));
}

static att_status tanh_grad_run(const att_call *call)
{
    return pointwise_grad(call, slope_at);
}

const att_kernel ATT_TIERED(att_cpu_tanh_grad) = {.op = "tanh_grad",
                                                  .name = "simd",
                                                  .features = ATT_TIER_FEATURES,
                                                  .accepts = pointwise_grad_accepts,
                                                  .run = tanh_grad_run};
