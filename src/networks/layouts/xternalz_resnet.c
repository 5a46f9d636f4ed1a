/* Wide ResNets for CIFAR of xternalz/WideResNet-pytorch, whose names many programs have. */
#include "networks/layouts/layout.h"

static const att_layout_row rows[] = {
    {"conv1.weight", .to = "conv1.weight"},
    {"block#.layer.#.bn#.@", .to = "layer#.#.bn#.@"},
    {"block#.layer.#.conv#.weight", .to = "layer#.#.conv#.weight"},
    {"block#.layer.#.convShortcut.weight", .to = "layer#.#.downsample.0.weight"},
    {"bn1.@", .to = "bn.@"},
    {"fc.@", .to = "fc.@"},
};

const att_layout att_layout_xternalz_resnet = {
    .name = "xternalz' Wide ResNet",
    .prefixes = "",
    .signature = "block1.layer.0.conv1.weight block1.layer.0.convShortcut.weight bn1.running_mean",
    .variants = "wide_resnet28_10 wide_resnet16_8 wide_resnet40_2",
    ATT_LAYOUT_ROWS(rows),
    .defaults =
        "img_size=32 crop_pct=1 crop_mode=center interpolation=bicubic "
        "mean=0.49137254901960784,0.4823529411764706,0.4466666666666667 "
        "std=0.24705882352941178,0.24352941176470588,0.2615686274509804 ",
};
