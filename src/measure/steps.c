#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "measure/instrument.h"

/* Whether the operation's output is its first input multiplied by a factor. */
static bool is_gate(const att_node *node)
{
    static const char *const gates[] = {"scale", "drop_path", "gate", "pixel_gate"};
    for (size_t i = 0; i < sizeof gates / sizeof *gates; i++)
        if (strcmp(node->op->name, gates[i]) == 0)
            return true;
    return false;
}

static att_value before_products(const att_graph *graph, att_value branch)
{
    for (const att_node *node = att_graph_producer(graph, branch); node && is_gate(node);
         node = att_graph_producer(graph, branch))
        branch = node->in[0];
    return branch;
}

static bool is_add(const att_node *node)
{
    return strcmp(node->op->name, "add") == 0;
}

/* x + gate (.) x is a gate with the factor 1 + gate, not a residual step. */
static bool is_gate_plus_one(const att_graph *graph, const att_node *node)
{
    return is_add(node) && node->in[1] != node->in[0] && before_products(graph, node->in[1]) == node->in[0];
}

static att_value before_gates(const att_graph *graph, att_value branch)
{
    const att_node *node;
    while ((node = att_graph_producer(graph, branch)) && (is_gate(node) || is_gate_plus_one(graph, node)))
        branch = node->in[0];
    return branch;
}

/* Whether the node adds one row to every token (att_repeat_tokens()), as modules do that broadcast a context. */
static bool adds_one_row(const att_graph *graph, const att_node *node)
{
    const att_node *rows = att_graph_producer(graph, node->in[1]);
    return rows && strcmp(rows->op->name, "token_mean_grad") == 0;
}

static bool is_step(const att_graph *graph, const att_node *node)
{
    if (!is_add(node) || node->copy || is_gate_plus_one(graph, node) || adds_one_row(graph, node))
        return false;
    const att_desc *x = &graph->values.items[node->in[0]].desc, *branch = &graph->values.items[node->in[1]].desc;
    return x->kind == ATT_SAMPLE && branch->kind == ATT_SAMPLE && x->shape.rank >= 2;
}

/* Whether the node is part of the branch of a later step: the stream to which that step adds its branch was computed
 * before the node. The branch of StepNet contains such a sum, its first guess of the next state. */
static bool is_within_branch(const att_graph *graph, int index)
{
    for (int i = index + 1; i < graph->nodes.count; i++) {
        const att_node *later = &graph->nodes.items[i];
        if (is_step(graph, later) && graph->values.items[later->in[0]].node < index)
            return true;
    }
    return false;
}

/* Returns the output of the ReLU after a sum; the sum itself if there is no ReLU. */
static att_value after_activation(const att_graph *graph, att_value sum)
{
    for (int i = 0; i < graph->nodes.count; i++)
        if (strcmp(graph->nodes.items[i].op->name, "relu") == 0 && graph->nodes.items[i].in[0] == sum &&
            !graph->nodes.items[i].copy)
            return graph->nodes.items[i].out[0];
    return sum;
}

static bool begins_stage(const att_graph *graph, int previous, att_value before)
{
    if (previous < 0)
        return true;
    const att_value_info *values = graph->values.items;
    return !att_shape_equal(values[graph->nodes.items[previous].out[0]].desc.shape, values[before].desc.shape);
}

bool att_residual_step_next(const att_graph *graph, int after, att_residual_step *step)
{
    for (int i = after + 1; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (!is_step(graph, node) || is_within_branch(graph, i))
            continue;
        att_value branch = before_gates(graph, node->in[1]), end = after_activation(graph, node->out[0]);
        bool has_gate = branch != node->in[1], has_activation = end != node->out[0];
        *step = (att_residual_step){.node = i,
                                    .before = node->in[0],
                                    .after = end,
                                    .branch = has_gate || has_activation ? branch : ATT_NONE,
                                    .added = has_gate ? node->in[1] : ATT_NONE,
                                    .begins = begins_stage(graph, after, node->in[0])};
        snprintf(step->scope, sizeof step->scope, "%s", node->scope);
        return true;
    }
    return false;
}

/* Truncates "blocks.3.add1" to "blocks.3". A name without a dot is unchanged. */
static void truncate_scope(char *scope)
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
    truncate_scope(block->scope);
    block->branch = block->added = ATT_NONE;
    while (att_residual_step_next(graph, block->node, &next)) {
        truncate_scope(next.scope);
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

void att_requests_value(att_requests *requests, const char *name, att_value value, double constant)
{
    if (!has_output(att_requests_graph(requests), name))
        att_graph_probe(att_requests_graph(requests), name, value);
    att_requests_row(requests, name, constant);
}

void att_requests_step_norms(att_requests *requests, const att_residual_step *step)
{
    att_graph *graph = att_requests_graph(requests);
    char name[256];
    snprintf(name, sizeof name, "%s.step_norms", step->scope);
    if (!has_output(graph, name)) {
        att_graph_scope(graph, step->scope);
        att_graph_probe(graph, name, att_step_norms(graph, step->before, step->after, step->branch, step->added));
    }
    att_requests_row(requests, name, !step->begins);
}

const char *const att_nsi_readings[] = {"attention", "gated", "unit", NULL};

double att_nsi_attention(const float *row)
{
    return (double)row[2] / (double)row[0];
}

double att_nsi_gated(const float *row)
{
    return (double)row[3] / (double)row[0];
}

double att_nsi_unit(const float *row)
{
    return (double)row[1] / (double)row[0];
}
