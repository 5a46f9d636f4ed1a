/* passes/segment.h - splits the body of a graph into segments at reductions over the batch.
 *
 * A reduction is a node that computes a value of the whole batch (kind ATT_BATCH). Readers of this value must wait
 * until all samples have been processed. So the body is a sequence of segments: each segment runs for all groups of
 * samples, then its reductions run. A sample value that a later segment reads is kept for the whole batch, or
 * recomputed there.
 *
 * Order of calls: att_graph_split_segments() once, after fusion; att_graph_rematerialize() after autocasting, which
 * adds casts that later segments read; att_graph_sort_segments() last. For observers see att_graph_place_observers()
 * (passes/passes.h).
 */
#ifndef ATT_PASSES_SEGMENT_H
#define ATT_PASSES_SEGMENT_H

#include "engine/graph/graph.h"

/* Whether the node is a reduction over the batch. */
bool att_node_reduces(const att_graph *graph, const att_node *node);

/* Assigns each node to the first segment in which it can run. late[node]: this is not the segment 0; NULL: it can be.
 */
void att_graph_split_segments(att_graph *graph, const bool *late);
int att_graph_segments(const att_graph *graph);

/* most_bytes: as att_plan_options.keep_bytes. keep_first: values of segment 0 that later segments read are kept in any
 * case. for_sizes: the plan chooses its groups by the result, on which the bits of a training run depend. So this
 * choice must stay as it is: by the rate alone (passes/keep.c), with nodes in the order of the graph. */
typedef struct att_keep_options {
    size_t most_bytes;
    bool keep_first, for_sizes;
} att_keep_options;

/* passes/rematerialize.c: chooses which values are kept (passes/keep.h), and inserts copies of the producers of all
 * others into the later segments that read them. observers[node]: the node is an observer. Values that only observers
 * read in later segments are kept, so that observers do not change the choice. The gradient of a weight goes before
 * its neighbour, the gradient of the input, so that a recomputed input ends before the input's gradient begins. */
att_status att_graph_rematerialize(att_graph *graph, const bool *observers, const att_keep_options *options);

/* Orders the nodes: the prologue, then the body by segment, each with its reductions last, then the epilogue. Reorders
 * the marks in observers[] accordingly. */
att_status att_graph_sort_segments(att_graph *graph, bool *observers);

#endif
