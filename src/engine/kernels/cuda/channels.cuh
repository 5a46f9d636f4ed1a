/* kernels/cuda/channels.cuh - sums over the rows of each channel of each sample. */
#ifndef ATT_KERNELS_CUDA_CHANNELS_CUH
#define ATT_KERNELS_CUDA_CHANNELS_CUH

#include "engine/kernels/cuda/teams.cuh"

/* The rows of the samples of an input: [samples, rows, columns]. */
struct cuda_channels {
    int64_t samples, rows, columns;
};

static inline cuda_channels cuda_channels_of(const att_call *call, int input)
{
    int64_t columns = att_cuda_dim(&call->problem->in[input], -1);
    return {call->problem->group, att_shape_count(call->problem->in[input].shape) / columns, columns};
}

enum { CHANNEL_THREADS_X = 32, CHANNEL_THREADS_Y = 16 };

template <int K, class F, class S>
__global__ void __launch_bounds__(CHANNEL_THREADS_X *CHANNEL_THREADS_Y)
    cuda_channel_sums_kernel(cuda_channels x, F f, S sink)
{
    __shared__ float sums[K][CHANNEL_THREADS_Y][CHANNEL_THREADS_X + 1];
    int64_t tiles = (x.columns + CHANNEL_THREADS_X - 1) / CHANNEL_THREADS_X, sample = blockIdx.x / tiles;
    int64_t channel = blockIdx.x % tiles * CHANNEL_THREADS_X + threadIdx.x;
    float sum[K] = {}, numbers[K];
    for (int64_t row = threadIdx.y; row < x.rows && channel < x.columns; row += CHANNEL_THREADS_Y) {
        f(sample, row, channel, (sample * x.rows + row) * x.columns + channel, numbers);
#pragma unroll
        for (int k = 0; k < K; k++)
            sum[k] += numbers[k];
    }
#pragma unroll
    for (int k = 0; k < K; k++)
        sums[k][threadIdx.y][threadIdx.x] = sum[k];
    __syncthreads();
    if (threadIdx.y > 0 || channel >= x.columns)
        return;
#pragma unroll
    for (int k = 0; k < K; k++) {
        sum[k] = 0;
        for (int y = 0; y < CHANNEL_THREADS_Y; y++)
            sum[k] += sums[k][y][threadIdx.x];
    }
    sink(sample * x.columns + channel, sum);
}

/* Calls sink(sample C + channel, sums) for each channel of each sample, where sums[k] is the sum over its rows, in a
 * fixed order, of the numbers [K] that f(sample, row, channel, element, numbers) writes. */
template <int K, class F, class S> static void cuda_channel_sums(cuda_channels x, F f, S sink)
{
    int64_t blocks = x.samples * ((x.columns + CHANNEL_THREADS_X - 1) / CHANNEL_THREADS_X);
    if (blocks > 0)
        cuda_channel_sums_kernel<K>
            <<<(unsigned)blocks, dim3(CHANNEL_THREADS_X, CHANNEL_THREADS_Y), 0, cuda.stream>>>(x, f, sink);
}

#endif
