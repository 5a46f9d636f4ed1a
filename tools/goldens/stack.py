"""Residuals of small self-attention stacks by mpmath with up to 1,000 digits, and their outputs by PyTorch in f64.

stack.txt has two lines for each stack: its case and the numbers of

residuals <case> ln |res(X_l)|_{1,inf} for l = 0, 1, ..., with means as x; then as many with medians
output <case> tokens X_3

where a case is <name> <heads> <skip> <mlp> <norm> <pre_norm> <biases> <tokens> <gain> <mean>: norm is 0 (none), 1
(token) or 2 (column); biases says whether there are biases and affine norms; the tokens have the standard deviation
`gain` around `mean` in even channels, around -`mean` in odd ones. Weights and tokens are draws of formula.py with the key <name>/<layer>/<matrix>. mpmath forms the tokens
themselves and loses no digits, because it has enough.
"""
import math
import sys

import torch
from formula import uniform
from mpmath import mp, mpf

WIDTH, HIDDEN, EPS = 6, 8, 1e-6
MOST_LAYERS = 7


def draw(key, rows, columns, scale):
    return [[scale * value for value in row] for row in uniform(key, rows * columns).reshape(rows, columns).tolist()]


class Case:
    def __init__(self, name, heads=2, skip=0, mlp=0, norm=0, pre=0, biases=0, tokens=5, gain=1.0, mean=0.0):
        self.name, self.heads, self.skip, self.mlp = name, heads, skip, mlp
        self.norm, self.pre, self.biases = norm, pre, biases
        self.tokens, self.gain, self.mean = tokens, gain, mean

    def words(self):
        return [self.name, self.heads, self.skip, self.mlp, self.norm, self.pre, self.biases, self.tokens, self.gain,
                self.mean]

    def start(self):
        return [[value + (-self.mean if c % 2 else self.mean) for c, value in enumerate(row)]
                for row in draw(f"{self.name}/tokens", self.tokens, WIDTH, self.gain * math.sqrt(12))]

    def layer(self, index):
        key = f"{self.name}/{index}/"
        w = {name: draw(key + name, WIDTH, WIDTH, math.sqrt(12 / WIDTH)) for name in "qkvo"}
        w["fc1"] = draw(key + "fc1", WIDTH, HIDDEN, math.sqrt(12 / WIDTH))
        w["fc2"] = draw(key + "fc2", HIDDEN, WIDTH, math.sqrt(12 / HIDDEN))
        if self.biases:
            for name in ["q_bias", "v_bias", "o_bias", "norm1_bias", "norm2_bias", "fc1_bias", "fc2_bias"]:
                w[name] = draw(key + name, 1, HIDDEN if name == "fc1_bias" else WIDTH, 0.5)[0]
            for name in ["norm1_weight", "norm2_weight"]:
                w[name] = [1 + value for value in draw(key + name, 1, WIDTH, 0.5)[0]]
        return w


# --- mpmath: plain tokens, many digits ---

def product(x, w):
    return [[mp.fsum(a * b for a, b in zip(row, column)) for column in zip(*w)] for row in x]


def plus_bias(x, bias):
    return x if bias is None else [[a + mpf(b) for a, b in zip(row, bias)] for row in x]


def attention(case, x, w):
    q, k, v = (plus_bias(product(x, w[name]), w.get(name + "_bias")) for name in "qkv")
    width, mixed = WIDTH // case.heads, [[] for _ in x]
    for h in range(case.heads):
        part = slice(h * width, (h + 1) * width)
        for i, row in enumerate(q):
            powers = [mp.exp(mp.fsum(a * b for a, b in zip(row[part], key[part])) / mp.sqrt(width)) for key in k]
            total = mp.fsum(powers)
            columns = zip(*(value[part] for value in v))
            mixed[i] += [mp.fsum(p * a for p, a in zip(powers, column)) / total for column in columns]
    return plus_bias(product(mixed, w["o"]), w.get("o_bias"))


def gelu(x):
    return x * mp.erfc(-x / mp.sqrt(2)) / 2


def perceptron(x, w):
    hidden = plus_bias(product(x, w["fc1"]), w.get("fc1_bias"))
    return plus_bias(product([[gelu(a) for a in row] for row in hidden], w["fc2"]), w.get("fc2_bias"))


def standardise(row, eps):
    mean = mp.fsum(row) / len(row)
    deviation = mp.sqrt(mp.fsum((a - mean)**2 for a in row) / len(row) + eps)
    return [(a - mean) / deviation for a in row]


def norm(case, x, w, which):
    if case.norm == 1:
        x = [standardise(row, mpf(EPS)) for row in x]
        weight = w.get(f"norm{which}_weight")
        x = x if weight is None else [[a * mpf(b) for a, b in zip(row, weight)] for row in x]
        return plus_bias(x, w.get(f"norm{which}_bias"))
    if case.norm == 2:
        return [list(row) for row in zip(*(standardise(column, 0) for column in zip(*x)))]
    return x


