#include "stack_network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"

/* Name of the output that holds the input of the first block. */
#define TOKENS "stack.tokens"

typedef struct reading {
    cli_app *cli;
    att_network *opened;
    att_graph *graph;
    stack_network *to;
    const char *scope; /* of the block that is read */
    bool failed;       /* a message was given */
} reading;

/* --- the graph ---------------------------------------------------------------------------------------------------- */

static const att_node_info no_node = {.op = ""};

static att_node_info producer(const reading *r, att_value value)
{
    for (int i = 0; i < att_graph_node_count(r->graph); i++) {
        att_node_info node = att_graph_node_at(r->graph, i);
        for (int o = 0; o < node.out_count; o++)
            if (node.out[o] == value && value != ATT_NONE)
                return node;
    }
    return no_node;
}

/* The first node with the operation that reads the value as its first input. */
static att_node_info consumer(const reading *r, att_value value, const char *op)
{
    for (int i = 0; i < att_graph_node_count(r->graph); i++) {
        att_node_info node = att_graph_node_at(r->graph, i);
        if (value != ATT_NONE && node.in_count > 0 && node.in[0] == value && strcmp(node.op, op) == 0)
            return node;
    }
    return no_node;
}

/* The addition that reads the value. */
static att_node_info addition(const reading *r, att_value value)
{
    for (int i = 0; i < att_graph_node_count(r->graph); i++) {
        att_node_info node = att_graph_node_at(r->graph, i);
        if (strcmp(node.op, "add") == 0 && (node.in[0] == value || node.in[1] == value))
            return node;
    }
    return no_node;
}

static att_value input_of(const att_node_info *node, int index)
{
    return index < node->in_count ? node->in[index] : ATT_NONE;
}

static const char *parameter_name(const reading *r, att_value value)
{
    for (int i = 0; i < att_graph_parameter_count(r->graph); i++)
        if (att_graph_parameter_at(r->graph, i).value == value)
            return att_graph_parameter_at(r->graph, i).name;
    return NULL;
}

enum { SOURCE = 256 };

/* Writes where the value comes from: a parameter, possibly in another layout, or an operation. */
static void describe_source(const reading *r, att_value value, char text[SOURCE])
{
    const char *name = parameter_name(r, value);
    att_node_info node = producer(r, value);
    const char *op = node.op;
    while (!name && node.in_count == 1) {
        name = parameter_name(r, node.in[0]);
        node = producer(r, node.in[0]);
    }
    snprintf(text, SOURCE, "%s \"%s\"", name ? "the tensor" : "the result of", name ? name : op);
}

/* The nodes of one block. projections: one linear layer for queries, keys and values, or one for each. scale1, scale2:
 * of layer scale; without it, no_node. */
typedef struct block {
    att_node_info norm1, projections[3], attention, proj, scale1, add1, norm2, fc1, gelu, fc2, scale2;
    bool apart;
    att_value instead; /* of the part that is missing; ATT_NONE: unknown */
} block;

/* Finds the layers that make queries, keys and values. Returns the name of the first part that is missing. */
static const char *follow_projections(const reading *r, block *b)
{
    b->apart = input_of(&b->attention, 1) != ATT_NONE;
    for (int i = 0; i < (b->apart ? 3 : 1); i++) {
        b->instead = input_of(&b->attention, i);
        b->projections[i] = producer(r, b->instead);
        if (strcmp(b->projections[i].op, "linear") != 0)
            return "a linear layer in front of the attention's queries, keys and values";
        if (input_of(&b->projections[i], 0) != input_of(&b->projections[0], 0))
            return "queries, keys and values of the same tokens";
    }
    b->instead = input_of(&b->projections[0], 0);
    b->norm1 = producer(r, b->instead);
    if (strcmp(b->norm1.op, "layer_norm") != 0)
        return "layer norm in front of the attention";
    b->instead = ATT_NONE;
    return NULL;
}

