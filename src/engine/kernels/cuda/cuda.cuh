/* kernels/cuda/cuda.cuh - what all CUDA kernels share: the device, launches, types of elements, sums.
 *
 * A file <ops>.cu holds the kernels and the host code of a few related ops, and ends in their descriptors:
 *
 *     ATT_CUDA_KERNEL(relu, run_relu);
 *
 * with a line in list.h. A call has one part; it launches on cuda.stream and returns att_cuda_launched(). Nothing may
 * wait for the device. Sums are taken in f32 in a fixed order: no atomic operations on floats. Values are f32 or bf16
 * (sums of squares and norms of updates: f64), and aligned to their element size only; ATT_CUDA_ALIGNED() tells whether
 * wider accesses are possible.
 */
#ifndef ATT_KERNELS_CUDA_CUDA_CUH
#define ATT_KERNELS_CUDA_CUDA_CUH

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern "C" {
#include "engine/backend/backend.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
}

typedef __nv_bfloat16 bf16;

/* --- the device --------------------------------------------------------------------------------------------------- */

/* The process's device. All work is done on one stream. Opened once, by att_cuda_start() in backend.cu. */
struct att_cuda {
    cudaStream_t stream;
    cublasLtHandle_t blas;
    void *workspace; /* of matrix products, on the device */
    size_t workspace_bytes;
    int multiprocessors;
};
extern att_cuda cuda;

/* Fails with the error's text if `error` is one. what: what was done, such as "the kernel of linear". */
att_status att_cuda_check(att_context *context, cudaError_t error, const char *what);

/* The status of the launches of a call. */
static inline att_status att_cuda_launched(const att_call *call)
{
    return att_cuda_check(call->problem->context, cudaPeekAtLastError(), call->problem->op);
}

/* Accepts problems whose floats are all f32 or bf16. */
bool att_cuda_accepts(const att_problem *problem);

/* The descriptor att_cuda_<op> of a kernel that needs nothing prepared, and of one with a prepare function. */
#define ATT_CUDA_KERNEL(op_, run_) ATT_CUDA_PREPARED_KERNEL(op_, nullptr, run_, nullptr)
#define ATT_CUDA_PREPARED_KERNEL(op_, prepare_, run_, release_)                                                        \
    ATT_CUDA_DESCRIPTOR(op_, "cuda", att_cuda_accepts, prepare_, nullptr, run_, release_)
/* The descriptor with a name and all functions. */
#define ATT_CUDA_DESCRIPTOR(op_, name_, accepts_, prepare_, pack_, run_, release_) \
    extern "C" const att_kernel att_cuda_##op_ = {                                 \
        #op_, name_, 0, false, 0, 0, accepts_, prepare_, pack_, run_, release_}

/* --- shapes ------------------------------------------------------------------------------------------------------- */

/* Size of axis `axis` of a value; negative axes count from the last. */
static inline int64_t att_cuda_dim(const att_desc *desc, int axis)
{
    return desc->shape.dims[axis < 0 ? desc->shape.rank + axis : axis];
}

/* Elements of input i, and of output i, for the whole group; and the rows of an input, all axes but the last. */
static inline int64_t att_cuda_in_count(const att_call *call, int i)
{
    return att_problem_count(call->problem, &call->problem->in[i]);
}

static inline int64_t att_cuda_out_count(const att_call *call, int i)
{
    return att_problem_count(call->problem, &call->problem->out[i]);
}

static inline int64_t att_cuda_rows(const att_call *call, int i)
{
    return att_cuda_in_count(call, i) / att_cuda_dim(&call->problem->in[i], -1);
}

/* --- element types ------------------------------------------------------------------------------------------------ */

/* Calls f(pointer) with `pointer` as a pointer to float or bf16, as dtype says. f: a generic lambda,
 *
 *     return att_cuda_typed(call->problem->in[0].dtype, call->in[0], [&](auto *x) { ... return ATT_OK; });
 */
template <class F> static auto att_cuda_typed(att_dtype dtype, const void *pointer, F f)
{
    return dtype == ATT_BF16 ? f((const bf16 *)pointer) : f((const float *)pointer);
}

template <class F> static auto att_cuda_typed(att_dtype dtype, void *pointer, F f)
{
    return dtype == ATT_BF16 ? f((bf16 *)pointer) : f((float *)pointer);
}

/* The same for input i or output i of a call. */
template <class F> static auto att_cuda_in(const att_call *call, int i, F f)
{
    return att_cuda_typed(call->problem->in[i].dtype, call->in[i], f);
}

template <class F> static auto att_cuda_out(const att_call *call, int i, F f)
{
    return att_cuda_typed(call->problem->out[i].dtype, call->out[i], f);
}

__device__ __forceinline__ float load(const float *p, int64_t i)
{
    return p[i];
}

__device__ __forceinline__ float load(const bf16 *p, int64_t i)
{
    return __bfloat162float(p[i]);
}

__device__ __forceinline__ void store(float *p, int64_t i, float value)
{
    p[i] = value;
}

