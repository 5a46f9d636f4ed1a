#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/vmath.h"
#include "kernels/cpu/tiered.h"

static att_status gelu_run(const att_call *call)
{
    const float *x = call->in[0];
    float *y = call->out[0];
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), VW);
    int64_t i = part.begin;
    for (; i + VW <= part.end; i += VW)
        v_store(y + i, v_gelu(v_load(x + i)));
    if (i < part.end)
        v_store_part(y + i, v_gelu(v_load_part(x + i, part.end - i)), part.end - i);
    return ATT_OK;
}

static att_status gelu_grad_run(const att_call *call)
{
    const float *dy = call->in[0], *x = call->in[1];
    float *dx = call->out[0];
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), VW);
    int64_t i = part.begin;
    for (; i + VW <= part.end; i += VW)
        v_store(dx + i, v_load(dy + i) * v_gelu_slope(v_load(x + i)));
    if (i < part.end) {
        int64_t n = part.end - i;
        v_store_part(dx + i, v_load_part(dy + i, n) * v_gelu_slope(v_load_part(x + i, n)), n);
    }
    return ATT_OK;
}

const att_kernel ATT_TIERED(att_cpu_gelu) = {
    .op = "gelu", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = att_takes_f32, .run = gelu_run};
const att_kernel ATT_TIERED(att_cpu_gelu_grad) = {
    .op = "gelu_grad", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = att_takes_f32, .run = gelu_grad_run};
