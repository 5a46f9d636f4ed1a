#include "engine/ops/window_pad.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

/* Copies whole tokens; parts share those of the output of all samples. */
static void move(const att_call *call, int64_t (*token_of)(const att_window_pad_attrs *, int64_t))
{
    const int64_t *x = call->problem->in[0].shape.dims, *y = call->problem->out[0].shape.dims;
    bool x_is_bf16 = att_is_bf16(&call->problem->in[0]), y_is_bf16 = att_is_bf16(&call->problem->out[0]);
    att_range part = att_part_of(call, call->problem->group * y[0], 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t from = token_of(call->problem->attrs, row % y[0]), to = row * y[1];
        if (from < 0)
            att_float_clear(call->out[0], to, y_is_bf16, y[1]);
        else
            att_float_move(call->in[0], (row / y[0] * x[0] + from) * y[1], x_is_bf16, call->out[0], to, y_is_bf16,
                           y[1]);
    }
}

static att_status pad_run(const att_call *call)
{
    move(call, att_window_pad_source);
    return ATT_OK;
}

static att_status crop_run(const att_call *call)
{
    move(call, att_window_pad_place);
    return ATT_OK;
}

ATT_PLAIN_KERNEL(window_pad, .bf16_in = 1, .bf16_out = 1, .run = pad_run);
ATT_PLAIN_KERNEL(window_crop, .bf16_in = 1, .bf16_out = 1, .run = crop_run);
