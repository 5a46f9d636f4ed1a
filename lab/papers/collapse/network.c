/* The blocks of a ViT as layers of a stack. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/encoder.h>
#include <attscope/lab/collapse.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "engine/graph/graph.h"

/* Name of the probe of the first block's input. */
#define TOKENS "stack.tokens"

struct att_stack_network {
    att_arena arena; /* holds all weights and tokens */
    att_stack_weights *layers;
};

static const att_stack_weights *layer_at(void *user, int index)
{
    return &((const att_stack_network *)user)->layers[index];
}

typedef struct reading {
    att_context *context;
    att_network *opened;
    att_graph *graph;
    att_stack_options *to;
    att_stack_network *network;
    const char *scope; /* of the block that is read */
    att_value tokens;  /* the input of the first block */
    att_status status; /* of the first failure */
} reading;

/* --- the graph ---------------------------------------------------------------------------------------------------- */

static bool is(const att_node *node, const char *op)
{
    return node && strcmp(node->op->name, op) == 0;
}

static const att_node *producer(const reading *r, att_value value)
{
    const int node = value == ATT_NONE ? -1 : r->graph->values.items[value].node;
    return node < 0 ? NULL : &r->graph->nodes.items[node];
}

/* The first node with the operation that reads the output of `from`: as its first input or, with `any`, as another. */
static const att_node *reader(const reading *r, const att_node *from, const char *op, bool any)
{
    for (int i = 0; from && i < r->graph->nodes.count; i++) {
        const att_node *node = &r->graph->nodes.items[i];
        if (is(node, op) && (node->in[0] == from->out[0] || (any && node->in[1] == from->out[0])))
            return node;
    }
    return NULL;
}

static att_value input_of(const att_node *node, int index)
{
    return node && index < node->in_count ? node->in[index] : ATT_NONE;
}

enum { SOURCE = 256 };

/* Writes where the value comes from: a parameter, possibly in another layout, or an operation. */
static void describe_source(const reading *r, att_value value, char text[SOURCE])
{
    const att_node *node = producer(r, value);
    const char *op = node ? node->op->name : "";
    int parameter = att_graph_parameter_of(r->graph, value);
    for (; parameter < 0 && node && node->in_count == 1; node = producer(r, node->in[0]))
        parameter = att_graph_parameter_of(r->graph, node->in[0]);
    snprintf(text, SOURCE, "%s \"%s\"", parameter < 0 ? "the result of" : "the tensor",
             parameter < 0 ? op : r->graph->parameters.items[parameter].name);
}

/* The nodes of one block. projections: one linear layer for queries, keys and values, or one for each. scale1, scale2:
 * of layer scale; NULL: none. */
typedef struct block {
    const att_node *norm1, *projections[3], *attention, *proj, *scale1, *norm2, *fc1, *fc2, *scale2;
    bool apart;
    att_value instead; /* of the part that is missing; ATT_NONE: unknown */
} block;

/* Finds the layers that make queries, keys and values. Returns the name of the first part that is missing. */
static const char *follow_projections(const reading *r, block *b)
{
    b->apart = input_of(b->attention, 1) != ATT_NONE;
    for (int i = 0; i < (b->apart ? 3 : 1); i++) {
        b->instead = input_of(b->attention, i);
        b->projections[i] = producer(r, b->instead);
        if (!is(b->projections[i], "linear"))
            return "a linear layer in front of the attention's queries, keys and values";
        if (input_of(b->projections[i], 0) != input_of(b->projections[0], 0))
            return "queries, keys and values of the same tokens";
    }
    b->instead = input_of(b->projections[0], 0);
    b->norm1 = producer(r, b->instead);
    if (!is(b->norm1, "layer_norm"))
        return "layer norm in front of the attention";
    b->instead = ATT_NONE;
    return NULL;
}

