/* torchvision's Swin and Swin V2. */
#include "networks/layouts/layout.h"

/* A stage, whose blocks are features.<features>. */
#define STAGE(features, stage)                                                                          \
    {"features." features ".#.norm1.@", .to = "layers." stage ".blocks.#.norm1.@"},                     \
        {"features." features ".#.attn.qkv.weight", .to = "layers." stage ".blocks.#.attn.qkv.weight"}, \
        {"features." features ".#.attn.proj.@", .to = "layers." stage ".blocks.#.attn.proj.@"},         \
        {"features." features ".#.norm2.@", .to = "layers." stage ".blocks.#.norm2.@"},                 \
        {"features." features ".#.mlp.0.@", .to = "layers." stage ".blocks.#.mlp.fc1.@"},               \
        {"features." features ".#.mlp.3.@", .to = "layers." stage ".blocks.#.mlp.fc2.@"},               \
    {                                                                                                   \
        "features." features ".#.attn.relative_position_index", .to = NULL, .computed = true            \
    }

/* Merges patches before a stage. */
#define MERGE(features, stage)                                                              \
    {"features." features ".reduction.@", .to = "layers." stage ".downsample.reduction.@"}, \
    {                                                                                       \
        "features." features ".norm.@", .to = "layers." stage ".downsample.norm.@"          \
    }

#define STAGE_V1(features, stage)                                                                   \
    STAGE(features, stage),                                                                         \
        {"features." features ".#.attn.qkv.bias", .to = "layers." stage ".blocks.#.attn.qkv.bias"}, \
    {                                                                                               \
        "features." features ".#.attn.relative_position_bias_table",                                \
            .to = "layers." stage ".blocks.#.attn.relative_position_bias_table"                     \
    }

/* The bias of keys is not used. */
#define STAGE_V2(features, stage)                                                                                      \
    STAGE(features, stage),                                                                                            \
        {"features." features ".#.attn.qkv.bias", .to = "layers." stage ".blocks.#.attn.q_bias", .end = 1, .of = 3},   \
        {"features." features ".#.attn.qkv.bias", .to = "layers." stage ".blocks.#.attn.v_bias", .first = 2, .of = 3}, \
        {"features." features ".#.attn.logit_scale", .to = "layers." stage ".blocks.#.attn.logit_scale"},              \
        {"features." features ".#.attn.cpb_mlp.#.@", .to = "layers." stage ".blocks.#.attn.cpb_mlp.#.@"},              \
    {                                                                                                                  \
        "features." features ".#.attn.relative_coords_table", .to = NULL, .computed = true                             \
    }

#define ENDS                                                                                                         \
    {"features.0.0.@", .to = "patch_embed.proj.@"}, {"features.0.2.@", .to = "patch_embed.norm.@"}, MERGE("2", "1"), \
        MERGE("4", "2"), MERGE("6", "3"),                                                                            \
    {                                                                                                                \
        "head.@", .to = "head.fc.@"                                                                                  \
    }

static const att_layout_row rows[] = {ENDS, STAGE_V1("1", "0"), STAGE_V1("3", "1"), STAGE_V1("5", "2"),
                                      STAGE_V1("7", "3")};
static const att_layout_row rows_v2[] = {ENDS, STAGE_V2("1", "0"), STAGE_V2("3", "1"), STAGE_V2("5", "2"),
                                         STAGE_V2("7", "3")};

#define IMAGES "crop_mode=center interpolation=bicubic mean=0.485,0.456,0.406 std=0.229,0.224,0.225 "

const att_layout att_layout_torchvision_swin = {
    .name = "torchvision's Swin",
    .prefixes = "",
    .signature = "features.1.0.attn.relative_position_bias_table",
    .variants = "swin_tiny_patch4_window7_224 swin_small_patch4_window7_224 swin_base_patch4_window7_224",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "img_size=224 window_size=7 crop_pct=0.965 " IMAGES,
};

const att_layout att_layout_torchvision_swin_v2 = {
    .name = "torchvision's Swin V2",
    .prefixes = "",
    .signature = "features.1.0.attn.logit_scale",
    .variants = "swinv2_tiny_window8_256 swinv2_small_window8_256 swinv2_base_window8_256",
    ATT_LAYOUT_ROWS(rows_v2),
    .defaults = "img_size=256 window_size=8 pretrained_window_sizes=0 crop_pct=0.984 " IMAGES,
};
