/* passes/passes.h - what a plan does to its copy of a graph before it gives values their memory: gradients are laid
 * out, operations replaced, merged, fused and narrowed. Each pass takes a graph and leaves a graph.
 */
#ifndef ATT_PASSES_PASSES_H
#define ATT_PASSES_PASSES_H

#include "graph/graph.h"

/* Which gradients are asked for: of all parameters but the frozen ones (by parameter; NULL: none is), and of these
 * values, inputs and outputs of the graph, as outputs named "NAME.grad". */
typedef struct att_gradient_request {
    const bool *frozen;
    const char *const *names; /* of each value */
    const att_value *values;
    int value_count;
} att_gradient_request;

/* passes/differentiate.c: appends the backward pass of `loss` and writes what each summed value adds to: owner[value] =
 * index of a parameter, or number of parameters + index of one of the graph's totals; -1 for other values. *owner has
 * room for every value of the graph afterwards and is the caller's. */
att_status att_graph_differentiate(att_graph *graph, att_value loss, const att_gradient_request *request, int **owner);

/* passes/replace.c: replaces operations by their training form (att_op.in_training). */
att_status att_graph_expand(att_graph *graph);

/* passes/prune.c: what is not needed, or there twice, goes. */
void att_graph_drop_train_only(att_graph *graph);
void att_graph_drop_dead(att_graph *graph, const int *owner);
/* Of equal nodes of one segment, those that make sample values of the same inputs, the first stays: what the backward
 * pass computes again is then what the forward pass computed, for att_graph_rematerialize() to decide about. Of a
 * watcher and another node the other stays, where it is: watchers that read it may then come before it, which
 * att_graph_settle_probes() mends. */
att_status att_graph_merge_copies(att_graph *graph, const int *owner);
/* Removes nodes whose op was set to NULL and renumbers the makers of values. */
void att_graph_compact(att_graph *graph);
/* Number of nodes that read `value`, each use counted; named outputs and assignments count as one. */
att_status att_graph_count_readers(const att_graph *graph, int **readers);

/* passes/fuse.c: ops absorb what they can (att_op.absorb): those that have all of `flags`. Probes change nothing about
 * that: what is watched and absorbed all the same is made once more, for those who watch. owner: as
 * att_graph_differentiate() wrote it, NULL before that. Adds values where probes watch. */
att_status att_graph_fuse(att_graph *graph, const int *owner, unsigned flags);

/* passes/narrow.c: mixed precision. Values between operations that take them so become bf16; the others stay. What
 * watchers read is as narrow as it would be without them: they read it by a cast where they do not take it so. */
att_status att_graph_narrow(att_graph *graph, const bool *watchers);

/* passes/probes.c. A watcher is a node that nothing but probes needs. watchers has room for every node.
 *
 * Probes of what other nodes make become probes of copies of it, whose makers are watchers: then a probe decides
 * neither where a value lies nor its type. Comes first. */
void att_graph_detach_probes(att_graph *graph, const bool *watchers);
att_status att_graph_find_watchers(const att_graph *graph, const int *owner, bool *watchers);
/* Puts every watcher right behind what it reads, so that nothing is kept longer for its sake, and tells them:
 * (*watchers)[node], the caller's. Comes last: later passes would move nodes. */
att_status att_graph_settle_probes(att_graph *graph, const int *owner, bool **watchers);

#endif
