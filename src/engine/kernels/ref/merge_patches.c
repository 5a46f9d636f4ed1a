#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* Index in the maps x [group, height, width, channels] of element `e` of the merged maps; -1 in the zero padding. */
static int64_t source_of(const int64_t *x, int64_t e)
{
    int64_t rows = (x[0] + 1) / 2, columns = (x[1] + 1) / 2, quarter = e / x[2] % 4, pixel = e / (4 * x[2]);
    int64_t row = 2 * (pixel / columns % rows) + quarter % 2, column = 2 * (pixel % columns) + quarter / 2;
    if (row >= x[0] || column >= x[1])
        return -1;
    return ((pixel / (rows * columns) * x[0] + row) * x[1] + column) * x[2] + e % x[2];
}

static att_status run_merge(const att_call *call)
{
    int64_t count = att_shape_count(call->problem->out[0].shape) * call->problem->group;
    ref_range share = ref_share(call, count);
    for (int64_t e = share.begin; e < share.end; e++) {
        int64_t from = source_of(call->problem->in[0].shape.dims, e);
        ref_out(call, 0, e, from < 0 ? 0 : ref_in(call, 0, from));
    }
    return ATT_OK;
}

const att_kernel att_ref_merge_patches = {.op = "merge_patches", .name = "ref", .run = run_merge};

static att_status run_grad(const att_call *call)
{
    ref_range share = ref_share(call, ref_count(call, 0));
    for (int64_t e = share.begin; e < share.end; e++) {
        int64_t to = source_of(call->problem->out[0].shape.dims, e);
        if (to >= 0)
            ref_out(call, 0, to, ref_in(call, 0, e));
    }
    return ATT_OK;
}

const att_kernel att_ref_merge_patches_grad = {.op = "merge_patches_grad", .name = "ref", .run = run_grad};
