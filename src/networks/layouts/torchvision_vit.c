/* torchvision's ViTs. */
#include "networks/layouts/layout.h"

#define LAYER "encoder.layers.encoder_layer_#."

static const att_layout_row rows[] = {
    {"class_token", .to = "cls_token"},
    {"encoder.pos_embedding", .to = "pos_embed"},
    {"conv_proj.@", .to = "patch_embed.proj.@"},
    {LAYER "ln_1.@", .to = "blocks.#.norm1.@"},
    {LAYER "self_attention.in_proj_weight", .to = "blocks.#.attn.qkv.weight"},
    {LAYER "self_attention.in_proj_bias", .to = "blocks.#.attn.qkv.bias"},
    {LAYER "self_attention.out_proj.@", .to = "blocks.#.attn.proj.@"},
    {LAYER "ln_2.@", .to = "blocks.#.norm2.@"},
    /* The second names are those before torchvision 0.13. */
    {LAYER "mlp.0.@", .also = LAYER "mlp.linear_1.@", .to = "blocks.#.mlp.fc1.@"},
    {LAYER "mlp.3.@", .also = LAYER "mlp.linear_2.@", .to = "blocks.#.mlp.fc2.@"},
    {"encoder.ln.@", .to = "norm.@"},
    {"heads.head.@", .also = "heads.0.@", .to = "head.@"},
};

static const att_layout_form forms[] = {
    {"VisionTransformer", NULL, "",
     ATT_LAYOUT_TOKENS ATT_LAYOUT_CLASS "blocks.0.attn.qkv.bias head.weight in_chans=3 " ATT_LAYOUT_SQUARE},
    {.class = NULL},
};

/* The number of heads is that of the variant as wide. */
const att_layout att_layout_torchvision_vit = {
    .name = "torchvision's ViT",
    .prefixes = "",
    .signature = "encoder.layers.encoder_layer_0.ln_1.weight",
    .variants =
        "vit_base_patch16_224 vit_base_patch32_224 vit_large_patch16_224 vit_large_patch32_224 "
        "vit_huge_patch14_224",
    ATT_LAYOUT_ROWS(rows),
    .defaults =
        "norm_eps=1e-6 act_layer=gelu pos_embed_resize=bicubic_plain global_pool=token crop_pct=0.875 "
        "crop_mode=center interpolation=bilinear mean=0.485,0.456,0.406 std=0.229,0.224,0.225 ",
    .forms = forms,
};
