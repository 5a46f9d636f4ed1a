/* The named ViTs. Dimensions and preprocessing are those of timm 1.0. */
#include "networks/models/variants.h"
#include "networks/models/vit.h"

#define P14 "patch_size=14 "
#define P32 "patch_size=32 "

/* Widths of tokens, blocks, heads, and widths of MLPs that are not four times as wide. */
#define XSMALL "embed_dim=256 depth=10 num_heads=4 "
#define WEE "embed_dim=256 depth=14 num_heads=4 mlp_ratio=5 "
#define WEE16 "embed_dim=256 depth=16 num_heads=4 mlp_ratio=5 "
#define LITTLE "embed_dim=320 depth=14 num_heads=5 mlp_ratio=5.6 "
#define SMALL18 "embed_dim=384 depth=18 num_heads=6 "
#define SMALL36 "embed_dim=384 depth=36 num_heads=6 "
#define BASE16 "embed_dim=768 depth=12 num_heads=16 "
#define BASE18 "embed_dim=768 depth=18 num_heads=12 "
#define PLUS "embed_dim=896 depth=12 num_heads=14 "
#define SO150M "embed_dim=896 depth=18 num_heads=14 mlp_ratio=2.5714285714285716 "  /* 2304 / 896 */
#define SO150M2 "embed_dim=832 depth=21 num_heads=13 mlp_ratio=2.6153846153846154 " /* 34 / 13 */
#define AIM_LARGE "embed_dim=1024 depth=24 num_heads=8 mlp_ratio=2.75 "
#define SO400M "embed_dim=1152 depth=27 num_heads=16 mlp_ratio=3.736111111111111 " /* 4304 / 1152 */
#define HUGE "embed_dim=1280 depth=32 num_heads=16 "
#define GIANT "embed_dim=1408 depth=40 num_heads=16 mlp_ratio=4.363636363636363 " /* 48 / 11 */
#define GIANT24 "embed_dim=1536 depth=40 num_heads=24 "
#define GIANT_GATED "embed_dim=1536 depth=40 num_heads=24 mlp_ratio=5.333333333333333 " /* 8192 / 1536 */
#define GIANTOPT "embed_dim=1536 depth=40 num_heads=16 "
#define AIM_HUGE "embed_dim=1536 depth=24 num_heads=12 mlp_ratio=2.6666666666666665 " /* 4096 / 1536 */
#define GIGANTIC "embed_dim=1664 depth=48 num_heads=16 mlp_ratio=4.923076923076923 "  /* 64 / 13 */
#define AIM_1B "embed_dim=2048 depth=24 num_heads=16 mlp_ratio=2.75 "
#define AIM_3B "embed_dim=3072 depth=24 num_heads=24 mlp_ratio=2.6666666666666665 " /* 8192 / 3072 */
#define TEST "embed_dim=64 depth=6 num_heads=2 mlp_ratio=3 "
#define TEST2 "embed_dim=64 depth=8 num_heads=2 mlp_ratio=3 "
#define TEST3 "embed_dim=96 depth=9 num_heads=3 mlp_ratio=2 "
#define TEST4 "embed_dim=96 depth=9 num_heads=3 mlp_ratio=3 "

/* Parts of networks. */
#define AVG "global_pool=avg "
#define NO_CLASS "class_token=false "
#define PATCHES AVG NO_CLASS
#define GAP PATCHES "fc_norm=false "
#define MAP NO_CLASS "global_pool=map "
#define APART "embed_class=false "
#define UNBIASED "qkv_bias=false "
#define SCALED "init_values=1e-5 "
#define RMS "norm_layer=rmsnorm "
#define RAW "mean=0 std=1 "
#define TANH "act_layer=gelu_tanh "
#define GATED "act_layer=silu mlp_layer=swiglu_packed "
#define BILINEAR "pos_embed_resize=" ATT_VIT_BILINEAR " "
#define CORNERS "pos_embed_resize=" ATT_VIT_CORNERS " "
#define POST_NORM "block_fn=" ATT_VIT_POST_NORM " "
#define PARALLEL "block_fn=" ATT_VIT_SCALING " "
#define DIFF_PARALLEL "block_fn=" ATT_VIT_DIFF_SCALING " "

