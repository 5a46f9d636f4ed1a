"""Attention modules in PyTorch, in f64: their outputs for random feature maps, and their gradients.

se, eca and cbam are timm's; the others are written from the formulas of the papers. Inputs and weights follow from
formulas (uniform() below), so that any program can compute them. Each case runs in inference, and in training (batch
norm with the statistics of the batch); the training loss is the cross-entropy of a linear layer on y, where sample i
has class i % 2. modules.txt has one line for each tensor t:

    <case> <channels> <side> infer|train <tensor> <sum of t r> <sum of t r'> <Euclidean norm of t>

r and r' are drawn for the elements of t in row-major order. The tensors:
y                 the output [sample, h, w, C]
grad.branch       the gradient of a map [h, w, C] that is added to the branch of every sample
grad.identity     the gradient of a factor [C] on the identity of every sample
grad.<parameter>
buffer.<name>     after one step
"""
import functools
import math
import sys
import numpy as np
import torch
from torch import nn
from timm.layers import EcaModule, SEModule
from timm.layers.cbam import CbamModule
from formula import uniform

BATCH, SIDE = 3, 8
# FcaNet's "top16" frequencies of a 7 x 7 map.
ROWS = [0, 0, 6, 0, 0, 1, 1, 4, 5, 1, 3, 0, 0, 0, 3, 2]
COLUMNS = [0, 1, 0, 5, 2, 0, 2, 0, 0, 6, 0, 4, 6, 3, 5, 2]


def drawn(key, shape, wide=1.0, shift=0.0):
    values = (shift + wide * uniform(key, math.prod(shape))).astype(np.float32)
    return torch.from_numpy(values).double().reshape(shape)


def mean(x):
    return x.mean((2, 3))


def style(x):
    return torch.stack((x.mean((2, 3)), (x.flatten(2).var(2) + 1e-5).sqrt()), 2)


