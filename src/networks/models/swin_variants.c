/* The named networks of the Swin family. Dimensions and preprocessing are those of timm 1.0. */
#include <string.h>

#include "networks/models/swin.h"
#include "networks/models/variants.h"

static const att_swin_version versions[] = {
    {ATT_SWIN_V1, .stages = "layers",
     .relative = {.kind = ATT_RELATIVE_TABLE, .start = {.rule = ATT_INIT_TRUNC_NORMAL, .value = 0.02}},
     .last_norm = true},
    {ATT_SWIN_V2, .stages = "layers", .post_norm = true, .cosine = 3,
     .relative = {.kind = ATT_RELATIVE_SIGMOID, .hidden = 512}, .qv_bias = true, .merge_norm_last = true,
     .last_norm = true},
    {ATT_SWIN_V2_CR, .stages = "stages", .post_norm = true, .cosine = 1,
     .relative = {.kind = ATT_RELATIVE_MLP, .mlp = "meta_mlp", .hidden = 384}, .start = ATT_START_UNIFORM},
};
enum { VERSIONS = sizeof versions / sizeof *versions };

const att_swin_version *att_swin_version_at(int index)
{
    return index >= 0 && index < VERSIONS ? &versions[index] : NULL;
}

const att_swin_version *att_swin_version_named(const char *name)
{
    for (int i = 0; i < VERSIONS; i++)
        if (strcmp(versions[i].name, name) == 0)
            return &versions[i];
    return NULL;
}

static const char SWIN[] = "Swin Transformer (Liu et al., ICCV 2021)";
static const char SEARCHED[] = "Swin Transformer of the search S3 (Chen et al., NeurIPS 2021)";
static const char SWIN_V2[] = "Swin Transformer V2 (Liu et al., CVPR 2022)";
static const char SWIN_V2_CR[] = "Swin Transformer V2, timm's own version (Liu et al., CVPR 2022)";

/* Widths of tokens, blocks and heads. */
#define TINY "embed_dim=96 depths=2,2,6,2 stage_heads=3,6,12,24 "
#define SMALL "embed_dim=96 depths=2,2,18,2 stage_heads=3,6,12,24 "
#define S3_BASE "embed_dim=96 depths=2,2,30,2 stage_heads=3,6,12,24 "
#define BASE "embed_dim=128 depths=2,2,18,2 stage_heads=4,8,16,32 "
#define LARGE "embed_dim=192 depths=2,2,18,2 stage_heads=6,12,24,48 "
#define HUGE_11 "embed_dim=352 depths=2,2,18,2 stage_heads=11,22,44,88 "
#define HUGE_8 "embed_dim=352 depths=2,2,18,2 stage_heads=8,16,32,64 "
#define GIANT "embed_dim=512 depths=2,2,42,2 stage_heads=16,32,64,128 "

/* Kinds of networks, with timm's default of drop_path_rate. */
#define V2 "swin_version=" ATT_SWIN_V2 " "
#define PRETRAINED "pretrained_window_sizes=12,12,12,6 "
#define V2_CR "swin_version=" ATT_SWIN_V2_CR " drop_path_rate=0 window_size=1/8 "

