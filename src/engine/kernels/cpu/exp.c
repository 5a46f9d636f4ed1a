#include <math.h>

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

/* Networks take exponentials of a few numbers only. */
static att_status exp_run(const att_call *call)
{
    const float *x = call->in[0];
    float *y = call->out[0];
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), 1);
    for (int64_t i = part.begin; i < part.end; i++)
        y[i] = expf(x[i]);
    return ATT_OK;
}

static att_status exp_grad_run(const att_call *call)
{
    const float *dy = call->in[0], *y = call->in[1];
    float *dx = call->out[0];
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), 1);
    for (int64_t i = part.begin; i < part.end; i++)
        dx[i] = dy[i] * y[i];
    return ATT_OK;
}

ATT_PLAIN_KERNEL(exp, .run = exp_run);
ATT_PLAIN_KERNEL(exp_grad, .run = exp_grad_run);
