"""DeiT-Tiny's logits on 200 photographs, decoded and preprocessed as timm evaluates it (f32, CPU).

deit_tiny.txt has one line for each photograph: folder/file, the five largest logits as class:value, and the logits of
classes 0, 333 and 666. deit_tiny_autocast.txt compares autocast to bfloat16 on the same photographs: the mean and the
largest difference of a logit from f32, and the number of photographs that keep their class.
"""
import glob
import sys

import torch
from PIL import Image
from networks import deit_tiny

shared, model, transform = deit_tiny()
root = shared + "/data/imagenet200/val/"
differences, same = [], 0
with open(sys.argv[1] + "/deit_tiny.txt", "w") as out, torch.inference_mode():
    for path in sorted(glob.glob(root + "*/*")):
        image = transform(Image.open(path).convert("RGB"))[None]
        logits = model(image)[0]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            mixed = model(image)[0].float()
        differences.append((mixed - logits).abs())
        same += int(mixed.argmax() == logits.argmax())
        top = torch.topk(logits, 5)
        best = " ".join(f"{c}:{v:.5f}" for c, v in zip(top.indices.tolist(), top.values.tolist()))
        fixed = " ".join(f"{logits[c].item():.5f}" for c in (0, 333, 666))
        out.write(f"{path[len(root):]} {best} {fixed}\n")
differences = torch.stack(differences)
with open(sys.argv[1] + "/deit_tiny_autocast.txt", "w") as out:
    out.write(f"{differences.mean():.6f} {differences.max():.6f} {same}\n")
