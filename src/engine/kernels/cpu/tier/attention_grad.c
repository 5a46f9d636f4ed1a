#include "engine/kernels/cpu/tier/attention.h"

#include <math.h>

#include "engine/kernels/cpu/tiered.h"

enum { DO, O, LSE, Q };

/* Loops over tiles of at most TILE keys and, for each tile, over blocks of ROWS queries. Larger ROWS means fewer
 * additions to the tile's dk and dv. The keys and values of a tile, and their gradients, have at most TILE_FLOATS
 * elements, so that they stay in the second-level cache. */
enum { ROWS = 64, TILE = 512, TILE_FLOATS = 1 << 18 };
enum { DOUBLE = sizeof(double) / sizeof(float) };

/* Scratch. Keys are stored as rows (for dq) and as panels of their transpose (for scores); values as panels only. */
typedef struct workspace {
    float *dq;                       /* [heads of the unit][queries, padded] */
    float *key_panels, *keys, *dk;   /* [tile, padded] */
    float *value_panels, *dv;        /* [tile, value_padded] */
    float *q, *dout;                 /* [ROWS, padded], [ROWS, value_padded] */
    float *q_columns, *dout_columns; /* operand B of products; equal to q and dout unless elements are pairs */
    float *p, *ds;                   /* [ROWS, tile] */
    float *of_terms;                 /* see attention_terms_scratch() */
    float *ds_rows;                  /* [2, tile]: ds of two rows before rounding to bf16 */
    float *factors[2];               /* of dropout, for two rows; see drop_scratch() */
    float *axes;     /* [heads of the unit][queries][rows, columns]: gradient of these terms, if there are any */
    float *relative; /* [heads of the unit][packed]: gradient of the table, if there is one */
    float *column;   /* of the gradient of the table */
    double *squares; /* [heads of the unit][queries]: squared norms of ds */
} workspace;

/* Products are of pairs only if all their operands are bf16. */
static head_shape shape_of(const att_problem *problem)
{
    head_shape h = head_shape_of(problem, Q, V_MULTIPLIES_PAIRS && att_is_bf16(&problem->in[DO]), TILE);
    int64_t fits = TILE_FLOATS / (3 * h.padded + 2 * h.value_padded) / VW * VW;
    if (h.tile > fits)
        h.tile = fits > VW ? fits : VW;
    return h;
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : greatest_divisor(b, a % b);
}

/* A unit of work is the heads that share a head of the keys or of the values with each other. */
static int64_t units_of(const head_shape *h)
{
    return greatest_divisor(h->operand[HEAD_K].heads, h->operand[HEAD_V].heads);
}

/* Takes `count` elements of scratch memory; from[0] NULL: only counts them. */
static float *take(float *scratch, int64_t *used, int64_t count)
{
    float *taken = scratch ? scratch + *used : NULL;
    *used += whole_vectors(count);
    return taken;
}

/* Returns the number of elements; scratch NULL: only counts them. */
static int64_t workspace_divide(const att_problem *problem, const head_shape *h, float *scratch, workspace *w)
{
    const attention_terms terms = attention_terms_of(problem), *t = &terms;
    bool has_relative = has_term(problem, Q, ATT_ATTENTION_RELATIVE),
         has_axes = has_term(problem, Q, ATT_ATTENTION_ROWS);
    bool pairs = h->elements == GEMM_PAIRS;
    int64_t used = 0, keys = h->tile * h->padded, values = h->tile * h->value_padded;
    int64_t q = ROWS * h->padded, dout = ROWS * h->value_padded, heads = h->heads / units_of(h);
    w->key_panels = take(scratch, &used, keys);
    w->keys = take(scratch, &used, keys);
    w->dk = take(scratch, &used, keys);
    w->value_panels = take(scratch, &used, values);
    w->dv = take(scratch, &used, values);
    w->q = take(scratch, &used, q);
    w->dout = take(scratch, &used, dout);
    w->q_columns = pairs ? take(scratch, &used, q) : w->q;
    w->dout_columns = pairs ? take(scratch, &used, dout) : w->dout;
    w->p = take(scratch, &used, ROWS * h->tile);
    w->ds = take(scratch, &used, ROWS * h->tile);
    w->dq = take(scratch, &used, heads * h->queries * h->padded);
    w->of_terms = take(scratch, &used, attention_terms_scratch(t, h->tile));
    w->ds_rows = take(scratch, &used, 2 * h->tile);
    for (int i = 0; i < 2; i++)
        w->factors[i] = take(scratch, &used, drop_scratch(problem, h));
    w->axes = take(scratch, &used, has_axes ? heads * h->queries * (t->height + t->width) : 0);
    w->relative = take(scratch, &used, has_relative ? heads * t->packed : 0);
    w->column = take(scratch, &used, has_relative ? t->shifts + ATT_ATTENTION_PREFIX_SHIFTS : 0);
    w->squares = (double *)take(scratch, &used, DOUBLE * heads * h->queries);
    return used;
}

