/* measure/paths_walk.h - which values of a network are sums over paths, for the functions of measure/paths.h:
 * paths_linearity.c finds them and counts the paths, paths_contributions.c adds nodes that compute the terms. */
#ifndef ATT_MEASURE_PATHS_WALK_H
#define ATT_MEASURE_PATHS_WALK_H

#include <attscope/measure.h>
#include <attscope/ops.h>

#include "base/core/memory.h"
#include "engine/ops/attention.h"
#include "study/measure/paths.h"

/* How the output of a node depends on its inputs, once attention maps and statistics of norms are fixed. */
typedef enum att_path_rule {
    ATT_PATH_NONLINEAR,
    ATT_PATH_SUM,    /* add, combine */
    ATT_PATH_NORM,   /* with frozen statistics */
    ATT_PATH_LINEAR, /* a linear layer, with a bias */
    ATT_PATH_ATTEND, /* linear in the values */
    ATT_PATH_SAME,   /* the identity in inference */
    ATT_PATH_MAP     /* linear in the first input; all other inputs are shared */
} att_path_rule;

att_path_rule att_path_rule_of(const att_node *node);

/* What is known of a value that the network computes after `begin`. */
typedef struct att_path_known {
    bool linear;      /* linear in the tokens `begin`, the biases, and the results of branches without attention */
    bool attends;     /* it depends on an attention layer of its residual branch */
    bool needed;      /* `end` depends on it linearly */
    att_value *parts; /* the contributions to a value that is linear and needed, one for each slot */
    double *count;    /* number of paths of each length */
} att_path_known;

/* Slots: lengths 0..layers, then these. */
enum { ATT_PATH_BIASES, ATT_PATH_OTHERS, ATT_PATH_MORE_SLOTS };

typedef struct att_path_walk {
    att_graph *graph;
    att_arena arena;
    att_value begin, end;
    int nodes, values; /* those of the network: others are added while the walk goes on */
    att_path_known *known;
    int layers;
    int layer_nodes[ATT_PATHS_MOST_LAYERS];
    const int *choice; /* one path; NULL: all paths */
    bool others;       /* whether there are branches without attention */
} att_path_walk;

/* Finds the values that are linear and needed, and the layers. Returns false if memory is exhausted; the caller frees
 * w->arena in either case. */
bool att_path_walk_begin(att_graph *graph, att_value begin, att_value end, att_path_walk *w);
/* Allocates `parts` and `count` of the needed values. Returns false if memory is exhausted. */
bool att_path_walk_allocate(att_path_walk *w);
/* Fails the graph, because memory is exhausted. */
void att_path_walk_fail(const att_path_walk *w);

static inline bool att_path_is_linear(const att_path_walk *w, att_value value)
{
    return value != ATT_NONE && value < w->values && w->known[value].linear;
}

static inline bool att_path_is_shared(const att_path_walk *w, att_value value)
{
    return value != ATT_NONE && att_value_kind(w->graph, value) == ATT_SHARED;
}

static inline bool att_path_is_needed(const att_path_walk *w, const att_node *node)
{
    return w->known[node->out[0]].needed && node->out[0] != w->begin;
}

static inline int att_path_slots(const att_path_walk *w)
{
    return w->layers + 1 + ATT_PATH_MORE_SLOTS;
}

static inline int att_path_slot(const att_path_walk *w, int more)
{
    return w->layers + 1 + more;
}

/* node: index of an attention layer */
static inline int att_path_layer_of(const att_path_walk *w, int node)
{
    int layer = 0;
    while (w->layer_nodes[layer] != node)
        layer++;
    return layer;
}

static inline int att_path_heads_of(const att_path_walk *w, int layer)
{
    return ATT_ATTRS(&w->graph->nodes.items[w->layer_nodes[layer]], attention)->heads;
}

static inline int64_t att_path_columns_of(const att_graph *graph, att_value value)
{
    att_shape shape = att_value_shape(graph, value);
    return shape.dims[shape.rank - 1];
}

enum { ATT_PATH_WEIGHT = 1, ATT_PATH_BIAS, ATT_PATH_RESIDUAL }; /* inputs of a linear layer */

/* Channels [first, first + count) of a value. */
typedef struct att_path_channels {
    att_value value;
    int64_t first, count;
} att_path_channels;

/* The values that an attention mixes. */
att_path_channels att_path_values_of(const att_graph *graph, const att_node *node);
/* The linear layer that computes these channels beside others; NULL if there is none. */
const att_node *att_path_projection_of(const att_graph *graph, const att_path_channels *of);
/* The value of which the values of an attention are a linear map. */
att_value att_path_origin_of(const att_graph *graph, const att_node *node);

#endif
