#include "engine/ops/mix_pairs.h"
#include "engine/kernels/ref/call.h"
#include "engine/kernels/ref/list.h"

/* The sizes of a problem. first: the node's input v */
typedef struct pairs {
    const att_call *call;
    int first;
    int64_t h, w, channels, row_maps, column_maps, ring, queries_h, queries_w, groups;
} pairs;

static pairs pairs_of(const att_call *call, int first)
{
    const att_mix_pairs_attrs *attrs = call->problem->attrs;
    return (pairs){.call = call,
                   .first = first,
                   .h = ref_dim(call, first, 0),
                   .w = ref_dim(call, first, 1),
                   .channels = ref_dim(call, first, 2),
                   .row_maps = ref_dim(call, first + 1, 0),
                   .column_maps = ref_dim(call, first + 2, 0),
                   .ring = attrs->ring,
                   .queries_h = attrs->attention.grid_h,
                   .queries_w = attrs->attention.grid_w,
                   .groups = attrs->groups};
}

/* Index in a map of the weight of a query for key `key`, which counts without the ring. */
static int64_t weight_at(int64_t ring, int64_t map, int64_t queries, int64_t query, int64_t keys, int64_t key)
{
    return (map * queries + query) * (keys + 2 * ring) + ring + key;
}

static int64_t row_at(const pairs *p, int64_t map, int64_t y, int64_t key)
{
    return weight_at(p->ring, map, p->queries_h, y, p->h, key);
}

static int64_t column_at(const pairs *p, int64_t map, int64_t x, int64_t key)
{
    return weight_at(p->ring, map, p->queries_w, x, p->w, key);
}

static int64_t value_at(const pairs *p, int64_t sample, int64_t y, int64_t x, int64_t channel)
{
    return ((sample * p->h + y) * p->w + x) * p->channels + channel;
}

/* The place of a number of the result: a channel of a head of a query. */
typedef struct place {
    int64_t sample, y, x, row_map, column_map, channel;
} place;

static place place_of(const pairs *p, int64_t e)
{
    int64_t width = p->channels / p->groups, of_group = e % width, token;
    place at = {.column_map = e / width % p->column_maps,
                .row_map = e / width / p->column_maps % p->row_maps,
                .channel = e / width / p->column_maps / p->row_maps % p->groups * width + of_group};
    token = e / (p->channels * p->row_maps * p->column_maps);
    at.x = token % p->queries_w;
    at.y = token / p->queries_w % p->queries_h;
    at.sample = token / p->queries_w / p->queries_h;
    return at;
}

/* Keys before the first and after the last weight that is not 0 are not read. */
static ref_range keys_of(const pairs *p, int input, int64_t first, int64_t count)
{
    ref_range keys = {0, count};
    while (keys.begin < keys.end && ref_in(p->call, input, first + keys.begin) == 0)
        keys.begin++;
    while (keys.end > keys.begin && ref_in(p->call, input, first + keys.end - 1) == 0)
        keys.end--;
    return keys;
}

static ref_range rows_of(const pairs *p, const place *at)
{
    return keys_of(p, p->first + 1, row_at(p, at->row_map, at->y, 0), p->h);
}

static ref_range columns_of(const pairs *p, const place *at)
{
    return keys_of(p, p->first + 2, column_at(p, at->column_map, at->x, 0), p->w);
}

static att_status run_pairs(const att_call *call)
{
    pairs p = pairs_of(call, 0);
    ref_range share = ref_share(call, att_problem_count(call->problem, &call->problem->out[0]));
    for (int64_t e = share.begin; e < share.end; e++) {
        place at = place_of(&p, e);
        ref_range rows = rows_of(&p, &at), columns = columns_of(&p, &at);
        double sum = 0;
        for (int64_t y = rows.begin; y < rows.end; y++)
            for (int64_t x = columns.begin; x < columns.end; x++)
                sum += ref_in(call, 1, row_at(&p, at.row_map, at.y, y)) *
                       ref_in(call, 2, column_at(&p, at.column_map, at.x, x)) *
                       ref_in(call, 0, value_at(&p, at.sample, y, x, at.channel));
        ref_out(call, 0, e, sum);
    }
    return ATT_OK;
}

const att_kernel att_ref_mix_pairs = {.op = "mix_pairs", .name = "ref", .run = run_pairs};

enum { OUT_V, OUT_ROW_MAP, OUT_COLUMN_MAP, OUT_COUNT };
enum { GRAD_DY, GRAD_V, GRAD_ROW_MAP, GRAD_COLUMN_MAP };

static att_status prepare_grad(const att_problem *problem, att_prepared *prepared)
{
    int64_t count = 0;
    for (int i = 0; i < OUT_COUNT; i++)
        count += att_shape_count(problem->in[GRAD_V + i].shape);
    prepared->scratch_bytes = (size_t)count * sizeof(double);
    return ATT_OK;
}

/* Adds what number e of the result contributes to the gradients of its sample. */
static void add_gradients(const pairs *p, int64_t e, double *const of[OUT_COUNT])
{
    const att_call *call = p->call;
    place at = place_of(p, e);
    double dy = ref_in(call, GRAD_DY, e);
    ref_range rows = rows_of(p, &at), columns = columns_of(p, &at);
    for (int64_t y = rows.begin; y < rows.end; y++)
        for (int64_t x = columns.begin; x < columns.end; x++) {
            int64_t row = row_at(p, at.row_map, at.y, y), column = column_at(p, at.column_map, at.x, x);
            double r = ref_in(call, GRAD_ROW_MAP, row), c = ref_in(call, GRAD_COLUMN_MAP, column);
            double v = ref_in(call, GRAD_V, value_at(p, at.sample, y, x, at.channel));
            of[OUT_V][value_at(p, 0, y, x, at.channel)] += r * c * dy;
            of[OUT_ROW_MAP][row] += r == 0 ? 0 : c * v * dy;
            of[OUT_COLUMN_MAP][column] += c == 0 ? 0 : r * v * dy;
        }
}

static att_status run_grad(const att_call *call)
{
    pairs p = pairs_of(call, GRAD_V);
    int64_t count[OUT_COUNT], total = 0, of_sample = att_shape_count(call->problem->in[GRAD_DY].shape);
    double *of[OUT_COUNT], *next = call->scratch;
    for (int i = 0; i < OUT_COUNT; next += count[i], total += count[i], i++)
        of[i] = next, count[i] = att_shape_count(call->problem->in[GRAD_V + i].shape);
    ref_range share = ref_share(call, call->problem->group);
    for (int64_t sample = share.begin; sample < share.end; sample++) {
        memset(call->scratch, 0, (size_t)total * sizeof(double));
        for (int64_t e = 0; e < of_sample; e++)
            add_gradients(&p, sample * of_sample + e, of);
        for (int i = 0; i < OUT_COUNT; i++)
            for (int64_t e = 0; e < count[i]; e++)
                ref_out(call, i, sample * count[i] + e, of[i][e]);
    }
    return ATT_OK;
}

const att_kernel att_ref_mix_pairs_grad = {
    .op = "mix_pairs_grad", .name = "ref", .prepare = prepare_grad, .run = run_grad};
