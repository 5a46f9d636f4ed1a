"""Statistics of DeiT-Tiny's attention on 200 photographs. The JPEGs are decoded and preprocessed here; the softmax is
that of timm's unfused attention in f32.

deit_tiny_attention.txt has one line for each statistic and layer: instrument, statistic, node, mean over photographs,
standard deviation over photographs (n - 1), and the mean of each head. Statistics are means over queries, computed in
f64 from the attention maps a:
entropy    -sum a ln a
distance   sum over other grid tokens of a |p_i - p_j|, in sides of the 14 x 14 grid, over queries of the grid; also
           divided by the attention mass on these tokens
jacobian   norms of the softmax's Jacobian J = diag(a) - a a': nuclear (the trace, because no eigenvalue is negative)
           and Frobenius (diagonal and other entries are summed separately)
"""

import glob
import sys

import torch
from PIL import Image
from networks import deit_tiny

SIDE, LAYERS = 14, 12
shared, model, transform = deit_tiny()
maps = [None] * LAYERS
for layer, block in enumerate(model.blocks):
    block.attn.fused_attn = False
    block.attn.attn_drop.register_forward_hook(
        lambda module, given, result, layer=layer: maps.__setitem__(layer, given[0][0].double()))

grid = torch.cartesian_prod(torch.arange(SIDE), torch.arange(SIDE)).double() / SIDE
apart = torch.cdist(grid, grid, compute_mode="donot_use_mm_for_euclid_dist")
others = 1 - torch.eye(SIDE * SIDE, dtype=torch.double)


def frobenius(a):
    diagonal = ((a - a * a) ** 2).sum(-1)
    rest = (a * a).sum(-1) ** 2 - (a ** 4).sum(-1)
    return (diagonal + rest).sqrt()


def statistics(a):
    spatial = a[:, 1:, 1:]
    far = (spatial * apart).sum(-1)
    return {
        ("entropy", "mean"): -torch.xlogy(a, a).sum(-1).mean(-1),
        ("distance", "mean"): far.mean(-1),
        ("distance", "renormalised"): (far / (spatial * others).sum(-1)).mean(-1),
        ("jacobian", "nuclear"): (a - a * a).sum(-1).mean(-1),
        ("jacobian", "frobenius"): frobenius(a).mean(-1),
    }


found = {}
with torch.inference_mode():
    for path in sorted(glob.glob(shared + "/data/imagenet200/val/*/*")):
        model(transform(Image.open(path).convert("RGB"))[None])
        for layer in range(LAYERS):
            for key, heads in statistics(maps[layer]).items():
                found.setdefault((*key, layer), []).append(heads)
with open(sys.argv[1] + "/deit_tiny_attention.txt", "w") as out:
    for (instrument, statistic, layer), rows in sorted(found.items()):
        heads = torch.stack(rows)
        of_all = heads.mean(1)
        each = " ".join(f"{h:.7f}" for h in heads.mean(0).tolist())
        out.write(f"{instrument} {statistic} blocks.{layer}.attn {of_all.mean():.7f} {of_all.std():.7f} {each}\n")
