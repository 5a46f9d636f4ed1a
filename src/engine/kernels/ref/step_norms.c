#include <math.h>

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

enum { BEFORE, AFTER, BRANCH, ADDED };

static att_status run_norms(const att_call *call)
{
    int64_t elements = att_shape_count(call->problem->in[BEFORE].shape);
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        double before = 0, step = 0, branch = 0, added = 0;
        for (int64_t e = sample * elements; e < (sample + 1) * elements; e++) {
            double x = ref_in(call, BEFORE, e), change = ref_in(call, AFTER, e) - x;
            double f = ref_has(call, BRANCH) ? ref_in(call, BRANCH, e) : change;
            before += x * x;
            step += change * change;
            double sum = ref_has(call, ADDED) ? ref_in(call, ADDED, e) : f;
            branch += f * f;
            added += sum * sum;
        }
        ref_out(call, 0, sample * 4, sqrt(before));
        ref_out(call, 0, sample * 4 + 1, sqrt(step));
        ref_out(call, 0, sample * 4 + 2, sqrt(branch));
        ref_out(call, 0, sample * 4 + 3, sqrt(added));
    }
    return ATT_OK;
}

const att_kernel att_ref_step_norms = {.op = "step_norms", .name = "ref", .run = run_norms};
