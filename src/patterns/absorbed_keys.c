#include <attscope/ops.h>

#include "graph/graph.h"
#include "ops/attention.h"
#include "ops/axis_terms.h"
#include "ops/linear.h"
#include "ops/list.h"
#include "ops/matmul.h"
#include "ops/mixing.h"
#include "patterns/list.h"
#include "patterns/match.h"

/* Scores of heads that are about as wide as a token. With q = W_q x + b_q and k = W_k z + b_k of a head, q . k = (W_k'
 * W_q x + W_k' b_q) . z + q . b_k. The last term is the same for all keys of a query, so that the softmax does not
 * depend on it: z itself takes the place of the keys, and the product W_k' W_q is computed once per batch. Terms of
 * axes need q only in products R_s . q with the vectors R_s of shifts, which become R_s W_q x + R_s b_q: each shift is
 * a channel of new queries, whose tables are unit matrices. */

enum { LINEAR_X, LINEAR_WEIGHT, LINEAR_BIAS, LINEAR_RESIDUAL };
enum { TERMS_Q, TERMS_ROW_TABLE, TERMS_COLUMN_TABLE, TERMS_INPUTS };
enum { AXES = 2 };

/* A batch, in samples, for which products of weights must pay. */
enum { FEW_SAMPLES = 8 };

/* A layer W x + b with outputs for `heads` heads of `width` each. */
typedef struct projection {
    att_value x, weight, bias; /* bias: ATT_NONE if there is none */
    int64_t heads, width, inputs;
} projection;

static bool match_projection(const att_graph *graph, att_value value, int64_t heads, projection *p)
{
    const att_node *linear = att_match(graph, value, &att_op_linear);
    if (!linear || ATT_ATTRS(linear, linear)->activation != ATT_ACT_NONE || ATT_ATTRS(linear, linear)->transposed ||
        linear->in[LINEAR_RESIDUAL] != ATT_NONE)
        return false;
    const att_shape weight = att_value_shape(graph, linear->in[LINEAR_WEIGHT]);
    *p = (projection){.x = linear->in[LINEAR_X],
                      .weight = linear->in[LINEAR_WEIGHT],
                      .bias = linear->in[LINEAR_BIAS],
                      .heads = heads,
                      .width = weight.dims[0] / heads,
                      .inputs = weight.dims[1]};
    return weight.rank == 2 && weight.dims[0] % heads == 0 && att_value_shape(graph, p->x).rank == 2;
}

/* Whether fewer products are needed: of a sample, and with those of the weights if the batch is small. */
static bool is_worthwhile(const att_graph *graph, const projection *q, const projection *k)
{
    const int64_t queries = att_value_shape(graph, q->x).dims[0], keys = att_value_shape(graph, k->x).dims[0];
    const int64_t wider = k->inputs - q->width, weights = q->inputs * k->inputs * q->width;
    const int64_t saved = queries * q->inputs * q->width + keys * k->inputs * k->width -
                          queries * q->inputs * k->inputs - queries * keys * wider;
    return FEW_SAMPLES * saved > weights;
}

/* The product of the matrices of each head, a b or, with `transposed`, a' b. All rows of a head are below those of the
 * head before it, in a, in b, which has `columns` columns, and in the result. */
static att_value product_of_heads(att_graph *graph, int64_t heads, att_value a, bool transposed, att_value b,
                                  int64_t columns)
{
    const att_matmul_attrs attrs = {.scale = 1, .a_transposed = transposed};
    const att_shape of_a = att_value_shape(graph, a);
    const int64_t rows = of_a.dims[0] / heads, inner = transposed ? rows : of_a.dims[1];
    att_value in[] = {att_reshape(graph, a, att_shape_of(heads, rows, of_a.dims[1])),
                      att_reshape(graph, b, att_shape_of(heads, inner, columns))};
    const int64_t outputs = heads * (transposed ? of_a.dims[1] : rows);
    return att_reshape(graph, att_emit(graph, "matmul", &attrs, in, 2, NULL), att_shape_of(outputs, columns));
}

/* Emits a (W_q x + b_q), or a' (W_q x + b_q), for every head. a: as in product_of_heads() */
static att_value absorb(att_graph *graph, const projection *q, att_value a, bool transposed)
{
    const att_value weight = product_of_heads(graph, q->heads, a, transposed, q->weight, q->inputs);
    att_value bias = ATT_NONE;
    if (q->bias != ATT_NONE) {
        bias = product_of_heads(graph, q->heads, a, transposed, q->bias, 1);
        bias = att_reshape(graph, bias, att_shape_of(att_value_shape(graph, bias).dims[0]));
    }
    return att_linear(graph, q->x, weight, bias);
}

/* The tables of both axes as one, [shifts of rows + shifts of columns, d]. A table of some channels of a head has zeros
 * for the others. */
