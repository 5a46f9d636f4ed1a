#include "lab/papers/experiments/san.h"

#include <math.h>
#include <stdio.h>

#include <attscope/nn.h>
#include <attscope/ops.h>

static const double NORM_EPS = 1e-12;
static const att_init zeros = {.rule = ATT_INIT_CONSTANT, .value = 0};
static const att_init normal = {.rule = ATT_INIT_NORMAL, .value = 0.02};

/* PyTorch's kaiming_uniform_ with a = sqrt(5), for `inputs` inputs. */
static att_init kaiming(int64_t inputs)
{
    return (att_init){.rule = ATT_INIT_UNIFORM, .value = 1 / sqrt((double)inputs)};
}

static int64_t head_width(const att_san_spec *spec)
{
    return spec->width / spec->heads;
}

static int64_t last_dim(const att_scope *scope, att_value x)
{
    att_shape shape = att_value_shape(scope->graph, x);
    return shape.rank > 0 ? shape.dims[shape.rank - 1] : 0;
}

/* The linear layer `name` of the scope. */
static att_value dense(const att_scope *scope, const char *name, att_value x, int64_t outputs, att_init init)
{
    att_scope in = att_scope_in(scope, "%s", name);
    att_scope_enter(&in);
    att_value weight = att_scope_parameter(&in, "weight", att_shape_of(outputs, last_dim(scope, x)), init, true);
    att_value bias = att_scope_parameter(&in, "bias", att_shape_of(outputs), zeros, false);
    att_value y = att_linear(scope->graph, x, weight, bias);
    att_scope_enter(scope);
    return y;
}

static att_value norm(const att_scope *scope, const char *name, att_value x)
{
    att_scope in = att_scope_in(scope, "%s", name);
    att_value y = att_nn_layer_norm(&in, x, NORM_EPS);
    att_scope_enter(scope);
    return y;
}

/* The vectors of the numbers, [vocabulary, C]. */
static att_value token_table(const att_scope *scope, const att_san_spec *spec)
{
    int64_t padding = spec->padding ? 1 : 0;
    att_shape shape = att_shape_of(spec->vocabulary - padding, spec->width);
    att_value table = att_scope_parameter(scope, "token", shape, normal, true);
    if (!spec->padding)
        return table;
    att_value row = att_graph_parameter(scope->graph, ATT_SAN_PADDING, att_shape_of(1, spec->width), normal, true);
    return att_prepend_tokens(scope->graph, row, table);
}

static att_value embed(att_graph *graph, const att_san_spec *spec)
{
    att_scope root = att_scope_root(graph), scope = att_scope_in(&root, "embed");
    att_scope_enter(&scope);
    att_value x;
    if (spec->vocabulary > 0) {
        att_value ids = att_graph_input(graph, "x", ATT_I32, att_shape_of(spec->tokens));
        x = att_embed(graph, token_table(&scope, spec), ids);
        att_shape positions = att_shape_of(spec->tokens, spec->width);
        if (spec->positions)
            x = att_add(graph, x, att_scope_parameter(&scope, "position", positions, normal, true));
    } else {
        x = att_graph_input(graph, "x", att_graph_dtype(graph), att_shape_of(spec->tokens, ATT_SAN_POINT));
    }
    x = dense(&scope, "fc1", x, spec->width, normal);
    if (spec->deep_embedding)
        x = dense(&scope, "fc2", att_gelu(graph, x), spec->width, normal);
    return att_dropout(graph, norm(&scope, "norm", x), spec->dropout);
}

/* [N, C] -> [H, N, d] */
static att_value split_heads(att_graph *graph, const att_san_spec *spec, att_value x)
{
    att_value heads = att_reshape(graph, x, att_shape_of(spec->tokens, spec->heads, head_width(spec)));
    return att_transpose(graph, heads, (const int[]){1, 0, 2}, 3);
}

/* Attention from single operations, since the operation `attention` has no dropout of its map. scores_of_keys: [H, N,
 * N], or ATT_NONE. */
