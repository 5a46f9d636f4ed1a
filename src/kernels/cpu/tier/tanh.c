#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/floats.h"
#include "kernels/cpu/tier/vmath.h"
#include "kernels/cpu/tiered.h"

static att_status tanh_run(const att_call *call)
{
    bool narrow = att_is_narrow(&call->problem->in[0]);
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), VW);
    for (int64_t i = part.begin; i < part.end; i += VW)
        v_put_until(call->out[0], i, part.end, v_tanh(v_get_until(call->in[0], i, part.end, narrow)), false);
    return ATT_OK;
}

static bool tanh_accepts(const att_problem *problem)
{
    return att_takes_narrow(problem, 1, 0);
}

const att_kernel ATT_TIERED(att_cpu_tanh) = {
    .op = "tanh", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = tanh_accepts, .run = tanh_run};

static att_status tanh_grad_run(const att_call *call)
{
    bool narrow_dy = att_is_narrow(&call->problem->in[0]), narrow_dx = att_is_narrow(&call->problem->out[0]);
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), VW);
    for (int64_t i = part.begin; i < part.end; i += VW) {
        vf dy = v_get_until(call->in[0], i, part.end, narrow_dy), y = v_get_until(call->in[1], i, part.end, false);
        v_put_until(call->out[0], i, part.end, dy * v_fma(-y, y, v_set(1)), narrow_dx);
    }
    return ATT_OK;
}

static bool tanh_grad_accepts(const att_problem *problem)
{
    return att_takes_narrow(problem, 1, 1);
}

const att_kernel ATT_TIERED(att_cpu_tanh_grad) = {
    .op = "tanh_grad", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = tanh_grad_accepts, .run = tanh_grad_run};
