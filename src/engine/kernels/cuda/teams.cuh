/* kernels/cuda/teams.cuh - work on rows: a warp for each row, or a block if rows are long. */
#ifndef ATT_KERNELS_CUDA_TEAMS_CUH
#define ATT_KERNELS_CUDA_TEAMS_CUH

#include "engine/kernels/cuda/cuda.cuh"
#include "engine/kernels/cuda/value.cuh"

/* The T threads that share a row: each handles columns first, first + T, ... All of them call sum() and max(). */
template <int T> struct row_team {
    static constexpr int step = T;
    __device__ int first() const
    {
        return (int)threadIdx.x % T;
    }
    template <class S> __device__ S sum(S value) const
    {
        if constexpr (T == 32)
            return warp_sum(value);
        else
            return block_sum(value);
    }
    __device__ float max(float value) const
    {
        if constexpr (T == 32)
            return warp_max(value);
        else
            return block_max(value);
    }
};

template <int T, class F> __global__ void __launch_bounds__(ATT_CUDA_THREADS) cuda_rows_kernel(int64_t rows, F f)
{
    int64_t row = blockIdx.x * (int64_t)(ATT_CUDA_THREADS / T) + threadIdx.x / T;
    if (row < rows)
        f(row, row_team<T>());
}

/* Rows of more columns than this are shared by a block. */
enum { CUDA_WARP_COLUMNS = 2048 };

/* Calls f(row, team) for each row, in any order. f: a struct with a template for the team. */
template <class F> static void cuda_each_row(int64_t rows, int64_t columns, F f)
{
    if (rows == 0)
        return;
    if (columns <= CUDA_WARP_COLUMNS)
        cuda_rows_kernel<32><<<(unsigned)((rows + 7) / 8), ATT_CUDA_THREADS, 0, cuda.stream>>>(rows, f);
    else
        cuda_rows_kernel<ATT_CUDA_THREADS><<<(unsigned)rows, ATT_CUDA_THREADS, 0, cuda.stream>>>(rows, f);
}

#endif
