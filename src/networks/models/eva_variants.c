/* The named networks of the EVA family. Dimensions and preprocessing are those of timm 1.0. */
#include <stdio.h>
#include <string.h>

#include "networks/models/eva.h"

typedef struct eva_size {
    int embed_dim, depth, num_heads;
    double mlp_ratio;
} eva_size;

static const eva_size tiny = {192, 12, 3, 4}, tiny_gated = {192, 12, 3, 8.0 / 3}, small = {384, 12, 6, 4},
                      small_gated = {384, 12, 6, 8.0 / 3}, medium = {512, 12, 8, 4}, mediumd = {512, 20, 8, 4},
                      betwixt = {640, 12, 10, 4}, base = {768, 12, 12, 4}, base_gated = {768, 12, 12, 8.0 / 3},
                      large23 = {1024, 23, 16, 4}, large = {1024, 24, 16, 4}, large_gated = {1024, 24, 16, 8.0 / 3},
                      huge = {1280, 32, 20, 4}, giant = {1408, 40, 16, 48.0 / 11},
                      giant_gated = {1536, 40, 24, 8.0 / 3}, gigantic47 = {1536, 47, 16, 35.0 / 6},
                      gigantic = {1536, 50, 16, 35.0 / 6}, enormous = {1792, 64, 16, 60.0 / 7},
                      seven_b = {4096, 40, 32, 2};

/* What differs from timm's defaults: class token; a learned position embedding, also for the tokens before the patches;
 * one layer for queries, keys and values, with biases of queries and values; the mean of the patches, then a layer norm
 * with an eps of 1e-6. */
typedef struct eva_style {
    const char *global_pool; /* NULL: avg */
    bool no_class_token, no_embed_class, no_positions, no_qkv_bias, apart, key_bias, scale_attn, scale_mlp;
    bool pre_norm, no_final_norm, norm_before_pool, post_norm;
    int reg_tokens, pool_heads;
    double init_values, norm_eps, pool_ratio; /* norm_eps 0: 1e-6 */
    const char *mlp_layer;                    /* NULL: mlp */
} eva_style;

static const eva_style
    gated_normed = {.apart = true, .mlp_layer = "swiglu", .scale_mlp = true},
    gated_clip = {.apart = true, .global_pool = "token", .mlp_layer = "swiglu", .scale_attn = true, .scale_mlp = true},
    post_normed = {.global_pool = "token", .post_norm = true}, gated = {.mlp_layer = "swiglu_packed"},
    plain = {.global_pool = "avg"}, clip = {.global_pool = "token"},
    dinov3_gated = {.init_values = 1e-05,
                    .mlp_layer = "swiglu",
                    .no_positions = true,
                    .no_qkv_bias = true,
                    .norm_before_pool = true,
                    .norm_eps = 1e-5,
                    .reg_tokens = 4},
    dinov3 = {.init_values = 1e-05,
              .no_positions = true,
              .no_qkv_bias = true,
              .norm_before_pool = true,
              .norm_eps = 1e-5,
              .reg_tokens = 4},
    dinov3_biased = {.init_values = 1e-05,
                     .no_positions = true,
                     .norm_before_pool = true,
                     .norm_eps = 1e-5,
                     .reg_tokens = 4},
    lingbot = {.global_pool = "token", .init_values = 1e-05, .no_positions = true, .norm_eps = 1e-5, .reg_tokens = 4},
    rotated = {.global_pool = "token", .init_values = 1e-05, .key_bias = true, .no_positions = true},
    rotated_ape = {.global_pool = "token", .init_values = 1e-05, .key_bias = true, .no_embed_class = true},
    reg1 = {.init_values = 1e-05, .no_class_token = true, .no_positions = true, .reg_tokens = 1},
    reg4 = {.init_values = 1e-05, .no_class_token = true, .no_positions = true, .reg_tokens = 4},
    lingbot_gated = {.global_pool = "token",
                     .init_values = 1e-05,
                     .mlp_layer = "swiglu",
                     .no_positions = true,
                     .no_qkv_bias = true,
                     .norm_eps = 1e-5,
                     .reg_tokens = 4},
    dinov3_gated_biased = {.init_values = 1e-05,
                           .mlp_layer = "swiglu",
                           .no_positions = true,
                           .norm_before_pool = true,
                           .norm_eps = 1e-5,
                           .reg_tokens = 4},
    reg1_unbiased = {.init_values = 1e-05,
                     .no_class_token = true,
                     .no_positions = true,
                     .no_qkv_bias = true,
                     .reg_tokens = 1},
    pe_core =
        {.global_pool = "map", .key_bias = true, .norm_eps = 1e-5, .pool_heads = 8, .pool_ratio = 4, .pre_norm = true},
    pe_core_g = {.global_pool = "map",
                 .key_bias = true,
                 .no_class_token = true,
                 .norm_eps = 1e-5,
                 .pool_heads = 8,
                 .pool_ratio = 4,
                 .pre_norm = true},
    pe_g = {.init_values = 0.1,
            .key_bias = true,
            .no_class_token = true,
            .no_final_norm = true,
            .norm_eps = 1e-5,
            .pre_norm = true},
    pe_lang = {.init_values = 0.1, .key_bias = true, .no_final_norm = true, .norm_eps = 1e-5, .pre_norm = true},
    pe_spatial = {.key_bias = true, .no_final_norm = true, .norm_eps = 1e-5, .pre_norm = true};

