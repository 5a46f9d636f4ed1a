/* Builds a Swin Transformer. */
#include <attscope/ops.h>

#include "networks/models/patches.h"
#include "networks/models/swin.h"
#include "networks/nn/gates.h"

static const double NORM_EPS = 1e-5;

typedef struct swin_build {
    att_graph *graph;
    att_swin net;
    att_scope root;
} swin_build;

static att_value build_embedding(const swin_build *build)
{
    const att_swin_options *o = build->net.options;
    att_value image = att_graph_input(build->graph, ATT_IMAGE, att_graph_dtype(build->graph),
                                      att_shape_of(o->img_size[0], o->img_size[1], o->in_chans));
    att_scope scope = att_scope_in(&build->root, "patch_embed"), norm = att_scope_in(&scope, "norm");
    att_value x = att_nn_patch_embed(&scope, image, o->patch_size[0], o->patch_size[1], o->embed_dim, true);
    return att_nn_layer_norm(&norm, x, NORM_EPS);
}

/* Tokens [h w, C] as a map [h, w, C]. */
static att_value to_map(att_graph *graph, const att_swin_stage *stage, att_value x)
{
    return att_reshape(graph, x, att_shape_of(stage->grid[0], stage->grid[1], stage->width));
}

/* The linear layer of patch merging, which has no bias. */
static att_value reduce(const swin_build *build, const att_scope *scope, att_value x, int64_t inputs, int64_t outputs)
{
    bool uniform = build->net.version->start == ATT_START_UNIFORM;
    att_init init = uniform ? att_init_fan_in(inputs) : att_init_linear();
    att_scope_enter(scope);
    att_value weight = att_scope_parameter(scope, "weight", att_shape_of(outputs, inputs), init, true);
    return att_linear(build->graph, x, weight, ATT_NONE);
}

/* Tokens of `stage` from the map of the stage before it: 2 x 2 neighbours become one token. */
static att_value downsample(const swin_build *build, const att_scope *scope, const att_swin_stage *stage, att_value map)
{
    att_scope norm = att_scope_in(scope, "norm"), reduction = att_scope_in(scope, "reduction");
    int64_t tokens = (int64_t)stage->grid[0] * stage->grid[1], width = 4 * (int64_t)stage[-1].width;
    att_scope_enter(scope);
    att_value x = att_reshape(build->graph, att_merge_patches(build->graph, map), att_shape_of(tokens, width));
    if (build->net.version->merge_norm_last)
        return att_nn_layer_norm(&norm, reduce(build, &reduction, x, width, stage->width), NORM_EPS);
    return reduce(build, &reduction, att_nn_layer_norm(&norm, x, NORM_EPS), width, stage->width);
}

/* Distances are measured in pixels of the image. shifted: whether the block's windows are shifted. */
static att_token_form form_of(const att_swin *net, int s, bool shifted)
{
    const att_swin_options *o = net->options;
    const att_swin_stage *stage = &net->stages[s];
    att_token_form form = {.width = stage->width,
                           .heads = stage->heads,
                           .norm = {.eps = NORM_EPS},
                           .post_norm = net->version->post_norm,
                           .qkv_bias = o->qkv_bias,
                           .qv_bias = net->version->qv_bias,
                           .proj_bias = true,
                           .start = net->version->start,
                           .activate = att_gelu,
                           .relative = net->version->relative,
                           .cosine = net->version->cosine,
                           .grid = {stage->grid[0], stage->grid[1]},
                           .patch = {o->patch_size[0] << s, o->patch_size[1] << s},
                           .pad_before_shift = o->pad_before_shift,
                           .attn_drop = o->attn_drop_rate};
    form.relative.pretrained = stage->pretrained;
    bool whole = stage->window[0] == stage->grid[0] && stage->window[1] == stage->grid[1] &&
                 !(shifted && (stage->shift[0] || stage->shift[1]));
    for (int i = 0; i < 2 && !whole; i++) {
        form.window[i] = stage->window[i];
        form.shift[i] = shifted ? stage->shift[i] : 0;
    }
    return form;
}

static att_value build_stage(const swin_build *build, const att_scope *scope, int s, int first, att_value x)
{
    const att_swin *net = &build->net;
    int64_t hidden = att_mlp_hidden(net->stages[s].width, net->options->mlp_ratio);
    for (int b = 0; b < net->depths.blocks[s]; b++) {
        const att_token_form form = form_of(net, s, b % 2 == 1);
        const att_token_block block = {
            .form = &form,
            .modules = &net->modules,
            .scope = att_scope_in(scope, "blocks.%d", b),
            .index = first + b,
            .hidden = hidden,
            .drop_path = att_drop_path_of(net->options->drop_path_rate, first + b, att_stages_total(&net->depths))};
        x = att_token_transform(&block, att_token_attend(&block, x));
        att_scope norm3 = att_scope_in(&block.scope, "norm3");
        if (att_swin_has_extra_norm(net, s, b))
            x = att_nn_layer_norm(&norm3, x, NORM_EPS);
    }
    return x;
}

void att_swin_build(att_graph *graph, const void *options, att_features *features)
{
    swin_build build = {.graph = graph, .root = att_scope_root(graph)};
    if (att_swin_read(att_graph_context(graph), options, &build.net) != ATT_OK)
        return; /* cannot happen: complete() has checked the options */
    att_value x = build_embedding(&build);
    for (int s = 0, first = 0; s < build.net.depths.count; first += build.net.depths.blocks[s++]) {
        att_scope scope = att_scope_in(&build.root, "%s.%d", build.net.version->stages, s);
        att_scope merge = att_scope_in(&scope, "downsample");
        if (s > 0)
            x = downsample(&build, &merge, &build.net.stages[s], features->stages[s - 1]);
        x = build_stage(&build, &scope, s, first, x);
        att_scope_enter(&scope);
        features->stages[features->stage_count++] = to_map(graph, &build.net.stages[s], x);
        for (int i = 0; i < 2; i++)
            features->grid[i] = build.net.stages[s].grid[i];
    }
    att_scope norm = att_scope_in(&build.root, "norm"), pool = att_scope_in(&build.root, "head.global_pool");
    features->tokens = build.net.version->last_norm ? att_nn_layer_norm(&norm, x, NORM_EPS) : x;
    att_scope_enter(&pool);
    features->pooled = att_token_mean(graph, features->tokens, 0);
}
