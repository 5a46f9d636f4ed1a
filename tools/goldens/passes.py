"""Classes of photographs in passes at several scales, mirrored, in windows, as mmsegmentation's slide_inference(),
MultiScaleFlipAug and SegTTAModel define them, by PyTorch in f64; images are resized by Pillow.

passes.txt has one line for each case:

H W window_h window_w longer shorter stride_h stride_w flips scales scale... classes[H, W]

The stride is 0 0 without windows; scales is their number. The photograph has 3 channels, which photograph() defines, and
network() is a network that answers with logits of a quarter of its image's sides; tests/study/train/test_passes.c has
the same two functions.
"""
import sys
import numpy as np
import torch
from PIL import Image
from torch.nn.functional import interpolate, pad

CLASSES, DIVISOR = 5, 4
MMSEG = [0.5, 0.75, 1.0, 1.25, 1.5, 1.75]
# Photographs smaller and larger than a window, wide and tall; strides that divide the rest and that do not.
CASES = [(20, 31, 16, 16, 40, 24, (11, 11), True, [0.5, 1.0, 1.25]), (24, 18, 16, 16, 32, 20, None, True, MMSEG),
         (9, 40, 8, 16, 48, 12, (5, 7), False, []), (33, 11, 16, 16, 50, 17, (16, 16), True, []),
         (5, 7, 16, 16, 7, 5, (10, 10), False, []), (19, 23, 16, 16, 31, 21, (6, 5), True, MMSEG),
         (40, 40, 16, 16, 28, 28, (12, 12), False, [0.6, 1.0])]


def photograph(height, width):
    y, x, c = np.mgrid[0:height, 0:width, 0:3]
    return ((y * 37 + x * 91 + c * 53 + (y * x * 7 + c) % 61 * 3) % 256).astype(np.uint8)


def network(image):
    """[3, h, w], numbers of -1..1; h and w are multiples of 4."""
    means = image.unfold(1, 4, 4).unfold(2, 4, 4).mean((-1, -2))
    i, j = torch.meshgrid(torch.arange(means.shape[1]), torch.arange(means.shape[2]), indexing="ij")
    return torch.stack([2 * torch.cos(1.3 * c + 9 * means[c % 3]) + 2 * torch.sin(1.7 * i + 2.3 * j + 2 * c)
                        for c in range(CLASSES)])


def upsampled(logits, height, width):
    return interpolate(logits[None], (height, width), mode="bilinear", align_corners=False)[0]


def run(image):
    """Fills the image up to sides that the network takes, and interpolates its logits to the image."""
    height, width = image.shape[1:]
    filled = pad(image, (0, -width % DIVISOR, 0, -height % DIVISOR))
    return upsampled(network(filled), *filled.shape[1:])[:, :height, :width]


def slide(image, window, stride):
    height, width = image.shape[1:]
    sums, counts = torch.zeros(CLASSES, height, width, dtype=torch.float64), torch.zeros(height, width)
    rows, columns = (max(side - w + s - 1, 0) // s + 1 for side, w, s in zip((height, width), window, stride))
    for row in range(rows):
        for column in range(columns):
            bottom, right = min(row * stride[0] + window[0], height), min(column * stride[1] + window[1], width)
            top, left = max(bottom - window[0], 0), max(right - window[1], 0)
            sums[:, top:bottom, left:right] += run(image[:, top:bottom, left:right])
            counts[top:bottom, left:right] += 1
    return sums / counts


def classify(height, width, window, longer, shorter, stride, flips, scales):
    picture, passes = Image.fromarray(photograph(height, width)), []
    for scale in scales or [1.0]:
        ratio = min(int(longer * scale) / max(height, width), int(shorter * scale) / min(height, width))
        size = int(width * ratio + 0.5), int(height * ratio + 0.5)
        resized = torch.from_numpy(np.array(picture.resize(size, Image.Resampling.BILINEAR))).double()
        image = (resized / 255 - 0.5).permute(2, 0, 1) / 0.5
        for flip in (False, True) if flips else (False,):
            seen = image.flip(2) if flip else image
            logits = slide(seen, window, stride) if stride else run(seen)
            passes.append(upsampled(logits.flip(2) if flip else logits, height, width).softmax(0))
    best = torch.stack(passes).mean(0).sort(0, descending=True)
    assert (best.values[0] - best.values[1]).min() > 1e-4, "two classes are so near that rounding decides"
    return best.indices[0]


with open(sys.argv[1] + "/passes.txt", "w") as out:
    for height, width, window_h, window_w, longer, shorter, stride, flips, scales in CASES:
        found = classify(height, width, (window_h, window_w), longer, shorter, stride, flips, scales)
        print(height, width, window_h, window_w, longer, shorter, *(stride or (0, 0)), int(flips), len(scales), *scales,
              *found.flatten().tolist(), file=out)
