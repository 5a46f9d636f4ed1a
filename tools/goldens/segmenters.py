"""Small segmenters in PyTorch, in f64: UPerNet and its auxiliary head over timm's backbones, as tools/upernet.py has
them, and over the Swin of the transformers library with its own UPerNet.

Weights, images and masks follow from formulas, so that any program can compute them. segmenters.txt has these lines for
each case:

case <name>
logit <value>           every eleventh of the logits [h, w, classes] of the first image, with running statistics
loss <value>            one line for each of ten updates with SGD
norm <tensor> <value>   the norm of the tensor's gradient in the first update
last <tensor> <value>   the same in the tenth update
buffer <tensor> <value> the norm of the buffer after the tenth update

The case "transformers" has logits only.
"""
import pathlib
import re
import sys

import numpy as np
import torch
import torch.nn.functional as F
from timm.models.resnet import BasicBlock
from timm.models.swin_transformer import SwinTransformer
from timm.models.vision_transformer import VisionTransformer
from timm.optim import param_groups_weight_decay
from torch import nn
from transformers import SwinConfig, UperNetConfig, UperNetForSemanticSegmentation

from formula import uniform
from residual import plain

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from upernet import Fcn, MultiLevel, Pyramid, Uper, stages  # noqa: E402  (found by the sys.path of the line above)

torch.set_default_dtype(torch.float64)
STEPS, BATCH, CLASSES, HEIGHT, WIDTH = 10, 4, 5, 32, 40
CHANNELS, AUXILIARY, WEIGHT = 12, 6, 0.4
SIZES = CHANNELS, AUXILIARY, CLASSES


class Head(nn.Module):
    """sizes: channels of UPerNet and of the auxiliary head, and the number of classes."""

    def __init__(self, widths, auxiliary_index, sizes, norms=False, neck=None):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in widths) if norms else None
        self.neck = neck(widths[0]) if neck else None
        channels, auxiliary, classes = sizes
        uper = Uper(widths, channels, classes)
        for name, child in uper.named_children():
            self.add_module(name, child)
        self.uper = [uper]  # its parameters are those of this module
        self.auxiliary_head = Fcn(widths[auxiliary_index], auxiliary, classes)
        self.auxiliary_index = auxiliary_index

    def forward(self, maps):
        if self.norms:
            maps = [norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2) for norm, x in zip(self.norms, maps)]
        if self.neck:
            maps = self.neck(maps)
        return self.uper[0](maps), self.auxiliary_head(maps[self.auxiliary_index])


class Segmenter(nn.Module):
    def __init__(self, backbone, features, segmenter):
        super().__init__()
        self.backbone, self.features, self.segmenter = backbone, features, segmenter

    def forward(self, x):
        return self.segmenter(self.features(self.backbone, x))

    def names(self, items):
        return [(name.removeprefix("backbone."), value) for name, value in items]


def resnet(**options):
    model = plain(BasicBlock, **options)
    model.fc = nn.Identity()
    return Segmenter(model, stages, Head((8, 16, 32, 64), 2, SIZES))


def swin():
    def features(model, x):
        x, maps = model.patch_embed(x), []
        for layer in model.layers:
            x = layer(x)
            maps.append(x.permute(0, 3, 1, 2))
        return maps

    model = SwinTransformer((HEIGHT, WIDTH), 2, num_classes=0, embed_dim=8, depths=(2, 1, 2, 1),
                            num_heads=(1, 2, 2, 2), window_size=4, drop_path_rate=0)
    return Segmenter(model, features, Head((8, 16, 32, 64), 2, SIZES, norms=True))


