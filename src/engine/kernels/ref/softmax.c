#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* The largest element. fmax() ignores NaN, but an element that is NaN makes the sum of exponentials NaN. */
static double largest_of(const att_call *call, int64_t first, int64_t columns)
{
    double largest = ref_in(call, 0, first);
    for (int64_t c = 1; c < columns; c++)
        largest = fmax(largest, ref_in(call, 0, first + c));
    return largest;
}

static att_status run_softmax(const att_call *call)
{
    int64_t columns = ref_dim(call, 0, -1);
    ref_range rows = ref_share(call, ref_rows(call, 0));
    for (int64_t row = rows.begin; row < rows.end; row++) {
        int64_t first = row * columns;
        double largest = largest_of(call, first, columns), sum = 0;
        for (int64_t c = 0; c < columns; c++)
            sum += exp(ref_in(call, 0, first + c) - largest);
        for (int64_t c = 0; c < columns; c++)
            ref_out(call, 0, first + c, exp(ref_in(call, 0, first + c) - largest) / sum);
    }
    return ATT_OK;
}

const att_kernel att_ref_softmax = {.op = "softmax", .name = "ref", .run = run_softmax};

static att_status run_grad(const att_call *call)
{
    enum { DY, Y };
    int64_t columns = ref_dim(call, Y, -1);
    ref_range rows = ref_share(call, ref_rows(call, Y));
    for (int64_t row = rows.begin; row < rows.end; row++) {
        double sum = 0;
        for (int64_t e = row * columns; e < (row + 1) * columns; e++)
            sum += ref_in(call, DY, e) * ref_in(call, Y, e);
        for (int64_t e = row * columns; e < (row + 1) * columns; e++)
            ref_out(call, 0, e, ref_in(call, Y, e) * (ref_in(call, DY, e) - sum));
    }
    return ATT_OK;
}

const att_kernel att_ref_softmax_grad = {.op = "softmax_grad", .name = "ref", .run = run_grad};
