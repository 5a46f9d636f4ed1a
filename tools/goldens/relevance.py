"""Relevance of the parts of an image for a class, by definition, in PyTorch: from whole maps of attention and their
gradients. Imported by tools/versus_relevance; run alone it writes relevance.txt for small networks, in f64.

Weights and images follow from formulas (formula.py). For each network there is a line "case <name> <class> <logit>",
then for each method a line "<method> <height> <width> <values>".
"""
import sys

import numpy as np
import torch
from timm.models.resnet import BasicBlock, ResNet
from timm.models.swin_transformer import SwinTransformer
from timm.models.vision_transformer import VisionTransformer
from timm.models.vision_transformer_relpos import VisionTransformerRelPos

from formula import uniform
from rows import maximum_flow


class Watch:
    """Keeps the weights of attention and the features of Grad-CAM of a run, with gradients."""

    def __init__(self, model, features):
        self.maps, self.hooks = [], [features.register_forward_hook(self.keep_features)]
        for module in model.modules():
            if hasattr(module, "fused_attn"):
                module.fused_attn = False
                self.hooks.append(module.attn_drop.register_forward_hook(self.keep_map))

    def keep_map(self, module, given, result):
        kept = result * 1
        kept.retain_grad()
        self.maps.append(kept)
        return kept

    def keep_features(self, module, given, result):
        kept = result * 1
        kept.retain_grad()
        self.features = kept
        return kept

    def close(self):
        for hook in self.hooks:
            hook.remove()


def features_of(model):
    if hasattr(model, "layer4"):
        return model.layer4[-1]
    return model.layers[-1].blocks[-1].norm1 if hasattr(model, "layers") else model.blocks[-1].norm1


def run(model, image, target):
    watch = Watch(model, features_of(model))
    image = image.clone().requires_grad_()
    logits = model(image)[0]
    logits[target].backward()
    watch.close()
    return watch, image.grad


def start(model, count):
    """Weights of the tokens that the head reads."""
    prefix = model.num_prefix_tokens
    e = torch.zeros(count)
    if model.global_pool == "token":
        e[0] = 1
    else:
        e[prefix:] = 1 / (count - prefix)
    return e


def one_layer(weights):
    """B of a layer. weights [1, H, N, N] with their gradient."""
    return (weights * weights.grad)[0].clamp(min=0).mean(0).detach()


def chefer(model, watch):
    count = watch.maps[0].shape[-1]
    r = torch.eye(count, dtype=watch.maps[0].dtype)
    for weights in watch.maps:
        r = r + one_layer(weights) @ r
    return start(model, count).to(r) @ r


def rollout(model, watch):
    count = watch.maps[0].shape[-1]
    r = torch.eye(count, dtype=watch.maps[0].dtype)
    for weights in watch.maps:
        r = (weights[0].mean(0) + torch.eye(count).to(r)).detach() / 2 @ r
    return start(model, count).to(r) @ r


def flow(model, watch):
    maps = torch.cat([weights.detach() for weights in watch.maps]).mean(1).double()
    return maximum_flow(maps, start(model, maps.shape[-1]).double())


def grad_cam(model, watch):
    """Features [1, h, w, C] of Swin, [1, C, h, w] of residual networks, [1, N, C] of ViTs."""
    f, g = watch.features.detach()[0], watch.features.grad[0]
    if hasattr(model, "layer4"):
        f, g = f.permute(1, 2, 0), g.permute(1, 2, 0)
    elif f.dim() == 2:
        grid = model.patch_embed.grid_size
        f, g = (x[model.num_prefix_tokens:].unflatten(0, grid) for x in (f, g))
    return (f * g.mean((0, 1))).sum(-1).clamp(min=0)


def integrated_gradients(model, image, target, steps):
    total = 0
    for step in range(steps):
        total = total + run(model, (step + 0.5) / steps * image, target)[1]
    return (image * total / steps)[0].sum(0)


