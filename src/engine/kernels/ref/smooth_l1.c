#include "engine/ops/smooth_l1.h"

#include <attscope/ops.h>

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

enum { X, TARGET, COLUMNS };

/* The number that is compared with target d of a row, from input x + X: its element, or -1 if the row has none.
 * *broken: there are no such columns. */
static int64_t place_of(const att_call *call, int x, int64_t row, int64_t d, bool *broken)
{
    const int64_t width = ref_dim(call, x + TARGET, 1), all = ref_dim(call, x + X, 1);
    const int32_t column = ((const int32_t *)call->in[x + COLUMNS])[row];
    *broken = column != ATT_NO_CLASS && (column < 0 || column >= all / width);
    return column == ATT_NO_CLASS || *broken ? -1 : row * all + column * width + d;
}

static double row_loss(const att_call *call, int64_t row)
{
    const int64_t width = ref_dim(call, TARGET, 1);
    double loss = 0;
    for (int64_t d = 0; d < width; d++) {
        bool broken;
        const int64_t place = place_of(call, 0, row, d, &broken);
        if (broken)
            return NAN;
        if (place >= 0)
            loss += att_smooth_l1_of(ref_in(call, X, place) - ref_in(call, TARGET, row * width + d),
                                     ATT_ATTRS(call->problem, smooth_l1)->beta);
    }
    return loss;
}

static att_status run_loss(const att_call *call)
{
    const int64_t rows = ref_dim(call, X, 0);
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        double loss = 0;
        for (int64_t row = sample * rows; row < (sample + 1) * rows; row++)
            loss += row_loss(call, row);
        ref_out(call, 0, sample, loss);
    }
    return ATT_OK;
}

const att_kernel att_ref_smooth_l1 = {.op = "smooth_l1", .name = "ref", .run = run_loss};

static void row_grad(const att_call *call, int64_t row)
{
    const int64_t all = ref_dim(call, 1 + X, 1), width = ref_dim(call, 1 + TARGET, 1);
    const double dloss = ref_in(call, 0, row / ref_dim(call, 1 + X, 0));
    bool broken;
    place_of(call, 1, row, 0, &broken);
    for (int64_t c = 0; c < all; c++)
        ref_out(call, 0, row * all + c, broken ? NAN : 0);
    for (int64_t d = 0; d < width; d++) {
        const int64_t place = place_of(call, 1, row, d, &broken);
        const double e = place < 0 ? 0 : ref_in(call, 1 + X, place) - ref_in(call, 1 + TARGET, row * width + d);
        const double slope = dloss * att_smooth_l1_slope(e, ATT_ATTRS(call->problem, smooth_l1)->beta);
        if (place >= 0)
            ref_out(call, 0, place, slope);
        ref_out(call, 1, row * width + d, broken ? NAN : place < 0 ? 0 : -slope);
    }
}

static att_status run_grad(const att_call *call)
{
    ref_range share = ref_share(call, call->problem->group * ref_dim(call, 1 + X, 0));
    for (int64_t row = share.begin; row < share.end; row++)
        row_grad(call, row);
    return ATT_OK;
}

const att_kernel att_ref_smooth_l1_grad = {.op = "smooth_l1_grad", .name = "ref", .run = run_grad};