/* Rotary positions. */
typedef struct eva_rope {
    const char *type;
    double temperature; /* 0: 10000 */
    double offset;
    bool columns_first, halves;
    int reference; /* sides of the grid to which positions are scaled; 0: not scaled */
} eva_rope;

static const eva_rope axial = {.type = ATT_EVA_AXIAL, .temperature = 100, .columns_first = true},
                      centered = {.type = ATT_EVA_CENTERED, .temperature = 100, .halves = true},
                      mixed = {.type = ATT_EVA_MIXED, .temperature = 10, .columns_first = true},
                      pe14 = {.type = ATT_EVA_AXIAL, .offset = 1, .columns_first = true, .reference = 14},
                      pe24 = {.type = ATT_EVA_AXIAL, .offset = 1, .columns_first = true, .reference = 24},
                      pe32 = {.type = ATT_EVA_AXIAL, .offset = 1, .columns_first = true, .reference = 32},
                      pe_g32 = {.type = ATT_EVA_AXIAL, .columns_first = true, .reference = 32},
                      scaled16 = {.type = ATT_EVA_AXIAL, .reference = 16}, unturned = {.type = ATT_EVA_NO_ROPE};

typedef struct eva_images {
    double mean[3], std[3];
    const char *crop_mode, *interpolation;
} eva_images;

#define IMAGENET            \
    {0.485, 0.456, 0.406},  \
    {                       \
        0.229, 0.224, 0.225 \
    }
#define CLIP                               \
    {0.48145466, 0.4578275, 0.40821073},   \
    {                                      \
        0.26862954, 0.26130258, 0.27577711 \
    }
static const eva_images half = {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, "center", "bicubic"},
                        imagenet = {IMAGENET, "center", "bicubic"}, imagenet_squashed = {IMAGENET, "squash", "bicubic"},
                        imagenet_bilinear = {IMAGENET, "squash", "bilinear"}, clip_images = {CLIP, "center", "bicubic"},
                        clip_squashed = {CLIP, "squash", "bicubic"};

static const char EVA[] = "EVA (Fang et al., CVPR 2023)";
static const char EVA02[] = "EVA-02 (Fang et al., Image and Vision Computing 2024)";
static const char PE[] = "Perception Encoder (Bolya et al., 2025)";
static const char DINOV3[] = "DINOv3 (Simeoni et al., 2025)";
static const char LINGBOT[] = "LingBot-Vision (Fu et al., 2026)";
static const char ROPE_SBB[] = "ViT with rotary positions and registers";
static const char ROPE_VIT[] = "RoPE-ViT (Heo et al., ECCV 2024)";

