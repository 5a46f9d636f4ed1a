/* Batch norm: of inference, and its training form (moments of samples, of the batch, normalisation, gradients). */
#include "engine/kernels/cuda/rows.cuh"

extern "C" {
#include "engine/ops/batch_moments.h"
#include "engine/ops/batch_norm.h"
}

namespace
{

static int64_t rows_of_sample(const att_desc *x)
{
    return att_shape_count(x->shape) / att_cuda_dim(x, -1);
}

/* --- y = gamma (x - mean) / sqrt(variance + eps) + beta, ReLU ----------------------------------------------------- */

template <int V, class Y, class X> struct normalized {
    Y *y;
    const X *x;
    const float *gamma, *beta, *mean, *variance;
    double eps;
    bool relu;
    float slope[V], centre[V], shift[V];
    __device__ void begin(int64_t sample, int64_t column)
    {
        (void)sample;
        for (int k = 0; k < V; k++) {
            slope[k] = gamma[column + k] * (float)(1 / sqrt((double)variance[column + k] + eps));
            centre[k] = mean[column + k];
            shift[k] = beta[column + k];
        }
    }
    __device__ void row(int64_t e)
    {
        float value[V];
        load_pack<V>(x, e, value);
#pragma unroll
        for (int k = 0; k < V; k++) {
            value[k] = (value[k] - centre[k]) * slope[k] + shift[k];
            value[k] = relu && value[k] < 0 ? 0 : value[k];
        }
        store_pack<V>(y, e, value);
    }
};

static att_status normalize(const att_call *call, const float *gamma, const float *beta, const float *mean,
                            const float *variance)
{
    const att_batch_norm_attrs *attrs = ATT_ATTRS(call->problem, batch_norm);
    int64_t columns = att_cuda_dim(&call->problem->in[0], -1), rows = att_cuda_rows(call, 0);
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *x) {
            typedef std::remove_pointer_t<decltype(y)> Y;
            typedef std::remove_const_t<std::remove_pointer_t<decltype(x)>> X;
            att_cuda_with_width(
                columns,
                [&](auto width) {
                    constexpr int V = width;
                    normalized<V, Y, X> f = {
                        y, x, gamma, beta, mean, variance, attrs->eps, attrs->activation == ATT_ACT_RELU, {}, {}, {}};
                    att_cuda_rows_each<V>(1, rows, columns, f);
                },
                y, x);
        });
    });
    return att_cuda_launched(call);
}

static att_status run_batch_norm(const att_call *call)
{
    enum { X, GAMMA, BETA, MEAN, VARIANCE };
    return normalize(call, (const float *)call->in[GAMMA], (const float *)call->in[BETA], (const float *)call->in[MEAN],
                     (const float *)call->in[VARIANCE]);
}

static att_status run_normalize(const att_call *call)
{
    enum { X, STATS, GAMMA, BETA };
    const float *stats = (const float *)call->in[STATS];
    return normalize(call, (const float *)call->in[GAMMA], (const float *)call->in[BETA], stats,
                     stats + att_cuda_dim(&call->problem->in[X], -1));
}

/* --- the gradient with fixed statistics --------------------------------------------------------------------------- */

template <int V, class DX, class DY> struct scaled_gradient {
    DX *dx;
    const DY *dy;
    const float *gamma, *variance;
    double eps;
    float slope[V];
    __device__ void begin(int64_t sample, int64_t column)
    {
        (void)sample;
        for (int k = 0; k < V; k++)
            slope[k] = gamma[column + k] * (float)(1 / sqrt((double)variance[column + k] + eps));
    }
    __device__ void row(int64_t e)
    {
        float value[V];
        load_pack<V>(dy, e, value);
#pragma unroll
        for (int k = 0; k < V; k++)
            value[k] *= slope[k];
        store_pack<V>(dx, e, value);
    }
};

