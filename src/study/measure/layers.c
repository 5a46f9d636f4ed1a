#include "study/measure/layers.h"

#include <math.h>
#include <stdio.h>

#include "engine/ops/attention.h"

enum { FROM, FROM_MEAN = 1 }; /* the option, and its choice */
static const char *const from_choices[] = {"class", "mean", NULL};
const att_detail att_layers_options[ATT_LAYERS_OPTIONS] = {
    {.name = "from",
     .meaning = "begin at the class token, or at the mean over tokens",
     .high = FROM_MEAN,
     .choices = from_choices}};

enum { ENTROPY, LARGEST, CENTRE, PREFIX, STATISTICS };
const att_statistic_info att_layers_statistics[] = {
    {"entropy", "Entropy over the grid", "nats"},
    {"largest", "Largest share", "share"},
    {"centre", "Share of the centre", "share"},
    {"prefix", "Share of class token and registers", "share"},
    {0},
};

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* The first node's tokens. All others have the same. */
typedef struct tokens {
    int64_t count, prefix, grid_h, grid_w;
} tokens;

/* Fails unless the map of the node is N x N as that of the first. */
static att_status check_shape(const att_requests *requests, const att_node *node, att_shape map, tokens *t)
{
    if (t->count == 0) {
        const att_attention_attrs *attrs = ATT_ATTRS(node, attention);
        *t = (tokens){map.dims[1], attrs->prefix, attrs->grid_h, attrs->grid_w};
    }
    if (map.dims[1] == t->count && map.dims[2] == t->count)
        return ATT_OK;
    return att_requests_fail(
        requests,
        "it follows attention from layer to layer, so every query must attend to the same %lld tokens in all layers; "
        "%s has %lld queries, which attend to %lld keys each (--nodes chooses layers)",
        (long long)t->count, node->scope, (long long)map.dims[1], (long long)map.dims[2]);
}

/* The mean over the heads of a node's map [H, N, N], as a vector [N N]. */
static att_value mean_map(att_graph *graph, att_value map)
{
    att_shape shape = att_value_shape(graph, map);
    return att_token_mean(graph, att_reshape(graph, map, att_shape_of(shape.dims[0], shape.dims[1] * shape.dims[2])),
                          0);
}

/* The maps of all layers, [L, N, N]. */
static att_status join_maps(const att_requests *requests, tokens *t, att_value *joined)
{
    att_graph *graph = att_requests_graph(requests);
    int64_t layers = 0;
    *joined = ATT_NONE;
    for (int i = -1; (i = att_requests_node(requests, "attention", i)) >= 0; layers++) {
        const att_node node = graph->nodes.items[i];
        att_value map = att_attention_map(graph, &node);
        ATT_TRY(graph->status);
        ATT_TRY(check_shape(requests, &node, att_value_shape(graph, map), t));
        if (t->count * t->count > INT32_MAX / (layers + 1))
            return att_requests_fail(requests, "the maps of %lld layers with %lld tokens have more than %d weights",
                                     (long long)(layers + 1), (long long)t->count, INT32_MAX);
        att_value mean = mean_map(graph, map);
        *joined = layers == 0 ? mean : att_concat(graph, *joined, mean);
    }
    if (layers == 0)
        return att_requests_found_no_attention(requests, "attention");
    *joined = att_reshape(graph, *joined, att_shape_of(layers, t->count, t->count));
    return graph->status;
}

att_status att_layers_request(att_requests *requests, const char *name, int64_t most_tokens,
                              att_value (*follow)(att_graph *graph, att_value maps, bool from_mean))
{
    att_graph *graph = att_requests_graph(requests);
    att_value maps;
    tokens t = {0};
    ATT_TRY(join_maps(requests, &t, &maps));
    if (t.count > most_tokens)
        return att_requests_fail(
            requests, "its time grows with the third power of the tokens, and %lld tokens are more than %lld",
            (long long)t.count, (long long)most_tokens);
    const bool from_mean = t.prefix == 0 || att_requests_option(requests, FROM) == FROM_MEAN;
    char row[64];
    snprintf(row, sizeof row, "%s.from.%s", name, from_mean ? "mean" : "class");
    att_graph_scope(graph, row);
    att_requests_value(requests, row, follow(graph, maps, from_mean), (double)t.prefix);
    att_requests_row(requests, row, (double)t.grid_h); /* once more, because a row has one constant */
    att_requests_row(requests, row, (double)t.grid_w);
    for (int s = 0; s < STATISTICS; s++)
        att_requests_series(requests, "", -1, att_layers_statistics[s].name);
    return ATT_OK;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* The part of place i of `count` that lies in the middle half of an axis. */
static double in_middle(int64_t i, int64_t count)
{
    const double size = (double)count;
    return fmax(0, fmin((double)i + 1, 0.75 * size) - fmax((double)i, 0.25 * size));
}

void att_layers_observe(const att_observed *observed, double *values)
{
    const float *row = observed->rows[0];
    const int64_t count = observed->lengths[0], prefix = (int64_t)observed->constants[0];
    const int64_t height = (int64_t)observed->constants[1], width = (int64_t)observed->constants[2];
    double all = 0, grid = 0, entropy = 0, largest = 0, centre = 0;
    for (int64_t i = 0; i < count; i++) {
        all += (double)row[i];
        grid += i < prefix ? 0 : (double)row[i];
    }
    for (int64_t i = prefix; i < count; i++) {
        const double share = (double)row[i] / grid;
        entropy -= share > 0 ? share * log(share) : 0;
        largest = fmax(largest, share);
        if (height > 0)
            centre += share * in_middle((i - prefix) / width, height) * in_middle((i - prefix) % width, width);
    }
    const bool defined = isfinite(all) && grid > 0;
    values[ENTROPY] = defined ? entropy : NAN;
    values[LARGEST] = defined ? largest : NAN;
    values[CENTRE] = defined && height > 0 ? centre : NAN;
    values[PREFIX] = 1 - grid / all;
}
