"""The self-attention network of Cordonnier et al. (ICLR 2020) in PyTorch, for tools/versus_pytorch, with several ways
to compute its attention. Each way is fast for some sizes; versus_pytorch takes the fastest one (candidates())."""
import math

import torch
from torch import nn
from torch.nn import functional

GRID, WIDTH, HIDDEN, DEPTH, HEADS = 16, 400, 512, 6, 9


def shifts():
    """[grid, grid]: index of the shift from each query to each key on one axis."""
    places = torch.arange(GRID)
    return places[None] - places[:, None] + GRID - 1


class Isotropic(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way = way
        self.centers, self.sharpness = nn.Parameter(2 * torch.randn(HEADS, 2)), nn.Parameter(torch.ones(HEADS))
        self.register_buffer("shifts", (shifts() - GRID + 1).float())

    def axis_scores(self):
        """[heads, grid, grid] of rows and of columns."""
        for axis in range(2):
            yield -0.5 * ((self.shifts - self.centers[:, axis, None, None]) * self.sharpness[:, None, None]).square()

    def forward(self, x):
        return mix(self.way, *self.axis_scores(), x)


class Learned(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way = way
        self.embed = nn.ParameterList(torch.randn(2 * GRID - 1, WIDTH) for _ in range(2))
        self.key = nn.ModuleList(nn.Linear(WIDTH, HEADS, bias=False) for _ in range(2))
        self.register_buffer("shifts", shifts())

    def forward(self, x):
        return mix(self.way, *(key(embed)[self.shifts].permute(2, 0, 1) for key, embed in zip(self.key, self.embed)), x)


def mix(way, rows, columns, x):
    """Heads [B, N, H C] of tokens x [B, N, C]."""
    batch, tokens, width = x.shape
    if way == "maps":
        scores = rows[:, :, None, :, None] + columns[:, None, :, None, :]
        return mix_maps(scores.reshape(HEADS, tokens, tokens).softmax(-1), x)
    rows = rows.softmax(-1).transpose(0, 1).reshape(GRID * HEADS, GRID)
    mixed = (rows @ x.reshape(batch, GRID, GRID * width)).view(batch, GRID, HEADS, GRID, width)
    mixed = columns.softmax(-1) @ mixed
    return mixed.transpose(2, 3).reshape(batch, tokens, HEADS * width)


def mix_maps(maps, x):
    """maps [H, N, N]. One product with the heads between the queries, so that the result needs no copy."""
    batch, tokens, width = x.shape
    return (maps.transpose(0, 1).reshape(tokens * HEADS, tokens) @ x).view(batch, tokens, HEADS * width)


class Quadratic(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.centers = nn.Parameter(2 * torch.randn(HEADS, 2))
        self.factors = nn.Parameter(torch.eye(2) + 0.01 * torch.randn(HEADS, 2, 2))
        axis = (torch.arange(2 * GRID - 1) - GRID + 1).float()
        self.register_buffer("all", torch.cartesian_prod(axis, axis))
        index = shifts()
        index = index[:, None, :, None] * (2 * GRID - 1) + index[None, :, None, :]
        self.register_buffer("index", index.reshape(GRID**2, GRID**2))

    def forward(self, x):
        scores = -0.5 * ((self.all - self.centers[:, None]) @ self.factors).square().sum(-1)
        return mix_maps(scores[:, self.index].softmax(-1), x)


class Content(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way = way
        self.embed = nn.ParameterList(torch.randn(2 * GRID - 1, WIDTH // 2) for _ in range(2))
        self.query, self.key = nn.Linear(WIDTH, HEADS * WIDTH), nn.Linear(WIDTH, HEADS * WIDTH)
        self.register_buffer("shifts", shifts())
        places = torch.arange(GRID**2)
        own = torch.cat([functional.one_hot(places // GRID, GRID), functional.one_hot(places % GRID, GRID)], 1)
        self.register_buffer("places", own.float())

    def axis_terms(self, q):
        """[B, H, N, 2 grid]: a number of each query for each row and each column of keys."""
        halves = q.view(*q.shape[:2], GRID, GRID, WIDTH).split(WIDTH // 2, -1)
        rows, columns = (embed[self.shifts] for embed in self.embed)
        of_rows = torch.einsum("bhyxc,ykc->bhyxk", halves[0], rows)
        of_columns = torch.einsum("bhyxc,xkc->bhyxk", halves[1], columns)
        return torch.cat([of_rows, of_columns], -1).flatten(2, 3)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k = (layer(x).view(batch, tokens, HEADS, width).transpose(1, 2) for layer in (self.query, self.key))
        terms = self.axis_terms(q)
        if self.way == "fused":
            # The terms are products, too: with a key's row and column, one-hot. Values are padded to the same width.
            q = torch.cat([q, terms], -1)
            k = torch.cat([k, self.places.expand(batch, HEADS, -1, -1)], -1)
            v = functional.pad(x, (0, 2 * GRID))[:, None].expand(-1, HEADS, -1, -1)
            heads = functional.scaled_dot_product_attention(q, k, v, scale=1 / math.sqrt(width))[..., :width]
            return heads.transpose(1, 2).reshape(batch, tokens, HEADS * width)
        rows, columns = terms.split(GRID, -1)
        scores = q @ k.transpose(-2, -1) + (rows[..., :, None] + columns[..., None, :]).flatten(-2)
        maps = (scores / math.sqrt(width)).softmax(-1)
        heads = maps.transpose(1, 2).reshape(batch, tokens * HEADS, tokens) @ x
        return heads.view(batch, tokens, HEADS * width)


ENCODINGS = {"attention_cnn_isotropic": (Isotropic, ("axes", "maps")), "attention_cnn_quadratic": (Quadratic, ("maps",)),
             "attention_cnn_learned": (Learned, ("axes", "maps")), "attention_cnn_content": (Content, ("fused", "maps"))}


class Block(nn.Module):
    def __init__(self, make, way):
        super().__init__()
        self.heads = make(way)
        self.value, self.proj = nn.Linear(HEADS * WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm1, self.norm2 = (nn.LayerNorm(WIDTH, eps=1e-12) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, WIDTH))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        x = self.norm1(x + self.drop(self.proj(self.value(self.heads(x)))))
        return self.norm2(x + self.drop(self.mlp(x)))


class AttentionCnn(nn.Module):
    def __init__(self, name, way):
        super().__init__()
        self.stem = nn.Conv2d(3, WIDTH, 2, 2)
        self.blocks = nn.Sequential(*(Block(ENCODINGS[name][0], way) for _ in range(DEPTH)))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, images):
        return self.head(self.blocks(self.stem(images).flatten(2).transpose(1, 2)).mean(1))


def candidates(name):
    """Returns the networks of this name that compute the same in different ways; [] for other names."""
    return [AttentionCnn(name, way) for way in ENCODINGS[name][1]] if name in ENCODINGS else []
