#include "engine/ops/rms_norm.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static att_status run_rms_norm(const att_call *call)
{
    enum { X, GAMMA };
    double eps = ATT_ATTRS(call->problem, rms_norm)->eps;
    int64_t columns = ref_dim(call, X, -1);
    ref_range rows = ref_share(call, ref_rows(call, X));
    for (int64_t row = rows.begin; row < rows.end; row++) {
        double squares = 0;
        for (int64_t e = row * columns; e < (row + 1) * columns; e++)
            squares += ref_in(call, X, e) * ref_in(call, X, e);
        double rstd = 1 / sqrt(squares / (double)columns + eps);
        ref_out(call, 1, row, rstd);
        for (int64_t c = 0; c < columns; c++)
            ref_out(call, 0, row * columns + c, ref_in(call, X, row * columns + c) * rstd * ref_in(call, GAMMA, c));
    }
    return ATT_OK;
}

const att_kernel att_ref_rms_norm = {.op = "rms_norm", .name = "ref", .run = run_rms_norm};

enum { DY, GRAD_X, GRAD_GAMMA, RSTD };

static void row_gradient(const att_call *call, int64_t row, int64_t columns)
{
    double rstd = ref_in(call, RSTD, row), mean = 0;
    for (int64_t c = 0; c < columns; c++) {
        int64_t e = row * columns + c;
        mean += ref_in(call, DY, e) * ref_in(call, GRAD_GAMMA, c) * ref_in(call, GRAD_X, e) * rstd / (double)columns;
    }
    for (int64_t c = 0; c < columns; c++) {
        int64_t e = row * columns + c;
        double g = ref_in(call, DY, e) * ref_in(call, GRAD_GAMMA, c);
        ref_out(call, 0, e, rstd * (g - ref_in(call, GRAD_X, e) * rstd * mean));
    }
}

static att_status run_grad(const att_call *call)
{
    int64_t columns = ref_dim(call, GRAD_X, -1), rows = ref_rows(call, GRAD_X);
    ref_range share = ref_share(call, rows);
    for (int64_t row = share.begin; row < share.end; row++)
        row_gradient(call, row, columns);
    ref_range vector = ref_share(call, columns);
    for (int64_t c = vector.begin; c < vector.end; c++) {
        double dgamma = 0;
        for (int64_t row = 0; row < rows; row++) {
            int64_t e = row * columns + c;
            dgamma += ref_in(call, DY, e) * ref_in(call, GRAD_X, e) * ref_in(call, RSTD, row);
        }
        ref_sum(call, 1, c, dgamma);
    }
    return ATT_OK;
}

const att_kernel att_ref_rms_norm_grad = {.op = "rms_norm_grad", .name = "ref", .run = run_grad};