__device__ __forceinline__ void store(bf16 *p, int64_t i, float value)
{
    p[i] = __float2bfloat16_rn(value);
}

/* Whether the pointer allows accesses of `count` elements at once. NULL does. */
template <class T> static inline bool ATT_CUDA_ALIGNED(const T *pointer, int count)
{
    return (uintptr_t)pointer % (sizeof(T) * count) == 0;
}

/* `V` neighbouring elements, loaded and stored at once: the pointer plus i must be aligned to V elements. */
template <class T, int V> struct alignas(sizeof(T) * V) att_cuda_pack {
    T of[V];
};

template <int V, class T> __device__ __forceinline__ void load_pack(const T *p, int64_t i, float *values)
{
    att_cuda_pack<T, V> pack = *(const att_cuda_pack<T, V> *)(p + i);
#pragma unroll
    for (int k = 0; k < V; k++)
        values[k] = load(pack.of, k);
}

template <int V, class T> __device__ __forceinline__ void store_pack(T *p, int64_t i, const float *values)
{
    att_cuda_pack<T, V> pack;
#pragma unroll
    for (int k = 0; k < V; k++)
        store(pack.of, k, values[k]);
    *(att_cuda_pack<T, V> *)(p + i) = pack;
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

enum { ATT_CUDA_THREADS = 256 };

/* Blocks of `threads` threads for `items` items, each thread handling items in steps of the grid; at least 1. */
static inline unsigned att_cuda_blocks(int64_t items, int threads = ATT_CUDA_THREADS)
{
    int64_t blocks = (items + threads - 1) / threads, most = (int64_t)cuda.multiprocessors * 16;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/* Calls f(i) for each item, in any order. f: a struct with a __device__ operator(), or an extended lambda. */
template <class F> __global__ void __launch_bounds__(ATT_CUDA_THREADS) att_cuda_each_kernel(int64_t items, F f)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < items; i += (int64_t)gridDim.x * blockDim.x)
        f(i);
}

template <class F> static void att_cuda_each(int64_t items, F f)
{
    if (items > 0)
        att_cuda_each_kernel<<<att_cuda_blocks(items), ATT_CUDA_THREADS, 0, cuda.stream>>>(items, f);
}

/* y[i] = f(x[i], ...) for elementwise ops; all pointers have `count` elements. V elements per access. */
template <int V, class F, class Y, class... X>
__global__ void __launch_bounds__(ATT_CUDA_THREADS) att_cuda_map_kernel(int64_t packs, F f, Y *y, const X *...x)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < packs; i += (int64_t)gridDim.x * blockDim.x) {
        float in[sizeof...(X)][V], out[V];
        int n = 0;
        (load_pack<V>(x, i * V, in[n++]), ...);
#pragma unroll
        for (int k = 0; k < V; k++) {
            if constexpr (sizeof...(X) == 1)
                out[k] = f(in[0][k]);
            else if constexpr (sizeof...(X) == 2)
                out[k] = f(in[0][k], in[1][k]);
            else
                out[k] = f(in[0][k], in[1][k], in[2][k]);
        }
        store_pack<V>(y, i * V, out);
    }
}

template <class F, class Y, class... X> static void att_cuda_map(int64_t count, F f, Y *y, const X *...x)
{
    if (count == 0)
        return;
    constexpr int V = sizeof(Y) == 2 && ((sizeof(X) == 2) && ...) ? 8 : 4; /* accesses of at most 16 bytes */
    bool wide = count % V == 0 && ATT_CUDA_ALIGNED(y, V) && (ATT_CUDA_ALIGNED(x, V) && ...);
    if (wide)
        att_cuda_map_kernel<V><<<att_cuda_blocks(count / V), ATT_CUDA_THREADS, 0, cuda.stream>>>(count / V, f, y, x...);
    else
        att_cuda_map_kernel<1><<<att_cuda_blocks(count), ATT_CUDA_THREADS, 0, cuda.stream>>>(count, f, y, x...);
}

/* out[0] = f(in[0]) and f(in[0], in[1]) of all elements, for any types. */
template <class F> static att_status att_cuda_map1(const att_call *call, F f)
{
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *x) { att_cuda_map(att_cuda_in_count(call, 0), f, y, x); });
    });
    return att_cuda_launched(call);
}

