/* The image networks of transformers' CLIP, SigLIP and SigLIP 2, alone, with their projection or classifier, or beside
 * their text networks, which are left out. */
#include <string.h>

#include "base/core/error.h"
#include "networks/layouts/layout.h"

#define LAYER "encoder.layers.#."
#define CLASSIFIER "classifier.weight"

#define COMMON_ROWS                                                                                                   \
    {"embeddings.position_embedding.weight", .to = "pos_embed", .rank = 3},                                           \
        {"embeddings.position_ids", .to = NULL, .computed = true}, {LAYER "layer_norm1.@", .to = "blocks.#.norm1.@"}, \
        {LAYER "self_attn.q_proj.@", .to = "blocks.#.attn.qkv.@", .part = 0},                                         \
        {LAYER "self_attn.k_proj.@", .to = "blocks.#.attn.qkv.@", .part = 1},                                         \
        {LAYER "self_attn.v_proj.@", .to = "blocks.#.attn.qkv.@", .part = 2},                                         \
        {LAYER "self_attn.out_proj.@", .to = "blocks.#.attn.proj.@"},                                                 \
        {LAYER "layer_norm2.@", .to = "blocks.#.norm2.@"}, {LAYER "mlp.fc1.@", .to = "blocks.#.mlp.fc1.@"},           \
        {LAYER "mlp.fc2.@", .to = "blocks.#.mlp.fc2.@"}, {"text_model.*", .to = NULL}, {"logit_scale", .to = NULL},   \
    {                                                                                                                 \
        "classifier.@", .to = "head.@", .bare = true                                                                  \
    }

static const att_layout_row rows[] = {
    {"visual_projection.weight", .to = "head.weight", .bare = true},
    {"visual_projection.weight", .to = "head.bias", .zeros = true},
    COMMON_ROWS,
    {"embeddings.class_embedding", .to = "cls_token", .rank = 3},
    {"embeddings.patch_embedding.weight", .to = "patch_embed.proj.weight"},
    {"pre_layrnorm.@", .to = "norm_pre.@"},
    /* The classifier reads the mean of the patches before this norm. */
    {"post_layernorm.@", .to = "norm.@", .when = "!" CLASSIFIER},
    {"post_layernorm.@", .to = NULL},
    {"text_projection.weight", .to = NULL},
};

#define POOL(from, name, ...)                                                      \
    {                                                                              \
        "head." from, .to = "attn_pool." name, .when = "!" CLASSIFIER, __VA_ARGS__ \
    }

static const att_layout_row siglip_rows[] = {
    COMMON_ROWS,
    {"embeddings.patch_embedding.weight", .to = "patch_embed.proj.weight", .patches = true},
    {"embeddings.patch_embedding.bias", .to = "patch_embed.proj.bias"},
    {"post_layernorm.@", .to = "norm.@"},
    POOL("probe", "latent", .part = 0),
    POOL("attention.in_proj_weight", "q.weight", .end = 1, .of = 3),
    POOL("attention.in_proj_weight", "kv.weight", .first = 1, .of = 3),
    POOL("attention.in_proj_bias", "q.bias", .end = 1, .of = 3),
    POOL("attention.in_proj_bias", "kv.bias", .first = 1, .of = 3),
    POOL("attention.out_proj.@", "proj.@", .part = 0),
    POOL("layernorm.@", "norm.@", .part = 0),
    POOL("mlp.fc1.@", "mlp.fc1.@", .part = 0),
    POOL("mlp.fc2.@", "mlp.fc2.@", .part = 0),
    {"head.*", .to = NULL}, /* of a classifier, which reads the mean of the tokens */
    {"logit_bias", .to = NULL},
};

/* Without the last norm, a classifier reads the mean of the patches. */
static att_status complete(const att_layout_source *source, att_config *config)
{
    const bool norm = att_tensors_find(source->file, "norm.weight") >= 0;
    const char *class = att_layout_class(source);
    if (norm && strcmp(class, "CLIPForImageClassification") == 0)
        return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                        "%s: describes a %s, but the file has no tensor \"" CLASSIFIER "\"", source->path, class);
    att_options_set_text(&config->options, "global_pool", norm ? "token" : "avg");
    att_options_set(&config->options, "fc_norm", 0);
    att_options_set(&config->options, "final_norm", norm);
    return ATT_OK;
}

static att_status complete_siglip(const att_layout_source *source, att_config *config)
{
    const bool pool = att_tensors_find(source->file, "attn_pool.latent") >= 0;
    const bool on = att_layout_is_on(source, "vision_use_head", true);
    if (att_tensors_find(source->file, "head.weight") < 0) /* a classifier does not read the pooling */
        ATT_TRY(att_layout_require_agreement(source, "vision_use_head", on, on == pool));
    att_options_set_text(&config->options, "global_pool", pool ? "map" : "avg");
    return ATT_OK;
}

/* config.json has no size of images: the tensors show that of square images with as many patches as positions. */
static att_status complete_siglip2(const att_layout_source *source, att_config *config)
{
    ATT_TRY(att_layout_require_number(source, "num_channels", 3));
    return complete_siglip(source, config);
}