/* Sums of dy and of dy (x - mean) rstd. */
template <int V, class DY, class X> struct gradient_sums {
    const DY *dy;
    const X *x;
    const float *mean, *variance;
    double eps;
    float centre[V], rstd[V];
    __device__ void begin(int64_t sample, int64_t column)
    {
        (void)sample;
        for (int k = 0; k < V; k++) {
            centre[k] = mean[column + k];
            rstd[k] = (float)(1 / sqrt((double)variance[column + k] + eps));
        }
    }
    __device__ void row(int64_t e, float (&sums)[2][V])
    {
        float g[V], value[V];
        load_pack<V>(dy, e, g);
        load_pack<V>(x, e, value);
#pragma unroll
        for (int k = 0; k < V; k++) {
            sums[0][k] += g[k];
            sums[1][k] += g[k] * (value[k] - centre[k]) * rstd[k];
        }
    }
};

struct add_gradients {
    float *dbeta, *dgamma;
    __device__ void operator()(int64_t sample, int64_t column, const float *sums) const
    {
        (void)sample;
        if (dbeta)
            dbeta[column] += sums[0];
        if (dgamma)
            dgamma[column] += sums[1];
    }
};

static att_status run_batch_norm_grad(const att_call *call)
{
    enum { DY, X, GAMMA, MEAN, VARIANCE };
    double eps = ATT_ATTRS(call->problem, batch_norm)->eps;
    int64_t columns = att_cuda_dim(&call->problem->in[DY], -1), rows = att_cuda_rows(call, DY);
    const float *gamma = (const float *)call->in[GAMMA], *mean = (const float *)call->in[MEAN],
                *variance = (const float *)call->in[VARIANCE];
    att_cuda_in(call, DY, [&](auto *dy) {
        typedef std::remove_const_t<std::remove_pointer_t<decltype(dy)>> DYType;
        if (call->out[0])
            att_cuda_out(call, 0, [&](auto *dx) {
                typedef std::remove_pointer_t<decltype(dx)> DX;
                att_cuda_with_width(
                    columns,
                    [&](auto width) {
                        constexpr int V = width;
                        scaled_gradient<V, DX, DYType> f = {dx, dy, gamma, variance, eps, {}};
                        att_cuda_rows_each<V>(1, rows, columns, f);
                    },
                    dx, dy);
            });
        if (call->in[X] && (call->out[1] || call->out[2]))
            att_cuda_in(call, X, [&](auto *x) {
                typedef std::remove_const_t<std::remove_pointer_t<decltype(x)>> XType;
                att_cuda_with_width(
                    columns,
                    [&](auto width) {
                        constexpr int V = width;
                        gradient_sums<V, DYType, XType> f = {dy, x, mean, variance, eps, {}, {}};
                        att_cuda_sums<2, V>(1, rows, columns, call->scratch, f,
                                            add_gradients{(float *)call->out[2], (float *)call->out[1]});
                    },
                    dy, x);
            });
    });
    return att_cuda_launched(call);
}

static att_status prepare_batch_norm_grad(const att_problem *problem, att_prepared *prepared)
{
    int64_t columns = att_cuda_dim(&problem->in[0], -1), count = att_problem_count(problem, &problem->in[0]);
    prepared->scratch_bytes = att_cuda_sums_scratch(1, count / columns, columns, 2);
    return ATT_OK;
}

/* --- moments ------------------------------------------------------------------------------------------------------ */

/* Sums of d and d^2 with d = x - the sample's first row: a value near the mean keeps the difference of squares
 * accurate. */
template <int V, class X> struct moment_sums {
    const X *x;
    int64_t rows, columns;
    float origin[V];
    __device__ void begin(int64_t sample, int64_t column)
    {
        load_pack<V>(x, sample * rows * columns + column, origin);
    }
    __device__ void row(int64_t e, float (&sums)[2][V])
    {
        float value[V];
        load_pack<V>(x, e, value);
#pragma unroll
        for (int k = 0; k < V; k++) {
            float d = value[k] - origin[k];
            sums[0][k] += d;
            sums[1][k] += d * d;
        }
    }
};

template <class X> struct store_moments {
    const X *x;
    int64_t rows, columns;
    float *moments;
    __device__ void operator()(int64_t sample, int64_t column, const float *sums) const
    {
        double origin = load(x, sample * rows * columns + column), sum = sums[0], squares = sums[1];
        double m2 = squares - sum * sum / (double)rows;
        moments[sample * 2 * columns + column] = (float)(origin + sum / (double)rows);
        moments[(sample * 2 + 1) * columns + column] = m2 > 0 ? (float)m2 : m2 == m2 ? 0 : (float)m2;
    }
};

