#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/concat.h"
#include "engine/ops/shortcut_pad.h"

static att_status run_shortcut_pad(const att_call *call)
{
    const att_shortcut_attrs *attrs = call->problem->attrs;
    const int64_t *x = call->problem->in[0].shape.dims, *y = call->problem->out[0].shape.dims;
    ref_range share = ref_share(call, call->problem->group * y[0] * y[1]);
    for (int64_t pixel = share.begin; pixel < share.end; pixel++) {
        int64_t sample = pixel / (y[0] * y[1]), i = pixel / y[1] % y[0], j = pixel % y[1];
        int64_t from = ((sample * x[0] + attrs->stride * i) * x[1] + attrs->stride * j) * x[2];
        for (int64_t c = 0; c < y[2]; c++) {
            int64_t k = c - attrs->before;
            ref_out(call, 0, pixel * y[2] + c, k >= 0 && k < x[2] ? ref_in(call, 0, from + k) : 0);
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_shortcut_pad = {.op = "shortcut_pad", .name = "ref", .run = run_shortcut_pad};

static att_status run_shortcut_pad_grad(const att_call *call)
{
    const att_shortcut_attrs *attrs = call->problem->attrs;
    const int64_t *x = call->problem->out[0].shape.dims, *y = call->problem->in[0].shape.dims;
    ref_range share = ref_share(call, call->problem->group * x[0] * x[1]);
    for (int64_t pixel = share.begin; pixel < share.end; pixel++) {
        int64_t sample = pixel / (x[0] * x[1]), row = pixel / x[1] % x[0], column = pixel % x[1];
        bool seen = row % attrs->stride == 0 && column % attrs->stride == 0;
        int64_t from = ((sample * y[0] + row / attrs->stride) * y[1] + column / attrs->stride) * y[2] + attrs->before;
        for (int64_t c = 0; c < x[2]; c++)
            ref_out(call, 0, pixel * x[2] + c, seen ? ref_in(call, 0, from + c) : 0);
    }
    return ATT_OK;
}

const att_kernel att_ref_shortcut_pad_grad = {.op = "shortcut_pad_grad", .name = "ref", .run = run_shortcut_pad_grad};

static att_status run_concat(const att_call *call)
{
    int64_t a = ref_dim(call, 0, -1), b = ref_dim(call, 1, -1);
    ref_range rows = ref_share(call, ref_rows(call, 0));
    for (int64_t row = rows.begin; row < rows.end; row++)
        for (int64_t c = 0; c < a + b; c++)
            ref_out(call, 0, row * (a + b) + c,
                    c < a ? ref_in(call, 0, row * a + c) : ref_in(call, 1, row * b + c - a));
    return ATT_OK;
}

const att_kernel att_ref_concat = {.op = "concat", .name = "ref", .run = run_concat};

static att_status run_concat_grad(const att_call *call)
{
    int64_t columns = ref_dim(call, 0, -1), a = ATT_ATTRS(call->problem, concat)->first, b = columns - a;
    ref_range rows = ref_share(call, ref_rows(call, 0));
    for (int64_t row = rows.begin; row < rows.end; row++)
        for (int64_t c = 0; c < columns; c++)
            ref_out(call, c >= a, c < a ? row * a + c : row * b + c - a, ref_in(call, 0, row * columns + c));
    return ATT_OK;
}

const att_kernel att_ref_concat_grad = {.op = "concat_grad", .name = "ref", .run = run_concat_grad};
