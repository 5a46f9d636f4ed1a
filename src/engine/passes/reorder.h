/* passes/reorder.h - helps passes that reorder a graph's nodes or insert new nodes between them. */
#ifndef ATT_PASSES_REORDER_H
#define ATT_PASSES_REORDER_H

#include "engine/graph/graph.h"

/* The new order. Emitted nodes stay at the end of the graph until att_order_move() appends them to the order. Meanwhile
 * the producers of values (att_value_info.node) are indices into the graph's nodes, not into the new order. */
typedef struct att_order {
    att_graph *graph;
    ATT_LIST(att_node) nodes;
} att_order;

void att_order_append(att_order *order, att_node node);
/* Appends the graph's nodes from index `count` on, and removes them from the graph. */
void att_order_move(att_order *order, int count);
/* Replaces the graph's nodes by those of the order, unless the graph has failed. Frees the order in either case. */
att_status att_order_finish(att_order *order);

#endif
