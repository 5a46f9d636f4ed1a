/* BAAI's own files of EVA-02. */
#include "networks/layouts/layout.h"

static const att_layout_row rows[] = {
    {"rope.freqs_@", .to = NULL, .computed = true},
    {"blocks.#.attn.rope.freqs_@", .to = NULL, .computed = true},
    {"blocks.#.attn.q_bias", .to = "blocks.#.attn.q_proj.bias"},
    {"blocks.#.attn.v_bias", .to = "blocks.#.attn.v_proj.bias"},
    {"blocks.#.attn.inner_attn_ln.@", .to = "blocks.#.attn.norm.@"},
    {"blocks.#.mlp.w1.@", .to = "blocks.#.mlp.fc1_g.@"},
    {"blocks.#.mlp.w2.@", .to = "blocks.#.mlp.fc1_x.@"},
    {"blocks.#.mlp.ffn_ln.@", .to = "blocks.#.mlp.norm.@"},
    {"blocks.#.mlp.w3.@", .to = "blocks.#.mlp.fc2.@"},
};

/* The files of the base and large networks; the small ones have other MLPs. */
const att_layout att_layout_authors_eva02 = {
    .name = "BAAI's EVA-02",
    .prefixes = "",
    .signature = "blocks.0.mlp.w1.weight blocks.0.mlp.ffn_ln.weight blocks.0.attn.q_proj.weight pos_embed",
    .variants = "eva02_base_patch14_224 eva02_large_patch14_224 eva02_base_patch14_448 eva02_large_patch14_448",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "",
};
