/* The named networks of the EVA family. Dimensions and preprocessing are those of timm 1.0. */
#include "networks/models/eva.h"
#include "networks/models/variants.h"

#define P14 "patch_size=14 "

/* Widths of tokens, blocks, heads, and widths of MLPs that are not four times as wide. */
#define TINY_GATED "mlp_ratio=2.6666666666666665 " ATT_TINY
#define SMALL_GATED "mlp_ratio=2.6666666666666665 " ATT_SMALL
#define BASE_GATED "mlp_ratio=2.6666666666666665 " ATT_BASE
#define LARGE23 "embed_dim=1024 depth=23 num_heads=16 "
#define LARGE_GATED "mlp_ratio=2.6666666666666665 " ATT_LARGE
#define HUGE "embed_dim=1280 depth=32 num_heads=20 "
#define GIANT "embed_dim=1408 depth=40 num_heads=16 mlp_ratio=4.363636363636363 "        /* 48 / 11 */
#define GIANT_GATED "embed_dim=1536 depth=40 num_heads=24 mlp_ratio=2.6666666666666665 " /* 8 / 3 */
#define GIGANTIC47 "embed_dim=1536 depth=47 num_heads=16 mlp_ratio=5.833333333333333 "   /* 35 / 6 */
#define GIGANTIC "embed_dim=1536 depth=50 num_heads=16 mlp_ratio=5.833333333333333 "     /* 35 / 6 */
#define ENORMOUS "embed_dim=1792 depth=64 num_heads=16 mlp_ratio=8.571428571428571 "     /* 60 / 7 */
#define SEVEN_B "embed_dim=4096 depth=40 num_heads=32 mlp_ratio=2 "

/* Parts of networks. */
#define TOKEN "global_pool=token "
#define NO_CLASS "class_token=false "
#define NO_POSITIONS "pos_embed=none "
#define UNBIASED "qkv_bias=false "
#define GATED "mlp_layer=swiglu "
#define SCALED "init_values=1e-5 "

/* Rotary positions. */
#define AXIAL "rope_type=" ATT_EVA_AXIAL " rope_temperature=100 rope_grid_indexing=xy "
#define CENTERED "rope_type=" ATT_EVA_CENTERED " rope_temperature=100 rope_rotate_half=true "
#define MIXED "rope_type=" ATT_EVA_MIXED " rope_temperature=10 rope_grid_indexing=xy "
#define PE_G32 "rope_type=" ATT_EVA_AXIAL " rope_grid_indexing=xy ref_feat_shape=32 "
#define PE32 "rope_grid_offset=1 " PE_G32
#define PE24 "ref_feat_shape=24 " PE32
#define PE14 "ref_feat_shape=14 " PE32
#define SCALED16 "rope_type=" ATT_EVA_AXIAL " ref_feat_shape=16 "

/* Kinds of networks. */
#define GATED_NORMED GATED "qkv_fused=false scale_mlp_norm=true "
#define CLIP_STYLE TOKEN GATED_NORMED "scale_attn_norm=true "
#define DINOV3_STYLE CENTERED ATT_IMAGENET NO_POSITIONS SCALED "fc_norm=false norm_eps=1e-5 reg_tokens=4 "
#define LINGBOT_STYLE \
    TOKEN CENTERED ATT_IMAGENET ATT_SQUASHED ATT_LINEAR_IMAGES NO_POSITIONS SCALED "norm_eps=1e-5 reg_tokens=4 "
#define KEY_BIAS "attn_type=" ATT_EVA_KEY_BIAS " "
#define ROTATED_APE TOKEN ATT_IMAGENET SCALED KEY_BIAS "embed_class=false "
#define ROTATED TOKEN ATT_IMAGENET SCALED KEY_BIAS NO_POSITIONS
#define REG1 NO_CLASS NO_POSITIONS SCALED "reg_tokens=1 "
#define REG4 NO_CLASS NO_POSITIONS SCALED "reg_tokens=4 "
#define PE_STYLE ATT_HALF KEY_BIAS "pre_norm=true norm_eps=1e-5 "
#define PE_SPATIAL PE_STYLE "final_norm=false "
#define PE_LANG PE_SPATIAL "init_values=0.1 "
#define PE_CORE "global_pool=map attn_pool_num_heads=8 attn_pool_mlp_ratio=4 " PE_STYLE

static const char EVA[] = "EVA (Fang et al., CVPR 2023)";
static const char EVA02[] = "EVA-02 (Fang et al., Image and Vision Computing 2024)";
static const char PE[] = "Perception Encoder (Bolya et al., 2025)";
static const char DINOV3[] = "DINOv3 (Simeoni et al., 2025)";
static const char LINGBOT[] = "LingBot-Vision (Fu et al., 2026)";
static const char ROPE_SBB[] = "ViT with rotary positions and registers";
static const char ROPE_VIT[] = "RoPE-ViT (Heo et al., ECCV 2024)";

