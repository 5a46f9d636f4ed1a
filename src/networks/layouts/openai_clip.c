/* The ViTs of CLIP under OpenAI's names, which open_clip has, too; text networks are left out. */
#include <string.h>

#include "base/core/error.h"
#include "networks/layouts/layout.h"

#define BLOCK "visual.transformer.resblocks.#."
#define CLASS "visual.class_embedding"
#define SIDE "input_resolution"

static const att_layout_row rows[] = {
    {CLASS, .to = "cls_token", .rank = 3},
    {"visual.positional_embedding", .to = "pos_embed", .rank = 3},
    {"visual.conv1.weight", .to = "patch_embed.proj.weight"},
    {"visual.ln_pre.@", .to = "norm_pre.@"},
    {BLOCK "ln_1.@", .to = "blocks.#.norm1.@"},
    {BLOCK "attn.in_proj_weight", .to = "blocks.#.attn.qkv.weight"},
    {BLOCK "attn.in_proj_bias", .to = "blocks.#.attn.qkv.bias"},
    {BLOCK "attn.out_proj.@", .to = "blocks.#.attn.proj.@"},
    {BLOCK "ls_1.gamma", .to = "blocks.#.ls1.gamma"},
    {BLOCK "ln_2.@", .to = "blocks.#.norm2.@"},
    {BLOCK "mlp.c_fc.@", .to = "blocks.#.mlp.fc1.@"},
    {BLOCK "mlp.c_proj.@", .to = "blocks.#.mlp.fc2.@"},
    {BLOCK "ls_2.gamma", .to = "blocks.#.ls2.gamma"},
    {"visual.ln_post.@", .to = "norm.@"},
    {"visual.proj", .to = "head.weight", .axes = "10"},
    {"visual.proj", .to = "head.bias", .axes = "10", .zeros = true},
    {"text.*", .to = NULL},
    {"transformer.*", .to = NULL},
    {"token_embedding.*", .to = NULL},
    {"positional_embedding", .to = NULL},
    {"text_projection*", .to = NULL},
    {"ln_final.*", .to = NULL},
    {"logit_*", .to = NULL},
    {"attn_mask", .to = NULL, .computed = true},
    {SIDE, .to = NULL, .computed = true},
    {"context_length", .to = NULL, .computed = true},
    {"vocab_size", .to = NULL, .computed = true},
};

static const att_layout_setting settings[] = {
    {"image_size", .option = "img_size"},
    {"width", .option = "embed_dim", .shown = true},
    {"layers", .option = "depth", .shown = true},
    {"patch_size", .option = "patch_size", .shown = true},
    {.key = NULL},
};

/* Reads the settings of images. open_clip's resize_mode "shortest" is the default here. */
static att_status read_images(const att_layout_source *source, const json_t *images, att_config *config)
{
    static const char *const keys[] = {"mean", "std", "interpolation"};
    const char *mode = json_string_value(json_object_get(images, "resize_mode"));
    char what[512];
    snprintf(what, sizeof what, "%.400s: preprocess_cfg", source->path);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(images, keys[i]);
        const att_fact fact = att_fact_of_json(value);
        if (value && !json_is_null(value))
            ATT_TRY(att_config_note(source->context, what, keys[i], &fact, config));
    }
    if (!mode || strcmp(mode, "shortest") == 0)
        return ATT_OK;
    if (strcmp(mode, "squash") != 0)
        return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                        "%s: resize_mode is \"%.32s\"; attscope has \"shortest\" and \"squash\"", what, mode);
    snprintf(config->crop_mode, sizeof config->crop_mode, "squash");
    return ATT_OK;
}

/* Reads open_clip_config.json. */
static att_status read_settings(const att_layout_source *source, att_config *config)
{
    enum { HEAD = 64 }; /* channels, by default */
    const json_t *network = json_object_get(source->root, "model_cfg"),
                 *vision = json_object_get(network, "vision_cfg"), *head = json_object_get(vision, "head_width");
    const att_shape shape = att_tensors_at(source->file, att_tensors_find(source->file, CLASS)).shape;
    const int64_t width = json_is_integer(head) ? json_integer_value(head) : HEAD;
    if (!json_is_object(vision))
        return att_fail(source->context, ATT_ERR_FORMAT,
                        "%s: expected the objects \"model_cfg\" and in it \"vision_cfg\", as open_clip writes them",
                        source->path);
    if (shape.rank == 1 && width > 0 && shape.dims[0] % width == 0)
        att_options_set(&config->options, "num_heads", (double)(shape.dims[0] / width));
    att_options_set_text(&config->options, "act_layer",
                         json_is_true(json_object_get(network, "quick_gelu")) ? "quick_gelu" : "gelu");
    return read_images(source, json_object_get(source->root, "preprocess_cfg"), config);
}

/* OpenAI's own files have the side of the images beside the networks. */
static att_status prepare(const att_layout_source *source, att_config *config)
{
    if (source->root)
        return read_settings(source, config);
    if (att_tensors_find(source->file, SIDE) >= 0)
        att_options_set_text(&config->options, "act_layer", "quick_gelu");
    return ATT_OK;
}

const att_layout att_layout_openai_clip = {
    .name = "OpenAI's CLIP",
    .prefixes = "",
    .signature = CLASS " visual.conv1.weight visual.transformer.resblocks.0.attn.in_proj_weight",
    .variants =
        "vit_base_patch32_clip_224 vit_base_patch16_clip_224 vit_large_patch14_clip_224 vit_huge_patch14_clip_224 "
        "vit_giant_patch14_clip_224 vit_gigantic_patch14_clip_224 vit_base_patch16_plus_clip_240 "
        "vit_base_patch32_clip_quickgelu_224 vit_base_patch16_clip_quickgelu_224 vit_large_patch14_clip_quickgelu_224 "
        "vit_huge_patch14_clip_quickgelu_224 vit_gigantic_patch14_clip_quickgelu_224",
    .assumed = "act_layer",
    .side_file = "open_clip_config.json",
    .projection = "visual.proj",
    ATT_LAYOUT_ROWS(rows),
    .settings = settings,
    .defaults =
        "norm_eps=1e-5 act_layer=gelu pos_embed_resize=bicubic crop_pct=1 crop_mode=center interpolation=bicubic "
        "mean=0.48145466,0.4578275,0.40821073 std=0.26862954,0.26130258,0.27577711 ",
    .prepare = prepare,
};
