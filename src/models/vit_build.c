/* Builds a ViT. */
#include <math.h>
#include <string.h>

#include <attscope/ops.h>

#include "models/parallel_block.h"
#include "models/patches.h"
#include "models/vit.h"

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

static bool is(const char *text, const char *name)
{
    return strcmp(text, name) == 0;
}

static att_mlp_kind mlp_of(const att_vit_options *o)
{
    return is(o->mlp_layer, ATT_VIT_SWIGLU)   ? ATT_MLP_SWIGLU
           : is(o->mlp_layer, ATT_VIT_PACKED) ? ATT_MLP_PACKED
                                              : ATT_MLP_PLAIN;
}

static att_token_form form_of(const att_vit_options *o)
{
    return (att_token_form){.width = o->embed_dim,
                            .heads = o->num_heads,
                            .norm = {.rms = is(o->norm_layer, ATT_VIT_RMS_NORM), .eps = o->norm_eps},
                            .post_norm = is(o->block_fn, ATT_VIT_POST_NORM),
                            .qkv_bias = o->qkv_bias,
                            .proj_bias = o->proj_bias,
                            .qk_norm = o->qk_norm,
                            .attn_norm = o->scale_attn_norm,
                            .mlp_norm = o->scale_mlp_norm,
                            .differential =
                                is(o->attn_layer, ATT_VIT_DIFFERENTIAL) || is(o->block_fn, ATT_VIT_DIFF_SCALING),
                            .mlp = mlp_of(o),
                            .activate = att_activation_named(o->act_layer),
                            .init_values = o->init_values,
                            .prefix = att_vit_prefix(o),
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
    const char *kind = build->options->block_fn;
    if (is(kind, ATT_VIT_THINGS))
        return att_parallel_things(&block, x);
    if (!att_vit_is_sequential(kind))
        return att_parallel_scaling(&block, x);
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

/* --- before the blocks ------------------------------------------------------------------------------------------- */

static att_value add_positions(const vit_build *build, att_value x, att_value positions)
{
    att_scope scope = att_scope_in(&build->root, "pos_embed");
    if (positions == ATT_NONE)
        return x;
    att_scope_enter(&scope);
    return att_add(build->graph, x, positions);
}

/* Tokens of the network, in front of x. `parameter` may be ATT_NONE. */
static att_value prepend(const vit_build *build, const char *name, att_value parameter, att_value x)
{
    att_scope scope = att_scope_in(&build->root, "%s", name);
    if (parameter == ATT_NONE)
        return x;
    att_scope_enter(&scope);
    return att_prepend_tokens(build->graph, parameter, x);
}

static att_value declare_tokens(const vit_build *build, const char *name, int count, att_init init)
{
    if (count == 0)
        return ATT_NONE;
    return att_scope_parameter(&build->root, name, att_shape_of(1, count, build->options->embed_dim), init, false);
}

static att_value build_patches(const vit_build *build, att_value image)
{
    const att_vit_options *o = build->options;
    att_scope scope = att_scope_in(&build->root, "patch_embed"), norm = att_scope_in(&scope, "norm");
    att_value x = att_nn_patch_embed(&scope, image, o->patch_size[0], o->patch_size[1], o->embed_dim, !o->pre_norm);
    if (is(o->embed_norm_layer, "none"))
        return x;
    const att_norm_form form = {.rms = is(o->embed_norm_layer, ATT_VIT_RMS_NORM), .eps = o->norm_eps};
    return att_token_norm(&norm, x, &form, 1);
}

static att_value build_embedding(const vit_build *build)
{
    static const att_init tiny = {.rule = ATT_INIT_NORMAL, .value = 1e-6};
    static const att_init small = {.rule = ATT_INIT_TRUNC_NORMAL, .value = 0.02};
    const att_vit_options *o = build->options;
    const att_token_form *form = &build->form;
    int rows = form->grid[0] * form->grid[1] + (o->embed_class ? form->prefix : 0);
    att_value image = att_graph_input(build->graph, ATT_IMAGE, att_graph_dtype(build->graph),
                                      att_shape_of(o->img_size[0], o->img_size[1], o->in_chans));
    att_value class_token = declare_tokens(build, "cls_token", o->class_token, tiny);
    att_value distillation = declare_tokens(build, "dist_token", o->distilled, small);
    att_value registers = declare_tokens(build, "reg_token", o->reg_tokens, tiny);
    att_value positions = declare_tokens(build, "pos_embed", is(o->pos_embed, "learn") ? rows : 0, small);
    att_value x = build_patches(build, image);
    if (!o->embed_class)
        x = add_positions(build, x, positions);
    x = prepend(build, "reg_token", registers, x);
    x = prepend(build, "dist_token", distillation, x);
    x = prepend(build, "cls_token", class_token, x);
    if (o->embed_class)
        x = add_positions(build, x, positions);
    att_scope norm = att_scope_in(&build->root, "norm_pre");
    return o->pre_norm ? att_token_norm(&norm, x, &form->norm, 1) : x;
}

/* --- after the blocks -------------------------------------------------------------------------------------------- */

static att_value normalise(const vit_build *build, att_value x)
{
    const att_vit_options *options = build->options;
    if (!options->final_norm)
        return x;
    att_scope norm = att_scope_in(&build->root, options->fc_norm ? "fc_norm" : "norm");
    return att_token_norm(&norm, x, &build->form.norm, 1);
}

/* A row that all samples share as a value of each sample; x [N, C] is any value of the sample. */
static att_value of_sample(const vit_build *build, att_value row, att_value x)
{
    x = att_prepend_tokens(build->graph, row, att_slice_tokens(build->graph, x, 0, 1));
    return att_slice_tokens(build->graph, x, 0, 1);
}

/* Attention of a learned query to x [N, C], and an MLP: timm's AttentionPoolLatent. Returns [1, C]. (Lee et al., ICML
 * 2019; Zhai et al., CVPR 2022) */
static att_value attend_all(const vit_build *build, const att_scope *pool, att_value x)
{
    const att_vit_options *o = build->options;
    att_graph *graph = build->graph;
    const att_init init = {.rule = ATT_INIT_TRUNC_NORMAL, .value = 1 / sqrt(o->embed_dim)};
    att_scope q_scope = att_scope_in(pool, "q"), kv = att_scope_in(pool, "kv"), proj = att_scope_in(pool, "proj");
    att_scope norm = att_scope_in(pool, "norm"), mlp = att_scope_in(pool, "mlp"), sum = att_scope_in(pool, "add");
    att_scope fc1 = att_scope_in(&mlp, "fc1"), fc2 = att_scope_in(&mlp, "fc2");
    att_value latent = att_scope_parameter(pool, "latent", att_shape_of(1, 1, o->embed_dim), init, true);
    latent = att_reshape(graph, latent, att_shape_of(1, o->embed_dim));
    att_value q = of_sample(build, att_nn_linear(&q_scope, latent, o->embed_dim, true), x);
    att_value k_and_v = att_nn_linear(&kv, x, 2 * (int64_t)o->embed_dim, true);
    att_scope_enter(pool);
    x = att_attention(graph, q, k_and_v, ATT_NONE, &(att_attention_options){.heads = o->num_heads});
    x = att_nn_linear(&proj, x, o->embed_dim, true);
    att_value hidden = att_token_norm(&norm, x, &build->form.norm, 1);
    hidden = att_nn_linear(&fc1, hidden, att_mlp_hidden(o->embed_dim, o->mlp_ratio), true);
    hidden = att_nn_linear(&fc2, build->form.activate(graph, hidden), o->embed_dim, true);
    att_scope_enter(&sum);
    return att_combine(graph, 1, x, 1, hidden);
}

/* Tokens [N, C] that are pooled to one [C]. */
static att_value pool_tokens(const vit_build *build, const att_scope *pool, att_value x)
{
    const char *kind = build->options->global_pool;
    att_graph *graph = build->graph;
    int first = build->options->pool_include_prefix ? 0 : build->form.prefix;
    int count = (int)att_value_shape(graph, x).dims[0] - first;
    if (is(kind, "avg"))
        return att_token_mean(graph, x, first);
    if (first > 0)
        x = att_slice_tokens(graph, x, first, count);
    att_scope attention = att_scope_in(&build->root, "attn_pool");
    if (is(kind, "map"))
        x = attend_all(build, &attention, x);
    att_scope_enter(pool);
    if (is(kind, "map"))
        return att_token_mean(graph, x, 0);
    att_value largest = att_global_max(graph, x);
    return is(kind, "max") ? largest : att_combine(graph, 0.5, largest, 0.5, att_token_mean(graph, x, 0));
}

/* Pooled tokens are selected before the norm, so the norm works on these only. */
static void build_distilled_pool(const vit_build *build, att_value x, att_features *features)
{
    x = normalise(build, att_slice_tokens(build->graph, x, 0, 2));
    features->pooled = att_token_mean(build->graph, x, 0);
    for (int i = 0; i < 2; i++)
        features->classified[i] = att_token_mean(build->graph, att_slice_tokens(build->graph, x, i, 1), 0);
}

static void build_pool(const vit_build *build, att_value x, att_features *features)
{
    const att_vit_options *options = build->options;
    att_scope pool = att_scope_in(&build->root, "pool");
    features->tokens = x;
    att_scope_enter(&pool);
    if (options->distilled) {
        build_distilled_pool(build, x, features);
    } else if (is(options->global_pool, "token")) {
        x = att_token_mean(build->graph, att_slice_tokens(build->graph, x, 0, 1), 0);
        features->pooled = normalise(build, x);
    } else {
        if (!options->fc_norm)
            features->tokens = x = normalise(build, x);
        att_scope_enter(&pool);
        x = pool_tokens(build, &pool, x);
        features->pooled = options->fc_norm ? normalise(build, x) : x;
    }
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
