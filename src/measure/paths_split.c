#include "measure/paths.h"

#include <stdio.h>
#include <string.h>

#include <attscope/measure.h>
#include <attscope/ops.h>

#include "core/error.h"
#include "ops/attention.h"
#include "ops/combine.h"
#include "ops/cosine_heads.h"
#include "ops/linear.h"
#include "ops/list.h"
#include "ops/rotary.h"

/* How the output of a node depends on its inputs, once attention maps and statistics of norms are fixed. */
typedef enum rule {
    NONLINEAR,
    SUM,    /* add, combine */
    NORM,   /* with frozen statistics */
    LINEAR, /* a linear layer, with a bias */
    ATTEND, /* linear in the values */
    SAME,   /* the identity in inference */
    MAP     /* linear in the first input; all other inputs are shared */
} rule;

static rule rule_of(const att_node *node)
{
    static const struct {
        const att_op *op;
        rule rule;
    } rules[] = {{&att_op_add, SUM},         {&att_op_combine, SUM},
                 {&att_op_layer_norm, NORM}, {&att_op_rms_norm, NORM},
                 {&att_op_linear, LINEAR},   {&att_op_drop_path, SAME},
                 {&att_op_dropout, SAME},    {&att_op_scale, MAP},
                 {&att_op_reshape, MAP},     {&att_op_context_broadcast, MAP},
                 {&att_op_window_pad, MAP},  {&att_op_window_crop, MAP}};
    if (att_is_attention(node))
        return ATTEND;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].op == node->op)
            return rules[i].rule;
    return NONLINEAR;
}

/* What is known of a value that the network computes after `begin`. */
typedef struct known {
    bool linear;      /* linear in the tokens `begin`, the biases, and the results of branches without attention */
    bool attends;     /* it depends on an attention layer of its residual branch */
    bool needed;      /* `end` depends on it linearly */
    att_value *parts; /* the contributions to a value that is linear and needed, one for each slot */
    double *count;    /* number of paths of each length */
} known;

/* Slots: lengths 0..layers, then these. */
enum { BIASES, OTHERS, MORE_SLOTS };

typedef struct walk {
    att_graph *graph;
    att_arena arena;
    att_value begin, end;
    int nodes, values; /* those of the network: others are added while the walk goes on */
    known *known;
    int layers;
    int layer_nodes[ATT_PATHS_MOST_LAYERS];
    const int *choice; /* one path; NULL: all paths */
    bool others;
} walk;

static bool is_linear(const walk *w, att_value value)
{
    return value != ATT_NONE && value < w->values && w->known[value].linear;
}

static bool attends(const walk *w, att_value value)
{
    return value != ATT_NONE && value < w->values && w->known[value].attends;
}

static bool is_shared(const walk *w, att_value value)
{
    return value != ATT_NONE && att_value_kind(w->graph, value) == ATT_SHARED;
}

/* --- values of attention ------------------------------------------------------------------------------------------ */

/* Channels [first, first + count) of a value. */
typedef struct channels {
    att_value value;
    int64_t first, count;
} channels;

static int64_t columns_of(const att_graph *graph, att_value value)
{
    att_shape shape = att_value_shape(graph, value);
    return shape.dims[shape.rank - 1];
}

/* Channels of queries and keys, from the left, that a node changes; it copies the other channels. */
static int64_t turned_by(const att_graph *graph, const att_node *node)
{
    if (node && node->op == &att_op_rotary) {
        att_desc x = att_graph_desc(graph, node->in[0]), table = att_graph_desc(graph, node->in[1]);
        return ATT_ATTRS(node, rotary)->heads * att_rotary_shape_of(&x, &table).width;
    }
    if (node && node->op == &att_op_cosine_heads)
        return att_cosine_heads_count(ATT_ATTRS(node, cosine_heads)) * ATT_ATTRS(node, cosine_heads)->width;
    return 0;
}

