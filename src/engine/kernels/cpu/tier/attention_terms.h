/* kernels/cpu/tier/attention_terms.h - terms of attention scores: of shifts, of rows and columns of keys, and masks. */
#ifndef ATT_KERNELS_CPU_TIER_ATTENTION_TERMS_H
#define ATT_KERNELS_CPU_TIER_ATTENTION_TERMS_H

#include <float.h>

#include "engine/backend/kernel.h"
#include "engine/kernels/cpu/tier/attention_windows.h"
#include "engine/kernels/cpu/tier/floats.h"

/* The table `relative` is packed by head: for each column x of a query, [vertical + height - 1][x of the key], so that
 * the terms of a query are contiguous, at an offset that depends on the query's y; then the numbers of a prefix token
 * as query, as key, as both. */
enum { SHIFT_OF_QUERY, SHIFT_OF_KEY, SHIFT_OF_BOTH };

/* The terms of all heads of a call. Absent terms are NULL. */
typedef struct attention_terms {
    int64_t prefix, height, width, heads; /* of the grid of the terms */
    int64_t shifts, packed;               /* numbers of a head: in the table without prefix tokens, when packed */
    bool causal, any;                     /* any: whether any score has a term or a mask */
    const float *relative, *rows, *columns, *keys;
    const window_tokens *windows;
} attention_terms;

/* Whether input `which` of the attention that begins at input `first` is present. */
static inline bool has_term(const att_problem *problem, int first, int which)
{
    return first + which < problem->in_count && att_desc_present(&problem->in[first + which]);
}

static inline attention_terms attention_terms_of(const att_problem *problem)
{
    const att_attention_attrs *attrs = problem->attrs;
    int64_t height = att_attention_height(attrs), width = att_attention_width(attrs);
    return (attention_terms){.prefix = attrs->prefix,
                             .height = height,
                             .width = width,
                             .heads = attrs->heads,
                             .shifts = (2 * height - 1) * (2 * width - 1),
                             .packed = width * (2 * height - 1) * width + ATT_ATTENTION_PREFIX_SHIFTS,
                             .causal = attrs->causal};
}

/* The terms of a call whose input q is input `first`. */
static inline attention_terms attention_terms_at(const att_call *call, int first, const window_tokens *windows)
{
    attention_terms t = attention_terms_of(call->problem);
    if (has_term(call->problem, first, ATT_ATTENTION_RELATIVE))
        t.relative = call->packed;
    if (has_term(call->problem, first, ATT_ATTENTION_ROWS)) {
        t.rows = call->in[first + ATT_ATTENTION_ROWS];
        t.columns = call->in[first + ATT_ATTENTION_COLUMNS];
    }
    if (has_term(call->problem, first, ATT_ATTENTION_KEYS))
        t.keys = call->in[first + ATT_ATTENTION_KEYS];
    t.windows = windows;
    t.any = t.relative || t.rows || t.keys || t.causal || windows;
    return t;
}

/* att_kernel.prepare, for the packed table. */
static inline void attention_terms_prepare(const att_problem *problem, int first, att_prepared *prepared)
{
    attention_terms t = attention_terms_of(problem);
    if (has_term(problem, first, ATT_ATTENTION_RELATIVE)) {
        prepared->packed_bytes = (size_t)(t.heads * t.packed) * sizeof(float);
        prepared->packed_key = (uint64_t)t.width << 32 | (uint64_t)t.height;
    }
}

/* att_kernel.pack. Shift s of the packed table is shift `shifts` - 1 - s of `relative`, whose shifts are from key to
 * query. */
