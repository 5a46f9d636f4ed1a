#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/rows.h"
#include "engine/kernels/cpu/tiered.h"

/* Samples and leading axes are the rows; the remaining axes are the columns. */
static att_status sum_samples_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    int64_t columns = att_elements(call, &problem->out[0]);
    int64_t rows = att_elements(call, &problem->in[0]) / columns;
    att_range part = att_part_of(call, columns, VW);
    for (int64_t times = problem->in[0].kind == ATT_BATCH ? problem->group : 1; times > 0; times--)
        rows_add(call->in[0], NULL, rows, columns, part.begin, part.end, call->out[0]);
    return ATT_OK;
}

ATT_SIMD_KERNEL(sum_samples, .run = sum_samples_run);
