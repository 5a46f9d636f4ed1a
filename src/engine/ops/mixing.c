#include "engine/ops/mixing.h"
#include <attscope/ops.h>

#include "base/core/error.h"
#include "engine/graph/graph.h"
#include "engine/ops/attention_rule.h"
#include "engine/ops/drop.h"
#include "engine/ops/list.h"
#include "engine/ops/mixing_rule.h"
#include "engine/ops/rule.h"

enum { V, MAP, ROW_MAP = MAP, COLUMN_MAP };

att_status att_mixing_check_rows(const att_infer *infer, int i, const char *name, int64_t heads)
{
    const att_attention_attrs *attrs = infer->attrs;
    ATT_TRY(att_rule_require_rank(infer, i, name, ATT_SAMPLE, 2));
    const int64_t *dims = infer->in[i].shape.dims;
    if (attrs->heads < 1 || attrs->value_heads < 1 || attrs->heads % attrs->value_heads || dims[1] % heads)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "rows of %s %s do not divide into %d heads and %d of values",
                             name, ATT_SHOWN(&infer->in[i]), attrs->heads, attrs->value_heads);
    if (attrs->prefix < 0 || attrs->grid_h < 1 || attrs->grid_w < 1 ||
        attrs->prefix + (int64_t)attrs->grid_h * attrs->grid_w != dims[0])
        return att_rule_fail(infer, ATT_ERR_MISMATCH,
                             "%lld tokens without %d prefix tokens do not fill a grid of %d x %d", (long long)dims[0],
                             attrs->prefix, attrs->grid_h, attrs->grid_w);
    return ATT_OK;
}

static att_status check(att_context *context, const att_attention_attrs *attrs, const att_attention_terms *terms)
{
    if (terms->rows != ATT_NONE || terms->columns != ATT_NONE || terms->keys != ATT_NONE)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "attention: rows, columns and keys depend on the image, and scores without q and k do not; "
                        "give row_shifts and column_shifts, or relative");
    if (terms->relative == ATT_NONE && terms->row_shifts == ATT_NONE)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "attention: without q and k scores need terms: relative, or row_shifts and column_shifts");
    if (attrs->grid_h < 1 || attrs->grid_w < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "attention: terms need a grid");
    ATT_TRY(att_attention_check_drop_rate(context, attrs));
    if (attrs->window_h || attrs->window_w || attrs->causal)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "attention: without q and k there are neither windows nor causality");
    return ATT_OK;
}

static att_value map_of(att_graph *graph, att_value table, int prefix, int height, int width)
{
    return att_softmax(graph, att_shift_scores(graph, table, prefix, height, width));
}

/* The map over the whole grid. */
static att_value whole_map(att_graph *graph, const att_attention_attrs *attrs, const att_attention_terms *terms)
{
    att_value relative = terms->row_shifts == ATT_NONE ? terms->relative : att_join_shifts(graph, attrs, terms);
    return map_of(graph, relative, attrs->prefix, attrs->grid_h, attrs->grid_w);
}

att_value att_mixing_attention(att_graph *graph, att_value v, const att_attention_attrs *attrs,
                               const att_attention_terms *terms)
{
    att_status status = check(graph->context, attrs, terms);
    if (status != ATT_OK)
        return att_graph_fail(graph, status);
    int h = attrs->grid_h, w = attrs->grid_w;
    if (terms->relative == ATT_NONE && attrs->prefix == 0) {
        att_value in[] = {v, map_of(graph, terms->row_shifts, 0, h, 1), map_of(graph, terms->column_shifts, 0, 1, w)};
        return att_emit(graph, "mix_axes", attrs, in, 3, NULL);
    }
    att_value in[] = {v, whole_map(graph, attrs, terms)};
    return att_emit(graph, "mix_tokens", attrs, in, 2, NULL);
}

att_value att_mixing_in_training(att_graph *graph, const att_node *node)
{
    att_attention_attrs attrs = *ATT_ATTRS(node, attention);
    const att_drop_attrs drop = {.rate = attrs.drop_rate, .stream = attrs.drop_stream};
    if (attrs.drop_rate == 0)
        return ATT_NONE;
    const att_attention_terms terms = att_mixing_terms(graph, node);
    att_value map = node->op == &att_op_mix_tokens ? node->in[MAP] : whole_map(graph, &attrs, &terms);
    att_value in[] = {node->in[V], att_emit(graph, "dropout", &drop, &map, 1, NULL)};
    attrs.drop_rate = 0;
    return att_emit(graph, "mix_tokens", &attrs, in, 2, NULL);
}

/* The table of a map that map_of() made. */
static att_value table_of(const att_graph *graph, att_value map)
{
    const att_node *softmax = att_graph_producer(graph, map), *scores = att_graph_producer(graph, softmax->in[0]);
    return scores->in[0];
}

att_attention_terms att_mixing_terms(const att_graph *graph, const att_node *node)
{
    att_attention_terms terms = att_attention_no_terms();
    if (node->op == &att_op_mix_tokens) {
        terms.relative = table_of(graph, node->in[MAP]);
    } else {
        terms.row_shifts = table_of(graph, node->in[ROW_MAP]);
        terms.column_shifts = table_of(graph, node->in[COLUMN_MAP]);
    }
    return terms;
}
