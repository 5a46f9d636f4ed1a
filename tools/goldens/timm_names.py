"""src/networks/models/timm: the names and pretrained tags of timm's networks. The build compiles both files into the library.

names.txt has one line for each name in timm's registry:
    resnet50                                  attscope has this network
    resnetaa50: anti-aliased downsampling     attscope lacks it; the text names the missing feature
    resnetaa50 = resnet50: anti-aliased ...   attscope lacks it; its tensors fit a network that attscope has
    tv_resnet50 -> resnet50.tv_in1k           deprecated name of another network
tags.txt has one line for each pretrained tag of a network that attscope has:
    resnet50.tv_in1k crop_pct=0.875 interpolation=bilinear
A line gives the values that differ from those of the network's first tag, which are the network's own. num_classes=0:
the weights have no classifier. test_img_size and test_crop_pct, which timm's validate.py uses for the weights, are
given if they differ from the tag's img_size and crop_pct. tests/goldens/tags.txt has all values of every tag.

attscope has the networks that tests/goldens/models.txt lists. The missing feature of another network follows from its
Python module if that defines another architecture, or else from rules about its layers.
"""
import functools
import pathlib
import re
import sys
import warnings

import timm
import torch
from timm.models import _registry, convnext, eva, mlp_mixer, regnet, resnet, vision_transformer

warnings.filterwarnings("ignore")
goldens = pathlib.Path(sys.argv[1])
folder = goldens.parent.parent / "src/networks/models/timm"
supported = {line.split()[0] for line in (goldens / "models.txt").open()}

# The missing feature, for Python modules of timm of which attscope has no network.
ARCHITECTURES = {
    "byoanet": "a network of configurable blocks with attention",
    "byobnet": "a network of configurable blocks",
    "cait": "CaiT: talking heads, class attention",
    "coat": "CoaT", "convit": "ConViT", "convmixer": "ConvMixer", "cpubone": "CPUBone",
    "crossvit": "CrossViT", "csatv2": "CSATv2", "cspnet": "cross stage partial network",
    "cspnext": "CSPNeXt", "davit": "DaViT", "deepseek_vit": "DeepSeek's vision encoder", "densenet": "DenseNet",
    "dla": "deep layer aggregation", "dpn": "dual path network", "edgenext": "EdgeNeXt",
    "efficientformer": "EfficientFormer", "efficientformer_v2": "EfficientFormerV2",
    "efficientnet": "EfficientNet and its relatives", "efficientvim": "EfficientViM",
    "efficientvit_mit": "EfficientViT", "efficientvit_msra": "EfficientViT",
    "fasternet": "FasterNet", "fastvit": "FastViT", "focalnet": "FocalNet", "gcvit": "GCViT",
    "gemma4_vit": "Gemma's vision encoder", "ghostnet": "GhostNet", "hardcorenas": "HardCoRe-NAS", "hgnet": "HGNet",
    "hiera": "Hiera", "hieradet_sam2": "Hiera of Segment Anything 2", "hrnet": "HRNet", "iformer": "iFormer",
    "inception_next": "InceptionNeXt", "inception_resnet_v2": "Inception-ResNet", "inception_v3": "Inception",
    "inception_v4": "Inception", "lcnetv2": "LCNetV2", "levit": "LeViT", "lowformer": "LowFormer",
    "mambaout": "MambaOut", "maxxvit": "MaxViT and CoAtNet", "metaformer": "MetaFormer",
    "mobilenetv3": "MobileNetV3 and its relatives", "mobilenetv5": "MobileNetV5", "mobilevit": "MobileViT",
    "mvitv2": "MViTv2", "naflexvit": "NaFlexViT", "nasnet": "NASNet", "nest": "nested transformer",
    "nextvit": "Next-ViT", "nfnet": "normaliser-free network", "pit": "PiT", "pnasnet": "PNASNet", "pvt_v2": "PVTv2",
    "qwen3_vit": "Qwen's vision encoder", "rdnet": "RDNet", "repghost": "RepGhost",
    "repvit": "RepViT", "res2net": "Res2Net: convolutions at several scales in a block",
    "resnest": "ResNeSt: split attention", "resnetv2": "ResNetV2: pre-activation blocks, as in BiT",
    "rexnet": "ReXNet", "selecsls": "SelecSLS", "senet": "the older code's SE networks", "sequencer": "Sequencer",
    "shvit": "SHViT", "sknet": "selective kernels", "starnet": "StarNet", "swiftformer": "SwiftFormer",
    "tiny_vit": "TinyViT", "tnt": "TNT",
    "tresnet": "TResNet", "twins": "Twins", "vgg": "VGG", "visformer": "Visformer",
    "vision_transformer_hybrid": "a convolutional network before the patches",
    "vision_transformer_sam": "Segment Anything's ViT: window "
    "attention, relative positions", "vitamin": "ViTamin", "volo": "VOLO", "vovnet": "VoVNet", "xception": "Xception",
    "xception_aligned": "Xception", "xcit": "XCiT",
}
ACTIVATIONS = {"QuickGELU": "the activation QuickGELU", "GELUTanh": "GELU by its tanh approximation",
               "SiLU": "the activation SiLU"}


