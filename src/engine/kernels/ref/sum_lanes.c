#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

enum { BLOCK = 4096 };

static att_status run_lanes(const att_call *call)
{
    int64_t lanes = ref_dim(call, 0, 0), n = ref_dim(call, 0, 1);
    ref_range share = ref_share(call, n);
    for (int64_t e = share.begin; e < share.end; e++)
        for (int64_t lane = 0; lane < lanes; lane++)
            ref_sum(call, 0, e, ref_in(call, 0, lane * n + e));
    return ATT_OK;
}

static att_status run_squares(const att_call *call)
{
    int64_t n = ref_dim(call, 0, 0);
    ref_range blocks = ref_share(call, (n + BLOCK - 1) / BLOCK);
    for (int64_t block = blocks.begin; block < blocks.end; block++) {
        double squares = 0;
        for (int64_t e = block * BLOCK; e < n && e < (block + 1) * BLOCK; e++)
            squares += ref_in(call, 0, e) * ref_in(call, 0, e);
        ref_out(call, 0, block, squares);
    }
    return ATT_OK;
}

const att_kernel att_ref_sum_lanes = {.op = "sum_lanes", .name = "ref", .run = run_lanes};
const att_kernel att_ref_sum_squares = {.op = "sum_squares", .name = "ref", .run = run_squares};
