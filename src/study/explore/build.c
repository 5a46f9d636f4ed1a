/* The network's graph with inputs for the changes, as a copy of all nodes (measure/clone.h): the output of an attention
 * layer becomes keep (.) o + even (.) m, where m is the output of uniform attention over the same keys, and a residual
 * branch keep (.) f, as far as the explorer's form asks for these changes. An unchanged network has keep = 1 and even =
 * 0, which changes no bit of its outputs. */
#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "engine/graph/graph.h"
#include "engine/ops/list.h"
#include "engine/ops/mixing.h"
#include "study/explore/explorer.h"
#include "study/measure/clone.h"
#include "study/measure/instrument.h"

enum { RELATIVE = ATT_ATTENTION_RELATIVE, ROWS = ATT_ATTENTION_ROWS, COLUMNS = ATT_ATTENTION_COLUMNS };
enum { KEYS = ATT_ATTENTION_KEYS };

typedef struct builder {
    att_explorer *explorer;
    const att_value *sums; /* the results of residual additions */
    int sum_count;
    att_value removed; /* the input of removed tokens; ATT_NONE: none */
} builder;

static void fail_memory(att_graph *graph, size_t bytes)
{
    att_graph_fail(graph, att_fail_memory(graph->context, bytes, "an explorer"));
}

/* Adds an input of `count` factors called `name`; `graph` fails if memory is exhausted. */
static att_value add_factors(builder *b, att_graph *graph, const char *name, int number, int64_t count,
                             att_factors *factors)
{
    snprintf(factors->name, sizeof factors->name, "explore.%s.%d", name, number);
    const bool wide = att_graph_dtype(graph) == ATT_F64;
    const size_t numbers = (size_t)count * (size_t)b->explorer->form.samples;
    factors->count = count;
    factors->values = att_arena_allocate(&b->explorer->arena, numbers * sizeof *factors->values);
    factors->wide = wide ? att_arena_allocate(&b->explorer->arena, numbers * sizeof *factors->wide) : NULL;
    if (!factors->values || (wide && !factors->wide))
        fail_memory(graph, numbers * sizeof *factors->wide);
    return att_graph_input(graph, factors->name, att_graph_dtype(graph), att_shape_of(count));
}

/* --- what a run keeps --------------------------------------------------------------------------------------------- */

static void keep(att_graph *graph, int number, att_kept what, att_value value, att_explored_layer *layer)
{
    if (value == ATT_NONE)
        return;
    snprintf(layer->kept_name[what], ATT_EXPLORER_NAME, "explore.layer.%d.%d", number, (int)what);
    att_graph_output(graph, layer->kept_name[what], value);
}

static void keep_relative(att_graph *graph, int number, att_value table, att_value sample, att_explored_layer *layer)
{
    if (table == ATT_NONE)
        return;
    layer->relative_rows = att_value_shape(graph, table).dims[0];
    keep(graph, number, ATT_KEPT_RELATIVE, att_shared_for_samples(graph, table, sample), layer);
}

static att_value input_of(const att_node *node, const att_value *in, int which)
{
    return which < node->in_count ? in[which] : ATT_NONE;
}

static void divide(att_graph *graph, const att_value *in, const att_explored_layer *layer,
                   att_attention_operand operand[ATT_ATTENTION_OPERANDS])
{
    att_desc desc[ATT_ATTENTION_OPERANDS];
    for (int o = 0; o < ATT_ATTENTION_OPERANDS; o++)
        desc[o] = att_graph_desc(graph, in[o]);
    att_attention_divide(desc, &layer->attrs, operand);
}

/* Queries, keys and terms of an attention with content. */
static void keep_scores(att_graph *graph, int number, const att_node *node, const att_value *in,
                        att_explored_layer *layer)
{
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    divide(graph, in, layer, operand);
    for (int o = ATT_ATTENTION_Q; o <= ATT_ATTENTION_K; o++)
        keep(graph, number, o == ATT_ATTENTION_Q ? ATT_KEPT_Q : ATT_KEPT_K,
             att_slice_channels(graph, in[operand[o].input], operand[o].offset, operand[o].heads * operand[o].width),
             layer);
    keep_relative(graph, number, input_of(node, in, RELATIVE), in[ATT_ATTENTION_Q], layer);
    keep(graph, number, ATT_KEPT_ROWS, input_of(node, in, ROWS), layer);
    keep(graph, number, ATT_KEPT_COLUMNS, input_of(node, in, COLUMNS), layer);
    if (input_of(node, in, KEYS) != ATT_NONE)
        keep(graph, number, ATT_KEPT_KEYS, att_exp(graph, in[KEYS]), layer);
}

