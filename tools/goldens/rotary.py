"""Tables of rotary positions by timm, and cosine attention with Swin V2's positions by timm and PyTorch, in f64.

rotary.txt has one line for each table of RotaryEmbeddingCat or RotaryEmbeddingDinoV3:

table <centered> <xy> <halves> <height> <width> <reference_h> <reference_w> <offset> <channels> <temperature> numbers

with, for each token, the cosines and then the sines of its channels / 2 angles. RotaryEmbeddingMixed:

mixed <xy> <height> <width> <depth> <heads> <channels> frequencies numbers, for each block and token and head likewise.

A rotation by apply_rot_embed_cat(): turned <halves> <tokens> <channels> x cosines-and-sines y.

Swin V2: swin <height> <width> <reference_h> <reference_w> <heads> <channels of a head> <hidden>, then the numbers of
cpb_mlp (weight and bias of the first layer, weight of the second), of logit_scale, of qkv [tokens, 3 channels], of the
output [tokens, channels], of weights like the output, and the gradients of sum(weights output) with respect to cpb_mlp,
logit_scale and qkv in the same order.
"""
import sys

import torch
from timm.layers.pos_embed_sincos import (RotaryEmbeddingCat, RotaryEmbeddingDinoV3, RotaryEmbeddingMixed,
                                          apply_rot_embed_cat)
from timm.models.swin_transformer_v2 import WindowAttention

torch.set_default_dtype(torch.float64)
generator = torch.Generator().manual_seed(7)


def draw(*shape):
    return torch.randn(shape, generator=generator)


def compact(embed, halves):
    """The cosines and sines of each angle once, from timm's [.., sines, cosines], where each appears twice."""
    sines, cosines = embed.chunk(2, -1)
    angles = sines.shape[-1] // 2
    pick = slice(0, angles) if halves else slice(0, None, 2)
    return torch.cat([cosines[..., pick], sines[..., pick]], -1)


def write(out, *parts):
    words = []
    for part in parts:
        words += map(repr, part.detach().flatten().tolist()) if isinstance(part, torch.Tensor) else [str(part)]
    print(*words, file=out)


def write_table(out, centered, xy, halves, shape, reference, offset, channels, temperature):
    indexing = "xy" if xy else "ij"
    if centered:
        embedding = RotaryEmbeddingDinoV3(channels, temperature=temperature, grid_offset=offset, grid_indexing=indexing,
                                          rotate_half=halves)
    else:
        embedding = RotaryEmbeddingCat(channels, temperature=temperature, in_pixels=False, grid_offset=offset,
                                       grid_indexing=indexing, ref_feat_shape=reference, rotate_half=halves)
    numbers = compact(embedding.get_embed(list(shape)), halves)
    write(out, "table", int(centered), int(xy), int(halves), *shape, *(reference or (0, 0)), offset, channels,
          temperature, numbers)


def write_mixed(out, xy, shape, depth, heads, channels):
    embedding = RotaryEmbeddingMixed(heads * channels, depth, heads, grid_indexing="xy" if xy else "ij")
    embedding.freqs.data.copy_(draw(*embedding.freqs.shape).float())
    numbers = compact(embedding.get_embed(list(shape)), False).transpose(1, 2)
    write(out, "mixed", int(xy), *shape, depth, heads, channels, embedding.freqs, numbers)


def write_turned(out, halves, tokens, channels):
    x, angles = draw(tokens, channels), draw(tokens, channels // 2)
    wide = torch.cat([angles, angles], -1) if halves else angles.repeat_interleave(2, -1)
    embed = torch.cat([wide.sin(), wide.cos()], -1)
    write(out, "turned", int(halves), tokens, channels, x, compact(embed, halves),
          apply_rot_embed_cat(x, embed, halves))


class Given(torch.nn.Module):
    """Gives the same value for every input."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, x):
        return self.value


def write_swin(out, window, reference, heads, width, hidden):
    """timm's WindowAttention without the layers before and after attention."""
    attention = WindowAttention(heads * width, window, heads, qkv_bias=False, pretrained_window_size=reference)
    attention.init_non_persistent_buffers()
    first, second = torch.nn.Linear(2, hidden), torch.nn.Linear(hidden, heads, bias=False)
    attention.cpb_mlp = torch.nn.Sequential(first, torch.nn.ReLU(), second)
    for parameter in attention.cpb_mlp.parameters():
        parameter.data = draw(*parameter.shape)
    # The last factor is above the limit.
    attention.logit_scale.data = torch.linspace(1, 5, heads).reshape(heads, 1, 1)
    tokens = window[0] * window[1]
    qkv = draw(tokens, 3 * heads * width).requires_grad_()
    attention.qkv, attention.proj = Given(qkv[None]), torch.nn.Identity()
    y = attention(torch.zeros(1, tokens, heads * width))[0]
    weights = draw(*y.shape)
    (y * weights).sum().backward()
    inputs = [first.weight, first.bias, second.weight, attention.logit_scale, qkv]
    write(out, "swin", *window, *reference, heads, width, hidden, *inputs, y, weights, *(each.grad for each in inputs))


with open(sys.argv[1] + "/rotary.txt", "w") as file:
    #            centered  xy    halves  shape   reference  offset  channels  temperature
    write_table(file, False, False, False, (3, 4), None, 0.0, 8, 10000.0)
    write_table(file, False, False, False, (5, 3), (16, 16), 0.0, 12, 10000.0)  # EVA-02
    write_table(file, False, True, False, (3, 4), (24, 24), 1.0, 8, 10000.0)  # Perception Encoder
    write_table(file, False, True, True, (2, 3), None, 0.0, 16, 100.0)
    write_table(file, True, False, True, (3, 4), None, 0.0, 16, 100.0)  # DINOv3
    write_table(file, True, True, False, (4, 1), None, 0.25, 8, 100.0)
    write_mixed(file, False, (3, 4), 2, 2, 8)
    write_mixed(file, True, (3, 4), 3, 1, 4)
    write_turned(file, False, 3, 8)
    write_turned(file, True, 3, 8)
    write_swin(file, (2, 3), (0, 0), 3, 4, 5)
    write_swin(file, (4, 2), (6, 12), 2, 3, 4)
