/* passes/reorder.h - for passes that give a graph's nodes a new order, or put new ones between them. */
#ifndef ATT_PASSES_REORDER_H
#define ATT_PASSES_REORDER_H

#include "graph/graph.h"

/* The new order. Nodes that a pass emits stand at the graph's end until the order takes them over; meanwhile the makers
 * of values (att_value_info.node) are those of the old order. */
typedef struct att_order {
    att_graph *graph;
    ATT_LIST(att_node) nodes;
} att_order;

void att_order_append(att_order *order, att_node node);
/* Appends what was emitted since the graph had `count` nodes, which it has again. */
void att_order_take(att_order *order, int count);
/* The graph's nodes become those of the order, unless the graph has failed; the order is freed either way. */
att_status att_order_finish(att_order *order);

#endif
