/* ops/drop.h - attributes of dropout, channel_dropout and drop_path. */
#ifndef ATT_OPS_DROP_H
#define ATT_OPS_DROP_H

#include <stdint.h>

struct att_graph;

/* Attributes of dropout, channel_dropout and drop_path. stream: key of the node's random draws; a gradient node has the
 * stream of its forward node. */
typedef struct att_drop_attrs {
    double rate;
    uint64_t stream;
} att_drop_attrs;

/* The stream of the next node with draws in the current scope. It depends only on that scope and on the number of
 * earlier ones in it, so that additions elsewhere in a network do not change the draws. */
uint64_t att_drop_next_stream(const struct att_graph *graph);

#endif
