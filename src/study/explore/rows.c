/* Rows of attention maps, from the queries, keys and terms that a run has kept. The scores are those of the reference
 * kernel (kernels/ref/attention.c), computed in f64 except for products, which are f32 in parts of 16. */
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "study/explore/explorer.h"

att_row_options att_row_options_defaults(void)
{
    return (att_row_options){.content = true, .positions = true};
}

/* A query of a layer. Queries and keys are counted in the window; without windows all tokens are window 0. */
typedef struct query {
    const att_explored_layer *layer;
    const bool *hidden;                       /* [N]: tokens that are no keys; NULL: none */
    int64_t token, window, own, keys, region; /* token: its index in the sample; own: its number in the window */
} query;

static att_attention_token key_at(const query *q, int64_t j)
{
    return att_attention_token_at(&q->layer->attrs, q->window, j);
}

/* Finds the window of the token and its number there. */
static void find_place(query *q)
{
    const att_attention_attrs *attrs = &q->layer->attrs;
    if (!attrs->window_h) {
        q->own = q->token;
        return;
    }
    int64_t y = (q->token / attrs->grid_w - attrs->shift_h + attrs->grid_h) % attrs->grid_h;
    int64_t x = (q->token % attrs->grid_w - attrs->shift_w + attrs->grid_w) % attrs->grid_w;
    q->window = y / attrs->window_h * (attrs->grid_w / attrs->window_w) + x / attrs->window_w;
    q->own = y % attrs->window_h * attrs->window_w + x % attrs->window_w;
}

static query query_of(const att_explorer *explorer, int layer, int64_t token)
{
    query q = {.layer = &explorer->layers[layer], .token = token, .hidden = explorer->hidden};
    q.keys = q.layer->tokens / att_attention_windows(&q.layer->attrs);
    find_place(&q);
    q.region = key_at(&q, q.own).region;
    return q;
}

/* What the network adds to all scores of a key. */
static double term_of_key(const query *q, int64_t key)
{
    return q->layer->kept[ATT_KEPT_KEYS] ? log((double)q->layer->kept[ATT_KEPT_KEYS][key]) : 0;
}

static bool sees(const query *q, int64_t j, att_attention_token key)
{
    bool hidden = (q->hidden && q->hidden[key.index]) || isinf(term_of_key(q, key.index));
    return !hidden && key.region == q->region && !(q->layer->attrs.causal && j > q->own);
}

/* Partial sums, so that the compiler can use vectors and long sums stay accurate. */
double att_explorer_dot(const float *a, const float *b, int64_t count)
{
    enum { LANES = 16 };
    float lane[LANES] = {0};
    double sum = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += a[i + l] * b[i + l];
    for (int l = 0; l < LANES; l++)
        sum += (double)lane[l];
    for (; i < count; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static double content(const query *q, int head, int64_t key)
{
    const att_explored_layer *layer = q->layer;
    const att_attention_attrs *attrs = &layer->attrs;
    int64_t key_head = head / (attrs->heads / attrs->key_heads);
    const float *of_query = layer->kept[ATT_KEPT_Q] + (q->token * attrs->heads + head) * layer->width;
    const float *of_key = layer->kept[ATT_KEPT_K] + (key * attrs->key_heads + key_head) * layer->width;
    return attrs->scale * att_explorer_dot(of_query, of_key, layer->width);
}

/* The number of the query for row or column `at` of the keys. */
static double on_axis(const query *q, att_kept axis, int head, int64_t count, int64_t at)
{
    return (double)q->layer->kept[axis][(q->token * q->layer->attrs.heads + head) * count + at];
}

static double position(const query *q, int head, int64_t j)
{
    const att_explored_layer *layer = q->layer;
    const att_attention_attrs *attrs = &layer->attrs;
    double sum = 0;
    int64_t key = j - attrs->prefix;
    int64_t shift =
        layer->kept[ATT_KEPT_RELATIVE] ? att_attention_shift_of(attrs, layer->relative_rows, q->own, j) : -1;
    if (shift >= 0)
        sum += (double)layer->kept[ATT_KEPT_RELATIVE][shift * attrs->heads + head];
    if (layer->kept[ATT_KEPT_ROWS] && key >= 0)
        sum += on_axis(q, ATT_KEPT_ROWS, head, attrs->grid_h, key / attrs->grid_w) +
               on_axis(q, ATT_KEPT_COLUMNS, head, attrs->grid_w, key % attrs->grid_w);
    return sum;
}

static double score(const query *q, const att_row_options *options, int head, int64_t j, int64_t key)
{
    double sum = term_of_key(q, key);
    if (q->layer->is_even[head])
        return sum;
    if (options->content && q->layer->kept[ATT_KEPT_Q])
        sum += content(q, head, key);
    return options->positions ? sum + position(q, head, j) : sum;
}

/* Replaces the scores of the keys that the query sees by their softmax; the others stay NaN. */
static void normalise(double *row, int64_t count)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < count; j++)
        largest = row[j] > largest ? row[j] : largest;
    for (int64_t j = 0; j < count; j++) {
        row[j] = exp(row[j] - largest);
        sum += isnan(row[j]) ? 0 : row[j];
    }
    for (int64_t j = 0; j < count; j++)
        row[j] /= sum;
}