static att_value join_tables(att_graph *graph, const att_node *terms, int64_t width)
{
    const att_value rows = terms->in[TERMS_ROW_TABLE], columns = terms->in[TERMS_COLUMN_TABLE];
    const att_shape of_rows = att_value_shape(graph, rows), of_columns = att_value_shape(graph, columns);
    if (of_rows.dims[1] == width)
        return att_prepend_tokens(graph, rows, columns);
    const att_value right = att_filled(graph, att_shape_of(of_rows.dims[0], width - of_rows.dims[1]), 0);
    const att_value left = att_filled(graph, att_shape_of(of_columns.dims[0], width - of_columns.dims[1]), 0);
    return att_prepend_tokens(graph, att_concat(graph, rows, right), att_concat(graph, left, columns));
}

/* The matrix once for each head. */
static att_value repeat(att_graph *graph, att_value matrix, int64_t heads)
{
    const att_shape shape = att_value_shape(graph, matrix);
    const att_value row = att_reshape(graph, matrix, att_shape_of(1, shape.dims[0] * shape.dims[1]));
    const att_value rows = att_matmul(graph, att_filled(graph, att_shape_of(heads, 1), 1), row, false, 1);
    return att_reshape(graph, rows, att_shape_of(heads * shape.dims[0], shape.dims[1]));
}

/* Emits the terms of both axes. */
static void absorb_tables(att_graph *graph, const att_node *terms, const projection *q, att_value absorbed[AXES])
{
    const att_value table = join_tables(graph, terms, q->width);
    att_axis_terms_attrs attrs = *ATT_ATTRS(terms, axis_terms);
    att_value in[] = {
        absorb(graph, q, repeat(graph, table, q->heads), false),
        att_unit_matrix(graph, att_value_shape(graph, terms->in[TERMS_ROW_TABLE]).dims[0]),
        att_unit_matrix(graph, att_value_shape(graph, terms->in[TERMS_COLUMN_TABLE]).dims[0]),
    };
    attrs.width = (int32_t)att_value_shape(graph, table).dims[0];
    att_emit(graph, "axis_terms", &attrs, in, TERMS_INPUTS, absorbed);
}

/* The terms of axes that the node reads: absent, or computed by one node from the same queries. */
typedef struct axes {
    bool present;
    att_node terms;
} axes;

static bool match_axes(const att_graph *graph, const att_node *node, axes *a)
{
    *a = (axes){.present = node->in_count > ATT_ATTENTION_COLUMNS && node->in[ATT_ATTENTION_ROWS] != ATT_NONE};
    if (!a->present)
        return true;
    const att_node *terms = att_match(graph, node->in[ATT_ATTENTION_ROWS], &att_op_axis_terms);
    if (!terms || terms != att_match(graph, node->in[ATT_ATTENTION_COLUMNS], &att_op_axis_terms) ||
        terms->in[TERMS_Q] != node->in[ATT_ATTENTION_Q] || ATT_ATTRS(terms, axis_terms)->prefix > 0)
        return false;
    a->terms = *terms;
    return true;
}

static bool has_separate_inputs(const att_node *node)
{
    return node->op == &att_op_attention && node->in[ATT_ATTENTION_K] != ATT_NONE &&
           node->in[ATT_ATTENTION_V] != ATT_NONE;
}

static bool apply(att_graph *graph, const att_node *node, att_value *replacements)
{
    projection q, k;
    axes a;
    if (!has_separate_inputs(node) || !match_axes(graph, node, &a))
        return false;
    att_attention_attrs attrs = *ATT_ATTRS(node, attention);
    if (!match_projection(graph, node->in[ATT_ATTENTION_Q], attrs.heads, &q) ||
        !match_projection(graph, node->in[ATT_ATTENTION_K], attrs.heads, &k) || q.width != k.width ||
        !is_worthwhile(graph, &q, &k))
        return false;
    att_value in[ATT_ATTENTION_MOST_INPUTS];
    for (int i = 0; i < node->in_count; i++)
        in[i] = node->in[i];
    attrs.key_heads = 1;
    in[ATT_ATTENTION_Q] = absorb(graph, &q, k.weight, true);
    in[ATT_ATTENTION_K] = k.x;
    if (a.present)
        absorb_tables(graph, &a.terms, &q, &in[ATT_ATTENTION_ROWS]);
    att_emit(graph, "attention", &attrs, in, node->in_count, replacements);
    return true;
}

const att_pattern att_pattern_absorbed_keys = {
    .name = "absorbed_keys",
    .help =
        "q . k = (W_k' W_q x + W_k' b_q) . z, up to a number of each query, for q = W_q x + b_q and k = W_k z + b_k",
    .stage = ATT_BEFORE_GRADIENTS,
    .apply = apply,
};