/* The current head and tile. */
typedef struct place {
    const att_call *call;
    head_shape h;
    attention_terms terms;
    workspace w;
    map_drop drop;
    const int32_t *order; /* tokens of the window, see window_order() */
    int64_t sample, head, window;
    int64_t key, keys;   /* of the tile: the first key, and the number of keys */
    bool adds_k, adds_v; /* heads before this one have added to dk, or to dv, of the tile */
    bool has_norms;      /* somebody reads the norms of ds */
} place;

/* Dot product of `count` elements of a and b from index `at` on. */
static float dot(const void *a, bool a_is_bf16, const void *b, bool b_is_bf16, int64_t at, int64_t count)
{
    vf sum = {0};
    for (int64_t i = 0; i < count; i += VW)
        sum = v_fma(v_get_until(a, at + i, at + count, a_is_bf16), v_get_until(b, at + i, at + count, b_is_bf16), sum);
    return v_sum(sum);
}

typedef struct gradient {
    vf p, ds;
} gradient;

/* p = e^(score - lse), ds = p (dp - do . o). factors: of dropout, for p and dp in products with do; NULL: none */
ATT_INLINE gradient gradient_of(const float *score, const float *dp, const float *factors, float lse, float do_o)
{
    vf p = v_exp(v_load(score) - lse);
    if (!factors)
        return (gradient){p, p * (v_load(dp) - do_o)};
    vf factor = v_load(factors);
    return (gradient){factor * p, p * (factor * v_load(dp) - do_o)};
}

typedef struct rows {
    float lse[ROWS], do_o[ROWS];
    int64_t first, count;
} rows;

/* Replaces scores by p and dp by ds. */
ATT_INLINE void row_gradient(const rows *r, int64_t row, const float *factors, float *p, float *ds, int64_t length)
{
    for (int64_t i = 0; i < length; i += VW) {
        gradient g = gradient_of(p + i, ds + i, factors ? factors + i : NULL, r->lse[row], r->do_o[row]);
        v_store(p + i, g.p);
        v_store(ds + i, g.ds);
    }
}

/* The same for rows `row` and row + 1, which are `stride` apart, with results as pairs. The pairs of both rows' p
 * replace the first row's scores; the pairs of both rows' ds replace the second row's scores. Each row's ds as pairs of
 * adjacent keys replaces its dp. With an odd number of keys the last pair is padded with zero. ds_rows: memory for ds
 * before rounding, or NULL. factors: of dropout, for each row, or NULL */
ATT_INLINE void two_row_gradients(const rows *r, int64_t row, bool both, float *const *factors, float *p, float *ds,
                                  int64_t stride, int64_t count, float *ds_rows)
{
    for (int64_t i = 0; i < whole_vectors(count); i += VW) {
        gradient a = gradient_of(p + i, ds + i, factors ? factors[0] + i : NULL, r->lse[row], r->do_o[row]);
        gradient b = {{0}, {0}};
        if (both)
            b = gradient_of(p + stride + i, ds + stride + i, factors ? factors[1] + i : NULL, r->lse[row + 1],
                            r->do_o[row + 1]);
        v_store(p + i, v_pair(a.p, b.p));
        v_store(p + stride + i, v_pair(a.ds, b.ds));
        v_put_halves(ds, i, a.ds);
        v_put_halves(ds + stride, i, b.ds);
        if (ds_rows) {
            v_store(ds_rows + i, a.ds);
            v_store(ds_rows + stride + i, b.ds);
        }
    }
    for (int64_t i = 0; count % 2 && i < 2; i++)
        memset((bf16 *)(ds + i * stride) + count, 0, sizeof(bf16));
}

