#include <attscope/ops.h>

#include <string.h>

#include "engine/ops/add.h"
#include "engine/ops/conv2d.h"
#include "engine/ops/list.h"
#include "engine/patterns/list.h"
#include "engine/patterns/match.h"

/* Applies to the gradient of the input x of a block whose attention pools x by a mean, as in StepNet. This gradient is
 * a sum with the term pooled / rows, which is the same in every row. conv2d_data_grad adds this term while computing
 * its output, so that the term is never stored as a map. */

enum { GRAD_POOLED = 4, GRAD_IN_COUNT };

/* Emits a copy of the conv2d_data_grad node that computes `gradient`, with the additional input `pooled`. False if
 * there is no such node, or if it has a pooled input already. */
static bool emit_with_pooled(att_graph *graph, att_value gradient, att_value pooled, att_value *sum)
{
    const att_node *data_grad = att_match(graph, gradient, &att_op_conv2d_data_grad);
    if (!data_grad || data_grad->in[GRAD_POOLED] != ATT_NONE || att_value_shape(graph, gradient).rank != 3)
        return false;
    att_value in[GRAD_IN_COUNT];
    memcpy(in, data_grad->in, sizeof in);
    in[GRAD_POOLED] = pooled;
    *sum = att_emit(graph, "conv2d_data_grad", data_grad->attrs, in, GRAD_IN_COUNT, NULL);
    return true;
}

static bool apply(att_graph *graph, const att_node *node, att_value *replacements)
{
    if (node->op != &att_op_add || ATT_ATTRS(node, add)->axes != 0)
        return false;
    att_value rest, pooled, sum;
    for (int i = 0; i < 2; i++)
        if (att_match_broadcast_sum(graph, node->in[i], &rest, &pooled) &&
            emit_with_pooled(graph, node->in[1 - i], pooled, &sum)) {
            replacements[0] = att_add(graph, rest, sum);
            return true;
        }
    return false;
}

const att_pattern att_pattern_pooled_gradient = {
    .name = "pooled_gradient",
    .help = "(rest + pooled / rows) + conv2d_data_grad = rest + (conv2d_data_grad + pooled / rows)",
    .stage = ATT_AFTER_GRADIENTS,
    .apply = apply,
};
