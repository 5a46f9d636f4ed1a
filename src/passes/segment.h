/* passes/segment.h - cuts a graph where the batch meets.
 *
 * A reduction is a node that makes a value of the whole batch (kind ATT_BATCH); what reads it can start when every
 * sample has been there. So the body is a sequence of segments: each runs on groups of samples, then come its
 * reductions. A sample value that a later segment reads is kept for the whole batch, or computed again there.
 *
 * Order of calls: att_graph_split_segments() once, when nodes are fused; then att_graph_rematerialize(), after
 * autocasting, which adds casts that later segments read; att_graph_sort_segments() last. Observers are explained at
 * att_graph_settle_probes() (passes/passes.h).
 */
#ifndef ATT_PASSES_SEGMENT_H
#define ATT_PASSES_SEGMENT_H

#include "graph/graph.h"

/* Whether the node reduces the batch. */
bool att_node_reduces(const att_graph *graph, const att_node *node);

/* Gives each node the first segment it can run in. */
void att_graph_split_segments(att_graph *graph);
int att_graph_segments(const att_graph *graph);

/* passes/rematerialize.c: chooses which values are kept (passes/keep.h), and puts copies of the makers of the others
 * into the later segments that read them. most_bytes: as att_plan_options.keep_bytes. observers: a mark a node; what
 * only observers read in a later segment is kept, so that they change nothing else. */
att_status att_graph_rematerialize(att_graph *graph, const bool *observers, size_t most_bytes);

/* Orders nodes: the prologue, the body by segment, reductions last in each, the epilogue. Moves the marks with them. */
att_status att_graph_sort_segments(att_graph *graph, bool *observers);

#endif
