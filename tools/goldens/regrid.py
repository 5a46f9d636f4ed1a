"""Position embeddings for another grid of patches, as timm resamples them: for each case a line "prefix from to width",
then the numbers made of table uniform("pos_embed") (training.py), row by row, one a line.
"""
import sys
import numpy as np
import torch
from timm.layers import resample_abs_pos_embed


def uniform(key, count):
    seed = 0x811c9dc5
    for byte in key.encode():
        seed = (seed ^ byte) * 0x01000193 % 2**32
    z = (seed + np.arange(count, dtype=np.uint64) * 0x9e3779b9) % 2**32
    z = (z ^ (z >> np.uint64(16))) * 0x85ebca6b % 2**32
    z = (z ^ (z >> np.uint64(13))) * 0xc2b2ae35 % 2**32
    return (z ^ (z >> np.uint64(16))).astype(np.float64) / 2**32 - 0.5


with open(sys.argv[1] + "/regrid.txt", "w") as out:
    for prefix, old, new, width in (1, 4, 6, 3), (1, 7, 5, 2), (0, 14, 20, 1), (1, 2, 1, 3), (1, 13, 3, 2), (2, 1, 3, 2):
        table = torch.from_numpy(uniform("pos_embed", (prefix + old**2) * width)).float().reshape(1, -1, width)
        made = resample_abs_pos_embed(table, [new, new], num_prefix_tokens=prefix)
        assert made.shape == (1, prefix + new**2, width)
        out.write(f"{prefix} {old} {new} {width}\n")
        out.writelines(f"{value:.8g}\n" for value in made.flatten().tolist())
