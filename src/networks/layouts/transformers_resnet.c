/* transformers' ResNets. */
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/layouts/layout.h"
#include "networks/models/placement.h"

#define LAYER "encoder.stages.#.layers.#."

static const att_layout_row rows[] = {
    {"embedder.embedder.convolution.weight", .to = "conv1.weight"},
    {"embedder.embedder.normalization.@", .to = "bn1.@"},
    {LAYER "layer.#.convolution.weight", .to = "layer+.#.conv+.weight"},
    {LAYER "layer.#.normalization.@", .to = "layer+.#.bn+.@"},
    {LAYER "shortcut.convolution.weight", .to = "layer+.#.downsample.0.weight"},
    {LAYER "shortcut.normalization.@", .to = "layer+.#.downsample.1.@"},
    {"classifier.1.@", .to = "fc.@", .bare = true},
};

static const char *const blocks[][2] = {{"basic", "basic"}, {"bottleneck", "bottleneck"}, {NULL, NULL}};

static const att_layout_setting settings[] = {
    {"num_channels", .option = "in_chans", .shown = true},
    {"embedding_size", .option = "width", .shown = true},
    {"depths", .option = "layers", .shown = true, .list = true},
    {"layer_type", .option = "block", .words = blocks, .shown = true},
    {"downsample_in_bottleneck", .option = "stride_in_1x1"},
    {.key = NULL},
};

enum { BOTTLENECK = 4 }; /* channels of a bottleneck's result over those of its stage */

static json_int_t size_of(const json_t *value, json_int_t otherwise)
{
    return value ? json_integer_value(value) : otherwise;
}

static bool is_basic(const att_layout_source *source)
{
    const char *type = json_string_value(json_object_get(source->config, "layer_type"));
    return type && strcmp(type, "basic") == 0;
}

static att_status check_widths(const att_layout_source *source)
{
    enum { DEFAULT_STEM = 64, DEFAULT_FIRST = 256 };
    const json_t *sizes = json_object_get(source->config, "hidden_sizes");
    const json_int_t times = is_basic(source) ? 1 : BOTTLENECK;
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
    if (is_basic(source)) /* the library's basic blocks ignore downsample_in_bottleneck */
        att_options_unset(&config->options, "stride_in_1x1");
    ATT_TRY(att_layout_require_text(source, "hidden_act", "relu"));
    ATT_TRY(att_layout_require_number(source, "downsample_in_first_stage", 0));
    return check_widths(source);
}

static att_status describe(const att_layout_target *target, att_json_writer *json)
{
    const att_option_values *options = &target->identity->options;
    int depths[ATT_STAGES], sizes[ATT_STAGES];
    const int stages = att_text_to_list(att_options_text(options, "layers"), 1, 1 << 16, depths, ATT_STAGES);
    const int times = strcmp(att_options_text(options, "block"), "basic") == 0 ? 1 : BOTTLENECK;
    for (int s = 0; s < stages; s++)
        sizes[s] = ((int)att_options_number(options, "width", 0) * times) << s;
    att_layout_put_list(json, "hidden_sizes", sizes, stages);
    return ATT_OK;
}

#define PLAIN "cardinality=1 base_width=64 "
static const att_layout_form forms[] = {
    {"ResNetForImageClassification", "resnet", "resnet.", PLAIN "fc.weight"},
    {"ResNetModel", "resnet", "", PLAIN "!fc.weight"},
    {.class = NULL},
};

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
    .forms = forms,
    .describe = describe,
};