static att_value attend(const att_scope *scope, const att_san_spec *spec, att_value x, att_value scores_of_keys)
{
    att_graph *graph = scope->graph;
    att_value q = split_heads(graph, spec, dense(scope, "query", x, spec->width, normal));
    att_value k = split_heads(graph, spec, dense(scope, "key", x, spec->width, normal));
    att_value v = split_heads(graph, spec, dense(scope, "value", x, spec->width, kaiming(spec->width)));
    att_value scores = att_matmul(graph, q, k, true, 1 / sqrt((double)head_width(spec)));
    if (scores_of_keys != ATT_NONE)
        scores = att_add(graph, scores, scores_of_keys);
    att_value map = att_dropout(graph, att_softmax(graph, scores), spec->dropout);
    att_value heads = att_transpose(graph, att_matmul(graph, map, v, false, 1), (const int[]){1, 0, 2}, 3);
    att_value mixed = att_reshape(graph, heads, att_shape_of(spec->tokens, spec->width));
    return dense(scope, "output", mixed, spec->width, kaiming(spec->width));
}

static att_value layer(const att_scope *scope, const att_san_spec *spec, att_value x, att_value scores_of_keys)
{
    att_graph *graph = scope->graph;
    att_value branch = att_dropout(graph, attend(scope, spec, x, scores_of_keys), spec->dropout);
    x = norm(scope, "norm", att_add(graph, x, branch));
    if (!spec->mlp)
        return x;
    branch = att_gelu(graph, dense(scope, "fc1", x, spec->width, normal));
    branch = att_dropout(graph, dense(scope, "fc2", branch, spec->width, normal), spec->dropout);
    return norm(scope, "mlp_norm", att_add(graph, x, branch));
}

static att_value input_keys(att_graph *graph, const att_san_spec *spec)
{
    return spec->padded ? att_graph_input(graph, "keys", att_graph_dtype(graph), att_shape_of(spec->tokens)) : ATT_NONE;
}

/* The same scores for each query of each head: [H, N, N]. */
static att_value spread_keys(att_graph *graph, const att_san_spec *spec)
{
    att_value keys = input_keys(graph, spec);
    if (keys == ATT_NONE)
        return ATT_NONE;
    att_value rows = att_repeat_tokens(graph, keys, spec->heads * spec->tokens, 1);
    return att_reshape(graph, rows, att_shape_of(spec->heads, spec->tokens, spec->tokens));
}

att_value att_san_build(att_graph *graph, const att_san_spec *spec)
{
    att_value x = embed(graph, spec), scores_of_keys = spread_keys(graph, spec);
    att_graph_output(graph, "embedded", x);
    att_scope root = att_scope_root(graph);
    for (int l = 0; l < spec->depth; l++) {
        att_scope scope = att_scope_in(&root, "layers.%d", l);
        att_scope_enter(&scope);
        x = layer(&scope, spec, x, scores_of_keys);
    }
    att_scope_enter(&root);
    att_value logits = dense(&root, "head", att_dropout(graph, x, spec->dropout), spec->outputs, normal);
    att_graph_output(graph, "result", logits);
    return logits;
}

/* --- paths -------------------------------------------------------------------------------------------------------- */

static att_value constant_vector(att_graph *graph, const att_san_spec *spec, double value)
{
    double wide[ATT_SAN_MOST_WIDTH];
    float narrow[ATT_SAN_MOST_WIDTH];
    for (int64_t i = 0; i < spec->width; i++) {
        wide[i] = value;
        narrow[i] = (float)value;
    }
    bool is_wide = att_graph_dtype(graph) == ATT_F64;
    return att_graph_constant(graph, att_graph_dtype(graph), att_shape_of(spec->width),
                              is_wide ? (const void *)wide : (const void *)narrow);
}

/* A layer norm without weight and bias. */
static att_value plain_norm(att_graph *graph, const att_san_spec *spec, att_value x)
{
    return att_layer_norm(graph, x, constant_vector(graph, spec, 1), constant_vector(graph, spec, 0), NORM_EPS);
}

/* The parameter `name` of all layers, one below the other: rows of rows_each rows of `columns` numbers for each layer.
 * transposed: of the transposed matrix. */
typedef struct table_spec {
    const char *name;
    att_shape shape; /* of the parameter */
    bool transposed;
    int64_t rows_each, columns;
} table_spec;

static att_value stack(att_graph *graph, const att_san_spec *spec, const table_spec *table)
{
    att_value all = ATT_NONE;
    for (int l = 0; l < spec->depth; l++) {
        char name[64];
        snprintf(name, sizeof name, "layers.%d.%s", l, table->name);
        att_value own = att_graph_parameter(graph, name, table->shape, zeros, table->shape.rank > 1);
        if (table->transposed)
            own = att_transpose(graph, own, (const int[]){1, 0}, 2);
        own = att_reshape(graph, own, att_shape_of(table->rows_each, table->columns));
        all = l == 0 ? own : att_prepend_tokens(graph, all, own);
    }
    return all;
}

