/* Sums over samples and rows, factors of columns, and linear combinations. */
#include "engine/kernels/cuda/rows.cuh"

extern "C" {
#include "engine/ops/combine.h"
#include "engine/ops/sum_samples.h"
}

namespace
{

/* --- sum_samples -------------------------------------------------------------------------------------------------- */

struct add_sums {
    float *sum;
    float times;
    __device__ void operator()(int64_t sample, int64_t column, const float *sums) const
    {
        (void)sample;
        sum[column] += sums[0] * times;
    }
};

static att_status run_sum_samples(const att_call *call)
{
    int64_t kept = att_shape_count(call->problem->out[0].shape), rows = att_cuda_in_count(call, 0) / kept;
    float times = call->problem->in[0].kind == ATT_BATCH ? (float)call->problem->group : 1;
    att_cuda_in(call, 0, [&](auto *x) {
        typedef std::remove_const_t<std::remove_pointer_t<decltype(x)>> X;
        att_cuda_with_width(
            kept,
            [&](auto width) {
                constexpr int V = width;
                att_cuda_sums<1, V>(1, rows, kept, call->scratch, plain_sums<V, X>{x},
                                    add_sums{(float *)call->out[0], times});
            },
            x);
    });
    return att_cuda_launched(call);
}

static att_status prepare_sum_samples(const att_problem *problem, att_prepared *prepared)
{
    int64_t kept = att_shape_count(problem->out[0].shape);
    prepared->scratch_bytes = att_cuda_sums_scratch(1, att_problem_count(problem, &problem->in[0]) / kept, kept, 1);
    return ATT_OK;
}

/* --- factors of columns ------------------------------------------------------------------------------------------- */

template <int V, class Y, class X, class G> struct scaled {
    Y *y;
    const X *x;
    const G *gamma;
    float factor[V];
    __device__ void begin(int64_t sample, int64_t column)
    {
        (void)sample;
        for (int k = 0; k < V; k++)
            factor[k] = load(gamma, column + k);
    }
    __device__ void row(int64_t e)
    {
        float value[V];
        load_pack<V>(x, e, value);
#pragma unroll
        for (int k = 0; k < V; k++)
            value[k] *= factor[k];
        store_pack<V>(y, e, value);
    }
};

static att_status run_scale(const att_call *call)
{
    int64_t columns = att_cuda_dim(&call->problem->in[0], -1), rows = att_cuda_rows(call, 0);
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *x) {
            att_cuda_in(call, 1, [&](auto *gamma) {
                typedef std::remove_pointer_t<decltype(y)> Y;
                typedef std::remove_const_t<std::remove_pointer_t<decltype(x)>> X;
                typedef std::remove_const_t<std::remove_pointer_t<decltype(gamma)>> G;
                att_cuda_with_width(
                    columns,
                    [&](auto width) {
                        constexpr int V = width;
                        att_cuda_rows_each<V>(1, rows, columns, scaled<V, Y, X, G>{y, x, gamma, {}});
                    },
                    y, x);
            });
        });
    });
    return att_cuda_launched(call);
}

template <int V, class A, class B> struct product_sums {
    const A *a;
    const B *b;
    __device__ void begin(int64_t sample, int64_t column)
    {
        (void)sample;
        (void)column;
    }
    __device__ void row(int64_t e, float (&sums)[1][V])
    {
        float x[V], y[V];
        load_pack<V>(a, e, x);
        load_pack<V>(b, e, y);
#pragma unroll
        for (int k = 0; k < V; k++)
            sums[0][k] += x[k] * y[k];
    }
};

static att_status run_scale_grad(const att_call *call)
{
    int64_t columns = att_cuda_dim(&call->problem->in[0], -1), rows = att_cuda_rows(call, 0);
    att_cuda_in(call, 0, [&](auto *dy) {
        att_cuda_in(call, 1, [&](auto *x) {
            typedef std::remove_const_t<std::remove_pointer_t<decltype(dy)>> A;
            typedef std::remove_const_t<std::remove_pointer_t<decltype(x)>> B;
            att_cuda_with_width(
                columns,
                [&](auto width) {
                    constexpr int V = width;
                    att_cuda_sums<1, V>(1, rows, columns, call->scratch, product_sums<V, A, B>{dy, x},
                                        add_sums{(float *)call->out[0], 1});
                },
                dy, x);
        });
    });
    return att_cuda_launched(call);
}

static att_status prepare_scale_grad(const att_problem *problem, att_prepared *prepared)
{
    int64_t columns = att_cuda_dim(&problem->in[0], -1), count = att_problem_count(problem, &problem->in[0]);
    prepared->scratch_bytes = att_cuda_sums_scratch(1, count / columns, columns, 1);
    return ATT_OK;
}

/* --- combinations ------------------------------------------------------------------------------------------------- */

struct times {
    float a;
    __device__ float operator()(float x) const
    {
        return a * x;
    }
};

struct weighted_sum {
    float a, b;
    __device__ float operator()(float x, float z) const
    {
        return a * x + b * z;
    }
};

static att_status run_combine(const att_call *call)
{
    const att_combine_attrs *attrs = ATT_ATTRS(call->problem, combine);
    if (call->in[1])
        return att_cuda_map2(call, weighted_sum{(float)attrs->a, (float)attrs->b});
    return att_cuda_map1(call, times{(float)attrs->a});
}

struct seed {
    float *dloss;
    float scale;
    __device__ void operator()(int64_t sample) const
    {
        dloss[sample] = scale;
    }
};

static att_status run_loss_seed(const att_call *call)
{
    att_cuda_each(call->problem->group, seed{(float *)call->out[0], (float)call->run->scale});
    return att_cuda_launched(call);
}

} // namespace

ATT_CUDA_PREPARED_KERNEL(sum_samples, prepare_sum_samples, run_sum_samples, nullptr);
ATT_CUDA_KERNEL(scale, run_scale);
ATT_CUDA_PREPARED_KERNEL(scale_grad, prepare_scale_grad, run_scale_grad, nullptr);
ATT_CUDA_KERNEL(combine, run_combine);
ATT_CUDA_KERNEL(loss_seed, run_loss_seed);
