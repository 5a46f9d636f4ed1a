/* Vision Transformer (Dosovitskiy et al., ICLR 2021), DeiT (Touvron et al., ICML 2021) and DeiT III (ECCV 2022) as timm
 * builds them: patch embedding, class token or none, learned position embedding, pre-norm blocks with or without
 * LayerScale, last norm before or after the pooling, linear head. Dimensions and preprocessing are those of timm 1.0.
 */
#include <stdio.h>
#include <string.h>

#include <attscope/nn.h>
#include <attscope/ops.h>

#include "core/error.h"
#include "models/family.h"
#include "models/vit.h"

static const double NORM_EPS = 1e-6;

/* --- variants ---------------------------------------------------------------------------------------------------- */

typedef struct vit_size {
    int embed_dim, depth, num_heads;
    double mlp_ratio;
} vit_size;

static const vit_size tiny = {192, 12, 3, 4}, small = {384, 12, 6, 4}, small36 = {384, 36, 6, 4},
                      medium = {512, 12, 8, 4}, betwixt = {640, 12, 10, 4}, base = {768, 12, 12, 4},
                      base16 = {768, 12, 16, 4}, plus = {896, 12, 14, 4}, large = {1024, 24, 16, 4},
                      huge = {1280, 32, 16, 4}, giant = {1408, 40, 16, 48.0 / 11}, gigantic = {1664, 48, 16, 64.0 / 13},
                      so400m = {1152, 27, 16, 4304.0 / 1152}, test = {64, 6, 2, 3};

typedef struct vit_style {
    const char *global_pool;
    int fc_norm, class_token, embed_class, qkv_bias;
    double init_values;
} vit_style;

static const vit_style plain = {"token", -1, 1, 1, 1, 0}, scaled = {"token", -1, 1, 1, 1, 1e-5},
                       deit3 = {"token", -1, 1, 0, 1, 1e-6}, flexi = {"token", -1, 1, 0, 1, 0},
                       unbiased = {"token", -1, 1, 1, 0, 0}, gap = {"avg", 0, 0, 0, 1, 0},
                       gap_scaled = {"avg", 0, 0, 0, 0, 1e-6};

typedef struct vit_look {
    double mean[3], std[3];
    const char *crop_mode, *interpolation;
} vit_look;

static const vit_look half = {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, "center", "bicubic"},
                      squashed = {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, "squash", "bicubic"},
                      imagenet = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, "center", "bicubic"},
                      raw = {{0, 0, 0}, {1, 1, 1}, "center", "bilinear"};

static const char VIT[] = "Vision Transformer (Dosovitskiy et al., ICLR 2021)";
static const char FLEXIVIT[] = "FlexiViT (Beyer et al., CVPR 2023)";
static const char DINOV2[] = "DINOv2 (Oquab et al., TMLR 2024)";
static const char SIGLIP[] = "SigLIP (Zhai et al., ICCV 2023), with mean pooling";
static const char DEIT[] = "DeiT (Touvron et al., ICML 2021)";
static const char DEIT3[] = "DeiT III (Touvron et al., ECCV 2022)";

