#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/simd.h"
#include "kernels/cpu/tiered.h"

/* b repeats over a: equal shapes, or the shape of a's last axes. */
static att_status add_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    const float *a = call->in[0], *b = call->in[1];
    float *y = call->out[0];
    int64_t period = att_elements(call, &problem->in[1]);
    att_range part = att_part_of(call, att_elements(call, &problem->in[0]), VW);
    for (int64_t i = part.begin; i < part.end;) {
        int64_t offset = i % period, count = period - offset;
        count = count < part.end - i ? count : part.end - i;
#pragma omp simd
        for (int64_t j = 0; j < count; j++)
            y[i + j] = a[i + j] + b[offset + j];
        i += count;
    }
    return ATT_OK;
}

const att_kernel ATT_TIERED(att_cpu_add) = {
    .op = "add", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = att_takes_f32, .run = add_run};
