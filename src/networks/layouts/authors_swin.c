/* Microsoft's own files of Swin. Those of Swin V2 do not tell for which windows their positions were trained. */
#include "networks/layouts/layout.h"

static const att_layout_row rows[] = {
    /* Here patches are merged at the end of a stage, in timm at the beginning of the next. */
    {"layers.#.downsample.reduction.@", .to = "layers.+.downsample.reduction.@"},
    {"layers.#.downsample.norm.@", .to = "layers.+.downsample.norm.@"},
    {"layers.#.blocks.#.attn.relative_position_index", .to = NULL, .computed = true},
    {"layers.#.blocks.#.attn_mask", .to = NULL, .computed = true},
    {"head.@", .to = "head.fc.@"},
};

const att_layout att_layout_authors_swin = {
    .name = "Microsoft's Swin",
    .prefixes = "",
    .signature = "layers.0.downsample.reduction.weight layers.0.blocks.0.attn.relative_position_bias_table",
    .variants =
        "swin_tiny_patch4_window7_224 swin_small_patch4_window7_224 swin_base_patch4_window7_224 "
        "swin_base_patch4_window12_384 swin_large_patch4_window7_224 swin_large_patch4_window12_384",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "",
};