static const att_variant_row rows[] = {
    {"swin_tiny_patch4_window7_224", SWIN, 224, 1000, 0.9, TINY},
    {"swin_small_patch4_window7_224", SWIN, 224, 1000, 0.9, SMALL},
    {"swin_base_patch4_window7_224", SWIN, 224, 1000, 0.9, BASE},
    {"swin_base_patch4_window12_384", SWIN, 384, 1000, 1, BASE "window_size=12 "},
    {"swin_large_patch4_window7_224", SWIN, 224, 1000, 0.9, LARGE},
    {"swin_large_patch4_window12_384", SWIN, 384, 1000, 1, LARGE "window_size=12 "},
    {"swin_s3_tiny_224", SEARCHED, 224, 1000, 0.9, TINY "window_size=7,7,14,7 "},
    {"swin_s3_small_224", SEARCHED, 224, 1000, 0.9, SMALL "window_size=14,14,14,7 "},
    {"swin_s3_base_224", SEARCHED, 224, 1000, 0.9, S3_BASE "window_size=7,7,14,7 "},

    {"swinv2_tiny_window8_256", SWIN_V2, 256, 1000, 0.9, TINY V2 "window_size=8 "},
    {"swinv2_tiny_window16_256", SWIN_V2, 256, 1000, 0.9, TINY V2 "window_size=16 "},
    {"swinv2_small_window8_256", SWIN_V2, 256, 1000, 0.9, SMALL V2 "window_size=8 "},
    {"swinv2_small_window16_256", SWIN_V2, 256, 1000, 0.9, SMALL V2 "window_size=16 "},
    {"swinv2_base_window8_256", SWIN_V2, 256, 1000, 0.9, BASE V2 "window_size=8 "},
    {"swinv2_base_window16_256", SWIN_V2, 256, 1000, 0.9, BASE V2 "window_size=16 "},
    {"swinv2_base_window12_192", SWIN_V2, 192, 21841, 0.9, BASE V2 "window_size=12 "},
    {"swinv2_base_window12to16_192to256", SWIN_V2, 256, 1000, 0.9, BASE V2 PRETRAINED "window_size=16 "},
    {"swinv2_base_window12to24_192to384", SWIN_V2, 384, 1000, 1, BASE V2 PRETRAINED "window_size=24 "},
    {"swinv2_large_window12_192", SWIN_V2, 192, 21841, 0.9, LARGE V2 "window_size=12 "},
    {"swinv2_large_window12to16_192to256", SWIN_V2, 256, 1000, 0.9, LARGE V2 PRETRAINED "window_size=16 "},
    {"swinv2_large_window12to24_192to384", SWIN_V2, 384, 1000, 1, LARGE V2 PRETRAINED "window_size=24 "},

    {"swinv2_cr_tiny_224", SWIN_V2_CR, 224, 1000, 0.9, TINY V2_CR},
    {"swinv2_cr_tiny_384", SWIN_V2_CR, 384, 1000, 1, TINY V2_CR},
    {"swinv2_cr_tiny_ns_224", SWIN_V2_CR, 224, 1000, 0.9, TINY V2_CR "extra_norm_stage=true "},
    {"swinv2_cr_small_224", SWIN_V2_CR, 224, 1000, 0.9, SMALL V2_CR},
    {"swinv2_cr_small_384", SWIN_V2_CR, 384, 1000, 1, SMALL V2_CR},
    {"swinv2_cr_small_ns_224", SWIN_V2_CR, 224, 1000, 0.9, SMALL V2_CR "extra_norm_stage=true "},
    {"swinv2_cr_small_ns_256", SWIN_V2_CR, 256, 1000, 1, SMALL V2_CR "extra_norm_stage=true "},
    {"swinv2_cr_base_224", SWIN_V2_CR, 224, 1000, 0.9, BASE V2_CR},
    {"swinv2_cr_base_384", SWIN_V2_CR, 384, 1000, 1, BASE V2_CR},
    {"swinv2_cr_base_ns_224", SWIN_V2_CR, 224, 1000, 0.9, BASE V2_CR "extra_norm_stage=true "},
    {"swinv2_cr_large_224", SWIN_V2_CR, 224, 1000, 0.9, LARGE V2_CR},
    {"swinv2_cr_large_384", SWIN_V2_CR, 384, 1000, 1, LARGE V2_CR},
    {"swinv2_cr_huge_224", SWIN_V2_CR, 224, 1000, 0.9, HUGE_8 V2_CR "extra_norm_period=6 "},
    {"swinv2_cr_huge_384", SWIN_V2_CR, 384, 1000, 1, HUGE_11 V2_CR "extra_norm_period=6 "},
    {"swinv2_cr_giant_224", SWIN_V2_CR, 224, 1000, 0.9, GIANT V2_CR "extra_norm_period=6 "},
    {"swinv2_cr_giant_384", SWIN_V2_CR, 384, 1000, 1, GIANT V2_CR "extra_norm_period=6 "},
};

const att_variants att_swin_variants = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .shared = ATT_IMAGENET
    "patch_size=4 mlp_ratio=4 qkv_bias=true always_partition=false pad_before_shift=false global_pool=avg "
    "attn_drop_rate=0 drop_path_rate=0.1 window_size=7 pretrained_window_sizes=0 extra_norm_period=0 "
    "extra_norm_stage=false swin_version=" ATT_SWIN_V1};
