/* mmsegmentation's UPerNet over Swin. */
#include "networks/layouts/mmsegmentation.h"
#include "networks/layouts/transformers_swin.h"

#define BLOCK "stages.#.blocks.#."

/* The layer between two stages belongs to the first of them, in timm to the second. */
static const att_layout_row rows[] = {
    {"patch_embed.projection.@", .to = "patch_embed.proj.@"},
    {"patch_embed.norm.@", .to = "patch_embed.norm.@"},
    {BLOCK "norm#.@", .to = "layers.#.blocks.#.norm#.@"},
    {BLOCK "attn.w_msa.qkv.@", .to = "layers.#.blocks.#.attn.qkv.@"},
    {BLOCK "attn.w_msa.proj.@", .to = "layers.#.blocks.#.attn.proj.@"},
    {BLOCK "attn.w_msa.relative_position_bias_table", .to = "layers.#.blocks.#.attn.relative_position_bias_table"},
    {BLOCK "attn.w_msa.relative_position_index", .to = NULL, .computed = true},
    {BLOCK "ffn.layers.0.0.@", .to = "layers.#.blocks.#.mlp.fc1.@"},
    {BLOCK "ffn.layers.1.@", .to = "layers.#.blocks.#.mlp.fc2.@"},
    {"stages.#.downsample.norm.@", .to = "layers.+.downsample.norm.@", .unfolded = true},
    {"stages.#.downsample.reduction.@", .to = "layers.+.downsample.reduction.@", .unfolded = true},
    {"norm#.@", .to = "segmenter.norms.#.@"},
    /* The backbone has no last norm, and nothing would read it. */
    {"norm3.weight", .to = "norm.weight", .ones = true},
    {"norm3.bias", .to = "norm.bias", .zeros = true},
    ATT_MMSEG_HEADS,
};

const att_layout att_layout_mmsegmentation_swin = {
    .name = "mmsegmentation's UPerNet over Swin",
    .prefixes = ATT_MMSEG_PREFIX,
    .signature = ATT_MMSEG_UPER "backbone.stages.0.blocks.0.attn.w_msa.qkv.weight",
    .variants = ATT_SWIN_NAMES,
    ATT_LAYOUT_ROWS(rows),
    .defaults = "img_size=512 " ATT_MMSEG_IMAGES "always_partition=true pad_before_shift=true",
    .complete = att_layout_complete_uper,
};
