#include <stdio.h>

#include "base/core/error.h"
#include "engine/ops/combine.h"
#include "engine/ops/cosine_heads.h"
#include "engine/ops/linear.h"
#include "engine/ops/list.h"
#include "engine/ops/rotary.h"
#include "study/measure/paths_walk.h"

att_path_rule att_path_rule_of(const att_node *node)
{
    static const struct {
        const att_op *op;
        att_path_rule rule;
    } rules[] = {{&att_op_add, ATT_PATH_SUM},
                 {&att_op_combine, ATT_PATH_SUM},
                 {&att_op_layer_norm, ATT_PATH_NORM},
                 {&att_op_rms_norm, ATT_PATH_NORM},
                 {&att_op_linear, ATT_PATH_LINEAR},
                 {&att_op_drop_path, ATT_PATH_SAME},
                 {&att_op_dropout, ATT_PATH_SAME},
                 {&att_op_channel_dropout, ATT_PATH_SAME},
                 {&att_op_scale, ATT_PATH_MAP},
                 {&att_op_reshape, ATT_PATH_MAP},
                 {&att_op_context_broadcast, ATT_PATH_MAP},
                 {&att_op_window_pad, ATT_PATH_MAP},
                 {&att_op_window_crop, ATT_PATH_MAP}};
    if (att_is_attention(node))
        return ATT_PATH_ATTEND;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].op == node->op)
            return rules[i].rule;
    return ATT_PATH_NONLINEAR;
}

static bool attends(const att_path_walk *w, att_value value)
{
    return value != ATT_NONE && value < w->values && w->known[value].attends;
}

/* --- values of attention ------------------------------------------------------------------------------------------ */

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

att_path_channels att_path_values_of(const att_graph *graph, const att_node *node)
{
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    if (node->op != &att_op_attention)
        return (att_path_channels){node->in[0], 0, att_path_columns_of(graph, node->in[0])};
    att_attention_operands(graph, node, operand);
    const att_attention_operand *v = &operand[ATT_ATTENTION_V];
    att_path_channels found = {node->in[v->input], v->offset, v->heads * v->width};
    const att_node *producer = att_graph_producer(graph, found.value);
    for (int64_t turned; (turned = turned_by(graph, producer)) > 0 && found.first >= turned;
         producer = att_graph_producer(graph, found.value))
        found.value = producer->in[0];
    return found;
}

static bool is_plain_linear(const att_node *node)
{
    const att_linear_attrs *attrs = node ? node->attrs : NULL;
    return node && node->op == &att_op_linear && attrs->activation == ATT_ACT_NONE && !attrs->transposed &&
           (node->in_count <= ATT_PATH_RESIDUAL || node->in[ATT_PATH_RESIDUAL] == ATT_NONE);
}

const att_node *att_path_projection_of(const att_graph *graph, const att_path_channels *of)
{
    const att_node *producer = att_graph_producer(graph, of->value);
    return of->count < att_path_columns_of(graph, of->value) && is_plain_linear(producer) ? producer : NULL;
}

att_value att_path_origin_of(const att_graph *graph, const att_node *node)
{
    const att_path_channels values = att_path_values_of(graph, node);
    const att_node *projection = att_path_projection_of(graph, &values);
    return projection ? projection->in[0] : values.value;
}

/* --- which values are linear -------------------------------------------------------------------------------------- */

static bool has_only_shared(const att_path_walk *w, const att_node *node, int from)
{
    for (int i = from; i < node->in_count; i++)
        if (node->in[i] != ATT_NONE && !att_path_is_shared(w, node->in[i]))
            return false;
    return true;
}

/* Whether a term of a sum may be a source of its own: without attention, or the same for all samples. */
static bool is_source(const att_path_walk *w, const att_node *node, att_value term)
{
    return term == ATT_NONE || (att_path_is_shared(w, term) ? node->op == &att_op_add : !attends(w, term));
}

static bool sum_is_linear(const att_path_walk *w, const att_node *node)
{
    bool first = att_path_is_linear(w, node->in[0]), second = att_path_is_linear(w, node->in[1]);
    return (first || second) && (first || is_source(w, node, node->in[0])) &&
           (second || is_source(w, node, node->in[1]));
}

static bool node_is_linear(const att_path_walk *w, const att_node *node)
{
    switch (att_path_rule_of(node)) {
    case ATT_PATH_SUM:
        return sum_is_linear(w, node);
    case ATT_PATH_NORM:
    case ATT_PATH_SAME:
        return att_path_is_linear(w, node->in[0]);
    case ATT_PATH_LINEAR:
        return att_path_is_linear(w, node->in[0]) && is_plain_linear(node);
    case ATT_PATH_MAP:
        return att_path_is_linear(w, node->in[0]) && has_only_shared(w, node, 1);
    case ATT_PATH_ATTEND:
        return att_path_is_linear(w, att_path_origin_of(w->graph, node));
    default:
        return false;
    }
}

static bool node_attends(const att_path_walk *w, const att_node *node, bool linear)
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

static void find_linear(att_path_walk *w)
{
    w->known[w->begin].linear = true;
    for (int i = w->graph->values.items[w->begin].node + 1; i < w->nodes; i++) {
        const att_node *node = &w->graph->nodes.items[i];
        att_path_known *out = &w->known[node->out[0]];
        out->linear = att_value_kind(w->graph, node->out[0]) == ATT_SAMPLE && node_is_linear(w, node);
        out->attends = node_attends(w, node, out->linear);
    }
}

