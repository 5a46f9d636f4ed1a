"""Attention in place of convolutions in PyTorch, in f64: its outputs and gradients with heads that are not sharp.

Written from the definition: the keys are all pixels of the map and a ring of zeros around it; the query of an output
pixel lies on the pixel (stride y, stride x); head (i, j) has the scores -1/2 (s_i (dy - c_i))^2 - 1/2 (t_j (dx -
d_j))^2, one softmax over all keys, and the projection weight[:, :, i, j]. The loss is the sum of r y. Numbers follow
from formulas (uniform()). attention_conv.txt has one line for each case,

    case <name> <height> <width> <channels> <outputs> <kernel> <stride> <dilation> <groups> <bias>

and below it one for each tensor t: y, grad.x and the gradients of the parameters,

    <tensor> <sum of t r'> <Euclidean norm of t>

r and r' are drawn for the elements of t in row-major order, channels last.
"""
import math
import sys
import numpy as np
import torch
from formula import uniform

CASES = {
    'plain': (5, 6, 3, 4, 3, 1, 1, 1, 1),
    'stride': (6, 7, 4, 2, 3, 2, 1, 1, 0),
    'groups': (5, 4, 6, 4, 3, 1, 1, 2, 1),
    'dilation': (7, 6, 2, 3, 3, 2, 2, 1, 0),
    'stem': (9, 8, 3, 4, 7, 2, 1, 1, 0),
    'pixel': (3, 4, 3, 2, 1, 1, 1, 1, 1),
}


def drawn(key, shape, wide=1.0, shift=0.0):
    values = (shift + wide * uniform(key, math.prod(shape))).astype(np.float32)
    return torch.from_numpy(values).double().reshape(shape)


def parameters(name, channels, outputs, kernel, dilation, groups, bias):
    taps = dilation * (torch.arange(kernel, dtype=torch.float64) - (kernel - 1) / 2)
    made = {f'{axis}_centers': taps + drawn(f'{name}.{axis}_centers', (kernel,)) for axis in ('row', 'column')}
    made |= {f'{axis}_sharpness': drawn(f'{name}.{axis}_sharpness', (kernel,), 0.8, 1.2) for axis in ('row', 'column')}
    made['weight'] = drawn(f'{name}.weight', (outputs, channels // groups, kernel, kernel))
    if bias:
        made['bias'] = drawn(f'{name}.bias', (outputs,))
    return {key: value.requires_grad_() for key, value in made.items()}


def attend(x, p, kernel, stride, dilation, groups):
    height, width, channels = x.shape
    ring = dilation * (kernel // 2)
    keys = torch.nn.functional.pad(x, (0, 0, ring, ring, ring, ring))
    places = torch.cartesian_prod(torch.arange(-ring, height + ring), torch.arange(-ring, width + ring)).double()
    rows = [(size + 2 * ring - dilation * (kernel - 1) - 1) // stride + 1 for size in (height, width)]
    queries = torch.cartesian_prod(*(stride * torch.arange(n) for n in rows)).double()
    shifts = places[None] - queries[:, None]
    y = 0
    for i in range(kernel):
        for j in range(kernel):
            scores = -0.5 * ((p['row_sharpness'][i] * (shifts[..., 0] - p['row_centers'][i])) ** 2
                             + (p['column_sharpness'][j] * (shifts[..., 1] - p['column_centers'][j])) ** 2)
            head = torch.softmax(scores, 1) @ keys.reshape(-1, channels)
            parts = zip(head.chunk(groups, 1), p['weight'][:, :, i, j].chunk(groups, 0))
            y = y + torch.cat([part @ matrix.T for part, matrix in parts], 1)
    return y + p['bias'] if 'bias' in p else y


def line(name, tensor, values):
    flat = values.detach().reshape(-1)
    dot = (flat * drawn(f'{name}.{tensor} r', flat.shape)).sum()
    return f'{tensor} {dot.item():.13g} {flat.norm().item():.13g}\n'


def main(folder):
    with open(f'{folder}/attention_conv.txt', 'w') as out:
        for name, case in CASES.items():
            height, width, channels, outputs, kernel, stride, dilation, groups, bias = case
            p = parameters(name, channels, outputs, kernel, dilation, groups, bias)
            x = drawn(f'{name}.x', (height, width, channels)).requires_grad_()
            y = attend(x, p, kernel, stride, dilation, groups)
            (y * drawn(f'{name}.loss', y.shape)).sum().backward()
            out.write(f"case {name} {' '.join(map(str, case))}\n")
            out.write(line(name, 'y', y) + line(name, 'grad.x', x.grad))
            out.writelines(line(name, f'grad.{key}', value.grad) for key, value in p.items())


main(sys.argv[1])
