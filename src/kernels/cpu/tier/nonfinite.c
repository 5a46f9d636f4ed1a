#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/simd.h"
#include "kernels/cpu/tiered.h"

/* NaN and infinities are what has all exponent bits set. */
static att_status nonfinite_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    int64_t count = att_elements(call, &problem->in[0]) / problem->group;
    att_range part = att_part_of(call, problem->group, 1);
    for (int64_t sample = part.begin; sample < part.end; sample++) {
        const float *x = (const float *)call->in[0] + sample * count;
        int32_t found = 0;
#pragma omp simd reduction(+ : found)
        for (int64_t i = 0; i < count; i++) {
            int32_t bits;
            memcpy(&bits, x + i, sizeof bits);
            found += (bits & 0x7f800000) == 0x7f800000;
        }
        ((int32_t *)call->out[0])[sample] = found;
    }
    return ATT_OK;
}

const att_kernel ATT_TIERED(att_cpu_nonfinite) = {
    .op = "nonfinite", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = att_takes_f32, .run = nonfinite_run};
