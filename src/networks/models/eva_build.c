/* Builds a network of the EVA family. */
#include <string.h>

#include <attscope/ops.h>

#include "networks/models/eva.h"
#include "networks/models/patches.h"
#include "networks/models/token_ends.h"

typedef struct eva_build {
    att_graph *graph;
    const att_eva_options *options;
    att_modules modules;
    att_token_form form;
    att_scope root;
    att_token_rotary rotary; /* of all blocks, unless each has its own */
    att_value frequencies;   /* of RoPE-Mixed */
} eva_build;

static bool is(const char *text, const char *name)
{
    return strcmp(text, name) == 0;
}

static att_token_form form_of(const att_eva_options *o)
{
    return (att_token_form){.width = o->embed_dim,
                            .heads = o->num_heads,
                            .norm = {.eps = o->norm_eps},
                            .post_norm = is(o->block_fn, ATT_EVA_POST_NORM),
                            .qkv_bias = o->qkv_bias,
                            .proj_bias = true,
                            .qv_bias = is(o->attn_type, ATT_EVA_NO_KEY_BIAS),
                            .qkv_apart = !o->qkv_fused,
                            .block_gammas = true,
                            .start = ATT_START_RESCALED,
                            .attn_norm = o->scale_attn_norm,
                            .mlp_norm = o->scale_mlp_norm,
                            .mlp = att_mlp_named(o->mlp_layer),
                            .activate = att_gelu,
                            .init_values = o->init_values,
                            .prefix = o->class_token + o->reg_tokens,
                            .grid = {o->img_size[0] / o->patch_size[0], o->img_size[1] / o->patch_size[1]},
                            .patch = {o->patch_size[0], o->patch_size[1]},
                            .attn_drop = o->attn_drop_rate};
}

static att_rotary_grid grid_of(const eva_build *build)
{
    const att_eva_options *o = build->options;
    const bool axial = is(o->rope_type, ATT_EVA_AXIAL), mixed = is(o->rope_type, ATT_EVA_MIXED);
    return (att_rotary_grid){.height = build->form.grid[0],
                             .width = build->form.grid[1],
                             .offset = mixed ? 0 : o->rope_grid_offset,
                             .reference_h = axial ? o->ref_feat_shape[0] : 0,
                             .reference_w = axial ? o->ref_feat_shape[1] : 0,
                             .centered = is(o->rope_type, ATT_EVA_CENTERED),
                             .columns_first = is(o->rope_grid_indexing, "xy")};
}

/* The table of all blocks, or the frequencies of each. */
static void build_rotary(eva_build *build)
{
    const att_eva_options *o = build->options;
    const att_init start = {.rule = ATT_INIT_ROTARY, .value = o->rope_temperature};
    const int width = o->embed_dim / o->num_heads;
    const att_rotary_grid grid = grid_of(build);
    att_scope rope = att_scope_in(&build->root, "rope");
    build->rotary.halves = o->rope_rotate_half;
    att_scope_enter(&rope);
    if (is(o->rope_type, ATT_EVA_MIXED))
        build->frequencies =
            att_scope_parameter(&rope, "freqs", att_shape_of(2, o->depth, o->num_heads, width / 2), start, false);
    else if (!is(o->rope_type, ATT_EVA_NO_ROPE))
        build->rotary.table = att_rotary_table(build->graph, &grid, width, o->rope_temperature);
}

/* Outputs of fc1; a packed one holds gate and value side by side. */
static int64_t hidden_of(const att_eva_options *o)
{
    int64_t hidden = att_mlp_hidden(o->embed_dim, o->mlp_ratio);
    return att_mlp_named(o->mlp_layer) == ATT_MLP_PACKED ? 2 * hidden : hidden;
}

static att_value build_block(const eva_build *build, int index, att_value x)
{
    att_token_rotary rotary = build->rotary;
    const att_scope scope = att_scope_in(&build->root, "blocks.%d", index), rope = att_scope_in(&scope, "attn.rope");
    const bool turned = !is(build->options->rope_type, ATT_EVA_NO_ROPE);
    if (is(build->options->rope_type, ATT_EVA_MIXED)) {
        const att_rotary_grid grid = grid_of(build);
        att_scope_enter(&rope);
        rotary.table = att_rotary_mixed(build->graph, &grid, build->frequencies, index);
    }
    const att_token_block block = {.form = &build->form,
                                   .modules = &build->modules,
                                   .scope = scope,
                                   .index = index,
                                   .hidden = hidden_of(build->options),
                                   .drop_path =
                                       att_drop_path_of(build->options->drop_path_rate, index, build->options->depth),
                                   .rotary = turned ? &rotary : NULL};
    return att_token_transform(&block, att_token_attend(&block, x));
}

static att_value build_embedding(const eva_build *build)
{
    const att_eva_options *o = build->options;
    const att_token_stem stem = {.img_size = {o->img_size[0], o->img_size[1]},
                                 .in_chans = o->in_chans,
                                 .class_token = o->class_token,
                                 .registers = o->reg_tokens,
                                 .start = att_init_linear(),
                                 .positions = is(o->pos_embed, "learn"),
                                 .embed_prefix = o->embed_class,
                                 .pre_norm = o->pre_norm};
    return att_token_embed(&build->root, &build->form, &stem);
}

/* Pooling by attention reads the tokens before the patches, too. */
static void build_pool(const eva_build *build, att_value x, att_features *features)
{
    const att_eva_options *o = build->options;
    const att_token_pool pool = {.kind = o->global_pool,
                                 .final_norm = o->final_norm,
                                 .fc_norm = o->fc_norm,
                                 .reads_prefix = is(o->global_pool, "map"),
                                 .heads = o->attn_pool_num_heads,
                                 .hidden = att_mlp_hidden(o->embed_dim, o->attn_pool_mlp_ratio),
                                 .activate = att_gelu};
    att_token_finish(&build->root, &build->form, &pool, x, features);
}

void att_eva_build(att_graph *graph, const void *options, att_features *features)
{
    const att_eva_options *o = options;
    eva_build build = {.graph = graph,
                       .options = o,
                       .form = form_of(o),
                       .root = att_scope_root(graph),
                       .rotary.table = ATT_NONE,
                       .frequencies = ATT_NONE};
    if (att_token_modules(att_graph_context(graph), o->modules, o->depth, o->num_heads, &build.modules) != ATT_OK)
        return; /* cannot happen: complete() has checked the option */
    const att_token_form *form = &build.form;
    att_value *blocks = att_features_of_tokens(graph, form->prefix, form->grid[0], form->grid[1], o->depth, features);
    if (!blocks)
        return;
    att_value x = build_embedding(&build);
    build_rotary(&build);
    for (int i = 0; i < o->depth; i++)
        blocks[i] = x = build_block(&build, i, x);
    build_pool(&build, x, features);
}
