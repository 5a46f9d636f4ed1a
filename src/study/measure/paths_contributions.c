#include <string.h>

#include "base/core/error.h"
#include "engine/ops/combine.h"
#include "engine/ops/list.h"
#include "study/measure/paths_walk.h"

static const att_value *parts_of(const att_path_walk *w, att_value value)
{
    return w->known[value].parts;
}

/* a x + b z; either may be zero. */
static att_value weighted(att_graph *graph, double a, att_value x, double b, att_value z)
{
    if (x == ATT_NONE && z == ATT_NONE)
        return ATT_NONE;
    if (x == ATT_NONE)
        return b == 1 ? z : att_combine(graph, b, z, 0, ATT_NONE);
    return a == 1 && z == ATT_NONE ? x : att_combine(graph, a, x, b, z);
}

typedef struct weights_of_sum {
    double factor[2];
} weights_of_sum;

static weights_of_sum weights_of(const att_node *node)
{
    if (node->op == &att_op_add)
        return (weights_of_sum){{1, 1}};
    return (weights_of_sum){{ATT_ATTRS(node, combine)->a, ATT_ATTRS(node, combine)->b}};
}

/* Adds the terms of a sum that are sources of their own. */
static void add_sources(const att_path_walk *w, const att_node *node, att_value *parts)
{
    const weights_of_sum weights = weights_of(node);
    for (int t = 0; t < 2; t++) {
        att_value term = node->in[t];
        if (term == ATT_NONE || att_path_is_linear(w, term))
            continue;
        att_value *part = &parts[att_path_slot(w, att_path_is_shared(w, term) ? ATT_PATH_BIASES : ATT_PATH_OTHERS)];
        *part = att_path_is_shared(w, term) ? att_add(w->graph, *part, term)
                                            : weighted(w->graph, 1, *part, weights.factor[t], term);
    }
}

/* Of one path, only the part that takes all heads so far is kept. */
static void sum_parts(const att_path_walk *w, const att_node *node, att_value *parts)
{
    const weights_of_sum weights = weights_of(node);
    const bool first = att_path_is_linear(w, node->in[0]), second = att_path_is_linear(w, node->in[1]);
    for (int s = att_path_slots(w) - 1; s >= 0; s--) {
        att_value x = first ? parts_of(w, node->in[0])[s] : ATT_NONE;
        att_value z = second ? parts_of(w, node->in[1])[s] : ATT_NONE;
        parts[s] = weighted(w->graph, weights.factor[0], x, weights.factor[1], z);
        if (w->choice && parts[s] != ATT_NONE)
            return;
    }
    if (!w->choice)
        add_sources(w, node, parts);
}

/* A node of the same operation with another first input. */
static att_value emit_with(att_graph *graph, const att_node *node, int input, att_value value)
{
    enum { MOST = 12 };
    att_value in[MOST];
    for (int i = 0; i < node->in_count && i < MOST; i++)
        in[i] = i == input ? value : node->in[i];
    return att_emit(graph, node->op->name, node->attrs, in, node->in_count, NULL);
}

static att_value apply_linear(att_graph *graph, const att_node *node, att_value x, bool with_bias)
{
    return att_linear(graph, x, node->in[ATT_PATH_WEIGHT], with_bias ? node->in[ATT_PATH_BIAS] : ATT_NONE);
}

static void map_parts(const att_path_walk *w, const att_node *node, att_path_rule how, att_value *parts)
{
    for (int s = 0; s < att_path_slots(w); s++) {
        att_value x = parts_of(w, node->in[0])[s];
        bool with_bias = s == att_path_slot(w, ATT_PATH_BIASES);
        if (x == ATT_NONE || how == ATT_PATH_SAME)
            parts[s] = x;
        else if (how == ATT_PATH_NORM)
            parts[s] = att_frozen_norm(w->graph, x, node->out[0], with_bias);
        else if (how == ATT_PATH_LINEAR)
            parts[s] = apply_linear(w->graph, node, x, with_bias);
        else
            parts[s] = emit_with(w->graph, node, 0, x);
    }
}

