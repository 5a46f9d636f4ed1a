/* The named ViTs. Dimensions and preprocessing are those of timm 1.0. */
#include <stdio.h>
#include <string.h>

#include "models/vit.h"

typedef struct vit_size {
    int embed_dim, depth, num_heads;
    double mlp_ratio;
} vit_size;

static const vit_size tiny = {192, 12, 3, 4}, small = {384, 12, 6, 4}, small36 = {384, 36, 6, 4},
                      medium = {512, 12, 8, 4}, betwixt = {640, 12, 10, 4}, base = {768, 12, 12, 4},
                      base16 = {768, 12, 16, 4}, plus = {896, 12, 14, 4}, large = {1024, 24, 16, 4},
                      huge = {1280, 32, 16, 4}, giant = {1408, 40, 16, 48.0 / 11}, gigantic = {1664, 48, 16, 64.0 / 13},
                      so400m = {1152, 27, 16, 4304.0 / 1152}, test = {64, 6, 2, 3};

typedef struct vit_style {
    const char *global_pool;
    int fc_norm, class_token, embed_class, qkv_bias;
    double init_values;
} vit_style;

static const vit_style plain = {"token", -1, 1, 1, 1, 0}, scaled = {"token", -1, 1, 1, 1, 1e-5},
                       deit3 = {"token", -1, 1, 0, 1, 1e-6}, flexi = {"token", -1, 1, 0, 1, 0},
                       unbiased = {"token", -1, 1, 1, 0, 0}, gap = {"avg", 0, 0, 0, 1, 0},
                       gap_scaled = {"avg", 0, 0, 0, 0, 1e-6};

typedef struct vit_images {
    double mean[3], std[3];
    const char *crop_mode, *interpolation;
} vit_images;

static const vit_images half = {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, "center", "bicubic"},
                        squashed = {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, "squash", "bicubic"},
                        imagenet = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, "center", "bicubic"},
                        raw = {{0, 0, 0}, {1, 1, 1}, "center", "bilinear"};

static const char VIT[] = "Vision Transformer (Dosovitskiy et al., ICLR 2021)";
static const char FLEXIVIT[] = "FlexiViT (Beyer et al., CVPR 2023)";
static const char DINOV2[] = "DINOv2 (Oquab et al., TMLR 2024)";
static const char SIGLIP[] = "SigLIP (Zhai et al., ICCV 2023), with mean pooling";
static const char DEIT[] = "DeiT (Touvron et al., ICML 2021)";
static const char DEIT3[] = "DeiT III (Touvron et al., ECCV 2022)";

