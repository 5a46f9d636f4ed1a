"""Distributions of the random parameters of timm's and torchvision's augmentations.

draws.txt has one line for each parameter: its name, the number of draws, the least one, the quantile 1/1000, the
quantiles 1/20, 2/20, ... 19/20, the quantile 999/1000, and the largest draw. tests/data/test_draws.c says what the
parameters are; their ranges are those of that file. 3-Augment is in neither library: its draws are those of DeiT III's
paper and code, as Python's random numbers.

repeats.txt: for data sets of some sizes, the samples of an epoch of timm's RepeatAugSampler in one process, different
images, images that occur three times, and samples with the image of the sample before.

tools/versus_timm_augment compares the same draws with attscope's.
"""
import random
import sys
import numpy as np
import torch
from PIL import Image
from timm.data import auto_augment, random_erasing
from timm.data.distributed_sampler import RepeatAugSampler
from timm.data.mixup import Mixup, cutmix_bbox_and_lam
from timm.data.transforms import RandomResizedCropAndInterpolation
from torchvision import transforms

OUT, SIDE = 224, 64


def crops(prefix, count, width, height):
    image = Image.new("RGB", (width, height))
    boxes = [RandomResizedCropAndInterpolation.get_params(image, (0.08, 1), (3 / 4, 4 / 3)) for _ in range(count)]
    area = [w * h / (width * height) for _, _, h, w in boxes]
    if prefix == "crop_narrow":
        central = round(height * 4 / 3)
        place = (0, (width - central) // 2, height, central)
        return {"crop_narrow_area": area, "crop_narrow_fallback": [tuple(box) == place for box in boxes]}
    return {"crop_area": area, "crop_aspect": [w / h for _, _, h, w in boxes],
            "crop_x": [x / (width - w) for _, x, _, w in boxes if w < width],
            "crop_y": [y / (height - h) for y, _, h, _ in boxes if h < height]}


def flips(count):
    flip = transforms.RandomHorizontalFlip(0.3)
    image = Image.new("L", (2, 1))
    image.putpixel((0, 0), 255)
    return {"flip": [flip(image).getpixel((0, 0)) == 0 for _ in range(count)]}


def arguments(text, names, count):
    """The arguments that each operation of RandAugment is applied with."""
    for operation in auto_augment.rand_augment_transform(text, {"translate_pct": 0.45}, transforms=names).ops:
        applied = []
        operation.prob = 1
        operation.aug_fn = lambda image, argument, **_: applied.append(argument)
        for _ in range(count):
            operation(None)
        yield applied


def rand_augment(count):
    augment = auto_augment.rand_augment_transform("rand-m9-mstd0.5-inc1", {})
    result = {"rand_operation": np.random.choice(len(augment.ops), count)}
    applied = []
    augment.ops[3].aug_fn = lambda image, *_, **__: applied.append(image)
    for index in range(count):
        augment.ops[3](index)
    result["rand_applied"] = np.isin(np.arange(count), applied)
    names = ["Rotate", "PosterizeIncreasing", "SolarizeIncreasing", "SolarizeAdd", "ColorIncreasing", "ShearX",
             "TranslateYRel"]
    keys = ["rotate", "posterize", "solarize", "solarize_add", "color", "shear_x", "translate_y"]
    for key, values in zip(keys, arguments("rand-m9-mstd0.5-inc1", names, count)):
        result["rand_" + key] = values
    result["rand_uniform_rotate"], = arguments("rand-m9-mstd101-inc1", ["Rotate"], count)
    result["rand_wide_rotate"], result["rand_wide_brightness"] = arguments("rand-m12-mmax20-mstd3",
                                                                           ["Rotate", "Brightness"], count)
    return result


def jitter(count):
    change = transforms.ColorJitter(0.4, 0.3, 1.5)
    draws = [change.get_params(change.brightness, change.contrast, change.saturation, change.hue)
             for _ in range(count)]
    return {"jitter_brightness": [b for _, b, _, _, _ in draws], "jitter_contrast": [c for _, _, c, _, _ in draws],
            "jitter_saturation": [s for _, _, _, s, _ in draws],
            "jitter_first": [next(int(i) for i in order if i < 3) for order, *_ in draws]}


def three(count):
    return {"three_change": [random.choice(range(3)) for _ in range(count)],
            "three_radius": [random.uniform(0.1, 2) for _ in range(count)]}


def erased(count, **options):
    """Images of 100 after random erasing."""
    erase = random_erasing.RandomErasing(device="cpu", **options)
    for _ in range(count):
        yield erase(torch.full((1, SIDE, SIDE), 100.))[0].numpy()


class Boxes:
    """Takes the place of an image, and keeps the boxes that are erased in it."""

    def __init__(self):
        self.boxes = []

    def __setitem__(self, key, value):
        _, rows, columns = key
        self.boxes.append((rows.start, columns.start, rows.stop - rows.start, columns.stop - columns.start))


def erasing(count):
    erase, kept = random_erasing.RandomErasing(probability=1, device="cpu"), Boxes()
    for _ in range(count):
        erase._erase(kept, 1, OUT, OUT, torch.float32)
    few = count // 4
    first = {mode: [image[image != 100][0] for image in erased(few, probability=1, mode=mode) if (image != 100).any()]
             for mode in ("pixel", "rand")}
    return {"erase_applied": [(image != 100).any() for image in erased(few, probability=0.25)],
            "erase_area": [h * w / OUT**2 for _, _, h, w in kept.boxes],
            "erase_aspect": [h / w for _, _, h, w in kept.boxes],
            "erase_x": [x / (OUT - w) for _, x, _, w in kept.boxes],
            "erase_y": [y / (OUT - h) for y, _, h, _ in kept.boxes],
            "erase_four_area": [(image != 100).mean() for image in erased(few, probability=1, max_count=4)],
            "erase_pixel": first["pixel"], "erase_rand": first["rand"]}


def mixing(count):
    def draws(times=1, **options):
        mix = Mixup(num_classes=2, switch_prob=0.35, **options)
        return [mix._params_per_batch() for _ in range(times * count)]

    def boxes(lams, minmax=None):
        shape = (1, 3, OUT, OUT)
        return [cutmix_bbox_and_lam(shape, lam, ratio_minmax=minmax) for lam in lams]
    cut = boxes([lam for lam, _ in draws(5, mixup_alpha=0, cutmix_alpha=1)])
    minmax = boxes([1] * count, (0.2, 0.8))
    return {"mix_applied": [lam != 1 for lam, _ in draws(mixup_alpha=0.8, cutmix_alpha=0, prob=0.7)],
            "mix_cuts": [cuts for _, cuts in draws(mixup_alpha=0.8, cutmix_alpha=1)],
            "mixup_lambda": [lam for lam, _ in draws(mixup_alpha=0.8, cutmix_alpha=0)],
            "mixup_small_lambda": [lam for lam, _ in draws(mixup_alpha=0.2, cutmix_alpha=0)],
            "cutmix_lambda": [lam for _, lam in cut], "cutmix_height": [yh - yl for (yl, yh, _, _), _ in cut],
            "cutmix_left": [xl for (_, _, xl, _), _ in cut],
            "minmax_width": [xh - xl for (_, _, xl, xh), _ in minmax],
            "minmax_top": [yl / (OUT - (yh - yl)) for (yl, yh, _, _), _ in minmax],
            "minmax_lambda": [lam for _, lam in minmax]}


def draws(count):
    """`count` draws of each parameter; more or fewer of some."""
    random.seed(1), np.random.seed(2), torch.manual_seed(3)
    parts = [crops("crop", count, 500, 375), crops("crop_narrow", count, 640, 160), flips(count), rand_augment(count),
             jitter(count), three(count), erasing(count), mixing(count)]
    return {name: np.asarray(values, dtype=float) for part in parts for name, values in part.items()}


def repeats(images):
    """The samples of an epoch."""
    sampler = RepeatAugSampler(range(images), num_replicas=1, rank=0, num_repeats=3)
    return list(sampler)


def write(folder):
    levels = [0, 0.001, *(q / 20 for q in range(1, 20)), 0.999, 1]
    with open(folder + "/draws.txt", "w") as out:
        for name, values in draws(200000).items():
            limits = np.quantile(values, levels, method="inverted_cdf")
            print(name, len(values), *(f"{limit:.7g}" for limit in limits), file=out)
    with open(folder + "/repeats.txt", "w") as out:
        for images in 100, 256, 300, 1000:
            samples = repeats(images)
            counts = np.bincount(samples)
            again = sum(a == b for a, b in zip(samples, samples[1:]))
            print(images, len(samples), (counts > 0).sum(), (counts == 3).sum(), again, file=out)


if __name__ == "__main__":
    write(sys.argv[1])
