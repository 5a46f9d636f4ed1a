#include "kernels/ref/call.h"
#include "kernels/ref/list.h"

enum { BLOCK = 4096 };

/* total may lie in lane 0: each element is read from all lanes before it is written. */
static att_status run(const att_call *call)
{
    int64_t lanes = ref_dim(call, 0, 0), n = ref_dim(call, 0, 1);
    ref_range blocks = ref_share(call, (n + BLOCK - 1) / BLOCK);
    for (int64_t block = blocks.begin; block < blocks.end; block++) {
        double squares = 0;
        for (int64_t e = block * BLOCK; e < n && e < (block + 1) * BLOCK; e++) {
            double sum = 0;
            for (int64_t lane = 0; lane < lanes; lane++)
                sum += ref_in(call, 0, lane * n + e);
            ref_out(call, 0, e, sum);
            double total = ref_old(call, 0, e);
            squares += total * total;
        }
        ref_out(call, 1, block, squares);
    }
    return ATT_OK;
}

const att_kernel att_ref_sum_lanes = {.op = "sum_lanes", .name = "ref", .run = run};