static const struct vit_variant {
    const char *name, *summary;
    int patch_size, img_size;
    int num_classes; /* 0: without a head */
    const vit_size *size;
    const vit_style *style;
    const vit_look *look;
    double crop_pct;
} variants[] = {
    {"vit_tiny_patch16_224", VIT, 16, 224, 1000, &tiny, &plain, &half, 0.9},
    {"vit_tiny_patch16_384", VIT, 16, 384, 1000, &tiny, &plain, &half, 1},
    {"vit_small_patch32_224", VIT, 32, 224, 1000, &small, &plain, &half, 0.9},
    {"vit_small_patch32_384", VIT, 32, 384, 1000, &small, &plain, &half, 1},
    {"vit_small_patch16_224", VIT, 16, 224, 1000, &small, &plain, &half, 0.9},
    {"vit_small_patch16_384", VIT, 16, 384, 1000, &small, &plain, &half, 1},
    {"vit_small_patch8_224", VIT, 8, 224, 1000, &small, &plain, &imagenet, 0.9},
    {"vit_small_patch16_36x1_224", VIT, 16, 224, 1000, &small36, &scaled, &half, 0.9},
    {"vit_medium_patch16_gap_240", VIT, 16, 240, 11821, &medium, &gap_scaled, &half, 0.95},
    {"vit_medium_patch16_gap_256", VIT, 16, 256, 1000, &medium, &gap_scaled, &half, 0.95},
    {"vit_medium_patch16_gap_384", VIT, 16, 384, 1000, &medium, &gap_scaled, &squashed, 0.95},
    {"vit_betwixt_patch16_gap_256", VIT, 16, 256, 1000, &betwixt, &gap_scaled, &half, 0.95},
    {"vit_base_patch32_224", VIT, 32, 224, 1000, &base, &plain, &half, 0.9},
    {"vit_base_patch32_384", VIT, 32, 384, 1000, &base, &plain, &half, 1},
    {"vit_base_patch16_224", VIT, 16, 224, 1000, &base, &plain, &half, 0.9},
    {"vit_base_patch16_384", VIT, 16, 384, 1000, &base, &plain, &half, 1},
    {"vit_base_patch8_224", VIT, 8, 224, 1000, &base, &plain, &half, 0.9},
    {"vit_base_patch16_224_miil", VIT, 16, 224, 11221, &base, &unbiased, &raw, 0.875},
    {"vit_base_patch16_gap_224", VIT, 16, 224, 1000, &base16, &gap, &half, 0.9},
    {"vit_base_patch32_plus_256", VIT, 32, 256, 1000, &plus, &scaled, &half, 0.95},
    {"vit_base_patch16_plus_240", VIT, 16, 240, 1000, &plus, &scaled, &half, 0.95},
    {"vit_large_patch32_224", VIT, 32, 224, 1000, &large, &plain, &half, 0.9},
    {"vit_large_patch32_384", VIT, 32, 384, 1000, &large, &plain, &half, 1},
    {"vit_large_patch16_224", VIT, 16, 224, 1000, &large, &plain, &half, 0.9},
    {"vit_large_patch16_384", VIT, 16, 384, 1000, &large, &plain, &half, 1},
    {"vit_large_patch14_224", VIT, 14, 224, 1000, &large, &plain, &half, 0.9},
    {"vit_huge_patch14_224", VIT, 14, 224, 1000, &huge, &plain, &half, 0.9},
    {"vit_giant_patch14_224", VIT, 14, 224, 1000, &giant, &plain, &half, 0.9},
    {"vit_gigantic_patch14_224", VIT, 14, 224, 1000, &gigantic, &plain, &half, 0.9},
    {"test_vit", VIT, 16, 160, 1000, &test, &plain, &half, 0.95},
    {"flexivit_small", FLEXIVIT, 16, 240, 1000, &small, &flexi, &half, 0.95},
    {"flexivit_base", FLEXIVIT, 16, 240, 1000, &base, &flexi, &half, 0.95},
    {"flexivit_large", FLEXIVIT, 16, 240, 1000, &large, &flexi, &half, 0.95},
    {"vit_small_patch14_dinov2", DINOV2, 14, 518, 0, &small, &scaled, &imagenet, 1},
    {"vit_base_patch14_dinov2", DINOV2, 14, 518, 0, &base, &scaled, &imagenet, 1},
    {"vit_large_patch14_dinov2", DINOV2, 14, 518, 0, &large, &scaled, &imagenet, 1},
    {"vit_base_patch16_siglip_gap_224", SIGLIP, 16, 224, 0, &base, &gap, &half, 0.9},
    {"vit_base_patch16_siglip_gap_256", SIGLIP, 16, 256, 0, &base, &gap, &half, 0.9},
    {"vit_base_patch16_siglip_gap_384", SIGLIP, 16, 384, 0, &base, &gap, &half, 0.9},
    {"vit_base_patch16_siglip_gap_512", SIGLIP, 16, 512, 0, &base, &gap, &half, 0.9},
    {"vit_large_patch16_siglip_gap_256", SIGLIP, 16, 256, 0, &large, &gap, &half, 0.9},
    {"vit_large_patch16_siglip_gap_384", SIGLIP, 16, 384, 0, &large, &gap, &half, 0.9},
    {"vit_so400m_patch14_siglip_gap_224", SIGLIP, 14, 224, 0, &so400m, &gap, &half, 0.9},
    {"vit_so400m_patch14_siglip_gap_378", SIGLIP, 14, 378, 0, &so400m, &gap, &half, 0.9},
    {"vit_so400m_patch14_siglip_gap_448", SIGLIP, 14, 448, 0, &so400m, &gap, &half, 1},
    {"vit_so400m_patch14_siglip_gap_896", SIGLIP, 14, 896, 0, &so400m, &gap, &half, 1},
    {"deit_tiny_patch16_224", DEIT, 16, 224, 1000, &tiny, &plain, &imagenet, 0.9},
    {"deit_small_patch16_224", DEIT, 16, 224, 1000, &small, &plain, &imagenet, 0.9},
    {"deit_base_patch16_224", DEIT, 16, 224, 1000, &base, &plain, &imagenet, 0.9},
    {"deit_base_patch16_384", DEIT, 16, 384, 1000, &base, &plain, &imagenet, 1},
    {"deit3_small_patch16_224", DEIT3, 16, 224, 1000, &small, &deit3, &imagenet, 0.9},
    {"deit3_small_patch16_384", DEIT3, 16, 384, 1000, &small, &deit3, &imagenet, 1},
    {"deit3_medium_patch16_224", DEIT3, 16, 224, 1000, &medium, &deit3, &imagenet, 0.9},
    {"deit3_base_patch16_224", DEIT3, 16, 224, 1000, &base, &deit3, &imagenet, 0.9},
    {"deit3_base_patch16_384", DEIT3, 16, 384, 1000, &base, &deit3, &imagenet, 1},
    {"deit3_large_patch16_224", DEIT3, 16, 224, 1000, &large, &deit3, &imagenet, 0.9},
    {"deit3_large_patch16_384", DEIT3, 16, 384, 1000, &large, &deit3, &imagenet, 1},
    {"deit3_huge_patch14_224", DEIT3, 14, 224, 1000, &huge, &deit3, &imagenet, 0.9},
};