/* Kinds of networks. */
#define REG1_TOKEN APART "reg_tokens=1 init_values=1 "
#define REG4_TOKENS APART SCALED "reg_tokens=4 "
#define TINY_REG PATCHES SCALED "reg_tokens=1 "
#define REG1_GAP TINY_REG APART
#define REG4_GAP PATCHES APART "reg_tokens=4 "
#define RADIO7 APART ATT_CLIP "final_norm=false reg_tokens=7 "
#define RADIO9 APART BILINEAR ATT_CLIP "final_norm=false reg_tokens=9 "
#define CLIP_STYLE ATT_CLIP "pre_norm=true norm_eps=1e-5 "
#define AIM                                                                      \
    GAP UNBIASED RMS ATT_CLIP                                                    \
        "proj_bias=false embed_norm_layer=rmsnorm norm_eps=1e-5 act_layer=silu " \
        "mlp_layer=swiglu "
#define BEIT3_STYLE AVG ATT_IMAGENET "scale_attn_norm=true scale_mlp_norm=true norm_eps=1e-5 "
#define XP APART UNBIASED RMS PARALLEL "pre_norm=true qk_norm=true "
#define BEIT AVG "pos_embed=none rel_pos_type=" ATT_VIT_BIAS " block_fn=" ATT_VIT_BEIT " "
#define RELATIVE "pos_embed=none rel_pos_type=" ATT_VIT_MLP " init_values=1e-6 "
#define RELATIVE_SHARED RELATIVE GAP UNBIASED "shared_rel_pos=true "

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

