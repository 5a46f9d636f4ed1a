/* Means and covariances of channels, and the norms of 1 x 1 convolutions that follow from them. */
#include "engine/kernels/cuda/attention.cuh"
#include "engine/kernels/cuda/channels.cuh"

extern "C" {
#include "engine/ops/batch_moments.h"
#include "engine/ops/channel_gram.h"
}

/* --- channel_gram ------------------------------------------------------------------------------------------------- */

struct gram_value {
    cuda_value x;
    __device__ void operator()(int64_t, int64_t, int64_t, int64_t e, float numbers[1]) const
    {
        numbers[0] = load(x, e);
    }
};

/* Writes row 0 of each sample's [C + 1, C]. */
struct gram_mean {
    float *gram;
    int64_t rows, columns;
    __device__ void operator()(int64_t number, const float sums[1]) const
    {
        gram[number / columns * (columns + 1) * columns + number % columns] = sums[0] / rows;
    }
};

/* to[t][i] = x - mean of row first_row + t and channel first + i; 0 past the end. All threads call. */
__device__ static void load_centred(cuda_value x, const float *mean, const cuda_channels &shape, int64_t sample,
                                    int64_t first_row, int64_t first, tile_channels to)
{
    for (int e = threadIdx.x; e < TILE_CHANNELS * TILE; e += TILE_THREADS) {
        int64_t row = first_row + e / TILE, c = first + e % TILE;
        bool inside = row < shape.rows && c < shape.columns;
        float value = inside ? load(x, (sample * shape.rows + row) * shape.columns + c) - mean[c] : 0;
        to[e / TILE][e % TILE] = value;
    }
}

/* A block for each tile of a sample's products of channels. */
__global__ void __launch_bounds__(TILE_THREADS) gram_kernel(cuda_channels shape, cuda_value x, float *gram)
{
    __shared__ tile_channels left, right;
    int64_t tiles = (shape.columns + TILE - 1) / TILE, sample = blockIdx.x / tiles / tiles;
    int64_t first_k = blockIdx.x / tiles % tiles * TILE, first_j = blockIdx.x % tiles * TILE;
    float *to = gram + sample * (shape.columns + 1) * shape.columns, sums[4][4] = {};
    tile_place at = tile_here();
    for (int64_t row = 0; row < shape.rows; row += TILE_CHANNELS) {
        __syncthreads();
        load_centred(x, to, shape, sample, row, first_k, left);
        load_centred(x, to, shape, sample, row, first_j, right);
        __syncthreads();
        for (int t = 0; t < TILE_CHANNELS; t++)
            tile_multiply(*(const float4 *)&left[t][4 * at.y], *(const float4 *)&right[t][4 * at.x], sums);
    }
    for (int e = 0; e < 16; e++) {
        int64_t k = first_k + 4 * at.y + e / 4, j = first_j + 4 * at.x + e % 4;
        if (k < shape.columns && j < shape.columns)
            to[(1 + k) * shape.columns + j] = sums[e / 4][e % 4];
    }
}

static att_status run_gram(const att_call *call)
{
    cuda_channels shape = cuda_channels_of(call, 0);
    float *gram = (float *)call->out[0];
    int64_t tiles = (shape.columns + TILE - 1) / TILE;
    cuda_channel_sums<1>(shape, gram_value{cuda_in(call, 0)}, gram_mean{gram, shape.rows, shape.columns});
    gram_kernel<<<(unsigned)(shape.samples * tiles * tiles), TILE_THREADS, 0, cuda.stream>>>(shape, cuda_in(call, 0),
                                                                                             gram);
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(channel_gram, run_gram);

/* --- merge_gram --------------------------------------------------------------------------------------------------- */

struct merge_mean {
    const float *grams;
    double *means;
    float *merged;
    int64_t samples, columns;
    __device__ void operator()(int64_t column) const
    {
        double sum = 0;
        for (int64_t sample = 0; sample < samples; sample++)
            sum += grams[sample * (columns + 1) * columns + column];
        means[column] = sum / samples;
        merged[column] = (float)means[column];
    }
};

/* An element below the diagonal is computed as its mirror image above, so that the result is exactly symmetric. */
struct merge_element {
    const float *grams;
    const double *means;
    float *merged;
    int64_t samples, columns;
    double rows;
    __device__ void operator()(int64_t e) const
    {
        int64_t a = e / columns, b = e % columns, row = min(a, b), column = max(a, b);
        double sum = 0, mean_row = means[row], mean_column = means[column];
        for (int64_t sample = 0; sample < samples; sample++) {
            const float *gram = grams + sample * (columns + 1) * columns;
            sum += gram[(1 + row) * columns + column] + rows * (gram[row] - mean_row) * (gram[column] - mean_column);
        }
        merged[columns + e] = (float)(sum / (rows * samples));
    }
};

static att_status prepare_merge(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)problem->in[0].shape.dims[1] * sizeof(double);
    return ATT_OK;
}

