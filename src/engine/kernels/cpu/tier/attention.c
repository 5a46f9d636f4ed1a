#include "engine/ops/attention.h"
#include "engine/kernels/cpu/tier/attention.h"

#include <float.h>
#include <math.h>

#include "engine/kernels/cpu/tier/distances.h"
#include "engine/kernels/cpu/tiered.h"

enum { OUT, LSE, STATS, MAP };

/* Queries and keys of a block of the attention map. Parts share blocks of queries, so ROWS is small. */
enum { ROWS = 32, TILE = 1024 };

/* The statistics that are moments of the shift. */
enum { SHIFTS = ATT_STAT_YX - ATT_STAT_Y + 1 };

/* Sums over the keys of a query, relative to its largest score so far: p = e^(score - largest). Sums over smaller
 * scores leave out those that are equal to the largest: they keep their digits if these have almost all of the
 * weight. */
enum {
    SUM_P,
    SUM_P_LOG_P,
    SUM_SMALLER, /* p, p^2 and p^3 of smaller scores */
    SUM_SMALLER2,
    SUM_SMALLER3,
    SUM_DISTANCE,
    SUM_PREFIX,
    SUM_GRID,
    SUM_SHIFT, /* y, x, y^2, x^2 and y x of the shift to keys on the grid from `origin` */
    SUMS = SUM_SHIFT + SHIFTS
};

/* Of the queries of a block, so far. All but `largest` and SUM_P are of statistics only. */
typedef struct row_sums {
    float largest[ROWS], self[ROWS]; /* the largest score, and the query's own */
    float equal[ROWS];               /* how many scores are equal to the largest */
    int32_t argmax[ROWS];
    /* The score and the place of the strongest key on the grid, the first of equal ones. It adds nothing to the sums of
       shifts, which keep the digits of other keys if it has almost all of the weight. */
    float strongest[ROWS], origin_y[ROWS], origin_x[ROWS];
    float sum[SUMS][ROWS];
} row_sums;

static head_shape shape_of(const att_problem *problem)
{
    return head_shape_of(problem, 0, V_MULTIPLIES_PAIRS, TILE);
}

/* Elements of a matrix of keys or values with padding, in rows or in panels. */
static int64_t matrix_elements(const head_shape *h, int64_t padded)
{
    return whole_vectors(h->keys) * padded;
}

/* What a kernel prepares; absent parts are NULL. */
typedef struct attention_state {
    grid_distances *distances; /* if anybody reads statistics */
    window_tokens *windows;
} attention_state;

typedef struct block {
    const att_call *call;
    head_shape h;
    attention_terms terms;
    int64_t sample, head, window;
    int64_t first, rows;            /* queries */
    const float *keys, *values;     /* keys: panels of all tiles; values: rows */
    float *copied_q, *out, *scores; /* [rows, padded], [rows, value_padded], [rows, tile] */
    gemm_a q;
    const int32_t *order;            /* tokens of the window, see window_order() */
    const grid_distances *distances; /* NULL if nobody reads statistics */
    float *joined;                   /* [tile]: distances, see distances_from() */
    float *of_terms;                 /* see attention_terms_scratch() */
    map_drop drop;
    float *factors;     /* see drop_scratch() */
    float ones[2 * VW]; /* ones, then zeros: the vector at index VW - n has ones in its first n lanes */
    row_sums sums;
} block;

/* 0 in the first `count` lanes, -FLT_MAX in the others. */
static vf padding_after(int64_t count)
{
    float lane[VW];
    for (int64_t i = 0; i < VW; i++)
        lane[i] = i < count ? 0 : -FLT_MAX;
    return v_load(lane);
}

/* Rescales all sums and the output of a row to a larger maximum score. */
static void rescale(block *b, int64_t row, float largest)
{
    row_sums *sums = &b->sums;
    float down = sums->largest[row] - largest, factor = expf(down), *out = b->out + row * b->h.value_padded;
    sums->sum[SUM_P_LOG_P][row] += down * sums->sum[SUM_P][row];
    for (int power = 0; power < 3; power++)
        sums->sum[SUM_SMALLER + power][row] += sums->equal[row];
    sums->sum[SUM_SMALLER2][row] *= factor;
    sums->sum[SUM_SMALLER3][row] *= factor * factor;
    sums->equal[row] = 0;
    for (int s = 0; s < SUMS; s++)
        sums->sum[s][row] *= factor;
    for (int64_t i = 0; i < b->h.value_padded; i += VW)
        v_store(out + i, v_load(out + i) * factor);
}

