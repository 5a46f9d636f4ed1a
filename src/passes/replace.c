#include "core/error.h"
#include "passes/passes.h"
#include "passes/pattern.h"
#include "passes/reorder.h"

/* How nodes are replaced: replace() emits the replacement of one node, with the contract of att_pattern.apply. */
typedef struct replacing {
    bool (*replace)(const struct replacing *how, att_graph *graph, const att_node *node, att_value *instead);
    const att_pattern *const *patterns;
    att_pattern_stage stage;
} replacing;

static void replace_inputs(att_node *node, const att_value *stands_for)
{
    for (int j = 0; j < node->in_count; j++)
        if (node->in[j] != ATT_NONE)
            node->in[j] = stands_for[node->in[j]];
}

static void stand_for(att_graph *graph, att_value *stands_for, att_value old, att_value new)
{
    stands_for[old] = new;
    if (graph->status == ATT_OK && graph->values.items[old].requested)
        graph->values.items[new].requested = true;
}

/* Old and emitted nodes stay in the graph until the order is finished, so that patterns find the makers of both. */
static void replace(att_graph *graph, const replacing *how, att_order *order, att_value *stands_for)
{
    int count = graph->nodes.count, taken = count;
    for (int i = 0; i < count && graph->status == ATT_OK; i++) {
        replace_inputs(&graph->nodes.items[i], stands_for);
        att_node node = graph->nodes.items[i]; /* a copy, because emitting may move nodes */
        att_value *instead = att_graph_values(graph, node.out_count);
        graph->scope = node.scope;
        bool replaced = instead && node.stage == ATT_BODY && how->replace(how, graph, &node, instead);
        for (; taken < graph->nodes.count; taken++)
            att_order_append(order, graph->nodes.items[taken]);
        if (!replaced)
            att_order_append(order, node);
        for (int j = 0; replaced && j < node.out_count; j++)
            stand_for(graph, stands_for, node.out[j], instead[j]);
    }
    for (int i = 0; i < graph->outputs.count; i++)
        graph->outputs.items[i].value = stands_for[graph->outputs.items[i].value];
}

static att_status replace_nodes(att_graph *graph, const replacing *how)
{
    size_t bytes = (size_t)graph->values.count * sizeof(att_value);
    att_value *stands_for = att_allocate(graph->context, bytes);
    if (!stands_for)
        return att_fail_memory(graph->context, bytes, "a plan");
    for (att_value value = 0; value < graph->values.count; value++)
        stands_for[value] = value;
    att_order order = {.graph = graph};
    replace(graph, how, &order, stands_for);
    att_free(graph->context, stands_for);
    return att_order_finish(&order);
}

/* Operations with a training form have one output. */
static bool in_training(const replacing *how, att_graph *graph, const att_node *node, att_value *instead)
{
    (void)how;
    instead[0] = node->op->in_training ? node->op->in_training(graph, node) : ATT_NONE;
    return instead[0] != ATT_NONE;
}

att_status att_graph_decompose(att_graph *graph)
{
    return replace_nodes(graph, &(replacing){.replace = in_training});
}

static bool by_pattern(const replacing *how, att_graph *graph, const att_node *node, att_value *instead)
{
    for (const att_pattern *const *pattern = how->patterns; *pattern; pattern++)
        if ((*pattern)->stage == how->stage && (*pattern)->apply(graph, node, instead))
            return true;
    return false;
}

att_status att_graph_apply_patterns(att_graph *graph, const att_pattern *const *patterns, att_pattern_stage stage)
{
    return replace_nodes(graph, &(replacing){.replace = by_pattern, .patterns = patterns, .stage = stage});
}
