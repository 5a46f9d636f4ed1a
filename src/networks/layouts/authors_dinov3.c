/* Meta's own files of DINOv3's ViTs. */
#include "networks/layouts/layout.h"

static const att_layout_row rows[] = {
    {"storage_tokens", .to = "reg_token"},
    {"rope_embed.periods", .to = NULL, .computed = true},
    /* The mask sets the bias of keys to 0, and the others' to what they are. */
    {"blocks.#.attn.qkv.bias", .to = "blocks.#.attn.q_bias", .end = 1, .of = 3},
    {"blocks.#.attn.qkv.bias", .to = "blocks.#.attn.v_bias", .first = 2, .of = 3},
    {"blocks.#.attn.qkv.bias_mask", .to = NULL, .computed = true},
    {"blocks.#.ls1.gamma", .to = "blocks.#.gamma_1"},
    {"blocks.#.ls2.gamma", .to = "blocks.#.gamma_2"},
    {"blocks.#.mlp.w1.@", .to = "blocks.#.mlp.fc1_g.@"},
    {"blocks.#.mlp.w2.@", .to = "blocks.#.mlp.fc1_x.@"},
    {"blocks.#.mlp.w3.@", .to = "blocks.#.mlp.fc2.@"},
    {"local_cls_norm.@", .to = NULL}, /* of the crops of its training */
};

const att_layout att_layout_authors_dinov3 = {
    .name = "Meta's DINOv3",
    .prefixes = "",
    .signature = "storage_tokens rope_embed.periods",
    .variants =
        "vit_base_patch16_dinov3_qkvb vit_small_patch16_dinov3_qkvb vit_large_patch16_dinov3_qkvb "
        "vit_small_plus_patch16_dinov3_qkvb vit_huge_plus_patch16_dinov3_qkvb vit_7b_patch16_dinov3",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "",
};
