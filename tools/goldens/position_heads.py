"""Heads that attend by position, read as a convolution, in PyTorch and f64: writes position_heads.txt.

The networks are those of training.py (attention_cnn.py), with one block; parameters of positions are ten times larger,
so that heads differ. Of block 0 there is a line for each head, "head <encoding> <head> <shift y> <shift x> <spread>
<largest weight>" of the query in the middle, and one for each size of a kernel, "conv <encoding> <kernel> <error of the
middle query> <error of all queries> <checksum of the weight> <of the bias>". The convolution is found by least squares from
the linear map of the middle query, with a row of the design for each key.
"""
import sys
import torch
from attention_cnn import AttentionCnn
from formula import uniform

GRID, WIDTH, HEADS = (4, 7), 32, 3
POSITIONS = ("centers", "factors", "sharpness", "embed")


def fill(model):
    for name, parameter in model.named_parameters():
        wide = 0.4 if parameter.dim() > 1 else 0.2
        wide *= 10 if name.endswith(POSITIONS) else 1
        values = wide * uniform(name, parameter.numel()) + ("norm" in name and name.endswith("weight"))
        parameter.data = torch.tensor(values).view(parameter.shape)


def checksum(values):
    """Depends on the order of the values."""
    return values.flatten() @ torch.arange(values.numel()).double().sin()


def nearest(layer, kernel):
    """M [N, N, O, I] by its definition, then least squares for the taps."""
    maps = layer.scores(torch.zeros(1)).softmax(-1)[0]
    values = layer.value.weight.view(WIDTH, HEADS, WIDTH)
    linear = torch.einsum("om,mhi->hoi", layer.proj.weight, values)
    whole = torch.einsum("hqk,hoi->qkoi", maps, linear).flatten(0, 1).flatten(1)
    shifts = layer.shifts().flatten(0, 1)
    reach = kernel // 2
    design = torch.stack([((shifts[:, 0] == y) & (shifts[:, 1] == x)).double()
                          for y in range(-reach, reach + 1) for x in range(-reach, reach + 1)], 1)
    tokens = GRID[0] * GRID[1]
    middle = GRID[0] // 2 * GRID[1] + GRID[1] // 2
    rows = slice(middle * tokens, (middle + 1) * tokens)
    taps = torch.linalg.lstsq(design[rows], whole[rows], driver="gelsd").solution
    missed = whole - design @ taps
    bias = layer.proj.weight @ layer.value.bias + layer.proj.bias
    return (missed[rows].norm() / whole[rows].norm(), missed.norm() / whole.norm(), checksum(taps.T), checksum(bias))


def heads(layer):
    middle = GRID[0] // 2 * GRID[1] + GRID[1] // 2
    shifts = layer.shifts()[middle].double()
    for row in layer.scores(torch.zeros(1)).softmax(-1)[0][:, middle]:
        shift = row @ shifts
        yield *shift, (row @ (shifts - shift).square().sum(1)).sqrt(), row.max()


def main():
    torch.set_default_dtype(torch.float64)
    with open(f"{sys.argv[1]}/position_heads.txt", "w") as out, torch.no_grad():
        for encoding in ("isotropic", "quadratic", "learned"):
            model = AttentionCnn(28, (7, 4), 1, 10, WIDTH, 1, HEADS, encoding)
            fill(model)
            layer = model.blocks[0].attn
            for head, figures in enumerate(heads(layer)):
                print("head", encoding, head, *(f"{figure:.15e}" for figure in figures), file=out)
            for kernel in (1, 3, 5, 7):
                print("conv", encoding, kernel, *(f"{figure:.15e}" for figure in nearest(layer, kernel)), file=out)


main()
