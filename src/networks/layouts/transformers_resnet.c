/* transformers' ResNets. */
#include <string.h>

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

static json_int_t size_of(const json_t *value, json_int_t otherwise)
{
    return value ? json_integer_value(value) : otherwise;
}

static att_status check_widths(const att_layout_source *source)
{
    enum { DEFAULT_STEM = 64, DEFAULT_FIRST = 256, BOTTLENECK = 4 };
    const json_t *sizes = json_object_get(source->config, "hidden_sizes");
    const char *type = json_string_value(json_object_get(source->config, "layer_type"));
    const json_int_t times = type && strcmp(type, "basic") == 0 ? 1 : BOTTLENECK;
    const json_int_t stem = size_of(json_object_get(source->config, "embedding_size"), DEFAULT_STEM);
    const json_int_t first = size_of(sizes ? json_array_get(sizes, 0) : NULL, DEFAULT_FIRST);
    bool regular = first % times == 0 && first / times == stem;
    for (size_t i = 1; regular && i < json_array_size(sizes); i++) {
        const json_int_t size = json_integer_value(json_array_get(sizes, i));
        regular = size % 2 == 0 && size / 2 == json_integer_value(json_array_get(sizes, i - 1));
    }
    if (regular)
        return ATT_OK;
    return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                    "%s: attscope has ResNets whose hidden_sizes begin with %d times embedding_size and double from "
                    "stage to stage; these do not",
                    source->path, (int)times);
}

static att_status complete(const att_layout_source *source, att_config *config)
{
    (void)config;
    ATT_TRY(att_layout_require_text(source, "hidden_act", "relu"));
    ATT_TRY(att_layout_require_number(source, "downsample_in_first_stage", 0));
    ATT_TRY(att_layout_require_number(source, "downsample_in_bottleneck", 0));
    return check_widths(source);
}

const att_layout att_layout_transformers_resnet = {
    .name = "transformers' ResNet",
    .types = "resnet",
    .prefixes = "resnet.",
    .signature = "embedder.embedder.convolution.weight",
    .variants = "resnet50 resnet18 resnet34 resnet26 resnet101 resnet152",
    ATT_LAYOUT_ROWS(rows),
    .defaults =
        "img_size=224 crop_pct=0.875 crop_mode=center interpolation=bicubic mean=0.485,0.456,0.406 "
        "std=0.229,0.224,0.225 ",
    .complete = complete,
};
