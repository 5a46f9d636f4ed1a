/* kernels/cpu/tier/moments.h - mean, and sum of squared differences from the mean, of each channel of a sample. Each
 * tile is read twice while in cache, for its mean and its squares; tiles are merged as in Chan, Golub, LeVeque 1983.
 * The sample's first row is subtracted, so that a large mean does not cost accuracy. */
#ifndef ATT_KERNELS_CPU_TIER_MOMENTS_H
#define ATT_KERNELS_CPU_TIER_MOMENTS_H

#include "engine/kernels/cpu/tier/channels.h"

/* Wide rows. mean is relative to origin. */
typedef struct moments {
    float *origin, *mean, *squares;
} moments;

enum { MOMENTS_ROWS = 3 }; /* rows of scratch */

static inline moments moments_at(const channels *c, float *scratch)
{
    return (moments){scratch, scratch + c->wide, scratch + 2 * c->wide};
}

/* Weights for merging `more` numbers into moments of `count` numbers, with the difference d of both means: mean +=
 * weight.mean d, and squares += weight.squares d^2. */
typedef struct moments_weights {
    float mean, squares;
} moments_weights;

static inline moments_weights moments_merging(int64_t count, int64_t more)
{
    double share = (double)more / (double)(count + more);
    return (moments_weights){(float)share, (float)((double)count * share)};
}

/* Merges one block of `rows` wide rows from element `first` on into the moments of the `before` rows before it. */
ATT_INLINE void moments_block(moments m, const channels *c, const void *x, int64_t first, int64_t rows, int64_t before,
                              int64_t column, bool is_bf16)
{
    vf origin[CHANNELS_VECTORS], mean[CHANNELS_VECTORS] = {{0}}, squares[CHANNELS_VECTORS] = {{0}};
    vf part = v_set(1 / (float)rows);
    for (int v = 0; v < CHANNELS_VECTORS; v++)
        origin[v] = v_load(m.origin + column + v * VW);
    for (int64_t row = 0; row < rows; row++)
        for (int v = 0; v < CHANNELS_VECTORS; v++)
            mean[v] += v_get(x, first + row * c->wide + column + v * VW, is_bf16) - origin[v];
    for (int v = 0; v < CHANNELS_VECTORS; v++)
        mean[v] *= part;
    for (int64_t row = 0; row < rows; row++)
        for (int v = 0; v < CHANNELS_VECTORS; v++) {
            vf difference = v_get(x, first + row * c->wide + column + v * VW, is_bf16) - origin[v] - mean[v];
            squares[v] = v_fma(difference, difference, squares[v]);
        }
    moments_weights weight = moments_merging(before, rows);
    for (int v = 0; v < CHANNELS_VECTORS; v++) {
        float *to_mean = m.mean + column + v * VW, *to_squares = m.squares + column + v * VW;
        vf difference = mean[v] - v_load(to_mean);
        v_store(to_mean, v_fma(difference, v_set(weight.mean), v_load(to_mean)));
        v_store(to_squares, v_load(to_squares) + v_fma(difference * difference, v_set(weight.squares), squares[v]));
    }
}

/* Merges columns [begin, end) of the row that begins at element `first` into the moments of the `before` rows before
 * it. */
ATT_INLINE void moments_row(moments m, const void *x, int64_t first, int64_t before, int64_t begin, int64_t end,
                            bool is_bf16)
{
    moments_weights weight = moments_merging(before, 1);
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        float difference = att_float_get(x, first + i, is_bf16) - m.origin[i] - m.mean[i];
        m.mean[i] += difference * weight.mean;
        m.squares[i] += difference * difference * weight.squares;
    }
}

/* Merges lanes of `count` numbers each into channels, in the first `columns` elements. */
static inline void moments_fold(moments m, const channels *c, int64_t count)
{
    for (int64_t half = c->wide / 2; half >= c->columns; half /= 2, count *= 2) {
        float weight = (float)count / 2;
#pragma omp simd
        for (int64_t i = 0; i < half; i++) {
            float difference = m.mean[half + i] - m.mean[i];
            m.mean[i] += difference / 2;
            m.squares[i] += m.squares[half + i] + difference * difference * weight;
        }
    }
}

/* Moments of rows [begin, end), for the columns `part` of wide rows. On return mean is absolute, not relative to
 * origin. */
ATT_INLINE void moments_of(moments m, const channels *c, const void *x, int64_t begin, int64_t end, att_range part,
                           bool is_bf16)
{
    int64_t wide_rows = (end - begin) / c->fold, first = begin * c->columns;
    int64_t blocks = part.begin + (part.end - part.begin) / CHANNELS_BLOCK * CHANNELS_BLOCK;
    for (int64_t i = 0; i < c->columns; i++)
        m.origin[i] = att_float_get(x, first + i, is_bf16);
    channels_repeat(c, m.origin);
    memset(m.mean, 0, 2 * (size_t)c->wide * sizeof *m.mean);
    for (int64_t row = 0, rows; row < wide_rows; row += rows) {
        rows = wide_rows - row < c->tile ? wide_rows - row : c->tile;
        int64_t at = first + row * c->wide;
        for (int64_t column = part.begin; column < blocks; column += CHANNELS_BLOCK)
            moments_block(m, c, x, at, rows, row, column, is_bf16);
        for (int64_t r = 0; blocks < part.end && r < rows; r++)
            moments_row(m, x, at + r * c->wide, row + r, blocks, part.end, is_bf16);
    }
    moments_fold(m, c, wide_rows);
    att_range kept = channels_kept(c, part);
    for (int64_t row = wide_rows * c->fold; row < end - begin; row++)
        moments_row(m, x, first + row * c->columns, row, kept.begin, kept.end, is_bf16);
    for (int64_t i = kept.begin; i < kept.end; i++)
        m.mean[i] += m.origin[i];
}

#endif
