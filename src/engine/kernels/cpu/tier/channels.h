/* kernels/cpu/tier/channels.h - rows of channels: elementwise maps with coefficients per channel, and sums over rows.
 *
 * Several adjacent narrow rows are treated as one wide row, so that a block of a wide row fills registers, and
 * coefficients stay in registers from row to row. A map is processed in tiles of wide rows, for contiguous memory
 * access, and each tile block by block.
 */
#ifndef ATT_KERNELS_CPU_TIER_CHANNELS_H
#define ATT_KERNELS_CPU_TIER_CHANNELS_H

#include <math.h>

#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"

enum {
    CHANNELS_VECTORS = 4,
    CHANNELS_BLOCK = CHANNELS_VECTORS * VW,
    CHANNELS_WIDE = 512, /* rows of at least this width are not combined further, even if not whole blocks */
    CHANNELS_TILE = 4096 /* elements per tile, within 4 to 64 wide rows */
};

typedef struct channels {
    int64_t columns;
    int64_t fold; /* rows per wide row: a power of two */
    int64_t wide; /* columns of a wide row */
    int64_t tile; /* wide rows per tile */
} channels;

static inline channels channels_of(const att_desc *x)
{
    channels c = {.columns = att_columns(x), .fold = 1};
    while (c.columns * c.fold % CHANNELS_BLOCK != 0 && c.columns * c.fold < CHANNELS_WIDE)
        c.fold *= 2;
    c.wide = c.columns * c.fold;
    c.tile = CHANNELS_TILE / c.wide;
    c.tile = c.tile < 4 ? 4 : c.tile > 64 ? 64 : c.tile;
    return c;
}

/* Repeats the first `columns` elements until they fill a wide row. */
static inline void channels_repeat(const channels *c, float *row)
{
    for (int64_t filled = c->columns; filled < c->wide; filled *= 2)
        memcpy(row + filled, row, (size_t)filled * sizeof *row);
}

static inline void channels_spread(const channels *c, const float *from, float *row)
{
    memcpy(row, from, (size_t)c->columns * sizeof *row);
    channels_repeat(c, row);
}

/* Adds the sums of the rows of a wide row: sums per channel in the first `columns` elements. */
static inline void channels_fold(const channels *c, float *sum)
{
    for (int64_t half = c->wide / 2; half >= c->columns; half /= 2) {
#pragma omp simd
        for (int64_t i = 0; i < half; i++)
            sum[i] += sum[half + i];
    }
}

/* Stores a sample's sums of the channels `kept`, each times its factor (NULL: 1), to out[first + channel], unless out
 * is NULL. */
static inline void channels_put(float *out, int64_t first, const float *sum, const float *factor, att_range kept)
{
    for (int64_t i = kept.begin; out && i < kept.end; i++)
        out[first + i] = factor ? sum[i] * factor[i] : sum[i];
}

static inline size_t channels_scratch(const att_desc *x, int rows)
{
    return (size_t)rows * (size_t)channels_of(x).wide * sizeof(float);
}

/* The parameters and statistics of a norm, one number per channel. */
typedef struct channel_norm {
    const float *mean, *variance, *gamma, *beta;
} channel_norm;

/* Fills wide rows with the coefficients of a norm: y = (x - centre) slope + shift. */
static inline void channels_norm(const channels *c, channel_norm n, float eps, float *centre, float *slope,
                                 float *shift)
{
    channels_spread(c, n.mean, centre);
#pragma omp simd
    for (int64_t i = 0; i < c->columns; i++)
        slope[i] = n.gamma[i] / sqrtf(n.variance[i] + eps);
    channels_repeat(c, slope);
    channels_spread(c, n.beta, shift);
}

/* --- maps --------------------------------------------------------------------------------------------------------- */

/* y = max(x slope + rest, floor), with x - centre in place of x if the form is centred. Coefficients are wide rows. In
 * a masked form z is replaced by 0 unless x gate_slope + gate_shift > 0. */
