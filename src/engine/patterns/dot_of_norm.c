#include <attscope/ops.h>

#include "engine/ops/list.h"
#include "engine/patterns/list.h"
#include "engine/patterns/match.h"

/* The gradient of a gate after a norm. The gradient of the norm needs the same two sums, so the output of the norm is
 * not read again. */

enum { DOT_DY, DOT_X };

static bool apply(att_graph *graph, const att_node *node, att_value *replacements)
{
    att_node norm;
    if (node->op != &att_op_channel_dot || !att_match_norm(graph, node->in[DOT_X], &norm))
        return false;
    att_value sums[2];
    att_emit_norm_sums(graph, norm.attrs, node->in[DOT_DY], norm.in[NORMALIZE_X], &norm.in[NORMALIZE_STATS], sums);
    att_value by_beta = att_scale(graph, sums[0], norm.in[NORMALIZE_BETA]);
    replacements[0] = att_add(graph, att_scale(graph, sums[1], norm.in[NORMALIZE_GAMMA]), by_beta);
    return true;
}

const att_pattern att_pattern_dot_of_norm = {
    .name = "dot_of_norm",
    .help = "sum(dy (.) (n gamma + beta)) = gamma (.) sum(dy (.) n) + beta (.) sum(dy), sums over rows",
    .stage = ATT_AFTER_GRADIENTS,
    .apply = apply,
};
