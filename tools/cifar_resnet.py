"""Residual networks for CIFAR in PyTorch, for tools/versus_pytorch: bottlenecks with the ReLU after the addition, with
or without an attention module, and basic blocks with zero-padded shortcuts."""
import os
import sys

import torch
from torch import nn
from torch.nn import functional


def conv(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class SE(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(channels, channels // 16), nn.ReLU(inplace=True),
                                  nn.Linear(channels // 16, channels), nn.Sigmoid())

    def forward(self, x):
        return x * self.gate(x.mean((2, 3)))[:, :, None, None]


def module(name, channels):
    """Returns the attention module with its default options, None for "none". `step` also takes the identity."""
    if name in ("none", "se"):
        return SE(channels) if name == "se" else None
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "goldens"))
    import modules

    makers = {"eca": lambda: modules.EcaModule(channels=channels), "cbam": lambda: modules.CbamModule(channels),
              "fca": lambda: modules.Fca(channels), "srm": lambda: modules.Srm(channels),
              "step": lambda: modules.Step(channels, "affine", ("x_t1", "x_t"))}
    made = makers[name]()
    sys.path.pop(0)
    return made


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inputs, planes, stride, attention):
        super().__init__()
        outputs = 4 * planes
        self.conv1, self.bn1 = conv(inputs, planes, 1), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = conv(planes, planes, 3, stride), nn.BatchNorm2d(planes)
        self.conv3, self.bn3 = conv(planes, outputs, 1), nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
        self.module, self.wants_identity = module(attention, outputs), attention == "step"

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = functional.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        x = x if self.downsample is None else self.downsample(x)
        if self.module is not None:
            y = self.module(y, x) if self.wants_identity else self.module(y)
        return functional.relu(y + x, inplace=True)


class Basic(nn.Module):
    expansion = 1

    def __init__(self, inputs, planes, stride, attention):
        super().__init__()
        assert attention == "none"
        self.conv1, self.bn1 = conv(inputs, planes, 3, stride), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = conv(planes, planes, 3), nn.BatchNorm2d(planes)
        self.stride, self.added = stride, planes - inputs

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        if self.stride > 1:
            x = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.added // 2, self.added - self.added // 2))
        return functional.relu(y + x, inplace=True)


class CifarResNet(nn.Module):
    def __init__(self, block, blocks, attention="none", classes=10):
        super().__init__()
        self.conv1, self.bn1 = conv(3, 16, 3), nn.BatchNorm2d(16)
        layers, width = [], 16
        for stage, planes in enumerate((16, 32, 64)):
            for index in range(blocks):
                layers.append(block(width, planes, 2 if stage > 0 and index == 0 else 1, attention))
                width = planes * block.expansion
        self.layers, self.fc = nn.Sequential(*layers), nn.Linear(width, classes)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        return self.fc(self.layers(x).mean((2, 3)))


def create(name, attention="none"):
    """Returns the network, None for an unknown name. attention: the module of networks with bottlenecks."""
    makers = {"resnet20": lambda: CifarResNet(Basic, 3), "resnet29": lambda: CifarResNet(Bottleneck, 3, attention),
              "resnet164": lambda: CifarResNet(Bottleneck, 18, attention),
              "seresnet164": lambda: CifarResNet(Bottleneck, 18, "se")}
    return makers[name]() if name in makers else None