/* Left operands of the products that compute dq, dk and dv. */
typedef struct factors {
    gemm_a p_columns, ds, ds_columns; /* columns: transposed */
} factors;

static query_place query_of(const place *at, int64_t query)
{
    return (query_place){at->sample, at->head, at->h.queries, at->h.keys, at->window, query};
}

/* The number of the current head in its unit. */
static int64_t head_of_unit(const place *at)
{
    return at->head % (at->h.heads / units_of(&at->h));
}

/* Gradient of a query's numbers of rows and columns. */
static float *axes_of(const place *at, int64_t query)
{
    return at->w.axes + (head_of_unit(at) * at->h.queries + query) * (at->terms.height + at->terms.width);
}

static void add_gradient_of_terms(const place *at, int64_t query, const float *ds)
{
    const attention_terms *t = &at->terms;
    tile_keys keys = tile_keys_of(t, at->key, at->keys);
    if (t->relative)
        add_relative_gradient(t, at->w.relative + head_of_unit(at) * t->packed, query, keys, ds);
    if (t->rows)
        add_axes_gradient(t, axes_of(at, query), axes_of(at, query) + t->height, keys, ds);
}

/* Writes the factors of query `query` to w.factors[i]. */
static const float *find_factors(const place *at, int64_t query, int i)
{
    int64_t token = at->order ? at->order[query] : query;
    return drop_row(&at->drop, &at->h, at->sample, at->head, token, at->key, at->keys, at->w.factors[i]);
}

static double *squares_of(const place *at)
{
    return at->w.squares + head_of_unit(at) * at->h.queries;
}

/* Uses ds of a query, which products do not. In f64, because squares of small gradients leave the range of f32. */
static void take_gradient(const place *at, int64_t query, const float *ds)
{
    double squares = 0;
    if (at->terms.relative || at->terms.rows)
        add_gradient_of_terms(at, query, ds);
    for (int64_t i = 0; at->has_norms && i < at->keys; i++)
        squares += (double)ds[i] * (double)ds[i];
    squares_of(at)[query] += squares;
}

/* The same as find_gradients() for single f32 rows. */
static void find_row_gradients(const place *at, const rows *r)
{
    const head_shape *h = &at->h;
    for (int64_t i = 0; i < r->count; i++) {
        float *ds = at->w.ds + i * h->tile;
        if (at->drop.drops)
            row_gradient(r, i, find_factors(at, r->first + i, 0), at->w.p + i * h->tile, ds, whole_vectors(at->keys));
        else
            row_gradient(r, i, NULL, at->w.p + i * h->tile, ds, whole_vectors(at->keys));
        take_gradient(at, r->first + i, ds);
    }
}

static void find_pair_gradients(const place *at, const rows *r)
{
    const head_shape *h = &at->h;
    bool takes = at->terms.relative || at->terms.rows || at->has_norms;
    for (int64_t i = 0; i < r->count; i += 2) {
        float *p = at->w.p + i * h->tile, *ds = at->w.ds + i * h->tile;
        bool both = i + 1 < r->count;
        for (int row = 0; at->drop.drops && row < 1 + both; row++)
            find_factors(at, r->first + i + row, row);
        if (takes || at->drop.drops)
            two_row_gradients(r, i, both, at->drop.drops ? at->w.factors : NULL, p, ds, h->tile, at->keys,
                              at->w.ds_rows);
        else if (both)
            two_row_gradients(r, i, true, NULL, p, ds, h->tile, at->keys, NULL);
        else
            two_row_gradients(r, i, false, NULL, p, ds, h->tile, at->keys, NULL);
        for (int64_t row = 0; takes && row < 1 + both; row++)
            take_gradient(at, r->first + i + row, at->w.ds_rows + row * h->tile);
    }
}

/* Adds their terms to the scores, then replaces scores by p and dp by ds. */
static factors find_gradients(const place *at, const rows *r)
{
    const head_shape *h = &at->h;
    const workspace *w = &at->w;
    for (int64_t i = 0; at->terms.any && i < r->count; i++) {
        const query_place query = query_of(at, r->first + i);
        add_terms(&at->terms, &query, at->key, at->keys, w->p + i * h->tile, w->of_terms);
    }
    if (h->elements != GEMM_PAIRS) {
        find_row_gradients(at, r);
        return (factors){{w->p, 1, h->tile}, {w->ds, h->tile, 1}, {w->ds, 1, h->tile}};
    }
    find_pair_gradients(at, r);
    return (factors){{w->p, 1, 2 * h->tile}, {w->ds, h->tile, 1}, {w->p + h->tile, 1, 2 * h->tile}};
}