static const att_variant_row rows[] = {
    {"eva02_base_patch14_224", EVA02, 224, 0, 0.9, P14 BASE_GATED SCALED16 GATED_NORMED},
    {"eva02_base_patch14_448", EVA02, 448, 1000, 1, P14 BASE_GATED SCALED16 ATT_SQUASHED GATED_NORMED},
    {"eva02_base_patch16_clip_224", EVA02, 224, 512, 0.9, BASE_GATED SCALED16 CLIP_STYLE},
    {"eva02_enormous_patch14_clip_224", EVA02, 224, 1024, 0.9, P14 ENORMOUS TOKEN "block_fn=ResPostBlock "},
    {"eva02_large_patch14_224", EVA02, 224, 0, 0.9, P14 LARGE_GATED SCALED16 GATED_NORMED},
    {"eva02_large_patch14_448", EVA02, 448, 1000, 1, P14 LARGE_GATED SCALED16 ATT_SQUASHED GATED_NORMED},
    {"eva02_large_patch14_clip_224", EVA02, 224, 768, 0.9, P14 LARGE_GATED SCALED16 CLIP_STYLE},
    {"eva02_large_patch14_clip_336", EVA02, 336, 768, 1, P14 LARGE_GATED SCALED16 CLIP_STYLE},
    {"eva02_small_patch14_224", EVA02, 224, 0, 0.9, P14 SMALL_GATED SCALED16 "mlp_layer=swiglu_packed "},
    {"eva02_small_patch14_336", EVA02, 336, 1000, 1, P14 SMALL_GATED SCALED16 "mlp_layer=swiglu_packed "},
    {"eva02_tiny_patch14_224", EVA02, 224, 0, 0.9, P14 TINY_GATED SCALED16 "mlp_layer=swiglu_packed "},
    {"eva02_tiny_patch14_336", EVA02, 336, 1000, 1, P14 TINY_GATED SCALED16 "mlp_layer=swiglu_packed "},
    {"eva_giant_patch14_224", EVA, 224, 1000, 0.9, P14 GIANT},
    {"eva_giant_patch14_336", EVA, 336, 1000, 1, P14 GIANT ATT_SQUASHED},
    {"eva_giant_patch14_560", EVA, 560, 1000, 1, P14 GIANT ATT_IMAGENET ATT_SQUASHED},
    {"eva_giant_patch14_clip_224", EVA, 224, 1024, 0.9, P14 GIANT TOKEN},
    {"vit_7b_patch16_dinov3", DINOV3, 256, 0, 1, SEVEN_B DINOV3_STYLE GATED UNBIASED},
    {"vit_base_patch16_dinov3", DINOV3, 256, 0, 1, ATT_BASE DINOV3_STYLE UNBIASED},
    {"vit_base_patch16_dinov3_qkvb", DINOV3, 256, 0, 1, ATT_BASE DINOV3_STYLE},
    {"vit_base_patch16_lingbot", LINGBOT, 512, 0, 1, ATT_BASE LINGBOT_STYLE},
    {"vit_base_patch16_rope_224", ROPE_VIT, 224, 1000, 0.9, ATT_BASE AXIAL ROTATED},
    {"vit_base_patch16_rope_ape_224", ROPE_VIT, 224, 1000, 0.9, ATT_BASE AXIAL ROTATED_APE},
    {"vit_base_patch16_rope_mixed_224", ROPE_VIT, 224, 1000, 0.9, ATT_BASE MIXED ROTATED},
    {"vit_base_patch16_rope_mixed_ape_224", ROPE_VIT, 224, 1000, 0.9, ATT_BASE MIXED ROTATED_APE},
    {"vit_base_patch16_rope_reg1_gap_256", ROPE_SBB, 256, 1000, 0.95, ATT_BASE SCALED16 ATT_HALF REG1},
    {"vit_betwixt_patch16_rope_reg4_gap_256", ROPE_SBB, 256, 1000, 0.95, ATT_BETWIXT SCALED16 REG4},
    {"vit_giant_patch16_lingbot", LINGBOT, 512, 0, 1, GIANT_GATED LINGBOT_STYLE GATED UNBIASED},
    {"vit_huge_plus_patch16_dinov3", DINOV3, 256, 0, 1, HUGE DINOV3_STYLE GATED UNBIASED},
    {"vit_huge_plus_patch16_dinov3_qkvb", DINOV3, 256, 0, 1, HUGE DINOV3_STYLE GATED},
    {"vit_large_patch16_dinov3", DINOV3, 256, 0, 1, ATT_LARGE DINOV3_STYLE UNBIASED},
    {"vit_large_patch16_dinov3_qkvb", DINOV3, 256, 0, 1, ATT_LARGE DINOV3_STYLE},
    {"vit_large_patch16_lingbot", LINGBOT, 512, 0, 1, ATT_LARGE LINGBOT_STYLE},
    {"vit_large_patch16_rope_224", ROPE_VIT, 224, 1000, 0.9, ATT_LARGE AXIAL ROTATED},
    {"vit_large_patch16_rope_ape_224", ROPE_VIT, 224, 1000, 0.9, ATT_LARGE AXIAL ROTATED_APE},
    {"vit_large_patch16_rope_mixed_224", ROPE_VIT, 224, 1000, 0.9, ATT_LARGE MIXED ROTATED},
    {"vit_large_patch16_rope_mixed_ape_224", ROPE_VIT, 224, 1000, 0.9, ATT_LARGE MIXED ROTATED_APE},
    {"vit_medium_patch16_rope_reg1_gap_256", ROPE_SBB, 256, 1000, 0.95, ATT_MEDIUM SCALED16 ATT_HALF REG1},
    {"vit_mediumd_patch16_rope_reg1_gap_256", ROPE_SBB, 256, 1000, 0.95, ATT_MEDIUMD SCALED16 ATT_HALF REG1 UNBIASED},
    {"vit_pe_core_base_patch16_224", PE, 224, 1024, 1, ATT_BASE PE14 PE_CORE},
    {"vit_pe_core_gigantic_patch14_448", PE, 448, 1280, 1, P14 GIGANTIC PE_G32 PE_CORE NO_CLASS},
    {"vit_pe_core_large_patch14_336", PE, 336, 1024, 1, P14 ATT_LARGE PE24 PE_CORE},
    {"vit_pe_core_small_patch16_384", PE, 384, 512, 1, ATT_SMALL PE24 PE_CORE},
    {"vit_pe_core_tiny_patch16_384", PE, 384, 512, 1, ATT_TINY PE24 PE_CORE},
    {"vit_pe_lang_gigantic_patch14_448", PE, 448, 0, 1, P14 GIGANTIC47 PE_G32 PE_LANG NO_CLASS},
    {"vit_pe_lang_large_patch14_448", PE, 448, 0, 1, P14 LARGE23 PE32 PE_LANG},
    {"vit_pe_spatial_base_patch16_512", PE, 512, 0, 1, ATT_BASE PE32 PE_SPATIAL},
    {"vit_pe_spatial_gigantic_patch14_448", PE, 448, 0, 1, P14 GIGANTIC PE_G32 PE_LANG NO_CLASS},
    {"vit_pe_spatial_large_patch14_448", PE, 448, 0, 1, P14 ATT_LARGE PE32 PE_SPATIAL},
    {"vit_pe_spatial_small_patch16_512", PE, 512, 0, 1, ATT_SMALL PE32 PE_SPATIAL},
    {"vit_pe_spatial_tiny_patch16_512", PE, 512, 0, 1, ATT_TINY PE32 PE_SPATIAL},
    {"vit_small_patch16_dinov3", DINOV3, 256, 0, 1, ATT_SMALL DINOV3_STYLE UNBIASED},
    {"vit_small_patch16_dinov3_qkvb", DINOV3, 256, 0, 1, ATT_SMALL DINOV3_STYLE},
    {"vit_small_patch16_lingbot", LINGBOT, 512, 0, 1, ATT_SMALL LINGBOT_STYLE},
    {"vit_small_patch16_rope_224", ROPE_VIT, 224, 1000, 0.9, ATT_SMALL AXIAL ROTATED},
    {"vit_small_patch16_rope_ape_224", ROPE_VIT, 224, 1000, 0.9, ATT_SMALL AXIAL ROTATED_APE},
    {"vit_small_patch16_rope_mixed_224", ROPE_VIT, 224, 1000, 0.9, ATT_SMALL MIXED ROTATED},
    {"vit_small_patch16_rope_mixed_ape_224", ROPE_VIT, 224, 1000, 0.9, ATT_SMALL MIXED ROTATED_APE},
    {"vit_small_plus_patch16_dinov3", DINOV3, 256, 0, 1, ATT_SMALL DINOV3_STYLE GATED UNBIASED},
    {"vit_small_plus_patch16_dinov3_qkvb", DINOV3, 256, 0, 1, ATT_SMALL DINOV3_STYLE GATED},
    {"vit_tiny_patch16_dinov3_qkvb", DINOV3, 256, 0, 1, ATT_TINY DINOV3_STYLE},
};

/* timm's defaults: a class token; a learned position embedding, also for the tokens before the patches; one layer for
 * queries, keys and values, with biases of queries and values; the mean of the patches, then a layer norm. */
const att_variants att_eva_variants = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .shared = ATT_CLIP
    "patch_size=16 mlp_ratio=4 attn_drop_rate=0 class_token=true embed_class=true reg_tokens=0 "
    "pos_embed=learn qkv_bias=true qkv_fused=true scale_attn_norm=false scale_mlp_norm=false pre_norm=false "
    "final_norm=true init_values=0 norm_eps=1e-6 global_pool=avg attn_pool_num_heads=0 attn_pool_mlp_ratio=0 "
    "attn_type=" ATT_EVA_NO_KEY_BIAS " mlp_layer=mlp block_fn=" ATT_EVA_BLOCK " rope_type=" ATT_EVA_NO_ROPE
    " rope_temperature=10000 rope_grid_offset=0 rope_grid_indexing=ij rope_rotate_half=false "
    "ref_feat_shape=0"};
