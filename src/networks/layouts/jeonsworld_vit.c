/* ViTs of jeonsworld/ViT-pytorch. */
#include "networks/layouts/layout.h"

#define EMBEDDINGS "transformer.embeddings."
#define LAYER "transformer.encoder.layer.#."

static const att_layout_row rows[] = {
    {EMBEDDINGS "cls_token", .to = "cls_token"},
    {EMBEDDINGS "position_embeddings", .to = "pos_embed"},
    {EMBEDDINGS "patch_embeddings.@", .to = "patch_embed.proj.@"},
    {LAYER "attention_norm.@", .to = "blocks.#.norm1.@"},
    {LAYER "attn.query.@", .to = "blocks.#.attn.qkv.@"},
    {LAYER "attn.key.@", .to = "blocks.#.attn.qkv.@", .part = 1},
    {LAYER "attn.value.@", .to = "blocks.#.attn.qkv.@", .part = 2},
    {LAYER "attn.out.@", .to = "blocks.#.attn.proj.@"},
    {LAYER "ffn_norm.@", .to = "blocks.#.norm2.@"},
    {LAYER "ffn.fc1.@", .to = "blocks.#.mlp.fc1.@"},
    {LAYER "ffn.fc2.@", .to = "blocks.#.mlp.fc2.@"},
    {"transformer.encoder.encoder_norm.@", .to = "norm.@"},
    {"head.@", .to = "head.@"},
};

/* The number of heads is that of the variant as wide. */
const att_layout att_layout_jeonsworld_vit = {
    .name = "jeonsworld's ViT",
    .prefixes = "",
    .signature = EMBEDDINGS "position_embeddings",
    .variants =
        "vit_base_patch16_224 vit_base_patch32_224 vit_large_patch16_224 vit_large_patch32_224 "
        "vit_huge_patch14_224",
    ATT_LAYOUT_ROWS(rows),
    .defaults =
        "norm_eps=1e-6 act_layer=gelu global_pool=token crop_pct=1 crop_mode=squash interpolation=bilinear "
        "mean=0.5,0.5,0.5 std=0.5,0.5,0.5 ",
};
