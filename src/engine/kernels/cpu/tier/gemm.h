/* kernels/cpu/tier/gemm.h - small matrix products in registers, for matrices in cache.
 *
 * C (=, +=) alpha A B. Elements of A are addressed by two strides and are broadcast; rows of B and C are contiguous
 * whole vectors. A tile of up to GEMM_ROWS rows and GEMM_VECTORS vectors of C stays in registers over the whole inner
 * dimension. C is f32. An element of A and B is an f32, or a pair of bf16 (pairs.h) adjacent along the inner dimension,
 * which is then counted in pairs.
 */
#ifndef ATT_KERNELS_CPU_TIER_GEMM_H
#define ATT_KERNELS_CPU_TIER_GEMM_H

#include <stdbool.h>

#include "engine/kernels/cpu/tier/pairs.h"

enum { GEMM_ROWS = V_REGISTERS / 4, GEMM_VECTORS = 3 };

/* How f32 or bf16 data is converted to elements of a product: f32 unchanged, bf16 to f32, bf16 to pairs. */
typedef enum gemm_elements { GEMM_F32, GEMM_WIDENED, GEMM_PAIRS } gemm_elements;

static inline gemm_elements gemm_elements_of(bool is_bf16, bool pairs)
{
    return !is_bf16 ? GEMM_F32 : pairs ? GEMM_PAIRS : GEMM_WIDENED;
}

/* Number of elements of a product for `count` numbers along its inner dimension. */
ATT_INLINE int64_t gemm_count(gemm_elements elements, int64_t count)
{
    return elements == GEMM_PAIRS ? (count + 1) / 2 : count;
}

typedef struct gemm_a {
    const float *data;
    int64_t row, inner; /* strides */
} gemm_a;

/* stride > 0: B is [inner, columns], rows `stride` elements apart. stride 0: panels of columns as chosen by
 * gemm_panel(), one after the other, each [inner, width of the panel]. */
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

/* Vectors in the next panel when `left` are left: at most 3, and not 1 if avoidable. */
ATT_INLINE int64_t gemm_panel(int64_t left)
{
    return left == 4 ? 2 : left < GEMM_VECTORS ? left : GEMM_VECTORS;
}

