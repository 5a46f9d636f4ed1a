#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "networks/tasks/task.h"
#include "study/measure/instrument.h"

/* Whether the node multiplies by the gate of an attention module. */
static bool is_gate(const att_node *node)
{
    return strcmp(node->op->name, "gate") == 0 || strcmp(node->op->name, "pixel_gate") == 0;
}

/* Whether the operation's output is its first input multiplied by a factor: a gate, LayerScale or drop path. */
static bool is_product(const att_node *node)
{
    return is_gate(node) || strcmp(node->op->name, "scale") == 0 || strcmp(node->op->name, "drop_path") == 0;
}

static att_value before_products(const att_graph *graph, att_value branch)
{
    for (const att_node *node = att_graph_producer(graph, branch); node && is_product(node);
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

static bool is_factor(const att_graph *graph, const att_node *node)
{
    return is_product(node) || is_gate_plus_one(graph, node);
}

static att_value before_factors(const att_graph *graph, att_value branch)
{
    const att_node *node;
    while ((node = att_graph_producer(graph, branch)) && is_factor(graph, node))
        branch = node->in[0];
    return branch;
}

/* Returns the branch without the gates of attention modules, but with its other factors. If those follow a gate, they
 * are applied again. */
static att_value without_gates(att_graph *graph, att_value branch)
{
    const att_node *found = att_graph_producer(graph, branch);
    if (!found || !is_factor(graph, found))
        return branch;
    const att_node node = *found; /* a copy, because adding nodes moves them */
    bool is_other = !is_gate(&node) && !is_gate_plus_one(graph, &node);
    att_value in[2] = {without_gates(graph, node.in[0]), node.in_count > 1 ? node.in[1] : ATT_NONE};
    if (!is_other || in[0] == node.in[0])
        return is_other ? branch : in[0];
    return att_emit(graph, node.op->name, node.attrs, in, node.in_count, NULL);
}

/* Whether the node adds one row to every token (att_repeat_tokens()), as modules do that broadcast a context. */
static bool adds_one_row(const att_graph *graph, const att_node *node)
{
    const att_node *rows = att_graph_producer(graph, node->in[1]);
    return rows && strcmp(rows->op->name, "token_mean_grad") == 0;
}

/* Whether the node belongs to the head of a task, in which maps of several sizes are added up. */
static bool is_in_head(const att_graph *graph, const att_node *node)
{
    return att_task_of_parameter(graph->context, node->scope) != NULL;
}

static bool is_step(const att_graph *graph, const att_node *node)
{
    if (!is_add(node) || node->copy || is_in_head(graph, node) || is_gate_plus_one(graph, node) ||
        adds_one_row(graph, node))
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

/* Whether both scopes are parts of one block, "blocks.3.add1" and "blocks.3.norm1". */
static bool are_in_one_block(const char *a, const char *b)
{
    const char *dot = strrchr(a, '.');
    return dot && strncmp(a, b, (size_t)(dot - a) + 1) == 0;
}

/* Whether the sum is the stream to which a branch is added later. */
static bool is_added_to(const att_graph *graph, att_value sum)
{
    for (int i = graph->values.items[sum].node + 1; i < graph->nodes.count; i++)
        if (graph->nodes.items[i].in[0] == sum && is_step(graph, &graph->nodes.items[i]))
            return true;
    return false;
}

/* Whether the node is the norm of a post-norm block: it makes the stream from the sum. */
static bool norms_stream(const att_graph *graph, const att_node *node, att_value sum)
{
    const bool norms = strcmp(node->op->name, "layer_norm") == 0 || strcmp(node->op->name, "rms_norm") == 0;
    return norms && are_in_one_block(att_graph_producer(graph, sum)->scope, node->scope) && !is_added_to(graph, sum);
}

/* Returns the output of the ReLU or of the block's norm after a sum; the sum itself if there is neither. */
static att_value after_sum(const att_graph *graph, att_value sum)
{
    for (int i = graph->values.items[sum].node + 1; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (!node->copy && node->in[0] == sum &&
            (strcmp(node->op->name, "relu") == 0 || norms_stream(graph, node, sum)))
            return node->out[0];
    }
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
        att_value branch = before_factors(graph, node->in[1]), end = after_sum(graph, node->out[0]);
        bool has_factor = branch != node->in[1], ends_later = end != node->out[0];
        *step = (att_residual_step){.node = i,
                                    .before = node->in[0],
                                    .after = end,
                                    .branch = has_factor || ends_later ? branch : ATT_NONE,
                                    .added = has_factor ? node->in[1] : ATT_NONE,
                                    .begins = begins_stage(graph, after, node->in[0])};
        snprintf(step->scope, sizeof step->scope, "%s", node->scope);
        return true;
    }
    return false;
}

/* Whether node `gate` is one of the factors of the branch. */
static bool has_factor_at(const att_graph *graph, att_value branch, int gate)
{
    const att_node *node;
    for (; (node = att_graph_producer(graph, branch)) && is_factor(graph, node); branch = node->in[0])
        if (graph->values.items[branch].node == gate ||
            (is_gate_plus_one(graph, node) && has_factor_at(graph, node->in[1], gate)))
            return true;
    return false;
}

bool att_step_of_gate(const att_graph *graph, int gate, att_residual_step *step)
{
    step->node = -1;
    while (att_residual_step_next(graph, step->node, step))
        if (has_factor_at(graph, graph->nodes.items[step->node].in[1], gate))
            return true;
    return false;
}

/* Truncates "blocks.3.add1" to "blocks.3". A name without a dot is unchanged. */
static void truncate_scope(char *scope)
{
    char *dot = strrchr(scope, '.');
    if (dot)
        *dot = '\0';
}

/* As att_residual_step_next(), but consecutive additions of one block ("blocks.3.add1", "blocks.3.add2") are one step,
 * "blocks.3". */
static bool residual_block_next(const att_graph *graph, int after, att_residual_step *block)
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

int att_requests_gate(const att_requests *requests, int after)
{
    int of_channels = att_requests_node(requests, "gate", after),
        of_pixels = att_requests_node(requests, "pixel_gate", after);
    if (of_channels < 0 || of_pixels < 0)
        return of_channels < 0 ? of_pixels : of_channels;
    return of_channels < of_pixels ? of_channels : of_pixels;
}

bool att_is_pixel_gate(const att_node *node)
{
    return strcmp(node->op->name, "pixel_gate") == 0;
}

void att_requests_gate_values(att_requests *requests, int gate, double constant)
{
    const att_node *node = &att_requests_graph(requests)->nodes.items[gate];
    char name[256];
    snprintf(name, sizeof name, "%s.values", node->scope);
    att_requests_value(requests, name, node->in[1], constant);
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

att_value att_step_branch(att_graph *graph, const att_residual_step *step, att_dt dt)
{
    att_value added = graph->nodes.items[step->node].in[1];
    if (dt == ATT_DT_ALL)
        return before_factors(graph, added);
    att_graph_scope(graph, step->scope);
    graph->copying = true;
    att_value branch = without_gates(graph, added);
    graph->copying = false;
    return branch;
}

att_value att_norms_of_step(att_graph *graph, const att_residual_step *step, att_dt dt)
{
    if (step->branch == ATT_NONE)
        return att_step_norms(graph, step->before, step->after, ATT_NONE, ATT_NONE);
    const att_node *node = &graph->nodes.items[step->node];
    att_value added = node->in[1], sum = node->out[0], branch = att_step_branch(graph, step, dt);
    bool has_factor = branch != added, has_activation = step->after != sum;
    return att_step_norms(graph, step->before, step->after, has_factor || has_activation ? branch : ATT_NONE,
                          has_factor ? added : ATT_NONE);
}

const char *const att_per_choices[] = {"addition", "block", NULL};

bool att_step_next(const att_graph *graph, bool per_block, att_residual_step *step)
{
    return per_block ? residual_block_next(graph, step->node, step) : att_residual_step_next(graph, step->node, step);
}

bool att_requests_has_step(const att_requests *requests, const att_residual_step *step)
{
    return att_requests_node(requests, "add", step->node - 1) == step->node;
}

void att_requests_step_series(att_requests *requests, bool per_block, const char *statistic, const char *reading)
{
    for (att_residual_step step = {.node = -1}; att_step_next(att_requests_graph(requests), per_block, &step);) {
        if (!att_requests_has_step(requests, &step))
            continue;
        att_requests_reading(requests, step.scope, -1, statistic, reading);
        if (step.begins)
            att_requests_exclude(requests);
    }
}

void att_requests_step_norms(att_requests *requests, const att_residual_step *step, att_dt dt)
{
    att_graph *graph = att_requests_graph(requests);
    char name[256];
    snprintf(name, sizeof name, "%s.step_norms%s", step->scope, dt == ATT_DT_ALL ? "_all" : "");
    if (!has_output(graph, name)) {
        att_graph_scope(graph, step->scope);
        att_graph_probe(graph, name, att_norms_of_step(graph, step, dt));
    }
    att_requests_row(requests, name, !step->begins);
}

int att_requests_steps(att_requests *requests, bool per_block, att_dt dt)
{
    int count = 0;
    for (att_residual_step step = {.node = -1}; att_step_next(att_requests_graph(requests), per_block, &step);)
        if (att_requests_has_step(requests, &step)) {
            att_requests_step_norms(requests, &step, dt);
            count++;
        }
    return count;
}

const char *const att_dt_choices[] = {"gates", "all", NULL};

const char *const att_nsi_readings[] = {"attention", "gated", "unit", NULL};

double att_step_size(const float *row, att_reading reading)
{
    static const int columns[] = {[ATT_READING_ATTENTION] = 2, [ATT_READING_GATED] = 3, [ATT_READING_UNIT] = 1};
    return (double)row[columns[reading]];
}

double att_nsi(const float *row, att_reading reading)
{
    return att_step_size(row, reading) / (double)row[0];
}
