#include "engine/kernels/cuda/channels.cuh"

extern "C" {
#include "engine/ops/context_broadcast.h"
}

static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    prepared->scratch_bytes = (size_t)(problem->group * att_cuda_dim(&problem->in[0], -1)) * sizeof(float);
    return ATT_OK;
}

struct column_value {
    cuda_value x;
    __device__ void operator()(int64_t, int64_t, int64_t, int64_t e, float numbers[1]) const
    {
        numbers[0] = load(x, e);
    }
};

struct column_share {
    cuda_value scale;
    float share, *to;
    cuda_channels shape;
    __device__ void operator()(int64_t number, const float sums[1]) const
    {
        to[number] = (scale.data ? load(scale, number % shape.columns) : share) * sums[0] / shape.rows;
    }
};

/* Rows are tokens. shared: [samples, C], or NULL */
struct broadcast_row {
    cuda_value x, residual, y;
    const float *shared;
    float keep;
    cuda_channels shape;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        for (int64_t c = team.first(); c < shape.columns; c += team.step) {
            int64_t e = row * shape.columns + c;
            float value = keep * load(x, e) + (shared ? shared[row / shape.rows * shape.columns + c] : 0);
            store(y, e, value + (residual.data ? load(residual, e) : 0));
        }
    }
};

static att_status run_broadcast(const att_call *call)
{
    enum { X, SCALE, RESIDUAL };
    const att_broadcast_attrs *attrs = ATT_ATTRS(call->problem, broadcast);
    cuda_channels shape = cuda_channels_of(call, X);
    cuda_value x = cuda_in(call, X), scale = cuda_in(call, SCALE);
    float *shared = scale.data || attrs->share != 0 ? (float *)call->scratch : nullptr;
    if (shared)
        cuda_channel_sums<1>(shape, column_value{x}, column_share{scale, (float)attrs->share, shared, shape});
    cuda_each_row(shape.samples * shape.rows, shape.columns,
                  broadcast_row{x, cuda_in(call, RESIDUAL), cuda_out(call, 0), shared, (float)attrs->keep, shape});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(context_broadcast, prepare, run_broadcast, nullptr);

struct column_values {
    cuda_value dy, x;
    __device__ void operator()(int64_t, int64_t, int64_t, int64_t e, float numbers[2]) const
    {
        numbers[0] = load(dy, e);
        numbers[1] = load(x, e);
    }
};

struct column_product {
    float *to, rows;
    __device__ void operator()(int64_t number, const float sums[2]) const
    {
        to[number] = sums[1] / rows * sums[0];
    }
};

struct sum_samples {
    const float *products;
    cuda_value gradient;
    cuda_channels shape;
    __device__ void operator()(int64_t c) const
    {
        float sum = 0;
        for (int64_t sample = 0; sample < shape.samples; sample++)
            sum += products[sample * shape.columns + c];
        add_to(gradient, c, sum);
    }
};

static att_status run_scale_grad(const att_call *call)
{
    enum { DY, X };
    cuda_channels shape = cuda_channels_of(call, X);
    float *products = (float *)call->scratch;
    cuda_channel_sums<2>(shape, column_values{cuda_in(call, DY), cuda_in(call, X)},
                         column_product{products, (float)shape.rows});
    att_cuda_each(shape.columns, sum_samples{products, cuda_out(call, 0), shape});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(context_broadcast_scale_grad, prepare, run_scale_grad, nullptr);
