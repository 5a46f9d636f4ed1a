/* passes/seconds.h - estimates of time, from which att_graph_rematerialize() chooses.
 *
 * The estimates use fixed figures and never the machine at hand: a plan is the same wherever it is compiled.
 */
#ifndef ATT_PASSES_SECONDS_H
#define ATT_PASSES_SECONDS_H

#include "graph/graph.h"

/* Seconds that one thread takes to run a node for one sample, its operands in a cache. */
double att_node_seconds(const att_graph *graph, const att_node *node);
/* Seconds that one thread takes to read or to write so many bytes of main memory while all threads do. */
double att_memory_seconds(double bytes);

#endif
