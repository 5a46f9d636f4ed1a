/* graph/graph.h - the graph itself: arrays of values and nodes, in the order in which they were added. */
#ifndef ATT_GRAPH_GRAPH_H
#define ATT_GRAPH_GRAPH_H

#include "base/core/memory.h"
#include "engine/graph/op.h"
#include "engine/graph/registry.h"

typedef struct att_value_info {
    att_desc desc;
    int node;       /* the node that computes the value; -1 for inputs, parameters, constants and totals */
    bool requested; /* The caller asked for this value's gradient. Until differentiation, no pass may make a reader
                       bypass the value. */
} att_value_info;

typedef struct att_named_value {
    const char *name;
    att_value value;
    bool probe; /* a probe: an output that only observes */
} att_named_value;

/* At the end of a run of a training plan, the buffer `parameter` is set to `value`. */
typedef struct att_assignment {
    int parameter;
    att_value value;
} att_assignment;

/* A shared value with fixed contents. */
typedef struct att_constant {
    att_value value;
    const void *data; /* in the graph's arena */
} att_constant;

/* A dynamic array. */
#define ATT_LIST(type)       \
    struct {                 \
        type *items;         \
        int count, capacity; \
    }

struct att_graph {
    att_context *context;
    att_arena arena; /* names, attributes, value lists and constants */
    att_dtype dtype;
    att_status status;
    const char *scope;
    int segment;  /* segment of the nodes that are added next */
    bool copying; /* the nodes that are added next get att_node.copy */
    ATT_LIST(att_value_info) values;
    ATT_LIST(att_node) nodes; /* in topological order */
    ATT_LIST(att_named_value) inputs, outputs;
    ATT_LIST(att_parameter_info) parameters;
    ATT_LIST(att_assignment) assigned;
    ATT_LIST(att_constant) constants;
    ATT_LIST(att_value) totals; /* shared values that hold the gradients of derived values, summed over the samples */
};

/* Reserves room for one more item. False if memory is exhausted; the graph has then failed. */
bool att_list_reserve(att_graph *graph, void *items, int count, int *capacity, size_t item_size);

att_value att_graph_add_value(att_graph *graph, att_desc desc, int node);
/* Absent for ATT_NONE. */
att_desc att_graph_desc(const att_graph *graph, att_value value);
/* The separator between a scope and the rest of a message: ": ", or "" if the scope is empty. */
const char *att_scope_separator(const char *scope);
/* Adds a shared value for the gradient of a derived value, summed over the samples. The value is complete when the body
 * has run. */
att_value att_graph_add_total(att_graph *graph, att_desc desc);
/* Allocates a list of `count` values, all ATT_NONE, in the graph's arena. NULL if the graph has failed. */
att_value *att_graph_values(att_graph *graph, int count);
/* Gives the node its own copies of inputs, outputs and attributes. False if the graph has failed. */
bool att_node_own(att_graph *graph, att_node *node);
/* Work of one forward evaluation of the node: per sample, or once for derived values. */
ATT_FOR_LAB att_cost att_node_cost(const att_graph *graph, const att_node *node);
/* As att_graph_cost(), of the nodes only that the outputs need in inference: without probes, and without what acts in
 * training only. Error: ERR_MEMORY. */
ATT_FOR_LAB att_status att_graph_inference_cost(const att_graph *graph, att_cost *cost);
/* A deep copy. NULL if memory is exhausted. */
att_graph *att_graph_copy(const att_graph *graph);
/* Returns the probe `name`, ATT_NONE if there is none. */
att_value att_graph_find_probe(const att_graph *graph, const char *name);
/* Index of the parameter whose value is `value`, or -1. */
ATT_FOR_LAB int att_graph_parameter_of(const att_graph *graph, att_value value);
const char *att_graph_string(att_graph *graph, const char *text);
/* Copies `size` bytes into the graph's arena; zeros if attrs is NULL. NULL if size is 0 or the graph has failed. */
void *att_graph_attrs(att_graph *graph, const void *attrs, size_t size);

#endif