static att_status run_channel_moments(const att_call *call)
{
    int64_t columns = att_cuda_dim(&call->problem->in[0], -1), rows = rows_of_sample(&call->problem->in[0]);
    att_cuda_in(call, 0, [&](auto *x) {
        typedef std::remove_const_t<std::remove_pointer_t<decltype(x)>> X;
        att_cuda_with_width(
            columns,
            [&](auto width) {
                constexpr int V = width;
                moment_sums<V, X> f = {x, rows, columns, {}};
                att_cuda_sums<2, V>(call->problem->group, rows, columns, call->scratch, f,
                                    store_moments<X>{x, rows, columns, (float *)call->out[0]});
            },
            x);
    });
    return att_cuda_launched(call);
}

static att_status prepare_channel_moments(const att_problem *problem, att_prepared *prepared)
{
    int64_t columns = att_cuda_dim(&problem->in[0], -1);
    prepared->scratch_bytes = att_cuda_sums_scratch(problem->group, rows_of_sample(&problem->in[0]), columns, 2);
    return ATT_OK;
}

/* One warp for each channel: its lanes walk over the samples. As in the reference (Chan, Golub, LeVeque 1983). */
__global__ void __launch_bounds__(256)
    merge_kernel(int64_t samples, int64_t columns, double rows, const float *moments, float *stats)
{
    int64_t column = blockIdx.x * (int64_t)(blockDim.x / 32) + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (column >= columns)
        return;
    double mean = 0, squares = 0;
    for (int64_t s = lane; s < samples; s += 32)
        mean += moments[s * 2 * columns + column];
    mean = warp_sum(mean) / (double)samples;
    for (int64_t s = lane; s < samples; s += 32) {
        double difference = moments[s * 2 * columns + column] - mean;
        squares += moments[(s * 2 + 1) * columns + column] + rows * difference * difference;
    }
    squares = warp_sum(squares);
    if (lane == 0) {
        stats[column] = (float)mean;
        stats[columns + column] = (float)(squares / (rows * (double)samples));
    }
}

static att_status run_merge_moments(const att_call *call)
{
    double rows = (double)ATT_ATTRS(call->problem, moments)->rows;
    int64_t columns = att_cuda_dim(&call->problem->in[0], 1);
    if (rows * (double)call->samples == 1)
        return att_fail(call->problem->context, ATT_ERR_ARGUMENT,
                        "batch norm needs more than one row; use a larger batch");
    merge_kernel<<<(unsigned)((columns + 7) / 8), 256, 0, cuda.stream>>>(
        call->samples, columns, rows, (const float *)call->in[0], (float *)call->out[0]);
    return att_cuda_launched(call);
}

struct follow {
    const float *stats, *old_mean, *old_variance;
    float *mean, *variance;
    int64_t columns;
    double momentum, unbiased;
    __device__ void operator()(int64_t c) const
    {
        if (mean)
            mean[c] = (float)((1 - momentum) * old_mean[c] + momentum * stats[c]);
        if (variance)
            variance[c] = (float)((1 - momentum) * old_variance[c] + momentum * (stats[columns + c] * unbiased));
    }
};

static att_status run_running_stats(const att_call *call)
{
    const att_moments_attrs *attrs = ATT_ATTRS(call->problem, moments);
    double n = (double)attrs->rows * (double)call->samples;
    int64_t columns = att_cuda_dim(&call->problem->in[0], 1);
    att_cuda_each(columns, follow{(const float *)call->in[0], (const float *)call->in[1], (const float *)call->in[2],
                                  (float *)call->out[0], (float *)call->out[1], columns, attrs->momentum, n / (n - 1)});
    return att_cuda_launched(call);
}

/* One warp for each element. */
__global__ void __launch_bounds__(256)
    batch_mean_kernel(int64_t samples, int64_t count, double n, const float *x, float *y)
{
    int64_t i = blockIdx.x * (int64_t)(blockDim.x / 32) + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (i >= count)
        return;
    double sum = 0;
    for (int64_t s = lane; s < samples; s += 32)
        sum += x[s * count + i];
    sum = warp_sum(sum);
    if (lane == 0)
        y[i] = (float)(sum / n);
}

