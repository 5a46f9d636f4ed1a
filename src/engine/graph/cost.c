#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/graph/graph.h"

static double value_bytes(const att_graph *graph, att_value value)
{
    if (value == ATT_NONE)
        return 0;
    att_desc desc = graph->values.items[value].desc;
    return (double)att_shape_count(desc.shape) * (double)att_dtype_size(desc.dtype);
}

att_cost att_node_cost(const att_graph *graph, const att_node *node)
{
    att_desc few[16], *descs = few;
    int count = node->in_count + node->out_count;
    if (count > (int)(sizeof few / sizeof *few))
        descs = att_allocate_array(graph->context, (size_t)count, sizeof *descs);
    att_cost cost = {0};
    if (!descs)
        return cost;
    for (int i = 0; i < node->in_count; i++) {
        descs[i] = att_graph_desc(graph, node->in[i]);
        cost.bytes += value_bytes(graph, node->in[i]);
    }
    att_desc *out = descs + node->in_count;
    for (int i = 0; i < node->out_count; i++)
        out[i] = graph->values.items[node->out[i]].desc;
    cost.bytes += value_bytes(graph, node->out[0]);
    att_op_cost(node->op, descs, out, node->attrs, &cost);
    if (descs != few)
        att_free(graph->context, descs);
    return cost;
}

static void add_cost(att_cost *sum, att_cost cost)
{
    sum->flops += cost.flops;
    sum->macs += cost.macs;
    sum->bytes += cost.bytes;
}

att_cost att_graph_cost(const att_graph *graph)
{
    att_cost sum = {0};
    for (int i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.items[i].stage == ATT_BODY)
            add_cost(&sum, att_node_cost(graph, &graph->nodes.items[i]));
    return sum;
}

static bool any_needed(const att_node *node, const bool *needed)
{
    for (int i = 0; i < node->out_count; i++)
        if (needed[node->out[i]])
            return true;
    return false;
}

att_status att_graph_inference_cost(const att_graph *graph, att_cost *cost)
{
    bool *needed = att_allocate_array(graph->context, (size_t)graph->values.count + 1, sizeof *needed);
    *cost = (att_cost){0};
    if (!needed)
        return att_fail_memory(graph->context, (size_t)graph->values.count, "the cost of a graph");
    for (int i = 0; i < graph->outputs.count; i++)
        if (!graph->outputs.items[i].probe)
            needed[graph->outputs.items[i].value] = true;
    for (int i = graph->nodes.count - 1; i >= 0; i--) {
        const att_node *node = &graph->nodes.items[i];
        const bool passes = node->op->flags & ATT_OP_TRAIN_ONLY; /* it hands on in[0] */
        if (!any_needed(node, needed))
            continue;
        for (int k = 0; k < (passes ? 1 : node->in_count); k++)
            if (node->in[k] != ATT_NONE)
                needed[node->in[k]] = true;
        if (node->stage == ATT_BODY && !passes)
            add_cost(cost, att_node_cost(graph, node));
    }
    att_free(graph->context, needed);
    return ATT_OK;
}
