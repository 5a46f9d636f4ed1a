/* channel_conv and channel_linear: filters over the channels of a sample, and over the numbers of each channel. */
#include "engine/kernels/cuda/teams.cuh"

extern "C" {
#include "engine/ops/channel_conv.h"
}

struct conv_element {
    cuda_value x, weight, y;
    int64_t columns;
    int width;
    bool flipped;
    __device__ void operator()(int64_t e) const
    {
        float sum = 0;
        for (int j = 0; j < width; j++) {
            int64_t offset = j - (width - 1) / 2, c = e % columns + offset;
            if (c >= 0 && c < columns)
                sum = fmaf(load(x, e + offset), load(weight, flipped ? width - 1 - j : j), sum);
        }
        store(y, e, sum);
    }
};

static att_status run_conv(const att_call *call)
{
    att_cuda_each(att_cuda_in_count(call, 0),
                  conv_element{cuda_in(call, 0), cuda_in(call, 1), cuda_out(call, 0),
                               call->problem->in[0].shape.dims[0], (int)att_cuda_dim(&call->problem->in[1], -1),
                               ATT_ATTRS(call->problem, channel_conv)->flipped});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(channel_conv, run_conv);

/* Rows are taps of the filter. */
struct conv_tap {
    cuda_value dy, x, gradient;
    int64_t columns, count;
    int width;
    template <class Team> __device__ void operator()(int64_t j, Team team) const
    {
        int64_t offset = j - (width - 1) / 2;
        float sum = 0;
        for (int64_t e = team.first(); e < count; e += team.step) {
            int64_t c = e % columns + offset;
            if (c >= 0 && c < columns)
                sum = fmaf(load(dy, e), load(x, e + offset), sum);
        }
        sum = team.sum(sum);
        if (team.first() == 0)
            add_to(gradient, j, sum);
    }
};

static att_status run_conv_weight_grad(const att_call *call)
{
    int width = (int)att_cuda_dim(&call->problem->in[2], -1);
    cuda_each_row(width, CUDA_WARP_COLUMNS + 1,
                  conv_tap{cuda_in(call, 0), cuda_in(call, 1), cuda_out(call, 0), call->problem->in[0].shape.dims[0],
                           att_cuda_in_count(call, 0), width});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(channel_conv_weight_grad, run_conv_weight_grad);

struct linear_channel {
    cuda_value x, weight, y;
    int64_t channels, width;
    __device__ void operator()(int64_t k) const
    {
        float sum = 0;
        for (int64_t j = 0; j < width; j++)
            sum = fmaf(load(x, k * width + j), load(weight, k % channels * width + j), sum);
        store(y, k, sum);
    }
};

static att_status run_linear(const att_call *call)
{
    const int64_t *dims = call->problem->in[0].shape.dims;
    att_cuda_each(dims[0] * call->problem->group,
                  linear_channel{cuda_in(call, 0), cuda_in(call, 1), cuda_out(call, 0), dims[0], dims[1]});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(channel_linear, run_linear);

struct linear_grad_element {
    cuda_value dy, weight, dx;
    int64_t width, all;
    __device__ void operator()(int64_t e) const
    {
        store(dx, e, load(dy, e / width) * load(weight, e % all));
    }
};

static att_status run_linear_grad(const att_call *call)
{
    int64_t all = att_cuda_in_count(call, 1);
    att_cuda_each(all * call->problem->group, linear_grad_element{cuda_in(call, 0), cuda_in(call, 1), cuda_out(call, 0),
                                                                  call->problem->in[1].shape.dims[1], all});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(channel_linear_grad, run_linear_grad);

struct linear_weight {
    cuda_value dy, x, gradient;
    int64_t width, all, count;
    __device__ void operator()(int64_t k) const
    {
        float sum = 0;
        for (int64_t e = k; e < count; e += all)
            sum = fmaf(load(dy, e / width), load(x, e), sum);
        add_to(gradient, k, sum);
    }
};

static att_status run_linear_weight_grad(const att_call *call)
{
    const int64_t *dims = call->problem->in[1].shape.dims;
    int64_t all = dims[0] * dims[1];
    att_cuda_each(all, linear_weight{cuda_in(call, 0), cuda_in(call, 1), cuda_out(call, 0), dims[1], all,
                                     att_cuda_in_count(call, 1)});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(channel_linear_weight_grad, run_linear_weight_grad);
