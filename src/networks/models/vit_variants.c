/* The named ViTs. Dimensions and preprocessing are those of timm 1.0. */
#include <stdio.h>
#include <string.h>

#include "networks/models/vit.h"

typedef struct vit_size {
    int embed_dim, depth, num_heads;
    double mlp_ratio;
} vit_size;

static const vit_size tiny = {192, 12, 3, 4}, xsmall = {256, 10, 4, 4}, wee = {256, 14, 4, 5}, wee16 = {256, 16, 4, 5},
                      little = {320, 14, 5, 5.6}, small = {384, 12, 6, 4}, small18 = {384, 18, 6, 4},
                      small36 = {384, 36, 6, 4}, medium = {512, 12, 8, 4}, mediumd = {512, 20, 8, 4},
                      betwixt = {640, 12, 10, 4}, base = {768, 12, 12, 4}, base16 = {768, 12, 16, 4},
                      base18 = {768, 18, 12, 4}, plus = {896, 12, 14, 4}, so150m = {896, 18, 14, 2304.0 / 896},
                      so150m2 = {832, 21, 13, 34.0 / 13}, large = {1024, 24, 16, 4}, aim_large = {1024, 24, 8, 2.75},
                      so400m = {1152, 27, 16, 4304.0 / 1152}, huge = {1280, 32, 16, 4},
                      giant = {1408, 40, 16, 48.0 / 11}, giant24 = {1536, 40, 24, 4},
                      giant_gated = {1536, 40, 24, 8192.0 / 1536}, giantopt = {1536, 40, 16, 4},
                      aim_huge = {1536, 24, 12, 4096.0 / 1536}, gigantic = {1664, 48, 16, 64.0 / 13},
                      aim_1b = {2048, 24, 16, 2.75}, aim_3b = {3072, 24, 24, 8192.0 / 3072}, test = {64, 6, 2, 3},
                      test2 = {64, 8, 2, 3}, test3 = {96, 9, 3, 2}, test4 = {96, 9, 3, 3};

/* What differs from timm's defaults: class token with a position, which the head reads after the last norm; layer norms
 * with an eps of 1e-6; biases; GELU. */
typedef struct vit_style {
    const char *global_pool; /* NULL: token */
    bool no_class_token, no_embed_class, no_qkv_bias, no_proj_bias, no_final_norm, norm_before_pool;
    bool pool_include_prefix, pre_norm, qk_norm, scale_norms, distilled;
    bool no_pos_embed, shared_rel_pos;
    int reg_tokens, rel_pos_dim;  /* rel_pos_dim 0: 128 */
    double init_values, norm_eps; /* norm_eps 0: 1e-6 */
    /* NULL: timm's default. */
    const char *pos_embed_resize, *rel_pos_type, *norm_layer, *embed_norm_layer, *act_layer, *mlp_layer, *attn_layer,
        *block_fn;
} vit_style;