static const struct eva_variant {
    const char *name, *summary;
    int patch_size, img_size;
    int num_classes; /* 0: no head */
    const eva_size *size;
    const eva_style *style;
    const eva_rope *rope;
    const eva_images *images;
    double crop_pct;
} variants[] = {
    {"eva02_base_patch14_224", EVA02, 14, 224, 0, &base_gated, &gated_normed, &scaled16, &clip_images, 0.9},
    {"eva02_base_patch14_448", EVA02, 14, 448, 1000, &base_gated, &gated_normed, &scaled16, &clip_squashed, 1},
    {"eva02_base_patch16_clip_224", EVA02, 16, 224, 512, &base_gated, &gated_clip, &scaled16, &clip_images, 0.9},
    {"eva02_enormous_patch14_clip_224", EVA02, 14, 224, 1024, &enormous, &post_normed, &unturned, &clip_images, 0.9},
    {"eva02_large_patch14_224", EVA02, 14, 224, 0, &large_gated, &gated_normed, &scaled16, &clip_images, 0.9},
    {"eva02_large_patch14_448", EVA02, 14, 448, 1000, &large_gated, &gated_normed, &scaled16, &clip_squashed, 1},
    {"eva02_large_patch14_clip_224", EVA02, 14, 224, 768, &large_gated, &gated_clip, &scaled16, &clip_images, 0.9},
    {"eva02_large_patch14_clip_336", EVA02, 14, 336, 768, &large_gated, &gated_clip, &scaled16, &clip_images, 1},
    {"eva02_small_patch14_224", EVA02, 14, 224, 0, &small_gated, &gated, &scaled16, &clip_images, 0.9},
    {"eva02_small_patch14_336", EVA02, 14, 336, 1000, &small_gated, &gated, &scaled16, &clip_images, 1},
    {"eva02_tiny_patch14_224", EVA02, 14, 224, 0, &tiny_gated, &gated, &scaled16, &clip_images, 0.9},
    {"eva02_tiny_patch14_336", EVA02, 14, 336, 1000, &tiny_gated, &gated, &scaled16, &clip_images, 1},
    {"eva_giant_patch14_224", EVA, 14, 224, 1000, &giant, &plain, &unturned, &clip_images, 0.9},
    {"eva_giant_patch14_336", EVA, 14, 336, 1000, &giant, &plain, &unturned, &clip_squashed, 1},
    {"eva_giant_patch14_560", EVA, 14, 560, 1000, &giant, &plain, &unturned, &imagenet_squashed, 1},
    {"eva_giant_patch14_clip_224", EVA, 14, 224, 1024, &giant, &clip, &unturned, &clip_images, 0.9},
    {"vit_7b_patch16_dinov3", DINOV3, 16, 256, 0, &seven_b, &dinov3_gated, &centered, &imagenet, 1},
    {"vit_base_patch16_dinov3", DINOV3, 16, 256, 0, &base, &dinov3, &centered, &imagenet, 1},
    {"vit_base_patch16_dinov3_qkvb", DINOV3, 16, 256, 0, &base, &dinov3_biased, &centered, &imagenet, 1},
    {"vit_base_patch16_lingbot", LINGBOT, 16, 512, 0, &base, &lingbot, &centered, &imagenet_bilinear, 1},
    {"vit_base_patch16_rope_224", ROPE_VIT, 16, 224, 1000, &base, &rotated, &axial, &imagenet, 0.9},
    {"vit_base_patch16_rope_ape_224", ROPE_VIT, 16, 224, 1000, &base, &rotated_ape, &axial, &imagenet, 0.9},
    {"vit_base_patch16_rope_mixed_224", ROPE_VIT, 16, 224, 1000, &base, &rotated, &mixed, &imagenet, 0.9},
    {"vit_base_patch16_rope_mixed_ape_224", ROPE_VIT, 16, 224, 1000, &base, &rotated_ape, &mixed, &imagenet, 0.9},
    {"vit_base_patch16_rope_reg1_gap_256", ROPE_SBB, 16, 256, 1000, &base, &reg1, &scaled16, &half, 0.95},
    {"vit_betwixt_patch16_rope_reg4_gap_256", ROPE_SBB, 16, 256, 1000, &betwixt, &reg4, &scaled16, &clip_images, 0.95},
    {"vit_giant_patch16_lingbot", LINGBOT, 16, 512, 0, &giant_gated, &lingbot_gated, &centered, &imagenet_bilinear, 1},
    {"vit_huge_plus_patch16_dinov3", DINOV3, 16, 256, 0, &huge, &dinov3_gated, &centered, &imagenet, 1},
    {"vit_huge_plus_patch16_dinov3_qkvb", DINOV3, 16, 256, 0, &huge, &dinov3_gated_biased, &centered, &imagenet, 1},
    {"vit_large_patch16_dinov3", DINOV3, 16, 256, 0, &large, &dinov3, &centered, &imagenet, 1},
    {"vit_large_patch16_dinov3_qkvb", DINOV3, 16, 256, 0, &large, &dinov3_biased, &centered, &imagenet, 1},
    {"vit_large_patch16_lingbot", LINGBOT, 16, 512, 0, &large, &lingbot, &centered, &imagenet_bilinear, 1},
    {"vit_large_patch16_rope_224", ROPE_VIT, 16, 224, 1000, &large, &rotated, &axial, &imagenet, 0.9},
    {"vit_large_patch16_rope_ape_224", ROPE_VIT, 16, 224, 1000, &large, &rotated_ape, &axial, &imagenet, 0.9},
    {"vit_large_patch16_rope_mixed_224", ROPE_VIT, 16, 224, 1000, &large, &rotated, &mixed, &imagenet, 0.9},
    {"vit_large_patch16_rope_mixed_ape_224", ROPE_VIT, 16, 224, 1000, &large, &rotated_ape, &mixed, &imagenet, 0.9},
    {"vit_medium_patch16_rope_reg1_gap_256", ROPE_SBB, 16, 256, 1000, &medium, &reg1, &scaled16, &half, 0.95},
    {"vit_mediumd_patch16_rope_reg1_gap_256", ROPE_SBB, 16, 256, 1000, &mediumd, &reg1_unbiased, &scaled16, &half,
     0.95},
    {"vit_pe_core_base_patch16_224", PE, 16, 224, 1024, &base, &pe_core, &pe14, &half, 1},
    {"vit_pe_core_gigantic_patch14_448", PE, 14, 448, 1280, &gigantic, &pe_core_g, &pe_g32, &half, 1},
    {"vit_pe_core_large_patch14_336", PE, 14, 336, 1024, &large, &pe_core, &pe24, &half, 1},
    {"vit_pe_core_small_patch16_384", PE, 16, 384, 512, &small, &pe_core, &pe24, &half, 1},
    {"vit_pe_core_tiny_patch16_384", PE, 16, 384, 512, &tiny, &pe_core, &pe24, &half, 1},
    {"vit_pe_lang_gigantic_patch14_448", PE, 14, 448, 0, &gigantic47, &pe_g, &pe_g32, &half, 1},
    {"vit_pe_lang_large_patch14_448", PE, 14, 448, 0, &large23, &pe_lang, &pe32, &half, 1},
    {"vit_pe_spatial_base_patch16_512", PE, 16, 512, 0, &base, &pe_spatial, &pe32, &half, 1},
    {"vit_pe_spatial_gigantic_patch14_448", PE, 14, 448, 0, &gigantic, &pe_g, &pe_g32, &half, 1},
    {"vit_pe_spatial_large_patch14_448", PE, 14, 448, 0, &large, &pe_spatial, &pe32, &half, 1},
    {"vit_pe_spatial_small_patch16_512", PE, 16, 512, 0, &small, &pe_spatial, &pe32, &half, 1},
    {"vit_pe_spatial_tiny_patch16_512", PE, 16, 512, 0, &tiny, &pe_spatial, &pe32, &half, 1},
    {"vit_small_patch16_dinov3", DINOV3, 16, 256, 0, &small, &dinov3, &centered, &imagenet, 1},
    {"vit_small_patch16_dinov3_qkvb", DINOV3, 16, 256, 0, &small, &dinov3_biased, &centered, &imagenet, 1},
    {"vit_small_patch16_lingbot", LINGBOT, 16, 512, 0, &small, &lingbot, &centered, &imagenet_bilinear, 1},
    {"vit_small_patch16_rope_224", ROPE_VIT, 16, 224, 1000, &small, &rotated, &axial, &imagenet, 0.9},
    {"vit_small_patch16_rope_ape_224", ROPE_VIT, 16, 224, 1000, &small, &rotated_ape, &axial, &imagenet, 0.9},
    {"vit_small_patch16_rope_mixed_224", ROPE_VIT, 16, 224, 1000, &small, &rotated, &mixed, &imagenet, 0.9},
    {"vit_small_patch16_rope_mixed_ape_224", ROPE_VIT, 16, 224, 1000, &small, &rotated_ape, &mixed, &imagenet, 0.9},
    {"vit_small_plus_patch16_dinov3", DINOV3, 16, 256, 0, &small, &dinov3_gated, &centered, &imagenet, 1},
    {"vit_small_plus_patch16_dinov3_qkvb", DINOV3, 16, 256, 0, &small, &dinov3_gated_biased, &centered, &imagenet, 1},
    {"vit_tiny_patch16_dinov3_qkvb", DINOV3, 16, 256, 0, &tiny, &dinov3_biased, &centered, &imagenet, 1},
};

