#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"

static att_status run_pool(const att_call *call)
{
    int64_t columns = ref_dim(call, 0, -1);
    ref_range rows = ref_share(call, ref_rows(call, 0));
    for (int64_t row = rows.begin; row < rows.end; row++) {
        double sum = 0, largest = ref_in(call, 0, row * columns);
        for (int64_t e = row * columns; e < (row + 1) * columns; e++) {
            sum += ref_in(call, 0, e);
            largest = ref_larger(largest, ref_in(call, 0, e));
        }
        ref_out(call, 0, 2 * row, sum / (double)columns);
        ref_out(call, 0, 2 * row + 1, largest);
    }
    return ATT_OK;
}

const att_kernel att_ref_channel_pool = {.op = "channel_pool", .name = "ref", .run = run_pool};

static att_status run_grad(const att_call *call)
{
    enum { DY, X, Y };
    int64_t columns = ref_dim(call, X, -1);
    ref_range rows = ref_share(call, ref_rows(call, X));
    for (int64_t row = rows.begin; row < rows.end; row++) {
        bool given = false;
        for (int64_t e = row * columns; e < (row + 1) * columns; e++) {
            bool first = !given && ref_in(call, X, e) == ref_in(call, Y, 2 * row + 1);
            ref_out(call, 0, e,
                    ref_in(call, DY, 2 * row) / (double)columns + (first ? ref_in(call, DY, 2 * row + 1) : 0));
            given |= first;
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_channel_pool_grad = {.op = "channel_pool_grad", .name = "ref", .run = run_grad};
