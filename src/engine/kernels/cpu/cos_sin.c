#include <math.h>

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

static att_status cos_sin_run(const att_call *call)
{
    const float *x = call->in[0];
    float *y = call->out[0];
    int64_t columns = att_columns(&call->problem->in[0]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++)
        for (int64_t c = 0; c < columns; c++) {
            y[row * 2 * columns + c] = cosf(x[row * columns + c]);
            y[row * 2 * columns + columns + c] = sinf(x[row * columns + c]);
        }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(cos_sin, .run = cos_sin_run);

static att_status cos_sin_grad_run(const att_call *call)
{
    const float *dy = call->in[0], *y = call->in[1];
    float *dx = call->out[0];
    int64_t columns = att_columns(&call->problem->in[0]) / 2;
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        const float *dcos = dy + row * 2 * columns, *cosine = y + row * 2 * columns;
        for (int64_t c = 0; c < columns; c++)
            dx[row * columns + c] = dcos[columns + c] * cosine[c] - dcos[c] * cosine[columns + c];
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(cos_sin_grad, .run = cos_sin_grad_run);
