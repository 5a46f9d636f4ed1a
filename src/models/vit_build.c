/* Builds a ViT. */
#include <string.h>

#include <attscope/ops.h>

#include "models/patches.h"
#include "models/vit.h"

static const double NORM_EPS = 1e-6;

typedef struct vit_build {
    att_graph *graph;
    const att_vit_options *options;
    att_modules modules;
    att_token_form form;
    att_scope root;
} vit_build;

static bool has_extra_layer(const att_vit_options *options)
{
    return strcmp(options->extra_layer, "none") != 0;
}

/* Drop path rates rise linearly with depth; the last layer has the given rate. */
static double drop_path_of(const att_vit_options *options, int index)
{
    int last = options->depth - 1 + has_extra_layer(options);
    return last > 0 ? options->drop_path_rate * index / last : 0;
}

static att_token_form form_of(const att_vit_options *o)
{
    return (att_token_form){.width = o->embed_dim,
                            .heads = o->num_heads,
                            .norm_eps = NORM_EPS,
                            .qkv_bias = o->qkv_bias,
                            .init_values = o->init_values,
                            .prefix = o->class_token,
                            .grid = {o->img_size[0] / o->patch_size[0], o->img_size[1] / o->patch_size[1]},
                            .patch = {o->patch_size[0], o->patch_size[1]}};
}

/* Block `index`; the extra layer counts as block `depth`. */
static att_token_block block_of(const vit_build *build, const att_modules *modules, int index, int64_t hidden)
{
    return (att_token_block){.form = &build->form,
                             .modules = modules,
                             .scope = att_scope_in(&build->root, "blocks.%d", index),
                             .index = index,
                             .hidden = hidden,
                             .drop_path = drop_path_of(build->options, index)};
}

static att_value build_block(const vit_build *build, int index, att_value x)
{
    int64_t hidden = att_mlp_hidden(build->options->embed_dim, build->options->mlp_ratio);
    const att_token_block block = block_of(build, &build->modules, index, hidden);
    return att_token_transform(&block, att_token_attend(&block, x));
}

/* The layer of the paper's Figure 2: attention has 4 C^2 weights, and so has an MLP with 2 C hidden channels.
 * (Hyeon-Woo et al., ICCV 2023) */
static att_value build_extra_layer(const vit_build *build, att_value x)
{
    static const att_modules none = {.count = 0};
    const att_vit_options *options = build->options;
    const att_token_block layer = block_of(build, &none, options->depth, 2 * (int64_t)options->embed_dim);
    return strcmp(options->extra_layer, "attn") == 0 ? att_token_attend(&layer, x) : att_token_transform(&layer, x);
}

static att_value add_positions(const vit_build *build, att_value x, att_value positions)
{
    att_scope scope = att_scope_in(&build->root, "pos_embed");
    att_scope_enter(&scope);
    return att_add(build->graph, x, positions);
}

static att_value build_embedding(const vit_build *build)
{
    static const att_init class_init = {.rule = ATT_INIT_NORMAL, .value = 1e-6};
    static const att_init position_init = {.rule = ATT_INIT_TRUNC_NORMAL, .value = 0.02};
    const att_vit_options *options = build->options;
    const int *size = options->img_size, *patch = options->patch_size;
    int64_t width = options->embed_dim;
    att_value image = att_graph_input(build->graph, ATT_IMAGE, att_graph_dtype(build->graph),
                                      att_shape_of(size[0], size[1], options->in_chans));
    att_value class_token = ATT_NONE;
    if (options->class_token)
        class_token = att_scope_parameter(&build->root, "cls_token", att_shape_of(1, 1, width), class_init, false);
    int64_t rows = (int64_t)(size[0] / patch[0]) * (size[1] / patch[1]) + options->embed_class;
    att_value positions =
        att_scope_parameter(&build->root, "pos_embed", att_shape_of(1, rows, width), position_init, false);

    att_scope scope = att_scope_in(&build->root, "patch_embed");
    att_value x = att_nn_patch_embed(&scope, image, patch[0], patch[1], width);
    if (!options->embed_class)
        x = add_positions(build, x, positions);
    if (options->class_token) {
        scope = att_scope_in(&build->root, "cls_token");
        att_scope_enter(&scope);
        x = att_prepend_tokens(build->graph, class_token, x);
    }
    return options->embed_class ? add_positions(build, x, positions) : x;
}

static att_value normalise(const vit_build *build, att_value x)
{
    const att_vit_options *options = build->options;
    if (!options->final_norm)
        return x;
    att_scope norm = att_scope_in(&build->root, options->fc_norm ? "fc_norm" : "norm");
    return att_nn_layer_norm(&norm, x, NORM_EPS);
}

static bool pools_mean(const att_vit_options *o)
{
    return strcmp(o->global_pool, "avg") == 0;
}

/* A pooled token is selected before the norm, so the norm works on that token only. */
static void build_pool(const vit_build *build, att_value x, att_features *features)
{
    const att_vit_options *options = build->options;
    att_scope pool = att_scope_in(&build->root, "pool");
    features->tokens = x;
    if (!pools_mean(options)) {
        att_scope_enter(&pool);
        x = att_token_mean(build->graph, att_slice_tokens(build->graph, x, 0, 1), 0);
        features->pooled = normalise(build, x);
        return;
    }
    if (!options->fc_norm)
        features->tokens = x = normalise(build, x);
    att_scope_enter(&pool);
    x = att_token_mean(build->graph, x, options->class_token);
    features->pooled = options->fc_norm ? normalise(build, x) : x;
}

void att_vit_build(att_graph *graph, const void *options, att_features *features)
{
    const att_vit_options *o = options;
    vit_build build = {.graph = graph, .options = o, .form = form_of(o), .root = att_scope_root(graph)};
    if (att_token_modules(att_graph_context(graph), o->modules, o->depth, o->num_heads, &build.modules) != ATT_OK)
        return; /* cannot happen: complete() has checked the option */
    att_value x = build_embedding(&build);
    for (int i = 0; i < build.options->depth; i++)
        x = build_block(&build, i, x);
    if (has_extra_layer(build.options))
        x = build_extra_layer(&build, x);
    build_pool(&build, x, features);
}