/* Writes one head's row for all keys of the query's window; NaN for keys that the query does not see. */
static void find_row(const query *q, const att_row_options *options, int head, double *row)
{
    for (int64_t j = 0; j < q->keys; j++) {
        att_attention_token key = key_at(q, j);
        row[j] = sees(q, j, key) ? score(q, options, head, j, key.index) : NAN;
    }
    if (!options->scores)
        normalise(row, q->keys);
}

void att_explorer_head_row(const att_explorer *explorer, int layer, int64_t token, int head, double *row)
{
    const att_row_options options = att_row_options_defaults();
    const query q = query_of(explorer, layer, token);
    find_row(&q, &options, head, row);
}

static att_status check(const att_explorer *explorer, int layer, int query_token)
{
    if (layer < 0 || layer >= explorer->layer_count)
        return att_fail(explorer->context, ATT_ERR_ARGUMENT,
                        "attention layer %d does not exist: the network has %d, from 0", layer, explorer->layer_count);
    const int64_t queries = explorer->layers[layer].queries;
    if (query_token < 0 || query_token >= queries)
        return att_fail(explorer->context, ATT_ERR_ARGUMENT, "query %d of %s does not exist: it has %lld, from 0",
                        query_token, explorer->layers[layer].scope, (long long)queries);
    if (!explorer->has_run)
        return att_fail(explorer->context, ATT_ERR_ARGUMENT, "no image has been run yet");
    return ATT_OK;
}

/* A row of one head. To be freed by the caller; NULL if memory is exhausted, with a message. */
static double *allocate_row(const att_explorer *explorer, int layer)
{
    size_t bytes = (size_t)explorer->layers[layer].tokens * sizeof(double);
    double *row = att_allocate(explorer->context, bytes);
    if (!row)
        att_fail_memory(explorer->context, bytes, "a row of an attention map");
    return row;
}

att_status att_explorer_row(const att_explorer *explorer, int layer, int query_token, const att_row_options *options,
                            float *rows)
{
    const att_row_options defaults = att_row_options_defaults();
    ATT_TRY(check(explorer, layer, query_token));
    const query q = query_of(explorer, layer, query_token);
    const int64_t tokens = q.layer->tokens;
    double *row = allocate_row(explorer, layer);
    if (!row)
        return ATT_ERR_MEMORY;
    for (int64_t i = 0; i < q.layer->attrs.heads * tokens; i++)
        rows[i] = NAN;
    for (int head = 0; head < q.layer->attrs.heads; head++) {
        find_row(&q, options ? options : &defaults, head, row);
        for (int64_t j = 0; j < q.keys; j++)
            rows[head * tokens + key_at(&q, j).index] = (float)row[j];
    }
    att_free(explorer->context, row);
    return ATT_OK;
}

