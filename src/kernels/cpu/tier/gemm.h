/* kernels/cpu/tier/gemm.h - small matrix products in registers, for matrices that lie in cache.
 *
 * C (=, +=) alpha A B. A's elements lie anywhere (two strides) and are broadcast; a row of B or C is a run of whole
 * vectors. A tile of up to GEMM_ROWS rows and GEMM_VECTORS vectors of C stays in registers over the whole inner
 * dimension.
 */
#ifndef ATT_KERNELS_CPU_TIER_GEMM_H
#define ATT_KERNELS_CPU_TIER_GEMM_H

#include <stdbool.h>

#include "kernels/cpu/tier/floats.h"

#if defined(__AVX512F__)
enum { GEMM_ROWS = 8, GEMM_VECTORS = 3 };
#else
enum { GEMM_ROWS = 4, GEMM_VECTORS = 3 };
#endif

typedef struct gemm_a {
    const float *data;
    int64_t row, inner; /* strides */
} gemm_a;

/* rows: B is [inner, columns] with `stride` elements from row to row. panels (stride 0): as gemm_panel() cuts the
 * columns, each panel [inner, its width] follows the other. */
typedef struct gemm_b {
    const float *data;
    int64_t stride;
} gemm_b;

typedef struct gemm_c {
    float *data;
    int64_t stride;
    float alpha;
    bool add;
} gemm_c;

/* Vectors of the next panel where `left` are left: 3 at most, and no single one where that can be helped. */
ATT_INLINE int64_t gemm_panel(int64_t left)
{
    return left == 4 ? 2 : left < GEMM_VECTORS ? left : GEMM_VECTORS;
}

