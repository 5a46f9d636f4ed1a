/* mmdetection's Faster R-CNN with a feature pyramid over ResNet and ResNeXt, of version 2.0 and later. */
#include <ctype.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "networks/layouts/detector.h"

#define BOX_HEAD "roi_head.bbox_head."
#define PREDICTOR "detector.roi_heads.box_predictor."

static const att_layout_row rows[] = {
    {"conv1.weight", .to = "conv1.weight"},
    {"bn1.@", .to = "bn1.@"},
    {"layer*", .to = "layer*"},
    {"neck.lateral_convs.#.conv.@", .to = "detector.fpn.inner_blocks.#.0.@"},
    {"neck.fpn_convs.#.conv.@", .to = "detector.fpn.layer_blocks.#.0.@"},
    {"rpn_head.rpn_conv.@", .to = "detector.rpn.head.conv.0.0.@"},
    {"rpn_head.rpn_cls.@", .to = "detector.rpn.head.cls_logits.@"},
    {"rpn_head.rpn_reg.@", .to = "detector.rpn.head.bbox_pred.@"},
    {BOX_HEAD "shared_fcs.0.@", .to = "detector.roi_heads.box_head.fc6.@"},
    {BOX_HEAD "shared_fcs.1.@", .to = "detector.roi_heads.box_head.fc7.@"},
    {BOX_HEAD "fc_cls.@", .to = PREDICTOR "cls_score.@"},
    {BOX_HEAD "fc_reg.@", .to = PREDICTOR "bbox_pred.@"},
};

/* --- the configuration in the file -------------------------------------------------------------------------------- */

/* Settings that the tensors do not show, with the only value that attscope has. */
static const struct {
    const char *key, *value;
} assumed[] = {{"style", "'pytorch'"},        {"to_rgb", "True"},      {"bgr_to_rgb", "True"}, {"scales", "[8]"},
               {"ratios", "[0.5, 1.0, 2.0]"}, {"sampling_ratio", "0"}, {"finest_scale", "56"}};

static bool is_part_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Returns what follows "key=" in the Python text, from `at` on; NULL: the text has no such assignment. */
static const char *find_assignment(const char *text, const char *at, const char *key)
{
    const size_t length = strlen(key);
    for (; (at = strstr(at, key)); at += length)
        if (at[length] == '=' && (at == text || !is_part_of_name(at[-1])))
            return at + length + 1;
    return NULL;
}

static att_status check_setting(const att_layout_source *source, const char *text, const char *key, const char *value)
{
    for (const char *at = text; (at = find_assignment(text, at, key));) {
        const size_t length = strlen(value);
        if (strncmp(at, value, length) != 0 || is_part_of_name(at[length]))
            return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                            "%s: mmdetection's configuration in the file sets %s to %.*s; attscope opens detectors "
                            "with %s only",
                            source->path, key, (int)(*at == '[' ? strcspn(at, "]") + 1 : strcspn(at, ",)\n")), at,
                            value);
    }
    return ATT_OK;
}

/* A file without its configuration may tell by its name that the ResNet is Caffe's. */
static att_status check_configuration(const att_layout_source *source)
{
    const char *text = att_tensors_metadata(source->file, ATT_TENSORS_CONFIGURATION);
    if (!text && strstr(att_path_last(source->path), "caffe"))
        return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                        "%s: has a ResNet of the style 'caffe', by its name, whose strides and colours are others; "
                        "attscope opens detectors with the style 'pytorch' only",
                        source->path);
    for (size_t i = 0; text && i < sizeof assumed / sizeof *assumed; i++)
        ATT_TRY(check_setting(source, text, assumed[i].key, assumed[i].value));
    return ATT_OK;
}

/* --- the network -------------------------------------------------------------------------------------------------- */

static att_status refuse_head(const att_layout_source *source, const char *which)
{
    return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                    "%s: %s; of mmdetection's detectors with a proposal network, attscope opens Faster R-CNN of "
                    "version 2.0 and later, whose box head has two linear layers",
                    source->path, which);
}

static att_status prepare(const att_layout_source *source, att_config *config)
{
    (void)config;
    if (att_tensors_find(source->file, "bbox_head.fc_cls.weight") >= 0)
        return refuse_head(source, "is of a version before 2.0, whose boxes include their last pixels");
    if (att_tensors_find(source->file, BOX_HEAD "shared_fcs.1.weight") < 0)
        return refuse_head(source, "has no tensor \"" BOX_HEAD "shared_fcs.1.weight\"");
    return check_configuration(source);
}

static att_status complete(const att_layout_source *source, att_config *config)
{
    const double outputs = att_layout_rows_of(source, PREDICTOR "cls_score.weight", 2),
                 deltas = att_layout_rows_of(source, PREDICTOR "bbox_pred.weight", 2);
    ATT_TRY(att_layout_complete_detector(source, BOX_HEAD "fc_cls.weight", config));
    if (deltas == 4 * (outputs - 1))
        return ATT_OK;
    return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                    "%s: " BOX_HEAD
                    "fc_reg.weight has %g rows for %g classes, must have four for each class but the "
                    "background; boxes that all classes share are not supported",
                    source->path, deltas, outputs - 1);
}

static att_status name_classes(att_tensors *file)
{
    return att_layout_name_objects(file, "coco", 0);
}

const att_layout att_layout_mmdetection_detector = {
    .name = "mmdetection's Faster R-CNN",
    .prefixes = "backbone.",
    .signature = "layer1.0.conv1.weight neck.lateral_convs.0.conv.weight rpn_head.rpn_conv.weight",
    .variants = "resnet50 resnet101 resnext50_32x4d resnext101_32x4d resnext101_64x4d resnet18 resnet34 resnet152",
    ATT_LAYOUT_ROWS(rows),
    .defaults =
        "img_size=800,1333 crop_pct=1 crop_mode=keep interpolation=bilinear_plain mean=0.485,0.456,0.406 "
        "std=0.229,0.224,0.225 anchor_round=false anchor_stride=4 roi_samples=0 roi_aligned=true "
        "background_first=false box_bounded=true small_boxes=true",
    .prepare = prepare,
    .complete = complete,
    .name_classes = name_classes,
};
