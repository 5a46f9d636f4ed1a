/* layer_norm, rms_norm and l2_norm: norms of rows, and their gradients. */
#include "engine/kernels/cuda/rows.cuh"
#include "engine/kernels/cuda/teams.cuh"

extern "C" {
#include "engine/ops/l2_norm.h"
#include "engine/ops/layer_norm.h"
#include "engine/ops/rms_norm.h"
}

static int columns_of(const att_call *call, int input)
{
    return (int)att_cuda_dim(&call->problem->in[input], -1);
}

/* --- layer_norm --------------------------------------------------------------------------------------------------- */

/* Rows of any length. */
template <class Y> struct norm_row {
    const float *x, *gamma, *beta;
    Y *y;
    float *stats;
    int columns;
    float eps;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        const float *from = x + row * columns;
        float sum = 0, squares = 0;
        for (int c = team.first(); c < columns; c += team.step)
            sum += from[c];
        float mean = team.sum(sum) / columns;
        for (int c = team.first(); c < columns; c += team.step)
            squares = fmaf(from[c] - mean, from[c] - mean, squares);
        float rstd = 1 / sqrtf(team.sum(squares) / columns + eps);
        if (stats && team.first() == 0)
            stats[2 * row] = mean, stats[2 * row + 1] = rstd;
        for (int c = team.first(); y && c < columns; c += team.step)
            store(y, row * columns + c, (from[c] - mean) * rstd * gamma[c] + beta[c]);
    }
};

enum { PACK = 4 };

/* Rows of at most 128 N elements, aligned to packs: a warp holds the row in registers. */
template <int N, class Y> struct norm_short_row {
    norm_row<Y> to;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        float x[N][PACK];
        float sum = 0, squares = 0;
#pragma unroll
        for (int n = 0; n < N; n++) {
            int c = PACK * (n * 32 + team.first());
            if (c < to.columns)
                load_pack<PACK>(to.x, row * to.columns + c, x[n]);
            else
                x[n][0] = x[n][1] = x[n][2] = x[n][3] = 0;
            sum += x[n][0] + x[n][1] + x[n][2] + x[n][3];
        }
        float mean = team.sum(sum) / to.columns;
#pragma unroll
        for (int n = 0; n < N; n++)
            for (int i = 0; i < PACK; i++) {
                float d = PACK * (n * 32 + team.first()) < to.columns ? x[n][i] - mean : 0;
                squares = fmaf(d, d, squares);
            }
        float rstd = 1 / sqrtf(team.sum(squares) / to.columns + to.eps);
        if (to.stats && team.first() == 0)
            to.stats[2 * row] = mean, to.stats[2 * row + 1] = rstd;
        if (!to.y)
            return;
#pragma unroll
        for (int n = 0; n < N; n++) {
            int c = PACK * (n * 32 + team.first());
            if (c >= to.columns)
                continue;
            float gamma[PACK], beta[PACK];
            load_pack<PACK>(to.gamma, c, gamma);
            load_pack<PACK>(to.beta, c, beta);
#pragma unroll
            for (int i = 0; i < PACK; i++)
                x[n][i] = (x[n][i] - mean) * rstd * gamma[i] + beta[i];
            store_pack<PACK>(to.y, row * to.columns + c, x[n]);
        }
    }
};

template <class Y> static void norm_rows(int64_t rows, norm_row<Y> f)
{
    bool packs = f.columns % PACK == 0 && ATT_CUDA_ALIGNED(f.x, PACK) && ATT_CUDA_ALIGNED(f.y, PACK) &&
                 ATT_CUDA_ALIGNED(f.gamma, PACK) && ATT_CUDA_ALIGNED(f.beta, PACK);
    if (packs && f.columns <= 256)
        cuda_each_row(rows, f.columns, norm_short_row<2, Y>{f});
    else if (packs && f.columns <= 512)
        cuda_each_row(rows, f.columns, norm_short_row<4, Y>{f});
    else if (packs && f.columns <= 768)
        cuda_each_row(rows, f.columns, norm_short_row<6, Y>{f});
    else if (packs && f.columns <= 1280)
        cuda_each_row(rows, f.columns, norm_short_row<10, Y>{f});
    else
        cuda_each_row(rows, f.columns, f);
}

