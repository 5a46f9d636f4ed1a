/* Products of attention maps of random heads, and their distance from rank 1. */
#include <stdio.h>

#include <attscope/ops.h>

#include "base/core/memory.h"
#include "base/core/quantile.h"
#include "base/core/random.h"
#include "engine/ops/attention.h"
#include "study/measure/list.h"

enum { MOST_COUNT = 256, MOST_LAYERS = 128 };
enum { COUNT, LONGEST, SEED }; /* options */
static const att_detail options[] = {
    {.name = "count", .meaning = "chains of each length", .start = 20, .low = 1, .high = MOST_COUNT, .whole = true},
    {.name = "longest",
     .meaning = "the largest length to draw",
     .start = MOST_LAYERS,
     .low = 1,
     .high = MOST_LAYERS,
     .whole = true},
    {.name = "seed", .meaning = "of the draw", .high = 1e9, .whole = true}};

enum { FORMULA, CODE, ORDERS };
static const char *const orders[] = {"formula", "code", NULL};

/* --- maps --------------------------------------------------------------------------------------------------------- */

/* The attention layers of a network, and their maps [N, N], one for each head. */
typedef struct layers {
    att_graph *graph;
    att_arena arena;
    int count;
    int heads[MOST_LAYERS];
    att_value *maps[MOST_LAYERS];
    int64_t tokens;
} layers;

/* Cuts a map [H, N, N] into heads. */
static bool cut_map(layers *l, att_value map, int heads)
{
    const int64_t tokens = l->tokens;
    att_value rows = att_reshape(l->graph, map, att_shape_of(heads * tokens, tokens));
    att_value *cut = att_arena_allocate(&l->arena, (size_t)heads * sizeof *cut);
    if (!cut)
        return false;
    for (int head = 0; head < heads; head++)
        cut[head] = att_slice_tokens(l->graph, rows, (int)(head * tokens), (int)tokens);
    l->heads[l->count] = heads;
    l->maps[l->count++] = cut;
    return true;
}

static att_status add_layer(const att_requests *requests, layers *l, int index)
{
    const att_node node = l->graph->nodes.items[index];
    att_value map = att_attention_map(l->graph, &node);
    ATT_TRY(l->graph->status);
    att_shape shape = att_value_shape(l->graph, map);
    if (l->count == 0)
        l->tokens = shape.dims[1];
    if (shape.dims[1] != l->tokens || shape.dims[2] != l->tokens)
        return att_requests_fail(requests,
                                 "maps are multiplied, so all must be %lld x %lld as the first one; that of %s has "
                                 "%lld queries and %lld keys",
                                 (long long)l->tokens, (long long)l->tokens, node.scope, (long long)shape.dims[1],
                                 (long long)shape.dims[2]);
    if (l->count == MOST_LAYERS)
        return att_requests_fail(requests, "the network has more than %d attention layers", (int)MOST_LAYERS);
    return cut_map(l, map, (int)shape.dims[0])
               ? ATT_OK
               : att_fail_memory(l->graph->context, (size_t)shape.dims[0] * sizeof(att_value), "maps of heads");
}

static att_status find_layers(const att_requests *requests, layers *l)
{
    for (int i = -1; (i = att_requests_node(requests, "attention", i)) >= 0;)
        ATT_TRY(add_layer(requests, l, i));
    return l->count > 0 ? ATT_OK : att_requests_found_nothing(requests, "attention layer");
}

/* --- chains ------------------------------------------------------------------------------------------------------- */

/* Draws `length` layers in the network's order, then a head in each. */
static void draw(const layers *l, int length, att_random *random, att_value *chain)
{
    int left = length;
    for (int layer = 0; layer < l->count; layer++)
        if (att_random_below(random, l->count - layer) < left) {
            *chain++ = l->maps[layer][att_random_below(random, l->heads[layer])];
            left--;
        }
}

/* The product of a chain, whose first map is that of the first layer. */
static att_value multiply(att_graph *graph, const att_value *chain, int length, int order)
{
    att_value product = chain[0];
    for (int i = 1; i < length; i++)
        product = order == FORMULA ? att_matmul(graph, chain[i], product, false, 1)
                                   : att_matmul(graph, product, chain[i], false, 1);
    return product;
}

