"""Training of the small Faster R-CNNs of detectors.py by torchvision, in f64. The samples are determined: there are as
many places for them as there are candidates.

detector_training.txt has these lines for each case:

case <name> <height> <width> <height and width of the images in it> <images> <samples of anchors, of boxes> <updates>
tensor <name> <sides>               a tensor of the file
true <image> <left> <top> <right> <bottom> <class>
loss <update> <number>              sum of both losses of anchors and both of boxes, divided by the places for samples
norm <update> <name> <number>       of the gradient of a parameter, with attscope's name
buffer <name> <number>              norm of a running statistic after the last update
"""
import sys

import torch
from torch.nn import functional
from torchvision.models.detection import rpn
from torchvision.models.detection._utils import BalancedPositiveNegativeSampler
from torchvision.models.detection.image_list import ImageList

from detectors import COLUMNS, HEIGHT, SHOWN, detector, fill
from formula import uniform

LR, MOMENTUM, DECAY = 2e-3, 0.9, 1e-2
ANCHOR_SAMPLES = 6144  # twice the anchors of an image
# Boxes of three images, with their classes from 1; the last one has none. Most of them lie near a proposal.
TRUE = [[(43, 25, 73, 56, 1), (75, 31, 101.5, 53.25, 3), (6, 16, 41, 36.5, 5)],
        [(92, 20, 115, 86.5, 2), (29, 50, 58.25, 66, 4), (64, 3, 120, 44, 4)],
        []]


class WideLoss:
    """torch.nn.functional, whose cross entropy takes torchvision's labels in f32 without computing in f32."""

    def __getattr__(self, name):
        return getattr(functional, name)

    def binary_cross_entropy_with_logits(self, logits, labels):
        return functional.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))


class Recorder:
    """A sampler that counts what it takes, and fails if it has to choose."""

    def __init__(self, samples, share):
        self.sampler, self.samples, self.share = BalancedPositiveNegativeSampler(samples, share), samples, share

    def __call__(self, labels):
        self.taken = 0
        for of in labels:
            positive, negative = int((of >= 1).sum()), int((of == 0).sum())
            assert positive <= int(self.samples * self.share), (positive, self.samples)
            assert positive + negative <= self.samples, (positive, negative)
            self.taken += positive + negative
        return self.sampler(labels)


def ours(name):
    for theirs, name_here in (("backbone.body.", ""), ("backbone.fpn.", "detector.fpn."), ("rpn.", "detector.rpn."),
                              ("roi_heads.", "detector.roi_heads.")):
        if name.startswith(theirs):
            return name_here + name[len(theirs):]
    raise ValueError(name)


def run(out, name, v2, images, box_samples, updates):
    model = detector(v2).train()
    model.rpn._pre_nms_top_n, model.rpn._post_nms_top_n = {"training": 60}, {"training": 40}
    model.rpn.fg_bg_sampler, model.roi_heads.fg_bg_sampler = Recorder(ANCHOR_SAMPLES, 0.5), Recorder(box_samples, 0.25)
    out.write(f"case {name} {HEIGHT} {COLUMNS} {SHOWN[0]} {SHOWN[1]} {len(images)} {ANCHOR_SAMPLES} {box_samples} "
              f"{updates}\n")
    for key, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            out.write(f"tensor {key} {' '.join(map(str, tensor.shape))}\n")
    for i, image in enumerate(images):
        for *box, label in TRUE[image]:
            out.write(f"true {i} {' '.join(f'{v:.15g}' for v in box)} {label - 1}\n")
    fill(model)
    pixels = 4 * torch.from_numpy(uniform("image", len(images) * HEIGHT * COLUMNS * 3))
    pixels = pixels.float().double().reshape(-1, HEIGHT, COLUMNS, 3).permute(0, 3, 1, 2)
    targets = [{"boxes": torch.tensor([b[:4] for b in TRUE[i]], dtype=torch.double).reshape(-1, 4),
                "labels": torch.tensor([b[4] for b in TRUE[i]], dtype=torch.long)} for i in images]
    parameters = dict(model.named_parameters())
    optimizer = torch.optim.SGD([{"params": [p for p in parameters.values() if p.dim() > 1], "weight_decay": DECAY},
                                 {"params": [p for p in parameters.values() if p.dim() < 2], "weight_decay": 0}],
                                lr=LR, momentum=MOMENTUM)
    for update in range(updates):
        levels = model.backbone(pixels)
        shown = [SHOWN] * len(images)
        proposals, of_anchors = model.rpn(ImageList(pixels, shown), levels, targets)
        _, of_boxes = model.roi_heads(levels, proposals, shown, targets)
        anchors, boxes = model.rpn.fg_bg_sampler, model.roi_heads.fg_bg_sampler
        # torchvision divides by the samples of the batch, attscope by the places for them.
        loss = (sum(of_anchors.values()) * anchors.taken / (ANCHOR_SAMPLES * len(images)) +
                sum(of_boxes.values()) * boxes.taken / (box_samples * len(images)))
        optimizer.zero_grad()
        loss.backward()
        out.write(f"loss {update} {loss.item():.15g}\n")
        if update in (0, 1, updates - 1):
            for key, parameter in parameters.items():
                out.write(f"norm {update} {ours(key)} {parameter.grad.norm().item():.12g}\n")
        optimizer.step()
    for key, buffer in model.named_buffers():
        if v2 and "running" in key:
            out.write(f"buffer {ours(key)} {buffer.norm().item():.12g}\n")


if __name__ == "__main__":
    rpn.F = WideLoss()
    with open(sys.argv[1] + "/detector_training.txt", "w") as out:
        run(out, "first", False, [0, 2], 200, 10)
        run(out, "v2", True, [0, 1], 43, 2)
