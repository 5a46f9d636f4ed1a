"""Position embeddings resampled by timm for another grid of patches, and tables of relative positions for other windows.

regrid.txt has for each case one line with the number of extra rows, of prefix tokens, the height and width of the old
grid, the height and width of the new grid, and the width of a token; then the resampled numbers, row by row, one per
line. The original numbers are uniform("pos_embed"), as in training.py. The other names are those of the other ways to
resample a grid. regrid_shifts.txt has the same for tables of relative positions, with the sides of the
tables in place of those of the grids.
"""
import sys
import torch
from timm.layers import resample_abs_pos_embed, resize_rel_pos_bias_table
from formula import uniform


WAYS = {"regrid": {}, "regrid_plain_bicubic": {"antialias": False},
        "regrid_bilinear_antialiased": {"interpolation": "bilinear"},
        "regrid_bilinear": {"interpolation": "bilinear", "antialias": False},
        "regrid_corners": {"interpolation": "bilinear", "antialias": False, "align_corners": True}}


for name, way in WAYS.items():
    with open(f"{sys.argv[1]}/{name}.txt", "w") as out:
        for prefix, old, new, width in (
            (1, (4, 4), (6, 6), 3), (1, (7, 7), (5, 5), 2), (0, (14, 14), (20, 20), 1), (1, (2, 2), (1, 1), 3),
            (1, (13, 13), (3, 3), 2), (2, (1, 1), (3, 3), 2), (1, (4, 4), (3, 7), 2), (0, (5, 3), (2, 6), 3)):
            numbers = uniform("pos_embed", (prefix + old[0] * old[1]) * width)
            table = torch.from_numpy(numbers).float().reshape(1, -1, width)
            made = resample_abs_pos_embed(table, list(new), old_size=list(old), num_prefix_tokens=prefix, **way)
            assert made.shape == (1, prefix + new[0] * new[1], width)
            out.write(f"{prefix} {old[0]} {old[1]} {new[0]} {new[1]} {width}\n")
            out.writelines(f"{value:.8g}\n" for value in made.flatten().tolist())

with open(sys.argv[1] + "/regrid_shifts.txt", "w") as out:
    for extra, old, new, width in (
        (0, (7, 7), (8, 8), 3), (0, (7, 7), (4, 4), 2), (0, (12, 12), (7, 9), 1), (3, (2, 2), (7, 7), 2),
        (0, (3, 3), (3, 5), 2), (0, (7, 7), (7, 4), 2), (0, (1, 1), (2, 2), 2), (3, (4, 4), (1, 3), 1)):
        sides, made_sides = [[2 * n - 1 for n in window] for window in (old, new)]
        table = torch.from_numpy(uniform("pos_embed", (sides[0] * sides[1] + extra) * width)).float().reshape(-1, width)
        made = resize_rel_pos_bias_table(table, new, (made_sides[0] * made_sides[1] + extra, width), old)
        out.write(" ".join(map(str, (extra, *sides, *made_sides, width))) + "\n")
        out.writelines(f"{value:.8g}\n" for value in made.flatten().tolist())
