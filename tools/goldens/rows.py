"""Figures of attention from whole maps, by definition: imported by other scripts; run alone it writes nothing."""
import numpy as np
import torch
from scipy.optimize import linprog


def places(height, width):
    return torch.cartesian_prod(torch.arange(height), torch.arange(width)).double().reshape(-1, 2)


def entropy(rows):
    return -torch.xlogy(rows, rows).sum(-1)


def rows(maps, eigenvalues=True, eps=1):
    """Figures [B, H] of whole rows, by instrument. maps [B, W, H, N, M]; eigenvalues: also those that need them; eps:
    the option of density."""
    keys = maps.shape[-1]
    toward = torch.nn.functional.one_hot(maps.argmax(-1), keys) - maps
    steps = {"learned length": toward / toward.norm(dim=-1, keepdim=True),
             "learned rate": toward * maps.amax(-1, keepdim=True)}
    lost = {name: (entropy(maps) - entropy((maps.log() + step).softmax(-1))).mean((1, 3))
            for name, step in steps.items()}
    found = {"density": {"mean": ((maps > eps * (1 + 1e-5) / keys) * 1.0).mean((1, 3, 4))}, "entropy_step": lost}
    if eigenvalues:
        jacobians = torch.diag_embed(maps) - maps[..., None] * maps[..., None, :]
        found["jacobian_spectral"] = {"spectral": torch.linalg.eigvalsh(jacobians)[..., -1].mean((1, 3))}
    return found


def types(maps, prefix, grid, thresholds):
    """Figures [B, H] of each type of heads. maps [B, W, H, N, N]"""
    weights = maps[..., prefix:, prefix:]
    weights = weights / weights.sum(-1, keepdim=True)
    at = places(*grid)
    shift = at[None] - at[:, None]
    reach = (weights * shift.square().sum(-1)).sum(-1).mean((1, 3))
    previous = (weights * (shift - torch.tensor([0.0, -1.0], dtype=maps.dtype)).square().sum(-1)).sum(-1).mean((1, 3))
    uniform_reach = shift.square().sum(-1).mean()
    uniform_heads = entropy(maps).mean((1, 3)) >= thresholds["uniform"] * np.log(maps.shape[-1])
    on_prefix = maps[..., :prefix].sum(-1).mean((1, 3)) >= thresholds["sharp"]
    on_previous = previous <= thresholds["previous"] ** 2
    is_local = reach <= thresholds["local"] ** 2 * uniform_reach
    is_sharp = maps.amax(-1).mean((1, 3)) >= thresholds["sharp"]
    found, rest = {}, torch.ones_like(is_sharp)
    for name, fits in [("uniform", uniform_heads), ("degenerate", on_prefix), ("previous", on_previous),
                       ("local", is_local), ("degenerate", is_sharp), ("global", rest)]:
        found[name] = found.get(name, 0) + (fits & rest) * 1.0
        rest = rest & ~fits
    return found


def spectral_norms(query, key, heads):
    """[H], the norms of W_q' W_k / sqrt(d). query, key [H d, C]: the weights of a layer."""
    query, key = (weight.detach().double().unflatten(0, (heads, -1)) for weight in (query, key))
    products = torch.einsum("hdi,hdj->hij", query, key) / query.shape[1] ** 0.5
    return torch.linalg.matrix_norm(products, 2)


def halves(maps):
    """[L, N, N]: half attention, half skip."""
    return 0.5 * maps + 0.5 * torch.eye(maps.shape[-1], dtype=maps.dtype)


def rollout(maps, start):
    for map_ in halves(maps).flip(0):
        start = start @ map_
    return start


def maximum_flow(maps, start):
    """The maximum flow to each token, as a linear program over the flows of all edges."""
    weights = halves(maps).numpy()
    layers, count, _ = weights.shape
    edge = np.arange(weights.size).reshape(weights.shape)
    found = []
    for target in range(count):
        inner = np.zeros(((layers - 1) * count, weights.size))
        for layer in range(layers - 1):
            for i in range(count):
                inner[layer * count + i, edge[layer + 1, :, i]] = 1
                inner[layer * count + i, edge[layer, i]] -= 1
        above = np.zeros((count, weights.size))
        for i in range(count):
            above[i, edge[-1, i]] = 1
        most = weights.copy()
        most[0, :, np.arange(count) != target] = 0
        gain = np.zeros(weights.size)
        gain[edge[0, :, target]] = -1
        solved = linprog(gain, A_ub=above, b_ub=start.numpy(), A_eq=inner if layers > 1 else None,
                         b_eq=np.zeros(len(inner)) if layers > 1 else None,
                         bounds=np.stack([np.zeros(weights.size), most.ravel()], 1), method="highs")
        found.append(-solved.fun)
    return torch.tensor(found)


def layers(maps, prefix, grid, follow):
    """Figures of one image. maps [L, H, N, N]; follow: rollout or maximum_flow."""
    start = torch.eye(maps.shape[-1])[0] if prefix else torch.full(maps.shape[-1:], 1 / maps.shape[-1])
    middle = [np.array([max(0, min(i + 1, 0.75 * n) - max(i, 0.25 * n)) for i in range(n)]) for n in grid]
    row = follow(maps.mean(1), start.double())
    share = row[prefix:] / row[prefix:].sum()
    return {"entropy": entropy(share), "largest": share.max(),
            "centre": (share * torch.from_numpy(np.outer(*middle).ravel())).sum(),
            "prefix": row[:prefix].sum() / row.sum()}
