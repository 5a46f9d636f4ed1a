"""Files like data/meta.mat of ImageNet's devkit, written by SciPy: meta.mat as in the kit, plain.mat without compression.

Both have the struct array "synsets" with the fields of the kit. The classes with the ILSVRC2012_ID 1, 2, 3 have the WNIDs
n01440764, n03888257, n01443537, so that the order of the IDs is not that of the WNIDs; the ID 1001 is a group of classes.
"""
import os
import sys
import numpy as np
from scipy.io import savemat

folder = sys.argv[1] + "/devkit"
os.makedirs(folder, exist_ok=True)
fields = ["ILSVRC2012_ID", "WNID", "words", "gloss", "num_children", "children", "wordnet_height", "num_train_images"]
rows = [
    (np.uint16(1), "n01440764", "tench, Tinca tinca", "freshwater dace-like game fish", 0, np.zeros((1, 0)), 0, 1300),
    (np.float64(2), "n03888257", "parachute, chute", "rescue equipment", 0, np.zeros((1, 0)), 0, 1300),
    (np.int8(3), "n01443537", "goldfish, Carassius auratus", "small golden fish", 0, np.zeros((1, 0)), 0, 1300),
    (np.uint16(1001), "n01439121", "fish", "group", 2, np.array([[1.0, 3.0]]), 1, 0),
]
synsets = np.zeros((len(rows), 1), dtype=[(field, object) for field in fields])
for i, row in enumerate(rows):
    synsets[i, 0] = row
for name, compressed in [("meta.mat", True), ("plain.mat", False)]:
    savemat(f"{folder}/{name}", {"version": np.array([[12.0]]), "synsets": synsets}, do_compression=compressed)
    with open(f"{folder}/{name}", "r+b") as file:  # the header's text has the date
        file.write(b"MATLAB 5.0 MAT-file, Platform: posix".ljust(116))