/* The table of an attention without content. */
static void keep_table(att_graph *graph, int number, const att_node *node, att_value values, att_explored_layer *layer)
{
    att_attention_terms terms = att_mixing_terms(graph, node);
    att_value table = terms.relative == ATT_NONE ? att_join_shifts(graph, &layer->attrs, &terms) : terms.relative;
    keep_relative(graph, number, table, values, layer);
}

/* --- changes of heads --------------------------------------------------------------------------------------------- */

/* The output of attention with equal weights. */
static att_value uniform(att_graph *graph, const att_node *node, const att_value *in, int count)
{
    att_attention_attrs attrs = *ATT_ATTRS(node, attention);
    att_value equal[ATT_ATTENTION_MOST_INPUTS];
    for (int i = 0; i < ATT_ATTENTION_MOST_INPUTS; i++)
        equal[i] = i < ATT_ATTENTION_OPERANDS || i == KEYS ? input_of(&(att_node){.in_count = count}, in, i) : ATT_NONE;
    attrs.scale = 0;
    return att_emit(graph, node->op->name, &attrs, equal, count > KEYS ? count : ATT_ATTENTION_OPERANDS, NULL);
}

/* A constant map like `map`, whose rows are uniform. */
static att_value uniform_map(att_graph *graph, att_value map)
{
    att_shape shape = att_value_shape(graph, map);
    int64_t count = att_shape_count(shape), keys = shape.dims[shape.rank - 1];
    const bool wide = att_graph_dtype(graph) == ATT_F64;
    double *weights = att_allocate_array(graph->context, (size_t)count, sizeof *weights);
    float *narrow = (float *)weights;
    if (!weights) {
        fail_memory(graph, (size_t)count * sizeof *weights);
        return ATT_NONE;
    }
    for (int64_t i = 0; i < count; i++)
        if (wide)
            weights[i] = 1 / (double)keys;
        else
            narrow[i] = (float)(1 / (double)keys);
    att_value constant = att_graph_constant(graph, att_graph_dtype(graph), shape, weights);
    att_free(graph->context, weights);
    return constant;
}

static att_value uniform_mixing(att_graph *graph, const att_node *node, const att_value *in)
{
    att_value equal[3] = {in[0]};
    for (int i = 1; i < node->in_count && i < 3; i++)
        equal[i] = uniform_map(graph, in[i]);
    return att_emit(graph, node->op->name, node->attrs, equal, node->in_count, NULL);
}

/* keep (.) output */
static att_value keep_heads(builder *b, att_graph *graph, int number, att_value output, att_explored_layer *layer)
{
    if (!b->explorer->form.heads)
        return output;
    int64_t channels = att_value_shape(graph, output).dims[1];
    return att_gate(graph, output, add_factors(b, graph, "keep", number, channels, &layer->keep));
}

/* kept + even (.) equal */
static att_value add_even(builder *b, att_graph *graph, int number, att_value kept, att_value equal,
                          att_explored_layer *layer)
{
    int64_t channels = att_value_shape(graph, equal).dims[1];
    return att_add(graph, kept, att_gate(graph, equal, add_factors(b, graph, "even", number, channels, &layer->even)));
}

static att_explored_layer *add_layer(builder *b, att_graph *graph, const att_node *node)
{
    att_explorer *e = b->explorer;
    if (!att_list_grow(e->context, &e->layers, e->layer_count, &e->layer_room, sizeof *e->layers)) {
        fail_memory(graph, sizeof *e->layers);
        return NULL;
    }
    att_explored_layer *layer = &e->layers[e->layer_count++];
    *layer = (att_explored_layer){.scope = node->scope, .attrs = *ATT_ATTRS(node, attention)};
    size_t heads = (size_t)layer->attrs.heads;
    layer->changes = att_arena_allocate(&e->arena, heads * sizeof *layer->changes);
    layer->is_even = att_arena_allocate(&e->arena, heads * sizeof *layer->is_even);
    if (!layer->changes || !layer->is_even)
        fail_memory(graph, heads * sizeof *layer->changes);
    return layer;
}

static void describe_scores(att_graph *graph, const att_value *in, att_explored_layer *layer)
{
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    divide(graph, in, layer, operand);
    layer->queries = operand[ATT_ATTENTION_Q].tokens;
    layer->tokens = operand[ATT_ATTENTION_K].tokens;
    layer->width = operand[ATT_ATTENTION_Q].width;
}

/* Attention without content. */
static att_value change_mixing(builder *b, att_graph *graph, int number, const att_node *node, const att_value *in,
                               att_explored_layer *layer)
{
    const att_explorer_form *form = &b->explorer->form;
    att_value output = att_emit(graph, node->op->name, node->attrs, in, node->in_count, NULL);
    layer->made = output;
    layer->queries = layer->tokens = att_value_shape(graph, in[0]).dims[0];
    if (form->rows)
        keep_table(graph, number, node, in[0], layer);
    output = keep_heads(b, graph, number, output, layer);
    if (form->uniform)
        output = add_even(b, graph, number, output, uniform_mixing(graph, node, in), layer);
    return layer->output = output;
}