/* dq of the current head. */
static float *dq_of(const place *at)
{
    return at->w.dq + head_of_unit(at) * at->h.queries * at->h.padded;
}

/* For one tile of keys: dv += p' do; dq += scale ds k; dk += scale ds' q. */
static void run_piece(const place *at, const rows *r)
{
    const head_shape *h = &at->h;
    const workspace *w = &at->w;
    gemm_elements e = h->elements;
    int64_t columns = whole_vectors(at->keys), queries = gemm_count(e, r->count);
    gemm(e, r->count, columns, h->inner, (gemm_a){w->q, h->padded, 1}, (gemm_b){w->key_panels, 0},
         (gemm_c){w->p, h->tile, h->scale, false});
    gemm(e, r->count, columns, h->value_inner, (gemm_a){w->dout, h->value_padded, 1}, (gemm_b){w->value_panels, 0},
         (gemm_c){w->ds, h->tile, 1, false});
    factors f = find_gradients(at, r);
    gemm(e, at->keys, h->value_padded, queries, f.p_columns, (gemm_b){w->dout_columns, h->value_padded},
         (gemm_c){w->dv, h->value_padded, 1, r->first > 0 || at->adds_v});
    gemm(e, r->count, h->padded, gemm_count(e, at->keys), f.ds, (gemm_b){w->keys, h->padded},
         (gemm_c){dq_of(at) + r->first * h->padded, h->padded, h->scale, at->key > 0});
    gemm(e, at->keys, h->padded, queries, f.ds_columns, (gemm_b){w->q_columns, h->padded},
         (gemm_c){w->dk, h->padded, h->scale, r->first > 0 || at->adds_k});
}

/* A matrix of gradients in scratch memory. */
typedef struct gradient_rows {
    const float *data; /* [count, padded] */
    int64_t first, count, padded;
} gradient_rows;

/* Copies rows to the gradient of an input. to: rows of the window in that gradient. */
ATT_INLINE void write_rows_as(bool is_bf16, const gradient_rows *from, int64_t width, void *out, gemm_source to)
{
    const float *data = from->data;
    for (int64_t row = 0; row < from->count; row++, data += from->padded) {
        int64_t at = gemm_row_at(&to, from->first + row);
        for (int64_t i = 0; i < width; i += VW)
            v_put_until(out, at + i, at + width, v_load(data + i), is_bf16);
    }
}

/* The output for the gradient of input `input` of the attention, which is present; for ATT_ATTENTION_INPUTS, the output
 * for the norms of ds. */
static int output_of(const att_problem *problem, int input)
{
    int output = 0;
    for (int i = Q; i < Q + input && i < problem->in_count; i++)
        output += att_desc_present(&problem->in[i]);
    return output;
}

/* Rows of operand `which` of the current head and window. */
static gemm_source operand_at(const place *at, int which)
{
    return head_rows(&at->h, at->call, Q, which, at->sample, at->head, at->order);
}

/* Writes rows of dq, dk or dv of the current head, if anybody reads them. */
static void write_rows(const place *at, int which, gradient_rows from)
{
    const att_attention_operand *operand = &at->h.operand[which];
    int out = output_of(at->call->problem, operand->input);
    if (!at->call->out[out])
        return;
    if (att_is_bf16(&at->call->problem->out[out]))
        write_rows_as(true, &from, operand->width, at->call->out[out], operand_at(at, which));
    else
        write_rows_as(false, &from, operand->width, at->call->out[out], operand_at(at, which));
}

/* Copies rows of a block as operand A and, if `columns` differs from `to`, as operand B. */
static void copy_block(gemm_elements elements, gemm_source from, int64_t count, int64_t width, float *to,
                       float *columns)
{
    gemm_copy_rows(elements, from, count, width, to, whole_vectors(width));
    if (columns != to)
        gemm_copy_columns(elements, from, count, width, columns, whole_vectors(width));
}

/* Rows of do of the current head and window. */
static gemm_source dout_at(const place *at)
{
    const head_shape *h = &at->h;
    int64_t stride = h->heads * h->value_width;
    return (gemm_source){.x = at->call->in[DO],
                         .from = at->sample * h->tokens * stride + at->head * h->value_width,
                         .stride = stride,
                         .order = at->order};
}