/* The library has images and patches of one side. */
static att_status describe_siglip(const att_layout_target *target, att_json_writer *json)
{
    const att_option_values *options = &target->identity->options;
    const att_option_value *image = att_options_find(options, "img_size"),
                           *patch = att_options_find(options, "patch_size");
    (void)json;
    if (image && patch && image->numbers[0] == image->numbers[1] && patch->numbers[0] == patch->numbers[1])
        return ATT_OK;
    return att_fail(target->context, ATT_ERR_UNSUPPORTED, "%s has square images and patches only",
                    target->layout->name);
}

static att_status describe(const att_layout_target *target, att_json_writer *json)
{
    const double classes = att_options_number(&target->identity->options, "num_classes", 0);
    if (classes > 0)
        att_json_put_integer(json, "projection_dim", (int64_t)classes);
    return describe_siglip(target, json);
}

#define BIASES "blocks.0.attn.qkv.bias blocks.0.attn.proj.bias blocks.0.mlp.fc1.bias norm.bias "
#define CLIP_TENSORS ATT_LAYOUT_CLASS "pos_embed norm_pre.bias " BIASES
#define SIGLIP_TENSORS "attn_pool.latent attn_pool.q.bias attn_pool.norm.bias blocks.0.attn.qkv.bias "
static const att_layout_form forms[] = {
    {"CLIPVisionModelWithProjection", "clip_vision_model", "vision_model.", CLIP_TENSORS "head.weight"},
    {"CLIPVisionModel", "clip_vision_model", "", CLIP_TENSORS "!head.weight"},
    {.class = NULL},
};
static const att_layout_form siglip_forms[] = {
    {"SiglipVisionModel", "siglip_vision_model", "", ATT_LAYOUT_TOKENS SIGLIP_TENSORS "!cls_token !head.weight"},
    {.class = NULL},
};

const att_layout att_layout_transformers_clip = {
    .name = "transformers' CLIP",
    .types = "clip clip_vision_model",
    .prefixes = "vision_model.",
    .signature = "pre_layrnorm.weight",
    .variants =
        "vit_base_patch16_clip_quickgelu_224 vit_base_patch32_clip_quickgelu_224 "
        "vit_large_patch14_clip_quickgelu_224 vit_huge_patch14_clip_quickgelu_224 "
        "vit_gigantic_patch14_clip_quickgelu_224 vit_base_patch32_clip_224 vit_base_patch16_clip_224 "
        "vit_large_patch14_clip_224 vit_huge_patch14_clip_224 vit_giant_patch14_clip_224 "
        "vit_gigantic_patch14_clip_224",
    .projection = "visual_projection.weight",
    ATT_LAYOUT_ROWS(rows),
    .settings = att_layout_vit_settings,
    .defaults =
        "img_size=224 num_heads=12 norm_eps=1e-5 act_layer=quick_gelu pos_embed_resize=bicubic_plain "
        "crop_pct=1 crop_mode=center interpolation=bicubic mean=0.48145466,0.4578275,0.40821073 "
        "std=0.26862954,0.26130258,0.27577711 ",
    .complete = complete,
    .forms = forms,
    .describe = describe,
};

#define SIGLIP_NETWORK                                                                               \
    .prefixes = "vision_model.", .signature = "embeddings.patch_embedding.bias",                     \
    .variants =                                                                                      \
        "vit_base_patch16_siglip_224 vit_large_patch16_siglip_256 vit_so400m_patch14_siglip_224 "    \
        "vit_so400m_patch16_siglip_256 vit_base_patch32_siglip_256 vit_giantopt_patch16_siglip_256", \
    ATT_LAYOUT_ROWS(siglip_rows)
#define SIGLIP_DEFAULTS                                                                                           \
    "num_heads=12 norm_eps=1e-6 act_layer=gelu_tanh class_token=false fc_norm=false crop_pct=1 crop_mode=squash " \
    "mean=0.5 std=0.5 "

const att_layout att_layout_transformers_siglip = {
    .name = "transformers' SigLIP",
    .types = "siglip siglip_vision_model",
    SIGLIP_NETWORK,
    .settings = att_layout_vit_settings,
    .defaults = "img_size=224 pos_embed_resize=bicubic_plain interpolation=bicubic " SIGLIP_DEFAULTS,
    .complete = complete_siglip,
    .forms = siglip_forms,
    .describe = describe_siglip,
};

/* Its processor gives each image a grid of its own proportions; attscope gives all images the square grid of the
 * pretraining. */
const att_layout att_layout_transformers_siglip2 = {
    .name = "transformers' SigLIP 2 (NaFlex), as for square images",
    .types = "siglip2 siglip2_vision_model",
    SIGLIP_NETWORK,
    .settings = att_layout_vit_settings + 1, /* without image_size */
    .defaults = "pos_embed_resize=bilinear_antialiased interpolation=bilinear " SIGLIP_DEFAULTS,
    .complete = complete_siglip2,
};
