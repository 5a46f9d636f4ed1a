#include "study/measure/positions.h"

#include <string.h>

#include <attscope/ops.h>

#include "engine/graph/graph.h"
#include "engine/ops/linear.h"
#include "engine/ops/list.h"
#include "engine/ops/mixing.h"

enum { X, WEIGHT, BIAS, RESIDUAL }; /* inputs of linear */
enum { GAMMA = 1, BETA = 2 };       /* inputs of layer_norm, after X */
enum { PREFIX, OTHERS };            /* inputs of prepend_tokens */
enum { NORMALISED, STATS, PARTS };  /* outputs of layer_norm */

/* Whether the node adds a position embedding: a shared value for each token. */
static bool adds_positions(const att_graph *graph, const att_node *node)
{
    if (node->op != &att_op_add || att_value_kind(graph, node->in[1]) != ATT_SHARED)
        return false;
    att_shape x = att_value_shape(graph, node->in[0]), positions = att_value_shape(graph, node->in[1]);
    return x.rank == 2 && x.dims[0] > 1 && att_shape_count(positions) == att_shape_count(x);
}

/* The input that the node passes on linearly; ATT_NONE if it is of another kind. */
static att_value followed(const att_node *node)
{
    if (node->op == &att_op_prepend_tokens)
        return node->in[OTHERS];
    bool passes = node->op == &att_op_layer_norm || node->op == &att_op_linear || node->op == &att_op_reshape;
    return passes ? node->in[X] : ATT_NONE;
}

bool att_has_positions(const att_graph *graph, att_value value)
{
    while (value != ATT_NONE && att_value_kind(graph, value) == ATT_SAMPLE) {
        const att_node *node = att_graph_producer(graph, value);
        if (!node || adds_positions(graph, node))
            return node != NULL;
        value = followed(node);
    }
    return false;
}

/* Sample zeros of the shape of x. */
static att_value zeros_like(att_graph *graph, att_value x)
{
    return att_combine(graph, 0, x, 0, ATT_NONE);
}

/* Divides rows of y by the deviations that a layer norm found, after their mean is subtracted: gamma (y - mean(y))
 * rstd, with rstd from the node. */
static att_value normalise(att_graph *graph, const att_node *norm, att_value y)
{
    static const int swap[] = {1, 0};
    att_shape shape = att_value_shape(graph, y);
    int64_t columns = shape.dims[shape.rank - 1], rows = att_shape_count(shape) / columns;
    att_value turned = att_transpose(graph, att_reshape(graph, y, att_shape_of(rows, columns)), swap, 2);
    att_value means = att_repeat_tokens(graph, att_token_mean(graph, turned, 0), (int)columns, 1);
    att_value centred = att_transpose(graph, att_combine(graph, 1, turned, -1, means), swap, 2);
    att_value stats = att_reshape(graph, norm->out[STATS], att_shape_of(rows, PARTS));
    att_value rstd = att_slice_tokens(graph, att_transpose(graph, stats, swap, 2), 1, 1);
    att_value scaled = att_scale(graph, centred, norm->in[GAMMA]);
    return att_reshape(graph, att_pixel_gate(graph, scaled, att_reshape(graph, rstd, att_shape_of(rows, 1))), shape);
}

static att_value apply_linear(att_graph *graph, const att_node *linear, att_value x, att_value bias)
{
    att_value in[] = {x, linear->in[WEIGHT], bias, ATT_NONE};
    return att_emit(graph, "linear", linear->attrs, in, sizeof in / sizeof *in, NULL);
}

/* Zeros in place of the prefix tokens. */
static att_value prepend_zeros(att_graph *graph, const att_node *prepend, att_value x)
{
    att_shape whole = att_value_shape(graph, prepend->out[0]), rest = att_value_shape(graph, x);
    return att_prepend_tokens(graph, att_zeros(graph, att_shape_of(whole.dims[0] - rest.dims[0], rest.dims[1])), x);
}

att_value att_part_of_positions(att_graph *graph, att_value value)
{
    if (att_graph_status(graph) != ATT_OK)
        return ATT_NONE;
    const att_node node = *att_graph_producer(graph, value);
    if (adds_positions(graph, &node))
        return att_add(graph, zeros_like(graph, node.in[0]), node.in[1]);
    att_value x = att_part_of_positions(graph, followed(&node));
    if (x == ATT_NONE)
        return ATT_NONE;
    if (node.op == &att_op_prepend_tokens)
        return prepend_zeros(graph, &node, x);
    if (node.op == &att_op_layer_norm)
        return normalise(graph, &node, x);
    if (node.op == &att_op_linear)
        return apply_linear(graph, &node, x, ATT_NONE);
    return att_reshape(graph, x, att_value_shape(graph, value));
}

att_value att_part_of_biases(att_graph *graph, att_value value)
{
    if (att_graph_status(graph) != ATT_OK)
        return ATT_NONE;
    const att_node node = *att_graph_producer(graph, value);
    if (adds_positions(graph, &node))
        return zeros_like(graph, value);
    att_value x = att_part_of_biases(graph, followed(&node));
    if (x == ATT_NONE)
        return ATT_NONE;
    if (node.op == &att_op_prepend_tokens)
        return prepend_zeros(graph, &node, x);
    if (node.op == &att_op_layer_norm)
        return att_add(graph, normalise(graph, &node, x), node.in[BETA]);
    if (node.op == &att_op_linear)
        return apply_linear(graph, &node, x, node.in[BIAS]);
    return att_reshape(graph, x, att_value_shape(graph, value));
}
