#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/ops/concat.h"
#include "engine/ops/shortcut_pad.h"

/* Kernels that copy runs of channels. Parts share the pixels or rows of all samples. */

/* Copies `count` channels from index `from` of input `in` to index `to` of output `out`. */
static void copy(const att_call *call, int in, int64_t from, int out, int64_t to, int64_t count)
{
    att_float_move(call->in[in], from, att_is_bf16(&call->problem->in[in]), call->out[out], to,
                   att_is_bf16(&call->problem->out[out]), count);
}

static void clear(const att_call *call, int64_t to, int64_t count)
{
    att_float_clear(call->out[0], to, att_is_bf16(&call->problem->out[0]), count);
}

static att_status shortcut_pad_run(const att_call *call)
{
    const att_shortcut_attrs *attrs = call->problem->attrs;
    const int64_t *x = call->problem->in[0].shape.dims, *y = call->problem->out[0].shape.dims;
    int64_t after = y[2] - attrs->before - x[2];
    att_range part = att_part_of(call, call->problem->group * y[0] * y[1], 1);
    for (int64_t pixel = part.begin; pixel < part.end; pixel++) {
        int64_t sample = pixel / (y[0] * y[1]), i = pixel / y[1] % y[0], j = pixel % y[1];
        int64_t from = (sample * x[0] + attrs->stride * i) * x[1] + attrs->stride * j, to = pixel * y[2];
        clear(call, to, attrs->before);
        copy(call, 0, from * x[2], 0, to + attrs->before, x[2]);
        clear(call, to + attrs->before + x[2], after);
    }
    return ATT_OK;
}

static att_status shortcut_pad_grad_run(const att_call *call)
{
    const att_shortcut_attrs *attrs = call->problem->attrs;
    const int64_t *x = call->problem->out[0].shape.dims, *y = call->problem->in[0].shape.dims;
    att_range part = att_part_of(call, call->problem->group * x[0] * x[1], 1);
    for (int64_t pixel = part.begin; pixel < part.end; pixel++) {
        int64_t sample = pixel / (x[0] * x[1]), row = pixel / x[1] % x[0], column = pixel % x[1];
        int64_t from = (sample * y[0] + row / attrs->stride) * y[1] + column / attrs->stride;
        if (row % attrs->stride == 0 && column % attrs->stride == 0)
            copy(call, 0, from * y[2] + attrs->before, 0, pixel * x[2], x[2]);
        else
            clear(call, pixel * x[2], x[2]);
    }
    return ATT_OK;
}

static att_status concat_run(const att_call *call)
{
    int64_t a = att_columns(&call->problem->in[0]), b = att_columns(&call->problem->in[1]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        copy(call, 0, row * a, 0, row * (a + b), a);
        copy(call, 1, row * b, 0, row * (a + b) + a, b);
    }
    return ATT_OK;
}

static att_status concat_grad_run(const att_call *call)
{
    int64_t columns = att_columns(&call->problem->in[0]), a = ATT_ATTRS(call->problem, concat)->first, b = columns - a;
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        if (call->out[0])
            copy(call, 0, row * columns, 0, row * a, a);
        if (call->out[1])
            copy(call, 0, row * columns + a, 1, row * b, b);
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(shortcut_pad, .bf16_in = 1, .bf16_out = 1, .run = shortcut_pad_run);
ATT_PLAIN_KERNEL(shortcut_pad_grad, .bf16_in = 1, .bf16_out = 1, .run = shortcut_pad_grad_run);
ATT_PLAIN_KERNEL(concat, .bf16_in = 3, .bf16_out = 1, .run = concat_run);
ATT_PLAIN_KERNEL(concat_grad, .bf16_in = 1, .bf16_out = 3, .run = concat_grad_run);
