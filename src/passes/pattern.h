/* passes/pattern.h - what an algebraic rewriting says about itself. The patterns themselves lie in patterns/.
 */
#ifndef ATT_PASSES_PATTERN_H
#define ATT_PASSES_PATTERN_H

#include "graph/graph.h"

typedef enum att_pattern_stage {
    ATT_BEFORE_GRADIENTS, /* on the forward pass: gradients are those of the nodes that the pattern emits */
    ATT_AFTER_GRADIENTS   /* on the forward and the backward pass together */
} att_pattern_stage;

/* An identity that replaces a node by cheaper ones with the same results up to rounding. A pattern is one file in
 * patterns/ that ends in one `const att_pattern`, plus its line in patterns/list.h. Training plans only. */
typedef struct att_pattern {
    const char *name;
    const char *help; /* one line with the identity */
    att_pattern_stage stage;
    /* Emits the nodes that replace `node` and writes the replacement of each of its outputs to `instead`. Returns
     * false, and has emitted nothing, where the pattern does not match. Leaves alone nodes with outputs of kind
     * ATT_SUMMED: plans find gradients of parameters by their values. */
    bool (*apply)(att_graph *graph, const att_node *node, att_value *instead);
} att_pattern;

/* Walks over the nodes once, in order, and applies the first pattern of `stage` that matches a node. Emitted nodes are
 * not matched again. `patterns` ends with NULL. passes/replace.c */
att_status att_graph_apply_patterns(att_graph *graph, const att_pattern *const *patterns, att_pattern_stage stage);

#endif
