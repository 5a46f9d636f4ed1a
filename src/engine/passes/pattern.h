/* passes/pattern.h - the descriptor of an algebraic rewriting. The patterns are in patterns/. */
#ifndef ATT_PASSES_PATTERN_H
#define ATT_PASSES_PATTERN_H

#include "engine/graph/graph.h"

typedef enum att_pattern_stage {
    ATT_BEFORE_GRADIENTS, /* on the forward pass: gradients follow from the nodes that the pattern emits */
    ATT_AFTER_GRADIENTS   /* on the forward and the backward pass together */
} att_pattern_stage;

/* An identity that replaces a node by cheaper nodes with the same results up to rounding. Each pattern is one file in
 * patterns/ that ends in one `const att_pattern`, plus a line in patterns/list.h. Training plans apply the patterns of
 * both stages, gradient plans only those of ATT_AFTER_GRADIENTS, inference plans none. */
typedef struct att_pattern {
    const char *name;
    const char *help; /* one line with the identity */
    att_pattern_stage stage;
    /* Emits nodes that replace `node` and writes the replacement of each of its outputs to `replacements`. If the
     * pattern does not match, returns false and emits nothing. Must not replace nodes with outputs of kind ATT_SUMMED,
     * because plans find gradients of parameters by these values. */
    bool (*apply)(att_graph *graph, const att_node *node, att_value *replacements);
} att_pattern;

/* passes/replace.c: visits the nodes once, in order, and applies the first pattern of `stage` that matches. Emitted
 * nodes are not visited. `patterns` is NULL-terminated. */
att_status att_graph_apply_patterns(att_graph *graph, const att_pattern *const *patterns, att_pattern_stage stage);

#endif
