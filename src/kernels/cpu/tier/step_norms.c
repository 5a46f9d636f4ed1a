#include <math.h>

#include "kernels/cpu/shape.h"
#include "kernels/cpu/tier/floats.h"
#include "kernels/cpu/tiered.h"

enum { BEFORE, AFTER, BRANCH };
enum { RUN = 4096 }; /* elements whose squares are summed in f32 */

typedef struct sums {
    double before, step, branch;
} sums;

ATT_INLINE void add_run(const att_call *call, int64_t begin, int64_t end, const bool *is_bf16, bool branch, sums *total)
{
    vf before = {0}, step = {0}, other = {0};
    for (int64_t i = begin; i < end; i += VW) {
        vf x = v_get_until(call->in[BEFORE], i, end, is_bf16[BEFORE]);
        vf change = v_get_until(call->in[AFTER], i, end, is_bf16[AFTER]) - x;
        before = v_fma(x, x, before);
        step = v_fma(change, change, step);
        if (branch) {
            vf f = v_get_until(call->in[BRANCH], i, end, is_bf16[BRANCH]);
            other = v_fma(f, f, other);
        }
    }
    total->before += (double)v_sum(before);
    total->step += (double)v_sum(step);
    total->branch += (double)v_sum(branch ? other : step);
}

ATT_INLINE void step_norms_as(const att_call *call, const bool *is_bf16, bool branch)
{
    int64_t elements = att_elements(call, &call->problem->in[BEFORE]) / call->problem->group;
    att_range part = att_part_of(call, call->problem->group, 1);
    for (int64_t sample = part.begin; sample < part.end; sample++) {
        sums total = {0};
        int64_t end = (sample + 1) * elements;
        for (int64_t begin = sample * elements; begin < end; begin += RUN)
            add_run(call, begin, end - begin < RUN ? end : begin + RUN, is_bf16, branch, &total);
        float *out = (float *)call->out[0] + 3 * sample;
        out[0] = (float)sqrt(total.before);
        out[1] = (float)sqrt(total.step);
        out[2] = (float)sqrt(total.branch);
    }
}

/* Parts share the samples. The common case, an f32 residual stream without a branch, is compiled separately. */
static att_status step_norms_run(const att_call *call)
{
    static const bool wide[3] = {false, false, false};
    const att_desc *in = call->problem->in;
    bool is_bf16[3] = {att_is_bf16(&in[BEFORE]), att_is_bf16(&in[AFTER]), att_is_bf16(&in[BRANCH])};
    if (!call->in[BRANCH] && !is_bf16[BEFORE] && !is_bf16[AFTER])
        step_norms_as(call, wide, false);
    else
        step_norms_as(call, is_bf16, call->in[BRANCH] != NULL);
    return ATT_OK;
}

static bool step_norms_accepts(const att_problem *problem)
{
    return att_accepts_bf16(problem, 7, 0);
}

const att_kernel ATT_TIERED(att_cpu_step_norms) = {
    .op = "step_norms", .name = "simd", .tier = ATT_TIER_VALUE, .accepts = step_norms_accepts, .run = step_norms_run};
