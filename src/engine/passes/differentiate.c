#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "engine/passes/passes.h"

/* A summed value, and the parameter or total that it contributes to. owner: index of the parameter, or parameter count
 * + index of the total. */
typedef struct contribution {
    att_value value;
    int owner;
} contribution;

/* The state of the walk over the forward nodes, last to first. Arrays indexed by value cover the forward values only.
 */
struct att_backward {
    att_graph *graph;
    int forward_nodes, forward_values;
    bool *needs_gradient; /* by forward value: the value, or one that it depends on, needs a gradient */
    att_value *gradient;  /* by forward value; ATT_NONE until there is one */
    int *total;           /* by forward value: index of the total that sums its gradient over the samples; -1: none */
    int *recomputed;      /* by forward node: the node that recomputes it in the backward pass; -1: none yet */
    int node;             /* the forward node whose backward rule runs */
    ATT_LIST(contribution) contributions;
};

static const att_node *rule_node(const att_backward *backward)
{
    return &backward->graph->nodes.items[backward->node];
}

att_graph *att_backward_graph(att_backward *backward)
{
    return backward->graph;
}

const att_op *att_backward_op(const att_backward *backward)
{
    return rule_node(backward)->op;
}

const void *att_backward_attrs(const att_backward *backward)
{
    return rule_node(backward)->attrs;
}

/* Whether only the gradients of parameters, of which none is trained, would read the node's input: a batch norm with
 * fixed statistics scales the gradient of its output. Then the output is kept in place of the input. */
static bool has_fixed_factors(const att_backward *backward, const att_node *of)
{
    bool trained = false;
    for (int j = 1; j < of->in_count; j++)
        trained |= of->in[j] != ATT_NONE && backward->needs_gradient[of->in[j]];
    return of->op->in_training && !trained; /* other norms have been replaced */
}

static bool is_recomputed(const att_backward *backward, int node)
{
    const att_graph *graph = backward->graph;
    const att_node *of = &graph->nodes.items[node];
    if (of->stage != ATT_BODY || has_fixed_factors(backward, of))
        return false;
    if (!(of->op->flags & ATT_OP_RECOMPUTE_WITH_INPUT))
        return (of->op->flags & ATT_OP_RECOMPUTE) != 0;
    int producer = graph->values.items[of->in[0]].node;
    return producer >= 0 && is_recomputed(backward, producer);
}

/* The value itself or, if it is cheap to compute, its copy from a recomputed node, so that the original need not be
 * kept for the backward pass. */
static att_value available_value(att_backward *backward, att_value value)
{
    att_graph *graph = backward->graph;
    int producer = value == ATT_NONE ? -1 : graph->values.items[value].node;
    if (producer < 0 || producer >= backward->forward_nodes || !is_recomputed(backward, producer))
        return value;
    att_node node = graph->nodes.items[producer];
    if (backward->recomputed[producer] < 0) {
        att_value *in = att_graph_values(graph, node.in_count);
        for (int i = 0; in && i < node.in_count; i++)
            in[i] = available_value(backward, node.in[i]);
        if (!in || att_emit(graph, node.op->name, node.attrs, in, node.in_count, NULL) == ATT_NONE)
            return ATT_NONE;
        backward->recomputed[producer] = graph->nodes.count - 1;
    }
    for (int i = 0; i < node.out_count; i++)
        if (node.out[i] == value)
            return graph->nodes.items[backward->recomputed[producer]].out[i];
    return ATT_NONE;
}

att_value att_backward_in(att_backward *backward, int i)
{
    return i < rule_node(backward)->in_count ? available_value(backward, rule_node(backward)->in[i]) : ATT_NONE;
}

att_value att_backward_out(att_backward *backward, int i)
{
    return available_value(backward, rule_node(backward)->out[i]);
}

att_desc att_backward_in_desc(const att_backward *backward, int i)
{
    return backward->graph->values.items[rule_node(backward)->in[i]].desc;
}