/* A step under construction, with its inputs. */
typedef struct path_step {
    att_graph *graph;
    const att_san_spec *spec;
    att_value layer, head;
} path_step;

/* A vector of the step's layer, in every token: [N, columns]. by_head: the part that belongs to the head. */
static att_value vector_of(const path_step *step, const char *name, bool by_head)
{
    const att_san_spec *spec = step->spec;
    int64_t rows = by_head ? spec->heads : 1;
    const table_spec table = {name, att_shape_of(spec->width), false, rows, spec->width / rows};
    att_value row = att_embed(step->graph, stack(step->graph, spec, &table), by_head ? step->head : step->layer);
    return att_repeat_tokens(step->graph, row, spec->tokens, 1);
}

/* A matrix of the step's layer. by_head: the rows (transposed: the rows of the transposed matrix) that belong to the
 * head. */
static att_value matrix_of(const path_step *step, const char *name, bool by_head, bool transposed)
{
    const att_san_spec *spec = step->spec;
    int64_t parts = by_head ? spec->heads : 1, rows = spec->width / parts;
    const table_spec table = {name, att_shape_of(spec->width, spec->width), transposed, parts, rows * spec->width};
    att_value row = att_embed(step->graph, stack(step->graph, spec, &table), by_head ? step->head : step->layer);
    return att_reshape(step->graph, row, att_shape_of(rows, spec->width));
}

/* The layer's linear layer `name`; by_head: only the outputs that belong to the head. */
static att_value dense_of(const path_step *step, const char *name, att_value x, bool by_head)
{
    char weight[48], bias[48];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    att_value y = att_matmul(step->graph, x, matrix_of(step, weight, by_head, false), true, 1);
    return att_add(step->graph, y, vector_of(step, bias, by_head));
}

static att_value head_of(const path_step *step, att_value x)
{
    att_graph *graph = step->graph;
    att_attention_terms terms = att_attention_no_terms();
    terms.keys = input_keys(graph, step->spec);
    att_attention_options options = {.heads = 1, .terms = terms.keys == ATT_NONE ? NULL : &terms};
    att_value mixed = att_attention(graph, dense_of(step, "query", x, true), dense_of(step, "key", x, true),
                                    dense_of(step, "value", x, true), &options);
    att_value y = att_matmul(graph, mixed, matrix_of(step, "output.weight", true, true), false, 1);
    return att_add(graph, y, vector_of(step, "output.bias", false));
}

/* The MLP with its residual and its norm, which has the layer's weight and bias. */
static att_value mlp_of(const path_step *step, att_value x)
{
    att_graph *graph = step->graph;
    const att_san_spec *spec = step->spec;
    att_value branch = dense_of(step, "fc2", att_gelu(graph, dense_of(step, "fc1", x, false)), false);
    att_value y = plain_norm(graph, spec, att_add(graph, x, branch));
    const table_spec table = {"mlp_norm.weight", att_shape_of(spec->width), false, 1, spec->width};
    y = att_gate(graph, y, att_embed(graph, stack(graph, spec, &table), step->layer));
    return att_add(graph, y, vector_of(step, "mlp_norm.bias", false));
}

static att_value input_state(att_graph *graph, const att_san_spec *spec)
{
    return att_graph_input(graph, "state", att_graph_dtype(graph), att_shape_of(spec->tokens, spec->width));
}

void att_san_build_step(att_graph *graph, const att_san_spec *spec)
{
    const att_shape scalar = {.rank = 0};
    att_value state = input_state(graph, spec);
    const path_step step = {.graph = graph,
                            .spec = spec,
                            .layer = att_graph_input(graph, "layer", ATT_I32, scalar),
                            .head = att_graph_input(graph, "head", ATT_I32, scalar)};
    att_graph_scope(graph, "step");
    att_value next = plain_norm(graph, spec, head_of(&step, state));
    att_graph_output(graph, "next", spec->mlp ? mlp_of(&step, next) : next);
}

void att_san_build_end(att_graph *graph, const att_san_spec *spec)
{
    att_scope root = att_scope_root(graph);
    att_scope_enter(&root);
    att_value x = plain_norm(graph, spec, input_state(graph, spec));
    att_graph_output(graph, "result", dense(&root, "head", x, spec->outputs, normal));
}
