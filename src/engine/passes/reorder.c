#include "engine/passes/reorder.h"

void att_order_append(att_order *order, att_node node)
{
    att_graph *graph = order->graph;
    if (att_list_reserve(graph, (void *)&order->nodes.items, order->nodes.count, &order->nodes.capacity,
                         sizeof *order->nodes.items))
        order->nodes.items[order->nodes.count++] = node;
}

void att_order_move(att_order *order, int count)
{
    att_graph *graph = order->graph;
    for (int i = count; i < graph->nodes.count; i++)
        att_order_append(order, graph->nodes.items[i]);
    graph->nodes.count = count;
}

static void renumber_producers(att_graph *graph)
{
    for (int i = 0; i < graph->nodes.count; i++)
        for (int j = 0; j < graph->nodes.items[i].out_count; j++)
            graph->values.items[graph->nodes.items[i].out[j]].node = i;
}

att_status att_order_finish(att_order *order)
{
    att_graph *graph = order->graph;
    if (graph->status != ATT_OK) {
        att_free(graph->context, order->nodes.items);
        return graph->status;
    }
    att_free(graph->context, graph->nodes.items);
    graph->nodes.items = order->nodes.items;
    graph->nodes.count = order->nodes.count;
    graph->nodes.capacity = order->nodes.capacity;
    renumber_producers(graph);
    return ATT_OK;
}
