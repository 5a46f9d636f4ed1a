/* kernels/cuda/rows.cuh - work on rows of a map whose columns have numbers of their own, and sums over rows.
 *
 * Both take a struct F that works on V neighbouring columns:
 *
 *     template <int V> struct f {
 *         __device__ void begin(int64_t sample, int64_t column);   reads what belongs to the columns
 *         __device__ void row(int64_t e);                          att_cuda_rows(): element e is in the first column
 *         __device__ void row(int64_t e, float (&sums)[K][V]);     att_cuda_sums(): adds to the sums
 *     };
 *
 * A thread keeps its columns and walks over rows, so that numbers of a column are read once.
 */
#ifndef ATT_KERNELS_CUDA_ROWS_CUH
#define ATT_KERNELS_CUDA_ROWS_CUH

#include "engine/kernels/cuda/cuda.cuh"

/* Calls f(std::integral_constant<int, V>) with V = 4 if that divides `columns` and all pointers allow it, else 1. */
template <class F, class... P> static void att_cuda_with_width(int64_t columns, F f, const P *...pointers)
{
    if (columns % 4 == 0 && (ATT_CUDA_ALIGNED(pointers, 4) && ...))
        f(std::integral_constant<int, 4>{});
    else
        f(std::integral_constant<int, 1>{});
}

/* Threads for `packs` packs of columns: a power of two of at most 32. */
static inline int att_cuda_lanes(int64_t packs)
{
    int lanes = 1;
    while (lanes < packs && lanes < 32)
        lanes *= 2;
    return lanes;
}

/* Slices of the rows of a sample: enough blocks for any device, so that bits do not depend on it. */
static inline int64_t att_cuda_slices(int64_t samples, int64_t rows, int64_t tiles)
{
    int64_t wanted = (512 + samples * tiles - 1) / (samples * tiles), most = (rows + 63) / 64;
    return wanted < most ? wanted : most < 1 ? 1 : most;
}

template <int V, class F>
__global__ void __launch_bounds__(256) att_cuda_rows_kernel(int64_t rows, int64_t columns, int64_t per_slice, F f)
{
    int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V, sample = blockIdx.z;
    int64_t first = blockIdx.y * per_slice, end = first + per_slice < rows ? first + per_slice : rows;
    if (column >= columns)
        return;
    f.begin(sample, column);
#pragma unroll 2
    for (int64_t row = first + threadIdx.y; row < end; row += blockDim.y)
        f.row((sample * rows + row) * columns + column);
}

/* Calls f for each row of [samples, rows, columns]. */
template <int V, class F> static void att_cuda_rows_each(int64_t samples, int64_t rows, int64_t columns, F f)
{
    if (samples * rows * columns == 0)
        return;
    int lanes = att_cuda_lanes(columns / V);
    int64_t tiles = (columns / V + lanes - 1) / lanes, slices = att_cuda_slices(samples, rows, tiles) * 2;
    int64_t per_slice = (rows + slices - 1) / slices;
    dim3 grid((unsigned)tiles, (unsigned)((rows + per_slice - 1) / per_slice), (unsigned)samples);
    att_cuda_rows_kernel<V><<<grid, dim3(lanes, 256 / lanes), 0, cuda.stream>>>(rows, columns, per_slice, f);
}