/* The largest element of whole vectors, with four independent maxima. */
ATT_INLINE float largest_of(const float *x, int64_t length)
{
    vf most[4] = {v_load(x), v_load(x), v_load(x), v_load(x)};
    int64_t i = 0;
    for (; i + 4 * VW <= length; i += 4 * VW)
        for (int chain = 0; chain < 4; chain++)
            most[chain] = v_max(most[chain], v_load(x + i + chain * VW));
    for (; i < length; i += VW)
        most[0] = v_max(most[0], v_load(x + i));
    return v_largest(v_max(v_max(most[0], most[1]), v_max(most[2], most[3])));
}

/* Index of the first element of whole vectors that is equal to `value`; 0 if there is none. */
ATT_INLINE int64_t index_of(const float *x, int64_t length, float value)
{
    vf wanted = v_set(value);
    int64_t i = 0;
    while (i + 4 * VW <= length && !v_bits((v_load(x + i) == wanted) | (v_load(x + i + VW) == wanted) |
                                           (v_load(x + i + 2 * VW) == wanted) | (v_load(x + i + 3 * VW) == wanted)))
        i += 4 * VW;
    for (; i < length; i += VW) {
        unsigned equal = v_bits(v_load(x + i) == wanted);
        if (equal)
            return i + __builtin_ctz(equal);
    }
    return 0;
}

/* Index of the largest of `count` elements from `begin` on, the first of equal ones. x: whole vectors, with elements
 * after `count` that are not larger */
static int64_t index_of_largest(const float *x, int64_t begin, int64_t count)
{
    int64_t largest = begin, middle = whole_vectors(begin), length = whole_vectors(count);
    for (int64_t i = begin; i < middle && i < count; i++)
        largest = x[i] > x[largest] ? i : largest;
    if (middle >= length)
        return largest;
    float rest = largest_of(x + middle, length - middle);
    return rest > x[largest] || begin == middle ? middle + index_of(x + middle, length - middle, rest) : largest;
}

/* Makes sums of shifts from the origin those of shifts from another place. */
static void move_shifts(row_sums *sums, int64_t row, float to_y, float to_x)
{
    float(*shift)[ROWS] = sums->sum + SUM_SHIFT, grid = sums->sum[SUM_GRID][row];
    float y = sums->origin_y[row] - to_y, x = sums->origin_x[row] - to_x;
    shift[2][row] += y * (2 * shift[0][row] + y * grid);
    shift[3][row] += x * (2 * shift[1][row] + x * grid);
    shift[4][row] += y * shift[1][row] + x * (shift[0][row] + y * grid);
    shift[0][row] += y * grid;
    shift[1][row] += x * grid;
}

/* Index in its sample of the token of query `row` of the block. */
static int64_t token_of(const block *b, int64_t row)
{
    return b->order ? b->order[b->first + row] : b->first + row;
}

/* Row of a query in values with one row for each head and query. */
static int64_t row_of(const block *b, int64_t row)
{
    return (b->sample * b->h.heads + b->head) * b->h.tokens + token_of(b, row);
}

/* The query's row of the map, or NULL. */
static float *map_row(const block *b, int64_t row)
{
    float *map = b->call->out[MAP];
    return map ? map + row_of(b, row) * b->h.keys : NULL;
}

/* Finds the places that statistics need: of the largest score, and of the strongest key on the grid. largest: of the
 * tile's scores; is_largest: it is the largest so far */
