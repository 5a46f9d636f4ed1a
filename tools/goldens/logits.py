"""Logits of all ViTs, BEiTs, EVAs, Swins, ConvNeXts and RegNets that attscope has, made small, for one image, in timm and in f64.

logits.txt has one line for each name: the name, attscope's options that make the network small, "=", and the logits.
Weights and the image follow from formulas as in training.py, so that any program can compute them. The options leave
what makes a name differ from others: kinds of blocks and norms, eps, activation, tokens, positions, pooling, windows.
"""
import sys
import warnings
import timm
import torch
from networks import fill, picture

warnings.filterwarnings("ignore")
CLASSES = 4
supported = {line.split()[0] for line in open(sys.argv[1] + "/models.txt")}


def small_swin(name):
    """Returns timm's arguments, and attscope's options, that make a Swin small: half of its side, 16 channels."""
    embed = timm.create_model(name, device="meta", depths=(1, 1, 1, 1)).patch_embed
    sizes = {"img_size": embed.img_size[0] // embed.patch_size[0] * 2, "embed_dim": 16}
    return sizes | {"depths": (2, 2, 2, 1), "num_heads": (1, 2, 4, 8)}, \
        sizes | {"depths": "2,2,2,1", "stage_heads": "1,2,4,8"}


def small_convnext(name):
    """The same for a ConvNeXt, whose maps have odd sides in the middle; attscope's lists are texts."""
    options = {"depths": (1, 2, 1, 1), "dims": (16, 24, 32, 40)}
    hidden = {"head_hidden_size": 24} if name.endswith("_mlp") else {}
    return options | hidden, {"img_size": 72} | {k: ",".join(map(str, v)) for k, v in options.items()} | hidden


def small_regnet(name):
    """The same for a RegNet, whose widths timm computes from numbers."""
    last = {"num_features": 40} if timm.create_model(name, device="meta").num_features in (1024, 1536) else {}
    return {"depth": 6, "w0": 16, "wa": 16, "wm": 2, "group_size": 8} | last, \
        {"img_size": 72, "depths": "1,1,3,1", "dims": "16,32,64,128", "group_sizes": 8} | last


def small(name):
    """The same for other networks: 3 x 3 patches, with the pixels that the network leaves out beyond them."""
    if name.startswith("swin"):
        return small_swin(name)
    if name.startswith("regnet"):
        return small_regnet(name)
    if "convnext" in name:
        return small_convnext(name)
    embed = timm.create_model(name, device="meta", depth=1).patch_embed
    patch = embed.patch_size[0]
    width = 96 if name == "vit_7b_patch16_dinov3" else 48  # timm rounds the MLP of this one to a multiple of 64 channels
    options = {"img_size": 3 * patch + embed.img_size[0] % patch, "embed_dim": width, "depth": 2, "num_heads": 3}
    return options, options


def logits(name, arguments, side):
    model = timm.create_model(name, num_classes=CLASSES, **arguments).double().eval()
    fill(model)
    with torch.no_grad():
        return model(picture(side, side))[0].tolist()


with open(sys.argv[1] + "/logits.txt", "w") as out:
    for module in ("vision_transformer", "vision_transformer_relpos", "deit", "beit", "eva",
                   "swin_transformer", "swin_transformer_v2", "swin_transformer_v2_cr", "convnext", "regnet"):
        for name in sorted(supported & set(timm.list_models(module=module))):
            arguments, options = small(name)
            print(name, *(f"{k}={v}" for k, v in options.items()), "=",
                  *(f"{v:.7g}" for v in logits(name, arguments, options["img_size"])), file=out)
