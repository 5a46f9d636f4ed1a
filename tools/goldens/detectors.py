"""Small Faster R-CNNs of torchvision, and one of mmdetection by tools/mmdetection.py, with the names of their files,
and the values between their parts, in f64; and boxes of torchvision's RoIAlign. Weights, images and boxes follow from
formulas.

detectors.txt has these lines for each case:

case <name> <height> <width> <height and width of the image in it>
tensor <name> <sides>                a tensor of the file
values <name> <step> <numbers>       every step-th of the values, in attscope's order

and for RoIAlign, of maps [h, w, 3] of the strides 4 and 8:

align <aligned> <samples> <count> <h> <w> <h> <w> <boxes> <values [count, 3, 3, 3]> <gradients of the maps>
"""
import math
import pathlib
import sys

import torch
from torch import nn
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.backbone_utils import BackboneWithFPN
from torchvision.models.detection.faster_rcnn import FastRCNNConvFCHead, FastRCNNPredictor, TwoMLPHead
from torchvision.models.detection.image_list import ImageList
from torchvision.models.detection.rpn import RPNHead
from torchvision.models.resnet import BasicBlock, ResNet
from torchvision.ops import FrozenBatchNorm2d, MultiScaleRoIAlign, roi_align

from formula import uniform

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from mmdetection import Detector

WIDTH, CHANNELS, BOX_CHANNELS, OUTPUTS = 8, 12, 20, 6
HEIGHT, COLUMNS, SHOWN = 96, 128, (90, 121)
WIDE = {"cls_score": 16, "fc_cls": 16, "cls_logits": 4, "rpn_cls": 4, "rpn_reg": 4}


def backbone(norm):
    net = ResNet(BasicBlock, [1, 1, 1, 1], norm_layer=norm)
    net.conv1, net.bn1, net.inplanes = nn.Conv2d(3, WIDTH, 7, 2, 3, bias=False), norm(WIDTH), WIDTH
    for i in range(4):
        setattr(net, f"layer{i + 1}", net._make_layer(BasicBlock, WIDTH << i, 1, stride=2 if i else 1))
    return net


def detector(v2):
    norm = nn.BatchNorm2d if v2 else FrozenBatchNorm2d
    body = BackboneWithFPN(backbone(norm), {f"layer{i + 1}": str(i) for i in range(4)}, [WIDTH << i for i in range(4)],
                           CHANNELS, norm_layer=nn.BatchNorm2d if v2 else None)
    anchors = AnchorGenerator(tuple((8 << i,) for i in range(5)), ((0.5, 1.0, 2.0),) * 5)
    head = (FastRCNNConvFCHead((CHANNELS, 7, 7), [CHANNELS] * 4, [BOX_CHANNELS], nn.BatchNorm2d) if v2 else
            TwoMLPHead(CHANNELS * 49, BOX_CHANNELS))
    model = FasterRCNN(body, rpn_anchor_generator=anchors, rpn_head=RPNHead(CHANNELS, 3, conv_depth=2 if v2 else 1),
                       box_roi_pool=MultiScaleRoIAlign(["0", "1", "2", "3"], 7, 2), box_head=head,
                       box_predictor=FastRCNNPredictor(BOX_CHANNELS, OUTPUTS), rpn_pre_nms_top_n_test=60,
                       rpn_post_nms_top_n_test=40, box_detections_per_img=60)
    return model.double().eval()


def of_mm():
    """Anchors of 8 pixels at the first level."""
    widths = [WIDTH << i for i in range(4)]
    return Detector(backbone(nn.BatchNorm2d), widths, CHANNELS, BOX_CHANNELS, OUTPUTS - 1, scale=2, per_level=60,
                    proposals=40, detections=60).double().eval()


def value_of(name, shape):
    """Wide scores and deltas, so that boxes differ."""
    flat = len(shape) == 1
    gain = 1 if flat and name.endswith(("weight", "running_var")) else 0
    wide = next((w for part, w in WIDE.items() if part in name), 1)
    scale = 0.4 if flat else 4.0 * wide / 2 ** math.ceil(math.log2(math.prod(shape[1:])) / 2)
    return gain + scale * torch.from_numpy(uniform(name, int(torch.tensor(shape).prod()))).reshape(shape)


