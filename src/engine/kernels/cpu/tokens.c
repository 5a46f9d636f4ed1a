#include <string.h>

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/ops/slice_tokens.h"

/* Kernels that copy rows of tokens. Parts share the output's rows of all samples. */

static void copy_row(float *to, const float *from, int64_t columns)
{
    memcpy(to, from, (size_t)columns * sizeof(float));
}

static att_status prepend_tokens_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    int64_t total = problem->out[0].shape.dims[0], rows = problem->in[1].shape.dims[0];
    int64_t columns = att_columns(&problem->out[0]), first = total - rows;
    att_range part = att_part_of(call, problem->group * total, 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        int64_t sample = i / total, row = i % total;
        const float *from = row < first ? (const float *)call->in[0] + row * columns
                                        : (const float *)call->in[1] + (sample * rows + row - first) * columns;
        copy_row((float *)call->out[0] + i * columns, from, columns);
    }
    return ATT_OK;
}

static att_status slice_tokens_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    int64_t total = problem->in[0].shape.dims[0], count = ATT_ATTRS(problem, slice)->count;
    int64_t columns = att_columns(&problem->in[0]), first = ATT_ATTRS(problem, slice)->first;
    att_range part = att_part_of(call, problem->group * count, 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        int64_t row = i / count * total + first + i % count;
        copy_row((float *)call->out[0] + i * columns, (const float *)call->in[0] + row * columns, columns);
    }
    return ATT_OK;
}

static att_status slice_tokens_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    const att_slice_attrs *attrs = problem->attrs;
    int64_t total = attrs->total, count = attrs->count, columns = att_columns(&problem->in[0]);
    att_range part = att_part_of(call, problem->group * total, 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        int64_t row = i % total - attrs->first;
        float *to = (float *)call->out[0] + i * columns;
        if (row >= 0 && row < count)
            copy_row(to, (const float *)call->in[0] + (i / total * count + row) * columns, columns);
        else
            memset(to, 0, (size_t)columns * sizeof(float));
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(prepend_tokens, .run = prepend_tokens_run);
ATT_PLAIN_KERNEL(slice_tokens, .run = slice_tokens_run);
ATT_PLAIN_KERNEL(slice_tokens_grad, .run = slice_tokens_grad_run);
