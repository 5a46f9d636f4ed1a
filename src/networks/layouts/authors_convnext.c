/* Meta's own files of ConvNeXt. */
#include "networks/layouts/layout.h"

#define BLOCK "stages.#.#."
#define TIMMS "stages.#.blocks.#."

static const att_layout_row rows[] = {
    {"downsample_layers.0.#.@", .to = "stem.#.@"},
    {"downsample_layers.#.#.@", .to = "stages.#.downsample.#.@", .others = true},
    {BLOCK "dwconv.@", .to = TIMMS "conv_dw.@"},
    {BLOCK "norm.@", .to = TIMMS "norm.@"},
    {BLOCK "pwconv1.@", .to = TIMMS "mlp.fc1.@"},
    {BLOCK "pwconv2.@", .to = TIMMS "mlp.fc2.@"},
    {BLOCK "gamma", .to = TIMMS "gamma"},
    {"norm.@", .to = "head.norm.@"},
    {"head.@", .to = "head.fc.@"},
};

/* ConvNeXt V2 has response norms in its blocks. */
const att_layout att_layout_authors_convnext = {
    .name = "Meta's ConvNeXt",
    .prefixes = "",
    .signature = "downsample_layers.0.0.weight stages.0.0.dwconv.weight norm.weight !stages.0.0.grn.gamma",
    .variants = "convnext_tiny convnext_small convnext_base convnext_large convnext_xlarge",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "crop_pct=0.875 ",
};
