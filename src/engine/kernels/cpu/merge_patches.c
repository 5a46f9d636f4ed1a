#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

/* Copies whole pixels. A pixel of the merged map consists of four: (0, 0), (1, 0), (0, 1), (1, 1). */
enum { QUARTERS = 4 };

/* Parts share the quarters of the merged pixels of all samples. */
static att_status merge_patches_run(const att_call *call)
{
    const int64_t *x = call->problem->in[0].shape.dims, *y = call->problem->out[0].shape.dims;
    bool x_is_bf16 = att_is_bf16(&call->problem->in[0]), y_is_bf16 = att_is_bf16(&call->problem->out[0]);
    att_range part = att_part_of(call, call->problem->group * y[0] * y[1] * QUARTERS, 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        int64_t pixel = i / QUARTERS, sample = pixel / (y[0] * y[1]);
        int64_t row = 2 * (pixel / y[1] % y[0]) + i % 2, column = 2 * (pixel % y[1]) + i / 2 % 2;
        int64_t from = (sample * x[0] + row) * x[1] + column;
        if (row < x[0] && column < x[1])
            att_float_move(call->in[0], from * x[2], x_is_bf16, call->out[0], i * x[2], y_is_bf16, x[2]);
        else
            att_float_clear(call->out[0], i * x[2], y_is_bf16, x[2]);
    }
    return ATT_OK;
}

/* Parts share the pixels of dx of all samples. */
static att_status merge_patches_grad_run(const att_call *call)
{
    const int64_t *x = call->problem->out[0].shape.dims, *y = call->problem->in[0].shape.dims;
    bool y_is_bf16 = att_is_bf16(&call->problem->in[0]), x_is_bf16 = att_is_bf16(&call->problem->out[0]);
    att_range part = att_part_of(call, call->problem->group * x[0] * x[1], 1);
    for (int64_t pixel = part.begin; pixel < part.end; pixel++) {
        int64_t sample = pixel / (x[0] * x[1]), row = pixel / x[1] % x[0], column = pixel % x[1];
        int64_t from = ((sample * y[0] + row / 2) * y[1] + column / 2) * QUARTERS + column % 2 * 2 + row % 2;
        att_float_move(call->in[0], from * x[2], y_is_bf16, call->out[0], pixel * x[2], x_is_bf16, x[2]);
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(merge_patches, .bf16_in = 1, .bf16_out = 1, .run = merge_patches_run);
ATT_PLAIN_KERNEL(merge_patches_grad, .bf16_in = 1, .bf16_out = 1, .run = merge_patches_grad_run);