static const att_variant_row rows[] = {
    {"vit_tiny_patch16_224", VIT, 224, 1000, 0.9, ATT_TINY},
    {"vit_tiny_patch16_384", VIT, 384, 1000, 1, ATT_TINY},
    {"vit_small_patch32_224", VIT, 224, 1000, 0.9, P32 ATT_SMALL},
    {"vit_small_patch32_384", VIT, 384, 1000, 1, P32 ATT_SMALL},
    {"vit_small_patch16_224", VIT, 224, 1000, 0.9, ATT_SMALL},
    {"vit_small_patch16_384", VIT, 384, 1000, 1, ATT_SMALL},
    {"vit_small_patch8_224", VIT, 224, 1000, 0.9, "patch_size=8 " ATT_SMALL ATT_IMAGENET},
    {"vit_small_patch16_36x1_224", VIT, 224, 1000, 0.9, SMALL36 SCALED},
    {"vit_medium_patch16_gap_240", VIT, 240, 11821, 0.95, ATT_MEDIUM GAP UNBIASED "init_values=1e-6 "},
    {"vit_medium_patch16_gap_256", VIT, 256, 1000, 0.95, ATT_MEDIUM GAP UNBIASED "init_values=1e-6 "},
    {"vit_medium_patch16_gap_384", VIT, 384, 1000, 0.95, ATT_MEDIUM ATT_SQUASHED GAP UNBIASED "init_values=1e-6 "},
    {"vit_betwixt_patch16_gap_256", VIT, 256, 1000, 0.95, ATT_BETWIXT GAP UNBIASED "init_values=1e-6 "},
    {"vit_base_patch32_224", VIT, 224, 1000, 0.9, P32 ATT_BASE},
    {"vit_base_patch32_384", VIT, 384, 1000, 1, P32 ATT_BASE},
    {"vit_base_patch16_224", VIT, 224, 1000, 0.9, ATT_BASE},
    {"vit_base_patch16_384", VIT, 384, 1000, 1, ATT_BASE},
    {"vit_base_patch8_224", VIT, 224, 1000, 0.9, "patch_size=8 " ATT_BASE},
    {"vit_base_patch16_224_miil", VIT, 224, 11221, 0.875, ATT_BASE RAW ATT_LINEAR_IMAGES UNBIASED},
    {"vit_base_patch16_gap_224", VIT, 224, 1000, 0.9, BASE16 GAP},
    {"vit_base_patch32_plus_256", VIT, 256, 1000, 0.95, P32 PLUS SCALED},
    {"vit_base_patch16_plus_240", VIT, 240, 1000, 0.95, PLUS SCALED},
    {"vit_large_patch32_224", VIT, 224, 1000, 0.9, P32 ATT_LARGE},
    {"vit_large_patch32_384", VIT, 384, 1000, 1, P32 ATT_LARGE},
    {"vit_large_patch16_224", VIT, 224, 1000, 0.9, ATT_LARGE},
    {"vit_large_patch16_384", VIT, 384, 1000, 1, ATT_LARGE},
    {"vit_large_patch14_224", VIT, 224, 1000, 0.9, P14 ATT_LARGE},
    {"vit_huge_patch14_224", VIT, 224, 1000, 0.9, P14 HUGE},
    {"vit_giant_patch14_224", VIT, 224, 1000, 0.9, P14 GIANT},
    {"vit_gigantic_patch14_224", VIT, 224, 1000, 0.9, P14 GIGANTIC},
    {"test_vit", VIT, 160, 1000, 0.95, TEST},
    {"flexivit_small", FLEXIVIT, 240, 1000, 0.95, ATT_SMALL APART BILINEAR},
    {"flexivit_base", FLEXIVIT, 240, 1000, 0.95, ATT_BASE APART BILINEAR},
    {"flexivit_large", FLEXIVIT, 240, 1000, 0.95, ATT_LARGE APART BILINEAR},
    {"vit_small_patch14_dinov2", DINOV2, 518, 0, 1, P14 ATT_SMALL ATT_IMAGENET SCALED},
    {"vit_base_patch14_dinov2", DINOV2, 518, 0, 1, P14 ATT_BASE ATT_IMAGENET SCALED},
    {"vit_large_patch14_dinov2", DINOV2, 518, 0, 1, P14 ATT_LARGE ATT_IMAGENET SCALED},
    {"vit_base_patch16_siglip_gap_224", SIGLIP, 224, 0, 0.9, ATT_BASE GAP},
    {"vit_base_patch16_siglip_gap_256", SIGLIP, 256, 0, 0.9, ATT_BASE GAP},
    {"vit_base_patch16_siglip_gap_384", SIGLIP, 384, 0, 0.9, ATT_BASE GAP},
    {"vit_base_patch16_siglip_gap_512", SIGLIP, 512, 0, 0.9, ATT_BASE GAP},
    {"vit_large_patch16_siglip_gap_256", SIGLIP, 256, 0, 0.9, ATT_LARGE GAP},
    {"vit_large_patch16_siglip_gap_384", SIGLIP, 384, 0, 0.9, ATT_LARGE GAP},
    {"vit_so400m_patch14_siglip_gap_224", SIGLIP, 224, 0, 0.9, P14 SO400M GAP},
    {"vit_so400m_patch14_siglip_gap_378", SIGLIP, 378, 0, 0.9, P14 SO400M GAP},
    {"vit_so400m_patch14_siglip_gap_384", SIGLIP, 384, 0, 1, P14 SO400M GAP},
    {"vit_so400m_patch14_siglip_gap_448", SIGLIP, 448, 0, 1, P14 SO400M GAP},
    {"vit_so400m_patch14_siglip_gap_896", SIGLIP, 896, 0, 1, P14 SO400M GAP},
    {"test_vit2", VIT, 160, 1000, 0.95, TEST2 TINY_REG},
    {"test_vit3", VIT, 160, 1000, 0.95, TEST3 MAP "reg_tokens=1 pool_include_prefix=true " SCALED},
    {"test_vit4", VIT, 160, 1000, 0.95, TEST4 TINY_REG RMS},
    {"vit_wee_patch16_reg1_gap_256", VIT, 256, 1000, 0.95, WEE REG1_GAP},
    {"vit_little_patch16_reg1_gap_256", VIT, 256, 1000, 0.95, LITTLE REG1_GAP},
    {"vit_little_patch16_reg4_gap_256", VIT, 256, 1000, 0.95, LITTLE REG4_GAP SCALED},
    {"vit_medium_patch16_reg1_gap_256", VIT, 256, 1000, 0.95, ATT_MEDIUM REG1_GAP},
    {"vit_medium_patch16_reg4_gap_256", VIT, 256, 1000, 0.95, ATT_MEDIUM REG4_GAP SCALED},
    {"vit_betwixt_patch16_reg1_gap_256", VIT, 256, 1000, 0.95, ATT_BETWIXT REG1_GAP},
    {"vit_betwixt_patch16_reg4_gap_256", VIT, 256, 1000, 0.95, ATT_BETWIXT REG4_GAP SCALED},
    {"vit_betwixt_patch16_reg4_gap_384", VIT, 384, 1000, 1, ATT_BETWIXT REG4_GAP SCALED},
    {"vit_mediumd_patch16_reg4_gap_256", VIT, 256, 1000, 0.95, ATT_MEDIUMD REG4_GAP SCALED},
    {"vit_mediumd_patch16_reg4_gap_384", VIT, 384, 1000, 1, ATT_MEDIUMD REG4_GAP SCALED},
    {"vit_base_patch16_reg4_gap_256", VIT, 256, 1000, 0.9, ATT_BASE REG4_GAP},
    {"vit_base_patch16_rpn_224", VIT, 224, 1000, 0.9, ATT_BASE PATCHES UNBIASED SCALED POST_NORM},
    {"vit_so150m_patch16_reg4_gap_256", VIT, 256, 1000, 0.95, SO150M GAP "reg_tokens=4 "},
    {"vit_so150m_patch16_reg4_gap_384", VIT, 384, 1000, 1, SO150M GAP "reg_tokens=4 "},
    {"vit_so150m_patch16_reg4_map_256", VIT, 256, 1000, 0.9, SO150M MAP "reg_tokens=4 "},
    {"vit_so150m2_patch16_reg1_gap_256", VIT, 256, 1000, 1, SO150M2 TINY_REG UNBIASED},
    {"vit_so150m2_patch16_reg1_gap_384", VIT, 384, 1000, 1, SO150M2 TINY_REG UNBIASED},
    {"vit_so150m2_patch16_reg1_gap_448", VIT, 448, 1000, 1, SO150M2 ATT_SQUASHED TINY_REG UNBIASED},
    {"vit_huge_patch14_gap_224", VIT, 224, 0, 0.9, P14 HUGE ATT_IMAGENET GAP},
    {"vit_huge_patch16_gap_448", VIT, 448, 0, 1, HUGE ATT_IMAGENET GAP},
    {"vit_giant_patch16_gap_224", VIT, 224, 0, 0.9, GIANT ATT_IMAGENET GAP},
    {"vit_small_patch16_18x2_224", THINGS, 224, 1000, 0.9, SMALL18 SCALED "block_fn=ParallelThingsBlock "},
    {"vit_base_patch16_18x2_224", THINGS, 224, 1000, 0.9, BASE18 SCALED "block_fn=ParallelThingsBlock "},
    {"vit_dpwee_patch16_reg1_gap_256", SCALING, 256, 1000, 0.95, WEE16 REG1_GAP DIFF_PARALLEL},
    {"vit_pwee_patch16_reg1_gap_256", SCALING, 256, 1000, 0.95, WEE16 REG1_GAP PARALLEL},
    {"vit_base_patch16_xp_224", SCALING, 224, 1000, 0.9, ATT_BASE XP},
    {"vit_large_patch14_xp_224", SCALING, 224, 1000, 0.9, P14 ATT_LARGE XP},
    {"vit_huge_patch14_xp_224", SCALING, 224, 1000, 0.9, P14 HUGE XP},
    {"vit_dwee_patch16_reg1_gap_256", DIFFERENTIAL, 256, 1000, 0.95, WEE REG1_GAP "attn_layer=diff "},
    {"vit_dlittle_patch16_reg1_gap_256", DIFFERENTIAL, 256, 1000, 0.95, LITTLE REG1_GAP "attn_layer=diff "},
    {"vit_xsmall_patch16_clip_224", CLIP, 224, 512, 0.9, XSMALL CLIP_STYLE},
    {"vit_medium_patch16_clip_224", CLIP, 224, 512, 0.9, ATT_MEDIUM CLIP_STYLE},
    {"vit_medium_patch32_clip_224", CLIP, 224, 512, 0.9, P32 ATT_MEDIUM CLIP_STYLE},
    {"vit_betwixt_patch32_clip_224", CLIP, 224, 512, 0.9, P32 ATT_BETWIXT CLIP_STYLE},
    {"vit_base_patch16_clip_224", CLIP, 224, 1000, 0.95, ATT_BASE CLIP_STYLE},
    {"vit_base_patch16_clip_384", CLIP, 384, 1000, 1, ATT_BASE ATT_SQUASHED CLIP_STYLE},
    {"vit_base_patch16_clip_quickgelu_224", CLIP, 224, 512, 1, ATT_BASE "act_layer=quick_gelu " CLIP_STYLE},
    {"vit_base_patch32_clip_224", CLIP, 224, 1000, 0.9, P32 ATT_BASE CLIP_STYLE},
    {"vit_base_patch32_clip_256", CLIP, 256, 512, 1, P32 ATT_BASE CLIP_STYLE},
    {"vit_base_patch32_clip_384", CLIP, 384, 1000, 1, P32 ATT_BASE CLIP_STYLE},
    {"vit_base_patch32_clip_448", CLIP, 448, 1000, 1, P32 ATT_BASE CLIP_STYLE},
    {"vit_base_patch32_clip_quickgelu_224", CLIP, 224, 512, 0.9, P32 ATT_BASE "act_layer=quick_gelu " CLIP_STYLE},
    {"vit_base_patch16_plus_clip_240", CLIP, 240, 640, 1, PLUS CLIP_STYLE},
    {"vit_large_patch14_clip_224", CLIP, 224, 1000, 1, P14 ATT_LARGE ATT_HALF CLIP_STYLE},
    {"vit_large_patch14_clip_336", CLIP, 336, 1000, 1, P14 ATT_LARGE ATT_HALF ATT_SQUASHED CLIP_STYLE},
    {"vit_large_patch14_clip_quickgelu_224", CLIP, 224, 768, 1, P14 ATT_LARGE "act_layer=quick_gelu " CLIP_STYLE},
    {"vit_large_patch14_clip_quickgelu_336", CLIP, 336, 768, 1, P14 ATT_LARGE "act_layer=quick_gelu " CLIP_STYLE},
    {"vit_huge_patch14_clip_224", CLIP, 224, 1000, 1, P14 HUGE CLIP_STYLE},
    {"vit_huge_patch14_clip_336", CLIP, 336, 1000, 1, P14 HUGE ATT_SQUASHED CLIP_STYLE},
    {"vit_huge_patch14_clip_378", CLIP, 378, 1024, 1, P14 HUGE CLIP_STYLE},
    {"vit_huge_patch14_clip_quickgelu_224", CLIP, 224, 1024, 1, P14 HUGE "act_layer=quick_gelu " CLIP_STYLE},
    {"vit_huge_patch14_clip_quickgelu_378", CLIP, 378, 1024, 1, P14 HUGE "act_layer=quick_gelu " CLIP_STYLE},
    {"vit_giant_patch14_clip_224", CLIP, 224, 1024, 1, P14 GIANT CLIP_STYLE},
    {"vit_gigantic_patch14_clip_224", CLIP, 224, 1280, 1, P14 GIGANTIC CLIP_STYLE},
    {"vit_gigantic_patch14_clip_378", CLIP, 378, 1280, 1, P14 GIGANTIC ATT_SQUASHED CLIP_STYLE},
    {"vit_gigantic_patch14_clip_quickgelu_224", CLIP, 224, 1280, 1, P14 GIGANTIC "act_layer=quick_gelu " CLIP_STYLE},
    {"vit_base_patch32_siglip_gap_256", SIGLIP, 256, 0, 0.9, P32 ATT_BASE GAP TANH},
    {"vit_large_patch16_siglip_gap_512", SIGLIP, 512, 0, 0.9, ATT_LARGE GAP TANH},
    {"vit_so400m_patch16_siglip_gap_256", SIGLIP, 256, 0, 0.9, SO400M GAP TANH},
    {"vit_so400m_patch16_siglip_gap_384", SIGLIP, 384, 0, 0.9, SO400M GAP TANH},
    {"vit_so400m_patch16_siglip_gap_512", SIGLIP, 512, 0, 0.9, SO400M GAP TANH},
    {"vit_giantopt_patch16_siglip_gap_256", SIGLIP, 256, 0, 0.9, GIANTOPT GAP TANH},
    {"vit_giantopt_patch16_siglip_gap_384", SIGLIP, 384, 0, 0.9, GIANTOPT GAP TANH},
    {"vit_base_patch16_siglip_224", SIGLIP_MAP, 224, 0, 0.9, ATT_BASE MAP},
    {"vit_base_patch16_siglip_256", SIGLIP_MAP, 256, 0, 0.9, ATT_BASE MAP},
    {"vit_base_patch16_siglip_384", SIGLIP_MAP, 384, 0, 0.9, ATT_BASE MAP},
    {"vit_base_patch16_siglip_512", SIGLIP_MAP, 512, 0, 0.9, ATT_BASE MAP},
    {"vit_base_patch32_siglip_256", SIGLIP_MAP, 256, 0, 0.9, P32 ATT_BASE MAP TANH},
    {"vit_large_patch16_siglip_256", SIGLIP_MAP, 256, 0, 0.9, ATT_LARGE MAP},
    {"vit_large_patch16_siglip_384", SIGLIP_MAP, 384, 0, 0.9, ATT_LARGE MAP},
    {"vit_large_patch16_siglip_512", SIGLIP_MAP, 512, 0, 0.9, ATT_LARGE MAP TANH},
    {"vit_so400m_patch14_siglip_224", SIGLIP_MAP, 224, 0, 0.9, P14 SO400M MAP},
    {"vit_so400m_patch14_siglip_378", SIGLIP_MAP, 378, 0, 0.9, P14 SO400M MAP},
    {"vit_so400m_patch14_siglip_384", SIGLIP_MAP, 384, 0, 0.9, P14 SO400M MAP},
    {"vit_so400m_patch16_siglip_256", SIGLIP_MAP, 256, 0, 0.9, SO400M MAP TANH},
    {"vit_so400m_patch16_siglip_384", SIGLIP_MAP, 384, 0, 0.9, SO400M MAP TANH},
    {"vit_so400m_patch16_siglip_512", SIGLIP_MAP, 512, 0, 0.9, SO400M MAP TANH},
    {"vit_giantopt_patch16_siglip_256", SIGLIP_MAP, 256, 0, 0.9, GIANTOPT MAP TANH},
    {"vit_giantopt_patch16_siglip_384", SIGLIP_MAP, 384, 0, 0.9, GIANTOPT MAP TANH},
    {"vit_giant_patch14_dinov2", DINOV2, 518, 0, 1, P14 GIANT_GATED ATT_IMAGENET GATED SCALED},
    {"vit_small_patch14_reg4_dinov2", DINOV2_REG, 518, 0, 1, P14 ATT_SMALL ATT_IMAGENET REG4_TOKENS},
    {"vit_base_patch14_reg4_dinov2", DINOV2_REG, 518, 0, 1, P14 ATT_BASE ATT_IMAGENET REG4_TOKENS},
    {"vit_large_patch14_reg4_dinov2", DINOV2_REG, 518, 0, 1, P14 ATT_LARGE ATT_IMAGENET REG4_TOKENS},
    {"vit_giant_patch14_reg4_dinov2", DINOV2_REG, 518, 0, 1, P14 GIANT_GATED ATT_IMAGENET GATED REG4_TOKENS},
    {"vit_base_patch14_reg1_tipsv2", TIPS, 448, 0, 1, P14 ATT_BASE RAW REG1_TOKEN},
    {"vit_large_patch14_reg1_tipsv2", TIPS, 448, 0, 1, P14 ATT_LARGE RAW REG1_TOKEN},
    {"vit_so400m_patch14_reg1_tipsv2", TIPS, 448, 0, 1, P14 SO400M RAW REG1_TOKEN},
    {"vit_giant_patch14_reg1_tipsv2", TIPS, 448, 0, 1, P14 GIANT_GATED RAW GATED REG1_TOKEN},
    {"vit_base_patch16_radio_v3", RADIO, 512, 0, 1, ATT_BASE RADIO7 SCALED CORNERS},
    {"vit_large_patch16_radio_v3", RADIO, 512, 0, 1, ATT_LARGE RADIO7 SCALED BILINEAR},
    {"vit_so400m_patch16_radio_v4", RADIO, 512, 0, 1, SO400M RADIO9},
    {"vit_huge_patch16_radio_v3", RADIO, 512, 0, 1, HUGE RADIO7 CORNERS},
    {"vit_huge_patch16_radio_v4", RADIO, 512, 0, 1, HUGE RADIO9},
    {"vit_giant_patch16_radio_v3", RADIO, 512, 0, 1, GIANT24 RADIO7 BILINEAR},
    {"vit_intern300m_patch14_448", INTERN, 448, 0, 1, P14 ATT_LARGE ATT_IMAGENET "final_norm=false init_values=0.1 "},
    {"aimv2_large_patch14_224", AIMV2, 224, 0, 1, P14 AIM_LARGE AIM},
    {"aimv2_large_patch14_336", AIMV2, 336, 0, 1, P14 AIM_LARGE AIM},
    {"aimv2_large_patch14_448", AIMV2, 448, 0, 1, P14 AIM_LARGE AIM},
    {"aimv2_huge_patch14_224", AIMV2, 224, 0, 1, P14 AIM_HUGE AIM},
    {"aimv2_huge_patch14_336", AIMV2, 336, 0, 1, P14 AIM_HUGE AIM},
    {"aimv2_huge_patch14_448", AIMV2, 448, 0, 1, P14 AIM_HUGE AIM},
    {"aimv2_1b_patch14_224", AIMV2, 224, 0, 1, P14 AIM_1B AIM},
    {"aimv2_1b_patch14_336", AIMV2, 336, 0, 1, P14 AIM_1B AIM},
    {"aimv2_1b_patch14_448", AIMV2, 448, 0, 1, P14 AIM_1B AIM},
    {"aimv2_3b_patch14_224", AIMV2, 224, 0, 1, P14 AIM_3B AIM},
    {"aimv2_3b_patch14_336", AIMV2, 336, 0, 1, P14 AIM_3B AIM},
    {"aimv2_3b_patch14_448", AIMV2, 448, 0, 1, P14 AIM_3B AIM},
    {"beit3_base_patch16_224", BEIT3, 224, 1000, 1, ATT_BASE BEIT3_STYLE},
    {"beit3_large_patch16_224", BEIT3, 224, 1000, 1, ATT_LARGE BEIT3_STYLE},
    {"beit3_giant_patch14_224", BEIT3, 224, 1000, 1, P14 GIANT BEIT3_STYLE},
    {"beit3_giant_patch14_336", BEIT3, 336, 1000, 1, P14 GIANT BEIT3_STYLE},
    {"beit_base_patch16_224", BEIT_1, 224, 1000, 0.9, ATT_BASE BEIT "init_values=0.1 "},
    {"beit_base_patch16_384", BEIT_1, 384, 1000, 1, ATT_BASE BEIT "init_values=0.1 "},
    {"beit_large_patch16_224", BEIT_1, 224, 1000, 0.9, ATT_LARGE BEIT SCALED},
    {"beit_large_patch16_384", BEIT_1, 384, 1000, 1, ATT_LARGE BEIT SCALED},
    {"beit_large_patch16_512", BEIT_1, 512, 1000, 1, ATT_LARGE BEIT SCALED},
    {"beitv2_base_patch16_224", BEIT_2, 224, 1000, 0.9, ATT_BASE ATT_IMAGENET BEIT SCALED},
    {"beitv2_large_patch16_224", BEIT_2, 224, 1000, 0.95, ATT_LARGE ATT_IMAGENET BEIT SCALED},
    {"vit_relpos_small_patch16_224", RELPOS, 224, 1000, 0.9, ATT_SMALL RELATIVE PATCHES UNBIASED},
    {"vit_relpos_medium_patch16_224", RELPOS, 224, 1000, 0.9, ATT_MEDIUM RELATIVE PATCHES UNBIASED},
    {"vit_relpos_base_patch16_224", RELPOS, 224, 1000, 0.9, ATT_BASE RELATIVE PATCHES UNBIASED},
    {"vit_relpos_base_patch16_plus_240", RELPOS, 240, 1000, 0.9, PLUS RELATIVE GAP},
    {"vit_relpos_small_patch16_rpn_224", RELPOS, 224, 1000, 0.9, ATT_SMALL RELATIVE GAP UNBIASED POST_NORM},
    {"vit_relpos_medium_patch16_rpn_224", RELPOS, 224, 1000, 0.9, ATT_MEDIUM RELATIVE GAP UNBIASED POST_NORM},
    {"vit_relpos_base_patch16_rpn_224", RELPOS, 224, 1000, 0.9, ATT_BASE RELATIVE GAP UNBIASED POST_NORM},
    {"vit_relpos_base_patch32_plus_rpn_256", RELPOS, 256, 1000, 0.9, P32 PLUS RELATIVE GAP POST_NORM},
    {"vit_relpos_medium_patch16_cls_224", RELPOS, 224, 1000, 0.9, ATT_MEDIUM RELATIVE UNBIASED "rel_pos_dim=256 "},
    {"vit_relpos_base_patch16_cls_224", RELPOS, 224, 1000, 0.9, ATT_BASE RELATIVE UNBIASED},
    {"vit_relpos_base_patch16_clsgap_224", RELPOS, 224, 1000, 0.9, ATT_BASE RELATIVE UNBIASED AVG},
    {"vit_srelpos_small_patch16_224", RELPOS, 224, 1000, 0.9, ATT_SMALL RELATIVE_SHARED "rel_pos_dim=384 "},
    {"vit_srelpos_medium_patch16_224", RELPOS, 224, 1000, 0.9, ATT_MEDIUM RELATIVE_SHARED "rel_pos_dim=512 "},
    {"test_vit_relpos", RELPOS, 160, 1000, 0.95, TEST3 RELATIVE PATCHES UNBIASED},
    {"eva_large_patch14_196", EVA, 196, 1000, 1, P14 ATT_LARGE ATT_CLIP AVG},
    {"eva_large_patch14_336", EVA, 336, 1000, 1, P14 ATT_LARGE ATT_CLIP ATT_SQUASHED AVG},
    {"deit_tiny_patch16_224", DEIT, 224, 1000, 0.9, ATT_TINY ATT_IMAGENET},
    {"deit_small_patch16_224", DEIT, 224, 1000, 0.9, ATT_SMALL ATT_IMAGENET},
    {"deit_base_patch16_224", DEIT, 224, 1000, 0.9, ATT_BASE ATT_IMAGENET},
    {"deit_base_patch16_384", DEIT, 384, 1000, 1, ATT_BASE ATT_IMAGENET},
    {"deit_tiny_distilled_patch16_224", DEIT, 224, 1000, 0.9, ATT_TINY ATT_IMAGENET "distilled=true "},
    {"deit_small_distilled_patch16_224", DEIT, 224, 1000, 0.9, ATT_SMALL ATT_IMAGENET "distilled=true "},
    {"deit_base_distilled_patch16_224", DEIT, 224, 1000, 0.9, ATT_BASE ATT_IMAGENET "distilled=true "},
    {"deit_base_distilled_patch16_384", DEIT, 384, 1000, 1, ATT_BASE ATT_IMAGENET "distilled=true "},
    {"deit3_small_patch16_224", DEIT3, 224, 1000, 0.9, ATT_SMALL ATT_IMAGENET APART "init_values=1e-6 "},
    {"deit3_small_patch16_384", DEIT3, 384, 1000, 1, ATT_SMALL ATT_IMAGENET APART "init_values=1e-6 "},
    {"deit3_medium_patch16_224", DEIT3, 224, 1000, 0.9, ATT_MEDIUM ATT_IMAGENET APART "init_values=1e-6 "},
    {"deit3_base_patch16_224", DEIT3, 224, 1000, 0.9, ATT_BASE ATT_IMAGENET APART "init_values=1e-6 "},
    {"deit3_base_patch16_384", DEIT3, 384, 1000, 1, ATT_BASE ATT_IMAGENET APART "init_values=1e-6 "},
    {"deit3_large_patch16_224", DEIT3, 224, 1000, 0.9, ATT_LARGE ATT_IMAGENET APART "init_values=1e-6 "},
    {"deit3_large_patch16_384", DEIT3, 384, 1000, 1, ATT_LARGE ATT_IMAGENET APART "init_values=1e-6 "},
    {"deit3_huge_patch14_224", DEIT3, 224, 1000, 0.9, P14 HUGE ATT_IMAGENET APART "init_values=1e-6 "},
};

/* timm's defaults: a class token with a position, which the head reads after the last norm. */
const att_variants att_vit_variants = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .shared = ATT_HALF
    "patch_size=16 mlp_ratio=4 attn_drop_rate=0 class_token=true embed_class=true reg_tokens=0 "
    "distilled=false pos_embed=learn pos_embed_resize=bicubic rel_pos_type=none rel_pos_dim=0 "
    "shared_rel_pos=false qkv_bias=true proj_bias=true qk_norm=false scale_attn_norm=false "
    "scale_mlp_norm=false pre_norm=false final_norm=true pool_include_prefix=false init_values=0 "
    "norm_eps=1e-6 global_pool=token norm_layer=layernorm pixel_norm=false embed_norm_layer=none act_layer=gelu "
    "mlp_layer=mlp attn_layer=attn block_fn=" ATT_VIT_BLOCK " extra_layer=none"};