static att_model_info vit_info(int index)
{
    const struct vit_variant *variant = &variants[index];
    return (att_model_info){.name = variant->name, .summary = variant->summary, .img_size = variant->img_size};
}

static void vit_defaults(int index, const att_model_options *said, att_model_options *options,
                         att_preprocess *preprocess)
{
    (void)said;
    const struct vit_variant *variant = &variants[index];
    const vit_style *style = variant->style;
    *options = att_model_options_defaults();
    options->img_size = variant->img_size;
    options->in_chans = 3;
    options->num_classes = variant->num_classes;
    options->head = variant->num_classes > 0;
    options->final_norm = 1;
    options->patch_size = variant->patch_size;
    options->embed_dim = variant->size->embed_dim;
    options->depth = variant->size->depth;
    options->num_heads = variant->size->num_heads;
    options->mlp_ratio = variant->size->mlp_ratio;
    options->fc_norm = style->fc_norm;
    options->class_token = style->class_token;
    options->embed_class = style->embed_class;
    options->qkv_bias = style->qkv_bias;
    options->init_values = style->init_values;
    snprintf(options->broadcast, sizeof options->broadcast, "none");
    snprintf(options->global_pool, sizeof options->global_pool, "%s", style->global_pool);
    *preprocess = (att_preprocess){.img_size = variant->img_size, .in_chans = 3, .crop_pct = variant->crop_pct};
    memcpy(preprocess->mean, variant->look->mean, sizeof preprocess->mean);
    memcpy(preprocess->std, variant->look->std, sizeof preprocess->std);
    snprintf(preprocess->crop_mode, sizeof preprocess->crop_mode, "%s", variant->look->crop_mode);
    snprintf(preprocess->interpolation, sizeof preprocess->interpolation, "%s", variant->look->interpolation);
}

