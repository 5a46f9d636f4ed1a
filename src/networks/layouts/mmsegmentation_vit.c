/* mmsegmentation's UPerNet over ViT and DeiT, and over BEiT. */
#include "base/core/text.h"
#include "networks/heads/heads.h"
#include "networks/layouts/mmsegmentation.h"
#include "networks/models/checkpoint.h"

#define LAYER "layers.#."

/* Without final_norm there is no last norm, and nothing would read it. */
#define COMMON_ROWS                                                                                        \
    {"cls_token", .to = "cls_token"}, {"patch_embed.projection.@", .to = "patch_embed.proj.@"},            \
        {LAYER "ln#.@", .to = "blocks.#.norm#.@"}, {LAYER "ffn.layers.0.0.@", .to = "blocks.#.mlp.fc1.@"}, \
        {LAYER "ffn.layers.1.@", .to = "blocks.#.mlp.fc2.@"}, {"ln1.@", .to = "norm.@"},                   \
        {"patch_embed.projection.bias", .to = "norm.weight", .ones = true, .when = "!ln1.weight"},         \
        {"patch_embed.projection.bias", .to = "norm.bias", .zeros = true, .when = "!ln1.weight"}, ATT_MMSEG_HEADS

static const att_layout_row rows[] = {
    COMMON_ROWS,
    {"pos_embed", .to = "pos_embed"},
    {LAYER "attn.attn.in_proj_weight", .to = "blocks.#.attn.qkv.weight"},
    {LAYER "attn.attn.in_proj_bias", .to = "blocks.#.attn.qkv.bias"},
    {LAYER "attn.attn.out_proj.@", .to = "blocks.#.attn.proj.@"},
    {"neck.*", .to = "segmenter.neck.*"},
};

static const att_layout_row rows_beit[] = {
    COMMON_ROWS,
    {LAYER "attn.relative_position_index", .to = NULL, .computed = true},
    {LAYER "attn.relative_position_bias_table", .to = "blocks.#.attn.relative_position_bias_table"},
    {LAYER "attn.qkv.weight", .to = "blocks.#.attn.qkv.weight"},
    {LAYER "attn.q_bias", .to = "blocks.#.attn.q_bias"},
    {LAYER "attn.v_bias", .to = "blocks.#.attn.v_bias"},
    {LAYER "attn.proj.@", .to = "blocks.#.attn.proj.@"},
    {LAYER "gamma_#", .to = "blocks.#.gamma_#"},
    {"neck.upsample_4x.#.@", .to = "segmenter.neck.fpn1.#.@"},
    {"neck.upsample_2x.#.@", .to = "segmenter.neck.fpn2.#.@"},
};

/* mmsegmentation's final_norm, of all tokens. */
static att_status prepare(const att_layout_source *source, att_config *config)
{
    if (att_tensors_find(source->file, ATT_MMSEG_PREFIX "ln1.weight") < 0)
        return ATT_OK;
    att_options_set(&config->options, "tap_norm", 1);
    att_options_set_text(&config->options, "global_pool", "avg");
    return ATT_OK;
}

/* The last block of each quarter. */
static void format_taps(const att_tensors *file, char *text, size_t size)
{
    int depth = 0, blocks[ATT_FEATURE_STAGES];
    while (att_checkpoint_has(file, "blocks.%d.norm1.weight", depth))
        depth++;
    for (int i = 0; i < ATT_FEATURE_STAGES; i++)
        blocks[i] = depth * (i + 1) / ATT_FEATURE_STAGES - 1;
    att_format_list(blocks, ATT_FEATURE_STAGES, text, size);
}

static att_status complete(const att_layout_source *source, att_config *config)
{
    char taps[ATT_OPTION_TEXT_BYTES];
    format_taps(source->file, taps, sizeof taps);
    att_options_set_text(&config->options, "taps", taps);
    if (att_checkpoint_has(source->file, "segmenter.neck.lateral_convs.0.conv.weight"))
        att_options_set_text(&config->options, "neck", ATT_NECK_MULTI_LEVEL);
    return att_layout_complete_uper(source, config);
}

/* Its head reads the blocks that XCiT's reads. */
static att_status complete_beit(const att_layout_source *source, att_config *config)
{
    if (att_checkpoint_has(source->file, "segmenter.neck.fpn1.0.weight"))
        att_options_set_text(&config->options, "neck", ATT_NECK_PYRAMID);
    return att_layout_complete_uper(source, config);
}

const att_layout att_layout_mmsegmentation_vit = {
    .name = "mmsegmentation's UPerNet over a ViT",
    .prefixes = ATT_MMSEG_PREFIX,
    .signature = ATT_MMSEG_UPER "backbone.layers.0.attn.attn.in_proj_weight",
    .variants = "vit_base_patch16_224 vit_small_patch16_224 vit_tiny_patch16_224",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "img_size=512 " ATT_MMSEG_IMAGES,
    .prepare = prepare,
    .complete = complete,
};

const att_layout att_layout_mmsegmentation_beit = {
    .name = "mmsegmentation's UPerNet over BEiT",
    .prefixes = ATT_MMSEG_PREFIX,
    .signature = ATT_MMSEG_UPER "backbone.layers.0.attn.q_bias",
    .variants = "beit_base_patch16_224 beit_large_patch16_224",
    ATT_LAYOUT_ROWS(rows_beit),
    .defaults = "img_size=640 global_pool=token fc_norm=false " ATT_MMSEG_IMAGES,
    .prepare = prepare,
    .complete = complete_beit,
};
