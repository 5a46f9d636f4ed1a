/* kernels/cuda/attention_f32.cuh - tiles of attention in f32 whose rows, of at most 64 channels, stay in shared memory
 * while they are used. A thread computes 4 rows and 4 columns, which are 16 apart. */
#ifndef ATT_KERNELS_CUDA_ATTENTION_F32_CUH
#define ATT_KERNELS_CUDA_ATTENTION_F32_CUH

#include "engine/kernels/cuda/attention_softmax.cuh"

/* Elements between rows of a tile of D channels: 8 neighbouring rows lie in different banks. */
template <int D> static constexpr int f32_stride = D + 4;

/* Whether an operand can be copied 16 bytes at a time. */
static inline bool f32_fits(const attention_operand &o)
{
    return o.x.dtype == ATT_F32 && o.width % 4 == 0 && o.stride % 4 == 0 && o.offset % 4 == 0 &&
           (uintptr_t)o.x.data % 16 == 0 && o.of_sample % 4 == 0;
}

static inline bool f32_fits(const attention_problem &p)
{
    int width = p.operand[HEAD_Q].width;
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++)
        if (!f32_fits(p.operand[o]) || p.operand[o].width != width)
            return false;
    return width <= 64;
}

/* Begins to copy the rows of a tile; zeros past the width and for tokens past the end. */
template <int D> __device__ __forceinline__ void f32_copy(attention_rows rows, const int *index, float *to)
{
    constexpr int PIECES = D / 4;
    const float *from = (const float *)rows.x.data + rows.base;
#pragma unroll
    for (int e = threadIdx.x; e < TILE * PIECES; e += TILE_THREADS) {
        int i = e / PIECES, c = e % PIECES * 4, token = index[i];
        bool inside = token >= 0 && c < rows.width;
        copy_async(to + i * f32_stride<D> + c, inside ? from + (int64_t)token * rows.stride + c : from, inside);
    }
}

/* sums = products of the thread's rows of `left` and of `right`. */
template <int D> __device__ __forceinline__ void f32_scores(const float *left, const float *right, float sums[4][4])
{
    tile_place at = tile_here();
#pragma unroll
    for (int e = 0; e < 16; e++)
        sums[e / 4][e % 4] = 0;
#pragma unroll 4
    for (int c = 0; c < D; c += 4) {
        float4 a[4], b[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            a[i] = *(const float4 *)(left + (4 * at.y + i) * f32_stride<D> + c);
            b[i] = *(const float4 *)(right + (at.x + 16 * i) * f32_stride<D> + c);
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                sums[i][j] = fmaf(a[i].x, b[j].x, sums[i][j]);
                sums[i][j] = fmaf(a[i].y, b[j].y, sums[i][j]);
                sums[i][j] = fmaf(a[i].z, b[j].z, sums[i][j]);
                sums[i][j] = fmaf(a[i].w, b[j].w, sums[i][j]);
            }
    }
}

/* Writes the thread's weights, turned: weights[column][row]. */
__device__ __forceinline__ void f32_put_weights(const float values[4][4], float (*weights)[TILE_PADDED])
{
    tile_place at = tile_here();
#pragma unroll
    for (int c = 0; c < 4; c++)
        *(float4 *)&weights[at.x + 16 * c][4 * at.y] =
            make_float4(values[0][c], values[1][c], values[2][c], values[3][c]);
}

/* Adds for each of the thread's rows i the sum over tokens t < count of weights[t][i] rows[t]: D / 16 channels. */
template <int D>
__device__ __forceinline__ void f32_mix(const float (*weights)[TILE_PADDED], const float *rows, int count,
                                        float (*sums)[D / 16])
{
    constexpr int C = D / 16;
    tile_place at = tile_here();
#pragma unroll 8
    for (int t = 0; t < count; t++) {
        float4 w = *(const float4 *)&weights[t][4 * at.y];
        const float weight[4] = {w.x, w.y, w.z, w.w};
        att_cuda_pack<float, C> value = *(const att_cuda_pack<float, C> *)(rows + t * f32_stride<D> + C * at.x);
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < C; c++)
                sums[i][c] = fmaf(weight[i], value.of[c], sums[i][c]);
    }
}

/* Writes the thread's 4 rows of results, times `factor` of each row. */
template <int D>
__device__ __forceinline__ void f32_store(attention_rows to, const int *index, float (*sums)[D / 16],
                                          const float factor[4])
{
    constexpr int C = D / 16;
    tile_place at = tile_here();
    bool packs = to.x.dtype == ATT_F32 && (uintptr_t)to.x.data % (4 * C) == 0 && to.stride % C == 0 &&
                 to.base % C == 0 && to.width % C == 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int token = index[4 * at.y + i];
        int64_t begin = to.base + (int64_t)token * to.stride + C * at.x;
        if (token < 0 || C * at.x >= to.width)
            continue;
        float values[C];
#pragma unroll
        for (int c = 0; c < C; c++)
            values[c] = sums[i][c] * factor[i];
        if (packs) {
            store_pack<C>((float *)to.x.data, begin, values);
            continue;
        }
#pragma unroll
        for (int c = 0; c < C; c++)
            if (C * at.x + c < to.width)
                store(to.x, begin + c, values[c]);
    }
}

/* Calls f with the smallest D that holds heads of `width` channels as the type of its argument. */
template <class F> static void f32_with_width(int width, F f)
{
    if (width <= 32)
        f(std::integral_constant<int, 32>());
    else
        f(std::integral_constant<int, 64>());
}

#endif