typedef struct channel_map {
    const void *x, *z;
    void *y;
    const float *centre, *slope, *other, *shift, *gate_slope, *gate_shift;
    float floor; /* 0 or minus infinity; NaN stays NaN */
} channel_map;

typedef enum channel_rest { CHANNELS_NONE, CHANNELS_SHIFT, CHANNELS_Z, CHANNELS_Z_OTHER_SHIFT } channel_rest;

/* The form of a map, a compile-time constant, and which operands are bf16. */
typedef struct channel_form {
    bool centred, masked;
    channel_rest rest; /* 0, shift, z, or z other + shift */
    bool x_is_bf16, z_is_bf16, y_is_bf16;
} channel_form;

typedef struct channel_coefficients {
    vf centre, slope, other, shift, gate_slope, gate_shift;
} channel_coefficients;

ATT_INLINE bool channels_shifts(channel_form f)
{
    return f.rest == CHANNELS_SHIFT || f.rest == CHANNELS_Z_OTHER_SHIFT;
}

ATT_INLINE bool channels_reads_z(channel_form f)
{
    return f.rest == CHANNELS_Z || f.rest == CHANNELS_Z_OTHER_SHIFT;
}

/* The coefficients of columns [i, i + count). */
ATT_INLINE channel_coefficients channels_coefficients(const channel_map *m, channel_form f, int64_t i, int64_t count)
{
    channel_coefficients k = {.slope = v_get_until(m->slope, i, i + count, false)};
    if (f.centred)
        k.centre = v_get_until(m->centre, i, i + count, false);
    if (f.rest == CHANNELS_Z_OTHER_SHIFT)
        k.other = v_get_until(m->other, i, i + count, false);
    if (channels_shifts(f))
        k.shift = v_get_until(m->shift, i, i + count, false);
    if (f.masked) {
        k.gate_slope = v_get_until(m->gate_slope, i, i + count, false);
        k.gate_shift = v_get_until(m->gate_shift, i, i + count, false);
    }
    return k;
}

ATT_INLINE vf channels_value(channel_form f, channel_coefficients k, vf x, vf z)
{
    x = f.centred ? x - k.centre : x;
    z = f.masked ? v_where(v_fma(x, k.gate_slope, k.gate_shift) > (vf){0}, z) : z;
    switch (f.rest) {
    case CHANNELS_NONE:
        return x * k.slope;
    case CHANNELS_SHIFT:
        return v_fma(x, k.slope, k.shift);
    case CHANNELS_Z:
        return v_fma(x, k.slope, z);
    case CHANNELS_Z_OTHER_SHIFT:
        return v_fma(x, k.slope, v_fma(z, k.other, k.shift));
    }
    return x;
}

/* Elements [e, e + VW) of y; at most `count` of them are valid. */
ATT_INLINE vf channels_at(const channel_map *m, channel_form f, channel_coefficients k, int64_t e, int64_t count)
{
    vf x = v_get_until(m->x, e, e + count, f.x_is_bf16);
    vf z = channels_reads_z(f) ? v_get_until(m->z, e, e + count, f.z_is_bf16) : x;
    return v_max(v_set(m->floor), channels_value(f, k, x, z));
}

/* Computes the whole blocks of `rows` wide rows from element `first` on. */
ATT_INLINE void channels_map_blocks(const channel_map *m, channel_form f, const channels *c, int64_t first,
                                    int64_t rows)
{
    for (int64_t column = 0; column + CHANNELS_BLOCK <= c->wide; column += CHANNELS_BLOCK) {
        channel_coefficients k[CHANNELS_VECTORS];
        for (int v = 0; v < CHANNELS_VECTORS; v++)
            k[v] = channels_coefficients(m, f, column + v * VW, VW);
        for (int64_t row = 0; row < rows; row++) {
            int64_t e = first + row * c->wide + column;
            for (int v = 0; v < CHANNELS_VECTORS; v += 2)
                v_put_pair(m->y, e + v * VW, channels_at(m, f, k[v], e + v * VW, VW),
                           channels_at(m, f, k[v + 1], e + v * VW + VW, VW), f.y_is_bf16);
        }
    }
}