static void find_places(block *b, int64_t row, int64_t first, int64_t count, float largest, bool is_largest)
{
    const grid_distances *d = b->distances;
    const float *scores = b->scores + row * b->h.tile;
    row_sums *sums = &b->sums;
    int64_t prefix = d->prefix - first; /* of the tile */
    bool moves = d->width > 0 && prefix < count && (prefix >= 0 || largest > sums->strongest[row]);
    if (!is_largest && !moves)
        return;
    int64_t at = index_of(scores, whole_vectors(count), largest);
    if (is_largest)
        sums->argmax[row] = (int32_t)(first + at);
    if (!moves)
        return;
    if (at < prefix)
        at = index_of_largest(scores, prefix, count);
    sums->strongest[row] = scores[at];
    if (prefix < 0) /* else the sums are 0 */
        move_shifts(sums, row, d->rows[first + at], d->columns[first + at]);
    sums->origin_y[row] = d->rows[first + at], sums->origin_x[row] = d->columns[first + at];
}

static void find_largest(block *b, int64_t row, int64_t first, int64_t count, vf padding)
{
    row_sums *sums = &b->sums;
    float *scores = b->scores + row * b->h.tile, *map = map_row(b, row);
    int64_t length = whole_vectors(count);
    if (b->terms.any) {
        const query_place at = {b->sample, b->head, b->h.queries, b->h.keys, b->window, b->first + row};
        add_terms(&b->terms, &at, first, count, scores, b->of_terms);
    }
    if (map)
        memcpy(map + first, scores, (size_t)count * sizeof(float));
    v_store(scores + length - VW, v_load(scores + length - VW) + padding);
    float largest = largest_of(scores, length);
    int64_t self = b->first + row - first;
    if (self >= 0 && self < count) /* has no meaning if there are not as many queries as keys */
        sums->self[row] = scores[self];
    bool is_largest = first == 0 || largest > sums->largest[row];
    if (is_largest && first > 0)
        rescale(b, row, largest);
    if (is_largest)
        sums->largest[row] = largest;
    if (b->distances)
        find_places(b, row, first, count, largest, is_largest);
}

/* Data for the statistics of a row, besides its scores. */
typedef struct row_statistics_input {
    const float *distances, *ones;
    const float *rows, *columns; /* of the keys on the grid */
    float row, column;           /* the origin of shifts */
    int64_t prefix;              /* number of prefix tokens among the tile's keys */
} row_statistics_input;

/* Adds keys at the shifts (y, x) with weights p. */
ATT_INLINE void add_shifts(vf p, vf y, vf x, vf *sums)
{
    vf py = p * y, px = p * x;
    sums[0] += py;
    sums[1] += px;
    sums[2] = v_fma(py, y, sums[2]);
    sums[3] = v_fma(px, x, sums[3]);
    sums[4] = v_fma(py, x, sums[4]);
}

/* Replaces scores by p, in place, even if p is stored as bf16. Statistics use p before rounding. `length` is a multiple
 * of VW; padding has p = 0. factors: of dropout, by which p is multiplied after all sums; NULL: none */
ATT_INLINE void exponentials(float *scores, int64_t length, row_sums *sums, int64_t row,
                             const row_statistics_input *places, const float *factors, bool pairs)
{
    enum { WHOLE = (SUMS + VW - 1) / VW * VW };
    vf largest = v_set(sums->largest[row]), sum[WHOLE] = {{0}};
    for (int64_t i = 0; i < length; i += VW) {
        vf t = v_load(scores + i) - largest, p = v_exp(t), kept = factors ? p * v_load(factors + i) : p;
        if (pairs)
            v_put_halves(scores, i, kept);
        else
            v_store(scores + i, kept);
        sum[SUM_P] += p;
        if (places) {
            vf other = v_where(t != 0, p), square = other * other;
            vf distance = v_load(places->distances + i), on_grid = p;
            if (i < places->prefix) {
                int64_t count = places->prefix - i < VW ? places->prefix - i : VW;
                vf of_prefix = v_load(places->ones + VW - count);
                sum[SUM_PREFIX] = v_fma(of_prefix, p, sum[SUM_PREFIX]);
                distance -= of_prefix * distance;
                on_grid -= of_prefix * p;
            }
            sum[SUM_GRID] += on_grid;
            add_shifts(on_grid, v_load(places->rows + i) - places->row, v_load(places->columns + i) - places->column,
                       sum + SUM_SHIFT);
            sum[SUM_P_LOG_P] = v_fma(p, v_max(v_set(-FLT_MAX), t), sum[SUM_P_LOG_P]);
            sum[SUM_SMALLER] += other;
            sum[SUM_SMALLER2] += square;
            sum[SUM_SMALLER3] = v_fma(square, other, sum[SUM_SMALLER3]);
            sum[SUM_DISTANCE] = v_fma(distance, p, sum[SUM_DISTANCE]);
        }
    }
    if (!places) {
        sums->sum[SUM_P][row] += v_sum(sum[SUM_P]);
        return;
    }
    float of_tile[WHOLE];
    for (int s = 0; s < SUMS; s += VW)
        v_store(of_tile + s, v_sum_each(sum + s));
    for (int s = 0; s < SUMS; s++)
        sums->sum[s][row] += of_tile[s];
    /* A whole number, up to the rounding of the two sums. */
    sums->equal[row] += rintf(of_tile[SUM_P] - of_tile[SUM_SMALLER]);
}

