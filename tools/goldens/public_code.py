"""Small networks with the names and the computation of small public code for PyTorch, and their logits in f64.

Each is written here from the names and the definition of its network. Tensors come into being when a network first
asks for them; their values follow from their names, as the image does. public_code.txt has these lines for each case:

case <name>
flags <key>=<value> ...   options that a person gives, "model" is the name
tensor <name> <sides>     a tensor of the file
logit <value>
"""
import pathlib
import sys

import torch
import torch.nn.functional as F
from formula import uniform
from networks import picture

CLASSES = 5


class Tensors(dict):
    def __call__(self, name, *shape):
        if name not in self:
            gain = len(shape) == 1 and name.endswith(("weight", "running_var", "scale"))
            values = gain + (0.4 if len(shape) > 1 else 0.2) * uniform(name, torch.Size(shape).numel())
            self[name] = torch.from_numpy(values).reshape(shape).float()
        assert self[name].shape == shape
        return self[name].double()


def conv(t, name, x, outputs, kernel, stride=1):
    return F.conv2d(x, t(f"{name}.weight", outputs, x.shape[1], kernel, kernel), None, stride, kernel // 2)


def norm(t, name, x):
    mean, variance, weight, bias = (t(f"{name}.{key}", x.shape[1]) for key in
                                    ("running_mean", "running_var", "weight", "bias"))
    return F.batch_norm(x, mean, variance, weight, bias)


def linear(t, name, x, outputs, bias=True):
    return F.linear(x, t(f"{name}.weight", outputs, x.shape[-1]), t(f"{name}.bias", outputs) if bias else None)


def layer_norm(t, name, x, eps):
    return F.layer_norm(x, x.shape[-1:], t(f"{name}.weight", x.shape[-1]), t(f"{name}.bias", x.shape[-1]), eps)


# --- residual networks ------------------------------------------------------------------------------------------------


class Torchvision:
    """torchvision's names, which most codes for small images have, too."""
    stem, stem_norm, head, shortcut = "conv1", "bn1", "fc", "downsample"

    def block(self, stage, block):
        return f"layer{stage}.{block}."

    def conv(self, i):
        return f"conv{i}"

    def norm(self, i):
        return f"bn{i}"


class Weiaicunzai(Torchvision):
    """Those of weiaicunzai/pytorch-cifar100."""
    stem, stem_norm, shortcut = "conv1.0", "conv1.1", "shortcut"

    def block(self, stage, block):
        return f"conv{stage + 1}_x.{block}."

    def conv(self, i):
        return f"residual_function.{3 * i - 3}"

    def norm(self, i):
        return f"residual_function.{3 * i - 2}"


class Xternalz(Torchvision):
    """Those of xternalz/WideResNet-pytorch. projection: the shortcut's convolution."""
    final_norm, projection = "bn1", "convShortcut"

    def block(self, stage, block):
        return f"block{stage}.layer.{block}."


class Kuangliu(Torchvision):
    """Those of kuangliu/pytorch-cifar."""
    final_norm, head, projection = None, "linear", "shortcut.0"


def preact_block(t, names, at, x, width, stride, bottleneck):
    """He et al., ECCV 2016, where the shortcut follows the first norm and ReLU."""
    strides = [1, stride, 1] if bottleneck else [stride, 1]
    outputs, y = (4 * width if bottleneck else width), x
    for i, step in enumerate(strides, 1):
        y = F.relu(norm(t, f"{at}bn{i}", y))
        if i == 1 and (stride > 1 or x.shape[1] != outputs):
            x = conv(t, at + names.projection, y, outputs, 1, stride)
        last = i == len(strides)
        y = conv(t, f"{at}conv{i}", y, outputs if last else width, 1 if bottleneck and i != 2 else 3, step)
    return x + y


def preact(names, stem, width, layers, bottleneck=False):
    def network(t, x):
        x = conv(t, "conv1", x, stem, 3)
        for s, count in enumerate(layers):
            for b in range(count):
                x = preact_block(t, names, names.block(s + 1, b), x, width << s, 2 if s and not b else 1, bottleneck)
        x = F.relu(norm(t, names.final_norm, x)) if names.final_norm else x
        return linear(t, names.head, x.mean((2, 3)), CLASSES)
    return network


def block_of(t, names, at, x, width, stride, bottleneck, stride_in_1x1, gate):
    strides = [1, stride, 1] if bottleneck else [stride, 1]
    if stride_in_1x1:
        strides = [stride, 1, 1]
    outputs, y = (4 * width if bottleneck else width), x
    for i, step in enumerate(strides, 1):
        last = i == len(strides)
        y = conv(t, at + names.conv(i), y, outputs if last else width, 1 if bottleneck and i != 2 else 3, step)
        y = norm(t, at + names.norm(i), y)
        y = y if last else F.relu(y)
    if gate:
        y = y * gate(t, at, y)[:, :, None, None]
    if stride > 1 or x.shape[1] != outputs:
        x = norm(t, at + names.shortcut + ".1", conv(t, at + names.shortcut + ".0", x, outputs, 1, stride))
    return F.relu(x + y)


def resnet(names=Torchvision(), width=4, layers=(1, 1, 1, 1), kernel=3, stride=1, pool=False, bottleneck=False,
           stride_in_1x1=False, gate=None):
    def network(t, x):
        x = F.relu(norm(t, names.stem_norm, conv(t, names.stem, x, width, kernel, stride)))
        x = F.max_pool2d(x, 3, 2, 1) if pool else x
        for s, count in enumerate(layers):
            for b in range(count):
                x = block_of(t, names, names.block(s + 1, b), x, width << s, 2 if s and not b else 1, bottleneck,
                             stride_in_1x1, gate)
        return linear(t, names.head, x.mean((2, 3)), CLASSES)
    return network


def imagenet(**options):
    return resnet(kernel=7, stride=2, pool=True, **options)


def se_of(scope, bias):
    """Two linear layers in a sequence, with 1/4 of the channels between them."""
    def gate(t, at, x):
        y = F.relu(linear(t, f"{at}{scope}.fc.0", x.mean((2, 3)), x.shape[1] // 4, bias))
        return linear(t, f"{at}{scope}.fc.2", y, x.shape[1], bias).sigmoid()
    return gate


def eca(t, at, x):
    """ECA's published networks have a size of the kernel for each stage, here 3, 3, 5 and 7."""
    kernel = {"1": 3, "2": 3, "3": 5, "4": 7}[at[len("layer")]]
    weight = t(f"{at}eca.conv.weight", 1, 1, kernel)
    return F.conv1d(x.mean((2, 3))[:, None], weight, None, 1, kernel // 2)[:, 0].sigmoid()


def srm(t, at, x):
    channels = x.shape[1]
    style = torch.stack((x.mean((2, 3)), x.flatten(2).std(2)), 2)
    z = (style * t(f"{at}rclb.cfc", channels, 2)).sum(2)
    return norm(t, f"{at}rclb.bn", z[:, :, None, None])[:, :, 0, 0].sigmoid()


# --- ViTs -------------------------------------------------------------------------------------------------------------

PATCH, TOKENS, WIDTH = 8, 16, 128


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def attend(q, k, v, heads):
    q, k, v = (heads_of(x, heads) for x in (q, k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def with_class(t, token, positions, x, tokens=1):
    x = torch.cat((t(token, 1, tokens, WIDTH).expand(len(x), -1, -1), x), 1)
    return x + t(positions, 1, TOKENS + tokens, WIDTH)


def jeonsworld(t, x):
    at = "transformer.embeddings."
    x = F.conv2d(x, t(at + "patch_embeddings.weight", WIDTH, 3, PATCH, PATCH), t(at + "patch_embeddings.bias", WIDTH),
                 PATCH)
    x = with_class(t, at + "cls_token", at + "position_embeddings", x.flatten(2).transpose(1, 2))
    for i in range(2):
        at = f"transformer.encoder.layer.{i}."
        y = layer_norm(t, at + "attention_norm", x, 1e-6)
        q, k, v = (linear(t, f"{at}attn.{part}", y, WIDTH) for part in ("query", "key", "value"))
        x = x + linear(t, at + "attn.out", attend(q, k, v, 4), WIDTH)
        y = layer_norm(t, at + "ffn_norm", x, 1e-6)
        x = x + linear(t, at + "ffn.fc2", F.gelu(linear(t, at + "ffn.fc1", y, 2 * WIDTH)), WIDTH)
    return linear(t, "head", layer_norm(t, "transformer.encoder.encoder_norm", x, 1e-6)[:, 0], CLASSES)


def pixels(x):
    """The pixels of each patch, [h][w][3]."""
    return x.unfold(2, PATCH, PATCH).unfold(3, PATCH, PATCH).permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)


def lucidrains(t, x, pool=lambda x: x[:, 0], tokens=1):
    """The heads have 64 channels."""
    at = "to_patch_embedding."
    x = linear(t, at + "2", layer_norm(t, at + "1", pixels(x), 1e-5), WIDTH)
    x = with_class(t, "cls_token", "pos_embedding", layer_norm(t, at + "3", x, 1e-5), tokens)
    for i in range(2):
        at = f"transformer.layers.{i}.0."
        y = linear(t, at + "to_qkv", layer_norm(t, at + "norm", x, 1e-5), 3 * WIDTH, bias=False)
        x = x + linear(t, at + "to_out.0", attend(*y.chunk(3, -1), WIDTH // 64), WIDTH)
        at = f"transformer.layers.{i}.1.net."
        y = F.gelu(linear(t, at + "1", layer_norm(t, at + "0", x, 1e-5), 2 * WIDTH))
        x = x + linear(t, at + "4", y, WIDTH)
    return linear(t, "mlp_head", pool(layer_norm(t, "transformer.norm", x, 1e-5)), CLASSES)


def lucidrains_mean(t, x):
    return lucidrains(t, x, lambda x: x.mean(1))


def lucidrains_without_class(t, x):
    """Newer versions have a class token of no rows with this pool."""
    return lucidrains(t, x, lambda x: x.mean(1), 0)


def lucidrains_before(t, x):
    """Until the end of 2022."""
    x = pixels(x)
    x = with_class(t, "cls_token", "pos_embedding", linear(t, "to_patch_embedding.1", x, WIDTH))
    for i in range(2):
        at = f"transformer.layers.{i}.0."
        y = linear(t, at + "fn.to_qkv", layer_norm(t, at + "norm", x, 1e-5), 3 * WIDTH, bias=False)
        x = x + linear(t, at + "fn.to_out.0", attend(*y.chunk(3, -1), WIDTH // 64), WIDTH)
        at = f"transformer.layers.{i}.1."
        y = F.gelu(linear(t, at + "fn.net.0", layer_norm(t, at + "norm", x, 1e-5), 2 * WIDTH))
        x = x + linear(t, at + "fn.net.3", y, WIDTH)
    return linear(t, "mlp_head.1", layer_norm(t, "mlp_head.0", x[:, 0], 1e-5), CLASSES)


def simple_vit(t, x):
    """Positions are computed, those of the row after those of the column; the heads have 64 channels."""
    side = x.shape[-1] // PATCH
    omega = 10000.0 ** (-torch.arange(WIDTH // 4, dtype=torch.float64) / (WIDTH // 4 - 1))
    row, column = (i.flatten()[:, None] * omega for i in torch.meshgrid(*[torch.arange(side)] * 2, indexing="ij"))
    at = "to_patch_embedding."
    x = layer_norm(t, at + "3", linear(t, at + "2", layer_norm(t, at + "1", pixels(x), 1e-5), WIDTH), 1e-5)
    x = x + torch.cat((column.sin(), column.cos(), row.sin(), row.cos()), 1)
    for i in range(2):
        at = f"transformer.layers.{i}.0."
        y = linear(t, at + "to_qkv", layer_norm(t, at + "norm", x, 1e-5), 3 * WIDTH, bias=False)
        x = x + linear(t, at + "to_out", attend(*y.chunk(3, -1), WIDTH // 64), WIDTH, bias=False)
        at = f"transformer.layers.{i}.1.net."
        y = F.gelu(linear(t, at + "1", layer_norm(t, at + "0", x, 1e-5), 2 * WIDTH))
        x = x + linear(t, at + "3", y, WIDTH)
    return linear(t, "linear_head", layer_norm(t, "transformer.norm", x, 1e-5).mean(1), CLASSES)


def quick_gelu(x):
    return x * (1.702 * x).sigmoid()


def openai_clip(t, x, act=quick_gelu):
    """The image network of CLIP, beside tensors of its text network."""
    if act is quick_gelu:
        t("input_resolution")
    t("logit_scale")
    t("transformer.resblocks.0.ln_1.weight", 8)
    x = F.conv2d(x, t("visual.conv1.weight", WIDTH, 3, PATCH, PATCH), None, PATCH).flatten(2).transpose(1, 2)
    x = torch.cat((t("visual.class_embedding", WIDTH).expand(len(x), 1, -1), x), 1)
    x = layer_norm(t, "visual.ln_pre", x + t("visual.positional_embedding", TOKENS + 1, WIDTH), 1e-5)
    for i in range(2):
        at = f"visual.transformer.resblocks.{i}."
        y = layer_norm(t, at + "ln_1", x, 1e-5)
        y = F.linear(y, t(at + "attn.in_proj_weight", 3 * WIDTH, WIDTH), t(at + "attn.in_proj_bias", 3 * WIDTH))
        x = x + linear(t, at + "attn.out_proj", attend(*y.chunk(3, -1), 2), WIDTH)
        y = act(linear(t, at + "mlp.c_fc", layer_norm(t, at + "ln_2", x, 1e-5), 2 * WIDTH))
        x = x + linear(t, at + "mlp.c_proj", y, WIDTH)
    return layer_norm(t, "visual.ln_post", x[:, 0], 1e-5) @ t("visual.proj", WIDTH, CLASSES)


def open_clip(t, x):
    return openai_clip(t, x, F.gelu)


def jax_norm(t, name, x):
    return F.layer_norm(x, x.shape[-1:], t(f"{name}.scale", x.shape[-1]), t(f"{name}.bias", x.shape[-1]), 1e-6)


def jax_linear(t, name, x, outputs):
    return x @ t(f"{name}.kernel", x.shape[-1], outputs) + t(f"{name}.bias", outputs)


def google(t, x, heads=4):
    """Arrays of JAX: kernels are [inputs, outputs], those of heads have two dimensions."""
    kernel = t("embedding.kernel", PATCH, PATCH, 3, WIDTH)
    x = pixels(x) @ kernel.flatten(0, 2) + t("embedding.bias", WIDTH)
    x = with_class(t, "cls", "Transformer.posembed_input.pos_embedding", x)
    for i in range(2):
        at = f"Transformer.encoderblock_{i}."
        y, mixed = jax_norm(t, at + "LayerNorm_0", x), at + "MultiHeadDotProductAttention_1."
        q, k, v = (torch.einsum("bnc,chd->bhnd", y, t(f"{mixed}{part}.kernel", WIDTH, heads, WIDTH // heads)) +
                   t(f"{mixed}{part}.bias", heads, WIDTH // heads)[:, None] for part in ("query", "key", "value"))
        scores = torch.einsum("bhnd,bhmd->bhnm", q, k) * (WIDTH // heads) ** -0.5
        y = torch.einsum("bhnm,bhmd->bnhd", scores.softmax(-1), v)
        x = x + torch.einsum("bnhd,hdc->bnc", y, t(mixed + "out.kernel", heads, WIDTH // heads, WIDTH))
        x = x + t(mixed + "out.bias", WIDTH)
        y = jax_linear(t, at + "MlpBlock_3.Dense_0", jax_norm(t, at + "LayerNorm_2", x), 2 * WIDTH)
        x = x + jax_linear(t, at + "MlpBlock_3.Dense_1", F.gelu(y, approximate="tanh"), WIDTH)
    return jax_linear(t, "head", jax_norm(t, "Transformer.encoder_norm", x)[:, 0], CLASSES)


# --- files ------------------------------------------------------------------------------------------------------------

CASES = [
    ("cifar", "model=resnet18", resnet(), 32),
    ("cifar_pool", "model=resnet18 stem_pool=1", resnet(pool=True), 32),
    ("caffe", "model=resnet50 stride_in_1x1=1", imagenet(bottleneck=True, stride_in_1x1=True), 32),
    ("cifar100", "", resnet(Weiaicunzai()), 32),
    ("cifar100_bottleneck", "", resnet(Weiaicunzai(), bottleneck=True), 32),
    ("se", "model=seresnet18", imagenet(gate=se_of("se", False)), 32),
    ("eca", "model=resnet50", imagenet(bottleneck=True, gate=eca), 32),
    ("srm", "model=resnet18", imagenet(gate=srm), 64),
    ("se_of_srm", "model=resnet18", imagenet(gate=se_of("rclb", True)), 32),
    ("preact", "model=preresnet18", preact(Kuangliu(), 4, 4, (1, 1, 1, 1)), 32),
    ("preact_bottleneck", "model=preresnet50", preact(Kuangliu(), 4, 4, (1, 1, 1, 1), bottleneck=True), 32),
    ("wide", "", preact(Xternalz(), 4, 8, (2, 1, 1)), 32),
    ("jeonsworld", "num_heads=4", jeonsworld, 32),
    ("lucidrains", "", lucidrains, 32),
    ("lucidrains_mean", "global_pool=avg pool_include_prefix=1", lucidrains_mean, 32),
    ("lucidrains_without_class", "", lucidrains_without_class, 32),
    ("lucidrains_before", "", lucidrains_before, 32),
    ("simple_vit", "", simple_vit, 32),
    ("openai_clip", "num_heads=2", openai_clip, 32),
    ("open_clip", "num_heads=2", open_clip, 32),
    ("google", "", google, 32),
]

if __name__ == "__main__":
    with open(pathlib.Path(sys.argv[1]) / "public_code.txt", "w") as out:
        for name, flags, network, side in CASES:
            tensors = Tensors()
            logits = network(tensors, picture(side, side))[0].tolist()
            print(f"case {name}\nflags {flags} img_size={side}", file=out)
            for tensor, value in tensors.items():
                print("tensor", tensor, *value.shape, file=out)
            for value in logits:
                print(f"logit {value:.9g}", file=out)
