#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/rows.h"
#include "kernels/cpu/tiered.h"

static att_status scale_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    const float *gamma = call->in[1];
    int64_t columns = att_columns(&problem->in[0]);
    att_range part = att_part_of(call, att_rows(call, &problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        const float *x = (const float *)call->in[0] + row * columns;
        float *y = (float *)call->out[0] + row * columns;
#pragma omp simd
        for (int64_t c = 0; c < columns; c++)
            y[c] = x[c] * gamma[c];
    }
    return ATT_OK;
}

static att_status scale_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    int64_t columns = att_columns(&problem->in[0]);
    att_range part = att_part_of(call, columns, VW);
    rows_add(call->in[0], call->in[1], att_rows(call, &problem->in[0]), columns, part.begin, part.end, call->out[0]);
    return ATT_OK;
}

const att_kernel ATT_TIERED(att_cpu_scale) = {
    .op = "scale", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = att_takes_f32, .run = scale_run};
const att_kernel ATT_TIERED(att_cpu_scale_grad) = {
    .op = "scale_grad", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = att_takes_f32, .run = scale_grad_run};