/* The factors of a query of the block; NULL without dropout. */
static const float *factors_of(const block *b, int64_t row, int64_t first, int64_t count)
{
    if (!b->drop.drops)
        return NULL;
    return drop_row(&b->drop, &b->h, b->sample, b->head, token_of(b, row), first, count, b->factors);
}

static void measured_exponentials(block *b, int64_t first, int64_t count)
{
    const grid_distances *d = b->distances;
    bool has_grid = d->width > 0;
    row_statistics_input places = {.ones = b->ones,
                                   .rows = has_grid ? d->rows + first : d->none,
                                   .columns = has_grid ? d->columns + first : d->none,
                                   .prefix = d->prefix - first};
    for (int64_t row = 0; row < b->rows; row++) {
        float *scores = b->scores + row * b->h.tile;
        const float *factors = factors_of(b, row, first, count);
        places.distances = distances_from(d, b->first + row, first, count, b->joined);
        places.row = b->sums.origin_y[row], places.column = b->sums.origin_x[row];
        if (b->h.elements == GEMM_PAIRS)
            exponentials(scores, whole_vectors(count), &b->sums, row, &places, factors, true);
        else
            exponentials(scores, whole_vectors(count), &b->sums, row, &places, factors, false);
    }
}

static void dropping_exponentials(block *b, int64_t first, int64_t count)
{
    for (int64_t row = 0; row < b->rows; row++) {
        float *scores = b->scores + row * b->h.tile;
        const float *factors = factors_of(b, row, first, count);
        if (b->h.elements == GEMM_PAIRS)
            exponentials(scores, whole_vectors(count), &b->sums, row, NULL, factors, true);
        else
            exponentials(scores, whole_vectors(count), &b->sums, row, NULL, factors, false);
    }
}

/* Each step runs over all rows before the next step, so that rows are computed independently of each other. */
static void softmax(block *b, int64_t first, int64_t count)
{
    int64_t length = whole_vectors(count);
    vf padding = padding_after(count - (length - VW));
    for (int64_t row = 0; row < b->rows; row++)
        find_largest(b, row, first, count, padding);
    if (b->call->out[STATS])
        measured_exponentials(b, first, count);
    else if (b->drop.drops)
        dropping_exponentials(b, first, count);
    else if (b->h.elements == GEMM_PAIRS)
        for (int64_t row = 0; row < b->rows; row++)
            exponentials(b->scores + row * b->h.tile, length, &b->sums, row, NULL, NULL, true);
    else
        for (int64_t row = 0; row < b->rows; row++)
            exponentials(b->scores + row * b->h.tile, length, &b->sums, row, NULL, NULL, false);
}

static void run_tile(block *b, int64_t first, int64_t count)
{
    const head_shape *h = &b->h;
    gemm(h->elements, b->rows, whole_vectors(count), h->inner, b->q, (gemm_b){b->keys + first * h->inner, 0},
         (gemm_c){b->scores, h->tile, h->scale, false});
    softmax(b, first, count);
    gemm(h->elements, b->rows, h->value_padded, gemm_count(h->elements, count), (gemm_a){b->scores, h->tile, 1},
         (gemm_b){b->values + gemm_count(h->elements, first) * h->value_padded, h->value_padded},
         (gemm_c){b->out, h->value_padded, 1, first > 0});
}

