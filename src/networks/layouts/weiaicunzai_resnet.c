/* ResNets of weiaicunzai/pytorch-cifar100. */
#include "networks/layouts/layout.h"

#define STAGE(stage, layer)                                                     \
    {stage ".#.residual_function.0.weight", .to = layer ".#.conv1.weight"},     \
        {stage ".#.residual_function.1.@", .to = layer ".#.bn1.@"},             \
        {stage ".#.residual_function.3.weight", .to = layer ".#.conv2.weight"}, \
        {stage ".#.residual_function.4.@", .to = layer ".#.bn2.@"},             \
        {stage ".#.residual_function.6.weight", .to = layer ".#.conv3.weight"}, \
        {stage ".#.residual_function.7.@", .to = layer ".#.bn3.@"},             \
        {stage ".#.shortcut.0.weight", .to = layer ".#.downsample.0.weight"},   \
    {                                                                           \
        stage ".#.shortcut.1.@", .to = layer ".#.downsample.1.@"                \
    }

static const att_layout_row rows[] = {
    {"conv1.0.weight", .to = "conv1.weight"},
    {"conv1.1.@", .to = "bn1.@"},
    STAGE("conv2_x", "layer1"),
    STAGE("conv3_x", "layer2"),
    STAGE("conv4_x", "layer3"),
    STAGE("conv5_x", "layer4"),
    {"fc.@", .to = "fc.@"},
};

const att_layout att_layout_weiaicunzai_resnet = {
    .name = "weiaicunzai's ResNet for CIFAR-100",
    .prefixes = "",
    .signature = "conv2_x.0.residual_function.0.weight",
    .variants = "resnet18 resnet34 resnet50 resnet101 resnet152",
    ATT_LAYOUT_ROWS(rows),
    .defaults =
        "img_size=32 crop_pct=1 crop_mode=center interpolation=bicubic "
        "mean=0.5070751592371323,0.48654887331495095,0.4408891046237 "
        "std=0.2673342858792401,0.2564384629170883,0.27615047132568404 ",
};