/* --- options ----------------------------------------------------------------------------------------------------- */

int64_t att_vit_hidden(const att_model_options *options)
{
    return (int64_t)(options->embed_dim * options->mlp_ratio);
}

static bool pools_mean(const att_model_options *options)
{
    return strcmp(options->global_pool, "avg") == 0;
}

static att_status vit_complete(att_context *context, att_model_options *options)
{
    if (options->embed_dim % options->num_heads)
        return att_fail(context, ATT_ERR_ARGUMENT, "embed_dim %d is not a multiple of num_heads %d", options->embed_dim,
                        options->num_heads);
    if (options->img_size % options->patch_size)
        return att_fail(context, ATT_ERR_ARGUMENT, "img_size %d is not a multiple of patch_size %d", options->img_size,
                        options->patch_size);
    if (att_vit_hidden(options) < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "mlp_ratio %g leaves no hidden channel of embed_dim %d",
                        options->mlp_ratio, options->embed_dim);
    if (!pools_mean(options) && strcmp(options->global_pool, "token") != 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "global_pool must be \"token\" or \"avg\", not \"%s\"",
                        options->global_pool);
    if (!pools_mean(options) && !options->class_token)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "global_pool \"token\" needs the class token; without one use \"avg\"");
    att_module_choice broadcast;
    ATT_TRY(att_module_parse(context, options->broadcast, &broadcast));
    if (options->fc_norm == -1)
        options->fc_norm = pools_mean(options);
    if (!options->class_token)
        options->embed_class = 0;
    return ATT_OK;
}

/* --- the network ------------------------------------------------------------------------------------------------- */

typedef struct vit_build {
    att_graph *graph;
    const att_model_options *options;
    att_module_choice broadcast;
    att_scope root;
} vit_build;

/* Drop path rates rise linearly with depth. */
static double drop_path_of(const att_model_options *options, int block)
{
    return options->depth > 1 ? options->drop_path_rate * block / (options->depth - 1) : 0;
}

/* identity + drop_path(layer_scale(branch)); half is 1 or 2. */
static att_value add_branch(const vit_build *build, const att_scope *block, int index, int half_of_block,
                            att_value identity, att_value branch)
{
    if (build->options->init_values > 0) {
        att_scope scope = att_scope_in(block, "ls%d", half_of_block);
        branch = att_nn_layer_scale(&scope, branch, build->options->init_values);
    }
    att_scope drop = att_scope_in(block, "drop_path%d", half_of_block);
    att_scope_enter(&drop);
    branch = att_drop_path(build->graph, branch, drop_path_of(build->options, index));
    att_scope sum = att_scope_in(block, "add%d", half_of_block);
    att_scope_enter(&sum);
    return att_add(build->graph, identity, branch);
}

