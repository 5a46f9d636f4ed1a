/* passes/seconds.h - estimates of run time, for att_graph_rematerialize().
 *
 * The estimates use constants, not measurements, so that a graph compiles to the same plan on every machine.
 */
#ifndef ATT_PASSES_SECONDS_H
#define ATT_PASSES_SECONDS_H

#include "engine/graph/graph.h"

/* Seconds that one thread takes to run a node for one sample, with operands in cache. */
double att_node_seconds(const att_graph *graph, const att_node *node);
/* Seconds that one thread takes to read or write `bytes` of main memory while all threads do so. */
double att_memory_seconds(double bytes);

#endif
