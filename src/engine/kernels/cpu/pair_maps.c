#include <math.h>
#include <string.h>

#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/ops/mix_pairs.h"

/* Weights are summed in f64. Those that are 0, which are most of a sharp head, are skipped. */

typedef struct maps {
    const att_mix_pairs_attrs *attrs;
    const att_call *call;
    int64_t row_maps, column_maps, h, w, rows, columns; /* queries h x w, keys rows x columns, ring included */
} maps;

static maps maps_of(const att_call *call)
{
    const int64_t *rows = call->problem->in[0].shape.dims, *columns = call->problem->in[1].shape.dims;
    return (maps){.attrs = call->problem->attrs,
                  .call = call,
                  .row_maps = rows[0],
                  .column_maps = columns[0],
                  .h = rows[1],
                  .w = columns[1],
                  .rows = rows[2],
                  .columns = columns[2]};
}

/* A query at (y, x), with its weights along both axes. */
typedef struct query {
    const float *row, *column;
    int64_t y, x;
} query;

static query query_of(const maps *m, int64_t i)
{
    int64_t x = i % m->w, y = i / m->w % m->h, map = i / m->w / m->h, sample = map / (m->row_maps * m->column_maps);
    int64_t row_map = sample * m->row_maps + map / m->column_maps % m->row_maps;
    int64_t column_map = sample * m->column_maps + map % m->column_maps;
    return (query){.row = (const float *)m->call->in[0] + (row_map * m->h + y) * m->rows,
                   .column = (const float *)m->call->in[1] + (column_map * m->w + x) * m->columns,
                   .y = y,
                   .x = x};
}

/* Shift from the query to a key in row or column `key` of all keys, counted in rows or columns of the queries. */
static double shift(const att_mix_pairs_attrs *attrs, int64_t from, int64_t key)
{
    return (double)(key - attrs->ring) / attrs->stride - (double)from;
}

/* Of the weights of a query along one axis: their sum, the mean shift, and the sum of squares of shifts about it. */
typedef struct axis_moments {
    double weight, mean, squares;
} axis_moments;

/* from: the place of the query on the axis. Sums are about the strongest key, so that they keep the digits of the other
 * weights, however small they are. */
static axis_moments moments_of(const att_mix_pairs_attrs *attrs, const float *weights, int64_t count, int64_t from)
{
    int64_t strongest = 0;
    for (int64_t key = 0; key < count; key++)
        strongest = weights[key] > weights[strongest] ? key : strongest;
    double weight = 0, first = 0, second = 0;
    for (int64_t key = 0; key < count; key++) {
        double a = (double)weights[key], d = (double)(key - strongest) / attrs->stride;
        weight += a;
        first += a * d;
        second += a * d * d;
    }
    double mean = weight > 0 ? first / weight : 0;
    return (axis_moments){weight, mean + shift(attrs, from, strongest), second - first * mean};
}

/* Rows and columns are independent, so their covariance is 0 unless a weight is NaN. */
static void put_shifts(const maps *m, const query *q, double *stat)
{
    axis_moments y = moments_of(m->attrs, q->row, m->rows, q->y);
    axis_moments x = moments_of(m->attrs, q->column, m->columns, q->x);
    stat[ATT_STAT_Y] = x.weight * y.weight * y.mean;
    stat[ATT_STAT_X] = y.weight * x.weight * x.mean;
    stat[ATT_STAT_YY] = x.weight * y.squares;
    stat[ATT_STAT_XX] = y.weight * x.squares;
    stat[ATT_STAT_YX] = 0 * (y.squares + x.squares);
}

static void add_weight(const maps *m, const query *q, int64_t y, int64_t x, double *stat)
{
    const att_mix_pairs_attrs *attrs = m->attrs;
    double a = (double)q->row[y] * (double)q->column[x];
    if (a == 0)
        return;
    double step_y = shift(attrs, q->y, y) * attrs->attention.step_h;
    double step_x = shift(attrs, q->x, x) * attrs->attention.step_w;
    stat[ATT_STAT_ENTROPY] -= a > 0 ? a * log(a) : 0;
    stat[ATT_STAT_DISTANCE] += a * sqrt(step_y * step_y + step_x * step_x);
    if (y == attrs->stride * q->y + attrs->ring && x == attrs->stride * q->x + attrs->ring)
        stat[ATT_STAT_SELF] = a;
    if (att_stat_add_weight(stat, a))
        stat[ATT_STAT_ARGMAX] = (double)(y * m->columns + x);
}

static void put_statistics(const maps *m, const query *q, float *to)
{
    double stat[ATT_STAT_COUNT] = {0};
    for (int64_t y = 0; y < m->rows; y++)
        for (int64_t x = 0; q->row[y] != 0 && x < m->columns; x++)
            add_weight(m, q, y, x, stat);
    put_shifts(m, q, stat);
    for (int s = 0; s < ATT_STAT_COUNT; s++)
        to[s] = (float)stat[s];
}

static void put_map(const maps *m, const query *q, float *to)
{
    for (int64_t y = 0; y < m->rows; y++)
        for (int64_t x = 0; x < m->columns; x++)
            *to++ = q->row[y] * q->column[x];
}

/* Parts share the queries of all heads. */
static att_status maps_run(const att_call *call)
{
    maps m = maps_of(call);
    float *stats = call->out[ATT_PAIR_MAPS_STATS], *map = call->out[ATT_PAIR_MAPS_MAP];
    att_range part = att_part_of(call, call->problem->group * m.row_maps * m.column_maps * m.h * m.w, 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        query q = query_of(&m, i);
        if (stats)
            put_statistics(&m, &q, stats + i * ATT_STAT_COUNT);
        if (map)
            put_map(&m, &q, map + i * m.rows * m.columns);
    }
    return ATT_OK;
}

ATT_PLAIN_KERNEL(pair_maps, .run = maps_run);
