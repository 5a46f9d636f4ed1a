#include "engine/ops/rollout.h"

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status prepare_rollout(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = 2 * (size_t)problem->in[0].shape.dims[1] * sizeof(double);
    return ATT_OK;
}

/* next = row A, with the map that begins at element `first`. */
static void pass(const att_call *call, int64_t first, int64_t tokens, const double *row, double *next)
{
    for (int64_t j = 0; j < tokens; j++) {
        next[j] = 0;
        for (int64_t i = 0; i < tokens; i++)
            next[j] += row[i] * att_rollout_weight(ref_in(call, 0, first + i * tokens + j), i, j);
    }
}

static att_status run_rollout(const att_call *call)
{
    const int64_t layers = ref_dim(call, 0, 0), tokens = ref_dim(call, 0, 1);
    double *row = call->scratch, *next = row + tokens;
    ref_range share = ref_share(call, ref_rows(call, 0) / (layers * tokens));
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        for (int64_t i = 0; i < tokens; i++)
            row[i] = att_rollout_start(call->problem->attrs, i, tokens);
        for (int64_t layer = layers - 1; layer >= 0; layer--) {
            pass(call, (sample * layers + layer) * tokens * tokens, tokens, row, next);
            double *passed = next;
            next = row, row = passed;
        }
        for (int64_t i = 0; i < tokens; i++)
            ref_out(call, 0, sample * tokens + i, row[i]);
    }
    return ATT_OK;
}

const att_kernel att_ref_rollout = {.op = "rollout", .name = "ref", .prepare = prepare_rollout, .run = run_rollout};
