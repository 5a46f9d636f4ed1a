#include "engine/passes/segment.h"

#include <string.h>

#include "base/core/error.h"
#include "engine/passes/reorder.h"

bool att_node_reduces(const att_graph *graph, const att_node *node)
{
    return graph->values.items[node->out[0]].desc.kind == ATT_BATCH;
}

int att_graph_segments(const att_graph *graph)
{
    int last = 0;
    for (int i = 0; i < graph->nodes.count; i++)
        last = graph->nodes.items[i].segment > last ? graph->nodes.items[i].segment : last;
    return last + 1;
}

/* The first segment in which a node can read `value`. A reduction can read batch values of its own segment. */
static int first_readable(const att_graph *graph, att_value value, bool reduces)
{
    const att_value_info *info = value == ATT_NONE ? NULL : &graph->values.items[value];
    if (!info || info->node < 0)
        return 0;
    return graph->nodes.items[info->node].segment + (info->desc.kind == ATT_BATCH && !reduces);
}

/* Derived values are available in every segment. */
void att_graph_split_segments(att_graph *graph, const bool *late)
{
    for (int i = 0; i < graph->nodes.count; i++) {
        att_node *node = &graph->nodes.items[i];
        bool reduces = att_node_reduces(graph, node);
        node->segment = late && late[i] && node->stage == ATT_BODY;
        for (int j = 0; j < node->in_count && node->stage == ATT_BODY; j++) {
            int segment = first_readable(graph, node->in[j], reduces);
            node->segment = segment > node->segment ? segment : node->segment;
        }
    }
}

/* --- order ------------------------------------------------------------------------------------------------------- */

static void append_nodes(att_order *order, att_stage stage, int segment, bool reductions, const bool *observers,
                         bool *marks)
{
    for (int i = 0; i < order->graph->nodes.count; i++) {
        const att_node *node = &order->graph->nodes.items[i];
        if (node->stage != stage || node->segment != segment || att_node_reduces(order->graph, node) != reductions)
            continue;
        marks[order->nodes.count] = observers[i];
        att_order_append(order, *node);
    }
}

att_status att_graph_sort_segments(att_graph *graph, bool *observers)
{
    int segments = att_graph_segments(graph);
    size_t count = (size_t)graph->nodes.count;
    bool *marks = att_allocate(graph->context, count);
    if (!marks && count > 0)
        return att_fail_memory(graph->context, count, "a plan");
    att_order order = {.graph = graph};
    append_nodes(&order, ATT_PROLOGUE, 0, false, observers, marks);
    for (int segment = 0; segment < segments; segment++) {
        append_nodes(&order, ATT_BODY, segment, false, observers, marks);
        append_nodes(&order, ATT_BODY, segment, true, observers, marks);
    }
    append_nodes(&order, ATT_EPILOGUE, 0, false, observers, marks);
    memcpy(observers, marks, count);
    att_free(graph->context, marks);
    return att_order_finish(&order);
}
