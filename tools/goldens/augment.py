"""Pixels computed by Pillow for each augmentation of timm's RandAugment, torchvision's ColorJitter and DeiT III's
3-Augment.

augment.txt has one line for each case: operation, width, height, channels, argument, filter ("-" if there is none), and
the FNV-1a hash (64 bit) of the resulting bytes. The source image at (x, y, c) is h / 2 + (3 x + 2 y + 20 c) mod 128,
where h are the high bytes of the generator s = 1664525 s + 1013904223 mod 2^32, started at 12345, row by row. Pixels
outside the image are (124, 116, 104), or 124 for grey images.

simple_crop.txt has a line for each place of the simple random crop of DeiT III of an image of 13 x 10 x 3 pixels, made as
above, to 8 x 8 pixels with 3 reflected ones at each side: offsets from the top and the left, and the hash of the bytes.

augment_arguments.txt: timm's name of an operation, magnitude, 1 if the direction is negated, the resulting argument.
"""
import random
import sys
import numpy as np
from PIL import Image, ImageFilter
from timm.data import auto_augment as aa
from torchvision import transforms
from torchvision.transforms import functional

FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def fnv(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return f"{value:016x}"


def picture(width, height, channels):
    out, s = np.zeros((height, width, channels), np.uint8), 12345
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                s = (s * 1664525 + 1013904223) % 2**32
                out[y, x, c] = (s >> 24) // 2 + (3 * x + 2 * y + 20 * c) % 128
    return Image.fromarray(out[:, :, 0] if channels == 1 else out)


def blur(image, radius):
    return image.filter(ImageFilter.GaussianBlur(radius))


ENHANCE = [0.1, 0.55, 1.0, 1.4, 1.9]
BLUR = [0, 0.1, 0.37, 0.8, 0.99, 1.01, 1.5, 1.77, 2.0, 3.3]
OPERATIONS = [
    ("invert", aa.invert, []), ("autocontrast", aa.auto_contrast, []), ("equalize", aa.equalize, []),
    ("posterize", aa.posterize, [1, 2, 4, 7, 8]), ("solarize", aa.solarize, [0, 26, 128, 256]),
    ("solarize_add", aa.solarize_add, [0, 40, 110]), ("brightness", aa.brightness, ENHANCE),
    ("contrast", aa.contrast, ENHANCE), ("color", aa.color, ENHANCE), ("sharpness", aa.sharpness, ENHANCE),
    ("grey", lambda image: transforms.Grayscale(len(image.getbands()))(image), []), ("blur", blur, BLUR),
]
MOVES = [
    ("rotate", aa.rotate, [0, 3.7, -27, 30]), ("shear_x", aa.shear_x, [0, 0.3, -0.13]),
    ("shear_y", aa.shear_y, [0, 0.3, -0.13]), ("translate_x", aa.translate_x_rel, [0, 0.45, -0.21]),
    ("translate_y", aa.translate_y_rel, [0, 0.45, -0.21]),
]

with open(sys.argv[1] + "/augment.txt", "w") as out:
    for width, height, channels in (24, 20, 3), (24, 20, 1), (7, 33, 3), (2, 1, 3):
        image = picture(width, height, channels)
        fill = (124, 116, 104) if channels == 3 else 124

        def line(name, argument, how, changed):
            print(name, width, height, channels, argument, how, fnv(np.asarray(changed).tobytes()), file=out)
        for name, function, arguments in OPERATIONS:
            for argument in arguments or [None]:
                changed = function(image) if argument is None else function(image, argument)
                line(name, argument or 0, "-", changed)
        for name, function, arguments in MOVES:
            for argument in arguments:
                for how, resample in FILTERS.items():
                    line(name, argument, how, function(image, argument, resample=resample, fillcolor=fill))

with open(sys.argv[1] + "/augment_arguments.txt", "w") as out:
    for name in dict.fromkeys(aa._RAND_TRANSFORMS + aa._RAND_INCREASING_TRANSFORMS):
        make = aa.LEVEL_TO_ARG[name]
        for magnitude in (0, 0.6, 2.5, 5, 9, 10) if make else ():
            for negate in 0, 1:
                random.random = lambda: float(negate)
                print(name, magnitude, negate, repr(float(make(magnitude, {})[0])), file=out)

with open(sys.argv[1] + "/simple_crop.txt", "w") as out:
    side, border = 8, 3
    image = transforms.Resize(side, interpolation=Image.Resampling.BICUBIC)(picture(13, 10, 3))
    padded = functional.pad(image, [border] * 4, padding_mode="reflect")
    for top in range(padded.height - side + 1):
        for left in range(padded.width - side + 1):
            print(top, left, fnv(np.asarray(functional.crop(padded, top, left, side, side)).tobytes()), file=out)