/* Follows the graph from the attention node. Returns the name of the first part that is missing; NULL: none. */
static const char *follow(const reading *r, block *b)
{
    const char *missing = follow_projections(r, b);
    if (missing)
        return missing;
    b->proj = reader(r, b->attention, "linear", false);
    if (!b->proj)
        return "a linear layer after the attention";
    b->scale1 = reader(r, b->proj, "scale", false);
    b->norm2 = reader(r, reader(r, b->scale1 ? b->scale1 : b->proj, "add", true), "layer_norm", false);
    b->fc1 = reader(r, b->norm2, "linear", false);
    if (!b->fc1)
        return "an addition, layer norm and an MLP after the attention";
    b->fc2 = reader(r, reader(r, b->fc1, "gelu", false), "linear", false);
    if (!b->fc2)
        return "GELU (erf) in the MLP";
    b->scale2 = reader(r, b->fc2, "scale", false);
    return NULL;
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

static double *keep(reading *r, size_t count)
{
    double *data = att_arena_allocate(&r->network->arena, count * sizeof *data);
    if (!data && r->status == ATT_OK)
        r->status = att_fail_memory(r->context, count * sizeof *data, "the weights of a stack");
    return data;
}

/* Reads the parameter `value` of `count` elements. NULL: it is absent, or the reading has failed. */
static double *read_parameter(reading *r, att_value value, int64_t count)
{
    if (value == ATT_NONE || r->status != ATT_OK)
        return NULL;
    const int parameter = att_graph_parameter_of(r->graph, value);
    const att_parameter_info *info = parameter < 0 ? NULL : &r->graph->parameters.items[parameter];
    if (!info || att_shape_count(info->shape) != count) {
        char source[SOURCE];
        describe_source(r, value, source);
        r->status = att_fail(r->context, ATT_ERR_UNSUPPORTED,
                             "%s: attscope stack expects a tensor of %lld elements, and the network has %s", r->scope,
                             (long long)count, source);
        return NULL;
    }
    const att_weights *weights = att_network_weights(r->opened);
    double *wide = keep(r, (size_t)count);
    float *narrow = att_allocate_array(r->context, (size_t)count, sizeof *narrow);
    if (!narrow)
        r->status = att_fail_memory(r->context, (size_t)count * sizeof *narrow, "the weights of a stack");
    if (r->status == ATT_OK)
        r->status = att_weights_get(weights, -1, att_weights_find(weights, info->name), narrow, count);
    for (int64_t i = 0; i < count && r->status == ATT_OK; i++) {
        wide[i] = narrow[i];
        if (!isfinite(narrow[i]))
            r->status =
                att_fail(r->context, ATT_ERR_NONFINITE, "the tensor \"%s\" contains NaN or infinity", info->name);
    }
    att_free(r->context, narrow);
    return r->status == ATT_OK ? wide : NULL;
}

/* Returns rows [first, first + outputs) of a matrix [.., inputs] as [inputs, outputs]. */
static double *transpose(reading *r, const double *rows, int first, int outputs, int inputs)
{
    double *to = rows ? keep(r, (size_t)outputs * (size_t)inputs) : NULL;
    for (int o = 0; to && o < outputs; o++)
        for (int i = 0; i < inputs; i++)
            to[i * outputs + o] = rows[(size_t)(first + o) * (size_t)inputs + (size_t)i];
    return to;
}

/* Reads the matrix of a linear layer, as [inputs, outputs]. */
static double *read_matrix(reading *r, const att_node *linear, int outputs, int inputs)
{
    return transpose(r, read_parameter(r, input_of(linear, 1), (int64_t)outputs * inputs), 0, outputs, inputs);
}

/* Multiplies the columns of w and the bias by layer scale. */
static void fold_scale(reading *r, const att_node *scale, double *w, double *bias, int inputs)
{
    int width = r->to->width;
    double *gamma = read_parameter(r, input_of(scale, 1), width);
    for (int i = 0; gamma && w && i < inputs * width; i++)
        w[i] *= gamma[i % width];
    for (int c = 0; gamma && bias && c < width; c++)
        bias[c] *= gamma[c];
}

/* One layer for queries, keys and values. Its bias is a parameter, or joins those of queries, keys and values, as in
 * BEiT. That of the keys adds the same number to all scores of a query, so it has no effect. */
static void read_joined(reading *r, const block *b, att_stack_weights *w)
{
    const att_node *linear = b->projections[0];
    int d = r->to->width;
    double *qkv = read_parameter(r, input_of(linear, 1), (int64_t)3 * d * d);
    const att_node *outer = producer(r, input_of(linear, 2));
    const att_node *inner = producer(r, input_of(outer, 0));
    w->q = transpose(r, qkv, 0, d, d);
    w->k = transpose(r, qkv, d, d, d);
    w->v = transpose(r, qkv, 2 * d, d, d);
    if (is(outer, "concat") && is(inner, "concat")) {
        w->q_bias = read_parameter(r, input_of(inner, 0), d);
        w->v_bias = read_parameter(r, input_of(outer, 1), d);
        return;
    }
    double *bias = read_parameter(r, input_of(linear, 2), (int64_t)3 * d);
    w->q_bias = bias;
    w->v_bias = bias ? bias + 2 * d : NULL;
}

/* A layer for each of queries, keys and values. */
static void read_apart(reading *r, const block *b, att_stack_weights *w)
{
    int d = r->to->width;
    w->q = read_matrix(r, b->projections[0], d, d);
    w->k = read_matrix(r, b->projections[1], d, d);
    w->v = read_matrix(r, b->projections[2], d, d);
    w->q_bias = read_parameter(r, input_of(b->projections[0], 2), d);
    w->v_bias = read_parameter(r, input_of(b->projections[2], 2), d);
}

static void read_layer(reading *r, const block *b, att_stack_weights *w)
{
    int d = r->to->width, f = r->to->hidden;
    double *o = read_matrix(r, b->proj, d, d), *o_bias = read_parameter(r, input_of(b->proj, 2), d);
    double *fc2 = read_matrix(r, b->fc2, d, f), *fc2_bias = read_parameter(r, input_of(b->fc2, 2), d);
    fold_scale(r, b->scale1, o, o_bias, d);
    fold_scale(r, b->scale2, fc2, fc2_bias, f);
    *w = (att_stack_weights){.o = o,
                             .o_bias = o_bias,
                             .norm1_weight = read_parameter(r, input_of(b->norm1, 1), d),
                             .norm1_bias = read_parameter(r, input_of(b->norm1, 2), d),
                             .norm2_weight = read_parameter(r, input_of(b->norm2, 1), d),
                             .norm2_bias = read_parameter(r, input_of(b->norm2, 2), d),
                             .fc1 = read_matrix(r, b->fc1, f, d),
                             .fc1_bias = read_parameter(r, input_of(b->fc1, 2), f),
                             .fc2 = fc2,
                             .fc2_bias = fc2_bias};
    (b->apart ? read_apart : read_joined)(r, b, w);
}

/* Computes the input of the first block for the image. */
static att_status read_tokens(reading *r, const char *image)
{
    const size_t count = (size_t)r->to->tokens * (size_t)r->to->width;
    att_batch answer;
    att_graph_probe(r->graph, TOKENS, r->tokens);
    ATT_TRY(att_network_select_outputs(r->opened, TOKENS));
    ATT_TRY(att_network_run_file(r->opened, image, &answer));
    const float *narrow = att_batch_field(&answer, TOKENS);
    double *wide = keep(r, count);
    for (size_t i = 0; wide && i < count; i++)
        wide[i] = narrow[i];
    r->to->tokens_data = wide;
    return r->status;
}

/* --- together ----------------------------------------------------------------------------------------------------- */

static att_status refuse(const reading *r, const char *missing, att_value instead)
{
    char source[SOURCE];
    describe_source(r, instead, source);
    return att_fail(r->context, ATT_ERR_UNSUPPORTED,
                    "%s: attscope stack needs the blocks of a ViT, and here it does not find %s%s%s", r->scope, missing,
                    instead == ATT_NONE ? "" : ", but ", instead == ATT_NONE ? "" : source);
}

/* Whether the operation is attention by position alone, whose maps no query changes. */
static bool attends_by_position(const att_node *node)
{
    return is(node, "mix_tokens") || is(node, "mix_axes") || is(node, "mix_pairs");
}

/* Refuses a network none of whose layers is one of a ViT, and names the attention that it has instead. */
static att_status refuse_network(const reading *r)
{
    const char *name = att_model_name(att_network_model(r->opened));
    for (int i = 0; i < r->graph->nodes.count; i++) {
        const att_node *node = &r->graph->nodes.items[i];
        if (attends_by_position(node))
            return att_fail(
                r->context, ATT_ERR_UNSUPPORTED,
                "%s: attscope stack needs the blocks of a ViT, whose attention compares queries with keys; %s attends "
                "by position alone",
                name, node->scope);
        if (is(node, "attention"))
            return att_fail(r->context, ATT_ERR_UNSUPPORTED,
                            "%s: attscope stack needs the blocks of a ViT, which all have the same number of heads",
                            name);
    }
    return att_fail(r->context, ATT_ERR_UNSUPPORTED,
                    "%s: attscope stack needs the blocks of a ViT; this network has no attention", name);
}

/* The first inputs of attention are queries, keys and values; the others are terms that are added to the scores. */
static bool has_terms(const att_node *attention)
{
    const int first_term = 3;
    for (int i = first_term; i < attention->in_count; i++)
        if (attention->in[i] != ATT_NONE)
            return true;
    return false;
}

/* Reads the block of an attention node into layer `index`. Sizes are those of the first. */
static att_status read_block(reading *r, const att_node *attention, int index)
{
    block b = {.attention = attention, .instead = ATT_NONE};
    r->scope = attention->scope;
    if (has_terms(attention))
        return att_fail(
            r->context, ATT_ERR_UNSUPPORTED,
            "%s: attscope stack computes attention whose scores are products of queries and keys alone, and the "
            "scores of %s also have terms of positions or masks",
            att_model_name(att_network_model(r->opened)), attention->scope);
    const char *missing = follow(r, &b);
    if (missing)
        return refuse(r, missing, b.instead);
    if (index == 0) {
        r->tokens = input_of(b.norm1, 0);
        const att_shape tokens = att_value_shape(r->graph, r->tokens);
        r->to->tokens = (int)tokens.dims[0];
        r->to->width = (int)tokens.dims[1];
        r->to->hidden = (int)att_value_shape(r->graph, b.fc1->out[0]).dims[1];
    }
    read_layer(r, &b, &r->network->layers[index]);
    return r->status;
}

static att_status refuse_texts(const reading *r)
{
    return att_fail(
        r->context, ATT_ERR_UNSUPPORTED,
        "%s reads texts: attscope stack needs the blocks of a ViT, whose norms precede the branches; attscope "
        "measure --with collapse switches skips and MLPs off in networks for texts",
        att_model_name(att_network_model(r->opened)));
}

static att_status read_blocks(reading *r, const char *image)
{
    if (att_network_most_tokens(r->opened) > 0)
        return refuse_texts(r);
    r->network->layers =
        att_arena_allocate(&r->network->arena, (size_t)r->graph->nodes.count * sizeof *r->network->layers);
    if (!r->network->layers)
        return att_fail_memory(r->context, sizeof *r->network->layers, "the layers of a stack");
    r->to->depth = 0;
    for (int i = 0; i < r->graph->nodes.count; i++) {
        const att_node *node = &r->graph->nodes.items[i];
        if (is(node, "attention"))
            ATT_TRY(read_block(r, node, r->to->depth++));
    }
    return r->to->depth > 0 ? read_tokens(r, image) : refuse_network(r);
}

att_status att_stack_network_read(att_context *context, const char *what, const char *model, const char *image,
                                  att_stack_options *options, att_stack_network **network)
{
    att_network_options network_options = att_network_options_defaults();
    network_options.model = model;
    att_stack_options read = *options;
    reading r = {.context = context, .to = &read};
    ATT_TRY(att_network_open(context, what, &network_options, &r.opened));
    const att_model *opened = att_network_model(r.opened);
    r.graph = att_model_graph(opened);
    r.network = att_allocate(context, sizeof *r.network);
    att_status status = r.network ? ATT_OK : att_fail_memory(context, sizeof *r.network, "a stack");
    read.norm_eps = att_options_number(att_model_options(opened), "norm_eps", 0);
    read.heads = (int)att_options_number(att_model_options(opened), "num_heads", 0);
    read.layer = layer_at;
    read.user = r.network;
    if (status == ATT_OK) {
        r.network->arena.context = context;
        status = read.heads > 0 ? read_blocks(&r, image) : refuse_network(&r);
    }
    att_network_close(&r.opened);
    if (status != ATT_OK) {
        att_stack_network_destroy(&r.network);
        return status;
    }
    *options = read;
    *network = r.network;
    return ATT_OK;
}

void att_stack_network_destroy(att_stack_network **network)
{
    if (!*network)
        return;
    att_arena arena = (*network)->arena;
    att_arena_free(&arena);
    att_free(arena.context, *network);
    *network = NULL;
}
