#include "engine/ops/mix_pairs.h"
#include "engine/kernels/cpu/shape.h"
#include "engine/kernels/cpu/tier/floats.h"
#include "engine/kernels/cpu/tiered.h"

/* Rows of queries are computed one after the other: the products of all row maps with the values give one row of
 * vectors for each row map, which stay in the first cache while all column maps mix them. Keys whose weights are 0
 * before the first and after the last other one are skipped; of a sharp head only a few are left. */

/* The keys that a query reads; they count without the ring. */
typedef struct keys {
    int32_t begin, end;
} keys;

typedef struct pairs {
    const att_call *call;
    const att_mix_pairs_attrs *attrs;
    int64_t h, w, channels, row_maps, column_maps, queries_h, queries_w, ring;
    int64_t width;    /* channels of a group */
    int64_t elements; /* of a row of values */
    const float *row_map, *column_map;
    const keys *row_keys, *column_keys; /* of all queries of all maps */
} pairs;

/* v: the node's input v */
static pairs pairs_of(const att_problem *problem, int v)
{
    const att_mix_pairs_attrs *attrs = problem->attrs;
    const int64_t *dims = problem->in[v].shape.dims;
    return (pairs){.attrs = attrs,
                   .h = dims[0],
                   .w = dims[1],
                   .channels = dims[2],
                   .row_maps = problem->in[v + 1].shape.dims[0],
                   .column_maps = problem->in[v + 2].shape.dims[0],
                   .queries_h = attrs->attention.grid_h,
                   .queries_w = attrs->attention.grid_w,
                   .ring = attrs->ring,
                   .width = dims[2] / attrs->groups,
                   .elements = dims[1] * dims[2]};
}

static pairs pairs_at(const att_call *call, int v)
{
    pairs p = pairs_of(call->problem, v);
    p.call = call, p.row_map = call->in[v + 1], p.column_map = call->in[v + 2];
    p.row_keys = call->packed, p.column_keys = p.row_keys + p.row_maps * p.queries_h;
    return p;
}

/* Weights of a query, so that key 0 is the first behind the ring. */
static const float *row_weights(const pairs *p, int64_t map, int64_t y)
{
    return p->row_map + (map * p->queries_h + y) * (p->h + 2 * p->ring) + p->ring;
}

static const float *column_weights(const pairs *p, int64_t map, int64_t x)
{
    return p->column_map + (map * p->queries_w + x) * (p->w + 2 * p->ring) + p->ring;
}

static keys row_keys(const pairs *p, int64_t map, int64_t y)
{
    return p->row_keys[map * p->queries_h + y];
}

static keys column_keys(const pairs *p, int64_t map, int64_t x)
{
    return p->column_keys[map * p->queries_w + x];
}

/* --- the packed keys ---------------------------------------------------------------------------------------------- */

static size_t packed_bytes(const pairs *p)
{
    return (size_t)(p->row_maps * p->queries_h + p->column_maps * p->queries_w) * sizeof(keys);
}

static keys *pack_map(const pairs *p, const float *map, int64_t queries, int64_t length, keys *to)
{
    for (int64_t i = 0; i < queries; i++, map += length) {
        int64_t begin, end;
        att_mix_pairs_keys(p->attrs, map, length, &begin, &end);
        *to++ = (keys){(int32_t)begin, (int32_t)end};
    }
    return to;
}

static void pack_keys(const pairs *p, const void *row_map, const void *column_map, void *packed)
{
    keys *to = pack_map(p, row_map, p->row_maps * p->queries_h, p->h + 2 * p->ring, packed);
    pack_map(p, column_map, p->column_maps * p->queries_w, p->w + 2 * p->ring, to);
}

/* --- products along the rows -------------------------------------------------------------------------------------- */

/* Vectors whose sums stay in registers. */
enum { BLOCK = 4 };

static int64_t padded(const pairs *p)
{
    return p->elements + BLOCK * VW;
}

/* Elements [e, e + BLOCK VW) of a row of the product of a row map; elements that the row lacks are 0. whole: it has
 * them all. first: of key row 0 */
ATT_INLINE void mix_block(const pairs *p, const void *v, int64_t first, const float *weight, keys k, int64_t e,
                          bool whole, bool is_bf16, float *to)
{
    vf sum[BLOCK] = {{0}};
    for (int64_t key = k.begin; key < k.end; key++) {
        int64_t at = first + key * p->elements, end = at + p->elements;
        vf factor = v_set(weight[key]);
        for (int i = 0; i < BLOCK; i++)
            if (whole)
                sum[i] = v_fma(factor, v_get(v, at + e + i * VW, is_bf16), sum[i]);
            else if (at + e + i * VW < end)
                sum[i] = v_fma(factor, v_get_until(v, at + e + i * VW, end, is_bf16), sum[i]);
    }
    for (int i = 0; i < BLOCK; i++)
        v_store(to + e + i * VW, sum[i]);
}

