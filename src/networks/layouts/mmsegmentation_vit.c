/* mmsegmentation's UPerNet over ViT and DeiT. */
#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/heads/heads.h"
#include "networks/layouts/mmsegmentation.h"
#include "networks/models/checkpoint.h"

extern const att_layout att_layout_mmsegmentation_vit;

#define LAYER "layers.#."

static const att_layout_row rows[] = {
    {"cls_token", .to = "cls_token"},
    {"pos_embed", .to = "pos_embed"},
    {"patch_embed.projection.@", .to = "patch_embed.proj.@"},
    {LAYER "ln#.@", .to = "blocks.#.norm#.@"},
    {LAYER "attn.attn.in_proj_weight", .to = "blocks.#.attn.qkv.weight"},
    {LAYER "attn.attn.in_proj_bias", .to = "blocks.#.attn.qkv.bias"},
    {LAYER "attn.attn.out_proj.@", .to = "blocks.#.attn.proj.@"},
    {LAYER "ffn.layers.0.0.@", .to = "blocks.#.mlp.fc1.@"},
    {LAYER "ffn.layers.1.@", .to = "blocks.#.mlp.fc2.@"},
    /* The backbone has no last norm, and nothing would read it. */
    {"patch_embed.projection.bias", .to = "norm.weight", .ones = true},
    {"patch_embed.projection.bias", .to = "norm.bias", .zeros = true},
    {"neck.*", .to = "segmenter.neck.*"},
    ATT_MMSEG_HEADS,
};

/* mmsegmentation's final_norm changes what the head reads of the last block. */
static att_status check(const att_layout_source *source)
{
    if (att_layout_find(&att_layout_mmsegmentation_vit, source->file, "ln1.weight") < 0)
        return ATT_OK;
    return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                    "%s: its ViT was made with final_norm, a norm between the last block and the head (tensor "
                    "\"backbone.ln1.weight\"), which attscope lacks",
                    source->path);
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
    att_layout_set_uper(source, taps, config);
    if (att_checkpoint_has(source->file, "segmenter.neck.lateral_convs.0.conv.weight"))
        att_options_set_text(&config->options, "neck", ATT_NECK_MULTI_LEVEL);
    return ATT_OK;
}

const att_layout att_layout_mmsegmentation_vit = {
    .name = "mmsegmentation's UPerNet over a ViT",
    .prefixes = ATT_MMSEG_PREFIX,
    .signature = ATT_MMSEG_UPER "backbone.layers.0.attn.attn.in_proj_weight",
    .variants = "vit_base_patch16_224 vit_small_patch16_224 vit_tiny_patch16_224",
    ATT_LAYOUT_ROWS(rows),
    .defaults = ATT_MMSEG_DEFAULTS,
    .check = check,
    .complete = complete,
};
