"""Loss and gradient norms of small ViTs with the variants of uniform attention, in PyTorch in f64.

Weights, images and labels follow from uniform() of training.py's docstring, in the batch of its first update. There is
one file, uniform.txt. A line "case <modules> <extra_layer>" begins each case, with the texts of these options. The lines
"loss <value>" and "norm <tensor> <value>" follow, the norm of the tensor's gradient; the key third of qkv.bias is left
out, because it does not change the softmax.
"""
import re
import sys
import numpy as np
import torch
from torch import nn
from timm.models.vision_transformer import VisionTransformer
from formula import uniform
from networks import fill

BATCH, CLASSES, SIDE, WIDTH, HEADS, DEPTH = 8, 10, 28, 32, 4, 2


class Broadcast(nn.Module):
    def __init__(self, width, learned, pool="mean"):
        super().__init__()
        self.pool = pool
        if learned:
            self.weight = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        pools = {"mean": lambda: x.mean(1, True), "max": lambda: x.amax(1, True), "class": lambda: x[:, :1]}
        context = pools[self.pool]()
        return x + self.weight * context if hasattr(self, "weight") else (x + context) / 2


class SqueezeExcite(nn.Module):
    def __init__(self, width, ratio="16"):
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(width, width // int(ratio), 1), nn.Conv2d(width // int(ratio), width, 1)

    def forward(self, x):
        pooled = x.mean(1)[:, :, None, None]
        return x * torch.sigmoid(self.fc2(torch.relu(self.fc1(pooled))))[:, None, :, 0, 0]


class Attention(nn.Module):
    """Multi-head attention; uniform: None, or what the uniform head does to the other heads."""

    def __init__(self, uniform):
        super().__init__()
        head = WIDTH // HEADS
        self.heads = HEADS - (uniform in ("replace", "compensate"))
        self.qkv = nn.Linear(WIDTH, 3 * self.heads * head)
        self.proj = nn.Linear(self.heads * head, WIDTH)
        if uniform:
            inner = head * (2 if uniform == "compensate" else 1)
            self.uniform_head = nn.Module()
            self.uniform_head.v, self.uniform_head.proj = nn.Linear(WIDTH, inner), nn.Linear(inner, WIDTH, False)

    def forward(self, x):
        count, tokens, _ = x.shape
        q, k, v = self.qkv(x).reshape(count, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        if not hasattr(self, "uniform_head"):
            return self.proj(y)
        # The outputs of all heads side by side, and one projection of them: equal to the sum of two projections.
        context = self.uniform_head.v(x.mean(1, True)).expand(-1, tokens, -1)
        weight = torch.cat((self.proj.weight, self.uniform_head.proj.weight), 1)
        return nn.functional.linear(torch.cat((y, context), 2), weight, self.proj.bias)


SCOPES = {"after_mlp": "mlp", "after_attn": "attn", "before_mlp": "norm2", "mid_mlp": "mlp.act", "before_attn": "norm1",
          "stream_after_attn": "add1", "stream_after_mlp": "add2"}


class Block(nn.Module):
    def __init__(self, index, placed, halves=(1, 2), hidden=4 * WIDTH):
        super().__init__()
        own = [p for p in placed if p["blocks"] is None or index in p["blocks"]]
        uniform = [p["options"].get("how", "append") for p in own if p["name"] == "uniform_head"]
        if 1 in halves:
            self.norm1, self.attn = nn.LayerNorm(WIDTH, 1e-6), Attention(uniform[0] if uniform else None)
        if 2 in halves:
            self.norm2, self.mlp = nn.LayerNorm(WIDTH, 1e-6), nn.Module()
            self.mlp.fc1, self.mlp.act, self.mlp.fc2 = nn.Linear(WIDTH, hidden), nn.GELU(), nn.Linear(hidden, WIDTH)
        self.add1, self.add2 = nn.Module(), nn.Module()
        self.changes = {}
        for p in own:
            if p["name"] != "uniform_head":
                self.place(p, hidden if p["place"] == "mid_mlp" else WIDTH)

    def place(self, p, width):
        if p["name"] == "se":
            made, name = SqueezeExcite(width, **p["options"]), "se"
        else:
            made, name = Broadcast(width, p["name"] == "cb_s", **p["options"]), "cb"
        self.get_submodule(SCOPES[p["place"]]).add_module(name, made)
        self.changes[p["place"]] = made

    def change(self, place, x):
        return self.changes[place](x) if place in self.changes else x

    def forward(self, x):
        if hasattr(self, "norm1"):
            y = self.attn(self.change("before_attn", self.norm1(x)))
            x = self.change("stream_after_attn", x + self.change("after_attn", y))
        if hasattr(self, "norm2"):
            y = self.mlp.fc1(self.change("before_mlp", self.norm2(x)))
            y = self.mlp.fc2(self.change("mid_mlp", self.mlp.act(y)))
            x = self.change("stream_after_mlp", x + self.change("after_mlp", y))
        return x


def parse(modules):
    placed = []
    for text in [] if modules == "none" else modules.split("+"):
        name, options, place, blocks = re.fullmatch(r"(\w+)(?::([\w=,]+))?(?:@(\w+)(?::(\d))?)?", text).groups()
        placed.append({"name": name, "options": dict(o.split("=") for o in options.split(",")) if options else {},
                       "place": place or "after_mlp", "blocks": [int(blocks)] if blocks else None})
    return placed


def build(modules, extra_layer):
    model = VisionTransformer(img_size=SIDE, patch_size=7, in_chans=1, num_classes=CLASSES, embed_dim=WIDTH, depth=DEPTH,
                              num_heads=HEADS)
    blocks = [Block(i, parse(modules)) for i in range(DEPTH)]
    if extra_layer != "none":
        blocks.append(Block(DEPTH, [], (1,) if extra_layer == "attn" else (2,), 2 * WIDTH))
    model.blocks = nn.Sequential(*blocks)
    model = model.double()
    fill(model)
    return model


def gradient_norm(name, gradient):
    if name.endswith("qkv.bias"):
        query, _, value = gradient.chunk(3)
        gradient = torch.cat((query, value))
    return gradient.norm().item()


def run(out, modules, extra_layer):
    model = build(modules, extra_layer)
    images = torch.from_numpy((4 * uniform("image", BATCH * SIDE * SIDE)).astype(np.float32)).double()
    labels = torch.from_numpy(np.floor((uniform("label", BATCH) + 0.5) * CLASSES).astype(np.int64))
    loss = nn.functional.cross_entropy(model(images.reshape(BATCH, 1, SIDE, SIDE)), labels)
    loss.backward()
    out.write(f"case {modules} {extra_layer}\nloss {loss.item():.12g}\n")
    out.writelines(f"norm {n} {gradient_norm(n, p.grad):.9g}\n" for n, p in model.named_parameters())


CASES = [("none", "none"), ("none", "attn"), ("none", "mlp"), ("uniform_head:how=replace", "attn")]
CASES += [(f"cb@{place}", "none") for place in SCOPES]
CASES += [(f"{name}:pool={pool}", "none") for name in ("cb", "cb_s") for pool in ("max", "class")]
CASES += [(modules, "none") for modules in (
    "cb_s@before_mlp+cb_s@mid_mlp+cb_s@before_attn+cb_s@stream_after_attn", "cb_s@stream_after_mlp:1", "se:ratio=8",
    "se:ratio=4@mid_mlp:0", "uniform_head", "uniform_head:how=replace", "uniform_head:how=compensate",
    "uniform_head@heads:1+cb_s")]

if __name__ == "__main__":
    torch.manual_seed(0)
    with open(f"{sys.argv[1]}/uniform.txt", "w") as file:
        for case in CASES:
            run(file, *case)
