#include "engine/ops/window_pad.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* Element of the input for element e of the output; -1: none. */
static int64_t source_of(const att_call *call, int64_t e, int64_t (*token_of)(const att_window_pad_attrs *, int64_t))
{
    const int64_t *x = call->problem->in[0].shape.dims, *y = call->problem->out[0].shape.dims;
    int64_t row = e / y[1], from = token_of(call->problem->attrs, row % y[0]);
    return from < 0 ? -1 : (row / y[0] * x[0] + from) * y[1] + e % y[1];
}

static att_status run(const att_call *call, int64_t (*token_of)(const att_window_pad_attrs *, int64_t))
{
    int64_t count = att_shape_count(call->problem->out[0].shape) * call->problem->group;
    ref_range share = ref_share(call, count);
    for (int64_t e = share.begin; e < share.end; e++) {
        int64_t from = source_of(call, e, token_of);
        ref_out(call, 0, e, from < 0 ? 0 : ref_in(call, 0, from));
    }
    return ATT_OK;
}

static att_status run_pad(const att_call *call)
{
    return run(call, att_window_pad_source);
}

const att_kernel att_ref_window_pad = {.op = "window_pad", .name = "ref", .run = run_pad};

static att_status run_crop(const att_call *call)
{
    return run(call, att_window_pad_place);
}

const att_kernel att_ref_window_crop = {.op = "window_crop", .name = "ref", .run = run_crop};
