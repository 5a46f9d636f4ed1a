/* The named networks of the Swin family. Dimensions and preprocessing are those of timm 1.0. */
#include <stdio.h>
#include <string.h>

#include "networks/models/swin.h"

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

#define SWIN_V2 "Swin Transformer V2 (Liu et al., CVPR 2022)"
#define SWIN_V2_CR "Swin Transformer V2, timm's own version (Liu et al., CVPR 2022)"

/* Width, blocks and heads. */
static const struct swin_size {
    int embed_dim;
    const char *depths, *stage_heads;
} tiny = {96, "2,2,6,2", "3,6,12,24"}, small = {96, "2,2,18,2", "3,6,12,24"}, s3_base = {96, "2,2,30,2", "3,6,12,24"},
  base = {128, "2,2,18,2", "4,8,16,32"}, large = {192, "2,2,18,2", "6,12,24,48"},
  huge_11 = {352, "2,2,18,2", "11,22,44,88"}, huge_8 = {352, "2,2,18,2", "8,16,32,64"},
  giant = {512, "2,2,42,2", "16,32,64,128"};

/* What networks of several sizes have in common. */
static const struct swin_kind {
    const char *summary, *version;
    double drop_path_rate; /* timm's default */
    const char *pretrained_window_sizes;
    int num_classes, extra_norm_period, extra_norm_stage;
} v1 = {"Swin Transformer (Liu et al., ICCV 2021)", ATT_SWIN_V1, 0.1, "0", 1000, 0, 0},
  s3 = {"Swin Transformer of the search S3 (Chen et al., NeurIPS 2021)", ATT_SWIN_V1, 0.1, "0", 1000, 0, 0},
  v2 = {SWIN_V2, ATT_SWIN_V2, 0.1, "0", 1000, 0, 0}, v2_22k = {SWIN_V2, ATT_SWIN_V2, 0.1, "0", 21841, 0, 0},
  v2_tuned = {SWIN_V2, ATT_SWIN_V2, 0.1, "12,12,12,6", 1000, 0, 0},
  v2_cr = {SWIN_V2_CR, ATT_SWIN_V2_CR, 0, "0", 1000, 0, 0}, v2_cr_ns = {SWIN_V2_CR, ATT_SWIN_V2_CR, 0, "0", 1000, 0, 1},
  v2_cr_large = {SWIN_V2_CR, ATT_SWIN_V2_CR, 0, "0", 1000, 6, 0};