static inline void attention_terms_pack(const att_problem *problem, int first, const void *const *in, float *packed)
{
    attention_terms t = attention_terms_of(problem);
    const float *table = in[first + ATT_ATTENTION_RELATIVE];
    bool has_prefix = problem->in[first + ATT_ATTENTION_RELATIVE].shape.dims[0] > t.shifts;
    for (int64_t head = 0; head < t.heads; head++) {
        for (int64_t x = 0; x < t.width; x++)
            for (int64_t vertical = 0; vertical < 2 * t.height - 1; vertical++)
                for (int64_t key = 0; key < t.width; key++) {
                    int64_t s = vertical * (2 * t.width - 1) + key - x + t.width - 1;
                    *packed++ = table[(t.shifts - 1 - s) * t.heads + head];
                }
        for (int i = 0; i < ATT_ATTENTION_PREFIX_SHIFTS; i++)
            *packed++ = has_prefix ? table[(t.shifts + i) * t.heads + head] : 0;
    }
}

/* Computes one head's column of the gradient of `relative` from that of the packed table. The last three numbers are
 * those of prefix tokens. */
static inline void attention_terms_unpack(const attention_terms *t, const float *packed, float *column)
{
    memset(column, 0, (size_t)t->shifts * sizeof *column);
    for (int64_t x = 0; x < t->width; x++)
        for (int64_t vertical = 0; vertical < 2 * t->height - 1; vertical++)
            for (int64_t key = 0; key < t->width; key++)
                column[t->shifts - 1 - (vertical * (2 * t->width - 1) + key - x + t->width - 1)] += *packed++;
    memcpy(column + t->shifts, packed, ATT_ATTENTION_PREFIX_SHIFTS * sizeof *column);
}

/* Keys of a tile, as one query sees them: `prefix` prefix tokens, then tokens [begin, end) of the grid. */
typedef struct tile_keys {
    int64_t prefix, begin, end;
} tile_keys;

static inline tile_keys tile_keys_of(const attention_terms *t, int64_t first, int64_t count)
{
    int64_t prefix = t->prefix - first < 0 ? 0 : t->prefix - first < count ? t->prefix - first : count;
    return (tile_keys){prefix, first + prefix - t->prefix, first + count - t->prefix};
}

ATT_INLINE void add_run(float *to, const float *from, int64_t count)
{
    int64_t i = 0;
    for (; i + VW <= count; i += VW)
        v_store(to + i, v_load(to + i) + v_load(from + i));
    if (i < count)
        v_store_part(to + i, v_load_part(to + i, count - i) + v_load_part(from + i, count - i), count - i);
}

static inline void add_number(float *to, float number, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += number;
}

static inline float sum_of(const float *x, int64_t count)
{
    vf sum = {0};
    for (int64_t i = 0; i < count; i += VW)
        sum += v_get_until(x, i, count, false);
    return v_sum(sum);
}

/* The run of a packed table that belongs to a query at `place` of the grid: the terms of all keys of the grid. */
ATT_INLINE int64_t run_at(const attention_terms *t, int64_t place)
{
    return (place % t->width * (2 * t->height - 1) + t->height - 1 - place / t->width) * t->width;
}

static inline void add_relative(const attention_terms *t, const float *table, int64_t query, tile_keys keys,
                                float *scores)
{
    const float *prefix = table + t->packed - ATT_ATTENTION_PREFIX_SHIFTS;
    int64_t count = keys.end - keys.begin;
    add_number(scores, prefix[query < t->prefix ? SHIFT_OF_BOTH : SHIFT_OF_KEY], keys.prefix);
    if (query < t->prefix)
        add_number(scores + keys.prefix, prefix[SHIFT_OF_QUERY], count);
    else
        add_run(scores + keys.prefix, table + run_at(t, query - t->prefix) + keys.begin, count);
}

static inline void add_relative_gradient(const attention_terms *t, float *table, int64_t query, tile_keys keys,
                                         const float *ds)
{
    float *prefix = table + t->packed - ATT_ATTENTION_PREFIX_SHIFTS;
    int64_t count = keys.end - keys.begin;
    prefix[query < t->prefix ? SHIFT_OF_BOTH : SHIFT_OF_KEY] += sum_of(ds, keys.prefix);
    if (query < t->prefix)
        prefix[SHIFT_OF_QUERY] += sum_of(ds + keys.prefix, count);
    else
        add_run(table + run_at(t, query - t->prefix) + keys.begin, ds + keys.prefix, count);
}

