#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tier/sigmoid.h"
#include "engine/kernels/cpu/tiered.h"

/* Row r of an operand begins at element r stride + shift of `at`. */
typedef struct operand {
    const void *at;
    int64_t stride, shift;
    bool is_bf16;
} operand;

/* b of the inputs a, number `a`, and b: the other input, or the second half of a. */
static operand second_of(const att_call *call, int a, int64_t columns)
{
    const att_desc *in = call->problem->in;
    if (call->in[a + 1])
        return (operand){call->in[a + 1], columns, 0, att_is_bf16(&in[a + 1])};
    return (operand){call->in[a], 2 * columns, columns, att_is_bf16(&in[a])};
}

ATT_INLINE void swiglu_as(const att_call *call, operand b, bool a_is_bf16, bool b_is_bf16, bool y_is_bf16)
{
    int64_t columns = att_columns(&call->problem->out[0]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->out[0]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t y = row * columns, a = row * b.stride, other = row * b.stride + b.shift;
        for (int64_t i = 0; i < columns; i += VW)
            v_put_until(call->out[0], y + i, y + columns,
                        v_silu(v_get_until(call->in[0], a + i, a + columns, a_is_bf16)) *
                            v_get_until(b.at, other + i, other + columns, b_is_bf16),
                        y_is_bf16);
    }
}

static att_status swiglu_run(const att_call *call)
{
    operand b = second_of(call, 0, att_columns(&call->problem->out[0]));
    bool a = att_is_bf16(&call->problem->in[0]), y = att_is_bf16(&call->problem->out[0]);
    if (!a && !b.is_bf16 && !y)
        swiglu_as(call, b, false, false, false);
    else if (a && b.is_bf16 && y)
        swiglu_as(call, b, true, true, true);
    else
        swiglu_as(call, b, a, b.is_bf16, y);
    return ATT_OK;
}

ATT_SIMD_KERNEL(swiglu, .bf16_in = 3, .bf16_out = 1, .run = swiglu_run);

enum { DY, A };

typedef struct grad_form {
    bool dy_is_bf16, a_is_bf16, b_is_bf16, da_is_bf16, db_is_bf16;
} grad_form;

/* da and db may be NULL. */
ATT_INLINE void swiglu_grad_as(const att_call *call, operand b, void *da, void *db, grad_form form)
{
    int64_t columns = att_columns(&call->problem->in[DY]);
    att_range part = att_part_of(call, att_rows(call, &call->problem->in[DY]), 1);
    for (int64_t row = part.begin; row < part.end; row++) {
        int64_t y = row * columns, first = row * b.stride, second = first + b.shift;
        for (int64_t i = 0; i < columns; i += VW) {
            vf dy = v_get_until(call->in[DY], y + i, y + columns, form.dy_is_bf16);
            vf x = v_get_until(call->in[A], first + i, first + columns, form.a_is_bf16);
            vf z = v_get_until(b.at, second + i, second + columns, form.b_is_bf16);
            sigmoid of = sigmoid_of(x);
            if (da)
                v_put_until(da, first + i, first + columns, dy * z * of.s * v_fma(x, of.e * of.s, v_set(1)),
                            form.da_is_bf16);
            if (db)
                v_put_until(db, second + i, second + columns, dy * x * of.s, form.db_is_bf16);
        }
    }
}

static att_status swiglu_grad_run(const att_call *call)
{
    const att_problem *problem = call->problem;
    operand b = second_of(call, A, att_columns(&problem->in[DY]));
    int db = b.shift ? 0 : 1; /* the output of db */
    grad_form form = {att_is_bf16(&problem->in[DY]), att_is_bf16(&problem->in[A]), b.is_bf16,
                      att_is_bf16(&problem->out[0]), att_is_bf16(&problem->out[db])};
    bool any = form.dy_is_bf16 || form.a_is_bf16 || form.b_is_bf16 || form.da_is_bf16 || form.db_is_bf16;
    bool all = form.dy_is_bf16 && form.a_is_bf16 && form.b_is_bf16 && form.da_is_bf16 && form.db_is_bf16;
    if (!any)
        swiglu_grad_as(call, b, call->out[0], call->out[db], (grad_form){0});
    else if (all)
        swiglu_grad_as(call, b, call->out[0], call->out[db], (grad_form){true, true, true, true, true});
    else
        swiglu_grad_as(call, b, call->out[0], call->out[db], form);
    return ATT_OK;
}

ATT_SIMD_KERNEL(swiglu_grad, .bf16_in = 7, .bf16_out = 3, .run = swiglu_grad_run);
