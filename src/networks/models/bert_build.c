/* Builds a network of the BERT family. */
#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "networks/models/bert.h"
#include "networks/models/patches.h"
#include "networks/models/token_block.h"

typedef struct bert_build {
    att_graph *graph;
    const att_bert_options *options;
    att_token_form form;
    att_scope root;
    att_value keys; /* [T]: 0 for tokens, minus infinity for padding */
} bert_build;

static bool is(const char *text, const char *name)
{
    return strcmp(text, name) == 0;
}

/* --- constants ---------------------------------------------------------------------------------------------------- */

/* A constant [rows, columns] of the graph's type. */
static att_value build_constant(att_graph *graph, int64_t rows, int64_t columns,
                                double (*number)(int64_t row, int64_t column, int64_t rows))
{
    att_context *context = att_graph_context(graph);
    const size_t size = att_dtype_size(att_graph_dtype(graph)), count = (size_t)rows * (size_t)columns;
    char *numbers = att_allocate_array(context, count, size);
    if (!numbers)
        return att_graph_fail(graph, att_fail_memory(context, count * size, "a table of positions"));
    for (size_t i = 0; i < count; i++) {
        const double value = number((int64_t)i / columns, (int64_t)i % columns, rows);
        const float single = (float)value;
        memcpy(numbers + i * size, size == sizeof single ? (const void *)&single : (const void *)&value, size);
    }
    att_value constant = att_graph_constant(graph, att_graph_dtype(graph), att_shape_of(rows, columns), numbers);
    att_free(context, numbers);
    return constant;
}

/* Row n is the mask of a text of n tokens. */
static double mask_of(int64_t row, int64_t column, int64_t rows)
{
    (void)rows;
    return column < row ? 0 : -INFINITY;
}

/* --- relative positions ------------------------------------------------------------------------------------------- */

enum { RANGES = 32, HALF = RANGES / 2, EXACT = HALF / 2, FARTHEST = 128 };

/* The range of a distance from key to query. Short distances have a range each, others share logarithmic ranges up to
 * FARTHEST; keys after the query have the second half. In single precision, as in MPNet's code, because rounding
 * decides at the ends of ranges. (Raffel et al., JMLR 2020) */
static int range_of(int64_t distance)
{
    const int first = distance < 0 ? HALF : 0;
    const float n = (float)(distance < 0 ? -distance : distance);
    if (n < EXACT)
        return first + (int)n;
    const float place = logf(n / EXACT) / (float)log((double)FARTHEST / EXACT) * (HALF - EXACT);
    return first + (place < HALF - 1 - EXACT ? EXACT + (int)place : HALF - 1);
}

/* 1 if the shift of the row, -(T - 1) to T - 1, is in the range of the column. */
static double is_in_range(int64_t row, int64_t column, int64_t rows)
{
    return range_of(row - (rows - 1) / 2) == column;
}

/* The biases [2 T - 1, heads] of all shifts. */
static att_value build_biases(const bert_build *build)
{
    const att_bert_options *o = build->options;
    const att_scope scope = att_scope_in(&build->root, "rel_pos_bias");
    const att_value table =
        att_scope_parameter(&scope, "weight", att_shape_of(RANGES, o->num_heads), att_init_linear(), true);
    att_scope_enter(&scope);
    const att_value ranges = build_constant(build->graph, 2 * (int64_t)o->context_length - 1, RANGES, is_in_range);
    return att_matmul(build->graph, ranges, table, false, 1);
}

/* --- embeddings --------------------------------------------------------------------------------------------------- */

static att_value build_table(const bert_build *build, const char *name, int rows)
{
    const att_bert_options *o = build->options;
    const att_scope scope = att_scope_in(&build->root, "%s", name);
    att_scope_enter(&scope);
    return att_scope_parameter(&scope, "weight", att_shape_of(rows, o->embed_rank ? o->embed_rank : o->embed_dim),
                               att_init_linear(), true);
}

/* norm(word + position + type), made as wide as a token. No sum of two samples is an addition here: instruments would
 * take that for a residual step. */