static const struct vit_variant {
    const char *name, *summary;
    int patch_size, img_size;
    int num_classes; /* 0: no head */
    const vit_size *size;
    const vit_style *style;
    const vit_images *images;
    double crop_pct;
} variants[] = {
    {"vit_tiny_patch16_224", VIT, 16, 224, 1000, &tiny, &plain, &half, 0.9},
    {"vit_tiny_patch16_384", VIT, 16, 384, 1000, &tiny, &plain, &half, 1},
    {"vit_small_patch32_224", VIT, 32, 224, 1000, &small, &plain, &half, 0.9},
    {"vit_small_patch32_384", VIT, 32, 384, 1000, &small, &plain, &half, 1},
    {"vit_small_patch16_224", VIT, 16, 224, 1000, &small, &plain, &half, 0.9},
    {"vit_small_patch16_384", VIT, 16, 384, 1000, &small, &plain, &half, 1},
    {"vit_small_patch8_224", VIT, 8, 224, 1000, &small, &plain, &imagenet, 0.9},
    {"vit_small_patch16_36x1_224", VIT, 16, 224, 1000, &small36, &scaled, &half, 0.9},
    {"vit_medium_patch16_gap_240", VIT, 16, 240, 11821, &medium, &gap_scaled, &half, 0.95},
    {"vit_medium_patch16_gap_256", VIT, 16, 256, 1000, &medium, &gap_scaled, &half, 0.95},
    {"vit_medium_patch16_gap_384", VIT, 16, 384, 1000, &medium, &gap_scaled, &squashed, 0.95},
    {"vit_betwixt_patch16_gap_256", VIT, 16, 256, 1000, &betwixt, &gap_scaled, &half, 0.95},
    {"vit_base_patch32_224", VIT, 32, 224, 1000, &base, &plain, &half, 0.9},
    {"vit_base_patch32_384", VIT, 32, 384, 1000, &base, &plain, &half, 1},
    {"vit_base_patch16_224", VIT, 16, 224, 1000, &base, &plain, &half, 0.9},
    {"vit_base_patch16_384", VIT, 16, 384, 1000, &base, &plain, &half, 1},
    {"vit_base_patch8_224", VIT, 8, 224, 1000, &base, &plain, &half, 0.9},
    {"vit_base_patch16_224_miil", VIT, 16, 224, 11221, &base, &unbiased, &raw, 0.875},
    {"vit_base_patch16_gap_224", VIT, 16, 224, 1000, &base16, &gap, &half, 0.9},
    {"vit_base_patch32_plus_256", VIT, 32, 256, 1000, &plus, &scaled, &half, 0.95},
    {"vit_base_patch16_plus_240", VIT, 16, 240, 1000, &plus, &scaled, &half, 0.95},
    {"vit_large_patch32_224", VIT, 32, 224, 1000, &large, &plain, &half, 0.9},
    {"vit_large_patch32_384", VIT, 32, 384, 1000, &large, &plain, &half, 1},
    {"vit_large_patch16_224", VIT, 16, 224, 1000, &large, &plain, &half, 0.9},
    {"vit_large_patch16_384", VIT, 16, 384, 1000, &large, &plain, &half, 1},
    {"vit_large_patch14_224", VIT, 14, 224, 1000, &large, &plain, &half, 0.9},
    {"vit_huge_patch14_224", VIT, 14, 224, 1000, &huge, &plain, &half, 0.9},
    {"vit_giant_patch14_224", VIT, 14, 224, 1000, &giant, &plain, &half, 0.9},
    {"vit_gigantic_patch14_224", VIT, 14, 224, 1000, &gigantic, &plain, &half, 0.9},
    {"test_vit", VIT, 16, 160, 1000, &test, &plain, &half, 0.95},
    {"flexivit_small", FLEXIVIT, 16, 240, 1000, &small, &flexi, &half, 0.95},
    {"flexivit_base", FLEXIVIT, 16, 240, 1000, &base, &flexi, &half, 0.95},
    {"flexivit_large", FLEXIVIT, 16, 240, 1000, &large, &flexi, &half, 0.95},
    {"vit_small_patch14_dinov2", DINOV2, 14, 518, 0, &small, &scaled, &imagenet, 1},
    {"vit_base_patch14_dinov2", DINOV2, 14, 518, 0, &base, &scaled, &imagenet, 1},
    {"vit_large_patch14_dinov2", DINOV2, 14, 518, 0, &large, &scaled, &imagenet, 1},
    {"vit_base_patch16_siglip_gap_224", SIGLIP, 16, 224, 0, &base, &gap, &half, 0.9},
    {"vit_base_patch16_siglip_gap_256", SIGLIP, 16, 256, 0, &base, &gap, &half, 0.9},
    {"vit_base_patch16_siglip_gap_384", SIGLIP, 16, 384, 0, &base, &gap, &half, 0.9},
    {"vit_base_patch16_siglip_gap_512", SIGLIP, 16, 512, 0, &base, &gap, &half, 0.9},
    {"vit_large_patch16_siglip_gap_256", SIGLIP, 16, 256, 0, &large, &gap, &half, 0.9},
    {"vit_large_patch16_siglip_gap_384", SIGLIP, 16, 384, 0, &large, &gap, &half, 0.9},
    {"vit_so400m_patch14_siglip_gap_224", SIGLIP, 14, 224, 0, &so400m, &gap, &half, 0.9},
    {"vit_so400m_patch14_siglip_gap_378", SIGLIP, 14, 378, 0, &so400m, &gap, &half, 0.9},
    {"vit_so400m_patch14_siglip_gap_448", SIGLIP, 14, 448, 0, &so400m, &gap, &half, 1},
    {"vit_so400m_patch14_siglip_gap_896", SIGLIP, 14, 896, 0, &so400m, &gap, &half, 1},
    {"deit_tiny_patch16_224", DEIT, 16, 224, 1000, &tiny, &plain, &imagenet, 0.9},
    {"deit_small_patch16_224", DEIT, 16, 224, 1000, &small, &plain, &imagenet, 0.9},
    {"deit_base_patch16_224", DEIT, 16, 224, 1000, &base, &plain, &imagenet, 0.9},
    {"deit_base_patch16_384", DEIT, 16, 384, 1000, &base, &plain, &imagenet, 1},
    {"deit3_small_patch16_224", DEIT3, 16, 224, 1000, &small, &deit3, &imagenet, 0.9},
    {"deit3_small_patch16_384", DEIT3, 16, 384, 1000, &small, &deit3, &imagenet, 1},
    {"deit3_medium_patch16_224", DEIT3, 16, 224, 1000, &medium, &deit3, &imagenet, 0.9},
    {"deit3_base_patch16_224", DEIT3, 16, 224, 1000, &base, &deit3, &imagenet, 0.9},
    {"deit3_base_patch16_384", DEIT3, 16, 384, 1000, &base, &deit3, &imagenet, 1},
    {"deit3_large_patch16_224", DEIT3, 16, 224, 1000, &large, &deit3, &imagenet, 0.9},
    {"deit3_large_patch16_384", DEIT3, 16, 384, 1000, &large, &deit3, &imagenet, 1},
    {"deit3_huge_patch14_224", DEIT3, 14, 224, 1000, &huge, &deit3, &imagenet, 0.9},
};

