/* explore/networks.h - for tests: small networks of all families and their explorers. */
#ifndef TESTS_EXPLORE_NETWORKS_H
#define TESTS_EXPLORE_NETWORKS_H

#include "study/networks.h"

enum { SIDE = 32 };

static const struct network {
    const char *model;
    int patch; /* 0: not an option of the network */
    option options[7];
} networks[] = {
    {"vit_tiny_patch16_224", 8, {{"embed_dim", NULL, 32}, {"depth", NULL, 2}, {"num_heads", NULL, 2}}},
    {"vit_tiny_patch16_224",
     8,
     {{"embed_dim", NULL, 32},
      {"depth", NULL, 2},
      {"num_heads", NULL, 2},
      {"reg_tokens", NULL, 3},
      {"qk_norm", NULL, 1},
      {"init_values", NULL, 0.1}}},
    {"vit_tiny_patch16_224",
     8,
     {{"embed_dim", NULL, 32},
      {"depth", NULL, 2},
      {"num_heads", NULL, 2},
      {"pos_embed", "none", 0},
      {"rel_pos_type", "bias", 0}}},
    {"swin_tiny_patch4_window7_224",
     2,
     {{"embed_dim", NULL, 16}, {"window_size", "8", 0}, {"depths", "2,2", 0}, {"stage_heads", "2,4", 0}}},
    {"swinv2_tiny_window8_256",
     2,
     {{"embed_dim", NULL, 16}, {"window_size", "8", 0}, {"depths", "2,2", 0}, {"stage_heads", "2,4", 0}}},
    {"attention_cnn_isotropic", 8, {{"embed_dim", NULL, 32}, {"depth", NULL, 2}, {"num_heads", NULL, 3}}},
    {"attention_cnn_quadratic", 8, {{"embed_dim", NULL, 32}, {"depth", NULL, 2}, {"num_heads", NULL, 3}}},
    {"attention_cnn_content", 8, {{"embed_dim", NULL, 32}, {"depth", NULL, 2}, {"num_heads", NULL, 3}}},
    {"resnet18", 0, {{NULL, NULL, 0}}},
};
enum { VIT, REGISTERS, RELATIVE, SWIN, SWIN_V2, ISOTROPIC, QUADRATIC, CONTENT, RESNET, NETWORKS };

/* Multiplies the weights of queries and keys, so that maps differ from uniform ones, and gives relative biases that are
 * 0 at first other values; so it does with the last norm of a residual branch. */
static inline void sharpen(att_weights *weights, att_dtype dtype)
{
    for (int i = 0; i < att_weights_count(weights); i++) {
        att_parameter_info info = att_weights_at(weights, i);
        int64_t count = att_shape_count(info.shape);
        bool factor = strstr(info.name, "qkv.weight") || strstr(info.name, "query") || strstr(info.name, "key");
        bool bias = strstr(info.name, "relative_position_bias_table"), norm = strstr(info.name, "bn2.weight");
        if (!factor && !bias && !norm)
            continue;
        float *values = malloc((size_t)count * sizeof *values);
        assert_non_null(values);
        get_values(weights, i, values, count, dtype);
        for (int64_t e = 0; e < count; e++)
            values[e] = norm ? 1 : bias ? (float)(2 * formula(info.name, (uint32_t)e)) : 12 * values[e];
        set_values(weights, i, values, count, dtype);
        free(values);
    }
}

static inline att_network *open_as(int number, const char *backend, att_dtype dtype)
{
    const struct network *n = &networks[number];
    att_network_options how = att_network_options_defaults();
    how.backend = backend;
    how.dtype = dtype;
    how.seed = 7;
    att_network *network = open_small(n->model, SIDE, n->patch, n->patch, n->options, how);
    sharpen(att_network_weights(network), dtype);
    return network;
}

static inline att_network *open_with(int number, const char *backend)
{
    return open_as(number, backend, ATT_F32);
}

static inline att_network *open_wide(int number)
{
    return open_as(number, "cpu", ATT_F64);
}

static inline att_network *open_network(int number)
{
    return open_with(number, "cpu");
}

static inline att_explorer *explore(att_network *network)
{
    att_explorer *explorer = NULL;
    must(att_explorer_create(network, &explorer));
    return explorer;
}

static inline void close_both(att_explorer **explorer, att_network **network)
{
    att_explorer_destroy(explorer);
    att_network_close(network);
}

static inline void run_explorer(att_explorer *explorer, float logits[CLASSES])
{
    att_batch answers;
    const att_batch inputs = image_input(SIDE);
    must(att_explorer_run(explorer, &inputs, &answers));
    memcpy(logits, att_batch_field(&answers, "logits"), CLASSES * sizeof *logits);
}

static inline void run_network(att_network *network, float logits[CLASSES])
{
    att_batch answers;
    const att_batch inputs = image_input(SIDE);
    must(att_network_run(network, &inputs, &answers));
    memcpy(logits, att_batch_field(&answers, "logits"), CLASSES * sizeof *logits);
}

/* Largest difference of two arrays. */
static inline double distance(const float *a, const float *b, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = larger(most, isfinite(a[i]) && isfinite(b[i]) ? fabs((double)a[i] - (double)b[i]) : INFINITY);
    return most;
}

/* The largest absolute value. */
static inline double size_of(const float *a, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = larger(most, fabs((double)a[i]));
    return most;
}

#endif