static_assert(sizeof variants / sizeof *variants == ATT_EVA_VARIANTS, "count the rows in eva.h");

att_model_info att_eva_info(int index)
{
    const struct eva_variant *variant = &variants[index];
    return (att_model_info){
        .name = variant->name, .summary = variant->summary, .height = variant->img_size, .width = variant->img_size};
}

#define SET(text, value) snprintf(text, sizeof(text), "%s", value)

static void set_style(const eva_style *style, att_eva_options *o)
{
    o->class_token = !style->no_class_token;
    o->embed_class = !style->no_embed_class;
    o->reg_tokens = style->reg_tokens;
    o->qkv_bias = !style->no_qkv_bias;
    o->qkv_fused = !style->apart;
    o->scale_attn_norm = style->scale_attn;
    o->scale_mlp_norm = style->scale_mlp;
    o->pre_norm = style->pre_norm;
    o->final_norm = !style->no_final_norm;
    o->fc_norm = style->norm_before_pool ? 0 : ATT_OPTION_UNSET;
    o->init_values = style->init_values;
    o->norm_eps = style->norm_eps > 0 ? style->norm_eps : 1e-6;
    o->attn_pool_num_heads = style->pool_heads;
    o->attn_pool_mlp_ratio = style->pool_ratio;
    SET(o->global_pool, style->global_pool ? style->global_pool : "avg");
    SET(o->pos_embed, style->no_positions ? "none" : "learn");
    SET(o->attn_type, style->key_bias ? ATT_EVA_KEY_BIAS : ATT_EVA_NO_KEY_BIAS);
    SET(o->mlp_layer, style->mlp_layer ? style->mlp_layer : "mlp");
    SET(o->block_fn, style->post_norm ? ATT_EVA_POST_NORM : ATT_EVA_BLOCK);
}