static const vit_style
    plain = {.global_pool = "token"},
    scaled = {.init_values = 1e-5}, deit3 = {.no_embed_class = true, .init_values = 1e-6},
    flexi = {.no_embed_class = true, .pos_embed_resize = ATT_VIT_BILINEAR}, unbiased = {.no_qkv_bias = true},
    distilled = {.distilled = true}, gap = {.global_pool = "avg", .no_class_token = true, .norm_before_pool = true},
    gap_scaled = {.global_pool = "avg",
                  .no_class_token = true,
                  .norm_before_pool = true,
                  .no_qkv_bias = true,
                  .init_values = 1e-6},
    gap_tanh = {.global_pool = "avg", .no_class_token = true, .norm_before_pool = true, .act_layer = "gelu_tanh"},
    map = {.global_pool = "map", .no_class_token = true},
    map_tanh = {.global_pool = "map", .no_class_token = true, .act_layer = "gelu_tanh"}, mean = {.global_pool = "avg"},
    clip = {.pre_norm = true, .norm_eps = 1e-5},
    clip_quick = {.pre_norm = true, .norm_eps = 1e-5, .act_layer = "quick_gelu"},
    aim = {.global_pool = "avg",
           .no_class_token = true,
           .norm_before_pool = true,
           .no_qkv_bias = true,
           .no_proj_bias = true,
           .norm_layer = ATT_VIT_RMS_NORM,
           .embed_norm_layer = ATT_VIT_RMS_NORM,
           .norm_eps = 1e-5,
           .act_layer = "silu",
           .mlp_layer = "swiglu"},
    beit3 = {.global_pool = "avg", .scale_norms = true, .norm_eps = 1e-5},
    things = {.block_fn = ATT_VIT_THINGS, .init_values = 1e-5},
    scaling = {.block_fn = ATT_VIT_SCALING,
               .no_embed_class = true,
               .pre_norm = true,
               .no_qkv_bias = true,
               .qk_norm = true,
               .norm_layer = ATT_VIT_RMS_NORM},
    post_norm = {.global_pool = "avg",
                 .no_class_token = true,
                 .no_qkv_bias = true,
                 .init_values = 1e-5,
                 .block_fn = ATT_VIT_POST_NORM},
    gated = {.act_layer = "silu", .mlp_layer = "swiglu_packed", .init_values = 1e-5},
    gated_reg1 = {.no_embed_class = true,
                  .reg_tokens = 1,
                  .act_layer = "silu",
                  .mlp_layer = "swiglu_packed",
                  .init_values = 1},
    gated_reg4 = {.no_embed_class = true,
                  .reg_tokens = 4,
                  .act_layer = "silu",
                  .mlp_layer = "swiglu_packed",
                  .init_values = 1e-5},
    reg1 = {.no_embed_class = true, .reg_tokens = 1, .init_values = 1},
    reg4 = {.no_embed_class = true, .reg_tokens = 4, .init_values = 1e-5},
    reg1_gap = {.global_pool = "avg",
                .no_class_token = true,
                .no_embed_class = true,
                .reg_tokens = 1,
                .init_values = 1e-5},
    reg4_gap = {.global_pool = "avg",
                .no_class_token = true,
                .no_embed_class = true,
                .reg_tokens = 4,
                .init_values = 1e-5},
    reg4_gap_base = {.global_pool = "avg", .no_class_token = true, .no_embed_class = true, .reg_tokens = 4},
    reg4_gap_so = {.global_pool = "avg", .no_class_token = true, .norm_before_pool = true, .reg_tokens = 4},
    reg4_map = {.global_pool = "map", .no_class_token = true, .reg_tokens = 4},
    reg1_unbiased = {.global_pool = "avg",
                     .no_class_token = true,
                     .no_qkv_bias = true,
                     .reg_tokens = 1,
                     .init_values = 1e-5},
    reg1_diff = {.global_pool = "avg",
                 .no_class_token = true,
                 .no_embed_class = true,
                 .reg_tokens = 1,
                 .init_values = 1e-5,
                 .attn_layer = ATT_VIT_DIFFERENTIAL},
    reg1_scaling = {.global_pool = "avg",
                    .no_class_token = true,
                    .no_embed_class = true,
                    .reg_tokens = 1,
                    .init_values = 1e-5,
                    .block_fn = ATT_VIT_SCALING},
    reg1_diff_scaling = {.global_pool = "avg",
                         .no_class_token = true,
                         .no_embed_class = true,
                         .reg_tokens = 1,
                         .init_values = 1e-5,
                         .block_fn = ATT_VIT_DIFF_SCALING},
    radio7 = {.no_embed_class = true, .no_final_norm = true, .reg_tokens = 7, .pos_embed_resize = ATT_VIT_BILINEAR},
    radio7_corners = {.no_embed_class = true,
                      .no_final_norm = true,
                      .reg_tokens = 7,
                      .pos_embed_resize = ATT_VIT_CORNERS},
    radio7_scaled = {.no_embed_class = true,
                     .no_final_norm = true,
                     .reg_tokens = 7,
                     .init_values = 1e-5,
                     .pos_embed_resize = ATT_VIT_BILINEAR},
    radio7_scaled_corners = {.no_embed_class = true,
                             .no_final_norm = true,
                             .reg_tokens = 7,
                             .init_values = 1e-5,
                             .pos_embed_resize = ATT_VIT_CORNERS},
    radio9 = {.no_embed_class = true, .no_final_norm = true, .reg_tokens = 9, .pos_embed_resize = ATT_VIT_BILINEAR},
    intern = {.no_final_norm = true, .init_values = 0.1},
    tiny_reg = {.global_pool = "avg", .no_class_token = true, .reg_tokens = 1, .init_values = 1e-5},
    tiny_reg_map = {.global_pool = "map",
                    .no_class_token = true,
                    .pool_include_prefix = true,
                    .reg_tokens = 1,
                    .init_values = 1e-5},
    tiny_reg_rms = {.global_pool = "avg",
                    .no_class_token = true,
                    .reg_tokens = 1,
                    .init_values = 1e-5,
                    .norm_layer = ATT_VIT_RMS_NORM};