/* Elements of scratch memory that add_terms() needs for tiles of `tile` keys. */
static inline int64_t attention_terms_scratch(const attention_terms *t, int64_t tile)
{
    return whole_vectors(t->width) + VW + tile + VW;
}

/* Adds rows[y] + columns[x] for each key of the grid. */
static inline void add_axes(const attention_terms *t, const float *rows, const float *columns, tile_keys keys,
                            float *scores, float *scratch)
{
    float *joined = scratch + whole_vectors(t->width) + VW;
    for (int64_t x = 0; x < t->width; x += VW) /* a copy that can be read one vector beyond its end */
        v_store(scratch + x, v_get_until(columns, x, t->width, false));
    columns = scratch;
    int64_t at = keys.begin, count = keys.end - keys.begin;
    for (int64_t y = at / t->width, x = at % t->width; at < keys.end; at += t->width - x, y++, x = 0) {
        int64_t run = t->width - x < keys.end - at ? t->width - x : keys.end - at;
        vf row = v_set(rows[y]);
        /* The vector that passes the end of the run is overwritten by the next run. */
        for (int64_t i = 0; i < run; i += VW)
            v_store(joined + at - keys.begin + i, v_load(columns + x + i) + row);
    }
    add_run(scores + keys.prefix, joined, count);
}

static inline void add_axes_gradient(const attention_terms *t, float *rows, float *columns, tile_keys keys,
                                     const float *ds)
{
    ds += keys.prefix - keys.begin;
    int64_t at = keys.begin;
    for (int64_t y = at / t->width, x = at % t->width; at < keys.end; at += t->width - x, y++, x = 0) {
        int64_t run = t->width - x < keys.end - at ? t->width - x : keys.end - at;
        rows[y] += sum_of(ds + at, run);
        add_run(columns + x, ds + at, run);
    }
}

/* Adds the terms of keys. Those of keys that are excluded are minus infinity; their scores stay finite. */
static inline void add_keys(const float *terms, int64_t count, float *scores)
{
    vf least = v_set((float)ATT_ATTENTION_NO_SCORE);
    for (int64_t i = 0; i < count; i += VW) {
        vf sum = v_get_until(scores, i, count, false) + v_get_until(terms, i, count, false);
        v_put_until(scores, i, count, v_max(least, sum), false);
    }
}

/* One query of a head of a sample. Without windows, window is 0. keys: of the sample. */
typedef struct query_place {
    int64_t sample, head, queries, keys, window, query;
} query_place;

static inline int64_t axes_row(const attention_terms *t, const query_place *at)
{
    return (at->sample * at->queries + at->query) * t->heads + at->head;
}

/* Adds the terms of one query to its scores for keys [first, first + count). A masked score becomes -FLT_MAX. */
static inline void add_terms(const attention_terms *t, const query_place *at, int64_t first, int64_t count,
                             float *scores, float *scratch)
{
    tile_keys keys = tile_keys_of(t, first, count);
    const float *mask = t->windows ? window_mask(t->windows, at->window, at->query) : NULL;
    if (t->relative)
        add_relative(t, t->relative + at->head * t->packed, at->query, keys, scores);
    if (t->rows)
        add_axes(t, t->rows + axes_row(t, at) * t->height, t->columns + axes_row(t, at) * t->width, keys, scores,
                 scratch);
    if (t->keys)
        add_keys(t->keys + at->sample * at->keys + first, count, scores);
    if (mask)
        add_run(scores, mask + first, count);
    for (int64_t j = at->query + 1 > first ? at->query + 1 - first : 0; t->causal && j < count; j++)
        scores[j] = -FLT_MAX;
}

#endif
