#include "engine/kernels/cpu/tier/pointwise.h"
#include "engine/kernels/cpu/tier/vmath.h"
#include "engine/kernels/cpu/tiered.h"

/* For x < -88 the result is that for -88, 6e-39. */
ATT_INLINE vf v_sigmoid(vf x)
{
    return v_set(1) / (v_exp(v_min(v_set(88), -x)) + 1);
}

static att_status sigmoid_run(const att_call *call)
{
    return pointwise(call, v_sigmoid);
}

const att_kernel ATT_TIERED(att_cpu_sigmoid) = {
    .op = "sigmoid", .name = "simd", .features = ATT_TIER_FEATURES, .accepts = pointwise_accepts, .run = sigmoid_run};

static att_status sigmoid_grad_run(const att_call *call)
{
    bool is_bf16 = att_is_bf16(&call->problem->out[0]);
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), VW);
    for (int64_t i = part.begin; i < part.end; i += VW) {
        vf dy = v_get_until(call->in[0], i, part.end, false), y = v_get_until(call->in[1], i, part.end, false);
        v_put_until(call->out[0], i, part.end, dy * y * (v_set(1) - y), is_bf16);
    }
    return ATT_OK;
}

static bool sigmoid_grad_accepts(const att_problem *problem)
{
    return att_accepts_bf16(problem, 0, 1);
}

const att_kernel ATT_TIERED(att_cpu_sigmoid_grad) = {.op = "sigmoid_grad",
                                                     .name = "simd",
                                                     .features = ATT_TIER_FEATURES,
                                                     .accepts = sigmoid_grad_accepts,
                                                     .run = sigmoid_grad_run};