#define BEIT .global_pool = "avg", .no_pos_embed = true, .rel_pos_type = ATT_VIT_BIAS, .block_fn = ATT_VIT_BEIT
#define RELATIVE .no_pos_embed = true, .rel_pos_type = ATT_VIT_MLP, .init_values = 1e-6
#define RELATIVE_GAP RELATIVE, .global_pool = "avg", .no_class_token = true
static const vit_style beit = {BEIT, .init_values = 0.1}, beit_scaled = {BEIT, .init_values = 1e-5},
                       relative = {RELATIVE_GAP, .no_qkv_bias = true},
                       relative_bias = {RELATIVE_GAP, .norm_before_pool = true},
                       relative_shared_small = {RELATIVE_GAP, .no_qkv_bias = true, .norm_before_pool = true,
                                                .rel_pos_dim = 384, .shared_rel_pos = true},
                       relative_shared_medium = {RELATIVE_GAP, .no_qkv_bias = true, .norm_before_pool = true,
                                                 .rel_pos_dim = 512, .shared_rel_pos = true},
                       relative_class_medium = {RELATIVE, .no_qkv_bias = true, .rel_pos_dim = 256},
                       relative_class = {RELATIVE, .no_qkv_bias = true},
                       relative_class_gap = {RELATIVE, .no_qkv_bias = true, .global_pool = "avg"},
                       relative_post = {RELATIVE_GAP, .no_qkv_bias = true, .norm_before_pool = true,
                                        .block_fn = ATT_VIT_POST_NORM},
                       relative_post_bias = {RELATIVE_GAP, .norm_before_pool = true, .block_fn = ATT_VIT_POST_NORM};

typedef struct vit_images {
    double mean[3], std[3];
    const char *crop_mode, *interpolation;
} vit_images;

static const vit_images
    half = {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, "center", "bicubic"},
    squashed = {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, "squash", "bicubic"},
    imagenet = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, "center", "bicubic"},
    raw = {{0, 0, 0}, {1, 1, 1}, "center", "bilinear"}, raw_bicubic = {{0, 0, 0}, {1, 1, 1}, "center", "bicubic"},
    clip_images = {{0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}, "center", "bicubic"},
    clip_squashed = {{0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}, "squash", "bicubic"};

