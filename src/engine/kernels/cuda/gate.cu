/* gate, pixel_gate, and the sums that their gradients need. */
#include "engine/kernels/cuda/channels.cuh"

extern "C" {
#include "engine/ops/gate.h"
}

enum { X, GATE, RESIDUAL };

/* Rows are pixels. of_pixels: a gate for each pixel, else for each channel of a sample. */
struct gate_row {
    cuda_value x, residual, y;
    const float *gate;
    cuda_channels shape;
    bool of_pixels, relu;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        const float *gates = gate + (of_pixels ? row : row / shape.rows * shape.columns);
        for (int64_t c = team.first(); c < shape.columns; c += team.step) {
            int64_t e = row * shape.columns + c;
            float value = load(x, e) * gates[of_pixels ? 0 : c] + (residual.data ? load(residual, e) : 0);
            store(y, e, relu && value < 0 ? 0 : value);
        }
    }
};

static att_status run_gates(const att_call *call, bool of_pixels)
{
    cuda_channels shape = cuda_channels_of(call, X);
    bool relu = ATT_ATTRS(call->problem, gate)->activation == ATT_ACT_RELU;
    cuda_each_row(shape.samples * shape.rows, shape.columns,
                  gate_row{cuda_in(call, X), cuda_in(call, RESIDUAL), cuda_out(call, 0), (const float *)call->in[GATE],
                           shape, of_pixels, relu});
    return att_cuda_launched(call);
}

static att_status run_gate(const att_call *call)
{
    return run_gates(call, false);
}

static att_status run_pixel_gate(const att_call *call)
{
    return run_gates(call, true);
}

ATT_CUDA_KERNEL(gate, run_gate);
ATT_CUDA_KERNEL(pixel_gate, run_pixel_gate);

struct channel_product {
    cuda_value a, b;
    __device__ void operator()(int64_t, int64_t, int64_t, int64_t e, float numbers[1]) const
    {
        numbers[0] = load(a, e) * load(b, e);
    }
};

struct channel_put {
    cuda_value to;
    __device__ void operator()(int64_t number, const float sums[1]) const
    {
        store(to, number, sums[0]);
    }
};

static att_status run_channel_dot(const att_call *call)
{
    cuda_channel_sums<1>(cuda_channels_of(call, 0), channel_product{cuda_in(call, 0), cuda_in(call, 1)},
                         channel_put{cuda_out(call, 0)});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(channel_dot, run_channel_dot);

struct dot_row {
    cuda_value a, b, y;
    int64_t columns;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        float sum = 0;
        for (int64_t c = team.first(); c < columns; c += team.step)
            sum = fmaf(load(a, row * columns + c), load(b, row * columns + c), sum);
        sum = team.sum(sum);
        if (team.first() == 0)
            store(y, row, sum);
    }
};

static att_status run_pixel_dot(const att_call *call)
{
    int64_t columns = att_cuda_dim(&call->problem->in[0], -1);
    cuda_each_row(att_cuda_rows(call, 0), columns,
                  dot_row{cuda_in(call, 0), cuda_in(call, 1), cuda_out(call, 0), columns});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(pixel_dot, run_pixel_dot);
