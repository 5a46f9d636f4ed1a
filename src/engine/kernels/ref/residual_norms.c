#include <math.h>

#include "base/core/quantile.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/residual_norms.h"

/* One sample's tokens minus `centre` (NULL: nothing is subtracted). */
typedef struct tokens {
    const att_call *call;
    int64_t first, rows, columns;
    const double *centre;
} tokens;

static double at(const tokens *x, int64_t row, int64_t column)
{
    return ref_in(x->call, 0, x->first + row * x->columns + column) - (x->centre ? x->centre[column] : 0);
}

static double norm_1(const tokens *x)
{
    double most = 0;
    for (int64_t column = 0; column < x->columns; column++) {
        double sum = 0;
        for (int64_t row = 0; row < x->rows; row++)
            sum += fabs(at(x, row, column));
        most = fmax(most, sum);
    }
    return most;
}

static double norm_infinity(const tokens *x)
{
    double most = 0;
    for (int64_t row = 0; row < x->rows; row++) {
        double sum = 0;
        for (int64_t column = 0; column < x->columns; column++)
            sum += fabs(at(x, row, column));
        most = fmax(most, sum);
    }
    return most;
}

static double norm_frobenius(const tokens *x)
{
    double sum = 0;
    for (int64_t row = 0; row < x->rows; row++)
        for (int64_t column = 0; column < x->columns; column++)
            sum += at(x, row, column) * at(x, row, column);
    return sqrt(sum);
}

static void put_norms(const tokens *x, int64_t to)
{
    ref_out(x->call, 0, to, norm_1(x));
    ref_out(x->call, 0, to + 1, norm_infinity(x));
    ref_out(x->call, 0, to + 2, norm_frobenius(x));
}

static double mean_of(const tokens *x, int64_t column)
{
    double mean = 0;
    for (int64_t row = 0; row < x->rows; row++)
        mean += at(x, row, column) / (double)x->rows;
    return mean;
}

static double median_of(const tokens *x, int64_t column, double *sorted)
{
    for (int64_t row = 0; row < x->rows; row++)
        sorted[row] = at(x, row, column);
    return att_median(sorted, x->rows);
}

static att_status prepare_norms(const att_problem *problem, att_prepared *prepared)
{
    const int64_t *dims = problem->in[0].shape.dims;
    prepared->scratch_bytes = (size_t)(dims[0] + dims[1]) * sizeof(double);
    return ATT_OK;
}

static att_status run_norms(const att_call *call)
{
    tokens x = {.call = call, .rows = ref_dim(call, 0, 0), .columns = ref_dim(call, 0, 1)};
    double *centre = call->scratch, *sorted = centre + x.columns;
    bool median = ATT_ATTRS(call->problem, centre)->median;
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        x.first = sample * x.rows * x.columns;
        x.centre = NULL;
        for (int64_t column = 0; column < x.columns; column++)
            centre[column] = median ? median_of(&x, column, sorted) : mean_of(&x, column);
        put_norms(&x, sample * 6);
        x.centre = centre;
        put_norms(&x, sample * 6 + 3);
    }
    return ATT_OK;
}

const att_kernel att_ref_residual_norms = {
    .op = "residual_norms", .name = "ref", .prepare = prepare_norms, .run = run_norms};
