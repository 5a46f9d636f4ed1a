/* The graph of the gradients: the explorer's, with the loss seed . logits and the outputs whose gradients are read. */
#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "engine/graph/graph.h"
#include "engine/ops/list.h"
#include "networks/tasks/task.h"
#include "study/relevance/method.h"

/* Names of the outputs with gradients, and a NULL. */
typedef struct gradients {
    char (*names)[ATT_RELEVANCE_NAME];
    const char **list;
    int count;
} gradients;

/* Whether the layer can be a step of the way of tokens. */
static bool is_step(const att_explored_layer *layer)
{
    return !layer->attrs.window_h && layer->queries == layer->tokens;
}

static void add_output(gradients *g, att_graph *graph, const char *what, int number, att_value value)
{
    char *name = g->names[g->count];
    if (number < 0)
        snprintf(name, ATT_RELEVANCE_NAME, "relevance.%s", what);
    else
        snprintf(name, ATT_RELEVANCE_NAME, "relevance.%s.%d", what, number);
    g->list[g->count++] = name;
    att_graph_output(graph, name, value);
}

/* The values of a layer, [N, value heads x e]. */
static att_value values_of(att_graph *graph, const att_explored_layer *layer)
{
    const att_node node = *att_graph_producer(graph, layer->made);
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    if (node.op != &att_op_attention)
        return node.in[0];
    att_attention_operands(graph, &node, operand);
    const att_attention_operand *v = &operand[ATT_ATTENTION_V];
    return att_slice_channels(graph, node.in[v->input], v->offset, v->heads * v->width);
}

static void add_layers(const att_relevance *r, att_graph *graph, gradients *g)
{
    char name[ATT_RELEVANCE_NAME];
    for (int l = 0; l < r->explorer->layer_count && graph->status == ATT_OK; l++) {
        const att_explored_layer *layer = &r->explorer->layers[l];
        if (!is_step(layer))
            continue;
        add_output(g, graph, "output", l, layer->output);
        snprintf(name, sizeof name, "relevance.values.%d", l);
        att_graph_output(graph, name, values_of(graph, layer));
    }
}

static void add_loss(const att_relevance *r, att_graph *graph, att_value logits)
{
    const att_shape row = att_shape_of(1, r->classes);
    att_value seed = att_graph_input(graph, "relevance.seed", att_graph_dtype(graph), att_shape_of(r->classes));
    att_value loss = att_matmul(graph, att_reshape(graph, seed, row), att_reshape(graph, logits, row), true, 1);
    att_graph_output(graph, "loss", att_reshape(graph, loss, (att_shape){0}));
}

static att_status compile(att_relevance *r, att_graph *graph, gradients *g)
{
    const att_network *network = r->explorer->network;
    const att_value logits = att_graph_find_output(graph, r->logits_name);
    const size_t parameters = (size_t)graph->parameters.count;
    bool *frozen;
    graph->outputs.count = 0;
    att_graph_scope(graph, "relevance");
    add_layers(r, graph, g);
    if (r->features.value != ATT_NONE)
        add_output(g, graph, "features", -1, r->features.value);
    if (r->image_name)
        g->list[g->count++] = r->image_name;
    add_loss(r, graph, logits);
    ATT_TRY(att_new(r->context, &frozen, parameters + 1, "the parameters of a network"));
    memset(frozen, true, parameters);
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_GRADIENT;
    options.precision = network->precision;
    options.backend = network->backend;
    options.gradients = g->list;
    options.frozen = frozen;
    options.group = 1;
    options.lanes = 1;
    const att_status status = att_plan_compile(graph, &options, &r->plan);
    att_free(r->context, frozen);
    return status;
}

att_status att_relevance_compile(att_relevance *r)
{
    const size_t most = (size_t)r->explorer->layer_count + 3;
    gradients g = {.names = att_allocate_array(r->context, most, sizeof *g.names),
                   .list = att_allocate_array(r->context, most, sizeof *g.list)};
    att_graph *graph = att_graph_copy(r->explorer->graph);
    const att_status status = g.names && g.list && graph
                                  ? compile(r, graph, &g)
                                  : att_fail_memory(r->context, most * sizeof *g.names, "the graph of gradients");
    att_graph_destroy(&graph);
    att_free(r->context, g.names);
    att_free(r->context, g.list);
    return status;
}