static att_status run_layer_norm(const att_call *call)
{
    float eps = (float)ATT_ATTRS(call->problem, layer_norm)->eps;
    att_cuda_out(call, 0, [&](auto *y) {
        using Y = std::remove_pointer_t<decltype(y)>;
        norm_rows<Y>(att_cuda_rows(call, 0),
                     {(const float *)call->in[0], (const float *)call->in[1], (const float *)call->in[2], y,
                      (float *)call->out[1], columns_of(call, 0), eps});
    });
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(layer_norm, run_layer_norm);

/* --- layer_norm_grad ---------------------------------------------------------------------------------------------- */

/* mean_g and mean_gn: means over the row of g = dy gamma and of g times the normalised x. */
template <class D> struct norm_grad_row {
    const D *dy;
    const float *x, *gamma, *stats, *addend;
    cuda_value dx;
    int columns;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        float mean = stats[2 * row], rstd = stats[2 * row + 1], sum = 0, products = 0;
        int64_t begin = row * columns;
        for (int c = team.first(); c < columns; c += team.step) {
            float g = load(dy, begin + c) * gamma[c];
            sum += g;
            products = fmaf(g, (x[begin + c] - mean) * rstd, products);
        }
        float mean_g = team.sum(sum) / columns, mean_gn = team.sum(products) / columns;
        for (int c = team.first(); c < columns; c += team.step) {
            float g = load(dy, begin + c) * gamma[c], normal = (x[begin + c] - mean) * rstd;
            float gradient = rstd * (g - mean_g - normal * mean_gn);
            store(dx, begin + c, gradient + (addend ? addend[begin + c] : 0));
        }
    }
};

/* Rows of at most 128 N elements, aligned to packs: a warp holds the row in registers. */
template <int N, class D, class DX> struct norm_grad_short_row {
    norm_grad_row<D> from;
    DX *dx;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        float g[N][PACK], normal[N][PACK], mean = from.stats[2 * row], rstd = from.stats[2 * row + 1];
        float sum = 0, products = 0;
        int64_t begin = row * from.columns;
#pragma unroll
        for (int n = 0; n < N; n++) {
            int c = PACK * (n * 32 + team.first());
            float gamma[PACK];
            if (c >= from.columns)
                continue;
            load_pack<PACK>(from.dy, begin + c, g[n]);
            load_pack<PACK>(from.x, begin + c, normal[n]);
            load_pack<PACK>(from.gamma, c, gamma);
#pragma unroll
            for (int i = 0; i < PACK; i++) {
                g[n][i] *= gamma[i];
                normal[n][i] = (normal[n][i] - mean) * rstd;
                sum += g[n][i];
                products = fmaf(g[n][i], normal[n][i], products);
            }
        }
        float mean_g = team.sum(sum) / from.columns, mean_gn = team.sum(products) / from.columns;
#pragma unroll
        for (int n = 0; n < N; n++) {
            int c = PACK * (n * 32 + team.first());
            float addend[PACK] = {};
            if (c >= from.columns)
                continue;
            if (from.addend)
                load_pack<PACK>(from.addend, begin + c, addend);
#pragma unroll
            for (int i = 0; i < PACK; i++)
                g[n][i] = rstd * (g[n][i] - mean_g - normal[n][i] * mean_gn) + addend[i];
            store_pack<PACK>(dx, begin + c, g[n]);
        }
    }
};

template <class D, class DX> static void norm_grad_rows(int64_t rows, norm_grad_row<D> f, DX *dx)
{
    bool packs = f.columns % PACK == 0 && ATT_CUDA_ALIGNED(f.x, PACK) && ATT_CUDA_ALIGNED(f.dy, PACK) &&
                 ATT_CUDA_ALIGNED(dx, PACK) && ATT_CUDA_ALIGNED(f.gamma, PACK) && ATT_CUDA_ALIGNED(f.addend, PACK);
    if (packs && f.columns <= 256)
        cuda_each_row(rows, f.columns, norm_grad_short_row<2, D, DX>{f, dx});
    else if (packs && f.columns <= 512)
        cuda_each_row(rows, f.columns, norm_grad_short_row<4, D, DX>{f, dx});
    else if (packs && f.columns <= 768)
        cuda_each_row(rows, f.columns, norm_grad_short_row<6, D, DX>{f, dx});
    else
        cuda_each_row(rows, f.columns, f);
}