def branch(case, x, w, which, function):
    y = function(norm(case, x, w, which) if case.pre else x)
    x = [[a + b for a, b in zip(*rows)] for rows in zip(x, y)] if case.skip else y
    return x if case.pre else norm(case, x, w, which)


def mixed_norm(x):
    return mp.sqrt(max(mp.fsum(map(abs, column)) for column in zip(*x)) * max(mp.fsum(map(abs, row)) for row in x))


def median(column):
    column = sorted(column)
    return (column[(len(column) - 1) // 2] + column[len(column) // 2]) / 2


def residual(x, centre):
    centres = [centre(column) for column in zip(*x)]
    return mp.log(mixed_norm([[a - b for a, b in zip(row, centres)] for row in x]))


def residuals(case):
    means, medians = [], []
    x = [[mpf(a) for a in row] for row in case.start()]
    for index in range(MOST_LAYERS + 1):
        size = residual(x, lambda column: mp.fsum(column) / len(column))
        if size < -(mp.dps - 40) * mp.ln(10):
            break
        means.append(size)
        medians.append(residual(x, median))
        w = case.layer(index)
        x = branch(case, x, w, 1, lambda u: attention(case, u, w))
        if case.mlp:
            x = branch(case, x, w, 2, lambda u: perceptron(u, w))
    assert len(means) > 4, f"{case.name}: {mp.dps} digits are too few"
    return means + medians


# --- PyTorch: three layers in f64 ---

def torch_norm(case, x, w, which):
    if case.norm == 1:
        weight, bias = w.get(f"norm{which}_weight"), w.get(f"norm{which}_bias")
        return torch.nn.functional.layer_norm(x, (WIDTH,), weight, bias, EPS)
    if case.norm == 2:
        return (x - x.mean(0)) / x.std(0, correction=0)
    return x


def torch_attention(case, x, w):
    def project(name):
        y = torch.nn.functional.linear(x, w[name].T, w.get(name + "_bias"))
        return y.unflatten(-1, (case.heads, -1)).transpose(0, 1)
    y = torch.nn.functional.scaled_dot_product_attention(project("q"), project("k"), project("v"))
    return torch.nn.functional.linear(y.transpose(0, 1).flatten(1), w["o"].T, w.get("o_bias"))


def torch_perceptron(x, w):
    hidden = torch.nn.functional.gelu(torch.nn.functional.linear(x, w["fc1"].T, w.get("fc1_bias")))
    return torch.nn.functional.linear(hidden, w["fc2"].T, w.get("fc2_bias"))


def output(case):
    x = torch.tensor(case.start(), dtype=torch.float64)
    for index in range(3):
        w = {name: torch.tensor(value, dtype=torch.float64) for name, value in case.layer(index).items()}
        for which, function in [(1, lambda u: torch_attention(case, u, w)), (2, lambda u: torch_perceptron(u, w))]:
            if which == 2 and not case.mlp:
                continue
            y = function(torch_norm(case, x, w, which) if case.pre else x)
            y = x + y if case.skip else y
            x = y if case.pre else torch_norm(case, y, w, which)
    return x.flatten().tolist()


def cases():
    for skip in (0, 1):
        for mlp in (0, 1):
            for norm, pre in ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1)):
                yield Case(f"s{skip}m{mlp}n{norm}p{pre}", skip=skip, mlp=mlp, norm=norm, pre=pre)
                if norm < 2:
                    yield Case(f"s{skip}m{mlp}n{norm}p{pre}b", skip=skip, mlp=mlp, norm=norm, pre=pre, biases=1)
    yield Case("one-head", heads=1)
    yield Case("two-tokens", tokens=2)
    yield Case("sharp", gain=3.0)
    yield Case("sharper", gain=12.0, mlp=1)
    yield Case("sharp-skip", gain=8.0, skip=1, mlp=1, biases=1)
    yield Case("small", gain=0.1)
    yield Case("offset", gain=0.05, mean=4.0)
    yield Case("offset-mlp", gain=1e-4, mean=2.0, mlp=1, skip=1)
    yield Case("offset-norm", gain=1e-5, mean=2.0, mlp=1, skip=1, norm=1, pre=1)
    yield Case("offset-sharp", gain=0.5, mean=12.0, heads=1)


def main(folder):
    with open(f"{folder}/stack.txt", "w", encoding="utf-8") as out:
        for case in cases():
            mp.dps = 60 if case.skip or case.norm == 2 else 1000
            print("residuals", *case.words(), *(mp.nstr(value, 17) for value in residuals(case)), file=out)
            print("output", *case.words(), *map(repr, output(case)), file=out)


main(sys.argv[1])
