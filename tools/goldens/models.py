"""Names, shapes, weight decay and preprocessing of timm's plain ViTs, Swins, residual networks and MLP-Mixers.

models.txt has one line for each network that attscope has:

name parameters hash decayed classes img_size mean[3] std[3] crop_pct interpolation crop_mode

hash: sum modulo 2^64 of FNV-1a (64 bit) of "<tensor><shape as a Python list>" over the state dict without
num_batches_tracked. decayed: number of elements with weight decay in timm.
"""
import re
import sys
import timm
import torch
from timm.models.vision_transformer import Block
from timm.optim import param_groups_weight_decay

TENSOR = re.compile(r"(cls_token|pos_embed|patch_embed\.proj\.(weight|bias)|(fc_)?norm\.(weight|bias)|head\.(weight|bias)"
                    r"|blocks\.\d+\.(norm[12]\.(weight|bias)|attn\.(qkv|proj)\.(weight|bias)|ls[12]\.gamma"
                    r"|mlp\.fc[12]\.(weight|bias)))")
# Plain ViTs that attscope does not list: no classifier in timm, or another name than a ViT's or DeiT's. SigLIP's
# networks with mean pooling are listed.
OTHERS = re.compile(r".*(siglip(?!_gap)|reg4_dinov2|giant_patch14_dinov2|intern|eva|(?<!siglip)_gap_448|giant_patch16_gap|huge_patch14_gap)")

# Residual networks that attscope lacks: anti-aliased strides, other norms, stems and widths.
OTHER_RESNETS = re.compile(r".*(aa\d|blur|rs\d|_gn|pruned|\ds$|senet154|test_)")


def fnv(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value


def is_plain(model):
    """Whether the names of tensors, the blocks and the activation are those of a plain ViT, and patches cover the
    image."""
    embed, block = model.patch_embed, model.blocks[0]
    return (all(TENSOR.fullmatch(name) for name in model.state_dict()) and type(block) is Block
            and isinstance(block.mlp.act, torch.nn.GELU) and embed.img_size[0] % embed.patch_size[0] == 0)


def line(name):
    config = timm.get_pretrained_cfg(name)
    classes = config.num_classes or (0 if "dinov2" in name or "siglip" in name else 1000)
    model = timm.create_model(name, device="meta", num_classes=classes)
    if hasattr(model, "patch_embed") and hasattr(model, "blocks"):
        if not is_plain(model):
            return None
        assert model.blocks[0].norm1.eps == 1e-6 and model.blocks[0].mlp.act.approximate == "none", name
    tensors = {n: t for n, t in model.state_dict().items() if not n.endswith("num_batches_tracked")}
    no_decay = model.no_weight_decay() if hasattr(model, "no_weight_decay") else ()
    groups = param_groups_weight_decay(model, 0.05, no_weight_decay_list=no_decay)
    fields = [name, sum(p.numel() for p in model.parameters()),
              f"{sum(fnv(n + str(list(t.shape))) for n, t in tensors.items()) % 2**64:016x}",
              sum(p.numel() for g in groups if g["weight_decay"] for p in g["params"]),
              classes, config.input_size[1], *config.mean, *config.std, config.crop_pct, config.interpolation,
              config.crop_mode]
    return " ".join(str(f) for f in fields)


names = [n for m in ("vision_transformer", "deit") for n in timm.list_models(module=m) if not OTHERS.match(n)]
names += [n for n in timm.list_models(module="resnet") if not OTHER_RESNETS.match(n)]
names += [n for n in timm.list_models(module="mlp_mixer") if n.startswith("mixer_")]  # not gmixer, resmlp, gmlp
names += timm.list_models(module="swin_transformer")
with open(sys.argv[1] + "/models.txt", "w") as out:
    for name in sorted(names):
        try:
            text = line(name)
        except TypeError:  # networks that do not take these arguments, such as a distilled DeiT
            text = None
        if text:
            out.write(text + "\n")
