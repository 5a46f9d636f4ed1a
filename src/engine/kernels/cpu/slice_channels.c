#include "engine/ops/slice_channels.h"

#include <string.h>

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

/* Parts share the rows of all samples. */

static att_status slice_channels_run(const att_call *call)
{
    const att_channels_attrs *attrs = call->problem->attrs;
    int64_t total = att_columns(&call->problem->in[0]), count = attrs->count;
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++)
        memcpy((float *)call->out[0] + row * count, (const float *)call->in[0] + row * total + attrs->first,
               (size_t)count * sizeof(float));
    return ATT_OK;
}

static att_status slice_channels_grad_run(const att_call *call)
{
    const att_channels_attrs *attrs = call->problem->attrs;
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        float *to = (float *)call->out[0] + row * attrs->total;
        memset(to, 0, (size_t)attrs->total * sizeof(float));
        memcpy(to + attrs->first, (const float *)call->in[0] + row * attrs->count,
               (size_t)attrs->count * sizeof(float));
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(slice_channels, .run = slice_channels_run);
ATT_PLAIN_KERNEL(slice_channels_grad, .run = slice_channels_grad_run);
