/* passes/passes.h - what a plan does to its copy of a graph before it gives values their memory: gradients are laid
 * out, operations replaced, merged, fused and cast. Each pass takes a graph and leaves a graph.
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
att_status att_graph_decompose(att_graph *graph);

/* passes/prune.c: what is not needed, or there twice, goes. */
void att_graph_drop_train_only(att_graph *graph);
void att_graph_drop_dead(att_graph *graph, const int *owner);
/* Of equal nodes of one segment, those that make sample values of the same inputs, the first stays: what the backward
 * pass computes again is then what the forward pass computed, for att_graph_rematerialize() to decide about. Of a
 * observer and another node the other stays, where it is: observers that read it may then come before it, which
 * att_graph_settle_probes() mends. */
att_status att_graph_merge_copies(att_graph *graph, const int *owner);
/* Removes nodes whose op was set to NULL and renumbers the makers of values. */
void att_graph_compact(att_graph *graph);
/* Number of nodes that read `value`, each use counted; named outputs and assignments count as one. */
att_status att_graph_count_readers(const att_graph *graph, int **readers);

/* passes/fuse.c: ops absorb what they can (att_op.absorb): those that have all of `flags`. Probes change nothing about
 * that: what is observed and absorbed all the same is made once more, for observers. owner: as
 * att_graph_differentiate() wrote it, NULL before that. Adds values that probes read. */
att_status att_graph_fuse(att_graph *graph, const int *owner, unsigned flags);

/* passes/autocast.c: mixed precision. Values between operations that take them so become bf16; the others stay. What
 * observers read has the type that it would have without them: they read it by a cast where they do not take it so. */
att_status att_graph_autocast(att_graph *graph, const bool *observers);

/* passes/probes.c. A observer is a node that nothing but probes needs. observers has room for every node.
 *
 * Probes of what other nodes make become probes of copies of it, whose makers are observers: then a probe decides
 * neither where a value lies nor its type. Comes first. */
void att_graph_detach_probes(att_graph *graph, const bool *observers);
att_status att_graph_find_observers(const att_graph *graph, const int *owner, bool *observers);
/* Puts every observer right behind what it reads, so that nothing is kept longer for its sake, and tells them:
 * (*observers)[node], the caller's. Comes last: later passes would move nodes. */
att_status att_graph_settle_probes(att_graph *graph, const int *owner, bool **observers);

#endif