def of_type(model, *names):
    return any(type(m).__name__ in names for m in model.modules())


def activation(model, own):
    """Describes the first activation that is not in `own`; None if there is none."""
    for module in model.modules():
        name = type(module).__name__
        if name == "GELU" and getattr(module, "approximate", "none") != "none":
            name = "GELUTanh"
        known = name in own or name in ("Sigmoid", "Softmax")
        if not known and (name in ACTIVATIONS or type(module).__module__.endswith("activation")):
            return ACTIVATIONS.get(name, f"the activation {name}")
    return None


def is_pruned(model):
    """Whether a residual network has stages whose width is not that of the first stage times a power of 2."""
    first = model.layer1[0]
    widths = [stage[-1].conv1.out_channels / (first.conv1.out_channels * 2**s)
              for s, stage in enumerate((model.layer1, model.layer2, model.layer3, model.layer4))]
    return any(w != 1 for w in widths)


def has_aa(model):
    return any(not isinstance(getattr(m, "aa", None), (type(None), torch.nn.Identity)) for m in model.modules())


def lacks_of_resnet(model):
    names = {n: t.shape for n, t in model.state_dict().items()}
    if of_type(model, "BlurPool2d"):
        yield "anti-aliased downsampling by a blur"
    elif has_aa(model):
        yield "anti-aliased downsampling"
    if of_type(model, "GroupNorm"):
        yield "group norm"
    stem = [names[n][0] for n in ("conv1.0.weight", "conv1.3.weight", "conv1.6.weight") if n in names]
    if stem and stem not in ([32, 32, 64], [24, 32, 64]):
        yield "a stem of " + ", ".join(map(str, stem)) + " channels"
    if any(n.startswith("maxpool.") for n in names):
        yield "a convolution in place of the stem's pooling"
    elif not has_aa(model) and not isinstance(model.maxpool, torch.nn.MaxPool2d):
        yield "another pooling in the stem"
    shortcuts = [s for n, s in names.items() if re.search(r"downsample\.\d\.weight", n) and len(s) == 4]
    if any(s[2] > 1 for s in shortcuts):
        yield "shortcuts by 3 x 3 convolutions"
    if activation(model, ("ReLU",)):
        yield activation(model, ("ReLU",))
    first = model.layer1[0]
    if hasattr(first, "conv3") and first.conv2.groups > 1 and first.conv1.out_channels != first.conv2.out_channels:
        yield "first convolutions of half the width"
    elif is_pruned(model):
        yield "channels that were pruned, or are other multiples"


def lacks_of_mixer(model):
    block, mlp = type(model.blocks[0]).__name__, type(model.blocks[0].mlp_channels).__name__
    if block != "MixerBlock":
        yield {"ResBlock": "ResMLP: affine norms", "SpatialGatingBlock": "gMLP: gates along the tokens"}[block]
    elif mlp != "Mlp":
        yield "a gated MLP"


def lacks_of_eva(model):
    if len({block.attn.k_proj.out_features for block in model.blocks if block.attn.k_proj is not None}) > 1:
        yield "fewer heads of keys in some blocks"
    if any(block.gamma_1 is not None and block.gamma_2 is None for block in model.blocks):
        yield "LayerScale of the attention only"
    if model.patch_embed.img_size[0] != model.patch_embed.img_size[1]:
        yield "images that are not square"


def lacks_of_convnext(model):
    if of_type(model, "GlobalResponseNormMlp"):
        yield "global response norms"
    if of_type(model, "SimpleNorm2d"):
        yield "norms that divide by the deviation and subtract nothing"


def lacks_of_regnet(model):
    if of_type(model, "PreBottleneck"):
        yield "pre-activation"
    if of_type(model, "GroupNormAct"):
        yield "group norm"


