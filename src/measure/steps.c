#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "measure/instrument.h"

static const att_node *maker_of(const att_graph *graph, att_value value)
{
    int node = graph->values.items[value].node;
    return node < 0 ? NULL : &graph->nodes.items[node];
}

static bool is_op(const att_node *node, const char *op)
{
    return node && strcmp(node->op->name, op) == 0;
}

/* Ops whose output is their first input, times something. */
static bool is_gate(const att_node *node)
{
    return is_op(node, "scale") || is_op(node, "drop_path") || is_op(node, "gate") || is_op(node, "pixel_gate");
}

static att_value before_gates(const att_graph *graph, att_value branch)
{
    att_value inner = branch;
    for (const att_node *node = maker_of(graph, inner); is_gate(node); node = maker_of(graph, inner))
        inner = node->in[0];
    return inner;
}

/* What follows an addition: its ReLU's output where it has one. */
static att_value after_relu(const att_graph *graph, att_value sum)
{
    for (int i = 0; i < graph->nodes.count; i++)
        if (is_op(&graph->nodes.items[i], "relu") && graph->nodes.items[i].in[0] == sum)
            return graph->nodes.items[i].out[0];
    return sum;
}

static bool is_addition(const att_graph *graph, const att_node *node)
{
    if (!is_op(node, "add"))
        return false;
    const att_desc *x = &graph->values.items[node->in[0]].desc, *branch = &graph->values.items[node->in[1]].desc;
    return x->kind == ATT_SAMPLE && branch->kind == ATT_SAMPLE && x->shape.rank >= 2;
}

/* Of additions to the same x_t only the last is a step: StepNet guesses with the ones before. */
static bool is_step(const att_graph *graph, const att_node *node)
{
    if (!is_addition(graph, node))
        return false;
    for (const att_node *later = node + 1; later < graph->nodes.items + graph->nodes.count; later++)
        if (is_addition(graph, later) && later->in[0] == node->in[0])
            return false;
    return true;
}

/* Whether x_t is what another step made. */
static bool continues(const att_graph *graph, att_value before)
{
    const att_node *maker = maker_of(graph, before);
    if (is_op(maker, "relu"))
        maker = maker_of(graph, maker->in[0]);
    return maker && is_step(graph, maker);
}

static att_residual_step step_of(const att_graph *graph, int index)
{
    const att_node *node = &graph->nodes.items[index];
    att_residual_step step = {.node = index, .before = node->in[0], .after = after_relu(graph, node->out[0])};
    step.branch = before_gates(graph, node->in[1]);
    if (step.branch == node->in[1] && step.after == node->out[0])
        step.branch = ATT_NONE;
    step.begins = !continues(graph, step.before);
    snprintf(step.scope, sizeof step.scope, "%s", node->scope);
    return step;
}

bool att_residual_step_next(const att_graph *graph, int after, att_residual_step *step)
{
    for (int i = after + 1; i < graph->nodes.count; i++) {
        if (!is_step(graph, &graph->nodes.items[i]))
            continue;
        *step = step_of(graph, i);
        return true;
    }
    return false;
}

/* "blocks.3" of "blocks.3.add1"; a name without a dot stays. */
static void cut_last_part(char *scope)
{
    char *dot = strrchr(scope, '.');
    if (dot)
        *dot = '\0';
}

bool att_residual_block_next(const att_graph *graph, int after, att_residual_step *block)
{
    att_residual_step next;
    if (!att_residual_step_next(graph, after, block))
        return false;
    cut_last_part(block->scope);
    block->branch = ATT_NONE;
    while (att_residual_step_next(graph, block->node, &next)) {
        cut_last_part(next.scope);
        if (strcmp(next.scope, block->scope) != 0)
            break;
        block->node = next.node;
        block->after = next.after;
    }
    return true;
}

static bool has_output(const att_graph *graph, const char *name)
{
    for (int i = 0; i < graph->outputs.count; i++)
        if (strcmp(graph->outputs.items[i].name, name) == 0)
            return true;
    return false;
}

void att_asking_step_norms(att_asking *asking, const att_residual_step *step)
{
    att_graph *graph = att_asking_graph(asking);
    char name[256];
    snprintf(name, sizeof name, "%s.step_norms", step->scope);
    if (!has_output(graph, name)) {
        att_graph_scope(graph, step->scope);
        att_graph_probe(graph, name, att_step_norms(graph, step->before, step->after, step->branch));
    }
    att_asking_row(asking, name, 1);
}

double att_nsi_attention(const float *row)
{
    return (double)row[2] / (double)row[0];
}

double att_nsi_unit(const float *row)
{
    return (double)row[1] / (double)row[0];
}
