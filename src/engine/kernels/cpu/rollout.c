/* As the reference kernel, with the map read row by row. */
#include "engine/ops/rollout.h"

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

static att_status rollout_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = 2 * (size_t)problem->in[0].shape.dims[1] * sizeof(double);
    return ATT_OK;
}

/* next = row A */
static void pass(const float *map, int64_t tokens, const double *row, double *restrict next)
{
    for (int64_t j = 0; j < tokens; j++)
        next[j] = 0.5 * row[j];
    for (int64_t i = 0; i < tokens; i++)
        for (int64_t j = 0; j < tokens; j++)
            next[j] += 0.5 * row[i] * (double)map[i * tokens + j];
}

/* Parts share the samples. */
static att_status rollout_run(const att_call *call)
{
    const int64_t *dims = call->problem->in[0].shape.dims, layers = dims[0], tokens = dims[1];
    double *row = call->scratch, *next = row + tokens;
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]) / (layers * tokens), 1);
    for (int64_t sample = part.begin; sample < part.end; sample++) {
        const float *maps = (const float *)call->in[0] + sample * layers * tokens * tokens;
        for (int64_t i = 0; i < tokens; i++)
            row[i] = att_rollout_start(call->problem->attrs, i, tokens);
        for (int64_t layer = layers - 1; layer >= 0; layer--) {
            pass(maps + layer * tokens * tokens, tokens, row, next);
            double *passed = next;
            next = row, row = passed;
        }
        for (int64_t i = 0; i < tokens; i++)
            ((float *)call->out[0])[sample * tokens + i] = (float)row[i];
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(rollout, .prepare = rollout_prepare, .run = rollout_run);