/* Where queries, keys and values lie in the inputs of an attention with content. */
static void divide(const att_graph *graph, const att_node *node, att_attention_operand operand[ATT_ATTENTION_OPERANDS])
{
    att_desc in[ATT_ATTENTION_OPERANDS];
    for (int i = 0; i < ATT_ATTENTION_OPERANDS; i++)
        in[i] = att_graph_desc(graph, node->in[i]);
    att_attention_divide(in, ATT_ATTRS(node, attention), operand);
}

/* The values that an attention mixes. */
static channels values_of(const att_graph *graph, const att_node *node)
{
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    if (node->op != &att_op_attention)
        return (channels){node->in[0], 0, columns_of(graph, node->in[0])};
    divide(graph, node, operand);
    const att_attention_operand *v = &operand[ATT_ATTENTION_V];
    channels found = {node->in[v->input], v->offset, v->heads * v->width};
    const att_node *producer = att_graph_producer(graph, found.value);
    for (int64_t turned; (turned = turned_by(graph, producer)) > 0 && found.first >= turned;
         producer = att_graph_producer(graph, found.value))
        found.value = producer->in[0];
    return found;
}

enum { WEIGHT = 1, BIAS, RESIDUAL }; /* inputs of a linear layer */

static bool is_plain_linear(const att_node *node)
{
    const att_linear_attrs *attrs = node ? node->attrs : NULL;
    return node && node->op == &att_op_linear && attrs->activation == ATT_ACT_NONE && !attrs->transposed &&
           (node->in_count <= RESIDUAL || node->in[RESIDUAL] == ATT_NONE);
}

/* The linear layer that computes these channels beside others; NULL if there is none. */
static const att_node *projection_of(const att_graph *graph, const channels *of)
{
    const att_node *producer = att_graph_producer(graph, of->value);
    return of->count < columns_of(graph, of->value) && is_plain_linear(producer) ? producer : NULL;
}

/* The value of which the values of an attention are a linear map. */
static att_value origin_of_values(const att_graph *graph, const att_node *node)
{
    const channels values = values_of(graph, node);
    const att_node *projection = projection_of(graph, &values);
    return projection ? projection->in[0] : values.value;
}

/* --- which values are linear -------------------------------------------------------------------------------------- */

static bool has_only_shared(const walk *w, const att_node *node, int from)
{
    for (int i = from; i < node->in_count; i++)
        if (node->in[i] != ATT_NONE && !is_shared(w, node->in[i]))
            return false;
    return true;
}

/* Whether a term of a sum may be a source of its own: without attention, or the same for all samples. */
static bool is_source(const walk *w, const att_node *node, att_value term)
{
    return term == ATT_NONE || (is_shared(w, term) ? node->op == &att_op_add : !attends(w, term));
}

static bool sum_is_linear(const walk *w, const att_node *node)
{
    bool first = is_linear(w, node->in[0]), second = is_linear(w, node->in[1]);
    return (first || second) && (first || is_source(w, node, node->in[0])) &&
           (second || is_source(w, node, node->in[1]));
}

static bool node_is_linear(const walk *w, const att_node *node)
{
    switch (rule_of(node)) {
    case SUM:
        return sum_is_linear(w, node);
    case NORM:
    case SAME:
        return is_linear(w, node->in[0]);
    case LINEAR:
        return is_linear(w, node->in[0]) && is_plain_linear(node);
    case MAP:
        return is_linear(w, node->in[0]) && has_only_shared(w, node, 1);
    case ATTEND:
        return is_linear(w, origin_of_values(w->graph, node));
    default:
        return false;
    }
}

static bool node_attends(const walk *w, const att_node *node, bool linear)
{
    if (att_is_attention(node))
        return true;
    if (linear && node->op == &att_op_add)
        return false; /* a sum begins the next branch */
    for (int i = 0; i < node->in_count; i++)
        if (attends(w, node->in[i]))
            return true;
    return false;
}