/* Whether all keys of the query are excluded. The largest score ignores NaN, the sum does not. */
static bool has_no_key(const row_sums *sums, int64_t row)
{
    return sums->largest[row] <= (float)ATT_ATTENTION_NO_SCORE && !isnan(sums->sum[SUM_P][row]);
}

/* The moments of the shifts of VW queries from `first` on; 0 for queries that are not on the grid. */
static void compute_shifts(const block *b, int64_t first, vf share, vf stats[ATT_STAT_COUNT])
{
    const row_sums *sums = &b->sums;
    const grid_distances *d = b->distances;
    vf grid = v_load(sums->sum[SUM_GRID] + first), y = {0}, x = {0}, on_grid = {0};
    for (int64_t i = 0; d->width > 0 && i < VW; i++)
        on_grid[i] = b->first + first + i >= d->prefix;
    if (d->width > 0)
        y = v_load(d->rows + b->first + first), x = v_load(d->columns + b->first + first);
    vf sum[SHIFTS], each = on_grid * share;
    for (int i = 0; i < SHIFTS; i++)
        sum[i] = v_load(sums->sum[SUM_SHIFT + i] + first);
    vf inverse = v_where(grid != 0, 1 / grid), mean_y = sum[0] * inverse, mean_x = sum[1] * inverse;
    stats[ATT_STAT_Y] = each * v_fma(grid, v_load(sums->origin_y + first) - y, sum[0]);
    stats[ATT_STAT_X] = each * v_fma(grid, v_load(sums->origin_x + first) - x, sum[1]);
    stats[ATT_STAT_YY] = each * v_max(v_set(0), sum[2] - sum[0] * mean_y);
    stats[ATT_STAT_XX] = each * v_max(v_set(0), sum[3] - sum[1] * mean_x);
    stats[ATT_STAT_YX] = each * (sum[4] - sum[0] * mean_x);
}

/* The statistics of VW queries from `first` on; those of queries that do not exist have no meaning. */
static void compute_statistics(const block *b, int64_t first, vf stats[ATT_STAT_COUNT])
{
    const row_sums *sums = &b->sums;
    vf sum[SUM_SHIFT], equal_others = v_load(sums->equal + first) - 1;
    for (int s = 0; s < SUM_SHIFT; s++)
        sum[s] = v_load(sums->sum[s] + first);
    vf share = 1 / sum[SUM_P], others = equal_others + sum[SUM_SMALLER];
    vf self = v_exp(v_load(sums->self + first) - v_load(sums->largest + first));
    stats[ATT_STAT_ENTROPY] = v_log1p(others) - sum[SUM_P_LOG_P] * share;
    stats[ATT_STAT_OTHERS] = others * share;
    stats[ATT_STAT_OTHERS2] = (equal_others + sum[SUM_SMALLER2]) * share * share;
    stats[ATT_STAT_OTHERS3] = (equal_others + sum[SUM_SMALLER3]) * share * share * share;
    stats[ATT_STAT_DISTANCE] = sum[SUM_DISTANCE] * share;
    stats[ATT_STAT_PREFIX] = sum[SUM_PREFIX] * share;
    stats[ATT_STAT_SELF] = b->h.queries == b->h.keys ? self * share : v_set(0);
    stats[ATT_STAT_MAX] = share;
    compute_shifts(b, first, share, stats);
}

static void write_statistics(const block *b, float *out)
{
    vf stats[ATT_STAT_COUNT] = {{0}};
    for (int64_t row = 0; row < b->rows; row++) {
        float *to = out + row_of(b, row) * ATT_STAT_COUNT;
        if (row % VW == 0)
            compute_statistics(b, row, stats);
        for (int s = 0; s < ATT_STAT_COUNT; s++)
            to[s] = stats[s][row % VW];
        int32_t argmax = b->sums.argmax[row];
        to[ATT_STAT_ARGMAX] = (float)(b->order ? b->order[argmax] : argmax);
        if (has_no_key(&b->sums, row))
            memset(to, 0, ATT_STAT_COUNT * sizeof *to);
    }
}

