/* tests/engine/network.h - a small network with every kind of component, for tests of plans and sessions. */
#ifndef ATT_TESTS_ENGINE_NETWORK_H
#define ATT_TESTS_ENGINE_NETWORK_H

#include <stdio.h>

#include <attscope/ops.h>
#include <attscope/plan.h>

enum { NETWORK_CLASSES = 5, NETWORK_WIDTH = 16, NETWORK_HEADS = 2 };

static inline att_value network_parameter(att_graph *graph, const char *name, att_shape shape, double deviation)
{
    return att_graph_parameter(graph, name, shape, (att_init){ATT_INIT_NORMAL, deviation}, shape.rank > 1);
}

static inline att_value network_linear(att_graph *graph, const char *name, att_value x, int64_t out)
{
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    att_shape shape = att_value_shape(graph, x);
    int64_t in = shape.rank ? shape.dims[shape.rank - 1] : 1;
    att_graph_scope(graph, name);
    return att_linear(graph, x, network_parameter(graph, weight, att_shape_of(out, in), 0.3),
                      network_parameter(graph, bias, att_shape_of(out), 0.1));
}

static inline att_value network_norm(att_graph *graph, const char *name, att_value x)
{
    char gamma[64], beta[64];
    snprintf(gamma, sizeof gamma, "%s.weight", name);
    snprintf(beta, sizeof beta, "%s.bias", name);
    att_graph_scope(graph, name);
    att_value g =
        att_graph_parameter(graph, gamma, att_shape_of(NETWORK_WIDTH), (att_init){ATT_INIT_CONSTANT, 1}, false);
    return att_layer_norm(graph, x, g, network_parameter(graph, beta, att_shape_of(NETWORK_WIDTH), 0.1), 1e-6);
}

/* Over the rows of x. */
static inline att_value network_batch_norm(att_graph *graph, const char *name, att_value x)
{
    static const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
    att_shape shape = att_value_shape(graph, x), vector = att_shape_of(shape.dims[shape.rank - 1]);
    att_value values[4];
    for (int i = 0; i < 4; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s.%s", name, parts[i]);
        values[i] = i < 2 ? network_parameter(graph, text, vector, 0.1) : att_graph_buffer(graph, text, vector, 1);
    }
    return att_batch_norm(graph, x, values[0], values[1], values[2], values[3], NULL);
}

/* Grey images of size x size in patches of 2 x 2, one block with dropout and drop path, cross-entropy. */
static inline void network_build(att_graph *graph, int size)
{
    int grid = size / 2;
    att_value image = att_graph_input(graph, "image", att_graph_dtype(graph), att_shape_of(size, size, 1));
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0});
    att_value x = network_linear(graph, "patch_embed.proj", att_patchify(graph, image, 2, 2), NETWORK_WIDTH);
    x = att_prepend_tokens(graph, network_parameter(graph, "cls_token", att_shape_of(1, 1, NETWORK_WIDTH), 0.3), x);
    x = att_add(graph, x, network_parameter(graph, "pos_embed", att_shape_of(1, grid * grid + 1, NETWORK_WIDTH), 0.3));
    att_value qkv = network_linear(graph, "attn.qkv", network_norm(graph, "norm1", x), 3 * NETWORK_WIDTH);
    att_graph_scope(graph, "attn");
    const att_attention_options attention = {
        .heads = NETWORK_HEADS, .prefix = 1, .grid_h = grid, .grid_w = grid, .drop_rate = 0.1};
    att_value a = att_attention(graph, qkv, ATT_NONE, ATT_NONE, &attention);
    a = att_drop_path(graph, network_linear(graph, "attn.proj", a, NETWORK_WIDTH), 0.2);
    x = att_add(graph, x, a);
    att_value m = att_gelu(graph, network_linear(graph, "mlp.fc1", network_norm(graph, "norm2", x), 2 * NETWORK_WIDTH));
    m = network_linear(graph, "mlp.fc2", att_dropout(graph, m, 0.1), NETWORK_WIDTH);
    att_graph_scope(graph, "mlp.cb");
    x = att_add(graph, x, att_context_broadcast(graph, m, 0.5, 0.5, ATT_NONE));
    x = network_norm(graph, "norm", att_slice_tokens(graph, x, 0, 1));
    att_value logits = network_linear(graph, "head", att_token_mean(graph, x, 0), NETWORK_CLASSES);
    att_graph_output(graph, "logits", logits);
    att_graph_scope(graph, "loss");
    att_graph_output(graph, "loss", att_cross_entropy(graph, logits, target, 0.1));
}

/* Writes images and targets that differ from sample to sample. */
static inline void network_data(float *images, int32_t *targets, int count, int size)
{
    for (int i = 0; i < count * size * size; i++)
        images[i] = (float)((i * 7919 + 13) % 1009) / 504.5f - 1;
    for (int i = 0; i < count; i++)
        targets[i] = (i * 3) % NETWORK_CLASSES;
}

#endif
