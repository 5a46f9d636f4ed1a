/* Vision Transformer (Dosovitskiy et al., ICLR 2021), DeiT (Touvron et al., ICML 2021) and DeiT III (ECCV 2022) as in
 * timm: patch embedding, class token or none, learned position embedding, pre-norm blocks with or without LayerScale,
 * last norm before or after the pooling. Dimensions and preprocessing are those of timm 1.0. */
#include <stdio.h>
#include <string.h>

#include <attscope/nn.h>
#include <attscope/ops.h>

#include "core/error.h"
#include "models/checkpoint.h"
#include "models/family.h"
#include "models/patches.h"
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

typedef struct vit_images {
    double mean[3], std[3];
    const char *crop_mode, *interpolation;
} vit_images;

static const vit_images half = {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, "center", "bicubic"},
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
    int num_classes; /* 0: no head */
    const vit_size *size;
    const vit_style *style;
    const vit_images *images;
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
    return (att_model_info){
        .name = variant->name, .summary = variant->summary, .height = variant->img_size, .width = variant->img_size};
}

/* --- options ----------------------------------------------------------------------------------------------------- */

static const char *pool_names(int index)
{
    static const char *const names[] = {"token", "avg"};
    return index < 2 ? names[index] : NULL;
}

static const char *extra_layer_names(int index)
{
    static const char *const names[] = {"none", "attn", "mlp"};
    return index < 3 ? names[index] : NULL;
}

#define VIT(member) ATT_OPTION_AT(att_vit_options, member)
static const att_option vit_options[] = {
    ATT_SHARED_OPTIONS(att_vit_options),
    {"patch_size", .kind = ATT_OPTION_SIDES, .value = "H [W]",
     .help = "pixels of a patch, height and width; one number is both", .low = 1, .high = 65536, VIT(patch_size)},
    {"embed_dim", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "width of a token", .low = 1, .high = 65536,
     VIT(embed_dim)},
    {"depth", .kind = ATT_OPTION_WHOLE, .value = "N",
     .help = "blocks; of a residual network: layers with weights, without shortcuts", .implied_by = "layers", .low = 1,
     .high = 1024, VIT(depth)},
    {"num_heads", .kind = ATT_OPTION_WHOLE, .value = "N", .help = "attention heads of a block",
     .not_in_tensors = "the number of heads", .low = 1, .high = 65536, VIT(num_heads)},
    {"mlp_ratio", .kind = ATT_OPTION_REAL, .value = "X", .help = "width of the MLP over that of a token", .low = 1e-3,
     .high = 64, VIT(mlp_ratio)},
    {"global_pool", .alias = "gp", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "what the head reads: token (the class token) or avg (the mean over the other tokens)",
     .choice = pool_names, VIT(global_pool)},
    {"final_norm", .kind = ATT_OPTION_SWITCH, .help = "a norm after the last block", VIT(final_norm)},
    {"fc_norm", .kind = ATT_OPTION_SWITCH, .help = "put that norm after the pooling", VIT(fc_norm)},
    {"class_token", .kind = ATT_OPTION_SWITCH, .help = "with or without a class token", VIT(class_token)},
    {"embed_class", .kind = ATT_OPTION_SWITCH, .help = "position embedding for the class token too", VIT(embed_class)},
    {"qkv_bias", .kind = ATT_OPTION_SWITCH, .help = "queries, keys and values with a bias", VIT(qkv_bias)},
    {"init_values", .kind = ATT_OPTION_REAL, .value = "X", .help = "LayerScale with this initial value; 0: none",
     .high = 1e3, .compare_presence = true, VIT(init_values)},
    {"extra_layer", .kind = ATT_OPTION_TEXT, .value = "NAME",
     .help = "one more residual layer after the last block: attn, or mlp with twice as many hidden channels as a "
             "token has, which has nearly as many parameters",
     .choice = extra_layer_names, .differs_as = "the extra layer", VIT(extra_layer)},
    {"file_grid", .kind = ATT_OPTION_SIDES, .low = 1, .high = 65536, .not_compared = true, .internal = true,
     VIT(file_grid)},
};