static void set_rope(const eva_rope *rope, att_eva_options *o)
{
    o->rope_temperature = rope->temperature > 0 ? rope->temperature : 10000;
    o->rope_grid_offset = rope->offset;
    o->rope_rotate_half = rope->halves;
    o->ref_feat_shape[0] = o->ref_feat_shape[1] = rope->reference;
    SET(o->rope_type, rope->type);
    SET(o->rope_grid_indexing, rope->columns_first ? "xy" : "ij");
}

void att_eva_describe(int index, att_eva_options *o, att_preprocess *preprocess)
{
    const struct eva_variant *variant = &variants[index];
    o->img_size[0] = o->img_size[1] = variant->img_size;
    o->in_chans = 3;
    o->num_classes = variant->num_classes;
    o->patch_size[0] = o->patch_size[1] = variant->patch_size;
    o->embed_dim = variant->size->embed_dim;
    o->depth = variant->size->depth;
    o->num_heads = variant->size->num_heads;
    o->mlp_ratio = variant->size->mlp_ratio;
    set_style(variant->style, o);
    set_rope(variant->rope, o);
    *preprocess = (att_preprocess){
        .height = variant->img_size, .width = variant->img_size, .in_chans = 3, .crop_pct = variant->crop_pct};
    memcpy(preprocess->mean, variant->images->mean, sizeof preprocess->mean);
    memcpy(preprocess->std, variant->images->std, sizeof preprocess->std);
    SET(preprocess->crop_mode, variant->images->crop_mode);
    SET(preprocess->interpolation, variant->images->interpolation);
}
