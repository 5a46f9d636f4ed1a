#include <string.h>

#include "kernels/cpu/list.h"
#include "kernels/cpu/shape.h"

/* Runs of channels move whole. Parts share pixels, or rows, of all samples. */

static void copy(float *to, const float *from, int64_t channels)
{
    memcpy(to, from, (size_t)channels * sizeof(float));
}

static void clear(float *to, int64_t channels)
{
    memset(to, 0, (size_t)channels * sizeof(float));
}

static att_status shortcut_pad_run(const att_call *call)
{
    const att_shortcut_attrs *attrs = &call->problem->attrs->shortcut;
    const int64_t *x = call->problem->in[0].shape.dims, *y = call->problem->out[0].shape.dims;
    int64_t behind = y[2] - attrs->before - x[2];
    att_range part = att_part_of(call, call->problem->group * y[0] * y[1], 1);
    for (int64_t pixel = part.begin; pixel < part.end; pixel++) {
        int64_t sample = pixel / (y[0] * y[1]), i = pixel / y[1] % y[0], j = pixel % y[1];
        float *to = (float *)call->out[0] + pixel * y[2];
        clear(to, attrs->before);
        copy(to + attrs->before,
             (const float *)call->in[0] + ((sample * x[0] + attrs->stride * i) * x[1] + attrs->stride * j) * x[2],
             x[2]);
        clear(to + attrs->before + x[2], behind);
    }
    return ATT_OK;
}

static att_status shortcut_pad_grad_run(const att_call *call)
{
    const att_shortcut_attrs *attrs = &call->problem->attrs->shortcut;
    const int64_t *x = call->problem->out[0].shape.dims, *y = call->problem->in[0].shape.dims;
    att_range part = att_part_of(call, call->problem->group * x[0] * x[1], 1);
    for (int64_t pixel = part.begin; pixel < part.end; pixel++) {
        int64_t sample = pixel / (x[0] * x[1]), row = pixel / x[1] % x[0], column = pixel % x[1];
        int64_t from = (sample * y[0] + row / attrs->stride) * y[1] + column / attrs->stride;
        float *to = (float *)call->out[0] + pixel * x[2];
        if (row % attrs->stride == 0 && column % attrs->stride == 0)
            copy(to, (const float *)call->in[0] + from * y[2] + attrs->before, x[2]);
        else
            clear(to, x[2]);
    }
    return ATT_OK;
}

static att_status concat_run(const att_call *call)
{
    int64_t a = att_columns(&call->problem->in[0]), b = att_columns(&call->problem->in[1]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        float *y = (float *)call->out[0] + row * (a + b);
        copy(y, (const float *)call->in[0] + row * a, a);
        copy(y + a, (const float *)call->in[1] + row * b, b);
    }
    return ATT_OK;
}

static att_status concat_grad_run(const att_call *call)
{
    int64_t columns = att_columns(&call->problem->in[0]), a = call->problem->attrs->slice.count, b = columns - a;
    float *da = call->out[0], *db = call->out[1];
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        const float *dy = (const float *)call->in[0] + row * columns;
        if (da)
            copy(da + row * a, dy, a);
        if (db)
            copy(db + row * b, dy + a, b);
    }
    return ATT_OK;
}

const att_kernel att_cpu_shortcut_pad = {
    .op = "shortcut_pad", .name = "plain", .accepts = att_takes_f32, .run = shortcut_pad_run};
const att_kernel att_cpu_shortcut_pad_grad = {
    .op = "shortcut_pad_grad", .name = "plain", .accepts = att_takes_f32, .run = shortcut_pad_grad_run};
const att_kernel att_cpu_concat = {.op = "concat", .name = "plain", .accepts = att_takes_f32, .run = concat_run};
const att_kernel att_cpu_concat_grad = {
    .op = "concat_grad", .name = "plain", .accepts = att_takes_f32, .run = concat_grad_run};
