/* transformers' ResNets. */
#include "base/core/error.h"
#include "networks/layouts/layout.h"

#define LAYER "encoder.stages.#.layers.#."

static const att_layout_row rows[] = {
    {"embedder.embedder.convolution.weight", .to = "conv1.weight"},
    {"embedder.embedder.normalization.@", .to = "bn1.@"},
    {LAYER "layer.#.convolution.weight", .to = "layer+.#.conv+.weight"},
    {LAYER "layer.#.normalization.@", .to = "layer+.#.bn+.@"},
    {LAYER "shortcut.convolution.weight", .to = "layer+.#.downsample.0.weight"},
    {LAYER "shortcut.normalization.@", .to = "layer+.#.downsample.1.@"},
    {"classifier.1.@", .to = "fc.@"},
};

static const att_layout_setting settings[] = {{NULL, NULL, NULL}};

static att_status complete(const att_layout_source *source, att_config *config)
{
    (void)config;
    ATT_TRY(att_layout_require_text(source, "hidden_act", "relu"));
    ATT_TRY(att_layout_require_number(source, "downsample_in_first_stage", 0));
    return att_layout_require_number(source, "downsample_in_bottleneck", 0);
}

const att_layout att_layout_transformers_resnet = {
    .name = "transformers' ResNet",
    .types = "resnet",
    .prefixes = "resnet.",
    .signature = "embedder.embedder.convolution.weight",
    .variants = "resnet50 resnet18 resnet34 resnet26 resnet101 resnet152",
    ATT_LAYOUT_ROWS(rows),
    .settings = settings,
    .defaults =
        "img_size=224 crop_pct=0.875 crop_mode=center interpolation=bicubic mean=0.485,0.456,0.406 "
        "std=0.229,0.224,0.225 ",
    .complete = complete,
};
