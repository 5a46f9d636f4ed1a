#include "engine/ops/l2_norm.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_l2_norm(const att_call *call)
{
    double eps = ATT_ATTRS(call->problem, l2_norm)->eps;
    int64_t columns = ref_dim(call, 0, -1);
    ref_range rows = ref_share(call, ref_rows(call, 0));
    for (int64_t row = rows.begin; row < rows.end; row++) {
        double squares = 0;
        for (int64_t e = row * columns; e < (row + 1) * columns; e++)
            squares += ref_in(call, 0, e) * ref_in(call, 0, e);
        double norm = sqrt(squares), divisor = norm < eps ? eps : norm; /* NaN stays NaN */
        ref_out(call, 1, row, norm);
        for (int64_t e = row * columns; e < (row + 1) * columns; e++)
            ref_out(call, 0, e, ref_in(call, 0, e) / divisor);
    }
    return ATT_OK;
}

const att_kernel att_ref_l2_norm = {.op = "l2_norm", .name = "ref", .run = run_l2_norm};

enum { DY, GRAD_X, NORM };

/* Sum of dy n over a row, n = x / norm. */
static double product_of(const att_call *call, int64_t row, int64_t columns)
{
    double sum = 0;
    for (int64_t e = row * columns; e < (row + 1) * columns; e++)
        sum += ref_in(call, DY, e) * ref_in(call, GRAD_X, e) / ref_in(call, NORM, row);
    return sum;
}

static att_status run_grad(const att_call *call)
{
    double eps = ATT_ATTRS(call->problem, l2_norm)->eps;
    int64_t columns = ref_dim(call, GRAD_X, -1);
    ref_range rows = ref_share(call, ref_rows(call, GRAD_X));
    for (int64_t row = rows.begin; row < rows.end; row++) {
        double norm = ref_in(call, NORM, row);
        bool clamped = norm <= eps;
        double product = clamped ? 0 : product_of(call, row, columns);
        for (int64_t e = row * columns; e < (row + 1) * columns; e++) {
            double dy = ref_in(call, DY, e);
            ref_out(call, 0, e, clamped ? dy / eps : (dy - ref_in(call, GRAD_X, e) / norm * product) / norm);
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_l2_norm_grad = {.op = "l2_norm_grad", .name = "ref", .run = run_grad};