/* Follows the graph from the attention node. Returns the name of the first part that is missing; NULL: none. */
static const char *follow(const reading *r, att_node_info attention, block *b)
{
    b->attention = attention;
    b->instead = ATT_NONE;
    const char *missing = follow_projections(r, b);
    if (missing)
        return missing;
    b->proj = consumer(r, attention.out[0], "linear");
    if (b->proj.out_count == 0)
        return "a linear layer after the attention";
    b->scale1 = consumer(r, b->proj.out[0], "scale");
    b->add1 = addition(r, b->scale1.out_count ? b->scale1.out[0] : b->proj.out[0]);
    b->norm2 = b->add1.out_count ? consumer(r, b->add1.out[0], "layer_norm") : no_node;
    b->fc1 = b->norm2.out_count ? consumer(r, b->norm2.out[0], "linear") : no_node;
    if (b->fc1.out_count == 0)
        return "an addition, layer norm and an MLP after the attention";
    b->gelu = consumer(r, b->fc1.out[0], "gelu");
    b->fc2 = b->gelu.out_count ? consumer(r, b->gelu.out[0], "linear") : no_node;
    if (b->fc2.out_count == 0)
        return "GELU (erf) in the MLP";
    b->scale2 = consumer(r, b->fc2.out[0], "scale");
    return NULL;
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

static double *keep(reading *r, size_t count)
{
    stack_network *n = r->to;
    double **blocks = realloc(n->blocks, ((size_t)n->block_count + 1) * sizeof *blocks);
    if (blocks)
        n->blocks = blocks;
    double *data = blocks ? calloc(count, sizeof *data) : NULL;
    if (data)
        n->blocks[n->block_count++] = data;
    else if (!r->failed)
        r->failed = cli_failure("out of memory for the weights of %s", r->scope);
    return data;
}

static void widen(reading *r, const char *name, const float *narrow, int64_t count, double *wide)
{
    for (int64_t i = 0; i < count && !r->failed; i++) {
        wide[i] = narrow[i];
        if (!isfinite(wide[i]))
            r->failed = cli_failure("the tensor \"%s\" contains NaN or infinity", name);
    }
}

/* Reads the parameter `value` of `count` elements. NULL: it is absent, or a message was given. */
static double *read_parameter(reading *r, att_value value, int64_t count)
{
    const char *name = NULL;
    for (int i = 0; i < att_graph_parameter_count(r->graph); i++) {
        att_parameter_info parameter = att_graph_parameter_at(r->graph, i);
        if (parameter.value == value && att_shape_count(parameter.shape) == count)
            name = parameter.name;
    }
    if (value == ATT_NONE || r->failed)
        return NULL;
    att_weights *weights = att_network_weights(r->opened);
    int index = name ? att_weights_find(weights, name) : -1;
    if (index < 0) {
        char source[SOURCE];
        describe_source(r, value, source);
        r->failed = cli_failure("%s: attscope stack expects a tensor of %lld elements, and the network has %s",
                                r->scope, (long long)count, source);
        return NULL;
    }
    float *narrow = malloc((size_t)count * sizeof *narrow);
    double *wide = keep(r, (size_t)count);
    if (narrow && wide && att_weights_get(weights, -1, index, narrow, count) == ATT_OK)
        widen(r, name, narrow, count, wide);
    else if (!r->failed)
        r->failed = cli_failure("%s: %s cannot be read", r->scope, name);
    free(narrow);
    return r->failed ? NULL : wide;
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

/* Multiplies the columns of w and the bias by layer scale. */
static void fold_scale(reading *r, const att_node_info *scale, double *w, double *bias, int inputs)
{
    int width = r->to->width;
    double *gamma = scale->out_count ? read_parameter(r, input_of(scale, 1), width) : NULL;
    for (int i = 0; gamma && w && i < inputs * width; i++)
        w[i] *= gamma[i % width];
    for (int c = 0; gamma && bias && c < width; c++)
        bias[c] *= gamma[c];
}

/* One layer for queries, keys and values. Its bias is a parameter, or joins those of queries, keys and values, as in
 * BEiT. That of the keys adds the same number to all scores of a query, so it has no effect. */
static void read_joined(reading *r, const block *b, att_stack_weights *w)
{
    const att_node_info *linear = &b->projections[0];
    int d = r->to->width;
    double *qkv = read_parameter(r, input_of(linear, 1), (int64_t)3 * d * d);
    const att_node_info outer = producer(r, input_of(linear, 2)), inner = producer(r, input_of(&outer, 0));
    w->q = transpose(r, qkv, 0, d, d);
    w->k = transpose(r, qkv, d, d, d);
    w->v = transpose(r, qkv, 2 * d, d, d);
    if (strcmp(outer.op, "concat") == 0 && strcmp(inner.op, "concat") == 0) {
        w->q_bias = read_parameter(r, input_of(&inner, 0), d);
        w->v_bias = read_parameter(r, input_of(&outer, 1), d);
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
    const double *weights[3];
    for (int i = 0; i < 3; i++)
        weights[i] = transpose(r, read_parameter(r, input_of(&b->projections[i], 1), (int64_t)d * d), 0, d, d);
    w->q = weights[0];
    w->k = weights[1];
    w->v = weights[2];
    w->q_bias = read_parameter(r, input_of(&b->projections[0], 2), d);
    w->v_bias = read_parameter(r, input_of(&b->projections[2], 2), d);
}

static void read_layer(reading *r, const block *b, att_stack_weights *w)
{
    int d = r->to->width, f = r->to->hidden;
    double *o = transpose(r, read_parameter(r, input_of(&b->proj, 1), (int64_t)d * d), 0, d, d);
    double *o_bias = read_parameter(r, input_of(&b->proj, 2), d);
    double *fc1 = transpose(r, read_parameter(r, input_of(&b->fc1, 1), (int64_t)f * d), 0, f, d);
    double *fc2 = transpose(r, read_parameter(r, input_of(&b->fc2, 1), (int64_t)d * f), 0, d, f);
    double *fc2_bias = read_parameter(r, input_of(&b->fc2, 2), d);
    fold_scale(r, &b->scale1, o, o_bias, d);
    fold_scale(r, &b->scale2, fc2, fc2_bias, f);
    *w = (att_stack_weights){.o = o,
                             .o_bias = o_bias,
                             .norm1_weight = read_parameter(r, input_of(&b->norm1, 1), d),
                             .norm1_bias = read_parameter(r, input_of(&b->norm1, 2), d),
                             .norm2_weight = read_parameter(r, input_of(&b->norm2, 1), d),
                             .norm2_bias = read_parameter(r, input_of(&b->norm2, 2), d),
                             .fc1 = fc1,
                             .fc1_bias = read_parameter(r, input_of(&b->fc1, 2), f),
                             .fc2 = fc2,
                             .fc2_bias = fc2_bias};
    (b->apart ? read_apart : read_joined)(r, b, w);
}

/* --- tokens ------------------------------------------------------------------------------------------------------- */

static att_status run_image(reading *r, const char *path, att_session *session, const att_plan *plan, float *pixels)
{
    att_context *context = r->cli->context;
    att_transform_options transform = att_network_transform(r->opened);
    att_image image;
    att_status status = att_image_read(context, path, transform.channels, NULL, &image);
    if (status != ATT_OK)
        return status;
    status = att_transform_image(context, &transform, &image, 0, 0, 0, pixels);
    att_image_free(context, &image);
    if (status == ATT_OK)
        status = att_session_bind(session, att_plan_input_at(plan, 0).name, pixels);
    return status == ATT_OK ? att_session_run(session, 1) : status;
}

/* Computes the value `tokens` of the graph for the image. */
static int read_tokens(reading *r, att_value tokens, const char *path)
{
    static const char *const outputs[] = {TOKENS, NULL};
    stack_network *to = r->to;
    att_transform_options transform = att_network_transform(r->opened);
    size_t count = (size_t)to->tokens * (size_t)to->width;
    size_t pixel_count = (size_t)transform.height * (size_t)transform.width * (size_t)transform.channels;
    float *pixels = malloc(pixel_count * sizeof *pixels), *narrow = malloc(count * sizeof *narrow);
    to->image_tokens = keep(r, count);
    att_plan *plan = NULL;
    att_session *session = NULL;
    att_plan_options options = att_plan_options_defaults();
    options.outputs = outputs;
    att_graph_output(r->graph, TOKENS, tokens);
    int code = pixels && narrow && to->image_tokens ? CLI_OK : cli_failure("out of memory for the tokens of an image");
    if (code == CLI_OK)
        code = cli_check(r->cli, att_plan_compile(r->graph, &options, &plan));
    if (code == CLI_OK)
        code = cli_check(r->cli, att_session_create(plan, att_network_weights(r->opened), 1, &session));
    if (code == CLI_OK)
        code = cli_check(r->cli, run_image(r, path, session, plan, pixels));
    if (code == CLI_OK)
        code = cli_check(r->cli, att_session_output(session, TOKENS, 0, 1, narrow));
    for (size_t i = 0; code == CLI_OK && i < count; i++)
        to->image_tokens[i] = narrow[i];
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    free(pixels);
    free(narrow);
    return code;
}

/* --- together ----------------------------------------------------------------------------------------------------- */

static int refuse(const reading *r, const char *missing, att_value instead)
{
    char source[SOURCE];
    describe_source(r, instead, source);
    return cli_failure("%s: attscope stack needs the blocks of a ViT, and here it does not find %s%s%s", r->scope,
                       missing, instead == ATT_NONE ? "" : ", but ", instead == ATT_NONE ? "" : source);
}

/* Whether the operation is attention by position alone, whose maps no query changes. */
static bool attends_by_position(const char *op)
{
    return strcmp(op, "mix_tokens") == 0 || strcmp(op, "mix_axes") == 0 || strcmp(op, "mix_pairs") == 0;
}

/* Refuses a network none of whose layers is one of a ViT, and names the attention that it has instead. */
static int refuse_network(const reading *r)
{
    const char *name = att_model_name(att_network_model(r->opened));
    for (int i = 0; i < att_graph_node_count(r->graph); i++) {
        const att_node_info node = att_graph_node_at(r->graph, i);
        if (attends_by_position(node.op))
            return cli_failure(
                "%s: attscope stack needs the blocks of a ViT, whose attention compares queries with keys; %s attends "
                "by position alone",
                name, node.scope);
        if (strcmp(node.op, "attention") == 0)
            return cli_failure("%s: attscope stack needs the blocks of a ViT, which all have the same number of heads",
                               name);
    }
    return cli_failure("%s: attscope stack needs the blocks of a ViT; this network has no attention", name);
}

/* The first inputs of attention are queries, keys and values; the others are terms that are added to the scores. */
static bool has_terms(const att_node_info *attention)
{
    const int first_term = 3;
    for (int i = first_term; i < attention->in_count; i++)
        if (attention->in[i] != ATT_NONE)
            return true;
    return false;
}

static int read_blocks(reading *r, const char *image)
{
    stack_network *to = r->to;
    att_value first = ATT_NONE;
    for (int i = 0; i < att_graph_node_count(r->graph); i++) {
        att_node_info node = att_graph_node_at(r->graph, i);
        block b;
        if (strcmp(node.op, "attention") != 0)
            continue;
        r->scope = node.scope;
        if (has_terms(&node))
            return cli_failure(
                "%s: attscope stack computes attention whose scores are products of queries and keys alone, and the "
                "scores of %s also have terms of positions or masks",
                att_model_name(att_network_model(r->opened)), node.scope);
        const char *missing = follow(r, node, &b);
        if (missing)
            return refuse(r, missing, b.instead);
        if (first == ATT_NONE) {
            first = input_of(&b.norm1, 0);
            to->tokens = (int)att_value_shape(r->graph, first).dims[0];
            to->width = (int)att_value_shape(r->graph, first).dims[1];
            to->hidden = (int)att_value_shape(r->graph, b.fc1.out[0]).dims[1];
        }
        att_stack_weights *layers = realloc(to->layers, ((size_t)to->depth + 1) * sizeof *layers);
        if (!layers)
            return cli_failure("out of memory for %d layers", to->depth + 1);
        to->layers = layers;
        read_layer(r, &b, &to->layers[to->depth++]);
        if (r->failed)
            return CLI_FAILURE;
    }
    return to->depth > 0 ? read_tokens(r, first, image) : refuse_network(r);
}

int stack_network_load(cli_app *cli, const char *checkpoint, const char *model, const char *image,
                       stack_network *network)
{
    *network = (stack_network){.depth = 0};
    char path[CLI_PATH];
    int code = cli_checkpoint_locate(cli, checkpoint, path);
    reading r = {.cli = cli, .to = network};
    att_network_options options = att_network_options_defaults();
    options.model = model;
    if (code == CLI_OK)
        code = cli_check(cli, att_network_open(cli->context, path, &options, &r.opened));
    if (code != CLI_OK)
        return code;
    const att_model *m = att_network_model(r.opened);
    r.graph = att_model_graph(m);
    network->norm_eps = att_options_number(att_model_options(m), "norm_eps", 0);
    network->heads = (int)att_options_number(att_model_options(m), "num_heads", 0);
    code = network->heads > 0 ? read_blocks(&r, image) : refuse_network(&r);
    att_network_close(&r.opened);
    return code;
}

void stack_network_free(stack_network *network)
{
    for (int i = 0; i < network->block_count; i++)
        free(network->blocks[i]);
    free(network->blocks);
    free(network->layers);
}
