"""The self-attention network of Cordonnier et al. (ICLR 2020) in PyTorch, with attscope's names. It stores all scores and
maps, and computes every encoding by its definition."""
import math
import torch
from torch import nn


class Positions(nn.Module):
    """Attention by positions, of a grid x grid of tokens; every head reads all channels."""

    def __init__(self, encoding, grid, width, heads):
        super().__init__()
        self.encoding, self.grid, self.heads = encoding, grid, heads
        height, columns = grid
        if encoding in ("isotropic", "quadratic"):
            self.centers = nn.Parameter(torch.zeros(heads, 2))
        if encoding == "isotropic":
            self.sharpness = nn.Parameter(torch.zeros(heads))
        elif encoding == "quadratic":
            self.factors = nn.Parameter(torch.zeros(heads, 2, 2))
        else:
            half = width // 2 if encoding == "learned_content" else width
            self.row_embed = nn.Parameter(torch.zeros(2 * height - 1, half))
            self.column_embed = nn.Parameter(torch.zeros(2 * columns - 1, half))
        if encoding == "learned":
            self.row_key, self.column_key = (nn.Linear(width, heads, bias=False) for _ in range(2))
        elif encoding == "learned_content":
            self.query, self.key = (nn.Linear(width, heads * width) for _ in range(2))
        self.value = nn.Linear(heads * width, width)
        self.proj = nn.Linear(width, width)

    def shifts(self):
        """Shifts [N, N, 2] from each query to each key."""
        places = torch.cartesian_prod(*(torch.arange(side) for side in self.grid))
        return places[None] - places[:, None]

    def scores(self, x):
        """[B or 1, H, N, N]"""
        shifts = self.shifts()
        if self.encoding in ("isotropic", "quadratic"):
            away = shifts - self.centers[:, None, None]
            stretched = (away * self.sharpness[:, None, None, None] if self.encoding == "isotropic"
                         else torch.einsum("hqkd,hde->hqke", away, self.factors))
            return -stretched.square().sum(-1)[None] / 2
        # The tables count shifts from key to query.
        rows = self.row_embed[self.grid[0] - 1 - shifts[..., 0]]
        columns = self.column_embed[self.grid[1] - 1 - shifts[..., 1]]
        if self.encoding == "learned":
            return (self.row_key(rows) + self.column_key(columns)).permute(2, 0, 1)[None]
        batch, tokens, width = x.shape
        q, k = (layer(x).view(batch, tokens, self.heads, width) for layer in (self.query, self.key))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) + torch.einsum("bqhd,qkd->bhqk", q[..., :width // 2], rows)
        return (scores + torch.einsum("bqhd,qkd->bhqk", q[..., width // 2:], columns)) / math.sqrt(width)

    def forward(self, x):
        maps = self.scores(x).softmax(-1).expand(len(x), -1, -1, -1)
        heads = torch.einsum("bhqk,bkd->bqhd", maps, x).flatten(2)
        return self.proj(self.value(heads))


class Block(nn.Module):
    def __init__(self, encoding, grid, width, heads, hidden):
        super().__init__()
        self.attn = Positions(encoding, grid, width, heads)
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=1e-12) for _ in range(2))
        self.mlp = nn.Module()
        self.mlp.fc1, self.mlp.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.mlp.fc2(nn.functional.gelu(self.mlp.fc1(x))))


class AttentionCnn(nn.Module):
    """num_heads: of every block, or a list of numbers, one for each block."""

    def __init__(self, img_size, patch_size, in_chans, num_classes, embed_dim, depth, num_heads, encoding, mlp_ratio=1.28):
        super().__init__()
        heads = [num_heads] * depth if isinstance(num_heads, int) else num_heads
        grid = [img_size // side for side in patch_size]
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(in_chans, embed_dim, patch_size, patch_size)
        self.blocks = nn.ModuleList(Block(encoding, grid, embed_dim, count, int(embed_dim * mlp_ratio)) for count in heads)
        self.head = nn.Linear(embed_dim, num_classes)

    def no_weight_decay(self):
        return {name for name, _ in self.named_parameters() if name.endswith(("centers", "factors"))}

    def forward(self, x):
        x = self.patch_embed.proj(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))