att_value att_backward_gradient(att_backward *backward, int i)
{
    return backward->gradient[rule_node(backward)->out[i]];
}

bool att_backward_needs_gradient(const att_backward *backward, int i)
{
    const att_node *node = rule_node(backward);
    return i < node->in_count && node->in[i] != ATT_NONE && backward->needs_gradient[node->in[i]];
}

static void add_summed(att_backward *backward, att_value gradient, int owner)
{
    if (att_list_reserve(backward->graph, (void *)&backward->contributions.items, backward->contributions.count,
                         &backward->contributions.capacity, sizeof *backward->contributions.items))
        backward->contributions.items[backward->contributions.count++] =
            (contribution){.value = gradient, .owner = owner};
}

/* A gradient that the epilogue computes exists once, not per sample. Converts it to a summed value, which can be added
 * to the sums over samples. */
static att_value as_summed(att_graph *graph, att_value gradient)
{
    att_desc desc = graph->values.items[gradient].desc;
    return desc.kind == ATT_SUMMED ? gradient : att_emit(graph, "sum_samples", NULL, &gradient, 1, NULL);
}

/* The gradient of a derived value is summed over the samples before the backward rule of its producer is applied. */
static void add_to_total(att_backward *backward, att_value value, att_value gradient)
{
    att_graph *graph = backward->graph;
    if (backward->total[value] < 0) {
        att_graph_add_total(graph, graph->values.items[value].desc);
        backward->total[value] = graph->totals.count - 1;
    }
    add_summed(backward, gradient, graph->parameters.count + backward->total[value]);
}

static void add_gradient(att_backward *backward, att_value value, att_value gradient)
{
    att_value *sum = &backward->gradient[value], terms[] = {*sum, gradient};
    *sum = *sum == ATT_NONE ? gradient : att_emit(backward->graph, "add", NULL, terms, 2, NULL);
}

void att_backward_add_gradient(att_backward *backward, int i, att_value gradient)
{
    att_graph *graph = backward->graph;
    if (graph->status != ATT_OK || gradient == ATT_NONE)
        return;
    att_value value = rule_node(backward)->in[i];
    int parameter = att_graph_parameter_of(graph, value);
    if (parameter >= 0)
        add_summed(backward, as_summed(graph, gradient), parameter);
    else if (graph->values.items[gradient].desc.kind == ATT_SUMMED)
        add_to_total(backward, value, gradient);
    else
        add_gradient(backward, value, gradient);
}

static void mark_needs_gradient(att_backward *backward, const att_gradient_request *request)
{
    const bool *frozen = request->frozen;
    att_graph *graph = backward->graph;
    for (int i = 0; i < graph->parameters.count; i++)
        backward->needs_gradient[graph->parameters.items[i].value] =
            !graph->parameters.items[i].buffer && !(frozen && frozen[i]);
    for (int i = 0; i < request->value_count; i++)
        backward->needs_gradient[request->values[i]] = true;
    for (int i = 0; i < backward->forward_nodes; i++) {
        const att_node *node = &graph->nodes.items[i];
        bool needs_gradient = false;
        for (int j = 0; j < node->in_count && !(node->op->flags & ATT_OP_CONSTANT); j++)
            needs_gradient |= node->in[j] != ATT_NONE && backward->needs_gradient[node->in[j]];
        for (int j = 0; j < node->out_count; j++)
            backward->needs_gradient[node->out[j]] |= needs_gradient;
    }
}

/* Adds the sum over the samples to the gradients that other derived values contributed. The gradients of the outputs of
 * `node` are then complete. */
static void add_total_gradients(att_backward *backward, const att_node *node)
{
    for (int i = 0; i < node->out_count; i++) {
        int total = backward->total[node->out[i]];
        if (total >= 0)
            add_gradient(backward, node->out[i], backward->graph->totals.items[total]);
    }
}

