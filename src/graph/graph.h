/* graph/graph.h - the graph's own data: arrays of values and nodes, in order of declaration. */
#ifndef ATT_GRAPH_GRAPH_H
#define ATT_GRAPH_GRAPH_H

#include "core/memory.h"
#include "graph/op.h"
#include "graph/registry.h"

typedef struct att_value_info {
    att_desc desc;
    int node;       /* that makes it; -1: an input or a parameter */
    bool requested; /* its own gradient is asked for: until gradients are laid out, every reader must keep reading it */
} att_value_info;

typedef struct att_named_value {
    const char *name;
    att_value value;
    bool probe; /* an output that only observes */
} att_named_value;

/* What a buffer becomes at the end of a run of a training plan. */
typedef struct att_assignment {
    int parameter;
    att_value value;
} att_assignment;

/* A shared value that no parameter holds. */
typedef struct att_constant {
    att_value value;
    const void *data; /* in the graph's arena */
} att_constant;

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
    ATT_LIST(att_constant) constants;
    ATT_LIST(att_value) totals; /* of gradients of derived values: what the body's summed values add to */
};

/* Room for one more item in a list; false where memory is out (the graph has failed then). */
bool att_list_reserve(att_graph *graph, void *items, int count, int *capacity, size_t item_size);

att_value att_graph_add_value(att_graph *graph, att_desc desc, int node);
/* When the value is there: what the body reads of other stages is. */
att_stage att_graph_stage_of(const att_graph *graph, att_value value);
/* For messages, what stands between a scope and the rest: ": ", or "" behind the empty scope. */
const char *att_scope_colon(const char *scope);
/* A shared value that holds the sum of a derived value's gradient once the body has run. */
att_value att_graph_add_total(att_graph *graph, att_desc desc);
/* Room for `count` values that lives as long as the graph, all ATT_NONE; NULL: the graph has failed. */
att_value *att_graph_values(att_graph *graph, int count);
/* Gives a copy of a node inputs, outputs and attributes of its own; false: the graph has failed. */
bool att_node_own(att_graph *graph, att_node *node);
/* The work of one node for one sample (or once), forward. */
att_cost att_node_cost(const att_graph *graph, const att_node *node);
/* A copy that shares nothing; NULL where memory is out. */
att_graph *att_graph_copy(const att_graph *graph);
/* Index of the parameter that `value` is, -1 for others. */
int att_graph_parameter_of(const att_graph *graph, att_value value);
const char *att_graph_string(att_graph *graph, const char *text);
/* A copy of `size` bytes that lives as long as the graph; zeros where attrs is NULL. NULL where size is 0, or the graph
 * has failed. */
void *att_graph_attrs(att_graph *graph, const void *attrs, size_t size);

#endif
