#include "engine/ops/embed.h"
#include <math.h>

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

/* Parts share the indices of all samples. */
static att_status embed_run(const att_call *call)
{
    int64_t rows = call->problem->in[0].shape.dims[0], columns = att_columns(&call->problem->in[0]);
    const int32_t *indices = call->in[1];
    float *y = call->out[0];
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[1]), 1);
    for (int64_t i = part.begin; i < part.end; i++)
        if (indices[i] >= 0 && indices[i] < rows)
            att_float_move(call->in[0], indices[i] * columns, false, y, i * columns, false, columns);
        else
            for (int64_t c = 0; c < columns; c++)
                y[i * columns + c] = NAN;
    return ATT_OK;
}

/* Parts share the rows of the table, so that the order in which a row is summed does not depend on the number of parts.
 */
static att_status embed_grad_run(const att_call *call)
{
    int64_t columns = att_columns(&call->problem->in[0]), count = att_elements(call, &call->problem->in[1]);
    const int32_t *indices = call->in[1];
    att_range part = att_part_of(call, ATT_ATTRS(call->problem, embed)->rows, 1);
    for (int64_t i = 0; i < count; i++) {
        if (indices[i] < part.begin || indices[i] >= part.end)
            continue;
        const float *dy = (const float *)call->in[0] + i * columns;
        float *row = (float *)call->out[0] + indices[i] * columns;
        for (int64_t c = 0; c < columns; c++)
            row[c] += dy[c];
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(embed, .run = embed_run);
ATT_PLAIN_KERNEL(embed_grad, .run = embed_grad_run);
