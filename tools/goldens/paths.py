"""Contributions of attention paths in a small ViT, in PyTorch in f64.

Weights and images follow from uniform(), as in uniform.py. Every path is followed on its own: attention maps and
variances of layer norms come from the full pass, and the tokens of a path pass head by head. paths.txt has these lines
for the first image; norms are those of Frobenius, and a residual is |X - 1 mean(X)'| / |X|:

output <norm>                      the tokens after the last residual addition
length <k> <norm> <residual>       the sum over all paths with k heads
path <h1-h2-h3> <norm> <residual>  a single path; 0: the skip

chains.txt has the smallest and the largest distance from rank 1, sqrt(1 - s_1^2 / sum s_i^2) with the singular values of
NumPy, of products of maps of one head in each of k layers: "<order> <k> <smallest> <largest>". In the order "formula"
the map of the first layer stands on the right, in "code" on the left.
"""
import functools
import itertools
import os
import sys
import numpy as np
import torch
from timm.models.vision_transformer import VisionTransformer
from formula import uniform
from networks import fill

SIDE, DEPTH, HEADS, WIDTH = 12, 3, 2, 16


def build():
    model = VisionTransformer(img_size=SIDE, patch_size=4, num_classes=3, embed_dim=WIDTH, depth=DEPTH, num_heads=HEADS)
    fill(model)
    return model.double().eval()


def full_pass(model, image):
    """Returns the tokens before the blocks, those after them, and of each block the maps and the variances."""
    x = begin = model._pos_embed(model.patch_embed(image))
    known = []
    for block in model.blocks:
        n = block.norm1(x)
        q, k, v = block.attn.qkv(n).reshape(1, -1, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        maps = (q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5).softmax(-1)
        known.append((maps[0], x[0].var(-1, unbiased=False, keepdim=True)))
        x = block(x)
    return begin[0], x[0], known


def follow(model, known, choice, x):
    """Follows one path without biases."""
    size = WIDTH // HEADS
    for block, (maps, variance), head in zip(model.blocks, known, choice):
        if head == 0:
            continue
        rows = slice((head - 1) * size, head * size)
        x = (x - x.mean(-1, keepdim=True)) / (variance + block.norm1.eps).sqrt() * block.norm1.weight
        value = block.attn.qkv.weight[2 * WIDTH :][rows]
        x = maps[head - 1] @ x @ value.T @ block.attn.proj.weight[:, rows].T
    return x


def figures(x):
    return f"{x.norm():.14g} {(x - x.mean(0)).norm() / x.norm():.14g}"


def distance(matrix):
    values = np.linalg.svd(matrix, compute_uv=False)
    return (np.sum(values[1:] ** 2) / np.sum(values ** 2)) ** 0.5


def chains(known):
    """Yields all chains of k maps as lists from the first layer on, for k = 1..DEPTH."""
    for k in range(1, DEPTH + 1):
        yield k, [[known[layer][0][head].numpy() for layer, head in zip(layers, heads)]
                  for layers in itertools.combinations(range(DEPTH), k)
                  for heads in itertools.product(range(HEADS), repeat=k)]


def write_chains(known, folder):
    with open(os.path.join(folder, "chains.txt"), "w", encoding="utf-8") as file:
        for k, maps in chains(known):
            for order, step in (("formula", -1), ("code", 1)):
                found = [distance(functools.reduce(np.matmul, chain[::step])) for chain in maps]
                print(order, k, f"{min(found):.14g} {max(found):.14g}", file=file)


def main(folder):
    model = build()
    pixels = 4 * uniform("image", SIDE * SIDE * 3)
    image = torch.from_numpy(pixels).reshape(1, SIDE, SIDE, 3).permute(0, 3, 1, 2)
    with torch.no_grad():
        begin, end, known = full_pass(model, image)
        write_chains(known, folder)
        paths = {c: follow(model, known, c, begin) for c in itertools.product(range(HEADS + 1), repeat=DEPTH)}
    lines = [f"output {end.norm():.14g}"]
    for k in range(DEPTH + 1):
        lines.append(f"length {k} {figures(sum(x for c, x in paths.items() if sum(h > 0 for h in c) == k))}")
    for choice in ((0, 2, 0), (1, 0, 2), (2, 1, 1)):
        lines.append(f"path {'-'.join(map(str, choice))} {figures(paths[choice])}")
    with open(os.path.join(folder, "paths.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


main(sys.argv[1])