static const char VIT[] = "Vision Transformer (Dosovitskiy et al., ICLR 2021)";
static const char FLEXIVIT[] = "FlexiViT (Beyer et al., CVPR 2023)";
static const char DINOV2[] = "DINOv2 (Oquab et al., TMLR 2024)";
static const char SIGLIP[] = "SigLIP (Zhai et al., ICCV 2023), with mean pooling";
static const char DEIT[] = "DeiT (Touvron et al., ICML 2021)";
static const char DEIT3[] = "DeiT III (Touvron et al., ECCV 2022)";
static const char THINGS[] = "ViT with parallel branches (Touvron et al., ECCV 2022)";
static const char SCALING[] = "ViT with attention and MLP in parallel (Dehghani et al., ICML 2023)";
static const char DIFFERENTIAL[] = "ViT with differential attention (Ye et al., ICLR 2025)";
static const char CLIP[] = "CLIP's image network (Radford et al., ICML 2021)";
static const char SIGLIP_MAP[] = "SigLIP (Zhai et al., ICCV 2023)";
static const char DINOV2_REG[] = "DINOv2 with registers (Darcet et al., ICLR 2024)";
static const char TIPS[] = "TIPSv2's image network";
static const char RADIO[] = "RADIO (Ranzinger et al., CVPR 2024)";
static const char INTERN[] = "InternViT (Chen et al., CVPR 2024)";
static const char AIMV2[] = "AIMv2 (Fini et al., CVPR 2025)";
static const char BEIT3[] = "BEiT-3's image network (Wang et al., CVPR 2023)";
static const char BEIT_1[] = "BEiT (Bao et al., ICLR 2022)";
static const char BEIT_2[] = "BEiT v2 (Peng et al., 2022)";
static const char RELPOS[] = "ViT with relative positions (timm)";
static const char EVA[] = "EVA (Fang et al., CVPR 2023)";

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
    {"vit_so400m_patch14_siglip_gap_384", SIGLIP, 14, 384, 0, &so400m, &gap, &half, 1},
    {"vit_so400m_patch14_siglip_gap_448", SIGLIP, 14, 448, 0, &so400m, &gap, &half, 1},
    {"vit_so400m_patch14_siglip_gap_896", SIGLIP, 14, 896, 0, &so400m, &gap, &half, 1},
    {"test_vit2", VIT, 16, 160, 1000, &test2, &tiny_reg, &half, 0.95},
    {"test_vit3", VIT, 16, 160, 1000, &test3, &tiny_reg_map, &half, 0.95},
    {"test_vit4", VIT, 16, 160, 1000, &test4, &tiny_reg_rms, &half, 0.95},
    {"vit_wee_patch16_reg1_gap_256", VIT, 16, 256, 1000, &wee, &reg1_gap, &half, 0.95},
    {"vit_little_patch16_reg1_gap_256", VIT, 16, 256, 1000, &little, &reg1_gap, &half, 0.95},
    {"vit_little_patch16_reg4_gap_256", VIT, 16, 256, 1000, &little, &reg4_gap, &half, 0.95},
    {"vit_medium_patch16_reg1_gap_256", VIT, 16, 256, 1000, &medium, &reg1_gap, &half, 0.95},
    {"vit_medium_patch16_reg4_gap_256", VIT, 16, 256, 1000, &medium, &reg4_gap, &half, 0.95},
    {"vit_betwixt_patch16_reg1_gap_256", VIT, 16, 256, 1000, &betwixt, &reg1_gap, &half, 0.95},
    {"vit_betwixt_patch16_reg4_gap_256", VIT, 16, 256, 1000, &betwixt, &reg4_gap, &half, 0.95},
    {"vit_betwixt_patch16_reg4_gap_384", VIT, 16, 384, 1000, &betwixt, &reg4_gap, &half, 1},
    {"vit_mediumd_patch16_reg4_gap_256", VIT, 16, 256, 1000, &mediumd, &reg4_gap, &half, 0.95},
    {"vit_mediumd_patch16_reg4_gap_384", VIT, 16, 384, 1000, &mediumd, &reg4_gap, &half, 1},
    {"vit_base_patch16_reg4_gap_256", VIT, 16, 256, 1000, &base, &reg4_gap_base, &half, 0.9},
    {"vit_base_patch16_rpn_224", VIT, 16, 224, 1000, &base, &post_norm, &half, 0.9},
    {"vit_so150m_patch16_reg4_gap_256", VIT, 16, 256, 1000, &so150m, &reg4_gap_so, &half, 0.95},
    {"vit_so150m_patch16_reg4_gap_384", VIT, 16, 384, 1000, &so150m, &reg4_gap_so, &half, 1},
    {"vit_so150m_patch16_reg4_map_256", VIT, 16, 256, 1000, &so150m, &reg4_map, &half, 0.9},
    {"vit_so150m2_patch16_reg1_gap_256", VIT, 16, 256, 1000, &so150m2, &reg1_unbiased, &half, 1},
    {"vit_so150m2_patch16_reg1_gap_384", VIT, 16, 384, 1000, &so150m2, &reg1_unbiased, &half, 1},
    {"vit_so150m2_patch16_reg1_gap_448", VIT, 16, 448, 1000, &so150m2, &reg1_unbiased, &squashed, 1},
    {"vit_huge_patch14_gap_224", VIT, 14, 224, 0, &huge, &gap, &imagenet, 0.9},
    {"vit_huge_patch16_gap_448", VIT, 16, 448, 0, &huge, &gap, &imagenet, 1},
    {"vit_giant_patch16_gap_224", VIT, 16, 224, 0, &giant, &gap, &imagenet, 0.9},
    {"vit_small_patch16_18x2_224", THINGS, 16, 224, 1000, &small18, &things, &half, 0.9},
    {"vit_base_patch16_18x2_224", THINGS, 16, 224, 1000, &base18, &things, &half, 0.9},
    {"vit_dpwee_patch16_reg1_gap_256", SCALING, 16, 256, 1000, &wee16, &reg1_diff_scaling, &half, 0.95},
    {"vit_pwee_patch16_reg1_gap_256", SCALING, 16, 256, 1000, &wee16, &reg1_scaling, &half, 0.95},
    {"vit_base_patch16_xp_224", SCALING, 16, 224, 1000, &base, &scaling, &half, 0.9},
    {"vit_large_patch14_xp_224", SCALING, 14, 224, 1000, &large, &scaling, &half, 0.9},
    {"vit_huge_patch14_xp_224", SCALING, 14, 224, 1000, &huge, &scaling, &half, 0.9},
    {"vit_dwee_patch16_reg1_gap_256", DIFFERENTIAL, 16, 256, 1000, &wee, &reg1_diff, &half, 0.95},
    {"vit_dlittle_patch16_reg1_gap_256", DIFFERENTIAL, 16, 256, 1000, &little, &reg1_diff, &half, 0.95},
    {"vit_xsmall_patch16_clip_224", CLIP, 16, 224, 512, &xsmall, &clip, &clip_images, 0.9},
    {"vit_medium_patch16_clip_224", CLIP, 16, 224, 512, &medium, &clip, &clip_images, 0.9},
    {"vit_medium_patch32_clip_224", CLIP, 32, 224, 512, &medium, &clip, &clip_images, 0.9},
    {"vit_betwixt_patch32_clip_224", CLIP, 32, 224, 512, &betwixt, &clip, &clip_images, 0.9},
    {"vit_base_patch16_clip_224", CLIP, 16, 224, 1000, &base, &clip, &clip_images, 0.95},
    {"vit_base_patch16_clip_384", CLIP, 16, 384, 1000, &base, &clip, &clip_squashed, 1},
    {"vit_base_patch16_clip_quickgelu_224", CLIP, 16, 224, 512, &base, &clip_quick, &clip_images, 1},
    {"vit_base_patch32_clip_224", CLIP, 32, 224, 1000, &base, &clip, &clip_images, 0.9},
    {"vit_base_patch32_clip_256", CLIP, 32, 256, 512, &base, &clip, &clip_images, 1},
    {"vit_base_patch32_clip_384", CLIP, 32, 384, 1000, &base, &clip, &clip_images, 1},
    {"vit_base_patch32_clip_448", CLIP, 32, 448, 1000, &base, &clip, &clip_images, 1},
    {"vit_base_patch32_clip_quickgelu_224", CLIP, 32, 224, 512, &base, &clip_quick, &clip_images, 0.9},
    {"vit_base_patch16_plus_clip_240", CLIP, 16, 240, 640, &plus, &clip, &clip_images, 1},
    {"vit_large_patch14_clip_224", CLIP, 14, 224, 1000, &large, &clip, &half, 1},
    {"vit_large_patch14_clip_336", CLIP, 14, 336, 1000, &large, &clip, &squashed, 1},
    {"vit_large_patch14_clip_quickgelu_224", CLIP, 14, 224, 768, &large, &clip_quick, &clip_images, 1},
    {"vit_large_patch14_clip_quickgelu_336", CLIP, 14, 336, 768, &large, &clip_quick, &clip_images, 1},
    {"vit_huge_patch14_clip_224", CLIP, 14, 224, 1000, &huge, &clip, &clip_images, 1},
    {"vit_huge_patch14_clip_336", CLIP, 14, 336, 1000, &huge, &clip, &clip_squashed, 1},
    {"vit_huge_patch14_clip_378", CLIP, 14, 378, 1024, &huge, &clip, &clip_images, 1},
    {"vit_huge_patch14_clip_quickgelu_224", CLIP, 14, 224, 1024, &huge, &clip_quick, &clip_images, 1},
    {"vit_huge_patch14_clip_quickgelu_378", CLIP, 14, 378, 1024, &huge, &clip_quick, &clip_images, 1},
    {"vit_giant_patch14_clip_224", CLIP, 14, 224, 1024, &giant, &clip, &clip_images, 1},
    {"vit_gigantic_patch14_clip_224", CLIP, 14, 224, 1280, &gigantic, &clip, &clip_images, 1},
    {"vit_gigantic_patch14_clip_378", CLIP, 14, 378, 1280, &gigantic, &clip, &clip_squashed, 1},
    {"vit_gigantic_patch14_clip_quickgelu_224", CLIP, 14, 224, 1280, &gigantic, &clip_quick, &clip_images, 1},
    {"vit_base_patch32_siglip_gap_256", SIGLIP, 32, 256, 0, &base, &gap_tanh, &half, 0.9},
    {"vit_large_patch16_siglip_gap_512", SIGLIP, 16, 512, 0, &large, &gap_tanh, &half, 0.9},
    {"vit_so400m_patch16_siglip_gap_256", SIGLIP, 16, 256, 0, &so400m, &gap_tanh, &half, 0.9},
    {"vit_so400m_patch16_siglip_gap_384", SIGLIP, 16, 384, 0, &so400m, &gap_tanh, &half, 0.9},
    {"vit_so400m_patch16_siglip_gap_512", SIGLIP, 16, 512, 0, &so400m, &gap_tanh, &half, 0.9},
    {"vit_giantopt_patch16_siglip_gap_256", SIGLIP, 16, 256, 0, &giantopt, &gap_tanh, &half, 0.9},
    {"vit_giantopt_patch16_siglip_gap_384", SIGLIP, 16, 384, 0, &giantopt, &gap_tanh, &half, 0.9},
    {"vit_base_patch16_siglip_224", SIGLIP_MAP, 16, 224, 0, &base, &map, &half, 0.9},
    {"vit_base_patch16_siglip_256", SIGLIP_MAP, 16, 256, 0, &base, &map, &half, 0.9},
    {"vit_base_patch16_siglip_384", SIGLIP_MAP, 16, 384, 0, &base, &map, &half, 0.9},
    {"vit_base_patch16_siglip_512", SIGLIP_MAP, 16, 512, 0, &base, &map, &half, 0.9},
    {"vit_base_patch32_siglip_256", SIGLIP_MAP, 32, 256, 0, &base, &map_tanh, &half, 0.9},
    {"vit_large_patch16_siglip_256", SIGLIP_MAP, 16, 256, 0, &large, &map, &half, 0.9},
    {"vit_large_patch16_siglip_384", SIGLIP_MAP, 16, 384, 0, &large, &map, &half, 0.9},
    {"vit_large_patch16_siglip_512", SIGLIP_MAP, 16, 512, 0, &large, &map_tanh, &half, 0.9},
    {"vit_so400m_patch14_siglip_224", SIGLIP_MAP, 14, 224, 0, &so400m, &map, &half, 0.9},
    {"vit_so400m_patch14_siglip_378", SIGLIP_MAP, 14, 378, 0, &so400m, &map, &half, 0.9},
    {"vit_so400m_patch14_siglip_384", SIGLIP_MAP, 14, 384, 0, &so400m, &map, &half, 0.9},
    {"vit_so400m_patch16_siglip_256", SIGLIP_MAP, 16, 256, 0, &so400m, &map_tanh, &half, 0.9},
    {"vit_so400m_patch16_siglip_384", SIGLIP_MAP, 16, 384, 0, &so400m, &map_tanh, &half, 0.9},
    {"vit_so400m_patch16_siglip_512", SIGLIP_MAP, 16, 512, 0, &so400m, &map_tanh, &half, 0.9},
    {"vit_giantopt_patch16_siglip_256", SIGLIP_MAP, 16, 256, 0, &giantopt, &map_tanh, &half, 0.9},
    {"vit_giantopt_patch16_siglip_384", SIGLIP_MAP, 16, 384, 0, &giantopt, &map_tanh, &half, 0.9},
    {"vit_giant_patch14_dinov2", DINOV2, 14, 518, 0, &giant_gated, &gated, &imagenet, 1},
    {"vit_small_patch14_reg4_dinov2", DINOV2_REG, 14, 518, 0, &small, &reg4, &imagenet, 1},
    {"vit_base_patch14_reg4_dinov2", DINOV2_REG, 14, 518, 0, &base, &reg4, &imagenet, 1},
    {"vit_large_patch14_reg4_dinov2", DINOV2_REG, 14, 518, 0, &large, &reg4, &imagenet, 1},
    {"vit_giant_patch14_reg4_dinov2", DINOV2_REG, 14, 518, 0, &giant_gated, &gated_reg4, &imagenet, 1},
    {"vit_base_patch14_reg1_tipsv2", TIPS, 14, 448, 0, &base, &reg1, &raw_bicubic, 1},
    {"vit_large_patch14_reg1_tipsv2", TIPS, 14, 448, 0, &large, &reg1, &raw_bicubic, 1},
    {"vit_so400m_patch14_reg1_tipsv2", TIPS, 14, 448, 0, &so400m, &reg1, &raw_bicubic, 1},
    {"vit_giant_patch14_reg1_tipsv2", TIPS, 14, 448, 0, &giant_gated, &gated_reg1, &raw_bicubic, 1},
    {"vit_base_patch16_radio_v3", RADIO, 16, 512, 0, &base, &radio7_scaled_corners, &clip_images, 1},
    {"vit_large_patch16_radio_v3", RADIO, 16, 512, 0, &large, &radio7_scaled, &clip_images, 1},
    {"vit_so400m_patch16_radio_v4", RADIO, 16, 512, 0, &so400m, &radio9, &clip_images, 1},
    {"vit_huge_patch16_radio_v3", RADIO, 16, 512, 0, &huge, &radio7_corners, &clip_images, 1},
    {"vit_huge_patch16_radio_v4", RADIO, 16, 512, 0, &huge, &radio9, &clip_images, 1},
    {"vit_giant_patch16_radio_v3", RADIO, 16, 512, 0, &giant24, &radio7, &clip_images, 1},
    {"vit_intern300m_patch14_448", INTERN, 14, 448, 0, &large, &intern, &imagenet, 1},
    {"aimv2_large_patch14_224", AIMV2, 14, 224, 0, &aim_large, &aim, &clip_images, 1},
    {"aimv2_large_patch14_336", AIMV2, 14, 336, 0, &aim_large, &aim, &clip_images, 1},
    {"aimv2_large_patch14_448", AIMV2, 14, 448, 0, &aim_large, &aim, &clip_images, 1},
    {"aimv2_huge_patch14_224", AIMV2, 14, 224, 0, &aim_huge, &aim, &clip_images, 1},
    {"aimv2_huge_patch14_336", AIMV2, 14, 336, 0, &aim_huge, &aim, &clip_images, 1},
    {"aimv2_huge_patch14_448", AIMV2, 14, 448, 0, &aim_huge, &aim, &clip_images, 1},
    {"aimv2_1b_patch14_224", AIMV2, 14, 224, 0, &aim_1b, &aim, &clip_images, 1},
    {"aimv2_1b_patch14_336", AIMV2, 14, 336, 0, &aim_1b, &aim, &clip_images, 1},
    {"aimv2_1b_patch14_448", AIMV2, 14, 448, 0, &aim_1b, &aim, &clip_images, 1},
    {"aimv2_3b_patch14_224", AIMV2, 14, 224, 0, &aim_3b, &aim, &clip_images, 1},
    {"aimv2_3b_patch14_336", AIMV2, 14, 336, 0, &aim_3b, &aim, &clip_images, 1},
    {"aimv2_3b_patch14_448", AIMV2, 14, 448, 0, &aim_3b, &aim, &clip_images, 1},
    {"beit3_base_patch16_224", BEIT3, 16, 224, 1000, &base, &beit3, &imagenet, 1},
    {"beit3_large_patch16_224", BEIT3, 16, 224, 1000, &large, &beit3, &imagenet, 1},
    {"beit3_giant_patch14_224", BEIT3, 14, 224, 1000, &giant, &beit3, &imagenet, 1},
    {"beit3_giant_patch14_336", BEIT3, 14, 336, 1000, &giant, &beit3, &imagenet, 1},
    {"beit_base_patch16_224", BEIT_1, 16, 224, 1000, &base, &beit, &half, 0.9},
    {"beit_base_patch16_384", BEIT_1, 16, 384, 1000, &base, &beit, &half, 1},
    {"beit_large_patch16_224", BEIT_1, 16, 224, 1000, &large, &beit_scaled, &half, 0.9},
    {"beit_large_patch16_384", BEIT_1, 16, 384, 1000, &large, &beit_scaled, &half, 1},
    {"beit_large_patch16_512", BEIT_1, 16, 512, 1000, &large, &beit_scaled, &half, 1},
    {"beitv2_base_patch16_224", BEIT_2, 16, 224, 1000, &base, &beit_scaled, &imagenet, 0.9},
    {"beitv2_large_patch16_224", BEIT_2, 16, 224, 1000, &large, &beit_scaled, &imagenet, 0.95},
    {"vit_relpos_small_patch16_224", RELPOS, 16, 224, 1000, &small, &relative, &half, 0.9},
    {"vit_relpos_medium_patch16_224", RELPOS, 16, 224, 1000, &medium, &relative, &half, 0.9},
    {"vit_relpos_base_patch16_224", RELPOS, 16, 224, 1000, &base, &relative, &half, 0.9},
    {"vit_relpos_base_patch16_plus_240", RELPOS, 16, 240, 1000, &plus, &relative_bias, &half, 0.9},
    {"vit_relpos_small_patch16_rpn_224", RELPOS, 16, 224, 1000, &small, &relative_post, &half, 0.9},
    {"vit_relpos_medium_patch16_rpn_224", RELPOS, 16, 224, 1000, &medium, &relative_post, &half, 0.9},
    {"vit_relpos_base_patch16_rpn_224", RELPOS, 16, 224, 1000, &base, &relative_post, &half, 0.9},
    {"vit_relpos_base_patch32_plus_rpn_256", RELPOS, 32, 256, 1000, &plus, &relative_post_bias, &half, 0.9},
    {"vit_relpos_medium_patch16_cls_224", RELPOS, 16, 224, 1000, &medium, &relative_class_medium, &half, 0.9},
    {"vit_relpos_base_patch16_cls_224", RELPOS, 16, 224, 1000, &base, &relative_class, &half, 0.9},
    {"vit_relpos_base_patch16_clsgap_224", RELPOS, 16, 224, 1000, &base, &relative_class_gap, &half, 0.9},
    {"vit_srelpos_small_patch16_224", RELPOS, 16, 224, 1000, &small, &relative_shared_small, &half, 0.9},
    {"vit_srelpos_medium_patch16_224", RELPOS, 16, 224, 1000, &medium, &relative_shared_medium, &half, 0.9},
    {"test_vit_relpos", RELPOS, 16, 160, 1000, &test3, &relative, &half, 0.95},
    {"eva_large_patch14_196", EVA, 14, 196, 1000, &large, &mean, &clip_images, 1},
    {"eva_large_patch14_336", EVA, 14, 336, 1000, &large, &mean, &clip_squashed, 1},
    {"deit_tiny_patch16_224", DEIT, 16, 224, 1000, &tiny, &plain, &imagenet, 0.9},
    {"deit_small_patch16_224", DEIT, 16, 224, 1000, &small, &plain, &imagenet, 0.9},
    {"deit_base_patch16_224", DEIT, 16, 224, 1000, &base, &plain, &imagenet, 0.9},
    {"deit_base_patch16_384", DEIT, 16, 384, 1000, &base, &plain, &imagenet, 1},
    {"deit_tiny_distilled_patch16_224", DEIT, 16, 224, 1000, &tiny, &distilled, &imagenet, 0.9},
    {"deit_small_distilled_patch16_224", DEIT, 16, 224, 1000, &small, &distilled, &imagenet, 0.9},
    {"deit_base_distilled_patch16_224", DEIT, 16, 224, 1000, &base, &distilled, &imagenet, 0.9},
    {"deit_base_distilled_patch16_384", DEIT, 16, 384, 1000, &base, &distilled, &imagenet, 1},
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

