#include <math.h>

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/activation.h"
#include "engine/ops/add.h"

/* Which operands are bf16. */
typedef struct sum_form {
    bool a_is_bf16, b_is_bf16, y_is_bf16;
} sum_form;

/* Elements [i, i + VW) of y, of which those before `end` are valid. Element i of a is added to element i - b_begin of
 * b. NaN stays NaN. */
ATT_INLINE vf sum_at(const att_call *call, sum_form f, vf least, int64_t i, int64_t b_begin, int64_t end)
{
    vf a = v_get_until(call->in[0], i, end, f.a_is_bf16);
    return v_max(least, a + v_get_until(call->in[1], i - b_begin, end - b_begin, f.b_is_bf16));
}

/* b is repeated over a: it has a's shape, or the shape of a's last axes. */
ATT_INLINE void add_as(const att_call *call, sum_form f)
{
    const att_problem *problem = call->problem;
    void *y = call->out[0];
    vf least = v_set(ATT_ATTRS(problem, add)->activation == ATT_ACT_RELU ? 0 : -INFINITY);
    int64_t period = att_elements(call, &problem->in[1]);
    att_range part = att_part_of(call, att_elements(call, &problem->in[0]), VW);
    for (int64_t i = part.begin; i < part.end;) {
        int64_t b_begin = i / period * period, end = b_begin + period < part.end ? b_begin + period : part.end;
        for (; i + 2 * VW <= end; i += 2 * VW)
            v_put_pair(y, i, sum_at(call, f, least, i, b_begin, end), sum_at(call, f, least, i + VW, b_begin, end),
                       f.y_is_bf16);
        for (; i < end; i += VW)
            v_put_until(y, i, end, sum_at(call, f, least, i, b_begin, end), f.y_is_bf16);
        i = end;
    }
}

static att_status add_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    sum_form f = {att_is_bf16(&problem->in[0]), att_is_bf16(&problem->in[1]), att_is_bf16(&problem->out[0])};
    if (f.a_is_bf16 && f.b_is_bf16 && f.y_is_bf16)
        add_as(call, (sum_form){true, true, true});
    else if (!f.a_is_bf16 && !f.b_is_bf16 && !f.y_is_bf16)
        add_as(call, (sum_form){false, false, false});
    else if (!f.a_is_bf16 && f.b_is_bf16 && !f.y_is_bf16)
        add_as(call, (sum_form){false, true, false});
    else
        add_as(call, f);
    return ATT_OK;
}

ATT_SIMD_KERNEL(add, .bf16_in = 3, .bf16_out = 1, .run = add_run);
