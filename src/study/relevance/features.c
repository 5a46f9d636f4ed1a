/* Finds F of Grad-CAM in the explorer's graph. */
#include "engine/graph/graph.h"
#include "engine/ops/list.h"
#include "study/relevance/method.h"

static const att_cam_features none = {.value = ATT_NONE};

/* The input of the linear layer or convolution that makes the values of the layer; ATT_NONE: there is none. */
static att_value before_values(const att_graph *graph, const att_explored_layer *layer)
{
    const att_node *node = att_graph_producer(graph, layer->made);
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    att_value value = node->in[0];
    if (node->op == &att_op_attention) {
        att_attention_operands(graph, node, operand);
        value = node->in[operand[ATT_ATTENTION_V].input];
    }
    while ((node = att_graph_producer(graph, value)) && node->in_count > 0) {
        value = node->in[0];
        if (node->op == &att_op_linear || node->op == &att_op_conv2d)
            return value;
    }
    return ATT_NONE;
}

static att_cam_features of_layer(const att_relevance *r, const att_explored_layer *layer)
{
    const att_attention_attrs *attrs = &layer->attrs;
    const att_value value = before_values(r->explorer->graph, layer);
    const att_shape shape = att_value_shape(r->explorer->graph, value);
    if (value == ATT_NONE || !attrs->grid_h || att_shape_count(shape) % layer->tokens ||
        layer->tokens != attrs->prefix + (int64_t)attrs->grid_h * attrs->grid_w ||
        shape.dims[shape.rank - 1] != att_shape_count(shape) / layer->tokens)
        return none;
    return (att_cam_features){value, attrs->prefix, attrs->grid_h, attrs->grid_w, shape.dims[shape.rank - 1]};
}

/* The ReLU that follows the sum, or the sum. */
static att_value after_sum(const att_graph *graph, att_value sum)
{
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (node->op == &att_op_relu && node->in[0] == sum)
            return node->out[0];
    }
    return sum;
}

/* The output of the last residual block: a map, or tokens that fill a grid of the image's proportions. */
static att_cam_features of_block(const att_relevance *r, const att_explored_branch *branch)
{
    const att_graph *graph = r->explorer->graph;
    const att_value value = after_sum(graph, branch->sum);
    const att_shape shape = att_value_shape(graph, value);
    if (shape.rank == 3)
        return (att_cam_features){value, 0, shape.dims[0], shape.dims[1], shape.dims[2]};
    for (int64_t h = 1; shape.rank == 2 && h <= shape.dims[0]; h++)
        if (shape.dims[0] % h == 0 && h * r->width == shape.dims[0] / h * r->height)
            return (att_cam_features){value, 0, h, shape.dims[0] / h, shape.dims[1]};
    return none;
}

att_cam_features att_relevance_find_features(const att_relevance *r)
{
    const att_explorer *e = r->explorer;
    if (e->layer_count > 0)
        return of_layer(r, &e->layers[e->layer_count - 1]);
    return e->branch_count > 0 ? of_block(r, &e->branches[e->branch_count - 1]) : none;
}
