#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tiered.h"

ATT_INLINE void cast_as(const att_call *call, bool x_is_bf16, bool y_is_bf16)
{
    att_range part = att_part_of(call, att_elements(call, &call->problem->in[0]), VW);
    int64_t i = part.begin;
    for (; i + VW <= part.end; i += VW)
        v_put(call->out[0], i, v_get(call->in[0], i, x_is_bf16), y_is_bf16);
    if (i < part.end)
        v_put_part(call->out[0], i, v_get_part(call->in[0], i, part.end - i, x_is_bf16), part.end - i, y_is_bf16);
}

static att_status cast_run(const att_call *call)
{
    bool x = att_is_bf16(&call->problem->in[0]), y = att_is_bf16(&call->problem->out[0]);
    if (!x && y)
        cast_as(call, false, true);
    else
        cast_as(call, x, y);
    return ATT_OK;
}

ATT_SIMD_KERNEL(cast, .bf16_in = 1, .bf16_out = 1, .run = cast_run);
