/* Builds a ViT. */
#include <string.h>

#include "networks/models/parallel_block.h"
#include "networks/models/patches.h"
#include "networks/models/token_ends.h"
#include "networks/models/vit.h"

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

static bool is(const char *text, const char *name)
{
    return strcmp(text, name) == 0;
}

/* Where BEiT has one set for all blocks, it is rel_pos_bias. */
static att_relative_form relative_of(const att_vit_options *o)
{
    static const att_init zero = {.rule = ATT_INIT_CONSTANT, .value = 0},
                          small = {.rule = ATT_INIT_TRUNC_NORMAL, .value = 0.02};
    bool is_mlp = is(o->rel_pos_type, ATT_VIT_MLP), is_beit = att_vit_is_beit(o);
    if (!att_vit_is_relative(o))
        return (att_relative_form){.kind = ATT_RELATIVE_NONE};
    return (att_relative_form){.kind = is_mlp ? ATT_RELATIVE_MLP : ATT_RELATIVE_TABLE,
                               .scope = is_beit             ? (o->shared_rel_pos ? "rel_pos_bias" : NULL)
                                        : o->shared_rel_pos ? "shared_rel_pos"
                                                            : "rel_pos",
                               .start = is_beit ? zero : small,
                               .decay = !is_beit,
                               .hidden = o->rel_pos_dim};
}

static att_token_start start_of(const att_vit_options *o)
{
    return att_vit_is_beit(o) ? ATT_START_RESCALED : att_vit_is_relative(o) ? ATT_START_UNIFORM : ATT_START_NORMAL;
}

static att_token_form form_of(const att_vit_options *o)
{
    return (att_token_form){.width = o->embed_dim,
                            .heads = o->num_heads,
                            .norm = {.rms = is(o->norm_layer, ATT_VIT_RMS_NORM), .eps = o->norm_eps},
                            .post_norm = is(o->block_fn, ATT_VIT_POST_NORM),
                            .post_norm_start = o->init_values > 0 ? o->init_values : 1,
                            .qkv_bias = o->qkv_bias,
                            .proj_bias = o->proj_bias,
                            .qv_bias = att_vit_is_beit(o),
                            .block_gammas = att_vit_is_beit(o),
                            .start = start_of(o),
                            .relative = relative_of(o),
                            .qk_norm = o->qk_norm,
                            .attn_norm = o->scale_attn_norm,
                            .mlp_norm = o->scale_mlp_norm,
                            .differential =
                                is(o->attn_layer, ATT_VIT_DIFFERENTIAL) || is(o->block_fn, ATT_VIT_DIFF_SCALING),
                            .mlp = att_mlp_named(o->mlp_layer),
                            .activate = att_activation_named(o->act_layer),
                            .init_values = o->init_values,
                            .prefix = att_vit_prefix(o),
                            .grid = {o->img_size[0] / o->patch_size[0], o->img_size[1] / o->patch_size[1]},
                            .patch = {o->patch_size[0], o->patch_size[1]},
                            .attn_drop = o->attn_drop_rate};
}

/* Block `index`; the extra layer counts as block `depth`. */
static att_token_block block_of(const vit_build *build, const att_modules *modules, int index, int64_t hidden)
{
    return (att_token_block){.form = &build->form,
                             .modules = modules,
                             .scope = att_scope_in(&build->root, "blocks.%d", index),
                             .index = index,
                             .hidden = hidden,
                             .drop_path = att_drop_path_of(build->options->drop_path_rate, index,
                                                           build->options->depth + has_extra_layer(build->options))};
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

static att_value build_embedding(const vit_build *build)
{
    static const att_init tiny = {.rule = ATT_INIT_NORMAL, .value = 1e-6},
                          small = {.rule = ATT_INIT_TRUNC_NORMAL, .value = 0.02};
    const att_vit_options *o = build->options;
    const att_norm_form patch_norm = {.rms = is(o->embed_norm_layer, ATT_VIT_RMS_NORM), .eps = o->norm_eps};
    const att_token_stem stem = {.img_size = {o->img_size[0], o->img_size[1]},
                                 .in_chans = o->in_chans,
                                 .pixel_norm = o->pixel_norm ? &build->form.norm : NULL,
                                 .patch_norm = is(o->embed_norm_layer, "none") ? NULL : &patch_norm,
                                 .class_token = o->class_token,
                                 .distilled = o->distilled,
                                 .registers = o->reg_tokens,
                                 .start = att_vit_is_beit(o) ? small : tiny,
                                 .positions = is(o->pos_embed, "learn"),
                                 .embed_prefix = o->embed_class,
                                 .pre_norm = o->pre_norm};
    return att_token_embed(&build->root, &build->form, &stem);
}

static void build_pool(const vit_build *build, att_value x, att_features *features)
{
    const att_vit_options *o = build->options;
    const att_token_pool pool = {.kind = o->global_pool,
                                 .final_norm = o->final_norm,
                                 .fc_norm = o->fc_norm,
                                 .distilled = o->distilled,
                                 .reads_prefix = o->pool_include_prefix,
                                 .heads = o->num_heads,
                                 .hidden = att_mlp_hidden(o->embed_dim, o->mlp_ratio),
                                 .activate = build->form.activate};
    att_token_finish(&build->root, &build->form, &pool, x, features);
}

/* Computes the relative positions that all blocks share. */
static void build_shared(vit_build *build)
{
    att_token_form *form = &build->form;
    att_value shared = att_relative_bias(&build->root, &form->relative, form->grid, form->prefix, form->heads);
    form->relative = (att_relative_form){.kind = ATT_RELATIVE_SHARED, .shared = shared};
}

void att_vit_build(att_graph *graph, const void *options, att_features *features)
{
    const att_vit_options *o = options;
    vit_build build = {.graph = graph, .options = o, .form = form_of(o), .root = att_scope_root(graph)};
    if (att_token_modules(att_graph_context(graph), o->modules, o->depth, o->num_heads, &build.modules) != ATT_OK)
        return; /* cannot happen: complete() has checked the option */
    const att_token_form *form = &build.form;
    att_value *blocks = att_features_of_tokens(graph, form->prefix, form->grid[0], form->grid[1], o->depth, features);
    if (!blocks)
        return;
    att_value x = build_embedding(&build);
    if (o->shared_rel_pos)
        build_shared(&build);
    for (int i = 0; i < o->depth; i++)
        blocks[i] = x = build_block(&build, i, x);
    if (has_extra_layer(o))
        blocks[o->depth - 1] = x = build_extra_layer(&build, x);
    build_pool(&build, x, features);
}