static_assert(sizeof variants / sizeof *variants == ATT_VIT_VARIANTS, "count the rows in vit.h");

att_model_info att_vit_info(int index)
{
    const struct vit_variant *variant = &variants[index];
    return (att_model_info){
        .name = variant->name, .summary = variant->summary, .height = variant->img_size, .width = variant->img_size};
}

void att_vit_describe(int index, att_vit_options *o, att_preprocess *preprocess)
{
    const struct vit_variant *variant = &variants[index];
    const vit_style *style = variant->style;
    o->img_size[0] = o->img_size[1] = variant->img_size;
    o->in_chans = 3;
    o->num_classes = variant->num_classes;
    o->patch_size[0] = o->patch_size[1] = variant->patch_size;
    o->embed_dim = variant->size->embed_dim;
    o->depth = variant->size->depth;
    o->num_heads = variant->size->num_heads;
    o->mlp_ratio = variant->size->mlp_ratio;
    o->final_norm = 1;
    o->fc_norm = style->fc_norm;
    o->class_token = style->class_token;
    o->embed_class = style->embed_class;
    o->qkv_bias = style->qkv_bias;
    o->init_values = style->init_values;
    snprintf(o->global_pool, sizeof o->global_pool, "%s", style->global_pool);
    *preprocess = (att_preprocess){
        .height = variant->img_size, .width = variant->img_size, .in_chans = 3, .crop_pct = variant->crop_pct};
    memcpy(preprocess->mean, variant->images->mean, sizeof preprocess->mean);
    memcpy(preprocess->std, variant->images->std, sizeof preprocess->std);
    snprintf(preprocess->crop_mode, sizeof preprocess->crop_mode, "%s", variant->images->crop_mode);
    snprintf(preprocess->interpolation, sizeof preprocess->interpolation, "%s", variant->images->interpolation);
}
