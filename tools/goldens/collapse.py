"""Rank residuals, ranks and similarities along networks whose skips, MLPs and norms are switched off, in PyTorch and
f64.

collapse.txt has two lines for each network, set of switches, and norms on or off: a label, attscope's name and options,
"=", then for "composite" and for "frobenius" the residuals before the first addition and after each. rank.txt has the
same for "effective" and "stable" (ranks) and "cosine" (mean similarity of different tokens). Weights and the image
follow from formulas as in logits.py; DeiT-Tiny has its published weights, if ATT_SHARED has them. The switched forward
passes are written out here, block by block; only the parts of a block come from timm.
"""
import itertools
import os
import sys
import warnings
import timm
import torch
from timm.models.vision_transformer import ParallelScalingBlock
from attention_cnn import AttentionCnn
from networks import fill, picture

warnings.filterwarnings("ignore")
SWITCHES = {"attention": (False, False), "skip": (True, False), "mlp": (False, True), "both": (True, True)}


def residuals(x):
    """Of tokens [N, C]."""
    rest = x - x.mean(0)
    one, infinite = (lambda y: y.abs().sum(0).max()), (lambda y: y.abs().sum(1).max())
    composite = ((one(rest) / one(x)) * (infinite(rest) / infinite(x))).sqrt()
    return composite.item(), (rest.norm() / x.norm()).item()


def ranks(x):
    """Effective and stable rank of tokens [N, C]."""
    values = torch.linalg.svdvals(x / x.abs().max())
    shares = values / values.sum()
    shares = shares[shares > 0]
    return (-(shares * shares.log()).sum()).exp().item(), ((values ** 2).sum() / values[0] ** 2).item()


def cosine(x):
    """Mean over all pairs of different tokens, from the matrix of all similarities."""
    unit = x / x.norm(dim=1, keepdim=True)
    return (unit @ unit.T)[~torch.eye(len(x), dtype=bool)].mean().item()


def figures(x):
    """Of tokens [1, N, C] or [1, H, W, C]."""
    x = x.reshape(-1, x.shape[-1])
    return *residuals(x), *ranks(x), cosine(x)


def told(values):
    """Texts; 0 from the first value on that is at most 1e-10, because rounding decides what follows."""
    known = list(itertools.takewhile(lambda value: value > 1e-10, values))
    return [f"{value:.8g}" for value in known] + ["0"] * (len(values) - len(known))


class Step:
    """A residual addition. after: the norm that follows it."""

    def __init__(self, branch, attends, after=None):
        self.branch, self.attends, self.after = branch, attends, after


def identity(x):
    return x


def vit_steps(block, norms, mlp):
    norm1, norm2 = (block.norm1, block.norm2) if norms else (identity, identity)
    yield Step(lambda x: block.ls1(block.attn(norm1(x))), True)
    yield Step(lambda x: block.ls2(block.mlp(norm2(x))), False)


def things_steps(block, norms, mlp):
    def run(branch, x):
        part = branch.attn if hasattr(branch, "attn") else branch.mlp
        return branch.ls(part(branch.norm(x) if norms else x))
    yield Step(lambda x: sum(run(branch, x) for branch in block.attns), True)
    yield Step(lambda x: sum(run(branch, x) for branch in block.ffns), False)


def scaling_steps(block, norms, mlp):
    def branch(x):
        kept = block.in_norm, block.mlp_out_proj.weight.data, block.mlp_out_proj.bias.data
        if not norms:
            block.in_norm = torch.nn.Identity()
        if not mlp:
            block.mlp_out_proj.weight.data, block.mlp_out_proj.bias.data = kept[1] * 0, kept[2] * 0
        result = block(x) - x
        block.in_norm, block.mlp_out_proj.weight.data, block.mlp_out_proj.bias.data = kept
        return result
    yield Step(branch, True)


def swin_steps(block, norms, mlp):
    norm1, norm2 = (block.norm1, block.norm2) if norms else (identity, identity)
    flat = lambda f: (lambda x: f(x.reshape(1, -1, x.shape[-1])).reshape(x.shape))
    yield Step(lambda x: block._attn(norm1(x)), True)
    yield Step(flat(lambda x: block.mlp(norm2(x))), False)


def swin_v2_steps(block, norms, mlp):
    norm1, norm2 = (block.norm1, block.norm2) if norms else (identity, identity)
    flat = lambda f: (lambda x: f(x.reshape(1, -1, x.shape[-1])).reshape(x.shape))
    yield Step(lambda x: norm1(block._attn(x)), True)
    yield Step(flat(lambda x: norm2(block.mlp(x))), False)


def cnn_steps(block, norms, mlp):
    act = torch.nn.functional.gelu
    yield Step(block.attn, True, block.norm1 if norms else identity)
    yield Step(lambda x: block.mlp.fc2(act(block.mlp.fc1(x))), False, block.norm2 if norms else identity)