template <int K, int V, class F>
__global__ void __launch_bounds__(256)
    att_cuda_sums_kernel(int64_t rows, int64_t columns, int64_t per_slice, F f, float *partial)
{
    __shared__ float shared[256 * K * V];
    int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V, sample = blockIdx.z;
    int64_t first = blockIdx.y * per_slice, end = first + per_slice < rows ? first + per_slice : rows;
    float sums[K][V] = {};
    if (column < columns) {
        f.begin(sample, column);
#pragma unroll 4
        for (int64_t row = first + threadIdx.y; row < end; row += blockDim.y)
            f.row((sample * rows + row) * columns + column, sums);
    }
    int numbers = K * V * blockDim.x;
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
        for (int v = 0; v < V; v++)
            shared[threadIdx.y * numbers + (k * blockDim.x + threadIdx.x) * V + v] = sums[k][v];
    __syncthreads();
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < numbers; i += 256) {
        int k = i / (V * blockDim.x);
        int64_t to = (int64_t)blockIdx.x * blockDim.x * V + i % (V * blockDim.x);
        float total = 0;
        for (int y = 0; y < blockDim.y; y++)
            total += shared[y * numbers + i];
        if (to < columns)
            partial[((sample * gridDim.y + blockIdx.y) * K + k) * columns + to] = total;
    }
}

/* 32 columns by 8 rows of threads, of which each adds every eighth slice. */
template <int K, class S>
__global__ void __launch_bounds__(256)
    att_cuda_sums_merge(int64_t samples, int64_t slices, int64_t columns, const float *partial, S sink)
{
    __shared__ float shares[K][8][33];
    int64_t i = blockIdx.x * (int64_t)32 + threadIdx.x, sample = i / columns, column = i - sample * columns;
    float sums[K] = {};
    if (sample < samples)
#pragma unroll 4
        for (int64_t slice = threadIdx.y; slice < slices; slice += 8)
#pragma unroll
            for (int k = 0; k < K; k++)
                sums[k] += partial[((sample * slices + slice) * K + k) * columns + column];
#pragma unroll
    for (int k = 0; k < K; k++)
        shares[k][threadIdx.y][threadIdx.x] = sums[k];
    __syncthreads();
    if (threadIdx.y > 0 || sample >= samples)
        return;
#pragma unroll
    for (int k = 0; k < K; k++) {
        sums[k] = 0;
        for (int y = 0; y < 8; y++)
            sums[k] += shares[k][y][threadIdx.x];
    }
    sink(sample, column, sums);
}

/* Scratch of att_cuda_sums(), for any alignment of the pointers. */
static inline size_t att_cuda_sums_scratch(int64_t samples, int64_t rows, int64_t columns, int k)
{
    int64_t most = att_cuda_slices(samples, rows, (columns + 127) / 128);
    return (size_t)(samples * most * columns * k) * sizeof(float);
}

/* For each sample and column of [samples, rows, columns], K sums over the rows; sink(sample, column, sums) takes them,
 * sums: const float *. Sums are taken in a fixed order. */
template <int K, int V, class F, class S>
static void att_cuda_sums(int64_t samples, int64_t rows, int64_t columns, void *scratch, F f, S sink)
{
    int lanes = att_cuda_lanes(columns / V);
    int64_t tiles = (columns / V + lanes - 1) / lanes, slices = att_cuda_slices(samples, rows, (columns + 127) / 128);
    int64_t per_slice = (rows + slices - 1) / slices;
    slices = (rows + per_slice - 1) / per_slice;
    dim3 grid((unsigned)tiles, (unsigned)slices, (unsigned)samples);
    att_cuda_sums_kernel<K, V>
        <<<grid, dim3(lanes, 256 / lanes), 0, cuda.stream>>>(rows, columns, per_slice, f, (float *)scratch);
    att_cuda_sums_merge<K><<<(unsigned)((samples * columns + 31) / 32), dim3(32, 8), 0, cuda.stream>>>(
        samples, slices, columns, (const float *)scratch, sink);
}

/* What att_cuda_sums() adds up: the elements of x. */
template <int V, class X> struct plain_sums {
    const X *x;
    __device__ void begin(int64_t sample, int64_t column)
    {
        (void)sample;
        (void)column;
    }
    __device__ void row(int64_t e, float (&sums)[1][V])
    {
        float value[V];
        load_pack<V>(x, e, value);
#pragma unroll
        for (int k = 0; k < V; k++)
            sums[0][k] += value[k];
    }
};

#endif