ATT_ASSERT_SETTINGS_FIT(att_vit_options);
static const att_option_table vit_table = {vit_options, sizeof vit_options / sizeof *vit_options,
                                           sizeof(att_vit_options)};

static void vit_defaults(int index, const att_option_values *given, att_option_values *options,
                         att_preprocess *preprocess)
{
    (void)given;
    const struct vit_variant *variant = &variants[index];
    const vit_style *style = variant->style;
    att_vit_options o;
    att_options_clear(&vit_table, &o);
    o.img_size[0] = o.img_size[1] = variant->img_size;
    o.in_chans = 3;
    o.num_classes = variant->num_classes;
    o.drop_rate = o.drop_path_rate = 0;
    o.final_norm = 1;
    o.patch_size[0] = o.patch_size[1] = variant->patch_size;
    o.embed_dim = variant->size->embed_dim;
    o.depth = variant->size->depth;
    o.num_heads = variant->size->num_heads;
    o.mlp_ratio = variant->size->mlp_ratio;
    o.fc_norm = style->fc_norm;
    o.class_token = style->class_token;
    o.embed_class = style->embed_class;
    o.qkv_bias = style->qkv_bias;
    o.init_values = style->init_values;
    snprintf(o.modules, sizeof o.modules, "none");
    snprintf(o.extra_layer, sizeof o.extra_layer, "none");
    snprintf(o.global_pool, sizeof o.global_pool, "%s", style->global_pool);
    att_options_write(&vit_table, &o, options);
    *preprocess = (att_preprocess){
        .height = variant->img_size, .width = variant->img_size, .in_chans = 3, .crop_pct = variant->crop_pct};
    memcpy(preprocess->mean, variant->images->mean, sizeof preprocess->mean);
    memcpy(preprocess->std, variant->images->std, sizeof preprocess->std);
    snprintf(preprocess->crop_mode, sizeof preprocess->crop_mode, "%s", variant->images->crop_mode);
    snprintf(preprocess->interpolation, sizeof preprocess->interpolation, "%s", variant->images->interpolation);
}

/* In the order of the enum in vit.h. */
static const att_module_hook hooks[] = {
    {"after_mlp", "at the end of a block's MLP branch, before LayerScale and the addition", ATT_ON_TOKENS},
    {"after_attn", "at the end of a block's attention branch, before LayerScale and the addition", ATT_ON_TOKENS},
    {"attn", "in place of a block's attention, after its norm", ATT_ON_TOKENS},
    {"before_mlp", "at the front of a block's MLP, after its norm", ATT_ON_TOKENS},
    {"mid_mlp", "on the hidden channels of a block's MLP, after the GELU", ATT_ON_TOKENS},
    {"before_attn", "before a block's attention, after its norm", ATT_ON_TOKENS},
    {"stream_after_attn", "on the stream, after the addition of a block's attention branch", ATT_ON_TOKENS},
    {"stream_after_mlp", "on the stream, after the addition of a block's MLP branch", ATT_ON_TOKENS},
    {"heads", "beside the heads of a block's attention", ATT_ON_HEADS},
};
const att_hooks att_vit_hooks = {hooks, sizeof hooks / sizeof *hooks};

att_stages att_vit_stages(int depth)
{
    return (att_stages){.count = 1, .blocks = {depth}};
}