static att_status run_batch_mean(const att_call *call)
{
    double n = (double)ATT_ATTRS(call->problem, moments)->rows * (double)call->samples;
    int64_t count = att_shape_count(call->problem->in[0].shape);
    batch_mean_kernel<<<(unsigned)((count + 7) / 8), 256, 0, cuda.stream>>>(
        call->samples, count, n, (const float *)call->in[0], (float *)call->out[0]);
    return att_cuda_launched(call);
}

/* --- gradients of the training form ------------------------------------------------------------------------------- */

enum { DY, X, STATS, GAMMA, BETA, MEAN_DY, MEAN_DY_NORMAL, FACTOR, POOLED };

/* n of V columns, and dy after the gradient of ReLU. */
template <int V, class DYType, class XType> struct normal_columns {
    const DYType *dy;
    const XType *x;
    const float *stats, *gamma, *beta;
    int64_t columns;
    double eps;
    bool relu;
    float centre[V], rstd[V], slope[V], shift[V];
    __device__ void begin(int64_t column)
    {
        for (int k = 0; k < V; k++) {
            centre[k] = stats[column + k];
            rstd[k] = (float)(1 / sqrt((double)stats[columns + column + k] + eps));
            slope[k] = gamma[column + k];
            shift[k] = beta[column + k];
        }
    }
    __device__ void row(int64_t e, float (&g)[V], float (&normal)[V])
    {
        load_pack<V>(dy, e, g);
        load_pack<V>(x, e, normal);
#pragma unroll
        for (int k = 0; k < V; k++) {
            normal[k] = (normal[k] - centre[k]) * rstd[k];
            if (relu && !(normal[k] * slope[k] + shift[k] > 0))
                g[k] = 0;
        }
    }
};

template <int V, class DYType, class XType> struct normalize_sums {
    normal_columns<V, DYType, XType> of;
    __device__ void begin(int64_t sample, int64_t column)
    {
        (void)sample;
        of.begin(column);
    }
    __device__ void row(int64_t e, float (&sums)[2][V])
    {
        float g[V], normal[V];
        of.row(e, g, normal);
#pragma unroll
        for (int k = 0; k < V; k++) {
            sums[0][k] += g[k];
            sums[1][k] += g[k] * normal[k];
        }
    }
};

struct store_sums {
    float *sum, *products;
    int64_t columns;
    __device__ void operator()(int64_t sample, int64_t column, const float *sums) const
    {
        if (sum)
            sum[sample * columns + column] = sums[0];
        if (products)
            products[sample * columns + column] = sums[1];
    }
};

/* Calls f(normal_columns) for the types and the width of a call; more: a further pointer that is accessed as wide. */
template <class P, class F> static void with_columns(const att_call *call, P *more, F f)
{
    const att_batch_norm_attrs *attrs = ATT_ATTRS(call->problem, batch_norm);
    int64_t columns = att_cuda_dim(&call->problem->in[X], -1);
    att_cuda_in(call, DY, [&](auto *dy) {
        att_cuda_in(call, X, [&](auto *x) {
            typedef std::remove_const_t<std::remove_pointer_t<decltype(dy)>> DYType;
            typedef std::remove_const_t<std::remove_pointer_t<decltype(x)>> XType;
            att_cuda_with_width(
                columns,
                [&](auto width) {
                    constexpr int V = width;
                    f(normal_columns<V, DYType, XType>{dy,
                                                       x,
                                                       (const float *)call->in[STATS],
                                                       (const float *)call->in[GAMMA],
                                                       (const float *)call->in[BETA],
                                                       columns,
                                                       attrs->eps,
                                                       attrs->activation == ATT_ACT_RELU,
                                                       {},
                                                       {},
                                                       {},
                                                       {}},
                      width);
                },
                dy, x, more);
        });
    });
}

