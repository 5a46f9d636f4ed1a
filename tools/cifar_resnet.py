"""Residual networks for CIFAR in PyTorch, for tools/versus_pytorch: bottlenecks with the ReLU behind the addition, with
or without squeeze and excitation, and basic blocks with zero-padded shortcuts."""
import torch
from torch import nn
from torch.nn import functional


def conv(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


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
        self.gate = None
        if attention:
            self.gate = nn.Sequential(nn.Linear(outputs, outputs // 16), nn.ReLU(inplace=True),
                                      nn.Linear(outputs // 16, outputs), nn.Sigmoid())

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = functional.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        if self.gate is not None:
            y = y * self.gate(y.mean((2, 3)))[:, :, None, None]
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)), inplace=True)


class Basic(nn.Module):
    expansion = 1

    def __init__(self, inputs, planes, stride, attention):
        super().__init__()
        assert not attention
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
    def __init__(self, block, blocks, attention=False, classes=10):
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


def create(name):
    """The network, None for a name that is not one of these."""
    makers = {"resnet20": lambda: CifarResNet(Basic, 3), "resnet164": lambda: CifarResNet(Bottleneck, 18),
              "seresnet164": lambda: CifarResNet(Bottleneck, 18, attention=True)}
    return makers[name]() if name in makers else None
