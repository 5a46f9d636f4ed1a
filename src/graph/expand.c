#include "core/error.h"
#include "graph/reorder.h"

static bool has_expansions(const att_graph *graph)
{
    for (int i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.items[i].op->in_training)
            return true;
    return false;
}

static void replace_inputs(att_node *node, const att_value *stands_for)
{
    for (int j = 0; j < node->in_count; j++)
        if (node->in[j] != ATT_NONE)
            node->in[j] = stands_for[node->in[j]];
}

/* Nodes with an expansion have one output: nothing stands for a second. */
static void expand(att_graph *graph, att_order *order, att_value *stands_for)
{
    int count = graph->nodes.count;
    for (int i = 0; i < count && graph->status == ATT_OK; i++) {
        att_node node = graph->nodes.items[i];
        replace_inputs(&node, stands_for);
        graph->scope = node.scope;
        att_value instead = node.op->in_training ? node.op->in_training(graph, &node) : ATT_NONE;
        att_order_take(order, count);
        if (instead == ATT_NONE)
            att_order_append(order, node);
        else
            stands_for[node.out[0]] = instead;
    }
    for (int i = 0; i < graph->outputs.count; i++)
        graph->outputs.items[i].value = stands_for[graph->outputs.items[i].value];
}

att_status att_graph_expand(att_graph *graph)
{
    if (!has_expansions(graph))
        return ATT_OK;
    size_t bytes = (size_t)graph->values.count * sizeof(att_value);
    att_value *stands_for = att_allocate(graph->context, bytes);
    if (!stands_for)
        return att_fail_memory(graph->context, bytes, "a plan");
    for (att_value value = 0; value < graph->values.count; value++)
        stands_for[value] = value;
    att_order order = {.graph = graph};
    expand(graph, &order, stands_for);
    att_free(graph->context, stands_for);
    return att_order_finish(&order);
}
