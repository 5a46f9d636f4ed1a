#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/rows.h"
#include "kernels/cpu/tiered.h"

/* Parts share the columns of all samples. */
static att_status token_mean_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    int64_t columns = att_columns(&problem->in[0]), tokens = att_rows(call, &problem->in[0]) / problem->group;
    int64_t first = problem->attrs->mean.first;
    att_range part = att_part_of(call, columns, VW);
    for (int64_t sample = 0; sample < problem->group; sample++) {
        const float *x = (const float *)call->in[0] + (sample * tokens + first) * columns;
        float *y = (float *)call->out[0] + sample * columns;
        for (int64_t c = part.begin; c < part.end; c++)
            y[c] = 0;
        rows_add(x, NULL, tokens - first, columns, part.begin, part.end, y);
        for (int64_t c = part.begin; c < part.end; c++)
            y[c] /= (float)(tokens - first);
    }
    return ATT_OK;
}

const att_kernel ATT_TIERED(att_cpu_token_mean) = {
    .op = "token_mean", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = att_takes_f32, .run = token_mean_run};

static att_status token_mean_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    const att_mean_attrs *attrs = &problem->attrs->mean;
    int64_t columns = att_columns(&problem->in[0]), total = attrs->total;
    att_range part = att_part_of(call, total * problem->group, 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        const float *dy = (const float *)call->in[0] + row / total * columns;
        float *dx = (float *)call->out[0] + row * columns;
        if (row % total < attrs->first) { /* not by a factor of 0, which NaN would survive */
            memset(dx, 0, (size_t)columns * sizeof *dx);
            continue;
        }
        float share = 1 / (float)(total - attrs->first);
#pragma omp simd
        for (int64_t c = 0; c < columns; c++)
            dx[c] = dy[c] * share;
    }
    return ATT_OK;
}

const att_kernel ATT_TIERED(att_cpu_token_mean_grad) = {.op = "token_mean_grad",
                                                        .name = "simd",
                                                        .tier = ATT_TIER_VALUE,
                                                        .accepts = att_takes_f32,
                                                        .run = token_mean_grad_run};
