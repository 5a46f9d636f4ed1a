#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/channels.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/channel_gram.h"

enum { GRAM, WEIGHT, GAMMA, BETA };
enum { DMATRIX, GRAD_GRAM, GRAD_WEIGHT, GRAD_GAMMA, STATS };

/* Element (o, j) of the weight. */
static double weight_at(const att_call *call, int weight, int64_t o, int64_t j)
{
    return ref_in(call, weight, o * ref_dim(call, weight, 1) + j);
}

static double weighted(const att_call *call, int gram, int weight, int64_t o, int64_t j)
{
    int64_t columns = ref_dim(call, gram, 1);
    double sum = 0;
    for (int64_t k = 0; k < columns; k++)
        sum += weight_at(call, weight, o, k) * ref_in(call, gram, (1 + k) * columns + j);
    return sum;
}

static att_status run_norm(const att_call *call)
{
    int64_t columns = ref_dim(call, GRAM, 1), outputs = ref_dim(call, WEIGHT, 0);
    ref_range share = ref_share(call, outputs);
    for (int64_t o = share.begin; o < share.end; o++) {
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < columns; j++) {
            mean += weight_at(call, WEIGHT, o, j) * ref_in(call, GRAM, j);
            variance += weight_at(call, WEIGHT, o, j) * weighted(call, GRAM, WEIGHT, o, j);
        }
        variance = ref_relu(variance);
        double slope = ref_in(call, GAMMA, o) / sqrt(variance + ATT_ATTRS(call->problem, gram_norm)->eps);
        for (int64_t j = 0; j < columns; j++)
            ref_out(call, 0, j * outputs + o, slope * weight_at(call, WEIGHT, o, j));
        ref_out(call, 0, columns * outputs + o, ref_in(call, BETA, o) - slope * mean);
        ref_out(call, 1, o, mean);
        ref_out(call, 1, outputs + o, variance);
    }
    return ATT_OK;
}

const att_kernel att_ref_gram_norm = {.op = "gram_norm", .name = "ref", .run = run_norm};

/* Gradients of one output channel o. Column o of B is slope w; b = beta - slope mean; slope = gamma / sqrt(variance +
 * eps). */
typedef struct output_grad {
    double slope, dbeta, dgamma, dmean, dvariance;
} output_grad;

static output_grad grad_of(const att_call *call, int64_t o)
{
    int64_t columns = ref_dim(call, GRAD_GRAM, 1), outputs = ref_dim(call, GRAD_WEIGHT, 0);
    double rstd = 1 / sqrt(ref_in(call, STATS, outputs + o) + ATT_ATTRS(call->problem, gram_norm)->eps);
    double gamma = ref_in(call, GRAD_GAMMA, o), dbeta = ref_in(call, DMATRIX, columns * outputs + o);
    double dslope = -dbeta * ref_in(call, STATS, o);
    for (int64_t j = 0; j < columns; j++)
        dslope += ref_in(call, DMATRIX, j * outputs + o) * weight_at(call, GRAD_WEIGHT, o, j);
    return (output_grad){.slope = gamma * rstd,
                         .dbeta = dbeta,
                         .dgamma = dslope * rstd,
                         .dmean = -dbeta * gamma * rstd,
                         .dvariance = -0.5 * dslope * gamma * rstd * rstd * rstd};
}

static void put_parameters(const att_call *call, int64_t o)
{
    int64_t columns = ref_dim(call, GRAD_GRAM, 1), outputs = ref_dim(call, GRAD_WEIGHT, 0);
    output_grad g = grad_of(call, o);
    for (int64_t j = 0; j < columns; j++)
        ref_out(call, 1, o * columns + j,
                g.slope * ref_in(call, DMATRIX, j * outputs + o) + g.dmean * ref_in(call, GRAD_GRAM, j) +
                    2 * g.dvariance * weighted(call, GRAD_GRAM, GRAD_WEIGHT, o, j));
    ref_out(call, 2, o, g.dgamma);
    ref_out(call, 3, o, g.dbeta);
}

/* The sum over outputs of 2 dvariance w_j w_column; for j past the last column, of dmean w_column. */
static double by_outputs(const att_call *call, int64_t j, int64_t column)
{
    int64_t columns = ref_dim(call, GRAD_GRAM, 1), outputs = ref_dim(call, GRAD_WEIGHT, 0);
    double sum = 0;
    for (int64_t o = 0; o < outputs; o++) {
        output_grad g = grad_of(call, o);
        double factor = j < columns ? 2 * g.dvariance * weight_at(call, GRAD_WEIGHT, o, j) : g.dmean;
        sum += factor * weight_at(call, GRAD_WEIGHT, o, column);
    }
    return sum;
}

/* Writes column `column` of T: [x 1] T = (2 (x - m) dC + dm) / rows. */
static void put_column(const att_call *call, int64_t column)
{
    int64_t columns = ref_dim(call, GRAD_GRAM, 1);
    double rows = (double)ATT_ATTRS(call->problem, gram_norm)->rows, last = by_outputs(call, columns, column);
    for (int64_t j = 0; j < columns; j++) {
        double sum = by_outputs(call, j, column);
        last -= ref_in(call, GRAD_GRAM, j) * sum;
        ref_out(call, 0, j * columns + column, sum / rows);
    }
    ref_out(call, 0, columns * columns + column, last / rows);
}

static att_status run_norm_grad(const att_call *call)
{
    int64_t columns = ref_dim(call, GRAD_GRAM, 1), outputs = ref_dim(call, GRAD_WEIGHT, 0);
    ref_range share = ref_share(call, columns + outputs);
    for (int64_t i = share.begin; i < share.end; i++) {
        if (i < columns)
            put_column(call, i);
        else
            put_parameters(call, i - columns);
    }
    return ATT_OK;
}

const att_kernel att_ref_gram_norm_grad = {.op = "gram_norm_grad", .name = "ref", .run = run_norm_grad};
