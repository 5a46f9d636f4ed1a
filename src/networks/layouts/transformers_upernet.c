/* transformers' UPerNet over Swin. */
#include <string.h>

#include "base/core/error.h"
#include "networks/layouts/transformers_swin.h"

/* A convolution and its batch norm. */
#define CONV(from_scope, to_scope)                                           \
    {from_scope ".conv.weight", .to = "segmenter." to_scope ".conv.weight"}, \
    {                                                                        \
        from_scope ".batch_norm.@", .to = "segmenter." to_scope ".bn.@"      \
    }

static const att_layout_row rows[] = {
    ATT_SWIN_ROWS,
    {"hidden_states_norms.stage+.@", .to = "segmenter.norms.#.@"},
    /* Files of older versions lack the backbone's last norm, which nothing reads. */
    {"hidden_states_norms.stage4.weight", .to = "norm.weight", .ones = true, .when = "!layernorm.weight"},
    {"hidden_states_norms.stage4.bias", .to = "norm.bias", .zeros = true, .when = "!layernorm.bias"},
    CONV("decode_head.psp_modules.#.1", "psp_modules.#.1"),
    CONV("decode_head.bottleneck", "bottleneck"),
    CONV("decode_head.lateral_convs.#", "lateral_convs.#"),
    CONV("decode_head.fpn_convs.#", "fpn_convs.#"),
    CONV("decode_head.fpn_bottleneck", "fpn_bottleneck"),
    {"decode_head.classifier.@", .to = "segmenter.conv_seg.@"},
    CONV("auxiliary_head.convs.#", "auxiliary_head.convs.#"),
    {"auxiliary_head.classifier.@", .to = "segmenter.auxiliary_head.conv_seg.@"},
};

/* Settings of the head, which are beside that of the backbone. */
static att_status check_number(const att_layout_source *source, const char *key, double number)
{
    const att_layout_source head = {source->context, source->file, source->path, source->root, source->root};
    return att_layout_require_number(&head, key, number);
}

static att_status check_scales(const att_layout_source *source)
{
    static const json_int_t scales[] = {1, 2, 3, 6};
    enum { SCALES = sizeof scales / sizeof *scales };
    const json_t *given = json_object_get(source->root, "pool_scales");
    bool same = !given || json_array_size(given) == SCALES;
    for (size_t i = 0; given && same && i < SCALES; i++)
        same = json_integer_value(json_array_get(given, i)) == scales[i];
    return same ? ATT_OK
                : att_fail(source->context, ATT_ERR_UNSUPPORTED,
                           "%s: pool_scales are not 1, 2, 3, 6, the only ones that attscope has", source->path);
}

/* The head must read all four stages. */
static att_status check_stages(const att_layout_source *source)
{
    static const char *const stages[] = {"stage1", "stage2", "stage3", "stage4"};
    enum { STAGES = sizeof stages / sizeof *stages };
    const json_t *given = json_object_get(source->config, "out_features");
    bool same = json_array_size(given) == STAGES;
    for (size_t i = 0; same && i < STAGES; i++) {
        const char *name = json_string_value(json_array_get(given, i));
        same = name && strcmp(name, stages[i]) == 0;
    }
    return same ? ATT_OK
                : att_fail(source->context, ATT_ERR_UNSUPPORTED,
                           "%s: out_features of backbone_config are not stage1 to stage4; attscope has UPerNet over "
                           "all four stages only",
                           source->path);
}

static att_status check_backbone(const att_layout_source *source, att_config *config)
{
    (void)config;
    const char *type = json_string_value(json_object_get(source->config, "model_type"));
    if (source->config != source->root && type && strcmp(type, "swin") == 0)
        return ATT_OK;
    return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                    "%s: the backbone of UPerNet has the model_type \"%.64s\"; attscope opens UPerNet over \"swin\"",
                    source->path, source->config != source->root && type ? type : "");
}

/* As a backbone, transformers' Swin shifts all windows, also those that are larger than the grid. */
static att_status complete(const att_layout_source *source, att_config *config)
{
    ATT_TRY(att_layout_check_swin(source));
    ATT_TRY(check_stages(source));
    ATT_TRY(check_scales(source));
    ATT_TRY(check_number(source, "auxiliary_num_convs", 1));
    ATT_TRY(check_number(source, "auxiliary_concat_input", 0));
    return att_layout_complete_uper(source, config);
}

const att_layout att_layout_transformers_upernet = {
    .name = "transformers' UPerNet",
    .types = "upernet",
    .prefixes = "backbone.swin. backbone.",
    .signature = "decode_head.fpn_bottleneck.conv.weight",
    .variants = ATT_SWIN_NAMES,
    ATT_LAYOUT_ROWS(rows),
    .settings = att_layout_swin_settings,
    .defaults = ATT_SWIN_DEFAULTS "always_partition=true pad_before_shift=true",
    .prepare = check_backbone,
    .complete = complete,
};