static const att_accepted_argument vit_arguments[] = {
    {"pos_drop_rate", ATT_ANY_VALUE},
    {"patch_drop_rate", ATT_ANY_VALUE},
    {"proj_drop_rate", ATT_ANY_VALUE},
    {"attn_drop_rate", ATT_ANY_VALUE},
    {"weight_init", ATT_ANY_VALUE},
    {"fix_init", ATT_ANY_VALUE},
    {"dynamic_img_size", ATT_ANY_VALUE},
    {"dynamic_img_pad", ATT_ANY_VALUE},
    {"qk_norm", "false"},
    {"scale_attn_norm", "false"},
    {"scale_mlp_norm", "false"},
    {"proj_bias", "true"},
    {"pos_embed", "learn"},
    {"reg_tokens", "0"},
    {"pre_norm", "false"},
    {"act_layer", "gelu"},
    {"pool_include_prefix", "false"},
    {"norm_layer", "layernorm"},
    {NULL, NULL},
};

/* timm's no_embed_class is the opposite of embed_class. */
static bool take_argument(const char *key, const att_fact *fact, att_option_values *options)
{
    if (strcmp(key, "no_embed_class") != 0 || fact->kind != ATT_FACT_NUMBERS || fact->count != 1 ||
        (fact->numbers[0] != 0 && fact->numbers[0] != 1))
        return false;
    if (!att_options_find(options, "embed_class"))
        att_options_set(options, "embed_class", fact->numbers[0] == 0);
    return true;
}

static bool pools_mean(const att_vit_options *o)
{
    return strcmp(o->global_pool, "avg") == 0;
}

static att_status check_heads(att_context *context, const att_vit_options *o, const att_modules *modules)
{
    for (int b = 0; b < o->depth; b++) {
        int replaced = att_modules_replaced_heads(modules, ATT_VIT_HEADS, b);
        if (!att_modules_any(modules, ATT_VIT_HEADS, b))
            continue;
        if (att_modules_any(modules, ATT_VIT_ATTN, b))
            return att_fail(context, ATT_ERR_ARGUMENT,
                            "modules \"%s\": block %d has a module in place of its attention (@attn), and so no heads "
                            "beside which another could be (@heads)",
                            o->modules, b);
        if (replaced >= o->num_heads)
            return att_fail(
                context, ATT_ERR_ARGUMENT,
                "modules \"%s\": in block %d they replace %d of num_heads %d; at least one head must remain",
                o->modules, b, replaced, o->num_heads);
    }
    return ATT_OK;
}

static att_status vit_complete(att_context *context, void *options)
{
    att_vit_options *o = options;
    if (o->embed_dim % o->num_heads)
        return att_fail(context, ATT_ERR_ARGUMENT, "embed_dim %d is not a multiple of num_heads %d", o->embed_dim,
                        o->num_heads);
    ATT_TRY(att_patches_check(context, o->img_size, o->patch_size));
    ATT_TRY(att_mlp_check(context, "mlp_ratio", o->embed_dim, o->mlp_ratio));
    if (!pools_mean(o) && !o->class_token)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "global_pool \"token\" needs the class token; without one use \"avg\"");
    att_modules modules;
    const att_stages stages = att_vit_stages(o->depth);
    ATT_TRY(att_modules_parse(context, &att_vit_hooks, &stages, o->modules, &modules));
    ATT_TRY(check_heads(context, o, &modules));
    if (o->fc_norm == ATT_OPTION_UNSET)
        o->fc_norm = pools_mean(o);
    if (!o->class_token)
        o->embed_class = 0;
    return ATT_OK;
}

/* --- the network ------------------------------------------------------------------------------------------------- */

typedef struct vit_build {
    att_graph *graph;
    const att_vit_options *options;
    att_modules modules;
    att_scope root;
} vit_build;

/* A block, or the extra layer. */
typedef struct vit_layer {
    const vit_build *build;
    const att_modules *modules;
    att_scope scope;
    int index; /* the extra layer counts as block `depth` */
    int64_t hidden;
} vit_layer;

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

static att_module_site site_of(const vit_layer *layer, att_value branch, att_value identity)
{
    const att_vit_options *options = layer->build->options;
    return (att_module_site){.branch = branch,
                             .identity = identity,
                             .input = ATT_NONE,
                             .prefix = options->class_token,
                             .grid_h = options->img_size[0] / options->patch_size[0],
                             .grid_w = options->img_size[1] / options->patch_size[1]};
}

