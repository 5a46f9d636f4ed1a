#include <math.h>

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tiered.h"

enum { BEFORE, AFTER, BRANCH, ADDED, IN_COUNT };
enum { RUN = 4096 }; /* elements whose squares are summed in f32 */

typedef struct sums {
    double before, step, branch, added;
} sums;

/* The inputs of a call; constants where it matters for speed. */
typedef struct inputs {
    bool is_bf16[IN_COUNT], branch, added;
} inputs;

ATT_INLINE void add_run(const att_call *call, int64_t begin, int64_t end, inputs in, sums *total)
{
    vf before = {0}, step = {0}, branch = {0}, added = {0};
    for (int64_t i = begin; i < end; i += VW) {
        vf x = v_get_until(call->in[BEFORE], i, end, in.is_bf16[BEFORE]);
        vf change = v_get_until(call->in[AFTER], i, end, in.is_bf16[AFTER]) - x;
        before = v_fma(x, x, before);
        step = v_fma(change, change, step);
        if (in.branch) {
            vf f = v_get_until(call->in[BRANCH], i, end, in.is_bf16[BRANCH]);
            branch = v_fma(f, f, branch);
        }
        if (in.added) {
            vf f = v_get_until(call->in[ADDED], i, end, in.is_bf16[ADDED]);
            added = v_fma(f, f, added);
        }
    }
    vf of_branch = in.branch ? branch : step;
    total->before += (double)v_sum(before);
    total->step += (double)v_sum(step);
    total->branch += (double)v_sum(of_branch);
    total->added += (double)v_sum(in.added ? added : of_branch);
}

ATT_INLINE void step_norms_as(const att_call *call, inputs in)
{
    int64_t elements = att_elements(call, &call->problem->in[BEFORE]) / call->problem->group;
    att_range part = att_part_of(call, call->problem->group, 1);
    for (int64_t sample = part.begin; sample < part.end; sample++) {
        sums total = {0};
        int64_t end = (sample + 1) * elements;
        for (int64_t begin = sample * elements; begin < end; begin += RUN)
            add_run(call, begin, end - begin < RUN ? end : begin + RUN, in, &total);
        float *out = (float *)call->out[0] + 4 * sample;
        out[0] = (float)sqrt(total.before);
        out[1] = (float)sqrt(total.step);
        out[2] = (float)sqrt(total.branch);
        out[3] = (float)sqrt(total.added);
    }
}

/* Parts share the samples. The common case, an f32 residual stream without a branch, is compiled separately. */
static att_status step_norms_run(const att_call *call)
{
    inputs in = {.branch = call->in[BRANCH] != NULL, .added = call->in[ADDED] != NULL};
    for (int i = 0; i < IN_COUNT; i++)
        in.is_bf16[i] = att_is_bf16(&call->problem->in[i]);
    if (in.branch || in.added || in.is_bf16[BEFORE] || in.is_bf16[AFTER])
        step_norms_as(call, in);
    else
        step_norms_as(call, (inputs){.branch = false, .added = false});
    return ATT_OK;
}

ATT_SIMD_KERNEL(step_norms, .bf16_in = (1u << IN_COUNT) - 1, .run = step_norms_run);
