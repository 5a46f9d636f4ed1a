"""Pixels of decoded files, resized images and preprocessed photographs by Pillow and timm, as FNV-1a hashes (64 bit).
Needs Pillow 13: earlier versions always resize horizontally before vertically.

preprocess.txt has these kinds of lines, told apart by the first word:
decode     file under images/, width, height, hash of RGB, hash of grey ("-" for both if the file must be refused)
turned     file under images/, EXIF orientation, width, height, hash of RGB after ImageOps.exif_transpose()
resize     width, height, channels, new width, new height, filter, hash; the image consists of the high bytes of the
           generator s = 1664525 s + 1013904223 mod 2^32, started at 12345
floats     width, height, channels, new width, new height, filter, values [height][width][channels]: the same image,
           as floats, resized by torchvision with antialias, or by torch.nn.functional.interpolate() ("plain")
crop       crop mode, width, height, channels, new width, new height, crop_pct, filter, mean, hash: the same image after
           timm's evaluation transform, without normalisation; the mean is used for every channel
photo      file of the 200 photographs, hash of 224 x 224 x 3 bytes after bicubic resize to 248 and centre crop
wide       the same for 160 x 224 with crop_pct 0.9 and bilinear, by timm
normalise  hash of the floats (x / 255 - mean) / std for x = 0..255, with ImageNet's means and deviations
"""
import glob
import io
import os
import struct
import sys
import zlib
import numpy as np
import torch
from PIL import Image, ImageOps
from timm.data import create_transform
from timm.data.transforms_factory import transforms_imagenet_eval
from torchvision import transforms as T
from torchvision.transforms.v2 import functional

BILINEAR, BICUBIC = Image.Resampling.BILINEAR, Image.Resampling.BICUBIC
folder = sys.argv[1]
root = os.environ["ATT_SHARED"] + "/data/imagenet200/val/"
photographs = sorted(glob.glob(root + "*/*"))[::20]
if not photographs:
    sys.exit(print(root, "is missing: the goldens are left unchanged"))
os.makedirs(folder + "/images", exist_ok=True)


