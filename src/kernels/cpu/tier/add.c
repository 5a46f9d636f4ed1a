#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/floats.h"
#include "kernels/cpu/tiered.h"

/* b repeats over a: equal shapes, or the shape of a's last axes. */
ATT_INLINE void add_as(const att_call *call, bool narrow_b, bool relu)
{
    const att_problem *problem = call->problem;
    const float *a = call->in[0];
    const void *b = call->in[1];
    float *y = call->out[0];
    int64_t period = att_elements(call, &problem->in[1]);
    att_range part = att_part_of(call, att_elements(call, &problem->in[0]), VW);
    for (int64_t i = part.begin; i < part.end;) {
        int64_t offset = i % period, count = period - offset;
        count = count < part.end - i ? count : part.end - i;
#pragma omp simd
        for (int64_t j = 0; j < count; j++) {
            float sum = a[i + j] + att_float_get(b, offset + j, narrow_b);
            y[i + j] = relu && sum < 0 ? 0 : sum;
        }
        i += count;
    }
}

static att_status add_run(const att_call *call)
{
    bool relu = call->problem->attrs->add.activation == ATT_ACT_RELU;
    if (att_is_narrow(&call->problem->in[1]))
        add_as(call, true, relu);
    else if (relu)
        add_as(call, false, true);
    else
        add_as(call, false, false);
    return ATT_OK;
}

static bool add_accepts(const att_problem *problem)
{
    return att_takes_narrow(problem, 2, 0);
}

const att_kernel ATT_TIERED(att_cpu_add) = {
    .op = "add", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = add_accepts, .run = add_run};
