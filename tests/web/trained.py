"""A data set of small pictures of three classes, and a network that is trained on it."""

import os
import struct
import subprocess
import zlib

IMAGES, HEADS, LAYERS, SIDE = 6, 2, 3, 16  # images: of the validation split
NAMES = ["ant", "<b>bee<_b>", "cow"]  # a name is no markup; of folders, so without "/"


def write_png(path, rows):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))


def picture(number):
    """A picture of class number % 3: a third of it is bright."""
    return [[20 + 37 * (x * x + 3 * y * number) % 90 + 120 * (3 * x // SIDE == number % 3) for x in range(SIDE)]
            for y in range(SIDE)]  # fmt: skip


def train(attscope, data, output):
    """Writes the data set, and trains the network into the folder `output`/run."""
    for split, numbers in (("train", range(48)), ("val", range(48, 48 + IMAGES))):
        for i in numbers:
            write_png(os.path.join(data, split, NAMES[i % 3], f"{i}.png"), picture(i))
    options = {"model": "vit_tiny_patch16_224", "img-size": SIDE, "patch-size": 4, "embed-dim": 16, "depth": LAYERS,
               "num-heads": HEADS, "epochs": 8, "batch-size": 8, "lr": 0.01, "output": output, "experiment": "run"}  # fmt: skip
    subprocess.run([attscope, "train", data, *[text for name, value in options.items() for text in (f"--{name}", str(value))]],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