/* Requests the residuals of all chains of one length, as one row for each order. */
static void request_chains(att_requests *requests, const layers *l, int length)
{
    const int count = (int)att_requests_option(requests, COUNT), seed = (int)att_requests_option(requests, SEED);
    att_random random = att_random_from(att_random_key((uint64_t)seed, att_random_hash("chains"), (uint64_t)length));
    att_value rows[ORDERS] = {ATT_NONE, ATT_NONE}, chain[MOST_LAYERS];
    att_graph_scope(l->graph, "chains");
    for (int i = 0; i < count; i++) {
        draw(l, length, &random, chain);
        for (int order = 0; order < ORDERS; order++) {
            att_value found = att_rank_one_residual(l->graph, multiply(l->graph, chain, length, order));
            rows[order] = rows[order] == ATT_NONE ? found : att_concat(l->graph, rows[order], found);
        }
    }
    for (int order = 0; order < ORDERS; order++) {
        char name[96];
        snprintf(name, sizeof name, "chains.%s.length.%d.count.%d.seed.%d", orders[order], length, count, seed);
        att_requests_value(requests, name, rows[order], order);
    }
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static const att_statistic_info statistics[] = {{"minimum", "minimum", NULL}, {"quantile 0.25", "quantile 0.25", NULL},
                                                {"median", "median", NULL},   {"quantile 0.75", "quantile 0.75", NULL},
                                                {"maximum", "maximum", NULL}, {NULL, NULL, NULL}};
static const double quantiles[] = {0, 0.25, 0.5, 0.75, 1};
enum { QUANTILES = sizeof quantiles / sizeof *quantiles };

static void add_series(att_requests *requests, int longest)
{
    char node[32];
    for (int order = 0; order < ORDERS; order++)
        for (int q = 0; q < QUANTILES; q++)
            for (int length = 1; length <= longest; length++) {
                snprintf(node, sizeof node, "length.%d", length);
                att_requests_reading(requests, node, -1, statistics[q].name, orders[order]);
            }
}

static att_status request(att_requests *requests)
{
    layers l = {.graph = att_requests_graph(requests)};
    l.arena.context = l.graph->context;
    att_status status = find_layers(requests, &l);
    if (status == ATT_OK) {
        const double most = att_requests_option(requests, LONGEST);
        const int longest = most < l.count ? (int)most : l.count;
        for (int length = 1; length <= longest; length++)
            request_chains(requests, &l, length);
        add_series(requests, longest);
        status = l.graph->status;
    }
    att_arena_free(&l.arena);
    return status;
}

/* values: that of the first series of this row; those of the next quantile follow after `lengths` values. */
static void observe_row(const float *row, int count, int lengths, double *values)
{
    double sorted[MOST_COUNT];
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += sorted[i] = (double)row[i];
    att_sort_ascending(sorted, count);
    for (int q = 0; q < QUANTILES; q++) /* a chain without a residual (NaN) leaves none of its row defined */
        values[q * lengths] = sum == sum ? att_quantile(sorted, count, quantiles[q]) : sum;
}

static void observe(const att_observed *observed, double *values)
{
    const int lengths = observed->count / ORDERS;
    for (int i = 0; i < observed->count; i++) {
        int order = (int)observed->constants[i], length = i / ORDERS;
        observe_row(observed->rows[i], (int)observed->lengths[i], lengths,
                    values + order * QUANTILES * lengths + length);
    }
}

static const att_statistic_scale scales[] = {
    {NULL,
     "0 for a product of rank 1; (1 - 1/r)^(1/2) for r equal singular values, r = N for one that only permutes tokens",
     "the formula"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_head_chains = {
    .info = {.name = "head_chains",
             .view = "rank",
             .title = "Chained heads",
             .summary = "distance from rank 1 of products of the attention maps of random heads, by their number",
             .unit = "1",
             .formula =
                 "|M - s u v'|_F / |M|_F with the largest singular value s of M and its vectors u and v; formula: M = "
                 "P_hk .. P_h1, code: M = P_h1 .. P_hk, of one head in each of k layers, P_h1 of the first",
             .source = "Dong et al., ICML 2021: the formula of paths; the other order is that of the public code",
             .scales = scales,
             .reading = "for each length k, chains are drawn: k of the network's attention layers, then a head in "
                        "each, all equally likely and independent of each other; both orders have the same chains. The "
                        "figures are minimum, quartiles and maximum over the chains of an image, and their means over "
                        "images. The matrix of rank 1 is the nearest one in the Frobenius norm, which the source does "
                        "not name. Maps have no skips, values or norms. Rounding leaves about 2e-7 in f32; --f64 shows "
                        "smaller residuals. For the network at initialisation measure it with --init-seed",
             .options = options,
             .option_count = sizeof options / sizeof *options,
             .costly = true,
             .statistics = statistics,
             .readings = orders},
    .request = request,
    .observe = observe,
};
