#include "engine/ops/windows.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

/* Copies whole pixels between the map [rows, columns, channels] of each sample and its windows. Parts share the pixels
 * of the windows of all samples. */
static void move(const att_call *call, const int64_t *map, bool back)
{
    bool x_is_bf16 = att_is_bf16(&call->problem->in[0]), y_is_bf16 = att_is_bf16(&call->problem->out[0]);
    int64_t pixels = map[0] * map[1], channels = map[2];
    att_range part = att_part_of(call, call->problem->group * pixels, 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t pixel = row / pixels * pixels + att_windows_pixel(call->problem->attrs, map[0], map[1], row % pixels);
        int64_t from = back ? row : pixel, to = back ? pixel : row;
        att_float_move(call->in[0], from * channels, x_is_bf16, call->out[0], to * channels, y_is_bf16, channels);
    }
}

static att_status windows_run(const att_call *call)
{
    move(call, call->problem->in[0].shape.dims, false);
    return ATT_OK;
}

static att_status windows_back_run(const att_call *call)
{
    move(call, call->problem->out[0].shape.dims, true);
    return ATT_OK;
}

ATT_PLAIN_KERNEL(windows, .bf16_in = 1, .bf16_out = 1, .run = windows_run);
ATT_PLAIN_KERNEL(windows_back, .bf16_in = 1, .bf16_out = 1, .run = windows_back_run);
