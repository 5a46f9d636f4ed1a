#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_cos_sin(const att_call *call)
{
    int64_t columns = ref_dim(call, 0, -1);
    ref_range rows = ref_share(call, ref_rows(call, 0));
    for (int64_t e = rows.begin * columns; e < rows.end * columns; e++) {
        int64_t cosine = e / columns * 2 * columns + e % columns;
        ref_out(call, 0, cosine, cos(ref_in(call, 0, e)));
        ref_out(call, 0, cosine + columns, sin(ref_in(call, 0, e)));
    }
    return ATT_OK;
}

const att_kernel att_ref_cos_sin = {.op = "cos_sin", .name = "ref", .run = run_cos_sin};

static att_status run_grad(const att_call *call)
{
    int64_t columns = ref_dim(call, 0, -1) / 2;
    ref_range rows = ref_share(call, ref_rows(call, 0));
    for (int64_t e = rows.begin * columns; e < rows.end * columns; e++) {
        int64_t cosine = e / columns * 2 * columns + e % columns, sine = cosine + columns;
        ref_out(call, 0, e,
                ref_in(call, 0, sine) * ref_in(call, 1, cosine) - ref_in(call, 0, cosine) * ref_in(call, 1, sine));
    }
    return ATT_OK;
}

const att_kernel att_ref_cos_sin_grad = {.op = "cos_sin_grad", .name = "ref", .run = run_grad};