static att_value change_attention(builder *b, att_graph *graph, const att_node *node, const att_value *in)
{
    const att_explorer_form *form = &b->explorer->form;
    att_value with_keys[ATT_ATTENTION_MOST_INPUTS];
    att_explored_layer *layer = add_layer(b, graph, node);
    if (!layer)
        return ATT_NONE;
    int number = b->explorer->layer_count - 1, count = node->in_count;
    if (node->op != &att_op_attention)
        return change_mixing(b, graph, number, node, in, layer);
    for (int i = 0; i < ATT_ATTENTION_MOST_INPUTS; i++)
        with_keys[i] = input_of(node, in, i);
    if (b->removed != ATT_NONE) {
        const att_value own = with_keys[KEYS]; /* of padding */
        with_keys[KEYS] = own == ATT_NONE ? b->removed : att_add(graph, own, b->removed);
        count = ATT_ATTENTION_MOST_INPUTS;
    }
    att_value output = att_emit(graph, node->op->name, node->attrs, with_keys, count, NULL);
    layer->made = output;
    describe_scores(graph, in, layer);
    if (form->rows)
        keep_scores(graph, number, node, in, layer);
    output = keep_heads(b, graph, number, output, layer);
    if (form->uniform)
        output = add_even(b, graph, number, output, uniform(graph, node, with_keys, count), layer);
    return layer->output = output;
}

/* --- changes of branches ------------------------------------------------------------------------------------------ */

static bool is_residual(const builder *b, const att_node *node)
{
    for (int i = 0; i < b->sum_count; i++)
        if (b->sums[i] == node->out[0])
            return true;
    return false;
}

/* What a branch is named after, first the strongest: an operation of the branch. */
typedef struct content {
    const att_op *op;
    const char *name;
} content;
static const content contents[] = {
    {&att_op_conv2d, "convolution"}, {&att_op_linear, "MLP"}, {&att_op_matmul, "MLP"}, {&att_op_avg_pool, "pooling"}};
enum { CONTENTS = sizeof contents / sizeof *contents, ATTENTION = -1 };

static int content_of(const att_node *node)
{
    if (att_is_attention(node))
        return ATTENTION;
    for (int i = 0; i < CONTENTS; i++)
        if (node->op == contents[i].op)
            return i;
    return CONTENTS;
}

/* Whether the node belongs to the block of an addition in scope "blocks.3.add1": its scope begins with "blocks.3.". */
static bool is_in_block(const att_node *node, const char *addition)
{
    const char *dot = strrchr(addition, '.');
    return !dot || strncmp(node->scope, addition, (size_t)(dot - addition) + 1) == 0;
}

/* The content of the branch that the addition `sum` adds. The branch is what in[1] needs of the block, without what
 * precedes in[0]. */
static const char *describe_branch(att_graph *graph, const att_node *sum)
{
    bool *needed = att_allocate_array(graph->context, (size_t)graph->values.count, sizeof *needed);
    int strongest = CONTENTS;
    if (!needed) {
        fail_memory(graph, (size_t)graph->values.count);
        return "";
    }
    needed[sum->in[1]] = true;
    for (int n = graph->values.items[sum->in[1]].node; n >= 0; n--) {
        const att_node *node = &graph->nodes.items[n];
        if (!needed[node->out[0]] || node->out[0] == sum->in[0] || !is_in_block(node, sum->scope))
            continue;
        strongest = content_of(node) < strongest ? content_of(node) : strongest;
        for (int i = 0; i < node->in_count; i++)
            if (node->in[i] != ATT_NONE)
                needed[node->in[i]] = true;
    }
    att_free(graph->context, needed);
    return strongest == ATTENTION ? "attention" : strongest < CONTENTS ? contents[strongest].name : "";
}

static att_value change_branch(builder *b, att_graph *graph, const att_node *node, const att_value *in)
{
    att_explorer *e = b->explorer;
    if (!att_list_grow(e->context, &e->branches, e->branch_count, &e->branch_room, sizeof *e->branches)) {
        fail_memory(graph, sizeof *e->branches);
        return ATT_NONE;
    }
    att_explored_branch *branch = &e->branches[e->branch_count];
    *branch = (att_explored_branch){.scope = node->scope, .content = describe_branch(graph, node)};
    const int number = e->branch_count++;
    if (!e->form.branches)
        return ATT_NONE;
    att_shape shape = att_value_shape(graph, in[1]);
    att_value kept = add_factors(b, graph, "branch", number, shape.dims[shape.rank - 1], &branch->keep);
    return branch->sum = att_add(graph, in[0], att_gate(graph, in[1], kept));
}