def fnv(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return f"{value:016x}"


def noise(count):
    out, s = bytearray(), 12345
    for _ in range(count):
        s = (s * 1664525 + 1013904223) % 2**32
        out.append(s >> 24)
    return bytes(out)


def png(width, height, depth, kind, row_bytes, between=b"", passes=None):
    """passes: of an interlaced PNG, the number of rows and the bytes of a row in each."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    sizes = [size for rows, size in passes or [(height, row_bytes)] for _ in range(rows)]
    data = io.BytesIO(noise(sum(sizes)))
    raw = b"".join(b"\0" + data.read(size) for size in sizes)
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, passes is not None)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + (between and chunk(*between)) +
            chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))


def interlaced(width, height, depth, kind=0, between=b"", samples=1):
    sizes = [(len(range(x, width, to_x)), len(range(y, height, to_y))) for x, y, to_x, to_y in (
        (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))]
    passes = [(rows, (columns * samples * depth + 7) // 8) for columns, rows in sizes if columns and rows]
    return png(width, height, depth, kind, 0, between, passes)


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def segment(marker, data):
    return struct.pack(">BBH", 0xff, marker, len(data) + 2) + data


def damaged(jpeg):
    """Writes long runs of ones, which are no Huffman code, into the coded data, and keeps all markers."""
    start = jpeg.index(b"\xff\xda") + 14
    data = bytearray(jpeg)
    for at in range(start, len(data) - 4, 24):
        if 0xff not in data[at - 1:at + 4]:
            data[at:at + 4] = b"\xfe\xff\0\xfe"
    return bytes(data)


def riff(*chunks):
    data = b"".join(name + struct.pack("<I", len(part)) + part + b"\0" * (len(part) % 2) for name, part in chunks)
    return b"RIFF" + struct.pack("<I", len(data) + 4) + b"WEBP" + data


def animation(width, height, x, y, frame):
    """Returns an animated WebP: one lossless frame at (x, y) of a larger canvas. x and y are even."""
    three = [struct.pack("<I", value)[:3] for value in (width - 1, height - 1, x // 2, y // 2, frame.width - 1,
                                                        frame.height - 1, 100)]
    return riff((b"VP8X", b"\x12\0\0\0" + three[0] + three[1]), (b"ANIM", b"\xff\xff\xff\xff\0\0"),
                (b"ANMF", b"".join(three[2:]) + b"\0" + saved(frame, "WEBP", lossless=True)[12:]))


def files():
    y, x = np.mgrid[0:19, 0:27]
    colours = np.stack([x * 9, y * 13, (x + y) * 5], -1).astype(np.uint8)
    colours[5:10, 8:14] = np.frombuffer(noise(90), np.uint8).reshape(5, 6, 3)
    rgb = Image.fromarray(colours)
    grey = rgb.convert("L")
    rgba = rgb.copy()
    rgba.putalpha(grey)
    jpeg = {name: saved(rgb, "JPEG", **options) for name, options in {
        "420.jpg": dict(quality=75, subsampling=2), "422.jpg": dict(quality=90, subsampling=1),
        "444.jpg": dict(quality=30, subsampling=0), "progressive.jpg": dict(quality=80, progressive=True),
        "restart.jpg": dict(restart_marker_blocks=1)}.items()}
    yield from jpeg.items()
    yield "grey.jpg", saved(grey, "JPEG")
    yield "cmyk.jpg", saved(Image.merge("CMYK", (*rgb.split(), grey)), "JPEG")
    yield "stray.jpg", jpeg["420.jpg"][:-2] + b"stray\xff\xd9bytes"
    yield "rgb.png", saved(rgb, "PNG")
    yield "rgba.png", saved(rgba, "PNG")
    yield "grey.png", saved(grey, "PNG")
    yield "grey_alpha.png", saved(rgba.convert("LA"), "PNG")
    for colours, bits in (2, 1), (4, 2), (16, 4), (256, 8):
        yield f"palette{bits}.png", saved(rgb.quantize(colours), "PNG", bits=bits)
    yield "transparent.png", saved(rgb.quantize(16), "PNG", transparency=3)
    for bits in 1, 2, 4:
        yield f"grey{bits}.png", png(11, 5, bits, 0, (11 * bits + 7) // 8)
    for bits in 1, 2, 4, 8, 16:
        yield f"interlaced{bits}.png", interlaced(21, 11, bits)
    yield "interlaced_narrow.png", interlaced(2, 3, 4)
    yield "interlaced_palette4.png", interlaced(13, 9, 4, 3, (b"PLTE", noise(48)))
    yield "interlaced_rgb.png", interlaced(13, 9, 8, 2, samples=3)
    yield "grey16.png", png(7, 5, 16, 0, 14)
    yield "grey_alpha16.png", png(7, 5, 16, 4, 28)
    yield "rgb16.png", png(7, 5, 16, 2, 42)
    yield "rgba16.png", png(7, 5, 16, 6, 56)
    yield "grey_key.png", png(7, 5, 8, 0, 7, (b"tRNS", b"\0\5"))
    for name, exif in (("offset", b"MM\0*\xff\xff\xff\xf0"), ("short", b"II*\0\x08\0\0\0\x02"),
                       ("counts", b"II*\0\x08\0\0\0\xff\xff" + b"\x12\x01\x63\0\xff\xff\xff\xff" * 9)):
        yield f"bad_exif_{name}.jpg", jpeg["420.jpg"][:2] + segment(0xe1, b"Exif\0\0" + exif) + jpeg["420.jpg"][2:]
    for name in "420.jpg", "restart.jpg":
        yield "damaged_" + name, damaged(jpeg[name])
    webp = {f"{kind}_{name}.webp": saved(image, "WEBP", **options) for name, image in (("rgb", rgb), ("rgba", rgba))
            for kind, options in (("lossy", dict(quality=60)), ("lossless", dict(lossless=True)))}
    yield from webp.items()
    yield "animation.webp", animation(40, 30, 6, 8, rgba)
    webp_frames = io.BytesIO()
    grey.convert("RGB").save(webp_frames, "WEBP", save_all=True, append_images=[rgb])
    yield "frames.webp", webp_frames.getvalue()
    yield "cut.webp", webp["lossy_rgb.webp"][:-20]
    yield "cut_lossless.webp", riff((b"VP8L", webp["lossless_rgb.webp"][20:-40]))
    for name in "420.jpg", "progressive.jpg":
        yield "cut_" + name, jpeg[name][:-40]
    yield "cut.png", saved(rgb, "PNG")[:200]
    yield "palette_short.png", png(7, 5, 8, 3, 7, (b"PLTE", bytes(range(9))))


def noise_image(width, height, channels):
    pixels = np.frombuffer(noise(width * height * channels), np.uint8)
    return Image.fromarray(pixels.reshape((height, width, 3) if channels == 3 else (height, width)))


def cropped(mode, width, height, channels, to_width, to_height, crop_pct, method, mean):
    crop = transforms_imagenet_eval((to_height, to_width), crop_pct=crop_pct, crop_mode=mode, interpolation=method,
                                    mean=(mean,) * channels, normalize=False)
    return fnv(crop(noise_image(width, height, channels)).permute(1, 2, 0).contiguous().numpy().tobytes())


def resized(width, height, channels, to_width, to_height, method):
    image = noise_image(width, height, channels)
    return fnv(image.resize((to_width, to_height), method).tobytes())


def resized_in_floats(width, height, channels, to_width, to_height, method):
    image = torch.from_numpy(np.asarray(noise_image(width, height, channels)).copy()).float()
    image = image.reshape(height, width, channels).permute(2, 0, 1)
    values = (functional.resize(image, [to_height, to_width], interpolation=method, antialias=True) if method else
              torch.nn.functional.interpolate(image[None], (to_height, to_width), mode="bilinear")[0])
    return " ".join(f"{v:.7g}" for v in values.permute(1, 2, 0).flatten().tolist())


def refused(name):
    return name.startswith("cut") or name.endswith("short.png")


with open(folder + "/preprocess.txt", "w") as out:
    for name, data in files():
        with open(f"{folder}/images/{name}", "wb") as file:
            file.write(data)
        if refused(name):
            out.write(f"decode {name} 0 0 - -\n")
            continue
        image = Image.open(io.BytesIO(data))
        if name in ("grey16.png", "interlaced16.png"):  # Pillow would clip it at 255
            image = Image.frombytes("L", image.size, np.uint8(np.asarray(image) >> 8).tobytes())
        hashes = [fnv(image.convert(mode).tobytes()) for mode in ("RGB", "L")]
        out.write(f"decode {name} {image.width} {image.height} {' '.join(hashes)}\n")
    for name in "420.jpg", "rgb.png", "lossy_rgb.webp":
        for orientation in range(1, 9):
            image = Image.open(f"{folder}/images/{name}").convert("RGB")
            image.getexif()[0x112] = orientation
            image = ImageOps.exif_transpose(image)
            out.write(f"turned {name} {orientation} {image.width} {image.height} {fnv(image.tobytes())}\n")
    for sizes in ((1, 1, 3, 5, 7), (9, 7, 1, 9, 3), (9, 7, 3, 4, 7), (33, 47, 3, 224, 20), (90, 61, 3, 31, 21),
                  (61, 90, 1, 30, 45), (64, 64, 3, 32, 32), (28, 28, 1, 32, 32), (32, 32, 3, 248, 248),
                  (500, 3, 3, 7, 3), (3, 500, 1, 8, 2), (97, 53, 3, 96, 52), (5, 4, 3, 1, 1), (40, 90, 3, 20, 49),
                  (40, 90, 3, 20, 50), (31, 200, 3, 31, 17), (20, 60, 1, 90, 59)):
        for filter_name, method in ("bilinear", BILINEAR), ("bicubic", BICUBIC):
            out.write(f"resize {' '.join(map(str, sizes))} {filter_name} {resized(*sizes, method)}\n")
    for sizes in (500, 375, 1, 5, 4), (9, 7, 3, 3, 4), (5, 7, 3, 2, 6), (6, 4, 1, 6, 4):
        for filter_name, method in (("bilinear", T.InterpolationMode.BILINEAR),
                                    ("bicubic", T.InterpolationMode.BICUBIC), ("plain", None)):
            out.write(f"floats {' '.join(map(str, sizes))} {filter_name} {resized_in_floats(*sizes, method)}\n")
    for mode in "center", "squash", "border":
        for sizes in ((90, 61, 3), (61, 90, 3), (64, 64, 1), (20, 13, 3), (13, 20, 1), (170, 30, 3), (30, 170, 3)):
            for how in ((32, 32, 1.0, "bicubic", 0.3), (32, 32, 0.875, "bilinear", 0.485), (40, 24, 0.9, "bicubic", 0.9)):
                out.write(f"crop {mode} {' '.join(map(str, sizes + how))} {cropped(mode, *sizes, *how)}\n")
    for mean in -0.1, 1.2:
        how = 20, 13, 3, 32, 32, 1.0, "bicubic", mean
        out.write(f"crop border {' '.join(map(str, how))} {cropped('border', *how)}\n")
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    ramp = Image.fromarray(np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2))
    floats = T.Normalize(mean, std)(T.ToTensor()(ramp)).permute(1, 2, 0).contiguous().numpy()
    out.write(f"normalise {fnv(floats.tobytes())}\n")
    crop = T.Compose([T.Resize(248, interpolation=T.InterpolationMode.BICUBIC), T.CenterCrop(224)])
    wide = create_transform((3, 160, 224), crop_pct=0.9, interpolation="bilinear", mean=(0, 0, 0), std=(1, 1, 1))
    for path in photographs:
        image = Image.open(path).convert("RGB")
        out.write(f"photo {path[len(root):]} {fnv(crop(image).tobytes())}\n")
        floats = wide(image).permute(1, 2, 0)
        pixels = torch.round(floats * 255).to(torch.uint8).contiguous().numpy()
        out.write(f"wide {path[len(root):]} {fnv(pixels.tobytes())}\n")
