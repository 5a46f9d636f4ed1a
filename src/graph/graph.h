/* graph/graph.h - the graph's own data: arrays of values and nodes, in order of declaration. */
#ifndef ATT_GRAPH_GRAPH_H
#define ATT_GRAPH_GRAPH_H

#include "core/memory.h"
#include "graph/op.h"
#include "graph/registry.h"

typedef struct att_value_info {
    att_desc desc;
    int node; /* that makes it; -1: an input or a parameter */
} att_value_info;

typedef struct att_named_value {
    const char *name;
    att_value value;
    bool probe; /* an output that only watches */
} att_named_value;

/* What a buffer becomes at the end of a run of a training plan. */
typedef struct att_assignment {
    int parameter;
    att_value value;
} att_assignment;

/* A growing array. */
#define ATT_LIST(type)       \
    struct {                 \
        type *items;         \
        int count, capacity; \
    }

struct att_graph {
    att_context *context;
    att_arena arena; /* of names */
    att_dtype dtype;
    att_status status;
    const char *scope;
    int segment; /* of nodes made from now on, as the scope is */
    ATT_LIST(att_value_info) values;
    ATT_LIST(att_node) nodes; /* each after the makers of its inputs */
    ATT_LIST(att_named_value) inputs, outputs;
    ATT_LIST(att_parameter_info) parameters;
    ATT_LIST(att_assignment) assigned;
};

/* Room for one more item in a list; false where memory is out (the graph has failed then). */
bool att_list_reserve(att_graph *graph, void *items, int count, int *capacity, size_t item_size);

/* Records the first failure and returns ATT_NONE. */
att_value att_graph_fail(att_graph *graph, att_status status);
att_value att_graph_add_value(att_graph *graph, att_desc desc, int node);
/* The work of one node for one sample (or once), forward. */
att_cost att_node_cost(const att_graph *graph, const att_node *node);
/* A copy that shares nothing; NULL where memory is out. */
att_graph *att_graph_copy(const att_graph *graph);
/* Index of the parameter that `value` is, -1 for others. */
int att_graph_parameter_of(const att_graph *graph, att_value value);
const char *att_graph_string(att_graph *graph, const char *text);

/* graph/differentiate.c: appends the backward pass of `loss` and writes the parameter whose gradient each summed value
 * adds to: owner[value] = parameter index, -1 for other values. *owner has room for every value of the graph afterwards
 * and is the caller's. */
att_status att_graph_differentiate(att_graph *graph, att_value loss, int **owner);

/* graph/expand.c: puts what ops are in training (att_op.in_training) in their place. */
att_status att_graph_expand(att_graph *graph);
/* The same for what ops take from less (att_op.shorten). */
att_status att_graph_shorten(att_graph *graph);

/* graph/rewrite.c: passes that leave results as they are. */
void att_graph_drop_train_only(att_graph *graph);
void att_graph_drop_dead(att_graph *graph, const int *owner);
/* Of equal nodes of one segment, those that make sample values of the same inputs, the first stays: what the backward
 * pass computes again is then what the forward pass computed, for att_graph_remake() to decide about. Of a watcher and
 * another node the other stays, where it is: watchers that read it may then come before it, which
 * att_graph_settle_probes() mends. */
att_status att_graph_merge_copies(att_graph *graph, const int *owner);
/* Ops absorb what they can (att_op.absorb): those that have all of `flags`. Probes change nothing about that: what is
 * watched and absorbed all the same is made once more, for those who watch. owner: as att_graph_differentiate() wrote
 * it, NULL before that. Adds values where probes watch. */
att_status att_graph_fuse(att_graph *graph, const int *owner, unsigned flags);

/* graph/narrow.c: mixed precision. Values between operations that take them so become bf16; the others stay. What
 * watchers read is as narrow as it would be without them: they read it by a cast where they do not take it so. */
att_status att_graph_narrow(att_graph *graph, const bool *watchers);

/* graph/probes.c. A watcher is a node that nothing but probes needs. watchers has room for every node.
 *
 * Probes of what other nodes make become probes of copies of it, whose makers are watchers: then a probe decides
 * neither where a value lies nor its type. Comes first. */
void att_graph_detach_probes(att_graph *graph, const bool *watchers);
att_status att_graph_find_watchers(const att_graph *graph, const int *owner, bool *watchers);
/* Puts every watcher right behind what it reads, so that nothing is kept longer for its sake, and tells them:
 * (*watchers)[node], the caller's. Comes last: later passes would move nodes. */
att_status att_graph_settle_probes(att_graph *graph, const int *owner, bool **watchers);

/* Number of nodes that read `value`, each use counted; named outputs and assignments count as one. */
att_status att_graph_count_readers(const att_graph *graph, int **readers);

#endif
