/* Meta's own files of DeiT III. */
#include "networks/layouts/layout.h"

static const att_layout_row rows[] = {
    {"blocks.#.gamma_1", .to = "blocks.#.ls1.gamma"},
    {"blocks.#.gamma_2", .to = "blocks.#.ls2.gamma"},
};

/* CaiT has these tensors, too, and blocks of the class token only; timm's EVAs with learned rotary positions have their
 * frequencies, those with fixed ones do not. BEiT has biases of queries and values. */
const att_layout att_layout_authors_deit3 = {
    .name = "Meta's DeiT III",
    .prefixes = "",
    .signature = "blocks.0.gamma_1 blocks.0.attn.qkv.bias cls_token pos_embed !blocks_token_only.0.gamma_1 !rope.freqs",
    .variants =
        "deit3_base_patch16_224 deit3_base_patch16_384 deit3_small_patch16_224 deit3_small_patch16_384 "
        "deit3_medium_patch16_224 deit3_large_patch16_224 deit3_large_patch16_384 deit3_huge_patch14_224",
    .alike = "timm's ViTs with fixed rotary positions (vit_small_patch16_rope_ape_224)",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "",
};
