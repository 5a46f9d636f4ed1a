/* torchvision's Faster R-CNN: fasterrcnn_resnet50_fpn, whose older files have fewer levels of names, and
 * fasterrcnn_resnet50_fpn_v2; with any ResNet of torchvision, and any number of classes. */
#include <string.h>

#include "base/core/error.h"
#include "base/core/names.h"
#include "base/core/text.h"
#include "networks/heads/heads.h"
#include "networks/layouts/layout.h"
#include "networks/models/checkpoint.h"
#include "networks/models/torchvision.h"
#include "networks/tasks/task.h"

static const char deltas[] = "detector.roi_heads.box_predictor.bbox_pred.weight";

static const att_layout_row rows[] = {
    {"body.*", .to = "*"},
    {"fpn.inner_blocks.#.@", .to = "detector.fpn.inner_blocks.#.0.@"},
    {"fpn.inner_blocks.#.#.@", .to = "detector.fpn.inner_blocks.#.#.@"},
    {"fpn.layer_blocks.#.@", .to = "detector.fpn.layer_blocks.#.0.@"},
    {"fpn.layer_blocks.#.#.@", .to = "detector.fpn.layer_blocks.#.#.@"},
    {"rpn.head.conv.@", .to = "detector.rpn.head.conv.0.0.@"},
    {"rpn.head.conv.#.#.@", .to = "detector.rpn.head.conv.#.#.@"},
    {"rpn.head.cls_logits.@", .to = "detector.rpn.head.cls_logits.@"},
    {"rpn.head.bbox_pred.@", .to = "detector.rpn.head.bbox_pred.@"},
    {"roi_heads.box_head.*", .to = "detector.roi_heads.box_head.*"},
    {"roi_heads.box_predictor.*", .to = "detector.roi_heads.box_predictor.*"},
};

/* Rows of the tensor `name`; 0: there is none. */
static double rows_of(const att_layout_source *source, const char *name, int rank)
{
    att_shape shape;
    const int64_t *dims = att_checkpoint_dims(source->file, name, rank, &shape);
    return dims ? (double)dims[0] : 0;
}

/* As in torchvision, batch norms of its own weights have the eps 0. */
static bool has_no_eps(const char *path)
{
    const att_torchvision *known = att_torchvision_of_file(path);
    return known && strcmp(known->network, "fasterrcnn_resnet50_fpn") == 0;
}

static att_status complete(const att_layout_source *source, att_config *config)
{
    const att_task *task = att_task_of_parameter(source->context, deltas);
    const bool is_v2 = att_checkpoint_has(source->file, "detector.fpn.inner_blocks.0.1.weight");
    const double outputs = rows_of(source, "detector.roi_heads.box_predictor.cls_score.weight", 2);
    att_option_values *options = &config->options;
    if (outputs < 2)
        return att_fail(source->context, ATT_ERR_FORMAT,
                        "%s: roi_heads.box_predictor.cls_score.weight must have rows for the background and at least "
                        "one class",
                        source->path);
    if (task)
        att_options_set_text(options, "task", task->info.name);
    att_options_set_text(options, "head", is_v2 ? ATT_HEAD_RCNN_V2 : ATT_HEAD_RCNN);
    att_options_set(options, "num_classes", outputs - 1);
    att_options_set(options, "head_channels", rows_of(source, "detector.fpn.layer_blocks.0.0.weight", 4));
    att_options_set(
        options, "box_channels",
        rows_of(source, is_v2 ? "detector.roi_heads.box_head.5.weight" : "detector.roi_heads.box_head.fc6.weight", 2));
    if (has_no_eps(source->path))
        att_options_set(options, "bn_eps", 0);
    return ATT_OK;
}

/* Networks with as many outputs as COCO has numbers of categories, torchvision's default, are taken for those of COCO.
 */
static att_status name_classes(att_tensors *file)
{
    const att_known_classes *categories = att_known_classes_find("coco-91");
    const att_layout_source source = {.context = file->context, .file = file};
    att_text names = {.context = file->context};
    if (rows_of(&source, "detector.roi_heads.box_predictor.cls_score.weight", 2) != categories->count)
        return ATT_OK;
    for (int c = 1; c < categories->count; c++)
        att_text_append(&names, "%s\n", att_known_classes_label(categories, c));
    att_status status = names.failed ? att_fail_memory(file->context, names.length, "the names of classes")
                                     : att_tensors_add_metadata(file, ATT_TENSORS_CLASSES, names.data);
    att_text_free(&names);
    return status;
}

const att_layout att_layout_torchvision_detector = {
    .name = "torchvision's Faster R-CNN",
    .prefixes = "backbone.",
    .signature = "body.layer1.0.conv1.weight rpn.head.bbox_pred.weight roi_heads.box_predictor.bbox_pred.weight",
    .variants =
        "resnet50 resnet18 resnet34 resnet101 resnet152 resnext50_32x4d resnext101_32x8d wide_resnet50_2 "
        "wide_resnet101_2",
    ATT_LAYOUT_ROWS(rows),
    .defaults =
        "img_size=800,1333 crop_pct=1 crop_mode=within interpolation=bilinear_plain mean=0.485,0.456,0.406 "
        "std=0.229,0.224,0.225",
    .complete = complete,
    .name_classes = name_classes,
};

/* --- networks that attscope lacks --------------------------------------------------------------------------------- */

static att_status refuse(const att_layout_source *source, att_config *config)
{
    (void)config;
    return att_fail(source->context, ATT_ERR_UNSUPPORTED,
                    "%s: has the tensors of torchvision's fasterrcnn_mobilenet_v3_large_fpn or "
                    "fasterrcnn_mobilenet_v3_large_320_fpn; attscope has no MobileNet, and opens "
                    "fasterrcnn_resnet50_fpn and fasterrcnn_resnet50_fpn_v2",
                    source->path);
}

const att_layout att_layout_torchvision_mobile_detector = {
    .name = "torchvision's Faster R-CNN over a MobileNet",
    .prefixes = "backbone.",
    .signature = "body.0.0.weight rpn.head.bbox_pred.weight",
    .variants = "resnet50",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "",
    .prepare = refuse,
};
