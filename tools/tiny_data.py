"""Data sets of a few random images, in the layouts and sizes of the published ones."""
import gzip
import json
import os
import random
import struct
import zlib

CLASSES = "airplane automobile bird cat deer dog frog horse ship truck".split()


def noise(count, label):
    """Random bytes around a value that depends on the class."""
    return bytes((label * 20 + value % 60) % 256 for value in random.randbytes(count))


def write_cifar(folder):
    """CIFAR-10, binary version: 160 and 60 images."""
    os.makedirs(folder)
    with open(f"{folder}/batches.meta.txt", "w") as names:
        names.write("\n".join(CLASSES) + "\n")
    for name, count in [(f"data_batch_{i}", 32) for i in range(1, 6)] + [("test_batch", 60)]:
        with open(f"{folder}/{name}.bin", "wb") as out:
            for i in range(count):
                out.write(bytes([i % 10]) + noise(3 * 32 * 32, i % 10))


def write_fashion(folder):
    """Fashion-MNIST: 160 and 60 images."""
    os.makedirs(folder)
    for name, count in (("train", 160), ("t10k", 60)):
        with gzip.open(f"{folder}/{name}-images-idx3-ubyte.gz", "wb") as out:
            out.write(struct.pack(">IIII", 0x803, count, 28, 28))
            out.write(b"".join(noise(28 * 28, i % 10) for i in range(count)))
        with gzip.open(f"{folder}/{name}-labels-idx1-ubyte.gz", "wb") as out:
            out.write(struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count)))


def write_texts(path, count, words):
    """Random words, `words` in each of `count` lines."""
    with open(path, "w") as out:
        for _ in range(count):
            out.write(" ".join(random.choice(CLASSES) for _ in range(words)) + "\n")


def write_png(path, rows, channels):
    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))
    header = struct.pack(">IIBBBBB", len(rows[0]) // channels, len(rows), 8, 2 if channels == 3 else 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows), 1)
    with open(path, "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b""))


def write_photograph(path, width, height, label):
    write_png(path, [noise(3 * width, label) for _ in range(height)], 3)


def write_classes(folder, classes, each, side=256):
    """A folder for each class, as ImageNet's train."""
    for label in range(classes):
        os.makedirs(f"{folder}/train/n{10000000 + label}")
        for i in range(each):
            write_photograph(f"{folder}/train/n{10000000 + label}/{i}.png", side, side, label)


def write_masks(folder, classes, count, width, height):
    """Photographs with masks of vertical stripes, one for each class."""
    for split, images in (("train", count), ("val", 2)):
        os.makedirs(f"{folder}/{split}")
        os.makedirs(f"{folder}/{split}annot")
        for i in range(images):
            write_photograph(f"{folder}/{split}/{i}.png", width, height, i)
            write_png(f"{folder}/{split}annot/{i}.png", [bytes(x * classes // width for x in range(width))] * height, 1)
    with open(f"{folder}/classes.txt", "w") as out:
        out.write("".join(f"class{i}\n" for i in range(classes)))


def write_boxes(folder, classes, count, width, height):
    """Photographs with two boxes each, in COCO's format."""
    images, objects = [], []
    os.makedirs(f"{folder}/train")
    os.makedirs(f"{folder}/annotations")
    for i in range(count):
        write_photograph(f"{folder}/train/{i}.png", width, height, i)
        images.append({"id": i, "file_name": f"{i}.png", "width": width, "height": height})
        for b, box in enumerate(([10, 20, width // 2, height // 2], [width // 2, height // 2, 60, 40])):
            objects.append({"id": 2 * i + b + 1, "image_id": i, "category_id": (2 * i + b) % classes + 1, "bbox": box,
                            "area": box[2] * box[3], "iscrowd": 0})
    categories = [{"id": c + 1, "name": f"class{c}"} for c in range(classes)]
    with open(f"{folder}/annotations/instances_train.json", "w") as out:
        json.dump({"images": images, "annotations": objects, "categories": categories}, out)
