#include <math.h>
#include <stdio.h>

#include "base/core/quantile.h"
#include "engine/ops/attention.h"
#include "study/measure/list.h"

enum { LOW, HIGH, RATIO, MEAN, STATISTICS };
static const att_statistic_info statistics[] = {
    {"quantile 0.1", "10 % quantile", NULL},
    {"quantile 0.9", "90 % quantile", NULL},
    {"ratio", "10 % quantile / 90 % quantile", "1"},
    {"mean", "Mean", NULL},
    {0},
};

/* The scale of a context broadcast; ATT_NONE if it has none. */
static att_value scale_of(const att_node *node)
{
    enum { SCALE = 1 };
    return node->in[SCALE];
}

static int next_node(const att_requests *requests, int after)
{
    const att_graph *graph = att_requests_graph(requests);
    do
        after = att_requests_node(requests, "context_broadcast", after);
    while (after >= 0 && scale_of(&graph->nodes.items[after]) == ATT_NONE);
    return after;
}

static att_status request(att_requests *requests)
{
    att_graph *graph = att_requests_graph(requests);
    bool found = false;
    for (int i = -1; (i = next_node(requests, i)) >= 0; found = true) {
        const att_node node = graph->nodes.items[i];
        char name[256];
        snprintf(name, sizeof name, "%s.scale", node.scope);
        att_graph_scope(graph, node.scope);
        att_requests_value(requests, name, att_shared_for_samples(graph, scale_of(&node), node.in[0]), 1);
    }
    for (int s = 0; s < STATISTICS; s++)
        for (int i = -1; (i = next_node(requests, i)) >= 0;)
            att_requests_series(requests, graph->nodes.items[i].scope, -1, statistics[s].name);
    return found ? ATT_OK
                 : att_requests_found_nothing(requests, "context broadcasting with a learned scale (module cb_s)");
}

static void observe(const att_observed *observed, double *values)
{
    for (int i = 0; i < observed->count; i++) {
        const float *row = observed->rows[i];
        const int64_t count = observed->lengths[i];
        double *of_row[STATISTICS], mean = 0;
        for (int s = 0; s < STATISTICS; s++)
            of_row[s] = &values[s * observed->count + i];
        for (int64_t c = 0; c < count; c++)
            mean += fabs((double)row[c]) / (double)count;
        *of_row[MEAN] = mean;
        *of_row[LOW] = isfinite(mean) ? att_quantile_of(row, count, 0.1, true) : NAN;
        *of_row[HIGH] = isfinite(mean) ? att_quantile_of(row, count, 0.9, true) : NAN;
        *of_row[RATIO] = *of_row[HIGH] > 0 ? *of_row[LOW] / *of_row[HIGH] : NAN;
    }
}

static const att_statistic_scale scales[] = {
    {NULL, "0 at initialisation with zeros; 1 for every channel of CB, which has no scale to learn", "the formula"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_cbs_scale = {
    .info = {.name = "cbs_scale",
             .view = "uniform",
             .title = "Scale of context broadcasting",
             .summary = "size and spread of the learned scale of CB_S, x_i + scale (.) mean_j x_j, over channels",
             .unit = "1",
             .formula =
                 "q = quantiles 0.1 and 0.9 of |Lambda_c| over the channels c, q_0.1 / q_0.9, and mean_c |Lambda_c|",
             .source = "Hyeon-Woo et al., ICCV 2023",
             .scales = scales,
             .reading = "from the weights alone, so it is the same for every image; between two channels quantiles are "
                        "interpolated linearly; the ratio is undefined if q_0.9 is 0, as at initialisation with 0; CB "
                        "has no scale to learn",
             .statistics = statistics,
             .by_block = true},
    .request = request,
    .observe = observe,
};
