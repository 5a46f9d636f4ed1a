"""Inference of mmdetection's Faster R-CNN with a feature pyramid, in PyTorch and torchvision, from the papers'
definitions and mmdetection's documented settings. Names of parameters are mmdetection's."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.ops import nms, roi_align

RATIOS, STRIDES, PARTS, FINEST = (0.5, 1.0, 2.0), (4, 8, 16, 32, 64), 7, 56
SHRINK = math.log(1000 / 16)


class Conv(nn.Module):
    def __init__(self, inputs, outputs, kernel):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2)

    def forward(self, x):
        return self.conv(x)


def decoded(boxes, deltas, shown):
    """Boxes [N, 4] changed by deltas [N, 4], clipped to the height and width that the image has."""
    centre, sides = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    centre = centre + deltas[:, :2] * sides
    half = sides * deltas[:, 2:].clamp(-SHRINK, SHRINK).exp() / 2
    corners = torch.stack([centre - half, centre + half], 1)
    most = corners.new_tensor([shown[1], shown[0]])
    return corners.clamp(min=0).minimum(most).flatten(1)


def suppressed(boxes, scores, groups, overlap, most):
    """The indices that non-maximum suppression within each group leaves, in the order of their scores."""
    kept = [(groups == g).nonzero()[:, 0] for g in groups.unique()]
    kept = torch.cat([k[nms(boxes[k], scores[k], overlap)] for k in kept]) if kept else groups
    return kept[scores[kept].sort(descending=True, stable=True)[1]][:most]


class Detector(nn.Module):
    """backbone: a ResNet of torchvision, whose stages have the channels `widths`."""

    def __init__(self, backbone, widths, channels, box_channels, classes, scale=8, per_level=1000, proposals=1000,
                 detections=100):
        super().__init__()
        del backbone.fc
        self.backbone, self.classes, self.scale = backbone, classes, scale
        self.per_level, self.proposals, self.detections = per_level, proposals, detections
        self.neck = nn.ModuleDict({"lateral_convs": nn.ModuleList(Conv(width, channels, 1) for width in widths),
                                   "fpn_convs": nn.ModuleList(Conv(channels, channels, 3) for _ in widths)})
        self.rpn_head = nn.ModuleDict({"rpn_conv": nn.Conv2d(channels, channels, 3, padding=1),
                                       "rpn_cls": nn.Conv2d(channels, len(RATIOS), 1),
                                       "rpn_reg": nn.Conv2d(channels, 4 * len(RATIOS), 1)})
        shared = [nn.Linear(channels * PARTS ** 2, box_channels), nn.Linear(box_channels, box_channels)]
        self.roi_head = nn.ModuleDict({"bbox_head": nn.ModuleDict({"shared_fcs": nn.ModuleList(shared),
                                                                   "fc_cls": nn.Linear(box_channels, classes + 1),
                                                                   "fc_reg": nn.Linear(box_channels, 4 * classes)})})

    def pyramid(self, x):
        net, maps = self.backbone, []
        x = net.maxpool(net.relu(net.bn1(net.conv1(x))))
        for stage in (net.layer1, net.layer2, net.layer3, net.layer4):
            x = stage(x)
            maps.append(x)
        sums = [lateral(x) for lateral, x in zip(self.neck["lateral_convs"], maps)]
        for i in range(len(sums) - 1, 0, -1):
            sums[i - 1] = sums[i - 1] + F.interpolate(sums[i], sums[i - 1].shape[2:], mode="nearest")
        levels = [conv(x) for conv, x in zip(self.neck["fpn_convs"], sums)]
        return [*levels, levels[-1][:, :, ::2, ::2]]

    def answers(self, levels):
        """Objectness and deltas of all anchors of each level."""
        hidden = [F.relu(self.rpn_head["rpn_conv"](x)) for x in levels]
        return [self.rpn_head["rpn_cls"](x) for x in hidden], [self.rpn_head["rpn_reg"](x) for x in hidden]

    def anchors(self, level, height, width, like):
        stretch, side = like.new_tensor(RATIOS).sqrt(), self.scale * STRIDES[level]
        half = torch.stack([side / stretch, side * stretch], 1) / 2
        y, x = (STRIDES[level] * torch.arange(n, dtype=like.dtype) for n in (height, width))
        places = torch.stack([x.repeat(height), y.repeat_interleave(width)], 1)[:, None]
        return torch.cat([places - half, places + half], 2).reshape(-1, 4)

    def propose(self, objectness, deltas, shown):
        boxes, scores, groups = [], [], []
        for level, (logits, changes) in enumerate(zip(objectness, deltas)):
            anchors = self.anchors(level, *logits.shape[2:], logits)
            score, index = logits[0].permute(1, 2, 0).flatten().sigmoid().sort(descending=True, stable=True)
            score, index = score[:self.per_level], index[:self.per_level]
            boxes.append(decoded(anchors[index], changes[0].permute(1, 2, 0).reshape(-1, 4)[index], shown))
            scores.append(score)
            groups.append(torch.full_like(index, level))
        boxes, scores, groups = torch.cat(boxes), torch.cat(scores), torch.cat(groups)
        whole = (boxes[:, 2:] > boxes[:, :2]).all(1)
        boxes, scores, groups = boxes[whole], scores[whole], groups[whole]
        return boxes[suppressed(boxes, scores, groups, 0.7, self.proposals)]

    def classify(self, levels, boxes):
        """Logits and deltas of the boxes."""
        side = (boxes[:, 2:] - boxes[:, :2]).prod(1).sqrt()
        level = (side / FINEST + 1e-6).log2().floor().clamp(0, 3).long()
        x = boxes.new_zeros(len(boxes), levels[0].shape[1], PARTS, PARTS)
        for l in level.unique().tolist():
            x[level == l] = roi_align(levels[l], [boxes[level == l]], PARTS, 1 / STRIDES[l], 0, True)
        head = self.roi_head["bbox_head"]
        x = x.flatten(1)
        for linear in head["shared_fcs"]:
            x = F.relu(linear(x))
        return head["fc_cls"](x), head["fc_reg"](x)

    def detect(self, logits, deltas, proposals, shown):
        """Boxes, their scores and classes."""
        scores = logits.softmax(1)[:, :-1].flatten()
        deltas = deltas.reshape(-1, 4) * deltas.new_tensor([0.1, 0.1, 0.2, 0.2])
        boxes = decoded(proposals.repeat_interleave(self.classes, 0), deltas, shown)
        classes = torch.arange(self.classes).repeat(len(proposals))
        wanted = scores > 0.05
        boxes, scores, classes = boxes[wanted], scores[wanted], classes[wanted]
        kept = suppressed(boxes, scores, classes, 0.5, self.detections)
        return boxes[kept], scores[kept], classes[kept]
