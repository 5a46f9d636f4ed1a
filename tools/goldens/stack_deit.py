"""Residuals of DeiT-Tiny's tokens after each block, in f64 by timm, with and without skips and MLPs.

stack_deit.txt has one line for each stack: <photograph> <skip> <mlp> ln |res(X_l)|_{1,inf} for l = 0, 1, ..., as
long as the residual exceeds 1e-10 of |X_l|: beyond, differences of tokens are rounding errors.
"""

import sys

import torch
from PIL import Image
from networks import deit_tiny

PHOTOGRAPH = "n04443257/n04443257_tobacco_shop.JPEG"

shared, model, transform = deit_tiny()
image = transform(Image.open(f"{shared}/data/imagenet200/val/{PHOTOGRAPH}").convert("RGB"))[None].double()
model = model.double()


def mixed_norm(x):
    return (x.abs().sum(0).max() * x.abs().sum(1).max()).sqrt()


def residuals(skip, mlp):
    kept = {}
    hook = model.blocks[0].register_forward_pre_hook(lambda _, inputs: kept.update(x=inputs[0]))
    model(image)
    hook.remove()
    x, found = kept["x"], []
    for block in [None, *model.blocks]:
        if block:
            x = skip * x + block.attn(block.norm1(x))
            x = skip * x + block.mlp(block.norm2(x)) if mlp else x
        residual = mixed_norm(x[0] - x[0].mean(0))
        if residual < 1e-10 * mixed_norm(x[0]):
            break
        found.append(residual.log().item())
    return found


with open(sys.argv[1] + "/stack_deit.txt", "w", encoding="utf-8") as out, torch.inference_mode():
    for skip, mlp in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        print(PHOTOGRAPH, skip, mlp, *map(repr, residuals(skip, mlp)), file=out)
