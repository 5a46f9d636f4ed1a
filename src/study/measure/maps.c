#include <stdio.h>

#include "engine/ops/attention.h"
#include "study/measure/instrument.h"

att_status att_maps_request(att_requests *requests, att_map_statistic_kind kind, double parameter)
{
    att_graph *graph = att_requests_graph(requests);
    bool found = false;
    for (int i = -1; (i = att_requests_node(requests, "attention", i)) >= 0; found = true) {
        const att_node node = graph->nodes.items[i];
        char name[320];
        snprintf(name, sizeof name, "%s.map_statistic.%d.%.17g", node.scope, (int)kind, parameter);
        att_requests_value(requests, name, att_attention_map_statistic(graph, &node, (int)kind, parameter),
                           (double)att_attention_keys(graph, &node));
    }
    return found ? ATT_OK : att_requests_found_no_attention(requests, "attention");
}

void att_maps_add_series(att_requests *requests, const char *statistic, const char *reading)
{
    const att_graph *graph = att_requests_graph(requests);
    for (int i = -1; (i = att_requests_node(requests, "attention", i)) >= 0;)
        att_requests_heads(requests, &graph->nodes.items[i], statistic, reading);
}

double *att_maps_observe(const att_observed *observed, int first, int count, double *values)
{
    for (int i = first; i < first + count; i++) {
        double sum = 0;
        for (int64_t head = 0; head < observed->lengths[i]; head++)
            sum += *values++ = (double)observed->rows[i][head];
        *values++ = sum / (double)observed->lengths[i];
    }
    return values;
}
