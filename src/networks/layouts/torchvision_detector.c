/* torchvision's Faster R-CNN: fasterrcnn_resnet50_fpn, whose older files have fewer levels of names, and
 * fasterrcnn_resnet50_fpn_v2; with any ResNet of torchvision, and any number of classes. */
#include <string.h>

#include "base/core/error.h"
#include "networks/layouts/detector.h"
#include "networks/models/torchvision.h"

/* Older names come first, and are not written. */
static const att_layout_row rows[] = {
    {"body.conv1.weight", .to = "conv1.weight"},
    {"body.bn1.@", .to = "bn1.@"},
    {"body.layer#.#.conv#.weight", .to = "layer#.#.conv#.weight"},
    {"body.layer#.#.bn#.@", .to = "layer#.#.bn#.@"},
    {"body.layer#.#.downsample.#.@", .to = "layer#.#.downsample.#.@"},
    {"fpn.inner_blocks.#.@", .to = "detector.fpn.inner_blocks.#.0.@", .writes = ""},
    {"fpn.inner_blocks.#.#.@", .to = "detector.fpn.inner_blocks.#.#.@"},
    {"fpn.layer_blocks.#.@", .to = "detector.fpn.layer_blocks.#.0.@", .writes = ""},
    {"fpn.layer_blocks.#.#.@", .to = "detector.fpn.layer_blocks.#.#.@"},
    {"rpn.head.conv.@", .to = "detector.rpn.head.conv.0.0.@", .writes = ""},
    {"rpn.head.conv.#.#.@", .to = "detector.rpn.head.conv.#.#.@", .bare = true},
    {"rpn.head.cls_logits.@", .to = "detector.rpn.head.cls_logits.@", .bare = true},
    {"rpn.head.bbox_pred.@", .to = "detector.rpn.head.bbox_pred.@", .bare = true},
    {"roi_heads.box_head.*", .to = "detector.roi_heads.box_head.*", .bare = true},
    {"roi_heads.box_predictor.*", .to = "detector.roi_heads.box_predictor.*", .bare = true},
    {"body.*", .to = "*", .others = true, .writes = ""}, /* modules and other stems, which torchvision does not have */
};

static const att_layout_form forms[] = {
    {"FasterRCNN", NULL, "backbone.", "detector.rpn.head.cls_logits.weight in_chans=3 width=64"}, {.class = NULL}};

/* As in torchvision, batch norms of its own weights have the eps 0. */
static bool has_no_eps(const char *path)
{
    const att_torchvision *known = att_torchvision_of_file(path);
    return known && strcmp(known->network, "fasterrcnn_resnet50_fpn") == 0;
}

static att_status complete(const att_layout_source *source, att_config *config)
{
    if (has_no_eps(source->path))
        att_options_set(&config->options, "bn_eps", 0);
    return att_layout_complete_detector(source, "roi_heads.box_predictor.cls_score.weight", config);
}

/* Networks with as many outputs as COCO has numbers of categories, torchvision's default, are taken for those of COCO.
 */
static att_status name_classes(att_tensors *file)
{
    return att_layout_name_objects(file, "coco-91", 1);
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
    .forms = forms,
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
