#include <attscope/ops.h>

#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "engine/graph/graph.h"
#include "engine/ops/attention.h"
#include "engine/ops/list.h"
#include "engine/ops/mix_pairs.h"
#include "engine/ops/mixing.h"

enum { STATS = 2, MAP = 3 }; /* outputs of attention */

static bool is_output(const att_graph *graph, const char *name)
{
    for (int i = 0; i < graph->outputs.count; i++)
        if (strcmp(graph->outputs.items[i].name, name) == 0)
            return true;
    return false;
}

/* A probe of attention nodes: the suffix of its name, and the function that returns the value to observe. */
typedef struct attention_probe {
    const char *name;
    att_value (*value)(att_graph *graph, const att_node *node);
} attention_probe;

bool att_is_attention(const att_node *node)
{
    bool with_content = node->op == &att_op_attention && node->stage == ATT_BODY;
    return !node->copy && (with_content || node->op == &att_op_mix_tokens || node->op == &att_op_mix_axes ||
                           node->op == &att_op_mix_pairs);
}

int64_t att_attention_keys(const att_graph *graph, const att_node *node)
{
    enum { ROW_MAP = 1, COLUMN_MAP };
    if (node->op == &att_op_mix_pairs) {
        att_shape rows = att_value_shape(graph, node->in[ROW_MAP]);
        att_shape columns = att_value_shape(graph, node->in[COLUMN_MAP]);
        return rows.dims[rows.rank - 1] * columns.dims[columns.rank - 1];
    }
    bool apart = node->op == &att_op_attention && node->in[ATT_ATTENTION_K] != ATT_NONE;
    att_shape shape = att_value_shape(graph, node->in[apart ? ATT_ATTENTION_K : ATT_ATTENTION_Q]);
    int64_t tokens = att_shape_count(shape) / shape.dims[shape.rank - 1];
    return tokens / att_attention_windows(ATT_ATTRS(node, attention));
}

double att_attention_entropy_bound(const att_graph *graph, const att_node *node)
{
    double keys = (double)att_attention_keys(graph, node);
    return ATT_ATTRS(node, attention)->causal ? lgamma(keys + 1) / keys : log(keys);
}

/* --- scores without content --------------------------------------------------------------------------------------- */

/* Attention with the scores of the node, a derived value: all its queries and keys are 0. Returns output `out`. */
static att_value derived_attention(att_graph *graph, const att_node *node, int out)
{
    att_attention_attrs attrs = *ATT_ATTRS(node, attention);
    att_attention_terms terms = att_mixing_terms(graph, node);
    if (terms.relative == ATT_NONE)
        terms.relative = att_join_shifts(graph, &attrs, &terms);
    attrs.key_heads = attrs.value_heads = 1;
    att_shape tokens = att_value_shape(graph, node->out[0]);
    att_value zeros = att_zeros(graph, att_shape_of(tokens.dims[0], attrs.heads + 2));
    att_value in[ATT_ATTENTION_INPUTS] = {zeros, ATT_NONE, ATT_NONE, terms.relative, ATT_NONE, ATT_NONE}, outs[4];
    att_emit(graph, "attention", &attrs, in, ATT_ATTENTION_INPUTS, outs);
    return outs[out];
}

/* Statistics or map of a node of mix_pairs, a derived value. */
static att_value derived_pairs(att_graph *graph, const att_node *node, int out)
{
    enum { ROW_MAP = 1, COLUMN_MAP };
    att_value in[] = {node->in[ROW_MAP], node->in[COLUMN_MAP]}, outs[2];
    att_emit(graph, "pair_maps", node->attrs, in, 2, outs);
    return outs[out == STATS ? ATT_PAIR_MAPS_STATS : ATT_PAIR_MAPS_MAP];
}

/* Puts the value before one row of the sample, which is cut off. */
att_value att_shared_for_samples(att_graph *graph, att_value shared, att_value sample)
{
    att_shape shape = att_value_shape(graph, shared), of_sample = att_value_shape(graph, sample);
    int64_t count = att_shape_count(shape), columns = of_sample.dims[of_sample.rank - 1];
    if (of_sample.rank > 2)
        sample = att_reshape(graph, sample, att_shape_of(att_shape_count(of_sample) / columns, columns));
    att_value token = att_reshape(graph, att_slice_tokens(graph, sample, 0, 1), att_shape_of(columns, 1));
    att_value joined = att_prepend_tokens(graph, shared, token);
    return att_reshape(graph, att_slice_tokens(graph, joined, 0, (int)count), shape);
}

/* --- the probes --------------------------------------------------------------------------------------------------- */

/* Output STATS or MAP; of scores without content a derived value. */
static att_value output_of(att_graph *graph, const att_node *node, int out)
{
    att_graph_scope(graph, node->scope);
    if (node->op == &att_op_attention)
        return node->out[out];
    return node->op == &att_op_mix_pairs ? derived_pairs(graph, node, out) : derived_attention(graph, node, out);
}

static att_value observed(att_graph *graph, const att_node *node, att_value value)
{
    return att_value_kind(graph, value) == ATT_SHARED ? att_shared_for_samples(graph, value, node->in[0]) : value;
}

static att_value stats_of(att_graph *graph, const att_node *node)
{
    return observed(graph, node, output_of(graph, node, STATS));
}

att_value att_attention_map(att_graph *graph, const att_node *node)
{
    return observed(graph, node, output_of(graph, node, MAP));
}

att_value att_attention_map_statistic(att_graph *graph, const att_node *node, int kind, double parameter)
{
    att_value rows = output_of(graph, node, MAP);
    return observed(graph, node, att_map_statistic(graph, rows, (att_map_statistic_kind)kind, parameter));
}

static att_value summary_of(att_graph *graph, const att_node *node)
{
    att_value stats = output_of(graph, node, STATS);
    return observed(graph, node, att_attention_summary(graph, stats, ATT_ATTRS(node, attention)->prefix));
}

static const attention_probe stats = {"stats", stats_of}, map = {"map", att_attention_map},
                             summary = {"summary", summary_of};

static void add_probe(att_graph *graph, att_node node, const attention_probe *probe)
{
    att_text name = {.context = graph->context};
    att_text_append(&name, "%s.%s", node.scope, probe->name);
    if (name.failed)
        att_graph_fail(graph, att_fail_memory(graph->context, name.length, "the name of an output"));
    else if (!is_output(graph, name.data))
        att_graph_probe(graph, name.data, probe->value(graph, &node));
    att_text_free(&name);
}

static att_status add_probes(att_graph *graph, const char *pattern, const attention_probe *probe)
{
    ATT_TRY(graph->status);
    bool found = false;
    int count = graph->nodes.count;
    for (int i = 0; i < count; i++) {
        att_node node = graph->nodes.items[i];
        if (!att_is_attention(&node) || !att_text_matches_any(pattern, node.scope))
            continue;
        found = true;
        add_probe(graph, node, probe);
    }
    if (!found)
        return att_fail(graph->context, ATT_ERR_NOT_FOUND, "no attention layer matches \"%s\"", pattern);
    return graph->status;
}

att_status att_graph_probe_attention_stats(att_graph *graph, const char *pattern)
{
    return add_probes(graph, pattern, &stats);
}

att_status att_graph_probe_attention_map(att_graph *graph, const char *pattern)
{
    return add_probes(graph, pattern, &map);
}

att_status att_graph_probe_attention_summary(att_graph *graph, const char *pattern)
{
    return add_probes(graph, pattern, &summary);
}