def occlusion(model, image, target, cell, square):
    height, width = (-(-side // cell) for side in image.shape[2:])
    total, count = np.zeros((height, width)), np.zeros((height, width))
    with torch.no_grad():
        logit = model(image)[0, target].item()
        for y in range(height - square + 1):
            for x in range(width - square + 1):
                changed = image.clone()
                changed[:, :, y * cell:(y + square) * cell, x * cell:(x + square) * cell] = 0
                total[y:y + square, x:x + square] += logit - model(changed)[0, target].item()
                count[y:y + square, x:x + square] += 1
    return torch.from_numpy(total / count)


def relevances(model, image, target, steps, cell, square):
    """Maps [h, w] of all methods that apply, by the text that names the method."""
    watch, _ = run(model, image, target)
    found = {}
    if watch.maps and not hasattr(model, "layers"):
        grid = model.patch_embed.grid_size

        def patches(tokens):
            return tokens[model.num_prefix_tokens:].unflatten(0, grid)

        e = start(model, watch.maps[0].shape[-1]).to(watch.maps[0])
        found = {"chefer": patches(chefer(model, watch)), "rollout": patches(rollout(model, watch)),
                 "flow": patches(flow(model, watch)),
                 "attention_gradient": patches(e @ one_layer(watch.maps[-1])),
                 "attention_gradient:layer=0": patches(e @ one_layer(watch.maps[0]))}
    return found | {"grad_cam": grad_cam(model, watch),
                    f"integrated_gradients:steps={steps}": integrated_gradients(model, image, target, steps),
                    f"occlusion:cell={cell},square={square}": occlusion(model, image, target, cell, square)}


def fill(model):
    for name, parameter in model.named_parameters():
        start = 1.0 if parameter.dim() == 1 and name.endswith("weight") else 0.0
        wide = 0.4 if parameter.dim() > 1 else 0.2
        values = (start + wide * uniform(name, parameter.numel())).astype(np.float32)
        parameter.data = torch.from_numpy(values).to(parameter).reshape(parameter.shape)


VIT = {"patch_size": (7, 4), "embed_dim": 32, "depth": 3, "num_heads": 2}
CASES = {
    "vit": (VisionTransformer, VIT),
    "vit_registers": (VisionTransformer, VIT | {"reg_tokens": 3, "no_embed_class": True, "init_values": 0.5}),
    "vit_mean": (VisionTransformer, VIT | {"class_token": False, "global_pool": "avg", "qk_norm": True}),
    "vit_relpos": (VisionTransformerRelPos, VIT | {"rel_pos_type": "bias", "class_token": True,
                                                   "global_pool": "token", "init_values": 0.5}),
    "swin": (SwinTransformer, {"patch_size": (2, 4), "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4),
                               "mlp_ratio": 1.5}),
    "resnet": (ResNet, {"block": BasicBlock, "layers": (1, 1, 1, 1), "channels": (8, 16, 32, 64), "stem_width": 4,
                        "stem_type": "deep"}),
}


def create(kind, options, side):
    if kind is not ResNet:
        return kind(img_size=side, num_classes=10, **options)
    model = ResNet(num_classes=10, **options)
    model.conv1 = torch.nn.Conv2d(3, 8, 7, 2, 3, bias=False)
    return model


def main(folder):
    torch.set_default_dtype(torch.float64)
    with open(folder + "/relevance.txt", "w") as out:
        for name, (kind, options) in CASES.items():
            side, target = 56 if kind is ResNet else 28, 3
            model = create(kind, options, side).eval()
            fill(model)
            drawn = (4 * uniform("image", side * side * 3)).astype(np.float32).reshape(1, side, side, 3)
            image = torch.from_numpy(drawn).double().permute(0, 3, 1, 2)
            with torch.no_grad():
                out.write(f"case {name} {target} {model(image)[0, target].item():.9g}\n")
            for method, found in relevances(model, image, target, 3, side // 4, 2).items():
                if found.numel() > 64:
                    found = found[::7, ::7]
                values = " ".join(f"{value:.8g}" for value in found.flatten().tolist())
                out.write(f"{method} {found.shape[0]} {found.shape[1]} {values}\n")


if __name__ == "__main__":
    main(sys.argv[1])