/* Applies the modules of a hook. */
static att_value change(const vit_layer *layer, int hook, const att_scope *scope, att_value branch, att_value identity)
{
    const att_module_site site = site_of(layer, branch, identity);
    return att_modules_apply(layer->modules, hook, layer->index, scope, &site);
}

/* identity + drop_path(layer_scale(branch)), then the modules on the stream; half_of_block is 1 or 2. */
static att_value add_branch(const vit_layer *layer, int half_of_block, int hook, att_value identity, att_value branch)
{
    const att_vit_options *options = layer->build->options;
    att_graph *graph = layer->build->graph;
    if (options->init_values > 0) {
        att_scope scope = att_scope_in(&layer->scope, "ls%d", half_of_block);
        branch = att_nn_layer_scale(&scope, branch, options->init_values);
    }
    att_scope drop = att_scope_in(&layer->scope, "drop_path%d", half_of_block);
    att_scope_enter(&drop);
    branch = att_drop_path(graph, branch, drop_path_of(options, layer->index));
    att_scope sum = att_scope_in(&layer->scope, "add%d", half_of_block);
    att_scope_enter(&sum);
    return change(layer, hook, &sum, att_add(graph, identity, branch), identity);
}

/* Attention with the modules beside its heads. */
static att_value build_heads(const vit_layer *layer, const att_scope *scope, att_value x)
{
    const att_vit_options *options = layer->build->options;
    att_module_site site = site_of(layer, ATT_NONE, ATT_NONE);
    int replaced = att_modules_replaced_heads(layer->modules, ATT_VIT_HEADS, layer->index);
    att_nn_attention_options attention = {.heads = options->num_heads - replaced,
                                          .head_width = options->embed_dim / options->num_heads,
                                          .qkv_bias = options->qkv_bias,
                                          .prefix = site.prefix,
                                          .grid_h = site.grid_h,
                                          .grid_w = site.grid_w,
                                          .step_h = options->patch_size[0],
                                          .step_w = options->patch_size[1]};
    site.branch = att_nn_attention(scope, x, &attention);
    site.input = x;
    site.heads = options->num_heads;
    site.qkv_bias = options->qkv_bias;
    return att_modules_apply(layer->modules, ATT_VIT_HEADS, layer->index, scope, &site);
}

static att_value build_attention(const vit_layer *layer, att_value x)
{
    att_scope norm = att_scope_in(&layer->scope, "norm1"), attn = att_scope_in(&layer->scope, "attn");
    att_value branch = change(layer, ATT_VIT_BEFORE_ATTN, &norm, att_nn_layer_norm(&norm, x, NORM_EPS), x);
    if (att_modules_any(layer->modules, ATT_VIT_ATTN, layer->index))
        branch = change(layer, ATT_VIT_ATTN, &attn, branch, x);
    else
        branch = build_heads(layer, &attn, branch);
    branch = change(layer, ATT_VIT_AFTER_ATTN, &attn, branch, x);
    return add_branch(layer, 1, ATT_VIT_STREAM_AFTER_ATTN, x, branch);
}

static att_value build_mlp(const vit_layer *layer, att_value x)
{
    att_scope norm = att_scope_in(&layer->scope, "norm2"), mlp = att_scope_in(&layer->scope, "mlp");
    att_scope fc1 = att_scope_in(&mlp, "fc1"), act = att_scope_in(&mlp, "act"), fc2 = att_scope_in(&mlp, "fc2");
    att_value branch = change(layer, ATT_VIT_BEFORE_MLP, &norm, att_nn_layer_norm(&norm, x, NORM_EPS), x);
    branch = att_gelu(layer->build->graph, att_nn_linear(&fc1, branch, layer->hidden, true));
    branch = change(layer, ATT_VIT_MID_MLP, &act, branch, x);
    branch = att_nn_linear(&fc2, branch, layer->build->options->embed_dim, true);
    branch = change(layer, ATT_VIT_AFTER_MLP, &mlp, branch, x);
    return add_branch(layer, 2, ATT_VIT_STREAM_AFTER_MLP, x, branch);
}

