/* kernels/cuda/attention_mma.cuh - tiles of attention in bf16 on tensor cores.
 *
 * As in FlashAttention-2 (Dao 2023), a warp owns 16 rows of a tile, and its weights stay in registers between the two
 * products.
 */
#ifndef ATT_KERNELS_CUDA_ATTENTION_MMA_CUH
#define ATT_KERNELS_CUDA_ATTENTION_MMA_CUH

#include "engine/kernels/cuda/attention.cuh"
#include "engine/kernels/cuda/mma.cuh"

enum { MMA_WARPS = 4, MMA_THREADS = 32 * MMA_WARPS, MMA_ROWS = 16, MMA_COLUMNS = 8, MMA_PER_TILE = TILE / MMA_COLUMNS };

/* Elements between rows of a tile of D channels: rows begin in different banks. */
template <int D> static constexpr int mma_stride = D + 8;

/* Whether an operand can be copied 16 bytes at a time. */
static inline bool mma_fits(const attention_operand &o)
{
    return o.x.dtype == ATT_BF16 && o.width % 8 == 0 && o.stride % 8 == 0 && o.offset % 8 == 0 &&
           (uintptr_t)o.x.data % 16 == 0 && o.of_sample % 8 == 0;
}

/* Calls f with the smallest D that holds heads of `width` channels as the type of its argument; false: none does. */
template <class F> static bool mma_with_width(int width, F f)
{
    if (width <= 32)
        f(std::integral_constant<int, 32>());
    else if (width <= 48)
        f(std::integral_constant<int, 48>());
    else if (width <= 64)
        f(std::integral_constant<int, 64>());
    else if (width <= 80)
        f(std::integral_constant<int, 80>());
    else if (width <= 96)
        f(std::integral_constant<int, 96>());
    else if (width <= 128)
        f(std::integral_constant<int, 128>());
    else
        return false;
    return true;
}

/* Begins to copy the rows of a tile; zeros past the width and for tokens past the end. index: NULL: tokens first,
 * first + 1, ... below `count` */
template <int D>
__device__ __forceinline__ void mma_copy(attention_rows rows, const int *index, int first, int count, int length,
                                         bf16 *to)
{
    constexpr int PIECES = D / 8;
    const bf16 *from = (const bf16 *)rows.x.data + rows.base;
    for (int e = threadIdx.x; e < length * PIECES; e += MMA_THREADS) {
        int i = e / PIECES, c = e % PIECES * 8, token = index ? index[i] : first + i < count ? first + i : -1;
        bool inside = token >= 0 && c < rows.width;
        copy_async(to + i * mma_stride<D> + c, inside ? from + (int64_t)token * rows.stride + c : from, inside);
    }
}

/* Operand A of rows `row` ... row + 15 and channels c ... c + 15 of a tile. */
template <int D> __device__ __forceinline__ void mma_left(const bf16 *tile, int row, int c, uint32_t a[4])
{
    int lane = threadIdx.x % 32;
    load_matrices(tile + (row + lane % 16) * mma_stride<D> + c + lane / 16 * 8, a);
}

/* sums = rows of `left` from `row` on times rows of `right`, over all channels: [16, TILE]. columns: rows of `right`
 * that are needed */
template <int D>
__device__ __forceinline__ void mma_scores(const bf16 *left, int row, const bf16 *right, int columns,
                                           float sums[MMA_PER_TILE][4])
{
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < MMA_PER_TILE; n++)
        sums[n][0] = sums[n][1] = sums[n][2] = sums[n][3] = 0;
#pragma unroll
    for (int c = 0; c < D; c += 16) {
        uint32_t a[4];
        mma_left<D>(left, row, c, a);
#pragma unroll
        for (int n = 0; n < MMA_PER_TILE; n += 2) {
            if (n * MMA_COLUMNS >= columns)
                continue;
            uint32_t b[4];
            int at = n * MMA_COLUMNS + lane % 8 + lane / 16 * 8;
            load_matrices(right + at * mma_stride<D> + c + lane / 8 % 2 * 8, b);
            multiply_add(sums[n], a, b[0], b[1]);
            multiply_add(sums[n + 1], a, b[2], b[3]);
        }
    }
}

/* sums += weights [16, TILE] times rows of `right`: [16, D]. The weights have the layout of results, as pairs. */
template <int D>
__device__ __forceinline__ void mma_mix(const uint32_t weights[MMA_PER_TILE][2], const bf16 *right, int columns,
                                        float sums[D / MMA_COLUMNS][4])
{
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < MMA_PER_TILE; k += 2) {
        if (k * MMA_COLUMNS >= columns)
            continue;
        const uint32_t a[4] = {weights[k][0], weights[k][1], weights[k + 1][0], weights[k + 1][1]};
#pragma unroll
        for (int c = 0; c < D; c += 16) {
            uint32_t b[4];
            load_transposed(right + (k * MMA_COLUMNS + lane % 16) * mma_stride<D> + c + lane / 16 * 8, b);
            multiply_add(sums[c / MMA_COLUMNS], a, b[0], b[1]);
            multiply_add(sums[c / MMA_COLUMNS + 1], a, b[2], b[3]);
        }
    }
}

/* Sum, largest and smallest over the 4 lanes that share a row. */
__device__ __forceinline__ float quad_sum(float value)
{
    value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

__device__ __forceinline__ float quad_max(float value)
{
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__device__ __forceinline__ int quad_min(int value)
{
    value = min(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return min(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

/* Writes a warp's 16 rows of results, times `factor` of rows g and g + 8. index: of the rows' tokens */
template <int D>
__device__ __forceinline__ void mma_store(attention_rows to, const int *index, float sums[D / MMA_COLUMNS][4],
                                          const float factor[2])
{
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    bool pairs = to.x.dtype == ATT_BF16 && (uintptr_t)to.x.data % 4 == 0 && to.stride % 2 == 0 && to.base % 2 == 0;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int token = index[g + 8 * half];
        int64_t row = to.base + (int64_t)token * to.stride;
#pragma unroll
        for (int n = 0; n < D / MMA_COLUMNS; n++) {
            int c = n * MMA_COLUMNS + 2 * t;
            float a = sums[n][2 * half] * factor[half], b = sums[n][2 * half + 1] * factor[half];
            if (token < 0 || c >= to.width)
                continue;
            if (pairs) {
                *(uint32_t *)((bf16 *)to.x.data + row + c) = pack_bf16(a, b);
            } else {
                store(to.x, row + c, a);
                store(to.x, row + c + 1, b);
            }
        }
    }
}

#endif
