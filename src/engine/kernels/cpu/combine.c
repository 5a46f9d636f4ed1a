#include "engine/ops/combine.h"

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

/* In f64, as losses are differences of large numbers. Operands are small: losses and logits. */
static att_status combine_run(const att_call *call)
{
    const att_combine_attrs *attrs = ATT_ATTRS(call->problem, combine);
    const float *x = call->in[0], *z = call->in[1];
    float *y = call->out[0];
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), 16);
    for (int64_t i = part.begin; i < part.end; i++)
        y[i] = (float)(attrs->a * x[i] + (z ? attrs->b * z[i] : 0));
    return ATT_OK;
}

ATT_PLAIN_KERNEL(combine, .run = combine_run);