/* Rows [first, first + count) of a linear layer's weight and bias. */
typedef struct projection {
    att_value weight, bias;
} projection;

static projection slice_projection(att_graph *graph, const att_value *in, const att_path_channels *of)
{
    att_shape shape = att_value_shape(graph, in[ATT_PATH_WEIGHT]);
    int64_t outputs = shape.dims[0], inputs = att_shape_count(shape) / outputs;
    att_value weight = att_reshape(graph, in[ATT_PATH_WEIGHT], att_shape_of(outputs, inputs)), bias = in[ATT_PATH_BIAS];
    if (bias != ATT_NONE)
        bias = att_slice_channels(graph, att_reshape(graph, bias, att_shape_of(outputs)), of->first, of->count);
    return (projection){att_slice_tokens(graph, weight, (int)of->first, (int)of->count), bias};
}

/* The contributions to the values of an attention. */
static void value_parts(const att_path_walk *w, const att_node *attention, att_value *parts)
{
    att_graph *graph = w->graph;
    const att_path_channels values = att_path_values_of(graph, attention);
    const att_node *linear = att_path_projection_of(graph, &values);
    const att_value origin = att_path_origin_of(graph, attention);
    const bool all = values.count == att_path_columns_of(graph, values.value);
    projection sliced = {ATT_NONE, ATT_NONE};
    if (linear)
        sliced = slice_projection(graph, linear->in, &values);
    for (int s = 0; s < att_path_slots(w); s++) {
        att_value x = parts_of(w, origin)[s];
        if (x == ATT_NONE)
            parts[s] = ATT_NONE;
        else if (sliced.weight != ATT_NONE)
            parts[s] =
                att_linear(graph, x, sliced.weight, s == att_path_slot(w, ATT_PATH_BIASES) ? sliced.bias : ATT_NONE);
        else
            parts[s] = all ? x : att_slice_channels(graph, x, values.first, values.count);
    }
}

/* An attention whose values are an input of their own. */
typedef struct attention {
    att_value in[ATT_ATTENTION_MOST_INPUTS];
    int values; /* index of the input */
} attention;

static attention with_own_values(att_graph *graph, const att_node *node)
{
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    attention made = {.values = 0};
    memcpy(made.in, node->in, (size_t)node->in_count * sizeof *node->in);
    if (node->op != &att_op_attention)
        return made;
    att_attention_operands(graph, node, operand);
    const att_attention_operand *v = &operand[ATT_ATTENTION_V];
    made.values = ATT_ATTENTION_V;
    if (v->input != ATT_ATTENTION_V)
        made.in[v->input] = att_slice_channels(graph, node->in[v->input], 0, v->offset);
    return made;
}

static att_value constant_of(att_graph *graph, const double *numbers, int64_t count)
{
    const bool wide = att_graph_dtype(graph) == ATT_F64;
    float *narrow = wide ? NULL : att_allocate_array(graph->context, (size_t)count, sizeof *narrow);
    if (!wide && !narrow)
        return att_graph_fail(graph, att_fail_memory(graph->context, (size_t)count * sizeof *narrow, "a constant"));
    for (int64_t i = 0; i < count && narrow; i++)
        narrow[i] = (float)numbers[i];
    att_value value = att_graph_constant(graph, att_graph_dtype(graph), att_shape_of(count),
                                         wide ? (const void *)numbers : (const void *)narrow);
    att_free(graph->context, narrow);
    return value;
}

/* Sets the results of all heads but one to 0. head: from 1. */
static att_value keep_head(att_graph *graph, att_value results, int heads, int head)
{
    int64_t columns = att_path_columns_of(graph, results), width = columns / heads;
    double *mask = att_allocate_array(graph->context, (size_t)columns, sizeof *mask);
    if (!mask)
        return att_graph_fail(graph, att_fail_memory(graph->context, (size_t)columns * sizeof *mask, "a mask"));
    for (int64_t c = (head - 1) * width; c < head * width; c++)
        mask[c] = 1;
    att_value kept = att_scale(graph, results, constant_of(graph, mask, columns));
    att_free(graph->context, mask);
    return kept;
}