def vit(auxiliary_index, neck):
    def features(model, x):
        x = model.norm_pre(model._pos_embed(model.patch_embed(x)))
        maps = []
        for number, block in enumerate(model.blocks):
            x = block(x)
            if number in (1, 2, 3, 5):
                maps.append(x[:, 1:].transpose(1, 2).unflatten(2, (HEIGHT // 8, WIDTH // 8)))
        return maps

    model = VisionTransformer((HEIGHT, WIDTH), 8, num_classes=0, embed_dim=16, depth=6, num_heads=2)
    return Segmenter(model, features, Head((16, 16, 16, 16), auxiliary_index, SIZES, neck=neck))


CASES = {"resnet": resnet, "resnet_dilated": lambda: resnet(output_stride=8), "swin": swin,
         "vit": lambda: vit(3, None), "vit_pyramid": lambda: vit(2, Pyramid),
         "vit_multi_level": lambda: vit(3, MultiLevel)}


def value_of(name, shape):
    """Around 1 for the gains of norms and running variances, around 0 for all others."""
    flat = len(shape) == 1
    start = 1.0 if flat and name.endswith(("weight", "running_var")) else 0.0
    values = (start + (0.2 if flat else 0.4) * uniform(name, int(np.prod(shape)))).astype(np.float32)
    return torch.from_numpy(values).double().reshape(tuple(shape))


def batch(step):
    """Images drawn in the order [h, w, C], which attscope's have; class -1 is none."""
    pixels = HEIGHT * WIDTH
    images = (4 * uniform("image", BATCH * pixels * 3, step * BATCH * pixels * 3)).astype(np.float32)
    images = torch.from_numpy(images).double().reshape(BATCH, HEIGHT, WIDTH, 3).permute(0, 3, 1, 2)
    classes = np.floor((uniform("mask", BATCH * pixels, step * BATCH * pixels) + 0.5) * (CLASSES + 1)).astype(np.int64)
    return images, torch.from_numpy(classes - 1).reshape(BATCH, HEIGHT, WIDTH)


def loss_of(logits, masks):
    """The mean over the images of the mean over the pixels that have a class."""
    logits = F.interpolate(logits, (HEIGHT, WIDTH), mode="bilinear", align_corners=False)
    return torch.stack([F.cross_entropy(logits[i:i + 1], masks[i:i + 1], ignore_index=-1)
                        for i in range(BATCH)]).mean()


def norms_of(word, items):
    """Norms that are 0 but for rounding are written as 0."""
    norms = [(name, value.norm().item()) for name, value in items if value is not None]
    return [f"{word} {name} {norm if norm > 1e-15 else 0:.9g}\n" for name, norm in norms]


def write_logits(out, logits):
    out.writelines(f"logit {value:.9g}\n" for value in logits[0].permute(1, 2, 0).flatten()[::11].tolist())


def run(out, name, model):
    with torch.no_grad():
        for key, tensor in model.names(model.state_dict().items()):
            if not key.endswith(("num_batches_tracked", "relative_position_index")):
                tensor.copy_(value_of(key, tensor.shape))
        out.write(f"case {name}\n")
        write_logits(out, model.eval()(batch(0)[0])[0])
    kept = {"backbone." + key for key in getattr(model.backbone, "no_weight_decay", set)()}
    update = torch.optim.SGD(param_groups_weight_decay(model, 1e-2, no_weight_decay_list=kept), lr=0.03, momentum=0.9)
    model.train()
    for step in range(STEPS):
        images, masks = batch(step)
        logits, auxiliary = model(images)
        loss = loss_of(logits, masks) + WEIGHT * loss_of(auxiliary, masks)
        update.zero_grad()
        loss.backward()
        out.write(f"loss {loss.item():.12g}\n")
        if step in (0, STEPS - 1):
            gradients = [(key, parameter.grad) for key, parameter in model.names(model.named_parameters())]
            out.writelines(norms_of("last" if step else "norm", gradients))
        update.step()
    running = [(key, value) for key, value in model.names(model.named_buffers()) if "running" in key]
    out.writelines(norms_of("buffer", running))


# Names of the transformers library and attscope's.
RENAMED = [(r"backbone\.swin\.embeddings\.patch_embeddings\.projection", "patch_embed.proj"),
           (r"backbone\.swin\.embeddings\.norm", "patch_embed.norm"),
           (r"backbone\.swin\.layernorm", "norm"),
           (r"backbone\.swin\.encoder\.(layers\.)(\d+)(\.downsample)", lambda m: f"{m[1]}{int(m[2]) + 1}{m[3]}"),
           (r"backbone\.swin\.encoder\.", ""),
           (r"attention\.relative_position_bias\.", "attn."),
           (r"attention\.o_proj", "attn.proj"),
           (r"layernorm_before", "norm1"), (r"layernorm_after", "norm2"),
           (r"backbone\.hidden_states_norms\.stage(\d)", lambda m: f"segmenter.norms.{int(m[1]) - 1}"),
           (r"decode_head", "segmenter"), (r"auxiliary_head", "segmenter.auxiliary_head"),
           (r"batch_norm", "bn"), (r"classifier", "conv_seg")]


def renamed(name):
    for pattern, replacement in RENAMED:
        name = re.sub(pattern, replacement, name)
    return name


def transformers(out):
    side = 32
    swin_config = SwinConfig(image_size=side, patch_size=2, embed_dim=8, depths=[2, 1, 2, 1], num_heads=[1, 2, 2, 2],
                             window_size=2, out_features=["stage1", "stage2", "stage3", "stage4"])
    model = UperNetForSemanticSegmentation(UperNetConfig(
        backbone_config=swin_config, hidden_size=CHANNELS, auxiliary_channels=AUXILIARY, num_labels=CLASSES)).double()
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            third = re.search(r"attention\.([qkv])_proj", key)
            name = renamed(re.sub(r"attention\.[qkv]_proj", "attn.qkv", key))
            if third:
                whole = value_of(name, (3 * tensor.shape[0], *tensor.shape[1:]))
                tensor.copy_(whole.chunk(3)["qkv".index(third[1])])
            elif "num_batches" not in key:
                tensor.copy_(value_of(name, tensor.shape))
        images = batch(0)[0].permute(0, 2, 3, 1).reshape(-1)[:side * side * 3]
        images = images.reshape(1, side, side, 3).permute(0, 3, 1, 2)
        out.write("case transformers\n")
        model.eval()
        write_logits(out, model.decode_head(model.backbone(images).feature_maps))


if __name__ == "__main__":
    with open(sys.argv[1] + "/segmenters.txt", "w") as out:
        for name, make in CASES.items():
            run(out, name, make())
        transformers(out)
