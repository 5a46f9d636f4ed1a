/* passes/passes.h - the passes that rewrite a plan's copy of a graph before memory is planned: differentiation,
 * decomposition, deduplication, fusion, mixed precision. Each pass leaves a valid graph. */
#ifndef ATT_PASSES_PASSES_H
#define ATT_PASSES_PASSES_H

#include "engine/graph/graph.h"

/* The requested gradients: of all parameters that are not frozen (frozen: by parameter; NULL: none is frozen), and of
 * the listed inputs and outputs of the graph. The gradients of these inputs and outputs become outputs named
 * "NAME.grad". */
typedef struct att_gradient_request {
    const bool *frozen;
    const char *const *names; /* name of each value */
    const att_value *values;
    int value_count;
} att_gradient_request;

/* passes/differentiate.c: appends the backward pass of `loss`. *owner is allocated, the caller frees it; it covers all
 * values of the graph. owner[value] says what a summed value contributes to: the index of a parameter, or parameter
 * count + index of one of the graph's totals; -1 for all other values. */
att_status att_graph_differentiate(att_graph *graph, att_value loss, const att_gradient_request *request, int **owner);

/* passes/freeze.c: marks the nodes of frozen parts, which run in training as in inference: without dropout and drop
 * path, and batch norm with its running statistics, which it does not change. frozen: by parameter of the graph. A node
 * is in a frozen part if all trained parameters of the innermost scope around it that has any are frozen: of
 * "blocks.3.attn" for a node of the scope "blocks.3.attn.drop". If only the whole network has parameters around a node,
 * as around a pooling, it is in a frozen part if no parameter that is not frozen lies before it. */
att_status att_graph_freeze(att_graph *graph, const bool *frozen);
/* Whether a node of this scope is in a frozen part. if_none: the answer if only the whole network has parameters around
 * the scope. */
bool att_scope_is_frozen(const att_graph *graph, const bool *frozen, const char *scope, bool if_none);
/* Whether the node reads a buffer that is frozen: a batch norm with such running statistics uses them in training, too,
 * though its weight and bias may be trained. */
bool att_node_reads_frozen(const att_graph *graph, const bool *frozen, const att_node *node);
/* passes/replace.c: replaces operations outside of frozen parts by their training form (att_op.in_training). */
att_status att_graph_decompose(att_graph *graph);

/* passes/prune.c: removes train-only nodes (ATT_OP_TRAIN_ONLY), unused nodes and duplicates. frozen: only nodes of
 * frozen parts. */
void att_graph_drop_train_only(att_graph *graph, bool frozen);
void att_graph_drop_dead(att_graph *graph, const int *owner);
/* Merges equal nodes of a segment that compute sample values from the same inputs; the first stays. In this way
 * recomputations, which att_graph_differentiate() emitted, become one with their originals, and
 * att_graph_rematerialize() alone decides which values are recomputed. If one of the two nodes is an observer, the
 * other one stays, at its position. Observers may then precede a node that they read, until att_graph_place_observers()
 * moves them. */
att_status att_graph_merge_copies(att_graph *graph, const int *owner);
/* Removes the nodes whose op is NULL and updates the producer of each value. */
void att_graph_compact(att_graph *graph);
/* Counts the reads of each value: every use as an input, every output and every assignment counts. The caller frees
 * *readers. */
att_status att_graph_count_readers(const att_graph *graph, int **readers);

/* passes/fuse.c: ops that have all of `flags` absorb what they can (att_op.absorb). Probes do not change what is fused:
 * a value that is both absorbed and observed is computed once more for its observers. owner: from
 * att_graph_differentiate(), or NULL before that. */
att_status att_graph_fuse(att_graph *graph, const int *owner, unsigned flags);

/* passes/autocast.c: mixed precision. A value becomes bf16 if its producer and all of its readers allow bf16. Observers
 * do not change the type of a value: if an observer does not accept that type, it reads a cast. */
att_status att_graph_autocast(att_graph *graph, const bool *observers);

/* passes/probes.c. An observer is a node that only probes need. observers: one mark per node.
 *
 * att_graph_detach_probes(): a probe of a value that other nodes compute becomes a probe of a copy of the value, made
 * by an observer. The probe then affects neither the type of the value nor its position in memory. Runs before the
 * other passes.
 */
void att_graph_detach_probes(att_graph *graph, const bool *observers);
att_status att_graph_find_observers(const att_graph *graph, const int *owner, bool *observers);
/* Moves every observer directly behind the last node that it reads from, so that nothing is kept longer for an
 * observer. Writes (*observers)[node], which the caller frees. Runs after all passes that move nodes. */
att_status att_graph_place_observers(att_graph *graph, const int *owner, bool **observers);

#endif