static void find_linear(walk *w)
{
    w->known[w->begin].linear = true;
    for (int i = w->graph->values.items[w->begin].node + 1; i < w->nodes; i++) {
        const att_node *node = &w->graph->nodes.items[i];
        known *out = &w->known[node->out[0]];
        out->linear = att_value_kind(w->graph, node->out[0]) == ATT_SAMPLE && node_is_linear(w, node);
        out->attends = node_attends(w, node, out->linear);
    }
}

static void need(walk *w, att_value value)
{
    if (is_linear(w, value))
        w->known[value].needed = true;
}

static bool is_needed(const walk *w, const att_node *node)
{
    return w->known[node->out[0]].needed && node->out[0] != w->begin;
}

/* Also finds the layers, and whether there are branches without attention. */
static void find_needed(walk *w)
{
    need(w, w->end);
    for (int i = w->nodes - 1; i >= 0; i--) {
        const att_node *node = &w->graph->nodes.items[i];
        if (!is_needed(w, node))
            continue;
        if (rule_of(node) == ATTEND) {
            need(w, origin_of_values(w->graph, node));
            if (w->layers < ATT_PATHS_MOST_LAYERS)
                w->layer_nodes[w->layers] = i;
            w->layers++;
            continue;
        }
        need(w, node->in[0]);
        for (int t = 0; t < 2 && rule_of(node) == SUM; t++) {
            need(w, node->in[t]);
            w->others |= node->in[t] != ATT_NONE && !is_linear(w, node->in[t]) && !is_shared(w, node->in[t]);
        }
    }
    for (int i = 0; i < w->layers / 2 && w->layers <= ATT_PATHS_MOST_LAYERS; i++) {
        int last = w->layer_nodes[w->layers - 1 - i];
        w->layer_nodes[w->layers - 1 - i] = w->layer_nodes[i];
        w->layer_nodes[i] = last;
    }
}

/* --- contributions ------------------------------------------------------------------------------------------------ */

static int slots_of(const walk *w)
{
    return w->layers + 1 + MORE_SLOTS;
}

static int slot(const walk *w, int more)
{
    return w->layers + 1 + more;
}

static int layer_of(const walk *w, int node)
{
    int layer = 0;
    while (w->layer_nodes[layer] != node)
        layer++;
    return layer;
}

static const att_value *parts_of(const walk *w, att_value value)
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
static void add_sources(const walk *w, const att_node *node, att_value *parts)
{
    const weights_of_sum weights = weights_of(node);
    for (int t = 0; t < 2; t++) {
        att_value term = node->in[t];
        if (term == ATT_NONE || is_linear(w, term))
            continue;
        att_value *part = &parts[slot(w, is_shared(w, term) ? BIASES : OTHERS)];
        *part =
            is_shared(w, term) ? att_add(w->graph, *part, term) : weighted(w->graph, 1, *part, weights.factor[t], term);
    }
}

