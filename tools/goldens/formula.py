"""Numbers that the tests draw, too: imported by the other scripts; run alone it writes nothing."""
import numpy as np


def uniform(key, count, first=0):
    """Returns draws first to first + count - 1, in [-1/2, 1/2): FNV-1a (32 bit) of the key, a counter, and the finalizer
    of MurmurHash3."""
    seed = 0x811c9dc5
    for byte in key.encode():
        seed = (seed ^ byte) * 0x01000193 % 2**32
    z = (seed + (first + np.arange(count, dtype=np.uint64)) * 0x9e3779b9) % 2**32
    z = (z ^ (z >> np.uint64(16))) * 0x85ebca6b % 2**32
    z = (z ^ (z >> np.uint64(13))) * 0xc2b2ae35 % 2**32
    return (z ^ (z >> np.uint64(16))).astype(np.float64) / 2**32 - 0.5
