#include <attscope/ops.h>

#include "engine/ops/list.h"
#include "engine/ops/token_mean.h"
#include "engine/patterns/list.h"
#include "engine/patterns/match.h"

/* The mean of x is computed in the segment that computes x. So a vector, not the map, is kept until the batch
 * statistics are known. */
static bool apply(att_graph *graph, const att_node *node, att_value *replacements)
{
    att_node norm;
    if (node->op != &att_op_token_mean || ATT_ATTRS(node, mean)->factor != 1 ||
        !att_match_norm(graph, node->in[0], &norm))
        return false;
    att_value mean = att_token_mean(graph, norm.in[NORMALIZE_X], ATT_ATTRS(node, mean)->first);
    att_value in[] = {mean, norm.in[NORMALIZE_STATS], norm.in[NORMALIZE_GAMMA], norm.in[NORMALIZE_BETA]};
    replacements[0] = att_emit(graph, "normalize", norm.attrs, in, NORMALIZE_IN_COUNT, NULL);
    return true;
}

const att_pattern att_pattern_mean_of_norm = {
    .name = "mean_of_norm",
    .help = "mean(norm(x)) = norm(mean(x)), means over rows, the statistics of the norm being given",
    .stage = ATT_AFTER_GRADIENTS,
    .apply = apply,
};