static void run_rows(const place *at, int64_t first)
{
    const head_shape *h = &at->h;
    const att_call *call = at->call;
    const att_desc *in = call->problem->in;
    const float *lse = (const float *)call->in[LSE] + (at->sample * h->heads + at->head) * h->tokens;
    gemm_source q = gemm_source_from(operand_at(at, HEAD_Q), first), dout = gemm_source_from(dout_at(at), first);
    bool dout_is_bf16 = att_is_bf16(&in[DO]);
    rows r = {.first = first, .count = h->queries - first < ROWS ? h->queries - first : ROWS};
    copy_block(h->copied[HEAD_Q], q, r.count, h->width, at->w.q, at->w.q_columns);
    copy_block(gemm_elements_of(dout_is_bf16, h->elements == GEMM_PAIRS), dout, r.count, h->value_width, at->w.dout,
               at->w.dout_columns);
    for (int64_t i = 0; i < r.count; i++) {
        r.lse[i] = lse[at->order ? at->order[first + i] : first + i];
        r.do_o[i] =
            dot(call->in[DO], dout_is_bf16, call->in[O], att_is_bf16(&in[O]), gemm_row_at(&dout, i), h->value_width);
    }
    run_piece(at, &r);
}

static void pack_keys(const place *at)
{
    const head_shape *h = &at->h;
    gemm_source k = gemm_source_from(operand_at(at, HEAD_K), at->key);
    gemm_pack_transposed(h->copied[HEAD_K], k, at->keys, h->width, at->w.key_panels);
    gemm_copy_columns(h->copied[HEAD_K], k, at->keys, h->width, at->w.keys, h->padded);
}

static void pack_values(const place *at)
{
    const head_shape *h = &at->h;
    gemm_source v = gemm_source_from(operand_at(at, HEAD_V), at->key);
    gemm_pack_transposed(h->copied[HEAD_V], v, at->keys, h->value_width, at->w.value_panels);
}

/* Whether the next head of the unit, which ends before head `end`, shares the current head's keys or values. */
static bool next_shares(const place *at, int which, int64_t end)
{
    return at->head + 1 < end && head_used(&at->h, which, at->head + 1) == head_used(&at->h, which, at->head);
}

static void run_tile(place *at, int64_t begin, int64_t end)
{
    const head_shape *h = &at->h;
    at->adds_k = at->adds_v = false;
    for (at->head = begin; at->head < end; at->head++) {
        if (!at->adds_k)
            pack_keys(at);
        if (!at->adds_v)
            pack_values(at);
        for (int64_t first = 0; first < h->queries; first += ROWS)
            run_rows(at, first);
        at->adds_k = next_shares(at, HEAD_K, end);
        if (!at->adds_k)
            write_rows(at, HEAD_K, (gradient_rows){at->w.dk, at->key, at->keys, h->padded});
        at->adds_v = next_shares(at, HEAD_V, end);
        if (!at->adds_v)
            write_rows(at, HEAD_V, (gradient_rows){at->w.dv, at->key, at->keys, h->value_padded});
    }
}

/* Writes the gradient of rows, or of columns, of the current head, if anybody reads it. offset: in axes_of(). */
static void write_axis(const place *at, int which, int64_t offset, int64_t length)
{
    const att_problem *problem = at->call->problem;
    int out = output_of(problem, which);
    if (!at->call->out[out])
        return;
    for (int64_t query = 0; query < at->h.queries; query++) {
        int64_t to = ((at->sample * at->h.queries + query) * at->h.heads + at->head) * length;
        for (int64_t i = 0; i < length; i += VW) {
            vf x = v_get_until(axes_of(at, query) + offset, i, length, false);
            v_put_until(at->call->out[out], to + i, to + length, x, att_is_bf16(&problem->out[out]));
        }
    }
}

/* Writes the norms of ds of the current head and window, if anybody reads them. */
static void write_norms(const place *at)
{
    const head_shape *h = &at->h;
    const att_problem *problem = at->call->problem;
    int out = output_of(problem, ATT_ATTENTION_INPUTS);
    int64_t row = (at->sample * h->heads + at->head) * h->tokens;
    for (int64_t i = 0; at->has_norms && i < h->queries; i++)
        att_float_put(at->call->out[out], row + (at->order ? at->order[i] : i), (float)sqrt(squares_of(at)[i]),
                      att_is_bf16(&problem->out[out]));
}

