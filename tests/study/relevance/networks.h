/* relevance/networks.h - for tests: the small networks of tools/goldens/relevance.py. */
#ifndef TESTS_RELEVANCE_NETWORKS_H
#define TESTS_RELEVANCE_NETWORKS_H

#include "golden_path.h"
#include "study/networks.h"

static const struct network {
    const char *name, *model;
    int side, patch_h, patch_w; /* patch_h 0: not an option of the network */
    option options[8];
} networks[] = {
    {"vit", "vit_tiny_patch16_224", 28, 7, 4, {{"embed_dim", NULL, 32}, {"depth", NULL, 3}, {"num_heads", NULL, 2}}},
    {"vit_registers",
     "vit_tiny_patch16_224",
     28,
     7,
     4,
     {{"embed_dim", NULL, 32},
      {"depth", NULL, 3},
      {"num_heads", NULL, 2},
      {"reg_tokens", NULL, 3},
      {"embed_class", NULL, 0},
      {"init_values", NULL, 0.5}}},
    {"vit_mean",
     "vit_tiny_patch16_224",
     28,
     7,
     4,
     {{"embed_dim", NULL, 32},
      {"depth", NULL, 3},
      {"num_heads", NULL, 2},
      {"class_token", NULL, 0},
      {"global_pool", "avg", 0},
      {"qk_norm", NULL, 1}}},
    {"vit_relpos",
     "vit_tiny_patch16_224",
     28,
     7,
     4,
     {{"embed_dim", NULL, 32},
      {"depth", NULL, 3},
      {"num_heads", NULL, 2},
      {"pos_embed", "none", 0},
      {"rel_pos_type", "bias", 0},
      {"init_values", NULL, 0.5}}},
    {"swin",
     "swin_tiny_patch4_window7_224",
     28,
     2,
     4,
     {{"embed_dim", NULL, 16}, {"mlp_ratio", NULL, 1.5}, {"depths", "2,2", 0}, {"stage_heads", "2,4", 0}}},
    {"resnet", "resnet18", 56, 0, 0, {{"layers", "1,1,1,1", 0}, {"width", NULL, 8}}},
};
enum { VIT, REGISTERS, MEAN, RELPOS, SWIN, RESNET, NETWORKS };

/* The weights of tools/goldens/relevance.py. */
static inline void fill_weights(att_weights *weights, att_dtype dtype)
{
    for (int i = 0; i < att_weights_count(weights); i++) {
        const att_parameter_info info = att_weights_at(weights, i);
        const int64_t count = att_shape_count(info.shape);
        const size_t length = strlen(info.name);
        const bool is_vector = info.shape.rank == 1;
        const double start = is_vector && length > 6 && !strcmp(info.name + length - 6, "weight");
        float *values = malloc((size_t)count * sizeof *values);
        assert_non_null(values);
        for (int64_t e = 0; e < count; e++)
            values[e] = (float)(start + (is_vector ? 0.2 : 0.4) * formula(info.name, (uint32_t)e));
        if (!info.buffer)
            set_values(weights, i, values, count, dtype);
        free(values);
    }
}

static inline att_network *open_network(int number, att_dtype dtype)
{
    const struct network *n = &networks[number];
    att_network_options how = att_network_options_defaults();
    how.dtype = dtype;
    att_network *network = open_small(n->model, n->side, n->patch_h, n->patch_w, n->options, how);
    fill_weights(att_network_weights(network), dtype);
    return network;
}

/* A network, its explorer and its maps of relevance. */
typedef struct opened {
    att_network *network;
    att_explorer *explorer;
    att_relevance *relevance;
} opened;

static inline opened open_relevance_as(int number, att_dtype dtype)
{
    opened o = {.network = open_network(number, dtype)};
    must(att_explorer_create(o.network, &o.explorer));
    must(att_relevance_create(o.explorer, &o.relevance));
    return o;
}

static inline opened open_relevance(int number)
{
    return open_relevance_as(number, ATT_F32);
}

static inline void close_relevance(opened *o)
{
    att_relevance_destroy(&o->relevance);
    att_explorer_destroy(&o->explorer);
    att_network_close(&o->network);
}

#endif