static att_value build_block(const vit_build *build, int index, att_value x)
{
    const vit_layer block = {.build = build,
                             .modules = &build->modules,
                             .scope = att_scope_in(&build->root, "blocks.%d", index),
                             .index = index,
                             .hidden = att_mlp_hidden(build->options->embed_dim, build->options->mlp_ratio)};
    return build_mlp(&block, build_attention(&block, x));
}

/* The layer of the paper's Figure 2: attention has 4 C^2 weights, and so has an MLP with 2 C hidden channels.
 * (Hyeon-Woo et al., ICCV 2023) */
static att_value build_extra_layer(const vit_build *build, att_value x)
{
    static const att_modules none = {.count = 0};
    const att_vit_options *options = build->options;
    const vit_layer layer = {.build = build,
                             .modules = &none,
                             .scope = att_scope_in(&build->root, "blocks.%d", options->depth),
                             .index = options->depth,
                             .hidden = 2 * (int64_t)options->embed_dim};
    return strcmp(options->extra_layer, "attn") == 0 ? build_attention(&layer, x) : build_mlp(&layer, x);
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

static void vit_build_network(att_graph *graph, const void *options, att_features *features)
{
    vit_build build = {.graph = graph, .options = options, .root = att_scope_root(graph)};
    const att_stages stages = att_vit_stages(build.options->depth);
    if (att_modules_parse(att_graph_context(graph), &att_vit_hooks, &stages, build.options->modules, &build.modules) !=
        ATT_OK)
        return; /* cannot happen: complete() has checked the option */
    att_value x = build_embedding(&build);
    for (int i = 0; i < build.options->depth; i++)
        x = build_block(&build, i, x);
    if (has_extra_layer(build.options))
        x = build_extra_layer(&build, x);
    build_pool(&build, x, features);
}

static att_value build_classifier(const att_scope *scope, att_value features, int64_t classes)
{
    return att_nn_linear(scope, features, classes, true);
}

static att_classifier_form vit_classifier(const void *options)
{
    (void)options;
    return (att_classifier_form){.scope = "head", .build = build_classifier};
}

/* As timm's VisionTransformer and VisionTransformerDistilled; fc_norm is beside the head. */
static int layer_of(const char *name)
{
    static const char *const stem[] = {"cls_token", "pos_embed", "patch_embed"};
    const char *rest;
    int block = att_checkpoint_block(name, "blocks", &rest);
    for (size_t i = 0; i < sizeof stem / sizeof *stem; i++)
        if (strncmp(name, stem[i], strlen(stem[i])) == 0)
            return 0;
    if (strncmp(name, "norm.", 5) == 0)
        return ATT_LAYER_LAST_BLOCK;
    return block < 0 ? ATT_LAYER_HEAD : 1 + block;
}

extern const att_family att_family_vit;

const att_family att_family_vit = {
    .name = "vit",
    .signature = "patch_embed.proj.weight",
    .options = &vit_table,
    .hooks = {hooks, sizeof hooks / sizeof *hooks},
    .accepted_arguments = vit_arguments,
    .classifier = vit_classifier,
    .variant_count = sizeof variants / sizeof *variants,
    .variant = vit_info,
    .defaults = vit_defaults,
    .complete = vit_complete,
    .build = vit_build_network,
    .recognise = att_vit_recognise,
    .take_argument = take_argument,
    .disambiguate = att_vit_disambiguate,
    .check_undetermined = att_vit_check_undetermined,
    .regrids = att_vit_regrids,
    .is_added = att_vit_is_added,
    .layer = layer_of,
};