template <class F> static att_status att_cuda_map2(const att_call *call, F f)
{
    att_cuda_out(call, 0, [&](auto *y) {
        att_cuda_in(call, 0, [&](auto *a) {
            att_cuda_in(call, 1, [&](auto *b) { att_cuda_map(att_cuda_in_count(call, 0), f, y, a, b); });
        });
    });
    return att_cuda_launched(call);
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

/* The sum (or, with `larger`, the maximum) over the 32 lanes of a warp, in every lane, in a fixed order. */
__device__ __forceinline__ float warp_sum(float value)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__device__ __forceinline__ double warp_sum(double value)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__device__ __forceinline__ float warp_max(float value)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

/* The same over all threads of a block, whose number is a multiple of 32. All threads must call. */
template <class T> __device__ __forceinline__ T block_sum(T value)
{
    __shared__ T of_warp[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = (blockDim.x + 31) / 32;
    value = warp_sum(value);
    __syncthreads(); /* of_warp may still be read for the last sum */
    if (lane == 0)
        of_warp[warp] = value;
    __syncthreads();
    return warp_sum(lane < warps ? of_warp[lane] : T(0));
}

__device__ __forceinline__ float block_max(float value)
{
    __shared__ float of_warp[32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = (blockDim.x + 31) / 32;
    value = warp_max(value);
    __syncthreads();
    if (lane == 0)
        of_warp[warp] = value;
    __syncthreads();
    return warp_max(lane < warps ? of_warp[lane] : -INFINITY);
}

/* --- sums over rows ----------------------------------------------------------------------------------------------- */

/* For each column c < columns and k < K the sum over all rows of the k-th number that f(row, c, numbers) writes, a
 * float array [K]. Rows are split into chunks of a fixed size: each chunk is summed in order, and then the chunks' sums
 * are added in order, so that the bits depend on the shape alone. sink(c, sums) takes the results, a float array [K].
 * scratch: att_cuda_columns_scratch(). */
enum { ATT_CUDA_COLUMN_CHUNKS = 256 };

static inline int64_t att_cuda_column_chunks(int64_t rows, int64_t columns)
{
    int64_t tiles = (columns + 31) / 32, chunks = (1024 + tiles - 1) / tiles, most = (rows + 31) / 32;
    chunks = chunks < most ? chunks : most;
    return chunks < 1 ? 1 : chunks < ATT_CUDA_COLUMN_CHUNKS ? chunks : (int64_t)ATT_CUDA_COLUMN_CHUNKS;
}

static inline size_t att_cuda_columns_scratch(int64_t rows, int64_t columns, int k)
{
    return (size_t)att_cuda_column_chunks(rows, columns) * (size_t)columns * (size_t)k * sizeof(float);
}

/* 32 columns by 8 rows of threads. */
template <int K, class F>
__global__ void __launch_bounds__(256)
    att_cuda_columns_chunk(int64_t rows, int64_t columns, int64_t per_chunk, F f, float *partial)
{
    __shared__ float sums[K][8][33];
    int64_t column = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * per_chunk;
    int64_t end = first + per_chunk < rows ? first + per_chunk : rows;
    float sum[K] = {};
    for (int64_t row = first + threadIdx.y; row < end && column < columns; row += 8) {
        float numbers[K];
        f(row, column, numbers);
#pragma unroll
        for (int k = 0; k < K; k++)
            sum[k] += numbers[k];
    }
#pragma unroll
    for (int k = 0; k < K; k++)
        sums[k][threadIdx.y][threadIdx.x] = sum[k];
    __syncthreads();
    if (threadIdx.y < K && column < columns) {
        float total = 0;
        for (int y = 0; y < 8; y++)
            total += sums[threadIdx.y][y][threadIdx.x];
        partial[(blockIdx.y * columns + column) * K + threadIdx.y] = total;
    }
}

/* 32 columns by 8 rows of threads, of which each adds every eighth chunk. */
template <int K, class S>
__global__ void __launch_bounds__(256)
    att_cuda_columns_merge(int64_t chunks, int64_t columns, const float *partial, S sink)
{
    __shared__ float shares[K][8][33];
    int64_t column = blockIdx.x * 32 + threadIdx.x;
    float sums[K] = {};
    for (int64_t chunk = threadIdx.y; chunk < chunks && column < columns; chunk += 8)
#pragma unroll
        for (int k = 0; k < K; k++)
            sums[k] += partial[(chunk * columns + column) * K + k];
#pragma unroll
    for (int k = 0; k < K; k++)
        shares[k][threadIdx.y][threadIdx.x] = sums[k];
    __syncthreads();
    if (threadIdx.y > 0 || column >= columns)
        return;
#pragma unroll
    for (int k = 0; k < K; k++) {
        sums[k] = 0;
        for (int y = 0; y < 8; y++)
            sums[k] += shares[k][y][threadIdx.x];
    }
    sink(column, sums);
}

template <int K, class F, class S>
static void att_cuda_columns(int64_t rows, int64_t columns, void *scratch, F f, S sink)
{
    static_assert(K <= 8, "a sum for each row of threads");
    int64_t chunks = att_cuda_column_chunks(rows, columns), per_chunk = (rows + chunks - 1) / chunks;
    dim3 grid((unsigned)((columns + 31) / 32), (unsigned)chunks);
    att_cuda_columns_chunk<K><<<grid, dim3(32, 8), 0, cuda.stream>>>(rows, columns, per_chunk, f, (float *)scratch);
    att_cuda_columns_merge<K><<<(unsigned)((columns + 31) / 32), dim3(32, 8), 0, cuda.stream>>>(
        chunks, columns, (const float *)scratch, sink);
}

#endif
