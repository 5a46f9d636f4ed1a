/* Meta's own files of DINOv2: networks with registers, and the giant one without. Others have timm's names. */
#include "networks/layouts/layout.h"

#define REGISTERS "register_tokens"

static const att_layout_row rows[] = {
    {"cls_token", .to = "cls_token"},
    {"pos_embed", .to = "pos_embed", .when = "!" REGISTERS},
    /* With registers, positions are added before these come in; the class token's is a part of it. */
    {"pos_embed", .to = "pos_embed", .first = 1, .when = REGISTERS},
    {"pos_embed", .to = "cls_token", .end = 1, .add = true, .when = REGISTERS},
    {REGISTERS, .to = "reg_token"},
    {"blocks.#.mlp.w12.@", .to = "blocks.#.mlp.fc1.@"},
    {"blocks.#.mlp.w3.@", .to = "blocks.#.mlp.fc2.@"},
};

const att_layout att_layout_authors_dinov2_registers = {
    .name = "Meta's DINOv2 with registers",
    .prefixes = "",
    .signature = REGISTERS " blocks.0.ls1.gamma",
    .variants =
        "vit_base_patch14_reg4_dinov2 vit_small_patch14_reg4_dinov2 vit_large_patch14_reg4_dinov2 "
        "vit_giant_patch14_reg4_dinov2",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "",
};

const att_layout att_layout_authors_dinov2_giant = {
    .name = "Meta's DINOv2",
    .prefixes = "",
    .signature = "blocks.0.mlp.w12.weight blocks.0.ls1.gamma",
    .variants = "vit_giant_patch14_dinov2",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "",
};