def fill(model):
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(value_of(name, tensor.shape).float())


def last(x):
    return x[0].permute(1, 2, 0)


def write(out, name, values, step=1):
    numbers = values.flatten()[::step].tolist()
    out.write(f"values {name} {step} {' '.join(f'{v:.15g}' for v in numbers)}\n")


def of_torchvision(model, image):
    levels = model.backbone(image)
    objectness, deltas = model.rpn.head(list(levels.values()))
    proposals, _ = model.rpn(ImageList(image, [SHOWN]), levels)
    heads = model.roi_heads
    pooled = heads.box_roi_pool(levels, proposals, [SHOWN])
    logits, changes = heads.box_predictor(heads.box_head(pooled))
    boxes, scores, labels = heads.postprocess_detections(logits, changes, proposals, [SHOWN])
    return list(levels.values()), objectness, deltas, proposals[0], logits, changes, boxes[0], scores[0], labels[0] - 1


def of_mmdetection(model, image):
    levels = model.pyramid(image)
    objectness, deltas = model.answers(levels)
    proposals = model.propose(objectness, deltas, SHOWN)
    logits, changes = model.classify(levels, proposals)
    return levels, objectness, deltas, proposals, logits, changes, *model.detect(logits, changes, proposals, SHOWN)


def run(out, name, model, parts):
    out.write(f"case {name} {HEIGHT} {COLUMNS} {SHOWN[0]} {SHOWN[1]}\n")
    for key, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            out.write(f"tensor {key} {' '.join(map(str, tensor.shape))}\n")
    fill(model)
    image = 4 * torch.from_numpy(uniform("image", HEIGHT * COLUMNS * 3)).reshape(1, HEIGHT, COLUMNS, 3)
    image = image.float().double().permute(0, 3, 1, 2)
    with torch.no_grad():
        levels, objectness, deltas, proposals, logits, changes, boxes, scores, classes = parts(model, image)
    for l, level in enumerate(levels):
        write(out, f"pyramid{l}", last(level), 61 if l < 3 else 7)
        write(out, f"objectness{l}", last(objectness[l]), 13 if l < 3 else 1)
        write(out, f"deltas{l}", last(deltas[l]), 53 if l < 3 else 5)
    write(out, "proposals", proposals)
    write(out, "box_logits", logits)
    write(out, "box_deltas", changes, 7)
    write(out, "boxes", boxes)
    write(out, "scores", scores)
    write(out, "classes", classes)
    write(out, "count", torch.tensor([len(classes)]))


def align(out, aligned, samples):
    sizes, count = ((9, 11), (5, 6)), 7
    maps = [torch.from_numpy(uniform(f"map{l}", h * w * 3)).reshape(1, h, w, 3).permute(0, 3, 1, 2).requires_grad_()
            for l, (h, w) in enumerate(sizes)]
    corners = 60 * (torch.from_numpy(uniform("corners", 4 * count)).reshape(count, 2, 2) + 0.4)
    boxes = torch.cat([corners.amin(1), corners.amax(1)], 1)
    area = ((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])).sqrt()
    level = torch.floor(torch.log2(area / 16) + 1e-6).clamp(0, 1)
    rows = [roi_align(maps[int(l)], [b[None]], 3, 1 / (4 << int(l)), samples or -1, aligned)
            for l, b in zip(level, boxes)]
    y = torch.cat(rows).permute(0, 2, 3, 1)
    dy = torch.from_numpy(uniform("dy", y.numel())).reshape(y.shape)
    (y * dy).sum().backward()
    numbers = torch.cat([boxes.flatten(), y.detach().flatten()] + [last(m.grad).flatten() for m in maps])
    sides = " ".join(f"{h} {w}" for h, w in sizes)
    out.write(f"align {int(aligned)} {samples} {count} {sides} {' '.join(f'{v:.15g}' for v in numbers.tolist())}\n")


if __name__ == "__main__":
    with open(sys.argv[1] + "/detectors.txt", "w") as out:
        run(out, "first", detector(False), of_torchvision)
        run(out, "v2", detector(True), of_torchvision)
        run(out, "mmdetection", of_mm(), of_mmdetection)
        for aligned, samples in ((False, 2), (True, 0), (True, 2), (False, 0)):
            align(out, aligned, samples)
