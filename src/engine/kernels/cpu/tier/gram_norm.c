#include <math.h>

#include "base/core/simd.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/ops/channel_gram.h"

/* Runs once per batch, in f64. */

enum { GRAM, WEIGHT, GAMMA, BETA };
enum { DMATRIX, GRAD_GRAM, GRAD_WEIGHT, GRAD_GAMMA, STATS };

/* to = w C, a row. */
static void multiply_row(const float *w, const float *covariance, int64_t columns, double *to)
{
    memset(to, 0, (size_t)columns * sizeof *to);
    for (int64_t k = 0; k < columns; k++) {
        double factor = (double)w[k];
#pragma omp simd
        for (int64_t j = 0; j < columns; j++)
            to[j] += factor * (double)covariance[k * columns + j];
    }
}

/* Parts share the outputs. */
static att_status norm_run(const att_call *call)
{
    const float *gram = call->in[GRAM], *gamma = call->in[GAMMA], *beta = call->in[BETA];
    float *matrix = call->out[0], *stats = call->out[1];
    int64_t columns = att_columns(&call->problem->in[GRAM]), outputs = call->problem->in[WEIGHT].shape.dims[0];
    att_range part = att_part_of(call, outputs, VW);
    double *weighted = call->scratch;
    for (int64_t o = part.begin; o < part.end; o++) {
        const float *w = (const float *)call->in[WEIGHT] + o * columns;
        double mean = 0, variance = 0;
        multiply_row(w, gram + columns, columns, weighted);
#pragma omp simd reduction(+ : mean, variance)
        for (int64_t j = 0; j < columns; j++) {
            mean += (double)w[j] * (double)gram[j];
            variance += (double)w[j] * weighted[j];
        }
        variance = variance < 0 ? 0 : variance;
        double slope = (double)gamma[o] / sqrt(variance + ATT_ATTRS(call->problem, gram_norm)->eps);
        for (int64_t j = 0; matrix && j < columns; j++)
            matrix[j * outputs + o] = (float)(slope * (double)w[j]);
        if (matrix)
            matrix[columns * outputs + o] = (float)((double)beta[o] - slope * mean);
        if (!stats)
            continue;
        stats[o] = (float)mean;
        stats[outputs + o] = (float)variance;
    }
    return ATT_OK;
}

static att_status norm_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)att_columns(&problem->in[GRAM]) * sizeof(double);
    return ATT_OK;
}

ATT_SIMD_KERNEL(gram_norm, .prepare = norm_prepare, .run = norm_run);

/* --- gram_norm_grad ----------------------------------------------------------------------------------------------- */

/* Gradients of one output channel o. Column o of B is slope w; b = beta - slope mean; slope = gamma / sqrt(variance +
 * eps). */
typedef struct output_grad {
    double slope, dbeta, dgamma, dmean, dvariance;
} output_grad;

static output_grad grad_of(const att_call *call, int64_t columns, int64_t outputs, int64_t o)
{
    const float *dmatrix = call->in[DMATRIX], *stats = call->in[STATS];
    const float *w = (const float *)call->in[GRAD_WEIGHT] + o * columns;
    double rstd = 1 / sqrt((double)stats[outputs + o] + ATT_ATTRS(call->problem, gram_norm)->eps);
    double gamma = (double)((const float *)call->in[GRAD_GAMMA])[o], dbeta = (double)dmatrix[columns * outputs + o];
    double dslope = -dbeta * (double)stats[o];
    for (int64_t j = 0; j < columns; j++)
        dslope += (double)dmatrix[j * outputs + o] * (double)w[j];
    return (output_grad){.slope = gamma * rstd,
                         .dbeta = dbeta,
                         .dgamma = dslope * rstd,
                         .dmean = -dbeta * gamma * rstd,
                         .dvariance = -0.5 * dslope * gamma * rstd * rstd * rstd};
}

static void put_parameters(const att_call *call, int64_t columns, int64_t outputs, att_range part)
{
    const float *dmatrix = call->in[DMATRIX], *gram = call->in[GRAD_GRAM], *weight = call->in[GRAD_WEIGHT];
    float *dweight = call->out[1], *dgamma = call->out[2], *dbeta = call->out[3];
    double *weighted = call->scratch;
    for (int64_t o = part.begin; o < part.end; o++) {
        output_grad g = grad_of(call, columns, outputs, o);
        multiply_row(weight + o * columns, gram + columns, columns, weighted);
        for (int64_t j = 0; dweight && j < columns; j++)
            dweight[o * columns + j] = (float)(g.slope * (double)dmatrix[j * outputs + o] + g.dmean * (double)gram[j] +
                                               2 * g.dvariance * weighted[j]);
        if (dgamma)
            dgamma[o] = (float)g.dgamma;
        if (dbeta)
            dbeta[o] = (float)g.dbeta;
    }
}

/* Columns of T: [x 1] T = (2 (x - m) dC + dm) / rows. */
static void put_columns(const att_call *call, int64_t columns, int64_t outputs, att_range part)
{
    const float *gram = call->in[GRAD_GRAM], *weight = call->in[GRAD_WEIGHT];
    float *to = call->out[0];
    double *sum = call->scratch, share = 1 / (double)ATT_ATTRS(call->problem, gram_norm)->rows;
    memset(sum, 0, (size_t)((columns + 1) * columns) * sizeof *sum);
    for (int64_t o = 0; o < outputs; o++) {
        output_grad g = grad_of(call, columns, outputs, o);
        const float *w = weight + o * columns;
        for (int64_t j = 0; j <= columns; j++) {
            double factor = j < columns ? 2 * g.dvariance * (double)w[j] : g.dmean;
            double *row = sum + j * columns;
#pragma omp simd
            for (int64_t i = part.begin; i < part.end; i++)
                row[i] += factor * (double)w[i];
        }
    }
    for (int64_t i = part.begin; i < part.end; i++) {
        double last = sum[columns * columns + i];
        for (int64_t j = 0; j < columns; j++) {
            last -= (double)gram[j] * sum[j * columns + i];
            to[j * columns + i] = (float)(share * sum[j * columns + i]);
        }
        to[columns * columns + i] = (float)(share * last);
    }
}

/* Parts share the outputs, and the columns of T. */
static att_status norm_grad_run(const att_call *call)
{
    int64_t columns = att_columns(&call->problem->in[GRAD_GRAM]), outputs = att_columns(&call->problem->in[DMATRIX]);
    put_parameters(call, columns, outputs, att_part_of(call, outputs, VW));
    if (call->out[0])
        put_columns(call, columns, outputs, att_part_of(call, columns, VW));
    return ATT_OK;
}

static att_status norm_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)att_shape_count(problem->in[GRAD_GRAM].shape) * sizeof(double);
    return ATT_OK;
}

ATT_SIMD_KERNEL(gram_norm_grad, .prepare = norm_grad_prepare, .run = norm_grad_run);