/* to[e] = sum over the keys y' of r_yy' v_y'[e], for the elements e of a row. */
ATT_INLINE void mix_row(const pairs *p, const void *v, int64_t first, const float *weight, keys k, bool is_bf16,
                        float *to)
{
    int64_t e = 0;
    for (; e + BLOCK * VW <= p->elements; e += BLOCK * VW)
        mix_block(p, v, first, weight, k, e, true, is_bf16, to);
    if (e < p->elements)
        mix_block(p, v, first, weight, k, e, false, is_bf16, to);
}

/* All row maps; to: [row maps, padded]. */
static void mix_rows(const pairs *p, int v, int64_t sample, int64_t y, float *to)
{
    const void *values = p->call->in[v];
    int64_t first = sample * p->h * p->elements;
    for (int64_t map = 0; map < p->row_maps; map++, to += padded(p))
        if (att_is_bf16(&p->call->problem->in[v]))
            mix_row(p, values, first, row_weights(p, map, y), row_keys(p, map, y), true, to);
        else
            mix_row(p, values, first, row_weights(p, map, y), row_keys(p, map, y), false, to);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* Index of the first channel of a group in a head's result. */
static int64_t result_at(const pairs *p, int64_t sample, int64_t y, int64_t x, int64_t group, int64_t row_map,
                         int64_t column_map)
{
    int64_t token = (sample * p->queries_h + y) * p->queries_w + x;
    int64_t block = (token * p->attrs->groups + group) * p->row_maps + row_map;
    return (block * p->column_maps + column_map) * p->width;
}

/* Row maps, and vectors of channels of each, whose sums stay in registers. */
enum { HEADS = 3, VECTORS = 2 };

/* The sums of up to HEADS row maps for one column map and a few vectors of channels. rows: the products of the first
 * row map, from the first channel on. */
ATT_INLINE void mix_columns(const pairs *p, const float *rows, int64_t heads, const float *weight, keys k, int64_t at,
                            int64_t rest, bool is_bf16)
{
    const int64_t next = padded(p), step = p->column_maps * p->width, channels = p->channels;
    void *y = p->call->out[0];
    vf sum[HEADS][VECTORS] = {{{0}}};
    for (int64_t key = k.begin; key < k.end; key++) {
        vf factor = v_set(weight[key]);
        for (int h = 0; h < HEADS && h < heads; h++)
            for (int v = 0; v < VECTORS; v++)
                sum[h][v] = v_fma(factor, v_load(rows + h * next + key * channels + v * VW), sum[h][v]);
    }
    for (int h = 0; h < HEADS && h < heads; h++)
        for (int v = 0; v < VECTORS && v * VW < rest; v++)
            v_put_until(y, at + h * step + v * VW, at + h * step + rest, sum[h][v], is_bf16);
}

/* All heads of a query, for a group of channels. */
ATT_INLINE void put_query(const pairs *p, int64_t sample, int64_t y, int64_t x, int64_t group, const float *rows,
                          bool is_bf16)
{
    for (int64_t row_map = 0; row_map < p->row_maps; row_map += HEADS)
        for (int64_t map = 0; map < p->column_maps; map++) {
            const float *weight = column_weights(p, map, x), *from = rows + row_map * padded(p) + group * p->width;
            const keys k = column_keys(p, map, x);
            const int64_t heads = p->row_maps - row_map, at = result_at(p, sample, y, x, group, row_map, map);
            for (int64_t i = 0; i < p->width; i += VECTORS * VW)
                if (heads >= HEADS) /* compiled without checks */
                    mix_columns(p, from + i, HEADS, weight, k, at + i, p->width - i, is_bf16);
                else
                    mix_columns(p, from + i, heads, weight, k, at + i, p->width - i, is_bf16);
        }
}

/* rows: the products of all row maps */
ATT_INLINE void put_row(const pairs *p, int64_t sample, int64_t y, const float *rows, bool is_bf16)
{
    for (int64_t x = 0; x < p->queries_w; x++)
        for (int64_t group = 0; group < p->attrs->groups; group++)
            put_query(p, sample, y, x, group, rows, is_bf16);
}

/* Parts share the rows of queries of all samples. */
static att_status pairs_run(const att_call *call)
{
    pairs p = pairs_at(call, 0);
    att_range part = att_part_of(call, call->problem->group * p.queries_h, 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        int64_t sample = i / p.queries_h, y = i % p.queries_h;
        mix_rows(&p, 0, sample, y, call->scratch);
        if (att_is_bf16(&call->problem->out[0]))
            put_row(&p, sample, y, call->scratch, true);
        else
            put_row(&p, sample, y, call->scratch, false);
    }
    return ATT_OK;
}

static att_status pairs_prepare(const att_problem *problem, att_prepared *prepared)
{
    pairs p = pairs_of(problem, 0);
    prepared->scratch_bytes = (size_t)(p.row_maps * padded(&p)) * sizeof(float);
    prepared->packed_bytes = packed_bytes(&p);
    return ATT_OK;
}

static att_status pairs_pack(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    (void)state;
    pairs p = pairs_of(problem, 0);
    pack_keys(&p, in[1], in[2], packed);
    return ATT_OK;
}

ATT_SIMD_KERNEL(mix_pairs, .bf16_in = 1, .bf16_out = 1, .prepare = pairs_prepare, .pack = pairs_pack, .run = pairs_run);

/* --- gradient ----------------------------------------------------------------------------------------------------- */

enum { GRAD_DY, GRAD_V };
enum { OUT_V, OUT_ROW_MAP, OUT_COLUMN_MAP };

/* Scratch of the gradient of a sample. */
typedef struct workspace {
    float *rows;    /* [row maps, padded]: the products along the rows */
    float *of_rows; /* [row maps, padded]: their gradients */
    float *dv;      /* [h, w, C] and a vector */
} workspace;

static int64_t workspace_elements(const pairs *p)
{
    return 2 * p->row_maps * padded(p) + p->h * p->elements + VW;
}

static workspace workspace_at(const pairs *p, float *scratch)
{
    int64_t rows = p->row_maps * padded(p);
    return (workspace){scratch, scratch + rows, scratch + 2 * rows};
}

/* to += weight dy, for the channels of a group. */
ATT_INLINE void add_channels(const pairs *p, float *to, float weight, int64_t at, bool is_bf16)
{
    for (int64_t i = 0; i < p->width; i += VW) {
        vf dy = v_get_until(p->call->in[GRAD_DY], at + i, at + p->width, is_bf16);
        if (p->width - i >= VW)
            v_store(to + i, v_fma(v_set(weight), dy, v_load(to + i)));
        else
            v_store_part(to + i, v_fma(v_set(weight), dy, v_load_part(to + i, p->width - i)), p->width - i);
    }
}

/* Adds to the gradients of the products along the rows of query (y, x). */
static void add_to_rows(const pairs *p, int64_t sample, int64_t y, int64_t x, const workspace *w)
{
    bool is_bf16 = att_is_bf16(&p->call->problem->in[GRAD_DY]);
    for (int64_t group = 0; group < p->attrs->groups; group++)
        for (int64_t row_map = 0; row_map < p->row_maps; row_map++)
            for (int64_t map = 0; map < p->column_maps; map++) {
                const float *weight = column_weights(p, map, x);
                const keys k = column_keys(p, map, x);
                float *to = w->of_rows + row_map * padded(p) + group * p->width;
                int64_t at = result_at(p, sample, y, x, group, row_map, map);
                for (int64_t key = k.begin; key < k.end; key++)
                    add_channels(p, to + key * p->channels, weight[key], at, is_bf16);
            }
}

/* Sum over row maps and channels of the gradient of query (y, x) times the products along the rows at a key. */
static float column_gradient(const pairs *p, int64_t sample, int64_t y, int64_t x, int64_t map, int64_t key,
                             const workspace *w)
{
    bool is_bf16 = att_is_bf16(&p->call->problem->in[GRAD_DY]);
    vf sum = {0};
    for (int64_t group = 0; group < p->attrs->groups; group++)
        for (int64_t row_map = 0; row_map < p->row_maps; row_map++) {
            const float *row = w->rows + row_map * padded(p) + key * p->channels + group * p->width;
            int64_t at = result_at(p, sample, y, x, group, row_map, map);
            for (int64_t i = 0; i < p->width; i += VW)
                sum = v_fma(v_get_until(p->call->in[GRAD_DY], at + i, at + p->width, is_bf16),
                            v_get_until(row, i, p->width, false), sum);
        }
    return v_sum(sum);
}

/* Adds the part of a row of queries to the gradient of the column maps of a sample. */
static void add_to_column_maps(const pairs *p, int64_t sample, int64_t y, const workspace *w, float *gradient)
{
    for (int64_t map = 0; map < p->column_maps; map++)
        for (int64_t x = 0; x < p->queries_w; x++) {
            const float *weight = column_weights(p, map, x);
            const keys k = column_keys(p, map, x);
            float *to = gradient + (weight - p->column_map);
            for (int64_t key = k.begin; key < k.end; key++)
                to[key] += weight[key] == 0 ? 0 : column_gradient(p, sample, y, x, map, key, w);
        }
}

/* Gradient of the weight of a row map for key row `key`. of_row: the gradient of the map's product. */
static float row_gradient(const pairs *p, int64_t sample, int64_t key, const float *of_row)
{
    bool is_bf16 = att_is_bf16(&p->call->problem->in[GRAD_V]);
    int64_t at = (sample * p->h + key) * p->elements;
    vf sum = {0};
    for (int64_t e = 0; e < p->elements; e += VW)
        sum = v_fma(v_get_until(of_row, e, p->elements, false),
                    v_get_until(p->call->in[GRAD_V], at + e, at + p->elements, is_bf16), sum);
    return v_sum(sum);
}

static void put_row_map(const pairs *p, int64_t sample, int64_t y, const workspace *w, float *gradient)
{
    for (int64_t map = 0; map < p->row_maps; map++) {
        const float *weight = row_weights(p, map, y);
        const keys k = row_keys(p, map, y);
        float *to = gradient + (weight - p->row_map);
        for (int64_t key = k.begin; key < k.end; key++)
            to[key] = weight[key] == 0 ? 0 : row_gradient(p, sample, key, w->of_rows + map * padded(p));
    }
}

static void add_to_values(const pairs *p, int64_t y, const workspace *w)
{
    for (int64_t map = 0; map < p->row_maps; map++) {
        const float *weight = row_weights(p, map, y), *from = w->of_rows + map * padded(p);
        const keys k = row_keys(p, map, y);
        for (int64_t key = k.begin; key < k.end; key++) {
            float *to = w->dv + key * p->elements;
            vf factor = v_set(weight[key]);
            for (int64_t e = 0; e < p->elements; e += VW)
                v_put_until(to, e, p->elements, v_fma(factor, v_load(from + e), v_get_until(to, e, p->elements, false)),
                            false);
        }
    }
}

static void put_values(const pairs *p, int64_t sample, const workspace *w)
{
    bool is_bf16 = att_is_bf16(&p->call->problem->out[OUT_V]);
    int64_t count = p->h * p->elements;
    for (int64_t e = 0; e < count; e += VW)
        v_put_until(p->call->out[OUT_V], sample * count + e, (sample + 1) * count, v_load(w->dv + e), is_bf16);
}

/* The gradient of a sample's map, filled with zeros; NULL if nobody reads it. */
static float *clear_map(const pairs *p, int out, int64_t sample)
{
    int64_t count = att_shape_count(p->call->problem->in[GRAD_V + out].shape);
    float *gradient = p->call->out[out];
    return gradient ? memset(gradient + sample * count, 0, (size_t)count * sizeof(float)) : NULL;
}

static void sample_gradient(const pairs *p, int64_t sample, const workspace *w)
{
    float *row_maps = clear_map(p, OUT_ROW_MAP, sample), *column_maps = clear_map(p, OUT_COLUMN_MAP, sample);
    memset(w->dv, 0, (size_t)(p->h * p->elements + VW) * sizeof(float));
    for (int64_t y = 0; y < p->queries_h; y++) {
        memset(w->of_rows, 0, (size_t)(p->row_maps * padded(p)) * sizeof(float));
        for (int64_t x = 0; x < p->queries_w; x++)
            add_to_rows(p, sample, y, x, w);
        if (column_maps) {
            mix_rows(p, GRAD_V, sample, y, w->rows);
            add_to_column_maps(p, sample, y, w, column_maps);
        }
        if (row_maps)
            put_row_map(p, sample, y, w, row_maps);
        if (p->call->out[OUT_V])
            add_to_values(p, y, w);
    }
    if (p->call->out[OUT_V])
        put_values(p, sample, w);
}

/* Parts share the samples. */
static att_status grad_run(const att_call *call)
{
    pairs p = pairs_at(call, GRAD_V);
    workspace w = workspace_at(&p, call->scratch);
    att_range part = att_part_of(call, call->problem->group, 1);
    for (int64_t sample = part.begin; sample < part.end; sample++)
        sample_gradient(&p, sample, &w);
    return ATT_OK;
}

static att_status grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    pairs p = pairs_of(problem, GRAD_V);
    prepared->scratch_bytes = (size_t)workspace_elements(&p) * sizeof(float);
    prepared->packed_bytes = packed_bytes(&p);
    return ATT_OK;
}

static att_status grad_pack(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    (void)state;
    pairs p = pairs_of(problem, GRAD_V);
    pack_keys(&p, in[GRAD_V + 1], in[GRAD_V + 2], packed);
    return ATT_OK;
}

ATT_SIMD_KERNEL(mix_pairs_grad, .bf16_in = 1u << GRAD_DY | 1u << GRAD_V, .bf16_out = 1u << OUT_V,
                .prepare = grad_prepare, .pack = grad_pack, .run = grad_run);
