"""timm's Mixup and CutMix with fixed random draws.

mix.txt has two kinds of lines, told apart by the first word:
box      height, width, lambda, centre (y, x); first and last row and column of the box, the corrected lambda
mixed    0 (Mixup) or 1 (CutMix), lambda, centre (y, x); FNV-1a hashes of the four mixed images of 6 x 8 x 3 floats, and
         of the targets of classes 2 0 1 1 of 3 with smoothing 0.1. Before mixing, value k is (7 k mod 101) / 8 - 5.
"""
import sys
import numpy as np
import torch
from timm.data import mixup

SIZES = (32, 32), (224, 160), (5, 9)
LAMBDAS = 0.0, 0.03125, 0.3, 0.75, 0.999


def fnv(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return f"{value:016x}"


def fix(lam, center):
    draws = iter(center)
    np.random.beta = lambda *_: lam
    np.random.randint = lambda *_, **__: next(draws)


with open(sys.argv[1] + "/mix.txt", "w") as out:
    for height, width in SIZES:
        for lam in LAMBDAS:
            for center in (0, 0), (height // 2, width // 3), (height - 1, width - 1):
                fix(lam, center)
                box, left = mixup.cutmix_bbox_and_lam((1, 3, height, width), lam)
                print("box", height, width, lam, *center, *map(int, box), repr(float(left)), file=out)
    for kind in 0, 1:
        for lam in 0.3, 0.8125:
            center = (2, 6)
            fix(lam, center)
            mix = mixup.Mixup(1 - kind, kind, label_smoothing=0.1, num_classes=3)
            k = torch.arange(4 * 6 * 8 * 3)
            images = ((7 * k % 101) / 8 - 5).reshape(4, 6, 8, 3).permute(0, 3, 1, 2).contiguous()
            images, targets = mix(images, torch.tensor([2, 0, 1, 1]))
            hashes = [fnv(t.contiguous().numpy().tobytes()) for t in (images.permute(0, 2, 3, 1), targets)]
            print("mixed", kind, lam, *center, *hashes, file=out)