@functools.lru_cache(maxsize=None)
def cosines(channels, height, width, dtype):
    """Returns [channels, height, width]: the cosine of each channel's group."""
    def basis(k, length):
        cosine = torch.cos(math.pi * k * (torch.arange(length, dtype=torch.float64) + 0.5) / length)
        return cosine * math.sqrt((2 if k else 1) / length)

    groups = [torch.outer(basis(u * (height // 7), height), basis(v * (width // 7), width))
              for u, v in zip(ROWS, COLUMNS)]
    return torch.stack(groups).repeat_interleave(channels // 16, 0).to(dtype)


def dct(x):
    channels, height, width = x.shape[1:]
    high, wide = max(7, height), max(7, width)
    if (height, width) != (high, wide):
        x = nn.functional.adaptive_avg_pool2d(x, (high, wide))
    return (x * cosines(channels, high, wide, x.dtype)).sum((2, 3))


class Fca(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(channels, channels // 16, False), nn.ReLU(),
                                nn.Linear(channels // 16, channels, False), nn.Sigmoid())

    def forward(self, x):
        return x * self.fc(dct(x))[:, :, None, None]


class Srm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.cfc, self.bn = nn.Parameter(torch.zeros(channels, 2)), nn.BatchNorm1d(channels)

    def forward(self, x):
        return x * torch.sigmoid(self.bn((style(x) * self.cfc).sum(2)))[:, :, None, None]


class Step(nn.Module):
    """StepNet: y = f * sigmoid(adaptor(...)), where the adaptor reads one or two of x, the guess x + f, and f."""

    def __init__(self, channels, adaptor, sources):
        super().__init__()
        self.adaptor, self.sources = adaptor, sources
        inner = nn.Module()
        count, hidden = len(sources), max(1, channels // 16)
        if adaptor in ("affine", "style"):
            inner.bn = nn.BatchNorm1d(channels)
        if adaptor in ("affine", "iebn", "style", "conv1d"):
            for name in sources:
                part = nn.Module()
                inner.add_module(name, part)
                if adaptor == "style":
                    part.cfc = nn.Parameter(torch.zeros(channels, 2))
                else:
                    part.weight = nn.Parameter(torch.zeros((1, 1, 3) if adaptor == "conv1d" else channels))
        if adaptor in ("affine", "iebn"):
            inner.bias = nn.Parameter(torch.zeros(channels))
        if adaptor in ("bottleneck", "dct"):
            inner.fc1, inner.fc2 = nn.Linear(count * channels, hidden), nn.Linear(hidden, channels)
        if adaptor == "linear":
            inner.fc = nn.Linear(count * channels, channels)
        self.add_module(adaptor, inner)

    def mix(self, pooled):
        inner = getattr(self, self.adaptor)
        parts = [(getattr(inner, name, None), value) for name, value in zip(self.sources, pooled)]
        if self.adaptor in ("affine", "iebn"):
            z = sum(part.weight * value for part, value in parts) + inner.bias
            return inner.bn(z) if self.adaptor == "affine" else z
        if self.adaptor == "style":
            return inner.bn(sum((part.cfc * value).sum(2) for part, value in parts))
        if self.adaptor == "conv1d":
            return sum(nn.functional.conv1d(value[:, None], part.weight, padding=1)[:, 0] for part, value in parts)
        if self.adaptor == "linear":
            return inner.fc(torch.cat(pooled, 1))
        return inner.fc2(torch.relu(inner.fc1(torch.cat(pooled, 1))))

    def forward(self, f, x):
        pool = {"style": style, "dct": dct}.get(self.adaptor, mean)
        given = {"x_t": x, "x_t1": x + f, "difference": f}
        z = self.mix([pool(given[name]) for name in self.sources])
        return f * torch.sigmoid(z)[:, :, None, None]


def fill(module):
    """Sets weights: around 1 for tensors that scale each channel, around 0 for the others."""
    state = {}
    for name, tensor in module.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        scales = name.endswith(("running_var", "cfc")) or (name.endswith("weight") and tensor.dim() == 1)
        state[name] = drawn(name, tensor.shape, 1.0, 1.0 if scales else 0.0)
    module.load_state_dict(state, strict=False)


def maps(key, shape):
    """Returns random maps, with an offset for each sample and channel, so that means over pixels have a variance."""
    offsets = drawn(key + " offset", (shape[0], 1, 1, shape[3]), 4.0)
    return drawn(key, shape, 4.0, 0.5) + offsets


def summary_line(case, mode, name, tensor):
    flat = tensor.detach().reshape(-1).numpy()
    if np.linalg.norm(flat) < 1e-12:  # the gradient of a bias before a batch norm is 0 but for rounding
        flat = np.zeros_like(flat)
    dots = [float(flat @ uniform(key, flat.size)) for key in ("first", "second")]
    return f"{case} {mode} {name} {dots[0]:.12g} {dots[1]:.12g} {np.linalg.norm(flat):.12g}\n"


def channels_first(x):
    return x.permute(0, 3, 1, 2)


def run(case, module, channels, side):
    module = module.double()
    shape = (BATCH, side, side, channels)
    head = drawn("head", (2, channels * side * side), 0.1)
    for mode in ("infer", "train"):
        fill(module)
        module.train(mode == "train")
        # These variables are the same for all samples: a map added to the branch, and a factor of each channel of the
        # identity (not an added map, which batch norm would remove).
        added = torch.zeros(shape[1:], dtype=torch.float64, requires_grad=True)
        gain = torch.ones(channels, dtype=torch.float64, requires_grad=True)
        branch = channels_first(maps("branch", shape) + added)
        identity = channels_first(maps("identity", shape) * gain)
        y = module(branch, identity) if isinstance(module, Step) else module(branch)
        yield summary_line(case, mode, "y", y.permute(0, 2, 3, 1))
        if mode == "infer":
            continue
        module.zero_grad()
        nn.functional.cross_entropy(y.flatten(1) @ head.T, torch.arange(BATCH) % 2).backward()
        yield summary_line(case, mode, "grad.branch", added.grad)
        if gain.grad is not None:
            yield summary_line(case, mode, "grad.identity", gain.grad)
        for name, parameter in module.named_parameters():
            yield summary_line(case, mode, f"grad.{name}", parameter.grad)
        for name, buffer in module.named_buffers():
            if not name.endswith("num_batches_tracked"):
                yield summary_line(case, mode, f"buffer.{name}", buffer)


def cases():
    yield "se", SEModule(32, rd_divisor=1), 32, SIDE
    yield "se:ratio=4,bias=0", SEModule(32, rd_ratio=1 / 4, rd_divisor=1, bias=False), 32, SIDE
    yield "se:divisor=8", SEModule(32), 32, SIDE
    yield "eca", EcaModule(channels=32), 32, SIDE
    yield "eca:k=5", EcaModule(kernel_size=5), 32, SIDE
    yield "cbam", CbamModule(32), 32, SIDE
    yield "cbam:kernel=3", CbamModule(32, spatial_kernel_size=3), 32, SIDE
    yield "fca", Fca(32), 32, 14
    yield "fca", Fca(16), 16, 5
    yield "srm", Srm(32), 32, SIDE
    for adaptor in ("affine", "iebn", "bottleneck", "conv1d", "style", "dct", "linear"):
        for name, sources in (("both", ("x_t1", "x_t")), ("x_t", ("x_t",)), ("x_t1", ("x_t1",)),
                              ("difference", ("difference",))):
            if adaptor in ("affine", "style") or name == "both":
                yield f"step:adaptor={adaptor},input={name}", Step(16, adaptor, sources), 16, SIDE


if __name__ == "__main__":
    torch.manual_seed(0)
    with open(f"{sys.argv[1]}/modules.txt", "w") as out:
        for text, module, channels, side in cases():
            out.writelines(run(f"{text} {channels} {side}", module, channels, side))
