/* layouts/transformers_swin.h - names and settings of transformers' Swin, which its segmenters have, too, and names of
 * networks. */
#ifndef ATT_LAYOUTS_TRANSFORMERS_SWIN_H
#define ATT_LAYOUTS_TRANSFORMERS_SWIN_H

#include "networks/layouts/layout.h"

#define ATT_SWIN_BLOCK "encoder.layers.#.blocks.#."
#define ATT_SWIN_SELF ATT_SWIN_BLOCK "attention.self."
#define ATT_SWIN_MEMORY ATT_SWIN_BLOCK "attention."
#define ATT_SWIN_TO "layers.#.blocks.#."

/* The layer between two stages belongs to the first of them, in timm to the second. Second names are those in memory,
 * since transformers 5. */
#define ATT_SWIN_COMMON_ROWS                                                                                         \
    {"embeddings.patch_embeddings.projection.@", .to = "patch_embed.proj.@"},                                        \
        {"embeddings.norm.@", .to = "patch_embed.norm.@"}, {"embeddings.mask_token", .to = NULL},                    \
        {"embeddings.position_embeddings", .to = NULL},                                                              \
        {ATT_SWIN_BLOCK "layernorm_before.@", .to = ATT_SWIN_TO "norm1.@"},                                          \
        {ATT_SWIN_SELF "query.weight", .also = ATT_SWIN_MEMORY "q_proj.weight", .to = ATT_SWIN_TO "attn.qkv.weight", \
         .part = 0},                                                                                                 \
        {ATT_SWIN_SELF "key.weight", .also = ATT_SWIN_MEMORY "k_proj.weight", .to = ATT_SWIN_TO "attn.qkv.weight",   \
         .part = 1},                                                                                                 \
        {ATT_SWIN_SELF "value.weight", .also = ATT_SWIN_MEMORY "v_proj.weight", .to = ATT_SWIN_TO "attn.qkv.weight", \
         .part = 2},                                                                                                 \
        {ATT_SWIN_SELF "relative_position_index", .to = NULL, .computed = true},                                     \
        {ATT_SWIN_BLOCK "attention.output.dense.@", .also = ATT_SWIN_MEMORY "o_proj.@",                              \
         .to = ATT_SWIN_TO "attn.proj.@"},                                                                           \
        {ATT_SWIN_BLOCK "layernorm_after.@", .to = ATT_SWIN_TO "norm2.@"},                                           \
        {ATT_SWIN_BLOCK "intermediate.dense.@", .also = ATT_SWIN_BLOCK "mlp.fc1.@", .to = ATT_SWIN_TO "mlp.fc1.@"},  \
        {ATT_SWIN_BLOCK "output.dense.@", .also = ATT_SWIN_BLOCK "mlp.fc2.@", .to = ATT_SWIN_TO "mlp.fc2.@"},        \
        {"encoder.layers.#.downsample.norm.@", .to = "layers.+.downsample.norm.@"},                                  \
        {"encoder.layers.#.downsample.reduction.@", .to = "layers.+.downsample.reduction.@"},                        \
        {"layernorm.@", .to = "norm.@"}, {"classifier.@", .to = "head.fc.@", .bare = true},                          \
    {                                                                                                                \
        "decoder.0.@", .to = NULL                                                                                    \
    }

/* Those of Swin V1. */
#define ATT_SWIN_TABLE "relative_position_bias_table"
#define ATT_SWIN_ROWS                                                                                          \
    ATT_SWIN_COMMON_ROWS,                                                                                      \
        {ATT_SWIN_SELF "query.bias", .also = ATT_SWIN_MEMORY "q_proj.bias", .to = ATT_SWIN_TO "attn.qkv.bias", \
         .part = 0},                                                                                           \
        {ATT_SWIN_SELF "key.bias", .also = ATT_SWIN_MEMORY "k_proj.bias", .to = ATT_SWIN_TO "attn.qkv.bias",   \
         .part = 1},                                                                                           \
        {ATT_SWIN_SELF "value.bias", .also = ATT_SWIN_MEMORY "v_proj.bias", .to = ATT_SWIN_TO "attn.qkv.bias", \
         .part = 2},                                                                                           \
    {                                                                                                          \
        ATT_SWIN_SELF ATT_SWIN_TABLE, .also = ATT_SWIN_MEMORY "relative_position_bias." ATT_SWIN_TABLE,        \
                                      .to = ATT_SWIN_TO "attn." ATT_SWIN_TABLE                                 \
    }

#define ATT_SWIN_NAMES                                                                         \
    "swin_tiny_patch4_window7_224 swin_small_patch4_window7_224 swin_base_patch4_window7_224 " \
    "swin_large_patch4_window7_224 swin_base_patch4_window12_384 swin_large_patch4_window12_384"
#define ATT_SWIN_DEFAULTS                                                                                     \
    "img_size=224 stage_heads=3,6,12,24 window_size=7 pretrained_window_sizes=0 crop_pct=1 crop_mode=squash " \
    "interpolation=bicubic "                                                                                  \
    "mean=0.485,0.456,0.406 std=0.229,0.224,0.225 "

extern const att_layout_setting att_layout_swin_settings[];

/* Refuses settings of Swin that attscope lacks, but for those of its windows. */
att_status att_layout_check_swin(const att_layout_source *source);

#endif
