#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"

static att_status run(const att_call *call)
{
    const att_desc *x = &call->problem->in[0], *y = &call->problem->out[0];
    att_range part = att_part_of(call, att_elements(call, x), 16);
    att_float_move(call->in[0], part.begin, att_is_bf16(x), call->out[0], part.begin, att_is_bf16(y),
                   part.end - part.begin);
    return ATT_OK;
}

ATT_PLAIN_KERNEL(reshape, .bf16_in = 1, .bf16_out = 1, .run = run);