ATT_INLINE void gemm_tile(int rows, int vectors, int64_t inner, gemm_a a, const float *b, int64_t b_stride, float *c,
                          int64_t c_stride, float alpha, bool add)
{
    vf sum[GEMM_ROWS][GEMM_VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            sum[r][v] = (vf){0};
    for (int64_t k = 0; k < inner; k++) {
        vf column[GEMM_VECTORS];
        for (int v = 0; v < vectors; v++)
            column[v] = v_load(b + k * b_stride + v * VW);
        for (int r = 0; r < rows; r++) {
            vf element = v_set(a.data[r * a.row + k * a.inner]);
            for (int v = 0; v < vectors; v++)
                sum[r][v] = v_fma(element, column[v], sum[r][v]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            float *to = c + r * c_stride + v * VW;
            v_store(to, add ? v_fma(sum[r][v], v_set(alpha), v_load(to)) : sum[r][v] * alpha);
        }
}

/* gemm_tile() with a constant number of rows, so that its arrays become registers. */
#define GEMM_CASE(n)                                                           \
    case n:                                                                    \
        gemm_tile(n, vectors, inner, a, b, b_stride, c, c_stride, alpha, add); \
        break;

ATT_INLINE void gemm_rows(int64_t rows, int vectors, int64_t inner, gemm_a a, const float *b, int64_t b_stride,
                          float *c, int64_t c_stride, float alpha, bool add)
{
    switch (rows) {
        GEMM_CASE(1)
        GEMM_CASE(2)
        GEMM_CASE(3)
#if defined(__AVX512F__)
        GEMM_CASE(4)
        GEMM_CASE(5)
        GEMM_CASE(6)
        GEMM_CASE(7)
#endif
    default:
        gemm_tile(GEMM_ROWS, vectors, inner, a, b, b_stride, c, c_stride, alpha, add);
    }
}

#undef GEMM_CASE

ATT_INLINE void gemm_column_panel(int vectors, int64_t rows, int64_t inner, gemm_a a, const float *b, int64_t b_stride,
                                  gemm_c c, int64_t column)
{
    for (int64_t row = 0; row < rows; row += GEMM_ROWS) {
        gemm_a tile = {a.data + row * a.row, a.row, a.inner};
        float *to = c.data + row * c.stride + column;
        if (c.add)
            gemm_rows(rows - row, vectors, inner, tile, b, b_stride, to, c.stride, c.alpha, true);
        else
            gemm_rows(rows - row, vectors, inner, tile, b, b_stride, to, c.stride, c.alpha, false);
    }
}

/* C [rows, columns], columns a multiple of VW. */
static inline void gemm(int64_t rows, int64_t columns, int64_t inner, gemm_a a, gemm_b b, gemm_c c)
{
    int64_t vectors = columns / VW;
    for (int64_t done = 0, width; done < vectors; done += width) {
        width = gemm_panel(vectors - done);
        int64_t column = done * VW, stride = b.stride ? b.stride : width * VW;
        const float *panel = b.data + (b.stride ? column : column * inner);
        if (width == 3)
            gemm_column_panel(3, rows, inner, a, panel, stride, c, column);
        else if (width == 2)
            gemm_column_panel(2, rows, inner, a, panel, stride, c, column);
        else
            gemm_column_panel(1, rows, inner, a, panel, stride, c, column);
    }
}

/* --- moving matrices to where products want them -------------------------------------------------------------------
 */

/* Rows [rows, width], row 0 at element `from` of x, to [rows, padded], the rest of each row zero. padded: width up to a
 * multiple of VW. */
ATT_INLINE void gemm_take_rows_as(bool narrow, const void *x, int64_t from, int64_t stride, int64_t rows, int64_t width,
                                  float *to, int64_t padded)
{
    int64_t whole = width / VW * VW;
    for (int64_t row = 0; row < rows; row++, from += stride, to += padded) {
        for (int64_t i = 0; i < whole; i += VW)
            v_store(to + i, v_get(x, from + i, narrow));
        if (whole < padded)
            v_store(to + whole, v_get_part(x, from + whole, width - whole, narrow));
    }
}

static inline void gemm_take_rows(bool narrow, const void *x, int64_t from, int64_t stride, int64_t rows, int64_t width,
                                  float *to, int64_t padded)
{
    if (narrow)
        gemm_take_rows_as(true, x, from, stride, rows, width, to, padded);
    else
        gemm_take_rows_as(false, x, from, stride, rows, width, to, padded);
}

ATT_INLINE void gemm_copy_rows(const float *from, int64_t stride, int64_t rows, int64_t width, float *to,
                               int64_t padded)
{
    gemm_take_rows_as(false, from, 0, stride, rows, width, to, padded);
}

/* lane[i] of x[j] goes to lane[j] of x[i]: log2(VW) rounds of interleaving the first half with the second. */
ATT_INLINE void gemm_transpose_vectors(vf x[VW])
{
    for (int round = 1; round < VW; round *= 2) {
        vf y[VW];
        for (int i = 0; i < VW / 2; i++) {
            y[2 * i] = v_interleave_low(x[i], x[i + VW / 2]);
            y[2 * i + 1] = v_interleave_high(x[i], x[i + VW / 2]);
        }
        for (int i = 0; i < VW; i++)
            x[i] = y[i];
    }
}

/* Rows [columns, inner], row 0 at element `from` of x, to panels of B [inner, columns up to a multiple of VW], zero
 * where there is no row: the transpose of the rows as gemm() wants it. */
ATT_INLINE void gemm_pack_transposed_as(bool narrow, const void *x, int64_t from, int64_t stride, int64_t columns,
                                        int64_t inner, float *to)
{
    int64_t vectors = (columns + VW - 1) / VW;
    for (int64_t done = 0, width; done < vectors; done += width) {
        width = gemm_panel(vectors - done);
        for (int64_t v = 0; v < width; v++) {
            int64_t first = (done + v) * VW;
            for (int64_t k = 0; k < inner; k += VW) {
                int64_t depth = inner - k < VW ? inner - k : VW;
                vf lines[VW];
                for (int i = 0; i < VW; i++) {
                    int64_t line = from + (first + i) * stride + k;
                    lines[i] = first + i < columns ? v_get_until(x, line, line + depth, narrow) : (vf){0};
                }
                gemm_transpose_vectors(lines);
                float *panel = to + done * VW * inner + k * width * VW + v * VW;
                for (int64_t i = 0; i < depth; i++)
                    v_store(panel + i * width * VW, lines[i]);
            }
        }
    }
}

static inline void gemm_pack_transposed(bool narrow, const void *x, int64_t from, int64_t stride, int64_t columns,
                                        int64_t inner, float *to)
{
    if (narrow)
        gemm_pack_transposed_as(true, x, from, stride, columns, inner, to);
    else
        gemm_pack_transposed_as(false, x, from, stride, columns, inner, to);
}

#endif
