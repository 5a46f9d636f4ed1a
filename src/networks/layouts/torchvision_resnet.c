/* torchvision's ResNets, whose names are timm's. */
#include "networks/layouts/layout.h"

static const att_layout_row rows[] = {
    {"conv1.weight", .to = "conv1.weight"},
    {"bn1.@", .to = "bn1.@"},
    {"layer#.#.conv#.weight", .to = "layer#.#.conv#.weight"},
    {"layer#.#.bn#.@", .to = "layer#.#.bn#.@"},
    {"layer#.#.downsample.#.@", .to = "layer#.#.downsample.#.@"},
    {"fc.@", .to = "fc.@"},
};

static const att_layout_form forms[] = {
    {"ResNet", NULL, "", "stem_type=conv7 stem_pool=1 fc.weight in_chans=3 width=64"}, {.class = NULL}};

const att_layout att_layout_torchvision_resnet = {
    .name = "torchvision's ResNet",
    .prefixes = "",
    .variants =
        "resnet18 resnet34 resnet50 resnet101 resnet152 resnext50_32x4d resnext101_32x8d resnext101_64x4d "
        "wide_resnet50_2 wide_resnet101_2",
    ATT_LAYOUT_ROWS(rows),
    .defaults = "",
    .forms = forms,
};