static att_value build_embedding(bert_build *build)
{
    const att_bert_options *o = build->options;
    att_graph *graph = build->graph;
    const att_shape length = att_shape_of(o->context_length);
    const att_scope norm = att_scope_in(&build->root, "norm_embed"), wide = att_scope_in(&build->root, "embed_proj");
    const att_scope mask = att_scope_in(&build->root, "padding");
    const att_value tokens = att_graph_input(graph, ATT_TOKENS, ATT_I32, length);
    const att_value types =
        o->type_vocab_size > 0 ? att_graph_input(graph, ATT_TOKEN_TYPES, ATT_I32, length) : (att_value)ATT_NONE;
    const att_value count = att_graph_input(graph, ATT_TOKEN_COUNT, ATT_I32, (att_shape){0});
    att_value x = att_embed(graph, build_table(build, "word_embed", o->vocab_size), tokens);
    const att_value positions = build_table(build, "pos_embed", o->max_positions);
    x = att_add(graph, x, att_slice_tokens(graph, positions, 0, o->context_length));
    if (types != ATT_NONE)
        x = att_combine(graph, 1, x, 1, att_embed(graph, build_table(build, "type_embed", o->type_vocab_size), types));
    x = att_token_norm(&norm, x, &build->form.norm, 1);
    if (o->embed_rank > 0)
        x = att_nn_linear(&wide, x, o->embed_dim, true);
    att_scope_enter(&mask);
    build->keys = att_embed(graph, build_constant(graph, o->context_length + 1, o->context_length, mask_of), count);
    return x;
}

/* --- the network -------------------------------------------------------------------------------------------------- */

static att_token_form form_of(const att_bert_options *o)
{
    return (att_token_form){.width = o->embed_dim,
                            .heads = o->num_heads,
                            .norm = {.eps = o->norm_eps},
                            .sum_norm = true,
                            .qkv_bias = true,
                            .proj_bias = true,
                            .start = ATT_START_NORMAL,
                            .activate = att_activation_named(o->act_layer),
                            .grid = {1, o->context_length},
                            .patch = {1, 1},
                            .attn_drop = o->attn_drop_rate};
}

/* A block in a group of several has the parameters of the group's first one, under the number of the group. */
static att_scope scope_of(const bert_build *build, int index)
{
    const att_bert_options *o = build->options;
    const int each = o->groups > 0 ? o->depth / o->groups : 1;
    att_scope scope = att_scope_in(&build->root, "blocks.%d", index);
    if (each > 1) {
        scope.replaced = (int)strlen(scope.path);
        snprintf(scope.source, sizeof scope.source, "blocks.%d", index / each);
        scope.again = index % each > 0;
    }
    return scope;
}

static att_value build_block(const bert_build *build, int index, att_value x)
{
    static const att_modules none = {.count = 0};
    const att_bert_options *o = build->options;
    const att_token_block block = {.form = &build->form,
                                   .modules = &none,
                                   .scope = scope_of(build, index),
                                   .index = index,
                                   .hidden = att_mlp_hidden(o->embed_dim, o->mlp_ratio),
                                   .drop_path = att_drop_path_of(o->drop_path_rate, index, o->depth)};
    return att_token_transform(&block, att_token_attend(&block, x));
}

/* A row [1, C] as a vector. */
static att_value as_vector(const bert_build *build, att_value row)
{
    return att_reshape(build->graph, row, att_shape_of(build->options->embed_dim));
}

static void build_pool(const bert_build *build, att_value x, att_features *features)
{
    const att_bert_options *o = build->options;
    att_graph *graph = build->graph;
    const att_scope pool = att_scope_in(&build->root, "pool"), pooler = att_scope_in(&build->root, "pooler");
    att_scope_enter(&pool);
    const att_value shares = att_reshape(graph, att_softmax(graph, build->keys), att_shape_of(1, o->context_length));
    features->tokens = x;
    features->shares = shares;
    features->pooled = as_vector(build, is(o->global_pool, ATT_BERT_MEAN) ? att_matmul(graph, shares, x, false, 1)
                                                                          : att_slice_tokens(graph, x, 0, 1));
    if (is(o->pooler, ATT_BERT_NO_POOLER))
        return;
    const att_value wide = att_nn_linear(&pooler, features->pooled, o->embed_dim, true);
    features->pooled = is(o->pooler, "relu") ? att_relu(graph, wide) : att_tanh(graph, wide);
}

void att_bert_build(att_graph *graph, const void *options, att_features *features)
{
    const att_bert_options *o = options;
    bert_build build = {.graph = graph, .options = o, .form = form_of(o), .root = att_scope_root(graph)};
    att_value *blocks = att_features_of_tokens(graph, 0, 1, o->context_length, o->depth, features);
    if (!blocks)
        return;
    att_value x = build_embedding(&build);
    build.form.keys = &build.keys;
    if (o->rel_pos_bias)
        build.form.relative = (att_relative_form){.kind = ATT_RELATIVE_SHARED, .shared = build_biases(&build)};
    for (int i = 0; i < o->depth; i++)
        blocks[i] = x = build_block(&build, i, x);
    build_pool(&build, x, features);
}
