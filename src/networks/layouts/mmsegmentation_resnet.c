/* mmsegmentation's UPerNet over ResNet-V1c, which timm calls resnet50c, and over other ResNets. */
#include "networks/layouts/mmsegmentation.h"

static const att_layout_row rows[] = {
    {"stem.0.weight", .to = "conv1.0.weight"},
    {"stem.1.@", .to = "conv1.1.@"},
    {"stem.3.weight", .to = "conv1.3.weight"},
    {"stem.4.@", .to = "conv1.4.@"},
    {"stem.6.weight", .to = "conv1.6.weight"},
    {"stem.7.@", .to = "bn1.@"},
    {"conv1.weight", .to = "conv1.weight"},
    {"bn1.@", .to = "bn1.@"},
    {"layer*", .to = "layer*"},
    ATT_MMSEG_HEADS,
};

const att_layout att_layout_mmsegmentation_resnet = {
    .name = "mmsegmentation's UPerNet over a ResNet",
    .prefixes = ATT_MMSEG_PREFIX,
    .signature = ATT_MMSEG_UPER "backbone.layer1.0.conv1.weight",
    .variants = "resnet50c resnet101c resnet50 resnet101 resnet18 resnet34",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "img_size=512 " ATT_MMSEG_IMAGES,
    .complete = att_layout_complete_uper,
};
