/* transformers' Swin and Swin V2. */
#include "base/core/error.h"
#include "networks/layouts/layout.h"

#define BLOCK "encoder.layers.#.blocks.#."
#define SELF BLOCK "attention.self."

/* The layer between two stages belongs to the first of them, in timm to the second. */
#define COMMON_ROWS                                                                               \
    {"embeddings.patch_embeddings.projection.@", .to = "patch_embed.proj.@"},                     \
        {"embeddings.norm.@", .to = "patch_embed.norm.@"}, {"embeddings.mask_token", .to = NULL}, \
        {BLOCK "layernorm_before.@", .to = "layers.#.blocks.#.norm1.@"},                          \
        {SELF "query.weight", .to = "layers.#.blocks.#.attn.qkv.weight", .part = 0},              \
        {SELF "key.weight", .to = "layers.#.blocks.#.attn.qkv.weight", .part = 1},                \
        {SELF "value.weight", .to = "layers.#.blocks.#.attn.qkv.weight", .part = 2},              \
        {SELF "relative_position_index", .to = NULL},                                             \
        {BLOCK "attention.output.dense.@", .to = "layers.#.blocks.#.attn.proj.@"},                \
        {BLOCK "layernorm_after.@", .to = "layers.#.blocks.#.norm2.@"},                           \
        {BLOCK "intermediate.dense.@", .to = "layers.#.blocks.#.mlp.fc1.@"},                      \
        {BLOCK "output.dense.@", .to = "layers.#.blocks.#.mlp.fc2.@"},                            \
        {"encoder.layers.#.downsample.norm.@", .to = "layers.+.downsample.norm.@"},               \
        {"encoder.layers.#.downsample.reduction.@", .to = "layers.+.downsample.reduction.@"},     \
        {"layernorm.@", .to = "norm.@"}, {"classifier.@", .to = "head.fc.@"},                     \
    {                                                                                             \
        "decoder.0.@", .to = NULL                                                                 \
    }

static const att_layout_row rows[] = {
    COMMON_ROWS,
    {SELF "query.bias", .to = "layers.#.blocks.#.attn.qkv.bias", .part = 0},
    {SELF "key.bias", .to = "layers.#.blocks.#.attn.qkv.bias", .part = 1},
    {SELF "value.bias", .to = "layers.#.blocks.#.attn.qkv.bias", .part = 2},
    {SELF "relative_position_bias_table", .to = "layers.#.blocks.#.attn.relative_position_bias_table"},
};

static const att_layout_row rows_v2[] = {
    COMMON_ROWS,
    {SELF "query.bias", .to = "layers.#.blocks.#.attn.q_bias"},
    {SELF "value.bias", .to = "layers.#.blocks.#.attn.v_bias"},
    {SELF "logit_scale", .to = "layers.#.blocks.#.attn.logit_scale"},
    {SELF "continuous_position_bias_mlp.#.@", .to = "layers.#.blocks.#.attn.cpb_mlp.#.@"},
    {SELF "relative_coords_table", .to = NULL},
};

static const att_layout_setting settings[] = {{"image_size", "img_size", NULL},
                                              {"num_heads", "stage_heads", NULL},
                                              {"window_size", "window_size", NULL},
                                              {"pretrained_window_sizes", "pretrained_window_sizes", NULL},
                                              {NULL, NULL, NULL}};

/* Whether the setting is a list of zeros, which may be longer than there are stages. */
static bool is_zeros(const json_t *list)
{
    bool zeros = json_is_array(list);
    for (size_t i = 0; zeros && i < json_array_size(list); i++)
        zeros = json_integer_value(json_array_get(list, i)) == 0 && json_is_integer(json_array_get(list, i));
    return zeros;
}

static att_status complete(const att_layout_source *source, att_config *config)
{
    if (is_zeros(json_object_get(source->config, "pretrained_window_sizes")))
        att_options_set_text(&config->options, "pretrained_window_sizes", "0");
    ATT_TRY(att_layout_require_text(source, "hidden_act", "gelu"));
    ATT_TRY(att_layout_require_number(source, "layer_norm_eps", 1e-5));
    return att_layout_require_number(source, "use_absolute_embeddings", 0);
}

#define DEFAULTS                                                                                          \
    "img_size=224 stage_heads=3,6,12,24 window_size=7 crop_pct=1 crop_mode=squash interpolation=bicubic " \
    "mean=0.485,0.456,0.406 std=0.229,0.224,0.225 "

const att_layout att_layout_transformers_swin = {
    .name = "transformers' Swin",
    .types = "swin",
    .prefixes = "swin.",
    .signature = "encoder.layers.0.blocks.0.attention.self.relative_position_bias_table",
    .variants =
        "swin_tiny_patch4_window7_224 swin_small_patch4_window7_224 swin_base_patch4_window7_224 "
        "swin_large_patch4_window7_224",
    ATT_LAYOUT_ROWS(rows),
    .settings = settings,
    .defaults = DEFAULTS,
    .complete = complete,
};

const att_layout att_layout_transformers_swin_v2 = {
    .name = "transformers' Swin V2",
    .types = "swinv2",
    .prefixes = "swinv2.",
    .signature = "encoder.layers.0.blocks.0.attention.self.logit_scale",
    .variants =
        "swinv2_tiny_window8_256 swinv2_small_window8_256 swinv2_base_window8_256 "
        "swinv2_large_window12to16_192to256",
    ATT_LAYOUT_ROWS(rows_v2),
    .settings = settings,
    .defaults = DEFAULTS,
    .complete = complete,
};