/* The gradients of gamma and beta. */
template <int V, class D> struct norm_parameters {
    const D *dy;
    const float *x, *stats;
    uint32_t columns;
    __device__ void begin(int64_t sample, int64_t column)
    {
        (void)sample;
        (void)column;
    }
    __device__ void row(int64_t e, float (&sums)[2][V])
    {
        int64_t row = e <= UINT32_MAX ? (uint32_t)e / columns : e / columns;
        float mean = stats[2 * row], rstd = stats[2 * row + 1], g[V], value[V];
        load_pack<V>(dy, e, g);
        load_pack<V>(x, e, value);
#pragma unroll
        for (int k = 0; k < V; k++) {
            sums[0][k] = fmaf(g[k], (value[k] - mean) * rstd, sums[0][k]);
            sums[1][k] += g[k];
        }
    }
};

struct add_parameters {
    float *dgamma, *dbeta;
    __device__ void operator()(int64_t sample, int64_t column, const float *sums) const
    {
        (void)sample;
        if (dgamma)
            dgamma[column] += sums[0];
        if (dbeta)
            dbeta[column] += sums[1];
    }
};

/* Adds a column's sums to summed outputs. */
template <int K> struct add_column_sums {
    cuda_value of[K];
    __device__ void operator()(int64_t column, const float *sums) const
    {
        for (int k = 0; k < K; k++)
            add_to(of[k], column, sums[k]);
    }
};

static att_status prepare_parameters(const att_problem *problem, att_prepared *prepared)
{
    int64_t columns = att_cuda_dim(&problem->in[1], -1), rows = att_problem_count(problem, &problem->in[1]) / columns;
    prepared->scratch_bytes = att_cuda_columns_scratch(rows, columns, 2);
    size_t packed = att_cuda_sums_scratch(1, rows, columns, 2);
    prepared->scratch_bytes = packed > prepared->scratch_bytes ? packed : prepared->scratch_bytes;
    return ATT_OK;
}

static att_status run_layer_norm_grad(const att_call *call)
{
    int columns = columns_of(call, 1);
    int64_t rows = att_cuda_rows(call, 1);
    const float *x = (const float *)call->in[1], *stats = (const float *)call->in[3];
    att_cuda_in(call, 0, [&](auto *dy) {
        using D = std::remove_const_t<std::remove_pointer_t<decltype(dy)>>;
        if (call->out[0])
            att_cuda_out(call, 0, [&](auto *dx) {
                norm_grad_rows(rows,
                               norm_grad_row<D>{dy, x, (const float *)call->in[2], stats,
                                                (const float *)cuda_in(call, 4).data, cuda_out(call, 0), columns},
                               dx);
            });
        if (call->out[1] || call->out[2])
            att_cuda_with_width(
                columns,
                [&](auto width) {
                    constexpr int V = width;
                    att_cuda_sums<2, V>(1, rows, columns, call->scratch,
                                        norm_parameters<V, D>{dy, x, stats, (uint32_t)columns},
                                        add_parameters{(float *)call->out[1], (float *)call->out[2]});
                },
                dy, x);
    });
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(layer_norm_grad, prepare_parameters, run_layer_norm_grad, nullptr);

/* --- rms_norm ----------------------------------------------------------------------------------------------------- */

struct rms_row {
    const float *x, *gamma;
    cuda_value y;
    float *rstd;
    int columns;
    float eps;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        const float *from = x + row * columns;
        float squares = 0;
        for (int c = team.first(); c < columns; c += team.step)
            squares = fmaf(from[c], from[c], squares);
        float factor = 1 / sqrtf(team.sum(squares) / columns + eps);
        if (rstd && team.first() == 0)
            rstd[row] = factor;
        for (int c = team.first(); c < columns; c += team.step)
            put(y, row * columns + c, from[c] * factor * gamma[c]);
    }
};