/* Of one path, only the part that takes all heads so far is kept. */
static void sum_parts(const walk *w, const att_node *node, att_value *parts)
{
    const weights_of_sum weights = weights_of(node);
    const bool first = is_linear(w, node->in[0]), second = is_linear(w, node->in[1]);
    for (int s = slots_of(w) - 1; s >= 0; s--) {
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
    return att_linear(graph, x, node->in[WEIGHT], with_bias ? node->in[BIAS] : ATT_NONE);
}

static void map_parts(const walk *w, const att_node *node, rule how, att_value *parts)
{
    for (int s = 0; s < slots_of(w); s++) {
        att_value x = parts_of(w, node->in[0])[s];
        bool with_bias = s == slot(w, BIASES);
        if (x == ATT_NONE || how == SAME)
            parts[s] = x;
        else if (how == NORM)
            parts[s] = att_frozen_norm(w->graph, x, node->out[0], with_bias);
        else if (how == LINEAR)
            parts[s] = apply_linear(w->graph, node, x, with_bias);
        else
            parts[s] = emit_with(w->graph, node, 0, x);
    }
}

/* Rows [first, first + count) of a linear layer's weight and bias. */
typedef struct projection {
    att_value weight, bias;
} projection;

static projection slice_projection(att_graph *graph, const att_value *in, const channels *of)
{
    att_shape shape = att_value_shape(graph, in[WEIGHT]);
    int64_t outputs = shape.dims[0], inputs = att_shape_count(shape) / outputs;
    att_value weight = att_reshape(graph, in[WEIGHT], att_shape_of(outputs, inputs)), bias = in[BIAS];
    if (bias != ATT_NONE)
        bias = att_slice_channels(graph, att_reshape(graph, bias, att_shape_of(outputs)), of->first, of->count);
    return (projection){att_slice_tokens(graph, weight, (int)of->first, (int)of->count), bias};
}

/* The contributions to the values of an attention. */
static void value_parts(const walk *w, const att_node *attention, att_value *parts)
{
    att_graph *graph = w->graph;
    const channels values = values_of(graph, attention);
    const att_node *linear = projection_of(graph, &values);
    const att_value origin = origin_of_values(graph, attention);
    const bool all = values.count == columns_of(graph, values.value);
    projection sliced = {ATT_NONE, ATT_NONE};
    if (linear)
        sliced = slice_projection(graph, linear->in, &values);
    for (int s = 0; s < slots_of(w); s++) {
        att_value x = parts_of(w, origin)[s];
        if (x == ATT_NONE)
            parts[s] = ATT_NONE;
        else if (sliced.weight != ATT_NONE)
            parts[s] = att_linear(graph, x, sliced.weight, s == slot(w, BIASES) ? sliced.bias : ATT_NONE);
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
    divide(graph, node, operand);
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
    int64_t columns = columns_of(graph, results), width = columns / heads;
    double *mask = att_allocate_array(graph->context, (size_t)columns, sizeof *mask);
    if (!mask)
        return att_graph_fail(graph, att_fail_memory(graph->context, (size_t)columns * sizeof *mask, "a mask"));
    for (int64_t c = (head - 1) * width; c < head * width; c++)
        mask[c] = 1;
    att_value kept = att_scale(graph, results, constant_of(graph, mask, columns));
    att_free(graph->context, mask);
    return kept;
}

static int heads_of(const walk *w, int layer)
{
    return ATT_ATTRS(&w->graph->nodes.items[w->layer_nodes[layer]], attention)->heads;
}

static void attend_parts(const walk *w, int index, att_value *parts)
{
    att_graph *graph = w->graph;
    const att_node node = graph->nodes.items[index];
    const int layer = layer_of(w, index), head = w->choice ? w->choice[layer] : -1;
    if (head == 0)
        return;
    attention made = with_own_values(graph, &node);
    value_parts(w, &node, parts);
    for (int s = 0; s < slots_of(w); s++) {
        if (parts[s] == ATT_NONE)
            continue;
        made.in[made.values] = parts[s];
        parts[s] = att_emit(graph, node.op->name, node.attrs, made.in, node.in_count, NULL);
        if (head > 0)
            parts[s] = keep_head(graph, parts[s], heads_of(w, layer), head);
    }
    memmove(parts + 1, parts, (size_t)w->layers * sizeof *parts); /* no path through all layers is here already */
    parts[0] = ATT_NONE;
}

/* --- numbers of paths --------------------------------------------------------------------------------------------- */

static void count_paths(const walk *w, int index, const att_node *node, double *count)
{
    const rule how = rule_of(node);
    if (how == ATTEND) {
        const double *before = w->known[origin_of_values(w->graph, node)].count;
        for (int k = 0; k < w->layers; k++)
            count[k + 1] = before[k] * heads_of(w, layer_of(w, index));
        return;
    }
    for (int t = 0; t < (how == SUM ? 2 : 1); t++)
        for (int k = 0; k <= w->layers && is_linear(w, node->in[t]); k++)
            count[k] += w->known[node->in[t]].count[k];
}

static void count_all(walk *w)
{
    w->known[w->begin].count[0] = 1;
    for (int i = 0; i < w->nodes; i++) {
        const att_node *node = &w->graph->nodes.items[i];
        if (is_needed(w, node))
            count_paths(w, i, node, w->known[node->out[0]].count);
    }
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

static bool begin_walk(att_graph *graph, att_value begin, att_value end, walk *w)
{
    *w = (walk){.graph = graph,
                .arena = {.context = graph->context},
                .begin = begin,
                .end = end,
                .nodes = graph->nodes.count,
                .values = graph->values.count};
    w->known = att_arena_allocate(&w->arena, (size_t)w->values * sizeof *w->known);
    if (!w->known)
        return false;
    find_linear(w);
    find_needed(w);
    return true;
}

/* Allocates what the needed values hold. */
static bool allocate(walk *w)
{
    for (int v = 0; v < w->values; v++) {
        known *k = &w->known[v];
        if (!k->needed)
            continue;
        k->parts = att_arena_allocate(&w->arena, (size_t)slots_of(w) * sizeof *k->parts);
        k->count = att_arena_allocate(&w->arena, (size_t)slots_of(w) * sizeof *k->count);
        if (!k->parts || !k->count)
            return false;
        for (int s = 0; s < slots_of(w); s++)
            k->parts[s] = ATT_NONE;
    }
    return true;
}

static void fail_memory(const walk *w)
{
    att_graph_fail(w->graph, att_fail_memory(w->graph->context, (size_t)w->values * sizeof *w->known, "paths"));
}

static void split_node(const walk *w, int index)
{
    const att_node node = w->graph->nodes.items[index];
    att_value *parts = w->known[node.out[0]].parts;
    const rule how = rule_of(&node);
    att_graph_scope(w->graph, node.scope);
    if (how == ATTEND)
        attend_parts(w, index, parts);
    else if (how == SUM)
        sum_parts(w, &node, parts);
    else
        map_parts(w, &node, how, parts);
}

/* Returns the contributions to the tokens at the end; NULL if the graph has failed. */
static const att_value *split_all(walk *w)
{
    att_value *first = w->known[w->begin].parts;
    first[0] = w->begin;
    w->graph->copying = true;
    if (!w->choice)
        first[slot(w, BIASES)] = att_combine(w->graph, 0, w->begin, 0, ATT_NONE);
    for (int i = 0; i < w->nodes && w->graph->status == ATT_OK; i++)
        if (is_needed(w, &w->graph->nodes.items[i]))
            split_node(w, i);
    w->graph->copying = false;
    return w->graph->status == ATT_OK ? parts_of(w, w->end) : NULL;
}

void att_paths_split(att_graph *graph, const att_paths *paths, att_path_sums *sums)
{
    walk w;
    const att_value *parts = NULL;
    if (graph->status != ATT_OK)
        return;
    if (begin_walk(graph, paths->begin, paths->end, &w) && allocate(&w))
        parts = split_all(&w);
    else
        fail_memory(&w);
    for (int k = 0; k <= paths->layers; k++)
        sums->of_length[k] = parts ? parts[k] : ATT_NONE;
    sums->biases = parts ? parts[slot(&w, BIASES)] : ATT_NONE;
    sums->others = parts ? parts[slot(&w, OTHERS)] : ATT_NONE;
    att_arena_free(&w.arena);
}

att_value att_paths_follow(att_graph *graph, const att_paths *paths, const int *choice)
{
    walk w;
    att_value found = ATT_NONE;
    int length = 0;
    if (graph->status != ATT_OK)
        return ATT_NONE;
    for (int layer = 0; layer < paths->layers; layer++)
        length += choice[layer] > 0;
    bool begun = begin_walk(graph, paths->begin, paths->end, &w) && allocate(&w);
    w.choice = choice;
    const att_value *parts = begun ? split_all(&w) : NULL;
    if (!begun)
        fail_memory(&w);
    if (parts)
        found = parts[length];
    att_arena_free(&w.arena);
    return found;
}

/* --- finding ------------------------------------------------------------------------------------------------------ */

/* The tokens before the first residual addition and after the last. Returns false if they differ in shape, or are no
 * tokens. */
static bool find_stream(const att_graph *graph, att_paths *paths, char reason[ATT_PATHS_REASON])
{
    att_residual_step step = {.node = -1};
    paths->begin = paths->end = ATT_NONE;
    while (att_residual_step_next(graph, step.node, &step)) {
        if (paths->begin == ATT_NONE) {
            if (att_value_shape(graph, step.before).rank != 2)
                break;
            paths->begin = step.before;
        } else if (step.begins) {
            snprintf(reason, ATT_PATHS_REASON, "the number or the width of its tokens changes before %s", step.scope);
            return false;
        }
        paths->end = step.after;
    }
    if (paths->begin == ATT_NONE) {
        snprintf(reason, ATT_PATHS_REASON, "the network has no residual additions of tokens");
        return false;
    }
    return true;
}

/* The first node that is not linear although it reads the linear result of an attention; NULL if there is none. */
static const att_node *find_nonlinear(const walk *w)
{
    for (int i = 0; i < w->nodes; i++) {
        const att_node *node = &w->graph->nodes.items[i];
        if (w->known[node->out[0]].linear || att_is_attention(node))
            continue;
        for (int j = 0; j < node->in_count; j++)
            if (is_linear(w, node->in[j]) && attends(w, node->in[j]))
                return node;
    }
    return NULL;
}

static bool check_layers(const walk *w, char reason[ATT_PATHS_REASON])
{
    const att_node *obstacle = find_nonlinear(w);
    if (obstacle && !is_linear(w, w->end))
        snprintf(reason, ATT_PATHS_REASON,
                 "paths cannot be followed through the operation \"%s\" behind the attention in %s, because it is not "
                 "linear or divides the heads",
                 obstacle->op->name, obstacle->scope);
    else if (!is_linear(w, w->end))
        snprintf(reason, ATT_PATHS_REASON, "its residual stream is not a sum of linear branches");
    else if (w->layers == 0)
        snprintf(reason, ATT_PATHS_REASON, "the network has no attention layer");
    else if (w->layers > ATT_PATHS_MOST_LAYERS)
        snprintf(reason, ATT_PATHS_REASON, "the network has %d attention layers, more than %d", w->layers,
                 (int)ATT_PATHS_MOST_LAYERS);
    else
        return true;
    return false;
}

static void describe(const walk *w, att_paths *paths)
{
    const double *count = w->known[w->end].count;
    paths->layers = w->layers;
    paths->others = w->others;
    paths->longest = 0;
    for (int layer = 0; layer < w->layers; layer++)
        paths->heads[layer] = heads_of(w, layer);
    for (int k = 0; k <= w->layers; k++) {
        paths->count[k] = count[k];
        paths->longest = count[k] > 0 ? k : paths->longest;
    }
}

bool att_paths_find(att_graph *graph, att_paths *paths, char reason[ATT_PATHS_REASON])
{
    walk w;
    if (!find_stream(graph, paths, reason))
        return false;
    bool begun = begin_walk(graph, paths->begin, paths->end, &w);
    bool fits = begun && check_layers(&w, reason);
    if (fits && allocate(&w)) {
        count_all(&w);
        describe(&w, paths);
    } else if (!begun || fits) {
        fail_memory(&w);
        fits = false;
        snprintf(reason, ATT_PATHS_REASON, "memory is exhausted");
    }
    att_arena_free(&w.arena);
    return fits;
}
