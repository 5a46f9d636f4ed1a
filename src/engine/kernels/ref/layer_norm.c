#include "engine/ops/layer_norm.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

static void row_statistics(const att_call *call, int64_t row, int64_t columns, double *mean, double *rstd)
{
    double sum = 0, squares = 0;
    for (int64_t c = 0; c < columns; c++)
        sum += ref_in(call, 0, row * columns + c);
    *mean = sum / (double)columns;
    for (int64_t c = 0; c < columns; c++) {
        double d = ref_in(call, 0, row * columns + c) - *mean;
        squares += d * d;
    }
    *rstd = 1 / sqrt(squares / (double)columns + ATT_ATTRS(call->problem, layer_norm)->eps);
}

static att_status run_layer_norm(const att_call *call)
{
    enum { X, GAMMA, BETA };
    int64_t columns = ref_dim(call, X, -1);
    ref_range rows = ref_share(call, ref_rows(call, X));
    for (int64_t row = rows.begin; row < rows.end; row++) {
        double mean, rstd;
        row_statistics(call, row, columns, &mean, &rstd);
        ref_out(call, 1, 2 * row, mean);
        ref_out(call, 1, 2 * row + 1, rstd);
        for (int64_t c = 0; c < columns; c++) {
            double normal = (ref_in(call, X, row * columns + c) - mean) * rstd;
            ref_out(call, 0, row * columns + c, normal * ref_in(call, GAMMA, c) + ref_in(call, BETA, c));
        }
    }
    return ATT_OK;
}

const att_kernel att_ref_layer_norm = {.op = "layer_norm", .name = "ref", .run = run_layer_norm};

enum { DY, GRAD_X, GRAD_GAMMA, STATS, ADDEND };

static double normal_at(const att_call *call, int64_t row, int64_t e)
{
    return (ref_in(call, GRAD_X, e) - ref_in(call, STATS, 2 * row)) * ref_in(call, STATS, 2 * row + 1);
}

static void row_gradient(const att_call *call, int64_t row, int64_t columns)
{
    double mean_g = 0, mean_gn = 0;
    for (int64_t c = 0; c < columns; c++) {
        double g = ref_in(call, DY, row * columns + c) * ref_in(call, GRAD_GAMMA, c);
        mean_g += g / (double)columns;
        mean_gn += g * normal_at(call, row, row * columns + c) / (double)columns;
    }
    for (int64_t c = 0; c < columns; c++) {
        int64_t e = row * columns + c;
        double g = ref_in(call, DY, e) * ref_in(call, GRAD_GAMMA, c);
        double dx = ref_in(call, STATS, 2 * row + 1) * (g - mean_g - normal_at(call, row, e) * mean_gn);
        ref_out(call, 0, e, dx + (ref_has(call, ADDEND) ? ref_in(call, ADDEND, e) : 0));
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
        double dgamma = 0, dbeta = 0;
        for (int64_t row = 0; row < rows; row++) {
            double dy = ref_in(call, DY, row * columns + c);
            dgamma += dy * normal_at(call, row, row * columns + c);
            dbeta += dy;
        }
        ref_sum(call, 1, c, dgamma);
        ref_sum(call, 2, c, dbeta);
    }
    return ATT_OK;
}

const att_kernel att_ref_layer_norm_grad = {.op = "layer_norm_grad", .name = "ref", .run = run_grad};
