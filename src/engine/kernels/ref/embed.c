#include "engine/ops/embed.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_embed(const att_call *call)
{
    int64_t rows = ref_dim(call, 0, 0), columns = ref_dim(call, 0, 1);
    ref_range share = ref_share(call, ref_count(call, 1) * columns);
    for (int64_t e = share.begin; e < share.end; e++) {
        int64_t row = ((const int32_t *)call->in[1])[e / columns];
        ref_out(call, 0, e, row >= 0 && row < rows ? ref_in(call, 0, row * columns + e % columns) : NAN);
    }
    return ATT_OK;
}

const att_kernel att_ref_embed = {.op = "embed", .name = "ref", .run = run_embed};

static att_status run_grad(const att_call *call)
{
    int64_t rows = ATT_ATTRS(call->problem, embed)->rows, columns = ref_dim(call, 0, -1);
    ref_range share = ref_share(call, columns);
    for (int64_t c = share.begin; c < share.end; c++)
        for (int64_t i = 0; i < ref_count(call, 1); i++) {
            int64_t row = ((const int32_t *)call->in[1])[i];
            if (row >= 0 && row < rows)
                ref_sum(call, 0, row * columns + c, ref_in(call, 0, i * columns + c));
        }
    return ATT_OK;
}

const att_kernel att_ref_embed_grad = {.op = "embed_grad", .name = "ref", .run = run_grad};
