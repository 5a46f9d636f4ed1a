#include "base/core/error.h"
#include "engine/passes/passes.h"
#include "engine/passes/pattern.h"
#include "engine/passes/reorder.h"

/* How nodes are replaced: replace() emits the replacement of one node, with the contract of att_pattern.apply. */
typedef struct replacing {
    bool (*replace)(const struct replacing *how, att_graph *graph, const att_node *node, att_value *replacements);
    const att_pattern *const *patterns;
    att_pattern_stage stage;
} replacing;

static void replace_inputs(att_node *node, const att_value *replaced_by)
{
    for (int j = 0; j < node->in_count; j++)
        if (node->in[j] != ATT_NONE)
            node->in[j] = replaced_by[node->in[j]];
}

static void set_replacement(att_graph *graph, att_value *replaced_by, att_value old, att_value new)
{
    replaced_by[old] = new;
    if (graph->status == ATT_OK && graph->values.items[old].requested)
        graph->values.items[new].requested = true;
}

/* Old and emitted nodes stay in the graph until the order is finished, so that patterns find the producers of both. */
static void replace(att_graph *graph, const replacing *how, att_order *order, att_value *replaced_by)
{
    int count = graph->nodes.count, taken = count;
    for (int i = 0; i < count && graph->status == ATT_OK; i++) {
        replace_inputs(&graph->nodes.items[i], replaced_by);
        att_node node = graph->nodes.items[i]; /* a copy, because emitting may move nodes */
        att_value *replacements = att_graph_values(graph, node.out_count);
        graph->scope = node.scope;
        bool replaced = replacements && node.stage == ATT_BODY && how->replace(how, graph, &node, replacements);
        for (; taken < graph->nodes.count; taken++)
            att_order_append(order, graph->nodes.items[taken]);
        if (!replaced)
            att_order_append(order, node);
        for (int j = 0; replaced && j < node.out_count; j++)
            set_replacement(graph, replaced_by, node.out[j], replacements[j]);
    }
    for (int i = 0; i < graph->outputs.count; i++)
        graph->outputs.items[i].value = replaced_by[graph->outputs.items[i].value];
}

static att_status replace_nodes(att_graph *graph, const replacing *how)
{
    size_t bytes = (size_t)graph->values.count * sizeof(att_value);
    att_value *replaced_by = att_allocate(graph->context, bytes);
    if (!replaced_by)
        return att_fail_memory(graph->context, bytes, "a plan");
    for (att_value value = 0; value < graph->values.count; value++)
        replaced_by[value] = value;
    att_order order = {.graph = graph};
    replace(graph, how, &order, replaced_by);
    att_free(graph->context, replaced_by);
    return att_order_finish(&order);
}

static bool in_training(const replacing *how, att_graph *graph, const att_node *node, att_value *replacements)
{
    (void)how;
    const bool stays = node->frozen || !node->op->in_training;
    replacements[0] = stays ? ATT_NONE : node->op->in_training(graph, node);
    if (replacements[0] == ATT_NONE)
        return false;
    const att_node *emitted = att_graph_producer(graph, replacements[0]);
    for (int j = 1; j < node->out_count; j++)
        replacements[j] = emitted->out[j];
    return true;
}

att_status att_graph_decompose(att_graph *graph)
{
    return replace_nodes(graph, &(replacing){.replace = in_training});
}

static bool by_pattern(const replacing *how, att_graph *graph, const att_node *node, att_value *replacements)
{
    for (const att_pattern *const *pattern = how->patterns; *pattern; pattern++)
        if ((*pattern)->stage == how->stage && (*pattern)->apply(graph, node, replacements))
            return true;
    return false;
}

att_status att_graph_apply_patterns(att_graph *graph, const att_pattern *const *patterns, att_pattern_stage stage)
{
    return replace_nodes(graph, &(replacing){.replace = by_pattern, .patterns = patterns, .stage = stage});
}
