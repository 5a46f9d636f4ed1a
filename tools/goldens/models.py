"""Names, shapes, weight decay and preprocessing of timm's ViTs, EVAs, Swins, residual networks, MLP-Mixers,
ConvNeXts and RegNets.

models.txt has one line for each network that attscope has:

name parameters hash decayed classes img_size mean[3] std[3] crop_pct interpolation crop_mode

hash: sum modulo 2^64 of FNV-1a (64 bit) of "<tensor><shape as a Python list>" over the state dict without
num_batches_tracked. decayed: number of elements with weight decay in timm.
"""
import re
import sys
import timm
from timm.optim import param_groups_weight_decay

# ViTs without a classifier in timm, to which attscope gives ImageNet's 1000 classes.
CLASSIFIERS = ("vit_huge_patch14_224", "vit_large_patch32_224", "vit_small_patch8_224")

# Residual networks that attscope lacks: anti-aliased strides, other norms, stems and widths.
OTHER_RESNETS = re.compile(r".*(aa\d|blur|rs\d|_gn|pruned|\ds$|senet154|test_)")


def fnv(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value


def line(name):
    config = timm.get_pretrained_cfg(name)
    classes = 1000 if name in CLASSIFIERS else config.num_classes or 0
    model = timm.create_model(name, device="meta", num_classes=classes)
    tensors = {n: t for n, t in model.state_dict().items() if not n.endswith("num_batches_tracked")}
    no_decay = model.no_weight_decay() if hasattr(model, "no_weight_decay") else ()
    groups = param_groups_weight_decay(model, 0.05, no_weight_decay_list=no_decay)
    fields = [name, sum(p.numel() for p in model.parameters()),
              f"{sum(fnv(n + str(list(t.shape))) for n, t in tensors.items()) % 2**64:016x}",
              sum(p.numel() for g in groups if g["weight_decay"] for p in g["params"]),
              classes, config.input_size[1], *config.mean, *config.std, config.crop_pct, config.interpolation,
              config.crop_mode]
    return " ".join(str(f) for f in fields)


names = [n for m in ("vision_transformer", "vision_transformer_relpos", "deit", "beit") for n in timm.list_models(module=m)]
names += [n for n in timm.list_models(module="resnet") if not OTHER_RESNETS.match(n)]
names += [n for n in timm.list_models(module="mlp_mixer") if n.startswith("mixer_")]  # not gmixer, resmlp, gmlp
swins = ("swin_transformer", "swin_transformer_v2", "swin_transformer_v2_cr")
names += [n for m in swins for n in timm.list_models(module=m)]
names += [n for n in timm.list_models(module="convnext") if not re.match("convnextv2|.*_zepto_", n)]
names += [n for n in timm.list_models(module="regnet") if n[6] in "xyz" and not n.endswith("_sgn")]  # not preact, group norm
names += [n for n in timm.list_models(module="eva") if not n.endswith("_sapiens2")]
with open(sys.argv[1] + "/models.txt", "w") as out:
    for name in sorted(names):
        out.write(line(name) + "\n")
