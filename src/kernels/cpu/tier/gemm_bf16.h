/* kernels/cpu/tier/gemm_bf16.h - sums over rows of products of bf16, two rows at a time, for processors that multiply
 * pairs: C [rows, columns] += A' B in f32.
 *
 * A and B lie as pairs: 32 bits that hold the elements of two neighbouring rows in one column, the upper row in the
 * lower half.
 */
#ifndef ATT_KERNELS_CPU_TIER_GEMM_BF16_H
#define ATT_KERNELS_CPU_TIER_GEMM_BF16_H

#if defined(__AVX512BF16__)

#include "kernels/cpu/tier/gemm.h"

typedef struct gemm_pairs {
    const uint32_t *data;
    int64_t stride; /* pairs from one pair of rows to the next */
} gemm_pairs;

/* Elements [column, column + count) of rows `upper` and `lower`, which may be NULL: zeros. count 1..VW; pairs beyond
 * are zero. */
ATT_INLINE __m512i gemm_pair(const uint16_t *upper, const uint16_t *lower, int64_t count)
{
    __mmask16 mask = (__mmask16)(0xffffu >> (VW - count));
    __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, upper));
    __m512i high = lower ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, lower)) : _mm512_setzero_si512();
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* Columns [0, width) of rows [0, rows) at `from`, `columns` elements apart, to pairs [whole_pairs(rows), stride];
 * width rounded up to whole vectors is written. */
static inline void gemm_pack_pairs(const uint16_t *from, int64_t columns, int64_t rows, int64_t width, uint32_t *to,
                                   int64_t stride)
{
    for (int64_t row = 0; row < rows; row += 2, from += 2 * columns, to += stride)
        for (int64_t c = 0; c < width; c += VW)
            _mm512_storeu_si512(to + c, gemm_pair(from + c, row + 1 < rows ? from + columns + c : NULL,
                                                  width - c < VW ? width - c : VW));
}

ATT_INLINE __m512 gemm_dot(__m512 sum, __m512i a, __m512i b)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

ATT_INLINE void gemm_bf16_tile(int rows, int vectors, int64_t inner, gemm_pairs a, const uint32_t *b, float *c,
                               int64_t c_stride)
{
    __m512 sum[GEMM_ROWS][GEMM_VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            sum[r][v] = _mm512_setzero_ps();
    for (int64_t k = 0; k < inner; k++) {
        __m512i column[GEMM_VECTORS];
        for (int v = 0; v < vectors; v++)
            column[v] = _mm512_loadu_si512(b + (k * vectors + v) * VW);
        for (int r = 0; r < rows; r++) {
            __m512i element = _mm512_set1_epi32((int)a.data[k * a.stride + r]);
            for (int v = 0; v < vectors; v++)
                sum[r][v] = gemm_dot(sum[r][v], element, column[v]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            float *to = c + r * c_stride + v * VW;
            _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), sum[r][v]));
        }
}

#define GEMM_CASE(n)                                          \
    case n:                                                   \
        gemm_bf16_tile(n, vectors, inner, a, b, c, c_stride); \
        break;

ATT_INLINE void gemm_bf16_panel(int vectors, int64_t rows, int64_t inner, gemm_pairs a, const uint32_t *b, float *c,
                                int64_t c_stride)
{
    for (; rows > 0; rows -= GEMM_ROWS, a.data += GEMM_ROWS, c += GEMM_ROWS * c_stride)
        switch (rows) {
            GEMM_CASE(1)
            GEMM_CASE(2)
            GEMM_CASE(3)
            GEMM_CASE(4)
            GEMM_CASE(5)
            GEMM_CASE(6)
            GEMM_CASE(7)
        default:
            gemm_bf16_tile(GEMM_ROWS, vectors, inner, a, b, c, c_stride);
        }
}

#undef GEMM_CASE

/* C [rows, vectors whole vectors] += A' B over `inner` pairs of rows. b: in panels, as gemm_panel() cuts the vectors.
 */
static inline void gemm_bf16(int64_t rows, int64_t vectors, int64_t inner, gemm_pairs a, const uint32_t *b, float *c,
                             int64_t c_stride)
{
    for (int64_t done = 0, width; done < vectors; done += width) {
        width = gemm_panel(vectors - done);
        const uint32_t *panel = b + done * VW * inner;
        if (width == 3)
            gemm_bf16_panel(3, rows, inner, a, panel, c + done * VW, c_stride);
        else if (width == 2)
            gemm_bf16_panel(2, rows, inner, a, panel, c + done * VW, c_stride);
        else
            gemm_bf16_panel(1, rows, inner, a, panel, c + done * VW, c_stride);
    }
}

#endif
#endif