static att_value build_block(const vit_build *build, int index, att_value x)
{
    const att_model_options *options = build->options;
    int side = options->img_size / options->patch_size;
    att_nn_attention_options attention = {.heads = options->num_heads,
                                          .qkv_bias = options->qkv_bias,
                                          .prefix = options->class_token,
                                          .grid_h = side,
                                          .grid_w = side};
    att_scope block = att_scope_in(&build->root, "blocks.%d", index);
    att_scope norm1 = att_scope_in(&block, "norm1"), attn = att_scope_in(&block, "attn");
    att_scope norm2 = att_scope_in(&block, "norm2"), mlp = att_scope_in(&block, "mlp");

    att_value branch = att_nn_attention(&attn, att_nn_layer_norm(&norm1, x, NORM_EPS), &attention);
    x = add_branch(build, &block, index, 1, x, branch);
    branch = att_nn_mlp(&mlp, att_nn_layer_norm(&norm2, x, NORM_EPS), att_vit_hidden(options));
    branch = att_module_apply(&build->broadcast, &mlp, branch, x);
    return add_branch(build, &block, index, 2, x, branch);
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
    const att_model_options *options = build->options;
    int64_t size = options->img_size, side = size / options->patch_size, width = options->embed_dim;
    att_value image = att_graph_input(build->graph, "image", att_graph_dtype(build->graph),
                                      att_shape_of(size, size, options->in_chans));
    att_value class_token = ATT_NONE;
    if (options->class_token)
        class_token = att_scope_parameter(&build->root, "cls_token", att_shape_of(1, 1, width), class_init, false);
    int64_t rows = side * side + options->embed_class;
    att_value positions =
        att_scope_parameter(&build->root, "pos_embed", att_shape_of(1, rows, width), position_init, false);

    att_scope scope = att_scope_in(&build->root, "patch_embed");
    att_value x = att_nn_patch_embed(&scope, image, options->patch_size, width);
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
    const att_model_options *options = build->options;
    if (!options->final_norm)
        return x;
    att_scope norm = att_scope_in(&build->root, options->fc_norm ? "fc_norm" : "norm");
    return att_nn_layer_norm(&norm, x, NORM_EPS);
}

/* [N, C] -> [C]. Pooling a token comes before the norm, which then works on that token only. */
static att_value build_pool(const vit_build *build, att_value x)
{
    const att_model_options *options = build->options;
    att_scope pool = att_scope_in(&build->root, "pool");
    if (!pools_mean(options)) {
        att_scope_enter(&pool);
        x = att_token_mean(build->graph, att_slice_tokens(build->graph, x, 0, 1), 0);
        return normalise(build, x);
    }
    if (!options->fc_norm)
        x = normalise(build, x);
    att_scope_enter(&pool);
    x = att_token_mean(build->graph, x, options->class_token);
    return options->fc_norm ? normalise(build, x) : x;
}

static att_value vit_build_network(att_graph *graph, const att_model_options *options)
{
    vit_build build = {.graph = graph, .options = options, .root = att_scope_root(graph)};
    if (att_module_parse(att_graph_context(graph), options->broadcast, &build.broadcast) != ATT_OK)
        return ATT_NONE; /* complete() has let it pass before */
    att_value x = build_embedding(&build);
    for (int i = 0; i < options->depth; i++)
        x = build_block(&build, i, x);
    x = build_pool(&build, x);
    if (!options->head) {
        att_graph_output(graph, "features", x);
        return x;
    }
    att_scope head = att_scope_in(&build.root, "head");
    att_scope_enter(&head);
    x = att_nn_linear(&head, att_dropout(graph, x, options->drop_rate), options->num_classes, true);
    att_graph_output(graph, "logits", x);
    return x;
}

static const char *vit_classifier(const att_model_options *options)
{
    (void)options;
    return "head";
}

static bool vit_alias(const char *name, int index, char *other, size_t size)
{
    (void)name, (void)index, (void)other, (void)size;
    return false;
}

extern const att_family att_family_vit;

const att_family att_family_vit = {
    .name = "vit",
    .mark = "patch_embed.proj.weight",
    .classifier = vit_classifier,
    .variant_count = sizeof variants / sizeof *variants,
    .variant = vit_info,
    .defaults = vit_defaults,
    .complete = vit_complete,
    .build = vit_build_network,
    .recognise = att_vit_recognise,
    .regrids = att_vit_regrids,
    .is_added = att_vit_is_added,
    .alias = vit_alias,
};