static void run_window(place *at, int64_t begin, int64_t end)
{
    const head_shape *h = &at->h;
    const attention_terms *t = &at->terms;
    int64_t axes = t->height + t->width;
    at->order = window_order(t->windows, at->window);
    if (t->rows)
        memset(at->w.axes, 0, (size_t)((end - begin) * h->queries * axes) * sizeof(float));
    memset(at->w.squares, 0, (size_t)((end - begin) * h->queries) * sizeof(double));
    for (at->key = 0; at->key < h->keys; at->key += h->tile) {
        at->keys = h->keys - at->key < h->tile ? h->keys - at->key : h->tile;
        run_tile(at, begin, end);
    }
    for (at->head = begin; at->head < end; at->head++) {
        write_rows(at, HEAD_Q, (gradient_rows){dq_of(at), 0, h->queries, h->padded});
        write_norms(at);
        if (t->rows) {
            write_axis(at, ATT_ATTENTION_ROWS, 0, t->height);
            write_axis(at, ATT_ATTENTION_COLUMNS, t->height, t->width);
        }
    }
}

/* Writes the unit's columns of the sample's gradient of `relative`, if anybody reads it. */
static void write_relative(const place *at, int64_t begin, int64_t end)
{
    const attention_terms *t = &at->terms;
    const att_problem *problem = at->call->problem;
    int out = output_of(problem, ATT_ATTENTION_RELATIVE);
    int64_t shifts = problem->in[Q + ATT_ATTENTION_RELATIVE].shape.dims[0];
    for (int64_t head = begin; head < end && at->call->out[out]; head++) {
        attention_terms_unpack(t, at->w.relative + (head - begin) * t->packed, at->w.column);
        for (int64_t i = 0; i < shifts; i++)
            att_float_put(at->call->out[out], (at->sample * shifts + i) * t->heads + head, at->w.column[i],
                          att_is_bf16(&problem->out[out]));
    }
}

static void run_unit(place *at, int64_t begin, int64_t end)
{
    if (at->terms.relative)
        memset(at->w.relative, 0, (size_t)((end - begin) * at->terms.packed) * sizeof(float));
    for (at->window = 0; at->window < at->h.windows; at->window++)
        run_window(at, begin, end);
    if (at->terms.relative)
        write_relative(at, begin, end);
}

/* Parts share the units of all samples. */
static att_status attention_grad_run(const att_call *call)
{
    place at = {.call = call,
                .h = shape_of(call->problem),
                .terms = attention_terms_at(call, Q, call->state),
                .drop = map_drop_of(call)};
    at.has_norms = call->out[output_of(call->problem, ATT_ATTENTION_INPUTS)] != NULL;
    int64_t units = units_of(&at.h), heads = at.h.heads / units;
    workspace_divide(call->problem, &at.h, call->scratch, &at.w);
    att_range part = att_part_of(call, call->problem->group * units, 1);
    for (int64_t i = part.begin; i < part.end; i++) {
        at.sample = i / units;
        run_unit(&at, i % units * heads, (i % units + 1) * heads);
    }
    return ATT_OK;
}

static att_status attention_grad_prepare(const att_problem *problem, att_prepared *prepared)
{
    head_shape h = shape_of(problem);
    workspace counted;
    prepared->scratch_bytes = (size_t)workspace_divide(problem, &h, NULL, &counted) * sizeof(float);
    attention_terms_prepare(problem, Q, prepared);
    if (!ATT_ATTRS(problem, attention)->window_h)
        return ATT_OK;
    prepared->state = window_tokens_create(problem->context, problem->attrs);
    return prepared->state ? ATT_OK : ATT_ERR_MEMORY;
}

static att_status attention_grad_pack(const att_problem *problem, void *state, const void *const *in, void *packed)
{
    (void)state;
    attention_terms_pack(problem, Q, in, packed);
    return ATT_OK;
}

ATT_SIMD_KERNEL(attention_grad, .bf16_in = 1u << DO | 1u << O | 7u << Q, .bf16_out = 7,
                .prepare = attention_grad_prepare, .pack = attention_grad_pack, .run = attention_grad_run,
                .release = att_free);