ATT_INLINE void gemm_tile(bool pairs, int rows, int vectors, int64_t inner, gemm_a a, const float *b, int64_t b_stride,
                          float *c, int64_t c_stride, float alpha, bool add)
{
    vf sum[GEMM_ROWS][GEMM_VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            sum[r][v] = (vf){0};
    /* C may be in a distant cache: its lines arrive while the products are computed. */
    if (add)
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < vectors; v++)
                __builtin_prefetch(c + r * c_stride + v * VW, 1);
    /* Two pointers with four offsets each: one pointer with eight offsets would not fit into registers. */
    const float *upper = a.data, *lower = rows > 4 ? a.data + 4 * a.row : a.data;
    for (int64_t k = 0; k < inner; k++, upper += a.inner, lower += a.inner, b += b_stride) {
        vf column[GEMM_VECTORS];
        for (int v = 0; v < vectors; v++)
            column[v] = v_load(b + v * VW);
        for (int r = 0; r < rows; r++) {
            vf element = v_set(r < 4 ? upper[r * a.row] : lower[(r - 4) * a.row]);
            for (int v = 0; v < vectors; v++)
                sum[r][v] = pairs ? v_dot(element, column[v], sum[r][v]) : v_fma(element, column[v], sum[r][v]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            float *to = c + r * c_stride + v * VW;
            v_store(to, add ? v_fma(sum[r][v], v_set(alpha), v_load(to)) : sum[r][v] * alpha);
        }
}

/* gemm_tile() with a constant number of rows, so that its arrays are in registers. */
#define GEMM_CASE(n)                                                                  \
    case n:                                                                           \
        gemm_tile(pairs, n, vectors, inner, a, b, b_stride, c, c_stride, alpha, add); \
        break;

ATT_INLINE void gemm_rows(bool pairs, int64_t rows, int vectors, int64_t inner, gemm_a a, const float *b,
                          int64_t b_stride, float *c, int64_t c_stride, float alpha, bool add)
{
    switch (rows) {
        GEMM_CASE(1)
        GEMM_CASE(2)
        GEMM_CASE(3)
#if V_REGISTERS > 16
        GEMM_CASE(4)
        GEMM_CASE(5)
        GEMM_CASE(6)
        GEMM_CASE(7)
#endif
    default:
        gemm_tile(pairs, GEMM_ROWS, vectors, inner, a, b, b_stride, c, c_stride, alpha, add);
    }
}

#undef GEMM_CASE

/* next: from a tile of A's rows to the next one. */
ATT_INLINE void gemm_column_panel(bool pairs, int vectors, int64_t rows, int64_t inner, gemm_a a, int64_t next,
                                  const float *b, int64_t b_stride, gemm_c c, int64_t column)
{
    for (int64_t row = 0; row < rows; row += GEMM_ROWS) {
        gemm_a tile = {a.data + row / GEMM_ROWS * next, a.row, a.inner};
        float *to = c.data + row * c.stride + column;
        if (c.add)
            gemm_rows(pairs, rows - row, vectors, inner, tile, b, b_stride, to, c.stride, c.alpha, true);
        else
            gemm_rows(pairs, rows - row, vectors, inner, tile, b, b_stride, to, c.stride, c.alpha, false);
    }
}

ATT_INLINE void gemm_as(bool pairs, int64_t rows, int64_t columns, int64_t inner, gemm_a a, int64_t next, gemm_b b,
                        gemm_c c)
{
    int64_t vectors = columns / VW;
    for (int64_t done = 0, width; done < vectors; done += width) {
        width = gemm_panel(vectors - done);
        int64_t column = done * VW, stride = b.stride ? b.stride : width * VW;
        const float *panel = b.data + (b.stride ? column : column * inner);
        if (width == 3)
            gemm_column_panel(pairs, 3, rows, inner, a, next, panel, stride, c, column);
        else if (width == 2)
            gemm_column_panel(pairs, 2, rows, inner, a, next, panel, stride, c, column);
        else
            gemm_column_panel(pairs, 1, rows, inner, a, next, panel, stride, c, column);
    }
}

/* C [rows, columns]; columns must be a multiple of VW. */
static inline void gemm(gemm_elements elements, int64_t rows, int64_t columns, int64_t inner, gemm_a a, gemm_b b,
                        gemm_c c)
{
    if (elements == GEMM_PAIRS)
        gemm_as(true, rows, columns, inner, a, GEMM_ROWS * a.row, b, c);
    else
        gemm_as(false, rows, columns, inner, a, GEMM_ROWS * a.row, b, c);
}

/* The same for an A that gemm_pack_rows() packed: tiles of GEMM_ROWS rows, each [inner, GEMM_ROWS]. */
static inline void gemm_packed(gemm_elements elements, int64_t rows, int64_t columns, int64_t inner, const float *a,
                               gemm_b b, gemm_c c)
{
    gemm_a tiles = {a, 1, GEMM_ROWS};
    if (elements == GEMM_PAIRS)
        gemm_as(true, rows, columns, inner, tiles, GEMM_ROWS * inner, b, c);
    else
        gemm_as(false, rows, columns, inner, tiles, GEMM_ROWS * inner, b, c);
}

/* --- copying matrices to the layout of products------------------------------------------------------------------- */

/* A vector of elements that begins with number i of x; zeros in place of numbers from `end` on. */
ATT_INLINE vf gemm_get(gemm_elements elements, const void *x, int64_t i, int64_t end)
{
    return elements == GEMM_PAIRS ? v_get_pairs(x, i, end) : v_get_until(x, i, end, elements == GEMM_WIDENED);
}

/* The rows of a matrix: row i begins at number from + order[i] stride of x; order NULL: the rows in their order. */
typedef struct gemm_source {
    const void *x;
    int64_t from, stride;
    const int32_t *order;
} gemm_source;

ATT_INLINE int64_t gemm_row_at(const gemm_source *source, int64_t row)
{
    return source->from + (source->order ? source->order[row] : row) * source->stride;
}

/* The rows from `first` on. */
ATT_INLINE gemm_source gemm_source_from(gemm_source source, int64_t first)
{
    if (source.order)
        source.order += first;
    else
        source.from += first * source.stride;
    return source;
}

/* Calls a function with a constant gemm_elements. */
#define GEMM_FOR(elements, function, ...)        \
    do {                                         \
        if ((elements) == GEMM_PAIRS)            \
            function(GEMM_PAIRS, __VA_ARGS__);   \
        else if ((elements) == GEMM_WIDENED)     \
            function(GEMM_WIDENED, __VA_ARGS__); \
        else                                     \
            function(GEMM_F32, __VA_ARGS__);     \
    } while (0)

ATT_INLINE void gemm_copy_rows_as(gemm_elements elements, const gemm_source *source, int64_t rows, int64_t width,
                                  float *to, int64_t padded)
{
    int64_t step = elements == GEMM_PAIRS ? 2 * VW : VW;
    for (int64_t row = 0; row < rows; row++, to += padded) {
        int64_t from = gemm_row_at(source, row);
        for (int64_t i = 0; i < width; i += step)
            v_store(to + i * VW / step, gemm_get(elements, source->x, from + i, from + width));
    }
}

/* Copies rows [rows, width] to rows of elements, `padded` apart and zero-padded to whole vectors: the result is an A
 * whose inner dimension is `width`. */
static inline void gemm_copy_rows(gemm_elements elements, gemm_source source, int64_t rows, int64_t width, float *to,
                                  int64_t padded)
{
    GEMM_FOR(elements, gemm_copy_rows_as, &source, rows, width, to, padded);
}

/* The same for a B that has a stride and whose inner dimension is `rows`. */
static inline void gemm_copy_columns(gemm_elements elements, gemm_source source, int64_t rows, int64_t width, float *to,
                                     int64_t padded)
{
    if (elements != GEMM_PAIRS) {
        gemm_copy_rows(elements, source, rows, width, to, padded);
        return;
    }
    for (int64_t row = 0; row < rows; row += 2, to += padded) {
        int64_t from = gemm_row_at(&source, row);
        int64_t stride = row + 1 < rows ? gemm_row_at(&source, row + 1) - from : 0;
        for (int64_t i = 0; i < width; i += VW)
            v_store(to + i, v_get_two_rows(source.x, from + i, stride, from + width));
    }
}

ATT_INLINE void gemm_pack_rows_as(gemm_elements elements, const gemm_source *source, int64_t inner, int64_t rows,
                                  float *to)
{
    int64_t step = elements == GEMM_PAIRS ? 2 : 1, tile = gemm_count(elements, inner) * GEMM_ROWS;
    for (int64_t row = 0; row < rows; row += VW, to += VW / GEMM_ROWS * tile)
        for (int64_t k = 0; k < inner; k += step) {
            int64_t from = gemm_row_at(source, k) + row, end = from - row + rows;
            int64_t pair = k + 1 < inner ? gemm_row_at(source, k + 1) + row - from : 0;
            vf lanes = elements == GEMM_PAIRS ? v_get_two_rows(source->x, from, pair, end)
                                              : gemm_get(elements, source->x, from, end);
            for (int part = 0; part < VW / GEMM_ROWS; part++)
                memcpy(to + part * tile + k / step * GEMM_ROWS, (const float *)&lanes + part * GEMM_ROWS,
                       GEMM_ROWS * sizeof *to);
        }
}

/* Copies a matrix [inner, rows] to tiles of its transpose, for gemm_packed(); zero in place of missing rows. `to` holds
 * the inner dimension times whole vectors of rows. */
static inline void gemm_pack_rows(gemm_elements elements, gemm_source source, int64_t inner, int64_t rows, float *to)
{
    GEMM_FOR(elements, gemm_pack_rows_as, &source, inner, rows, to);
}

/* Transposes a square of vectors: lane i of x[j] moves to lane j of x[i], in log2(VW) rounds, each of which interleaves
 * both halves. */
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

ATT_INLINE void gemm_pack_transposed_as(gemm_elements elements, const gemm_source *source, int64_t columns,
                                        int64_t width, float *to)
{
    int64_t vectors = (columns + VW - 1) / VW, inner = gemm_count(elements, width);
    int64_t step = elements == GEMM_PAIRS ? 2 * VW : VW;
    for (int64_t done = 0, panel; done < vectors; to += panel * VW * inner, done += panel) {
        panel = gemm_panel(vectors - done);
        for (int64_t v = 0; v < panel; v++) {
            int64_t first = (done + v) * VW, line[VW];
            for (int i = 0; i < VW; i++)
                line[i] = first + i < columns ? gemm_row_at(source, first + i) : -1;
            for (int64_t k = 0; k < inner; k += VW) {
                vf lines[VW];
                for (int i = 0; i < VW; i++)
                    lines[i] = line[i] >= 0 ? gemm_get(elements, source->x, line[i] + k * step / VW, line[i] + width)
                                            : (vf){0};
                gemm_transpose_vectors(lines);
                for (int64_t i = 0; i < VW && k + i < inner; i++)
                    v_store(to + ((k + i) * panel + v) * VW, lines[i]);
            }
        }
    }
}

/* Copies rows [columns, width] to panels of B [width, columns rounded up to a multiple of VW], zero in place of missing
 * rows: the transpose of the rows, as gemm() reads it. */
static inline void gemm_pack_transposed(gemm_elements elements, gemm_source source, int64_t columns, int64_t width,
                                        float *to)
{
    GEMM_FOR(elements, gemm_pack_transposed_as, &source, columns, width, to);
}

#undef GEMM_FOR

#endif