#define SET(text, given, otherwise) snprintf(text, sizeof(text), "%s", (given) ? (given) : (otherwise))

static void set_style(const vit_style *style, att_vit_options *o)
{
    o->class_token = !style->no_class_token;
    o->embed_class = !style->no_embed_class;
    o->reg_tokens = style->reg_tokens;
    o->distilled = style->distilled;
    o->qkv_bias = !style->no_qkv_bias;
    o->proj_bias = !style->no_proj_bias;
    o->qk_norm = style->qk_norm;
    o->scale_attn_norm = o->scale_mlp_norm = style->scale_norms;
    o->pre_norm = style->pre_norm;
    o->final_norm = !style->no_final_norm;
    o->fc_norm = style->norm_before_pool ? 0 : ATT_OPTION_UNSET;
    o->pool_include_prefix = style->pool_include_prefix;
    o->init_values = style->init_values;
    o->norm_eps = style->norm_eps > 0 ? style->norm_eps : 1e-6;
    SET(o->global_pool, style->global_pool, "token");
    o->rel_pos_dim = style->rel_pos_dim;
    o->shared_rel_pos = style->shared_rel_pos;
    snprintf(o->pos_embed, sizeof o->pos_embed, "%s", style->no_pos_embed ? "none" : "learn");
    SET(o->pos_embed_resize, style->pos_embed_resize, "bicubic");
    SET(o->rel_pos_type, style->rel_pos_type, "none");
    SET(o->norm_layer, style->norm_layer, "layernorm");
    SET(o->embed_norm_layer, style->embed_norm_layer, "none");
    SET(o->act_layer, style->act_layer, "gelu");
    SET(o->mlp_layer, style->mlp_layer, "mlp");
    SET(o->attn_layer, style->attn_layer, "attn");
    SET(o->block_fn, style->block_fn, ATT_VIT_BLOCK);
}

void att_vit_describe(int index, att_vit_options *o, att_preprocess *preprocess)
{
    const struct vit_variant *variant = &variants[index];
    o->img_size[0] = o->img_size[1] = variant->img_size;
    o->in_chans = 3;
    o->num_classes = variant->num_classes;
    o->patch_size[0] = o->patch_size[1] = variant->patch_size;
    o->embed_dim = variant->size->embed_dim;
    o->depth = variant->size->depth;
    o->num_heads = variant->size->num_heads;
    o->mlp_ratio = variant->size->mlp_ratio;
    set_style(variant->style, o);
    *preprocess = (att_preprocess){
        .height = variant->img_size, .width = variant->img_size, .in_chans = 3, .crop_pct = variant->crop_pct};
    memcpy(preprocess->mean, variant->images->mean, sizeof preprocess->mean);
    memcpy(preprocess->std, variant->images->std, sizeof preprocess->std);
    snprintf(preprocess->crop_mode, sizeof preprocess->crop_mode, "%s", variant->images->crop_mode);
    snprintf(preprocess->interpolation, sizeof preprocess->interpolation, "%s", variant->images->interpolation);
}
