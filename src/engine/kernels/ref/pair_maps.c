#include <math.h>

#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"
#include "engine/kernels/ref/shifts.h"
#include "engine/ops/mix_pairs.h"

/* A query of a pair of maps, by their indices in the inputs. */
typedef struct query {
    int64_t head, row, column; /* head and query: index of a row of the result; rows of the maps */
    int64_t y, x;
} query;

static query query_of(const att_call *call, int64_t i)
{
    int64_t row_maps = ref_dim(call, 0, 0), h = ref_dim(call, 0, 1);
    int64_t column_maps = ref_dim(call, 1, 0), w = ref_dim(call, 1, 1);
    int64_t x = i % w, y = i / w % h, map = i / w / h, sample = map / (row_maps * column_maps);
    int64_t row_map = sample * row_maps + map / column_maps % row_maps;
    int64_t column_map = sample * column_maps + map % column_maps;
    return (query){.head = i, .row = row_map * h + y, .column = column_map * w + x, .y = y, .x = x};
}

/* Shift from the query to a key in row y or column x of all keys, counted in rows or columns of the queries. */
static double shift(const att_mix_pairs_attrs *attrs, int64_t from, int64_t key)
{
    return (double)(key - attrs->ring) / attrs->stride - (double)from;
}

/* The weight of the key in row y and column x. */
static double weight(const att_call *call, const query *q, int64_t y, int64_t x)
{
    return ref_in(call, 0, q->row * ref_dim(call, 0, 2) + y) * ref_in(call, 1, q->column * ref_dim(call, 1, 2) + x);
}

/* Sets the moments of the shifts. strongest: the key with the largest weight */
static void put_shifts(const att_call *call, const query *q, int64_t strongest, double stat[ATT_STAT_COUNT])
{
    const att_mix_pairs_attrs *attrs = call->problem->attrs;
    int64_t rows = ref_dim(call, 0, 2), columns = ref_dim(call, 1, 2);
    ref_shift_sums sums = {.origin_y = shift(attrs, q->y, strongest / columns),
                           .origin_x = shift(attrs, q->x, strongest % columns)};
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < columns; x++)
            ref_add_shift(&sums, shift(attrs, q->y, y), shift(attrs, q->x, x), weight(call, q, y, x));
    ref_put_shifts(&sums, stat);
}

static void put_query(const att_call *call, const query *q)
{
    const att_mix_pairs_attrs *attrs = call->problem->attrs;
    int64_t rows = ref_dim(call, 0, 2), columns = ref_dim(call, 1, 2);
    double stat[ATT_STAT_COUNT] = {0};
    for (int64_t j = 0; j < rows * columns; j++) {
        int64_t y = j / columns, x = j % columns;
        double a = weight(call, q, y, x);
        ref_out(call, ATT_PAIR_MAPS_MAP, q->head * rows * columns + j, a);
        stat[ATT_STAT_ENTROPY] -= a > 0 ? a * log(a) : 0;
        stat[ATT_STAT_DISTANCE] +=
            a * hypot(shift(attrs, q->y, y) * attrs->attention.step_h, shift(attrs, q->x, x) * attrs->attention.step_w);
        if (y == attrs->stride * q->y + attrs->ring && x == attrs->stride * q->x + attrs->ring)
            stat[ATT_STAT_SELF] = a;
        if (att_stat_add_weight(stat, a))
            stat[ATT_STAT_ARGMAX] = (double)j;
    }
    put_shifts(call, q, (int64_t)stat[ATT_STAT_ARGMAX], stat);
    for (int s = 0; s < ATT_STAT_COUNT; s++)
        ref_out(call, ATT_PAIR_MAPS_STATS, q->head * ATT_STAT_COUNT + s, stat[s]);
}

static att_status run_maps(const att_call *call)
{
    int64_t heads = ref_dim(call, 0, 0) * ref_dim(call, 1, 0), queries = ref_dim(call, 0, 1) * ref_dim(call, 1, 1);
    ref_range share = ref_share(call, call->problem->group * heads * queries);
    for (int64_t i = share.begin; i < share.end; i++) {
        query q = query_of(call, i);
        put_query(call, &q);
    }
    return ATT_OK;
}

const att_kernel att_ref_pair_maps = {.op = "pair_maps", .name = "ref", .run = run_maps};