/* Attention in place of a convolution has other keys than queries. */
static bool is_layer(const att_node *node)
{
    return att_is_attention(node) && node->op != &att_op_mix_pairs;
}

/* An att_clone_rule. */
static att_value change(void *user, att_graph *graph, const att_node *node, const att_value *in)
{
    builder *b = user;
    if (is_layer(node))
        return change_attention(b, graph, node, in);
    return is_residual(b, node) ? change_branch(b, graph, node, in) : ATT_NONE;
}

/* --- the whole graph ---------------------------------------------------------------------------------------------- */

/* The tokens that all attention layers share, if the score of a key can be changed in each; else 0. */
static int64_t removable_tokens(const att_graph *graph)
{
    int64_t tokens = 0;
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (!att_is_attention(node))
            continue;
        bool plain = node->op == &att_op_attention && !ATT_ATTRS(node, attention)->window_h;
        int64_t keys = att_attention_keys(graph, node);
        if (!plain || (tokens > 0 && keys != tokens))
            return 0;
        tokens = keys;
    }
    return tokens;
}

/* Lists the results of residual additions. *sums is freed by the caller. */
static att_status list_sums(builder *b, const att_graph *graph, att_value **sums)
{
    *sums = att_allocate_array(graph->context, (size_t)graph->nodes.count, sizeof **sums);
    if (!*sums && graph->nodes.count > 0)
        return att_fail_memory(graph->context, (size_t)graph->nodes.count * sizeof **sums, "an explorer");
    for (att_residual_step step = {.node = -1}; att_residual_step_next(graph, step.node, &step);)
        (*sums)[b->sum_count++] = graph->nodes.items[step.node].out[0];
    b->sums = *sums;
    return ATT_OK;
}

/* Whether the output is one of the names, which end in NULL; NULL: those of the task. */
static bool is_wanted(const att_named_value *output, const char *const *names)
{
    while (names && *names && strcmp(*names, output->name) != 0)
        names++;
    return names ? *names != NULL : !output->probe;
}

/* Replaces the outputs by the changed copies of those that are wanted. */
static void copy_outputs(builder *b, att_graph *graph, const char *const *names)
{
    att_clone clone;
    int count = graph->outputs.count;
    att_named_value *outputs = att_allocate_array(graph->context, (size_t)count, sizeof *outputs);
    if (!outputs) {
        fail_memory(graph, (size_t)count * sizeof *outputs);
        return;
    }
    memcpy(outputs, graph->outputs.items, (size_t)count * sizeof *outputs);
    graph->outputs.count = 0;
    if (att_clone_begin(graph, change, b, &clone) == ATT_OK) {
        clone.inference = true;
        for (int i = 0; i < graph->inputs.count; i++)
            att_clone_replace(&clone, graph->inputs.items[i].value, graph->inputs.items[i].value);
        for (int i = 0; i < count; i++)
            if (is_wanted(&outputs[i], names))
                att_graph_output(graph, outputs[i].name, att_clone_value(&clone, outputs[i].value));
        att_clone_end(&clone);
    }
    att_free(graph->context, outputs);
}

/* Copies the network's graph with the outputs of the form. *names: of these, to be freed by the caller; NULL: those of
 * the task. */
static att_status copy_graph(att_explorer *explorer, const char ***names)
{
    const att_model *model = att_reshaped_model(explorer->network, &explorer->reshaped);
    const att_graph *original = att_model_graph(model);
    ATT_TRY(att_graph_status(original));
    if (explorer->form.outputs)
        return att_network_build_outputs(model, explorer->form.outputs, &explorer->graph, names);
    explorer->graph = att_graph_copy(original);
    return explorer->graph ? ATT_OK : att_fail_memory(explorer->context, sizeof *original, "an explorer");
}

static att_status change_graph(att_explorer *explorer, const char *const *names)
{
    builder b = {.explorer = explorer, .removed = ATT_NONE};
    att_value *sums;
    int64_t tokens = explorer->form.tokens ? removable_tokens(explorer->graph) : 0;
    if (tokens > 0) {
        b.removed = add_factors(&b, explorer->graph, "removed", 0, tokens, &explorer->removed);
        explorer->hidden = att_arena_allocate(&explorer->arena, (size_t)tokens * sizeof *explorer->hidden);
        if (!explorer->hidden)
            fail_memory(explorer->graph, (size_t)tokens * sizeof *explorer->hidden);
    }
    att_status status = list_sums(&b, explorer->graph, &sums);
    if (status == ATT_OK)
        copy_outputs(&b, explorer->graph, names);
    att_free(explorer->context, sums);
    return status == ATT_OK ? explorer->graph->status : status;
}

att_status att_explorer_build(att_explorer *explorer)
{
    const char **names = NULL;
    ATT_TRY(copy_graph(explorer, &names));
    const att_status status = change_graph(explorer, names);
    att_free(explorer->context, names);
    return status;
}