static void write_map_row(float *map, float lse, int64_t count)
{
    int64_t i = 0;
    for (; i + VW <= count; i += VW)
        v_store(map + i, v_exp(v_load(map + i) - lse));
    if (i < count)
        v_store_part(map + i, v_exp(v_load_part(map + i, count - i) - lse), count - i);
}

ATT_INLINE void write_out_row(const float *from, float share, void *to, int64_t at, int64_t width, bool is_bf16)
{
    int64_t i = 0;
    for (; i + VW <= width; i += VW)
        v_put(to, at + i, v_load(from + i) * share, is_bf16);
    if (i < width)
        v_put_part(to, at + i, v_load(from + i) * share, width - i, is_bf16);
}

static void write_out(const block *b)
{
    const head_shape *h = &b->h;
    for (int64_t row = 0; row < b->rows; row++) {
        const float *from = b->out + row * h->value_padded;
        float share = has_no_key(&b->sums, row) ? 0 : 1 / b->sums.sum[SUM_P][row];
        int64_t at = ((b->sample * h->tokens + token_of(b, row)) * h->heads + b->head) * h->value_width;
        if (att_is_bf16(&b->call->problem->out[OUT]))
            write_out_row(from, share, b->call->out[OUT], at, h->value_width, true);
        else
            write_out_row(from, share, b->call->out[OUT], at, h->value_width, false);
    }
}

static void write_block(const block *b)
{
    const head_shape *h = &b->h;
    float *lse_out = b->call->out[LSE], *stats = b->call->out[STATS];
    if (b->call->out[OUT])
        write_out(b);
    if (stats)
        write_statistics(b, stats);
    for (int64_t row = 0; row < b->rows; row++) {
        const row_sums *sums = &b->sums;
        float *map = map_row(b, row);
        if (!lse_out && !map)
            break;
        float lse = has_no_key(sums, row) ? INFINITY : sums->largest[row] + logf(sums->sum[SUM_P][row]);
        if (lse_out)
            lse_out[row_of(b, row)] = lse;
        if (map)
            write_map_row(map, lse, h->keys);
    }
}

/* f32 queries are read in place unless they are in a window; others are copied. */
static void copy_queries(block *b)
{
    const head_shape *h = &b->h;
    gemm_source q = gemm_source_from(head_rows(h, b->call, 0, HEAD_Q, b->sample, b->head, b->order), b->first);
    if (h->copied[HEAD_Q] == GEMM_F32 && !q.order) {
        b->q = (gemm_a){(const float *)q.x + q.from, q.stride, 1};
        return;
    }
    gemm_copy_rows(h->copied[HEAD_Q], q, b->rows, h->width, b->copied_q, h->padded);
    b->q = (gemm_a){b->copied_q, h->padded, 1};
}

static void run_block(block *b)
{
    const head_shape *h = &b->h;
    copy_queries(b);
    memset(&b->sums, 0, sizeof b->sums);
    for (int64_t first = 0; first < h->keys; first += h->tile)
        run_tile(b, first, h->keys - first < h->tile ? h->keys - first : h->tile);
    write_block(b);
}

/* Packs all key tiles, one after the other, as panels. */
static void pack_keys(const head_shape *h, gemm_source from, float *to)
{
    for (int64_t first = 0; first < h->keys; first += h->tile) {
        int64_t count = h->keys - first < h->tile ? h->keys - first : h->tile;
        gemm_pack_transposed(h->copied[HEAD_K], gemm_source_from(from, first), count, h->width, to + first * h->inner);
    }
}

/* Finds block `number` of all queries of all heads of all samples. */
static void choose_block(block *b, int64_t number)
{
    const head_shape *h = &b->h;
    int64_t blocks = (h->queries + ROWS - 1) / ROWS, window = number / blocks;
    b->sample = window / h->windows / h->heads;
    b->head = window / h->windows % h->heads;
    b->window = window % h->windows;
    b->order = window_order(b->terms.windows, b->window);
    b->first = number % blocks * ROWS;
    b->rows = h->queries - b->first < ROWS ? h->queries - b->first : ROWS;
}

