/* kernels/cpu/tier/distances.h - distances between tokens of a grid, as rows in the order of attention's keys. */
#ifndef ATT_KERNELS_CPU_TIER_DISTANCES_H
#define ATT_KERNELS_CPU_TIER_DISTANCES_H

#include <math.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/simd.h"
#include "engine/ops/attention.h"

/* Grids up to this width use larger tables (8 bytes per token and column), so that the row of a query need not be
 * assembled. */
enum { WIDEST_SLIDE = 32 };

/* If slides: one table for each column x of a query, [vertical + height - 1][x of the key]. A query's row is contiguous
 * in its column's table, at an offset that depends on the query's y. Otherwise one table, [vertical][horizontal + width
 * - 1], from which rows are assembled. */
typedef struct grid_distances {
    int64_t prefix, height, width; /* 0 x 0: no grid */
    double step_h, step_w;
    bool slides;
    float *table, *none;   /* none: zeros, for queries that are not on the grid */
    float *rows, *columns; /* of each key in the grid, counted from 0; 0 for prefix keys; no meaning without a grid */
    float numbers[];       /* `prefix` unused elements, the table, a row of zeros, rows and columns */
} grid_distances;

static inline void fill_distances(grid_distances *d)
{
    int64_t h = d->height, w = d->width;
    float *to = d->table;
    for (int64_t x = 0; d->slides && x < w; x++)
        for (int64_t y = 1 - h; y < h; y++)
            for (int64_t key = 0; key < w; key++)
                *to++ = (float)hypot((double)y * d->step_h, (double)(key - x) * d->step_w);
    for (int64_t y = 0; !d->slides && y < h; y++)
        for (int64_t x = 1 - w; x < w; x++)
            *to++ = (float)hypot((double)y * d->step_h, (double)x * d->step_w);
}

/* Fills in the places of the keys. */
static inline void fill_places(grid_distances *d)
{
    for (int64_t i = 0; i < d->height * d->width; i++) {
        d->rows[d->prefix + i] = (float)(i / d->width);
        d->columns[d->prefix + i] = (float)(i % d->width);
    }
}

/* For rows of up to `longest` keys, a multiple of VW. The caller frees the result with att_free(); NULL if memory is
 * exhausted. */
static inline grid_distances *grid_distances_create(att_context *context, const att_attention_attrs *attrs,
                                                    int64_t longest)
{
    int64_t h = att_attention_height(attrs), w = att_attention_width(attrs);
    bool slides = w <= WIDEST_SLIDE;
    int64_t count = w < 1 ? 0 : slides ? w * (2 * h - 1) * w : h * (2 * w - 1);
    int64_t places = whole_vectors(attrs->prefix + h * w);
    size_t bytes = sizeof(grid_distances) + (size_t)(attrs->prefix + count + longest + 2 * places) * sizeof(float);
    grid_distances *d = att_allocate(context, bytes);
    if (!d) {
        att_fail_memory(context, bytes, "distances in a grid");
        return NULL;
    }
    d->prefix = attrs->prefix, d->height = h, d->width = w, d->slides = slides;
    d->step_h = attrs->step_h, d->step_w = attrs->step_w;
    memset(d->numbers, 0, bytes - sizeof *d);
    d->table = d->numbers + d->prefix;
    d->none = d->table + count;
    d->rows = d->none + longest;
    d->columns = d->rows + places;
    fill_distances(d);
    fill_places(d);
    return d;
}

/* Assembles a row from the rows of a wide grid; zeros for keys that are not on the grid. */
static inline void join_distances(const grid_distances *d, int64_t place, int64_t first, int64_t count, float *to)
{
    int64_t w = d->width, y = place / w, x = place % w, key = first - d->prefix, end = key + count;
    memset(to, 0, (size_t)whole_vectors(count) * sizeof *to);
    to -= key;
    for (int64_t run, at = key > 0 ? key : 0; at < end; at += run) {
        int64_t key_y = at / w, key_x = at % w;
        run = w - key_x < end - at ? w - key_x : end - at;
        const float *row = d->table + (key_y > y ? key_y - y : y - key_y) * (2 * w - 1) + w - 1 - x;
        memcpy(to + at, row + key_x, (size_t)run * sizeof *to);
    }
}

/* Distances from token `query` to keys [first, first + count), finite up to a multiple of VW; undefined for prefix
 * keys. `joined`: memory for an assembled row. */
static inline const float *distances_from(const grid_distances *d, int64_t query, int64_t first, int64_t count,
                                          float *joined)
{
    int64_t place = query - d->prefix;
    if (place < 0 || d->width < 1)
        return d->none;
    if (d->slides)
        return d->table + (place % d->width * (2 * d->height - 1) + d->height - 1 - place / d->width) * d->width +
               first - d->prefix;
    join_distances(d, place, first, count, joined);
    return joined;
}

#endif