static att_status run_normalize_sums(const att_call *call)
{
    int64_t columns = att_cuda_dim(&call->problem->in[X], -1), rows = rows_of_sample(&call->problem->in[X]);
    with_columns(call, (float *)nullptr, [&](auto of, auto width) {
        constexpr int V = width;
        typedef std::remove_const_t<std::remove_pointer_t<decltype(of.dy)>> DYType;
        typedef std::remove_const_t<std::remove_pointer_t<decltype(of.x)>> XType;
        att_cuda_sums<2, V>(call->problem->group, rows, columns, call->scratch, normalize_sums<V, DYType, XType>{of},
                            store_sums{(float *)call->out[0], (float *)call->out[1], columns});
    });
    return att_cuda_launched(call);
}

static att_status prepare_normalize_sums(const att_problem *problem, att_prepared *prepared)
{
    int64_t columns = att_cuda_dim(&problem->in[X], -1);
    prepared->scratch_bytes = att_cuda_sums_scratch(problem->group, rows_of_sample(&problem->in[X]), columns, 2);
    return ATT_OK;
}

/* dx = gamma rstd (factor dy + pooled / rows - mean_dy - n mean_dy_normal) */
template <int V, class DX, class DYType, class XType> struct normalize_gradient {
    normal_columns<V, DYType, XType> of;
    DX *dx;
    const float *mean_dy, *mean_dy_normal, *factor, *pooled;
    int64_t rows;
    float minus[V], by_normal[V], times[V];
    __device__ void begin(int64_t sample, int64_t column)
    {
        of.begin(column);
        for (int k = 0; k < V; k++) {
            int64_t own = sample * of.columns + column + k;
            minus[k] = mean_dy[column + k] - (pooled ? pooled[own] / (float)rows : 0);
            by_normal[k] = mean_dy_normal[column + k];
            times[k] = factor ? factor[own] : 1;
        }
    }
    __device__ void row(int64_t e)
    {
        float g[V], normal[V];
        of.row(e, g, normal);
#pragma unroll
        for (int k = 0; k < V; k++)
            g[k] = of.slope[k] * of.rstd[k] * (g[k] * times[k] - minus[k] - normal[k] * by_normal[k]);
        store_pack<V>(dx, e, g);
    }
};

static att_status run_normalize_grad(const att_call *call)
{
    int64_t columns = att_cuda_dim(&call->problem->in[X], -1), rows = rows_of_sample(&call->problem->in[X]);
    att_cuda_out(call, 0, [&](auto *dx) {
        with_columns(call, dx, [&](auto of, auto width) {
            constexpr int V = width;
            typedef std::remove_pointer_t<decltype(dx)> DX;
            typedef std::remove_const_t<std::remove_pointer_t<decltype(of.dy)>> DYType;
            typedef std::remove_const_t<std::remove_pointer_t<decltype(of.x)>> XType;
            normalize_gradient<V, DX, DYType, XType> f = {of,
                                                          dx,
                                                          (const float *)call->in[MEAN_DY],
                                                          (const float *)call->in[MEAN_DY_NORMAL],
                                                          (const float *)call->in[FACTOR],
                                                          (const float *)call->in[POOLED],
                                                          rows,
                                                          {},
                                                          {},
                                                          {}};
            att_cuda_rows_each<V>(call->problem->group, rows, columns, f);
        });
    });
    return att_cuda_launched(call);
}

} // namespace

ATT_CUDA_KERNEL(batch_norm, run_batch_norm);
ATT_CUDA_KERNEL(normalize, run_normalize);
ATT_CUDA_PREPARED_KERNEL(batch_norm_grad, prepare_batch_norm_grad, run_batch_norm_grad, nullptr);
ATT_CUDA_PREPARED_KERNEL(channel_moments, prepare_channel_moments, run_channel_moments, nullptr);
ATT_CUDA_KERNEL(merge_moments, run_merge_moments);
ATT_CUDA_KERNEL(running_stats, run_running_stats);
ATT_CUDA_KERNEL(batch_mean, run_batch_mean);
ATT_CUDA_PREPARED_KERNEL(normalize_sums, prepare_normalize_sums, run_normalize_sums, nullptr);
ATT_CUDA_KERNEL(normalize_grad, run_normalize_grad);