/* A number that differs between windows, and between heads with keys, or values, of their own. */
static int64_t number_of(const block *b, int which)
{
    return head_at(&b->h, which, b->sample, b->head) * b->h.windows + b->window;
}

/* Parts share the blocks of queries of all windows of all heads of all samples. Heads that share keys or values use
 * them as packed for the head before. */
static att_status attention_run(const att_call *call)
{
    const attention_state *state = call->state;
    block b = {.call = call,
               .h = shape_of(call->problem),
               .terms = attention_terms_at(call, 0, state->windows),
               .drop = map_drop_of(call),
               .distances = state->distances};
    for (int i = 0; i < VW; i++)
        b.ones[i] = 1;
    const head_shape *h = &b.h;
    float *keys = call->scratch, *values = keys + matrix_elements(h, h->padded);
    b.keys = keys, b.values = values;
    b.copied_q = values + matrix_elements(h, h->value_padded);
    b.out = b.copied_q + ROWS * h->padded;
    b.scores = b.out + ROWS * h->value_padded;
    b.joined = b.scores + ROWS * h->tile;
    b.of_terms = b.joined + h->tile;
    b.factors = b.of_terms + attention_terms_scratch(&b.terms, h->tile);
    int64_t blocks = (h->queries + ROWS - 1) / ROWS, packed_k = -1, packed_v = -1;
    att_range part = att_part_of(call, call->problem->group * h->heads * h->windows * blocks, 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        choose_block(&b, i);
        if (packed_k != number_of(&b, HEAD_K))
            pack_keys(h, head_rows(h, call, 0, HEAD_K, b.sample, b.head, b.order), keys);
        if (packed_v != number_of(&b, HEAD_V))
            gemm_copy_columns(h->copied[HEAD_V], head_rows(h, call, 0, HEAD_V, b.sample, b.head, b.order), h->keys,
                              h->value_width, values, h->value_padded);
        packed_k = number_of(&b, HEAD_K), packed_v = number_of(&b, HEAD_V);
        run_block(&b);
    }
    return ATT_OK;
}

static void attention_release(att_context *context, void *from)
{
    attention_state *state = from;
    att_free(context, state->distances);
    att_free(context, state->windows);
    att_free(context, state);
}

static att_status prepare_state(const att_problem *problem, int64_t longest, attention_state *state)
{
    const att_attention_attrs *attrs = problem->attrs;
    if (att_desc_present(&problem->out[STATS]))
        state->distances = grid_distances_create(problem->context, attrs, longest);
    if (attrs->window_h)
        state->windows = window_tokens_create(problem->context, attrs);
    bool complete = state->distances || !att_desc_present(&problem->out[STATS]);
    return complete && (state->windows || !attrs->window_h) ? ATT_OK : ATT_ERR_MEMORY;
}

static att_status attention_prepare(const att_problem *problem, att_prepared *prepared)
{
    head_shape h = shape_of(problem);
    attention_terms terms = attention_terms_of(problem);
    int64_t elements = matrix_elements(&h, h.padded) + matrix_elements(&h, h.value_padded) +
                       ROWS * (h.tile + h.padded + h.value_padded) + h.tile + attention_terms_scratch(&terms, h.tile) +
                       drop_scratch(problem, &h);
    prepared->scratch_bytes = (size_t)elements * sizeof(float);
    attention_terms_prepare(problem, 0, prepared);
    attention_state *state = att_allocate(problem->context, sizeof *state);
    if (!state)
        return att_fail_memory(problem->context, sizeof *state, "attention");
    memset(state, 0, sizeof *state);
    att_status status = prepare_state(problem, h.tile, state);
    if (status != ATT_OK)
        attention_release(problem->context, state);
    else
        prepared->state = state;
    return status;
}

static att_status attention_pack(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    (void)state;
    attention_terms_pack(problem, 0, in, packed);
    return ATT_OK;
}

ATT_SIMD_KERNEL(attention, .bf16_in = 1u << HEAD_Q | 1u << HEAD_K | 1u << HEAD_V, .bf16_out = 1u << OUT,
                .prepare = attention_prepare, .pack = attention_pack, .run = attention_run,
                .release = attention_release);