static const struct swin_variant {
    const char *name;
    const struct swin_kind *kind;
    const struct swin_size *size;
    const char *window_size;
    int img_size;
    double crop_pct;
} variants[ATT_SWIN_VARIANTS] = {
    {"swin_tiny_patch4_window7_224", &v1, &tiny, "7", 224, 0.9},
    {"swin_small_patch4_window7_224", &v1, &small, "7", 224, 0.9},
    {"swin_base_patch4_window7_224", &v1, &base, "7", 224, 0.9},
    {"swin_base_patch4_window12_384", &v1, &base, "12", 384, 1},
    {"swin_large_patch4_window7_224", &v1, &large, "7", 224, 0.9},
    {"swin_large_patch4_window12_384", &v1, &large, "12", 384, 1},
    {"swin_s3_tiny_224", &s3, &tiny, "7,7,14,7", 224, 0.9},
    {"swin_s3_small_224", &s3, &small, "14,14,14,7", 224, 0.9},
    {"swin_s3_base_224", &s3, &s3_base, "7,7,14,7", 224, 0.9},

    {"swinv2_tiny_window8_256", &v2, &tiny, "8", 256, 0.9},
    {"swinv2_tiny_window16_256", &v2, &tiny, "16", 256, 0.9},
    {"swinv2_small_window8_256", &v2, &small, "8", 256, 0.9},
    {"swinv2_small_window16_256", &v2, &small, "16", 256, 0.9},
    {"swinv2_base_window8_256", &v2, &base, "8", 256, 0.9},
    {"swinv2_base_window16_256", &v2, &base, "16", 256, 0.9},
    {"swinv2_base_window12_192", &v2_22k, &base, "12", 192, 0.9},
    {"swinv2_base_window12to16_192to256", &v2_tuned, &base, "16", 256, 0.9},
    {"swinv2_base_window12to24_192to384", &v2_tuned, &base, "24", 384, 1},
    {"swinv2_large_window12_192", &v2_22k, &large, "12", 192, 0.9},
    {"swinv2_large_window12to16_192to256", &v2_tuned, &large, "16", 256, 0.9},
    {"swinv2_large_window12to24_192to384", &v2_tuned, &large, "24", 384, 1},

    {"swinv2_cr_tiny_224", &v2_cr, &tiny, "1/8", 224, 0.9},
    {"swinv2_cr_tiny_384", &v2_cr, &tiny, "1/8", 384, 1},
    {"swinv2_cr_tiny_ns_224", &v2_cr_ns, &tiny, "1/8", 224, 0.9},
    {"swinv2_cr_small_224", &v2_cr, &small, "1/8", 224, 0.9},
    {"swinv2_cr_small_384", &v2_cr, &small, "1/8", 384, 1},
    {"swinv2_cr_small_ns_224", &v2_cr_ns, &small, "1/8", 224, 0.9},
    {"swinv2_cr_small_ns_256", &v2_cr_ns, &small, "1/8", 256, 1},
    {"swinv2_cr_base_224", &v2_cr, &base, "1/8", 224, 0.9},
    {"swinv2_cr_base_384", &v2_cr, &base, "1/8", 384, 1},
    {"swinv2_cr_base_ns_224", &v2_cr_ns, &base, "1/8", 224, 0.9},
    {"swinv2_cr_large_224", &v2_cr, &large, "1/8", 224, 0.9},
    {"swinv2_cr_large_384", &v2_cr, &large, "1/8", 384, 1},
    {"swinv2_cr_huge_224", &v2_cr_large, &huge_8, "1/8", 224, 0.9},
    {"swinv2_cr_huge_384", &v2_cr_large, &huge_11, "1/8", 384, 1},
    {"swinv2_cr_giant_224", &v2_cr_large, &giant, "1/8", 224, 0.9},
    {"swinv2_cr_giant_384", &v2_cr_large, &giant, "1/8", 384, 1},
};

att_model_info att_swin_info(int index)
{
    const struct swin_variant *variant = &variants[index];
    return (att_model_info){.name = variant->name,
                            .summary = variant->kind->summary,
                            .height = variant->img_size,
                            .width = variant->img_size};
}

void att_swin_describe(int index, att_swin_options *o, att_preprocess *preprocess)
{
    const struct swin_variant *variant = &variants[index];
    o->img_size[0] = o->img_size[1] = variant->img_size;
    o->num_classes = variant->kind->num_classes;
    o->embed_dim = variant->size->embed_dim;
    o->extra_norm_period = variant->kind->extra_norm_period;
    o->extra_norm_stage = variant->kind->extra_norm_stage;
    o->drop_path_rate = variant->kind->drop_path_rate;
    snprintf(o->swin_version, sizeof o->swin_version, "%s", variant->kind->version);
    snprintf(o->depths, sizeof o->depths, "%s", variant->size->depths);
    snprintf(o->stage_heads, sizeof o->stage_heads, "%s", variant->size->stage_heads);
    snprintf(o->window_size, sizeof o->window_size, "%s", variant->window_size);
    snprintf(o->pretrained_window_sizes, sizeof o->pretrained_window_sizes, "%s",
             variant->kind->pretrained_window_sizes);
    *preprocess = (att_preprocess){.height = variant->img_size,
                                   .width = variant->img_size,
                                   .in_chans = 3,
                                   .mean = {0.485, 0.456, 0.406},
                                   .std = {0.229, 0.224, 0.225},
                                   .crop_pct = variant->crop_pct,
                                   .crop_mode = "center",
                                   .interpolation = "bicubic"};
}
