"""Operations on feature maps and their gradients, by PyTorch in f64.

maps.txt has one line for each case of one sample, channels last:

op h w C H W O kernel stride padding output_padding dilation groups x[h, w, C] ... y[H, W, O] dy[H, W, O] dx[h, w, C]

...: for conv_transpose2d weight[C, O / groups, kernel, kernel], bias[O] and dweight, else nothing.
"""
import sys
import torch
from torch.nn.functional import adaptive_avg_pool2d, conv_transpose2d, interpolate, max_pool2d

generator = torch.Generator().manual_seed(49)
# h, w, C, O; kernel, stride, padding, output_padding, dilation, groups
TRANSPOSED = [(2, 3, 3, 2, 2, 2, 0, 0, 1, 1), (3, 2, 2, 3, 4, 2, 1, 0, 1, 1), (3, 2, 2, 1, 3, 2, 1, 1, 1, 1),
              (2, 3, 4, 4, 2, 2, 0, 0, 1, 2), (2, 2, 2, 2, 2, 3, 0, 0, 2, 1), (3, 4, 2, 2, 3, 1, 1, 0, 1, 1)]
# h, w, C, H, W: pyramids of pools to 1, 2, 3 and 6, and back; twice the size; odd sizes in both directions
RESIZED = [(7, 5, 1, 1, 1), (7, 5, 2, 2, 2), (7, 5, 1, 3, 3), (7, 5, 1, 6, 6), (1, 1, 2, 7, 5), (2, 2, 1, 7, 5),
           (3, 3, 1, 7, 5), (6, 6, 1, 7, 5), (3, 4, 1, 6, 8), (5, 3, 2, 2, 8)]
# h, w, C: windows of 2 x 2
POOLED = [(4, 6, 1), (5, 7, 2)]


def drawn(*shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def flat(channels_first):
    return channels_first[0].permute(1, 2, 0).flatten().tolist()


def write(out, op, x, y, outputs, settings=(0,) * 6, operands=()):
    dy = drawn(*y.shape).detach()
    y.backward(dy)
    more = [*(number for operand in operands for number in operand.flatten().tolist())]
    if operands:
        more += operands[0].grad.flatten().tolist()
    print(op, *x.shape[2:], x.shape[1], *y.shape[2:], outputs, *settings,
          *map(repr, [*flat(x), *more, *flat(y), *flat(dy), *flat(x.grad)]), file=out)


with open(sys.argv[1] + "/maps.txt", "w") as out:
    for h, w, channels, outputs, *settings in TRANSPOSED:
        kernel, stride, padding, output_padding, dilation, groups = settings
        x, weight, bias = drawn(1, channels, h, w), drawn(channels, outputs // groups, kernel, kernel), drawn(outputs)
        y = conv_transpose2d(x, weight, bias, stride, padding, output_padding, groups, dilation)
        write(out, "conv_transpose2d", x, y, outputs, settings, (weight, bias))
    for h, w, channels, *size in RESIZED:
        x = drawn(1, channels, h, w)
        write(out, "upsample_bilinear", x, interpolate(x, size, mode="bilinear", align_corners=False), channels)
        x = drawn(1, channels, h, w)
        write(out, "adaptive_avg_pool", x, adaptive_avg_pool2d(x, size), channels)
    for h, w, channels in POOLED:
        x = drawn(1, channels, h, w)
        write(out, "max_pool", x, max_pool2d(x, 2), channels, (2, 2, 0, 0, 0, 0))
