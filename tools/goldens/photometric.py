"""Pixels after mmsegmentation's PhotoMetricDistortion, computed with OpenCV (opencv-python-headless).

photometric.txt has one line for each case: brightness, contrast, saturation (1: not changed; "-": no conversion to HSV),
hue ("-": no conversion), 1 if contrast comes before saturation, and the FNV-1a hash (64 bit) of the bytes. The image is
that of augment.txt with 64 x 48 x 3 pixels. Its width is a multiple of the length of OpenCV's vectors: OpenCV rounds
the pixels of a row that are left in another way.
"""
import sys
import cv2
import numpy as np


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
    return out


def convert(image, alpha=1.0, beta=0.0):
    """mmsegmentation's PhotoMetricDistortion.convert()."""
    return np.clip(image.astype(np.float32) * np.float32(alpha) + np.float32(beta), 0, 255).astype(np.uint8)


def distort(image, brightness, contrast, saturation, hue, contrast_first):
    image = convert(image, beta=brightness)
    if contrast_first:
        image = convert(image, alpha=contrast)
    if saturation is not None:
        hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)
        hsv[:, :, 1] = convert(hsv[:, :, 1], alpha=saturation)
        image = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
    if hue is not None:
        hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)
        hsv[:, :, 0] = (hsv[:, :, 0].astype(int) + hue) % 180
        image = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
    return image if contrast_first else convert(image, alpha=contrast)


CASES = [
    (0, 1, None, None, 0), (13.7, 1, None, None, 0), (-31.2, 1, None, None, 0), (0, 0.5, None, None, 0),
    (0, 1.37, None, None, 1), (0, 1, 1, None, 0), (0, 1, 0.5, None, 0), (0, 1, 1.43, None, 1), (0, 1, None, 0, 0),
    (0, 1, None, -18, 1), (0, 1, None, 17, 0), (20.1, 0.71, 1.3, 5, 0), (20.1, 0.71, 1.3, 5, 1),
]

with open(sys.argv[1] + "/photometric.txt", "w") as out:
    for case in CASES:
        changed = distort(picture(64, 48, 3), *case)
        print(*("-" if value is None else value for value in case), fnv(changed.tobytes()), file=out)