def trace(stages, steps_of, x, skip, mlp, norms):
    """stages: lists of blocks, each after a function that makes its tokens."""
    found = [figures(x)]
    for enter, blocks in stages:
        x = enter(x)
        for block in blocks:
            for step in steps_of(block, norms, mlp):
                if not step.attends and not mlp:
                    continue
                x = x + step.branch(x) if skip else step.branch(x)
                x = step.after(x) if step.after else x
                found.append(figures(x))
    return found


def vit(name, steps_of, **arguments):
    model = timm.create_model(name, num_classes=4, **arguments).double().eval()
    def start(image):
        x = model.patch_embed(image)
        return model.norm_pre(model._pos_embed(x))
    return model, start, lambda: [(identity, model.blocks)], steps_of


def swin(name, steps_of, **arguments):
    model = timm.create_model(name, num_classes=4, **arguments).double().eval()
    return model, model.patch_embed, lambda: [(layer.downsample, layer.blocks) for layer in model.layers], steps_of


def cnn():
    model = AttentionCnn(8, (2, 2), 3, 4, 24, 3, 4, "quadratic", 64 / 24).double().eval()
    start = lambda image: model.patch_embed.proj(image).flatten(2).transpose(1, 2)
    return model, start, lambda: [(identity, model.blocks)], cnn_steps


SMALL = {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 4, "num_heads": 3}
SWIN = {"img_size": 64, "patch_size": 4, "window_size": 4, "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4)}
SWIN_OPTIONS = "img_size=64 patch_size=4 window_size=4 embed_dim=16 depths=2,2 stage_heads=2,4"
SMALL_OPTIONS = " ".join(f"{key}={value}" for key, value in SMALL.items())
networks = {
    "registers": (vit("vit_small_patch14_reg4_dinov2", vit_steps, **SMALL), 32,
                  "vit_small_patch14_reg4_dinov2 " + SMALL_OPTIONS),
    "things": (vit("vit_small_patch16_18x2_224", things_steps, **SMALL), 32,
               "vit_small_patch16_18x2_224 " + SMALL_OPTIONS),
    "scaling": (vit("vit_tiny_patch16_224", scaling_steps, block_fn=ParallelScalingBlock, **SMALL), 32,
                "vit_tiny_patch16_224 block_fn=ParallelScalingBlock " + SMALL_OPTIONS),
    "swin": (swin("swin_tiny_patch4_window7_224", swin_steps, **SWIN), 64,
             "swin_tiny_patch4_window7_224 " + SWIN_OPTIONS),
    "swin_v2": (swin("swinv2_tiny_window8_256", swin_v2_steps, **SWIN), 64, "swinv2_tiny_window8_256 " + SWIN_OPTIONS),
    "attention_cnn": (cnn(), 8, "attention_cnn_quadratic img_size=8 embed_dim=24 depth=3 num_heads=4 "
                      f"mlp_ratio={64 / 24:.17g}"),
}
for (model, *_), _, _ in networks.values():
    fill(model)
weights = os.environ.get("ATT_SHARED", "") + "/data/weights/deit_tiny_patch16_224.safetensors"
files = {"collapse.txt": ("composite", "frobenius"), "rank.txt": ("effective", "stable", "cosine")}
old = {}
if os.path.exists(weights):
    from safetensors.torch import load_file
    deit = timm.create_model("deit_tiny_patch16_224").double().eval()
    deit.load_state_dict({name: value.double() for name, value in load_file(weights).items()})
    start = lambda image: deit._pos_embed(deit.patch_embed(image))
    networks["deit_tiny"] = ((deit, start, lambda: [(identity, deit.blocks)], vit_steps), 224,
                             "deit_tiny_patch16_224")
else:
    for file in files:
        if os.path.exists(f"{sys.argv[1]}/{file}"):
            old[file] = [line for line in open(f"{sys.argv[1]}/{file}") if line.startswith("deit_tiny ")]

found = {}
with torch.no_grad():
    for label, ((model, start, stages, steps_of), side, options) in networks.items():
        tokens = start(picture(side, side))
        for norms in (True, False):
            for name, (skip, mlp) in SWITCHES.items():
                columns = zip(*trace(stages(), steps_of, tokens, skip, mlp, norms))
                found[label, options, name + ("" if norms else "_no_norm")] = list(columns)
kinds = [kind for of_file in files.values() for kind in of_file]
for file, of_file in files.items():
    with open(f"{sys.argv[1]}/{file}", "w") as out:
        for (label, options, name), columns in found.items():
            for kind, values in zip(kinds, columns):
                if kind in of_file:
                    texts = told(values) if file == "collapse.txt" else [f"{value:.9g}" for value in values]
                    print(label, options, kind, name, "=", *texts, file=out)
        out.writelines(old.get(file, []))
