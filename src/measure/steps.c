#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "measure/instrument.h"

static const att_node *maker_of(const att_graph *graph, att_value value)
{
    int node = graph->values.items[value].node;
    return node < 0 ? NULL : &graph->nodes.items[node];
}

/* Ops whose output is their first input, times something. */
static bool is_gate(const att_node *node)
{
    return strcmp(node->op->name, "scale") == 0 || strcmp(node->op->name, "drop_path") == 0;
}

static att_value before_gates(const att_graph *graph, att_value branch)
{
    att_value inner = branch;
    for (const att_node *node = maker_of(graph, inner); node && is_gate(node); node = maker_of(graph, inner))
        inner = node->in[0];
    return inner == branch ? ATT_NONE : inner;
}

static bool is_step(const att_graph *graph, const att_node *node)
{
    if (strcmp(node->op->name, "add") != 0)
        return false;
    const att_desc *x = &graph->values.items[node->in[0]].desc, *branch = &graph->values.items[node->in[1]].desc;
    return x->kind == ATT_SAMPLE && branch->kind == ATT_SAMPLE && x->shape.rank >= 2;
}

bool att_residual_step_next(const att_graph *graph, int after, att_residual_step *step)
{
    for (int i = after + 1; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (!is_step(graph, node))
            continue;
        *step = (att_residual_step){i, node->in[0], node->out[0], before_gates(graph, node->in[1]), ""};
        snprintf(step->scope, sizeof step->scope, "%s", node->scope);
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
