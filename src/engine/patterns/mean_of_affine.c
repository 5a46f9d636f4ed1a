#include "engine/ops/list.h"
#include "engine/ops/token_mean.h"
#include "engine/patterns/list.h"
#include "engine/patterns/match.h"

/* With this pattern, squeeze and excitation after a norm that affine_norm has rewritten pools the narrow x instead of
 * the wide output. */

enum { AFFINE_X, AFFINE_MATRIX };

/* At this stage no affine node has absorbed anything. */
static bool apply(att_graph *graph, const att_node *node, att_value *replacements)
{
    const att_node *affine = att_match(graph, node->in[0], &att_op_affine);
    if (node->op != &att_op_token_mean || ATT_ATTRS(node, mean)->factor != 1 || !affine)
        return false;
    att_value x = affine->in[AFFINE_X], matrix = affine->in[AFFINE_MATRIX];
    replacements[0] = att_emit_affine(graph, att_emit(graph, "token_mean", node->attrs, &x, 1, NULL), matrix);
    return true;
}

const att_pattern att_pattern_mean_of_affine = {
    .name = "mean_of_affine",
    .help = "mean(x B + b) = mean(x) B + b, means over rows",
    .stage = ATT_BEFORE_GRADIENTS,
    .apply = apply,
};