/* Adds the rows of all heads of a query, times `weight`. row: scratch. */
static void add_rows(const query *q, double weight, double *row, double *rows)
{
    const att_row_options options = att_row_options_defaults();
    for (int head = 0; head < q->layer->attrs.heads; head++) {
        find_row(q, &options, head, row);
        for (int64_t j = 0; j < q->keys; j++)
            if (!isnan(row[j]))
                rows[head * q->layer->tokens + key_at(q, j).index] += weight * row[j];
    }
}

att_status att_explorer_sum(const att_explorer *explorer, int layer, const double *weights, double *rows)
{
    ATT_TRY(check(explorer, layer, 0));
    const att_explored_layer *explored = &explorer->layers[layer];
    double *row = allocate_row(explorer, layer);
    if (!row)
        return ATT_ERR_MEMORY;
    att_status status = ATT_OK;
    memset(rows, 0, (size_t)(explored->attrs.heads * explored->tokens) * sizeof *rows);
    for (int64_t i = 0; i < explored->queries && status == ATT_OK; i++) {
        const query q = query_of(explorer, layer, i);
        if (weights[i] != 0)
            add_rows(&q, weights[i], row, rows);
        if (att_stop_asked(explorer->context))
            status = att_fail(explorer->context, ATT_ERR_STOPPED, "%s: stopped on request", explored->scope);
    }
    att_free(explorer->context, row);
    return status;
}

/* --- rollout ------------------------------------------------------------------------------------------------------ */

att_status att_explorer_check_tokens(const att_explorer *explorer, int layer, const char *what)
{
    const att_explored_layer *last = &explorer->layers[layer];
    for (int l = 0; l <= layer; l++) {
        const att_explored_layer *below = &explorer->layers[l];
        if (below->attrs.window_h || below->queries != last->tokens || below->tokens != last->tokens)
            return att_fail(explorer->context, ATT_ERR_UNSUPPORTED,
                            "%s follows all tokens through all layers, but %s has %s", what, below->scope,
                            below->attrs.window_h ? "windows" : "other tokens");
    }
    return ATT_OK;
}

/* way = way / 2 + way A / 2, A the mean over heads. rows: scratch [H, N] */
static att_status follow(const att_explorer *explorer, int layer, double *rows, double *way)
{
    const att_explored_layer *explored = &explorer->layers[layer];
    ATT_TRY(att_explorer_sum(explorer, layer, way, rows));
    for (int64_t j = 0; j < explored->tokens; j++) {
        double mean = 0;
        for (int head = 0; head < explored->attrs.heads; head++)
            mean += rows[head * explored->tokens + j] / explored->attrs.heads;
        way[j] = way[j] / 2 + mean / 2;
    }
    return ATT_OK;
}

static int64_t most_elements(const att_explorer *explorer, int layer)
{
    int64_t most = 0;
    for (int l = 0; l <= layer; l++) {
        int64_t elements = explorer->layers[l].attrs.heads * explorer->layers[l].tokens;
        most = elements > most ? elements : most;
    }
    return most;
}

att_status att_explorer_follow(const att_explorer *explorer, int layer, double *way)
{
    const size_t bytes = (size_t)most_elements(explorer, layer) * sizeof(double);
    double *rows = att_allocate(explorer->context, bytes);
    att_status status = rows ? ATT_OK : att_fail_memory(explorer->context, bytes, "the rows of an attention map");
    for (int l = layer; l >= 0 && status == ATT_OK; l--)
        status = follow(explorer, l, rows, way);
    att_free(explorer->context, rows);
    return status;
}

att_status att_explorer_rollout(const att_explorer *explorer, int layer, int query_token, double *row)
{
    ATT_TRY(check(explorer, layer, query_token));
    ATT_TRY(att_explorer_check_tokens(explorer, layer, "rollout"));
    memset(row, 0, (size_t)explorer->layers[layer].tokens * sizeof *row);
    row[query_token] = 1;
    return att_explorer_follow(explorer, layer, row);
}