static void apply_rule(att_backward *backward, int i)
{
    att_graph *graph = backward->graph;
    att_node node = graph->nodes.items[i];
    add_total_gradients(backward, &node);
    if (backward->gradient[node.out[0]] == ATT_NONE || !backward->needs_gradient[node.out[0]])
        return;
    backward->node = i;
    graph->scope = node.scope;
    if (node.op->backward)
        node.op->backward(backward);
    else
        att_graph_fail(graph, att_fail(graph->context, ATT_ERR_UNSUPPORTED, "%s%sop \"%s\" has no backward rule",
                                       node.scope, att_scope_separator(node.scope), node.op->name));
}

/* owner[value]: the parameter or total that the value contributes to, -1 for none. */
static att_status make_owner(att_backward *backward, int **out)
{
    att_graph *graph = backward->graph;
    int *owner;
    ATT_TRY(att_new(graph->context, &owner, (size_t)graph->values.count, "a plan"));
    for (int i = 0; i < graph->values.count; i++)
        owner[i] = -1;
    for (int i = 0; i < backward->contributions.count; i++)
        owner[backward->contributions.items[i].value] = backward->contributions.items[i].owner;
    *out = owner;
    return ATT_OK;
}

/* Makes the requested gradients outputs of the graph. */
static att_status name_gradients(att_backward *backward, const att_gradient_request *request)
{
    att_graph *graph = backward->graph;
    for (int i = 0; i < request->value_count; i++) {
        const char *of = request->names[i];
        att_value gradient = backward->gradient[request->values[i]];
        if (gradient == ATT_NONE)
            return att_fail(graph->context, ATT_ERR_ARGUMENT,
                            "no gradient reaches \"%s\": the loss does not depend on it", of);
        att_text name = {.context = graph->context};
        att_text_append(&name, "%s.grad", of);
        if (!name.failed)
            att_graph_output(graph, name.data, gradient);
        bool failed = name.failed;
        att_text_free(&name);
        if (failed)
            return att_fail_memory(graph->context, strlen(of), "the name of a gradient");
    }
    return graph->status;
}

static att_status differentiate(att_backward *backward, att_value loss, const att_gradient_request *request,
                                int **owner)
{
    att_graph *graph = backward->graph;
    att_context *context = graph->context;
    size_t values = (size_t)backward->forward_values, nodes = (size_t)backward->forward_nodes;
    backward->needs_gradient = att_allocate_array(context, values, sizeof *backward->needs_gradient);
    backward->gradient = att_allocate_array(context, values, sizeof *backward->gradient);
    backward->total = att_allocate_array(context, values, sizeof *backward->total);
    backward->recomputed = att_allocate_array(context, nodes, sizeof *backward->recomputed);
    if (!backward->needs_gradient || !backward->gradient || !backward->total || !backward->recomputed)
        return att_fail_memory(context, values * sizeof *backward->gradient, "a plan");
    for (size_t i = 0; i < values; i++) {
        backward->gradient[i] = ATT_NONE;
        backward->total[i] = -1;
    }
    for (size_t i = 0; i < nodes; i++)
        backward->recomputed[i] = -1;
    mark_needs_gradient(backward, request);
    backward->gradient[loss] = att_emit(graph, "loss_seed", NULL, &loss, 1, NULL);
    for (int i = backward->forward_nodes - 1; i >= 0 && graph->status == ATT_OK; i--)
        apply_rule(backward, i);
    ATT_TRY(graph->status);
    ATT_TRY(name_gradients(backward, request));
    return make_owner(backward, owner);
}

att_status att_graph_differentiate(att_graph *graph, att_value loss, const att_gradient_request *request, int **owner)
{
    att_backward backward = {
        .graph = graph, .forward_nodes = graph->nodes.count, .forward_values = graph->values.count};
    att_status status = differentiate(&backward, loss, request, owner);
    att_free(graph->context, backward.needs_gradient);
    att_free(graph->context, backward.gradient);
    att_free(graph->context, backward.total);
    att_free(graph->context, backward.recomputed);
    att_free(graph->context, backward.contributions.items);
    return status;
}
