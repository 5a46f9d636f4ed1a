"""The self-attention network of Dong et al. (ICML 2021), its gradients, and paths through it, in PyTorch in f64.

There is one file, experiments.txt. Each case is a small network without dropout. A line "case <name>" begins it. The
lines "logits", "loss" (summed over samples and tokens), "gradient <tensor>" (the norm of the loss's gradient) and "paths"
(the logits of the sum of the case's paths) follow. Weights are uniform() of their names, those of norms 1 + uniform() /
2; inputs and classes follow from uniform(), too.
"""
import math
import sys
import torch
from torch import nn
from formula import uniform

SAMPLES = 3
CASES = {
    "numbers": dict(tokens=5, depth=3, heads=2, width=8, outputs=4, vocabulary=7, positions=True),
    "padding": dict(tokens=5, depth=1, heads=2, width=8, outputs=4, vocabulary=4, padding=True),
    "points": dict(tokens=6, depth=2, heads=3, width=12, outputs=2, deep=True),
    "padded_mlp": dict(tokens=7, depth=2, heads=2, width=8, outputs=2, vocabulary=9, padded=True, mlp=True),
}
# Layers and heads of the paths that are added.
PATHS = {
    "numbers": [[(0, 1), (2, 0)], [(1, 1)], []],
    "padding": [[(0, 1)]],
    "points": [[(0, 2), (1, 0)], [(1, 1)]],
    "padded_mlp": [[(0, 1), (1, 1)], [(0, 0)]],
}


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, dtype=torch.float64)


def layer_norm(width):
    return nn.LayerNorm(width, eps=1e-12, dtype=torch.float64)


class Layer(nn.Module):
    def __init__(self, heads, width, mlp):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (linear(width, width) for _ in range(4))
        self.norm = layer_norm(width)
        if mlp:
            self.fc1, self.fc2, self.mlp_norm = linear(width, width), linear(width, width), layer_norm(width)

    def maps(self, x, keys):
        q, k = (layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.query, self.key))
        return (q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]) + keys[:, None, None]).softmax(-1)

    def mlp(self, x):
        return self.mlp_norm(x + self.fc2(nn.functional.gelu(self.fc1(x)))) if hasattr(self, "fc1") else x

    def forward(self, x, keys):
        v = self.value(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return self.mlp(self.norm(x + self.output((self.maps(x, keys) @ v).transpose(1, 2).flatten(2))))

    def path(self, x, keys, head):
        d = x.shape[-1] // self.heads
        part = slice(head * d, (head + 1) * d)
        v = x @ self.value.weight[part].T + self.value.bias[part]
        y = self.maps(x, keys)[:, head] @ v @ self.output.weight[:, part].T + self.output.bias
        return self.mlp(nn.functional.layer_norm(y, y.shape[-1:], eps=1e-12))


class Network(nn.Module):
    def __init__(self, tokens, depth, heads, width, outputs, vocabulary=0, positions=False, deep=False, padded=False,
                 mlp=False, padding=False):
        super().__init__()
        self.embed = nn.Module()
        if vocabulary:
            self.embed.token = nn.Parameter(torch.zeros(vocabulary - padding, width, dtype=torch.float64))
        if padding:
            self.embed.padding = nn.Parameter(torch.zeros(1, width, dtype=torch.float64))
        if positions:
            self.embed.position = nn.Parameter(torch.zeros(tokens, width, dtype=torch.float64))
        self.embed.fc1 = linear(width if vocabulary else 2, width)
        if deep:
            self.embed.fc2 = linear(width, width)
        self.embed.norm = layer_norm(width)
        self.layers = nn.ModuleList(Layer(heads, width, mlp) for _ in range(depth))
        self.head = linear(width, outputs)

    def embedded(self, x):
        if hasattr(self.embed, "padding"):
            table = torch.cat((self.embed.padding, self.embed.token))
            x = nn.functional.embedding(x, table, padding_idx=0)
        elif hasattr(self.embed, "token"):
            x = self.embed.token[x]
        if hasattr(self.embed, "position"):
            x = x + self.embed.position
        x = self.embed.fc1(x)
        if hasattr(self.embed, "fc2"):
            x = self.embed.fc2(nn.functional.gelu(x))
        return self.embed.norm(x)

    def forward(self, x, keys):
        x = self.embedded(x)
        for layer in self.layers:
            x = layer(x, keys)
        return self.head(x)

    def paths(self, x, keys, paths):
        total = 0
        for path in paths:
            state = self.embedded(x)
            for index, head in path:
                state = self.layers[index].path(state, keys, head)
            total = total + state
        return self.head(nn.functional.layer_norm(total, total.shape[-1:], eps=1e-12))


def numbers(key, shape):
    return torch.from_numpy(uniform(key, math.prod(shape))).reshape(shape)


def below(key, shape, bound):
    return ((numbers(key, shape) + 0.5) * bound).floor().long()


def write(out, name, case):
    network = Network(**case)
    with torch.no_grad():
        for key, parameter in network.named_parameters():
            drawn = numbers(key, parameter.shape)
            parameter.copy_(1 + drawn / 2 if key.endswith("norm.weight") else drawn)
    tokens = case["tokens"]
    x = below("x", (SAMPLES, tokens), case["vocabulary"]) if "vocabulary" in case else 4 * numbers("x", (SAMPLES, tokens, 2))
    target = below("target", (SAMPLES, tokens), case["outputs"])
    keys = torch.zeros(SAMPLES, tokens, dtype=torch.float64)
    if case.get("padded"):
        for sample in range(SAMPLES):  # sample i has tokens - i tokens
            keys[sample, tokens - sample:] = -math.inf
            target[sample, tokens - sample:] = -1
    logits = network(x, keys)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-1, reduction="sum")
    loss.backward()
    out.write(f"case {name}\nlogits {' '.join('%.15g' % v for v in logits.flatten())}\nloss {loss.item():.15g}\n")
    for key, parameter in network.named_parameters():
        # key.bias has no influence: it adds the same number to all scores of a query. PyTorch does not train padding.
        if key.endswith(("key.bias", "padding")):
            continue
        out.write(f"gradient {key} {parameter.grad.norm():.15g}\n")
    paths = network.paths(x, keys, PATHS[name]).flatten()
    out.write(f"paths {' '.join('%.15g' % v for v in paths)}\n")


if __name__ == "__main__":
    with open(sys.argv[1] + "/experiments.txt", "w", encoding="ascii") as file:
        for case_name, case in CASES.items():
            write(file, case_name, case)