def signature(model):
    """Returns the names and shapes of the tensors, without the classifier."""
    return frozenset((n, tuple(t.shape)) for n, t in model.state_dict().items() if not n.startswith(("head.", "fc.")))


@functools.cache
def signatures():
    """Returns {signature: name} of the networks that attscope has; networks with the same tensors share one name."""
    return {signature(timm.create_model(name, device="meta")): name for name in sorted(supported, reverse=True)}


def same_tensors(model):
    """Returns " = resnet50" if attscope has a network with the same tensors, else ""."""
    name = signatures().get(signature(model))
    return f" = {name}" if name else ""


def unlisted(model):
    """Describes a network that options could make, but that has no name in attscope."""
    if getattr(model, "cls_token", True) is None:
        return "no class token, mean pooling"
    return "dimensions that attscope does not list"


def reason(name):
    """Returns the rest of a line of names.txt after the name: " = resnet50: group norm"."""
    module = _registry._model_to_module[name]
    if module in ARCHITECTURES:
        return f": {ARCHITECTURES[module]}"
    model = timm.create_model(name, device="meta")
    if isinstance(model, resnet.ResNet):
        lacks = lacks_of_resnet(model)
    elif isinstance(model, mlp_mixer.MlpMixer):
        lacks = lacks_of_mixer(model)
    elif isinstance(model, vision_transformer.VisionTransformer):
        lacks = ()
    elif isinstance(model, convnext.ConvNeXt):
        lacks = lacks_of_convnext(model)
    elif isinstance(model, regnet.RegNet):
        lacks = lacks_of_regnet(model)
    elif isinstance(model, eva.Eva):
        lacks = lacks_of_eva(model)
    else:
        raise SystemExit(f"timm_names: {name}: no rule for the Python module {module}; "
                         f"add it to ARCHITECTURES or write a function")
    return f"{same_tensors(model)}: {', '.join(lacks) or unlisted(model)}"


def is_other_width(old, current):
    """Whether timm replaces a name by one of another width: ig_resnext101_32x48d by resnext101_32x8d."""
    widths = [re.findall(r"\d+x\d+d", name) for name in (old, current)]
    return all(widths) and widths[0] != widths[1]


def names():
    for name in timm.list_models():
        yield name if name in supported else name + reason(name)
    for old, current in _registry._deprecated_models.items():
        if current is None:
            yield f"{old}: removed from timm"
        elif is_other_width(old, current):
            yield f"{old}: timm replaces it by {current}, which has another width"
        else:
            known = current in _registry._model_pretrained_cfgs  # some of timm's new names have tags that do not exist
            yield f"{old} -> {current if known else _registry.get_arch_name(current)}"


def values(config):
    one = {
        "img_size": config.input_size[1],
        "num_classes": config.num_classes,
        "mean": ",".join(f"{m:.9g}" for m in config.mean),
        "std": ",".join(f"{s:.9g}" for s in config.std),
        "crop_pct": config.crop_pct,
        "crop_mode": config.crop_mode,
        "interpolation": config.interpolation,
    }
    assert config.input_size[0] == 3 and config.input_size[1] == config.input_size[2]
    return one


def test_values(config):
    """Returns the values that timm's validate.py uses without --use-train-size."""
    size = config.test_input_size or config.input_size
    assert size[1] == size[2]
    return {"test_img_size": size[1], "test_crop_pct": config.test_crop_pct or config.crop_pct}


def tags():
    for name in sorted(supported):
        default = _registry._model_default_cfgs[name]
        own = values(default.cfgs[default.tags[0]])
        for tag in filter(None, default.tags):
            other = values(default.cfgs[tag])
            differs = [f"{key}={value}" for key, value in other.items() if value != own[key] or value == 0]
            test = [f"{key}={value}" for key, value in test_values(default.cfgs[tag]).items()
                    if value != other[key.removeprefix("test_")]]
            yield " ".join([f"{name}.{tag}"] + differs + test)


def all_values():
    for name in sorted(supported):
        default = _registry._model_default_cfgs[name]
        for tag in filter(None, default.tags):
            config = default.cfgs[tag]
            every = values(config) | test_values(config)
            yield f"{name} {tag} " + " ".join(str(v).replace(",", " ") for v in every.values())


folder.mkdir(exist_ok=True)
for file, lines in (("names.txt", names()), ("tags.txt", tags())):
    head = f"# Written by tools/goldens/timm_names.py from timm {timm.__version__}.\n"
    (folder / file).write_text(head + "".join(f"{line}\n" for line in lines))
(goldens / "tags.txt").write_text("".join(f"{line}\n" for line in all_values()))
