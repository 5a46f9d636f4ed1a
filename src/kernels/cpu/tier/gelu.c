#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/floats.h"
#include "kernels/cpu/tier/vmath.h"
#include "kernels/cpu/tiered.h"

ATT_INLINE void gelu_as(const att_call *call, bool narrow_x, bool narrow_y)
{
    const void *x = call->in[0];
    void *y = call->out[0];
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), VW);
    int64_t i = part.begin;
    for (; i + 2 * VW <= part.end; i += 2 * VW)
        v_put_pair(y, i, v_gelu(v_get(x, i, narrow_x)), v_gelu(v_get(x, i + VW, narrow_x)), narrow_y);
    for (; i < part.end; i += VW)
        v_put_until(y, i, part.end, v_gelu(v_get_until(x, i, part.end, narrow_x)), narrow_y);
}

static att_status gelu_run(const att_call *call)
{
    bool x = att_is_narrow(&call->problem->in[0]), y = att_is_narrow(&call->problem->out[0]);
    if (!x && !y)
        gelu_as(call, false, false);
    else if (x && y)
        gelu_as(call, true, true);
    else
        gelu_as(call, x, y);
    return ATT_OK;
}

static bool gelu_accepts(const att_problem *problem)
{
    return att_takes_narrow(problem, 1, 1);
}

const att_kernel ATT_TIERED(att_cpu_gelu) = {
    .op = "gelu", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = gelu_accepts, .run = gelu_run};

ATT_INLINE vf slope_times(const void *dy, const void *x, int64_t i, int64_t end, bool narrow_dy, bool narrow_x)
{
    return v_get_until(dy, i, end, narrow_dy) * v_gelu_slope(v_get_until(x, i, end, narrow_x));
}

ATT_INLINE void gelu_grad_as(const att_call *call, bool narrow_dy, bool narrow_x, bool narrow_dx)
{
    const void *dy = call->in[0], *x = call->in[1];
    void *dx = call->out[0];
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), VW);
    int64_t i = part.begin, end = part.end;
    for (; i + 2 * VW <= end; i += 2 * VW)
        v_put_pair(dx, i, slope_times(dy, x, i, end, narrow_dy, narrow_x),
                   slope_times(dy, x, i + VW, end, narrow_dy, narrow_x), narrow_dx);
    for (; i < end; i += VW)
        v_put_until(dx, i, end, slope_times(dy, x, i, end, narrow_dy, narrow_x), narrow_dx);
}

static att_status gelu_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    bool dy = att_is_narrow(&problem->in[0]), x = att_is_narrow(&problem->in[1]), dx = att_is_narrow(&problem->out[0]);
    if (!dy && !x && !dx)
        gelu_grad_as(call, false, false, false);
    else if (dy && x && dx)
        gelu_grad_as(call, true, true, true);
    else
        gelu_grad_as(call, dy, x, dx);
    return ATT_OK;
}

static bool gelu_grad_accepts(const att_problem *problem)
{
    return att_takes_narrow(problem, 3, 1);
}

const att_kernel ATT_TIERED(att_cpu_gelu_grad) = {
    .op = "gelu_grad", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = gelu_grad_accepts, .run = gelu_grad_run};
