"""What the tests of the Python package share: tiny networks and images, and how a file of tests is run."""

import json
import os
import struct
import sys
import unittest
import zlib

import attscope
import numpy as np

TINY = {"img_size": 16, "patch_size": 4, "num_classes": 4, "embed_dim": 16, "depth": 2, "num_heads": 2}
TOKENS = 17
CLASSES = ["ant", "bee", "cow", "dog"]
SANITIZED = bool(os.environ.get("ATT_SANITIZE"))


def environment():
    """For other programs: without the preloaded library of a sanitizer."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def tiny(**options):
    """A network with random weights."""
    return attscope.open("vit_tiny_patch16_224", **{**TINY, "seed": 42, "threads": 2, **options})


def pictures(count, size=16, channels=3, seed=1):
    """Images of four classes: quadrant c of an image of class c is bright."""
    images = np.random.default_rng(seed).integers(0, 90, (count, size, size, channels), dtype=np.uint8)
    half = size // 2
    for i, image in enumerate(images):
        row, column = divmod(i % 4, 2)
        image[row * half : (row + 1) * half, column * half : (column + 1) * half] += 140
    return images


def write_png(path, image):
    """Writes uint8 [height, width, 3], or [height, width] in grey."""
    height, width, *colours = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if colours else 0, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
        )


def write_data(folder, train=48, validation=16):
    """Writes a data set of class folders."""
    for split, count in (("train", train), ("validation", validation)):
        for i, image in enumerate(pictures(count, seed=count)):
            place = f"{folder}/{split}/{CLASSES[i % 4]}"
            os.makedirs(place, exist_ok=True)
            write_png(f"{place}/{i:03}.png", image)
    return folder


def read_safetensors(path):
    """The F32 tensors of a file, by name."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    return {
        name: np.frombuffer(data[slice(*info["data_offsets"])], np.float32).reshape(info["shape"])
        for name, info in header.items()
        if name != "__metadata__" and info["dtype"] == "F32"
    }


class Tensor:
    """Behaves as a torch tensor, as far as the package uses one."""

    def __init__(self, array, name=None):
        self.array = array
        self.name = name or f"torch.{array.dtype}"

    dtype = property(lambda self: self.name)
    shape = property(lambda self: self.array.shape)

    def detach(self):
        return self

    cpu = detach

    def contiguous(self):
        return Tensor(np.ascontiguousarray(self.array), self.name)

    def float(self):
        return Tensor(self.array.astype(np.float32))

    def numpy(self):
        return self.array

    def dim(self):
        return self.array.ndim

    def data_ptr(self):
        return self.array.ctypes.data


class Case(unittest.TestCase):
    def fails(self, part, call, *arguments, status=None, **named):
        """The call raises an attscope.Error whose text contains `part`."""
        with self.assertRaises(attscope.Error) as caught:
            call(*arguments, **named)
        self.assertIn(part, str(caught.exception))
        if status:
            self.assertEqual(caught.exception.status, status)


def main():
    """Runs the tests of the file. If all are skipped, the exit status is 77."""
    program = unittest.main(exit=False, verbosity=0)
    result = program.result
    for test, reason in result.skipped:
        print(f"skipped: {test.id()}: {reason}")
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.testsRun == len(result.skipped) else 0)