/* Computes columns [begin, end) of the wide row that begins at element `first`. */
ATT_INLINE void channels_map_rest(const channel_map *m, channel_form f, int64_t first, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i += VW)
        v_put_until(m->y, first + i, first + end,
                    channels_at(m, f, channels_coefficients(m, f, i, end - i), first + i, end - i), f.y_is_bf16);
}

/* Computes rows [begin, end). */
ATT_INLINE void channels_map(const channel_map *m, channel_form f, const channels *c, int64_t begin, int64_t end)
{
    int64_t whole = begin + (end - begin) / c->fold * c->fold, blocks = c->wide / CHANNELS_BLOCK * CHANNELS_BLOCK;
    for (int64_t row = begin; row < whole;) {
        int64_t rows = (whole - row) / c->fold < c->tile ? (whole - row) / c->fold : c->tile;
        channels_map_blocks(m, f, c, row * c->columns, rows);
        for (int64_t r = 0; blocks < c->wide && r < rows; r++)
            channels_map_rest(m, f, row * c->columns + r * c->wide, blocks, c->wide);
        row += rows * c->fold;
    }
    channels_map_rest(m, f, whole * c->columns, 0, (end - whole) * c->columns);
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

/* Sums over rows, into wide rows. If sum is not NULL, sum += a. If product is not NULL, product += a (b - centre), or a
 * b if centre is NULL. If slope is not NULL, only rows with (b - centre) slope + shift > 0 count. */
typedef struct channel_sums {
    const void *a, *b;
    const float *centre, *slope, *shift;
    float *sum, *product;
} channel_sums;

/* The coefficients of columns [i, i + count). */
ATT_INLINE channel_coefficients channels_sum_coefficients(channel_sums s, int64_t i, int64_t count)
{
    channel_coefficients k = {.slope = {0}};
    if (s.centre)
        k.centre = v_get_until(s.centre, i, i + count, false);
    if (s.slope) {
        k.slope = v_get_until(s.slope, i, i + count, false);
        k.shift = v_get_until(s.shift, i, i + count, false);
    }
    return k;
}

/* The terms of elements [e, e + VW); at most `count` of them are valid. */
typedef struct channel_terms {
    vf a, b;
} channel_terms;

ATT_INLINE channel_terms channels_terms(channel_sums s, channel_coefficients k, int64_t e, int64_t count,
                                        bool a_is_bf16, bool b_is_bf16)
{
    channel_terms t = {.a = v_get_until(s.a, e, e + count, a_is_bf16)};
    if (s.product || s.slope)
        t.b = v_get_until(s.b, e, e + count, b_is_bf16);
    t.b = s.centre ? t.b - k.centre : t.b;
    t.a = s.slope ? v_where(v_fma(t.b, k.slope, k.shift) > (vf){0}, t.a) : t.a;
    return t;
}

/* Adds one block of `rows` wide rows from element `first` on. Called per tile, so that long sums are sums of short
 * ones. */
ATT_INLINE void channels_sum_block(channel_sums s, const channels *c, int64_t first, int64_t rows, int64_t column,
                                   bool a_is_bf16, bool b_is_bf16)
{
    vf sum[CHANNELS_VECTORS] = {{0}}, product[CHANNELS_VECTORS] = {{0}};
    channel_coefficients k[CHANNELS_VECTORS];
    for (int v = 0; v < CHANNELS_VECTORS; v++)
        k[v] = channels_sum_coefficients(s, column + v * VW, VW);
    for (int64_t row = 0; row < rows; row++) {
        int64_t e = first + row * c->wide + column;
        for (int v = 0; v < CHANNELS_VECTORS; v++) {
            channel_terms t = channels_terms(s, k[v], e + v * VW, VW, a_is_bf16, b_is_bf16);
            sum[v] = s.sum ? sum[v] + t.a : sum[v];
            product[v] = s.product ? v_fma(t.a, t.b, product[v]) : product[v];
        }
    }
    for (int v = 0; s.sum && v < CHANNELS_VECTORS; v++)
        v_store(s.sum + column + v * VW, v_load(s.sum + column + v * VW) + sum[v]);
    for (int v = 0; s.product && v < CHANNELS_VECTORS; v++)
        v_store(s.product + column + v * VW, v_load(s.product + column + v * VW) + product[v]);
}

/* Adds columns [begin, end) of the wide row that begins at element `first`. Lanes past the end are not stored. */
ATT_INLINE void channels_sum_rest(channel_sums s, int64_t first, int64_t begin, int64_t end, bool a_is_bf16,
                                  bool b_is_bf16)
{
    for (int64_t i = begin; i < end; i += VW) {
        channel_terms t =
            channels_terms(s, channels_sum_coefficients(s, i, end - i), first + i, end - i, a_is_bf16, b_is_bf16);
        if (s.sum)
            v_put_until(s.sum, i, end, v_get_until(s.sum, i, end, false) + t.a, false);
        if (s.product)
            v_put_until(s.product, i, end, v_fma(t.a, t.b, v_get_until(s.product, i, end, false)), false);
    }
}

/* Adds rows [begin, end) to the columns `part` of wide rows, which are whole blocks except at the end. The sums must be
 * zero on entry. */
ATT_INLINE void channels_sum(channel_sums s, const channels *c, int64_t begin, int64_t end, att_range part,
                             bool a_is_bf16, bool b_is_bf16)
{
    int64_t whole = begin + (end - begin) / c->fold * c->fold;
    int64_t blocks = part.begin + (part.end - part.begin) / CHANNELS_BLOCK * CHANNELS_BLOCK;
    for (int64_t row = begin; row < whole;) {
        int64_t rows = (whole - row) / c->fold < c->tile ? (whole - row) / c->fold : c->tile;
        for (int64_t column = part.begin; column < blocks; column += CHANNELS_BLOCK)
            channels_sum_block(s, c, row * c->columns, rows, column, a_is_bf16, b_is_bf16);
        for (int64_t r = 0; blocks < part.end && r < rows; r++)
            channels_sum_rest(s, row * c->columns + r * c->wide, blocks, part.end, a_is_bf16, b_is_bf16);
        row += rows * c->fold;
    }
    int64_t left = (end - whole) * c->columns;
    if (left > 0)
        channels_sum_rest(s, whole * c->columns, 0, left, a_is_bf16, b_is_bf16);
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

/* Number of pieces of a sample's channels that parts share: blocks of wide rows, or one if rows are combined. */
static inline int64_t channels_pieces(const channels *c)
{
    return c->fold > 1 ? 1 : (c->wide + CHANNELS_BLOCK - 1) / CHANNELS_BLOCK;
}

/* The columns of wide rows that belong to pieces [begin, end). */
static inline att_range channels_columns(const channels *c, int64_t begin, int64_t end)
{
    if (c->fold > 1)
        return (att_range){0, begin < end ? c->wide : 0};
    int64_t last = end * CHANNELS_BLOCK;
    return (att_range){begin * CHANNELS_BLOCK, last < c->wide ? last : c->wide};
}

/* The part's columns of the wide rows of `sample`; empty if begin = end. own_pieces: the part's pieces, counted over
 * all samples. */
static inline att_range channels_share(const channels *c, att_range own_pieces, int64_t sample)
{
    int64_t pieces = channels_pieces(c), begin = own_pieces.begin - sample * pieces,
            end = own_pieces.end - sample * pieces;
    begin = begin < 0 ? 0 : begin;
    end = end > pieces ? pieces : end;
    return begin < end ? channels_columns(c, begin, end) : (att_range){0, 0};
}

/* The columns of a share that are channels rather than repetitions. */
static inline att_range channels_kept(const channels *c, att_range share)
{
    return (att_range){share.begin, share.end < c->columns ? share.end : c->columns};
}

#endif