static void attend_parts(const att_path_walk *w, int index, att_value *parts)
{
    att_graph *graph = w->graph;
    const att_node node = graph->nodes.items[index];
    const int layer = att_path_layer_of(w, index), head = w->choice ? w->choice[layer] : -1;
    if (head == 0)
        return;
    attention made = with_own_values(graph, &node);
    value_parts(w, &node, parts);
    for (int s = 0; s < att_path_slots(w); s++) {
        if (parts[s] == ATT_NONE)
            continue;
        made.in[made.values] = parts[s];
        parts[s] = att_emit(graph, node.op->name, node.attrs, made.in, node.in_count, NULL);
        if (head > 0)
            parts[s] = keep_head(graph, parts[s], att_path_heads_of(w, layer), head);
    }
    memmove(parts + 1, parts, (size_t)w->layers * sizeof *parts); /* no path through all layers is here already */
    parts[0] = ATT_NONE;
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

static void split_node(const att_path_walk *w, int index)
{
    const att_node node = w->graph->nodes.items[index];
    att_value *parts = w->known[node.out[0]].parts;
    const att_path_rule how = att_path_rule_of(&node);
    att_graph_scope(w->graph, node.scope);
    if (how == ATT_PATH_ATTEND)
        attend_parts(w, index, parts);
    else if (how == ATT_PATH_SUM)
        sum_parts(w, &node, parts);
    else
        map_parts(w, &node, how, parts);
}

/* Returns the contributions to the tokens at the end; NULL if the graph has failed. */
static const att_value *split_all(att_path_walk *w)
{
    att_value *first = w->known[w->begin].parts;
    first[0] = w->begin;
    bool was_copying = w->graph->copying;
    w->graph->copying = true;
    if (!w->choice)
        first[att_path_slot(w, ATT_PATH_BIASES)] = att_combine(w->graph, 0, w->begin, 0, ATT_NONE);
    for (int i = 0; i < w->nodes && w->graph->status == ATT_OK; i++)
        if (att_path_is_needed(w, &w->graph->nodes.items[i]))
            split_node(w, i);
    w->graph->copying = was_copying;
    return w->graph->status == ATT_OK ? parts_of(w, w->end) : NULL;
}

void att_paths_split(att_graph *graph, const att_paths *paths, att_path_sums *sums)
{
    att_path_walk w;
    const att_value *parts = NULL;
    if (graph->status != ATT_OK)
        return;
    if (att_path_walk_begin(graph, paths->begin, paths->end, &w) && att_path_walk_allocate(&w))
        parts = split_all(&w);
    else
        att_path_walk_fail(&w);
    for (int k = 0; k <= paths->layers; k++)
        sums->of_length[k] = parts ? parts[k] : ATT_NONE;
    sums->biases = parts ? parts[att_path_slot(&w, ATT_PATH_BIASES)] : ATT_NONE;
    sums->others = parts ? parts[att_path_slot(&w, ATT_PATH_OTHERS)] : ATT_NONE;
    att_arena_free(&w.arena);
}

att_value att_paths_follow(att_graph *graph, const att_paths *paths, const int *choice)
{
    att_path_walk w;
    att_value found = ATT_NONE;
    int length = 0;
    if (graph->status != ATT_OK)
        return ATT_NONE;
    for (int layer = 0; layer < paths->layers; layer++)
        length += choice[layer] > 0;
    bool begun = att_path_walk_begin(graph, paths->begin, paths->end, &w) && att_path_walk_allocate(&w);
    w.choice = choice;
    const att_value *parts = begun ? split_all(&w) : NULL;
    if (!begun)
        att_path_walk_fail(&w);
    if (parts)
        found = parts[length];
    att_arena_free(&w.arena);
    return found;
}