static att_status run_merge(const att_call *call)
{
    int64_t columns = call->problem->in[0].shape.dims[1];
    const float *grams = (const float *)call->in[0];
    double *means = (double *)call->scratch, rows = (double)ATT_ATTRS(call->problem, moments)->rows;
    float *merged = (float *)call->out[0];
    att_cuda_each(columns, merge_mean{grams, means, merged, call->samples, columns});
    att_cuda_each(columns * columns, merge_element{grams, means, merged, call->samples, columns, rows});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(merge_gram, prepare_merge, run_merge, nullptr);

/* --- gram_norm ---------------------------------------------------------------------------------------------------- */

/* gram [C + 1, C]: means, then covariances; weight [O, C] */
struct norm_shape {
    const float *gram, *weight;
    int64_t columns, outputs;
    double eps;
    /* Element j of w_o times the covariances. */
    __device__ double weighted(int64_t o, int64_t j) const
    {
        double sum = 0;
        for (int64_t k = 0; k < columns; k++)
            sum += (double)weight[o * columns + k] * gram[(1 + k) * columns + j];
        return sum;
    }
};

static norm_shape norm_shape_of(const att_call *call, int gram, int weight)
{
    return {(const float *)call->in[gram], (const float *)call->in[weight], call->problem->in[gram].shape.dims[1],
            call->problem->in[weight].shape.dims[0], ATT_ATTRS(call->problem, gram_norm)->eps};
}

/* Rows are outputs. */
struct norm_output {
    norm_shape s;
    const float *gamma, *beta;
    float *matrix, *stats;
    template <class Team> __device__ void operator()(int64_t o, Team team) const
    {
        double mean = 0, variance = 0;
        for (int64_t j = team.first(); j < s.columns; j += team.step) {
            double w = s.weight[o * s.columns + j];
            mean += w * s.gram[j];
            variance += w * s.weighted(o, j);
        }
        mean = team.sum(mean), variance = team.sum(variance);
        variance = variance < 0 ? 0 : variance; /* NaN stays NaN */
        double slope = gamma[o] / sqrt(variance + s.eps);
        for (int64_t j = team.first(); matrix && j < s.columns; j += team.step)
            matrix[j * s.outputs + o] = (float)(slope * s.weight[o * s.columns + j]);
        if (team.first() > 0)
            return;
        if (matrix)
            matrix[s.columns * s.outputs + o] = (float)(beta[o] - slope * mean);
        if (stats)
            stats[o] = (float)mean, stats[s.outputs + o] = (float)variance;
    }
};

static att_status run_norm(const att_call *call)
{
    enum { GRAM, WEIGHT, GAMMA, BETA };
    norm_shape s = norm_shape_of(call, GRAM, WEIGHT);
    cuda_each_row(s.outputs, s.columns,
                  norm_output{s, (const float *)call->in[GAMMA], (const float *)call->in[BETA], (float *)call->out[0],
                              (float *)call->out[1]});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(gram_norm, run_norm);

/* Gradients with respect to an output's mean and variance; column o of the matrix is slope w_o. */
struct norm_numbers {
    double slope, dmean, dvariance;
};

/* Rows are outputs. */
struct norm_output_grad {
    norm_shape s;
    const float *dmatrix, *gamma, *stats;
    float *dweight, *dgamma, *dbeta;
    norm_numbers *numbers;
    template <class Team> __device__ void operator()(int64_t o, Team team) const
    {
        double rstd = 1 / sqrt(stats[s.outputs + o] + s.eps), of_beta = dmatrix[s.columns * s.outputs + o], sum = 0;
        for (int64_t j = team.first(); j < s.columns; j += team.step)
            sum += (double)dmatrix[j * s.outputs + o] * s.weight[o * s.columns + j];
        double dslope = team.sum(sum) - of_beta * stats[o];
        norm_numbers n = {gamma[o] * rstd, -of_beta * gamma[o] * rstd, -0.5 * dslope * gamma[o] * rstd * rstd * rstd};
        for (int64_t j = team.first(); dweight && j < s.columns; j += team.step)
            dweight[o * s.columns + j] = (float)(n.slope * dmatrix[j * s.outputs + o] + n.dmean * s.gram[j] +
                                                 2 * n.dvariance * s.weighted(o, j));
        if (team.first() > 0)
            return;
        numbers[o] = n;
        if (dgamma)
            dgamma[o] = (float)(dslope * rstd);
        if (dbeta)
            dbeta[o] = (float)of_beta;
    }
};

/* Rows are columns of T: [x 1] T = (2 (x - m) dC + dm) / rows. */
struct norm_column {
    norm_shape s;
    const norm_numbers *numbers;
    float *t;
    double rows;
    template <class Team> __device__ void operator()(int64_t column, Team team) const
    {
        double rest = 0;
        for (int64_t o = team.first(); o < s.outputs; o += team.step)
            rest += numbers[o].dmean * s.weight[o * s.columns + column];
        for (int64_t j = team.first(); j < s.columns; j += team.step) {
            double sum = 0;
            for (int64_t o = 0; o < s.outputs; o++)
                sum += 2 * numbers[o].dvariance * s.weight[o * s.columns + j] * s.weight[o * s.columns + column];
            t[j * s.columns + column] = (float)(sum / rows);
            rest -= s.gram[j] * sum;
        }
        rest = team.sum(rest);
        if (team.first() == 0)
            t[s.columns * s.columns + column] = (float)(rest / rows);
    }
};

static att_status prepare_norm_grad(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)problem->in[2].shape.dims[0] * sizeof(norm_numbers);
    return ATT_OK;
}

static att_status run_norm_grad(const att_call *call)
{
    enum { DMATRIX, GRAM, WEIGHT, GAMMA, STATS };
    norm_shape s = norm_shape_of(call, GRAM, WEIGHT);
    norm_numbers *numbers = (norm_numbers *)call->scratch;
    cuda_each_row(s.outputs, s.columns,
                  norm_output_grad{s, (const float *)call->in[DMATRIX], (const float *)call->in[GAMMA],
                                   (const float *)call->in[STATS], (float *)call->out[1], (float *)call->out[2],
                                   (float *)call->out[3], numbers});
    if (call->out[0])
        cuda_each_row(
            s.columns, s.columns,
            norm_column{s, numbers, (float *)call->out[0], (double)ATT_ATTRS(call->problem, gram_norm)->rows});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(gram_norm_grad, prepare_norm_grad, run_norm_grad, nullptr);