static att_status run_rms_norm(const att_call *call)
{
    int columns = columns_of(call, 0);
    cuda_each_row(att_cuda_rows(call, 0), columns,
                  rms_row{(const float *)call->in[0], (const float *)call->in[1], cuda_out(call, 0),
                          (float *)call->out[1], columns, (float)ATT_ATTRS(call->problem, rms_norm)->eps});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(rms_norm, run_rms_norm);

struct rms_grad_row {
    cuda_value dy;
    const float *x, *gamma, *rstd;
    cuda_value dx;
    int columns;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        int64_t begin = row * columns;
        float factor = rstd[row], sum = 0;
        for (int c = team.first(); c < columns; c += team.step)
            sum = fmaf(load(dy, begin + c) * gamma[c], x[begin + c] * factor, sum);
        float mean = team.sum(sum) / columns;
        for (int c = team.first(); c < columns; c += team.step)
            store(dx, begin + c, factor * (load(dy, begin + c) * gamma[c] - x[begin + c] * factor * mean));
    }
};

struct rms_parameters {
    cuda_value dy;
    const float *x, *rstd;
    int64_t columns;
    __device__ void operator()(int64_t row, int64_t column, float numbers[1]) const
    {
        int64_t e = row * columns + column;
        numbers[0] = load(dy, e) * x[e] * rstd[row];
    }
};

static att_status run_rms_norm_grad(const att_call *call)
{
    int columns = columns_of(call, 1);
    int64_t rows = att_cuda_rows(call, 1);
    const float *x = (const float *)call->in[1], *rstd = (const float *)call->in[3];
    if (call->out[0])
        cuda_each_row(rows, columns,
                      rms_grad_row{cuda_in(call, 0), x, (const float *)call->in[2], rstd, cuda_out(call, 0), columns});
    if (call->out[1])
        att_cuda_columns<1>(rows, columns, call->scratch, rms_parameters{cuda_in(call, 0), x, rstd, columns},
                            add_column_sums<1>{{cuda_out(call, 1)}});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(rms_norm_grad, prepare_parameters, run_rms_norm_grad, nullptr);

/* --- l2_norm ------------------------------------------------------------------------------------------------------ */

struct l2_row {
    const float *x;
    cuda_value y;
    float *norms;
    int columns;
    float eps;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        const float *from = x + row * columns;
        float squares = 0;
        for (int c = team.first(); c < columns; c += team.step)
            squares = fmaf(from[c], from[c], squares);
        float norm = sqrtf(team.sum(squares)), divisor = norm < eps ? eps : norm; /* NaN stays NaN */
        if (norms && team.first() == 0)
            norms[row] = norm;
        for (int c = team.first(); c < columns; c += team.step)
            put(y, row * columns + c, from[c] / divisor);
    }
};

static att_status run_l2_norm(const att_call *call)
{
    int columns = columns_of(call, 0);
    cuda_each_row(att_cuda_rows(call, 0), columns,
                  l2_row{(const float *)call->in[0], cuda_out(call, 0), (float *)call->out[1], columns,
                         (float)ATT_ATTRS(call->problem, l2_norm)->eps});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(l2_norm, run_l2_norm);

struct l2_grad_row {
    cuda_value dy;
    const float *x, *norms;
    cuda_value dx;
    int columns;
    float eps;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        int64_t begin = row * columns;
        float norm = norms[row], sum = 0;
        bool clamped = norm <= eps;
        for (int c = team.first(); !clamped && c < columns; c += team.step)
            sum = fmaf(load(dy, begin + c), x[begin + c] / norm, sum);
        float product = team.sum(sum);
        for (int c = team.first(); c < columns; c += team.step) {
            float g = load(dy, begin + c);
            store(dx, begin + c, clamped ? g / eps : (g - x[begin + c] / norm * product) / norm);
        }
    }
};

static att_status run_l2_norm_grad(const att_call *call)
{
    int columns = columns_of(call, 1);
    cuda_each_row(att_cuda_rows(call, 1), columns,
                  l2_grad_row{cuda_in(call, 0), (const float *)call->in[1], (const float *)call->in[2],
                              cuda_out(call, 0), columns, (float)ATT_ATTRS(call->problem, l2_norm)->eps});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(l2_norm_grad, run_l2_norm_grad);