static void need(att_path_walk *w, att_value value)
{
    if (att_path_is_linear(w, value))
        w->known[value].needed = true;
}

/* Also finds the layers, and whether there are branches without attention. */
static void find_needed(att_path_walk *w)
{
    need(w, w->end);
    for (int i = w->nodes - 1; i >= 0; i--) {
        const att_node *node = &w->graph->nodes.items[i];
        if (!att_path_is_needed(w, node))
            continue;
        if (att_path_rule_of(node) == ATT_PATH_ATTEND) {
            need(w, att_path_origin_of(w->graph, node));
            if (w->layers < ATT_PATHS_MOST_LAYERS)
                w->layer_nodes[w->layers] = i;
            w->layers++;
            continue;
        }
        need(w, node->in[0]);
        for (int t = 0; t < 2 && att_path_rule_of(node) == ATT_PATH_SUM; t++) {
            need(w, node->in[t]);
            w->others |=
                node->in[t] != ATT_NONE && !att_path_is_linear(w, node->in[t]) && !att_path_is_shared(w, node->in[t]);
        }
    }
    for (int i = 0; i < w->layers / 2 && w->layers <= ATT_PATHS_MOST_LAYERS; i++) {
        int last = w->layer_nodes[w->layers - 1 - i];
        w->layer_nodes[w->layers - 1 - i] = w->layer_nodes[i];
        w->layer_nodes[i] = last;
    }
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

bool att_path_walk_begin(att_graph *graph, att_value begin, att_value end, att_path_walk *w)
{
    *w = (att_path_walk){.graph = graph,
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

bool att_path_walk_allocate(att_path_walk *w)
{
    for (int v = 0; v < w->values; v++) {
        att_path_known *k = &w->known[v];
        if (!k->needed)
            continue;
        k->parts = att_arena_allocate(&w->arena, (size_t)att_path_slots(w) * sizeof *k->parts);
        k->count = att_arena_allocate(&w->arena, (size_t)att_path_slots(w) * sizeof *k->count);
        if (!k->parts || !k->count)
            return false;
        for (int s = 0; s < att_path_slots(w); s++)
            k->parts[s] = ATT_NONE;
    }
    return true;
}

void att_path_walk_fail(const att_path_walk *w)
{
    att_graph_fail(w->graph, att_fail_memory(w->graph->context, (size_t)w->values * sizeof *w->known, "paths"));
}

/* --- numbers of paths --------------------------------------------------------------------------------------------- */

static void count_paths(const att_path_walk *w, int index, const att_node *node, double *count)
{
    const att_path_rule how = att_path_rule_of(node);
    if (how == ATT_PATH_ATTEND) {
        const double *before = w->known[att_path_origin_of(w->graph, node)].count;
        for (int k = 0; k < w->layers; k++)
            count[k + 1] = before[k] * att_path_heads_of(w, att_path_layer_of(w, index));
        return;
    }
    for (int t = 0; t < (how == ATT_PATH_SUM ? 2 : 1); t++)
        for (int k = 0; k <= w->layers && att_path_is_linear(w, node->in[t]); k++)
            count[k] += w->known[node->in[t]].count[k];
}

static void count_all(att_path_walk *w)
{
    w->known[w->begin].count[0] = 1;
    for (int i = 0; i < w->nodes; i++) {
        const att_node *node = &w->graph->nodes.items[i];
        if (att_path_is_needed(w, node))
            count_paths(w, i, node, w->known[node->out[0]].count);
    }
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
static const att_node *find_nonlinear(const att_path_walk *w)
{
    for (int i = 0; i < w->nodes; i++) {
        const att_node *node = &w->graph->nodes.items[i];
        if (w->known[node->out[0]].linear || att_is_attention(node))
            continue;
        for (int j = 0; j < node->in_count; j++)
            if (att_path_is_linear(w, node->in[j]) && attends(w, node->in[j]))
                return node;
    }
    return NULL;
}

static bool check_layers(const att_path_walk *w, char reason[ATT_PATHS_REASON])
{
    const att_node *obstacle = find_nonlinear(w);
    if (obstacle && !att_path_is_linear(w, w->end))
        snprintf(reason, ATT_PATHS_REASON,
                 "paths cannot be followed through the operation \"%s\" behind the attention in %s, because it is not "
                 "linear or divides the heads",
                 obstacle->op->name, obstacle->scope);
    else if (!att_path_is_linear(w, w->end))
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

static void describe(const att_path_walk *w, att_paths *paths)
{
    const double *count = w->known[w->end].count;
    paths->layers = w->layers;
    paths->others = w->others;
    paths->longest = 0;
    for (int layer = 0; layer < w->layers; layer++)
        paths->heads[layer] = att_path_heads_of(w, layer);
    for (int k = 0; k <= w->layers; k++) {
        paths->count[k] = count[k];
        paths->longest = count[k] > 0 ? k : paths->longest;
    }
}

bool att_paths_find(att_graph *graph, att_paths *paths, char reason[ATT_PATHS_REASON])
{
    att_path_walk w;
    if (!find_stream(graph, paths, reason))
        return false;
    bool begun = att_path_walk_begin(graph, paths->begin, paths->end, &w);
    bool fits = begun && check_layers(&w, reason);
    if (fits && att_path_walk_allocate(&w)) {
        count_all(&w);
        describe(&w, paths);
    } else if (!begun || fits) {
        att_path_walk_fail(&w);
        fits = false;
        snprintf(reason, ATT_PATHS_REASON, "memory is exhausted");
    }
    att_arena_free(&w.arena);
    return fits;
}
