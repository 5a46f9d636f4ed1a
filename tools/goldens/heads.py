"""Shapes and types of heads, figures of whole rows, terms and weights of scores of small networks in PyTorch, in f64:
from whole maps and scores, by definition.

Weights and images follow from formulas (formula.py). heads.txt has for each network a line "case <name>", then one line
for each figure: <instrument> <node> <head> <value> <statistic>, with the mean over the images.
"""
import sys

import numpy as np
import torch
from timm.models.swin_transformer import SwinTransformer
from timm.models.vision_transformer import VisionTransformer
from timm.models.vision_transformer_relpos import VisionTransformerRelPos

from attention_cnn import AttentionCnn
from formula import uniform
from networks import fill
from rows import layers, maximum_flow, places, rollout, rows, spectral_norms, types

torch.set_default_dtype(torch.float64)
SIDE, BATCH = 28, 2
SIZES = {"img_size": SIDE, "in_chans": 1, "num_classes": 10}
VIT = {"patch_size": (7, 4), "embed_dim": 32, "depth": 2, "num_heads": 2}
THRESHOLDS = {"uniform": 0.99, "previous": 1.5, "local": 0.95, "sharp": 0.5}
NO_CLASS = {"class_token": False, "global_pool": "avg"}


def shapes(maps, prefix, grid):
    """Figures [B, H] of each statistic. maps [B, W, H, N, N], with W windows of N tokens."""
    weights = maps[..., prefix:, prefix:]
    weights = weights / weights.sum(-1, keepdim=True)
    at = places(*grid)
    shift = at[None] - at[:, None]
    of_query = torch.einsum("bwhij,ijd->bwhid", weights, shift)
    centre = of_query.mean((1, 3))
    away = shift - centre[:, None, :, None, None]
    covariance = torch.einsum("bwhij,bwhijd,bwhije->bwhide", weights, away.expand(*weights.shape, 2),
                              away.expand(*weights.shape, 2)).mean((1, 3))
    between = (of_query - centre[:, None, :, None]).square().sum(-1).mean((1, 3))
    yy, xx = covariance[..., 0, 0], covariance[..., 1, 1]
    return {"row": centre[..., 0], "column": centre[..., 1], "row spread": yy.sqrt(), "column spread": xx.sqrt(),
            "correlation": covariance[..., 0, 1] / (yy * xx).sqrt(), "between queries": between / (yy + xx),
            "on grid": 1 - maps[..., :prefix].sum(-1).mean((1, 3))}


DENSITY_EPS = 1.05  # no weight is so near to eps / N that rounding in f32, about 1e-6, decides


def write_rows(out, node, maps, prefix, grid):
    distance = (maps * maps.shape[-1] / DENSITY_EPS / (1 + 1e-5) - 1).abs().min()
    assert distance > 5e-6, f"{node}: a weight is within {distance:.1e} of the threshold of density"
    for instrument, figures in rows(maps, eps=DENSITY_EPS).items():
        write(out, instrument, node, figures)
    write(out, "head_types", node, types(maps, prefix, grid, THRESHOLDS))


def write_layers(out, maps, prefix, grid, flow):
    """maps [L, B, H, N, N]"""
    for instrument, follow in {"rollout": rollout, **({"flow": maximum_flow} if flow else {})}.items():
        figures = [layers(of_image, prefix, grid, follow) for of_image in maps.transpose(0, 1)]
        for statistic in figures[0]:
            mean = sum(of_image[statistic] for of_image in figures) / len(figures)
            out.write(f"{instrument} network -1 {mean:.9g} {statistic}\n")


def write_weights(out, node, query, key, heads):
    write(out, "score_weights", node, {"spectral": spectral_norms(query, key, heads)[None]})


def shares(terms, allowed):
    """Figures [B, H] of each statistic. terms: {name: [B, W, H, N, N]}; allowed [W, N, N]: 1 for keys of a query."""
    weights = (allowed / allowed.sum(-1, keepdim=True))[None, :, None]

    def variance(scores):
        mean = (weights * scores).sum(-1, keepdim=True)
        return (weights * (scores - mean) ** 2).sum(-1).mean((1, 3))

    total = variance(sum(terms.values()))
    found = {name: variance(scores) / total for name, scores in terms.items()}
    return found | {"covariance": 1 - sum(found.values()), "deviation": total.sqrt()}


def heads_of(x, heads):
    """[.., N, H d] -> [.., H, N, d]"""
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def with_statistics_of(norm, x, y):
    """The layer norm without its bias applied to y, with the mean over the channels of y, and the deviation of x."""
    deviation = (x.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
    return (y - y.mean(-1, keepdim=True)) / deviation * norm.weight


def split(model, x):
    """The six terms of the first layer. x: the tokens, content and positions."""
    block = model.blocks[0]
    attn, heads = block.attn, block.attn.num_heads
    positions = torch.zeros_like(x)
    positions[:, -model.pos_embed.shape[1]:] = model.pos_embed
    whole = attn.qkv(block.norm1(x))
    of_positions = with_statistics_of(block.norm1, x, positions) @ attn.qkv.weight.T
    of_biases = (attn.qkv(block.norm1.bias)).expand_as(whole)
    parts = [[heads_of(part, heads) for part in value.chunk(3, -1)[:2]] for value in (whole, of_positions, of_biases)]
    (q, k), (q_p, k_p), (q_b, k_b) = parts
    if not isinstance(attn.q_norm, torch.nn.Identity):
        q_p, q_b = with_statistics_of(attn.q_norm, q, q_p), with_statistics_of(attn.q_norm, q, q_b) + attn.q_norm.bias
        k_p = with_statistics_of(attn.k_norm, k, k_p)
        q, k = attn.q_norm(q), attn.k_norm(k)
    queries = {"content": q - q_p - q_b, "position": q_p, "bias": q_b}
    keys = {"content": k - k_p, "position": k_p}
    return {f"{a}-{b}": (queries[a] @ keys[b].transpose(-1, -2) * attn.scale)[:, None] for a in queries for b in keys}


def timm_nodes(model, images):
    """Name, map [B, W, H, N, N] and input of each attention of a timm network."""
    seen, inputs = {}, {}
    for name, module in model.named_modules():
        if name.endswith(".attn"):
            module.fused_attn = False
            module.attn_drop.register_forward_hook(lambda m, given, result, name=name: seen.__setitem__(name, given[0]))
            module.register_forward_hook(lambda m, given, result, name=name: inputs.__setitem__(name, given[0]))
    with torch.no_grad():
        model(images)
    return [(name, maps.unflatten(0, (BATCH, -1)), inputs[name]) for name, maps in seen.items()]


def write(out, instrument, node, figures):
    for statistic, values in figures.items():
        means = values.mean(0).tolist()
        for head, value in [*enumerate(means), (-1, sum(means) / len(means))]:
            out.write(f"{instrument} {node} {head} {value:.9g} {statistic}\n")


def vit(out, images, options):
    model = VisionTransformer(**SIZES, **VIT, **options).eval()
    fill(model)
    tokens = []
    model.blocks[0].register_forward_hook(lambda m, given, result: tokens.append(given[0]))
    nodes = timm_nodes(model, images)
    write_layers(out, torch.stack([maps[:, 0] for _, maps, _ in nodes]), model.num_prefix_tokens, (4, 7), not options)
    for name, maps, _ in nodes:
        write(out, "head_shape", name, shapes(maps, model.num_prefix_tokens, (4, 7)))
        write_rows(out, name, maps, model.num_prefix_tokens, (4, 7))
        if "qk_norm" not in options:
            write_weights(out, name, *model.get_submodule(name).qkv.weight.chunk(3)[:2], 2)
    count = tokens[0].shape[1]
    with torch.no_grad():
        write(out, "score_terms", "blocks.0.attn", shares(split(model, tokens[0]), torch.ones(1, count, count)))


def relpos(out, images, options):
    model = VisionTransformerRelPos(**SIZES, **VIT, **options).eval()
    fill(model)
    for name, maps, x in timm_nodes(model, images):
        attn = model.get_submodule(name)
        count, prefix = x.shape[1], model.num_prefix_tokens
        write(out, "head_shape", name, shapes(maps, prefix, (4, 7)))
        write_rows(out, name, maps, prefix, (4, 7))
        write_weights(out, name, *attn.qkv.weight.chunk(3)[:2], 2)
        with torch.no_grad():
            q, k, _ = (heads_of(part, attn.num_heads) for part in attn.qkv(x).chunk(3, -1))
            terms = {"content-content": (q @ k.transpose(-1, -2) * attn.scale)[:, None],
                     "position": attn.rel_pos.get_bias()[:, None].expand(BATCH, -1, -1, -1, -1)}
            write(out, "score_terms", name, shares(terms, torch.ones(1, count, count)))


def swin(out, images, options):
    model = SwinTransformer(**SIZES, **options).eval()
    fill(model)
    for name, maps, x in timm_nodes(model, images):
        attn, block = model.get_submodule(name), model.get_submodule(name.removesuffix(".attn"))
        windows, count = maps.shape[1], maps.shape[-1]
        write(out, "head_shape", name, shapes(maps, 0, block.window_size))
        write_rows(out, name, maps, 0, block.window_size)
        write_weights(out, name, *attn.qkv.weight.chunk(3)[:2], attn.num_heads)
        allowed = torch.ones(windows, count, count)
        if block.attn_mask is not None:
            allowed = (block.attn_mask == 0) * 1.0
        with torch.no_grad():
            q, k, _ = (heads_of(part, attn.num_heads).unflatten(0, (BATCH, -1)) for part in attn.qkv(x).chunk(3, -1))
            terms = {"content-content": q @ k.transpose(-1, -2) * attn.scale,
                     "position": attn._get_rel_pos_bias()[:, None].expand(BATCH, windows, -1, -1, -1)}
            write(out, "score_terms", name, shares(terms, allowed))


def attention_cnn(out, images, options):
    model = AttentionCnn(**SIZES, patch_size=(7, 4), embed_dim=32, depth=2, num_heads=3, **options).eval()
    fill(model)
    for name, attn in [(f"blocks.{i}.attn", block.attn) for i, block in enumerate(model.blocks)]:
        attn.register_forward_hook(lambda m, given, result, name=name: inputs.__setitem__(name, given[0]))
    inputs = {}
    with torch.no_grad():
        model(images)
        for name, x in inputs.items():
            attn = model.get_submodule(name)
            scores = attn.scores(x).expand(BATCH, -1, -1, -1)
            write(out, "head_shape", name, shapes(scores.softmax(-1)[:, None], 0, (4, 7)))
            write_rows(out, name, scores.softmax(-1)[:, None], 0, (4, 7))
            if options["encoding"] == "learned_content":
                q, k = (heads_of(layer(x), 3) for layer in (attn.query, attn.key))
                content = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
                terms = {"content-content": content[:, None], "content-position": (scores - content)[:, None]}
                write(out, "score_terms", name, shares(terms, torch.ones(1, *scores.shape[-2:])))
                write_weights(out, name, attn.query.weight, attn.key.weight, 3)


CASES = {
    "vit": (vit, {}),
    "vit_registers": (vit, NO_CLASS | {"reg_tokens": 3, "no_embed_class": True}),
    "vit_qk_norm": (vit, {"qk_norm": True}),
    "vit_relpos": (relpos, {"rel_pos_type": "bias", "class_token": True, "global_pool": "token", "init_values": 0.1}),
    "swin": (swin, {"patch_size": (2, 4), "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4), "mlp_ratio": 1.5}),
}
CASES |= {f"attention_cnn_{encoding}": (attention_cnn, {"encoding": encoding})
          for encoding in ("isotropic", "quadratic", "learned", "learned_content")}

count = SIDE * SIDE
drawn = (4 * uniform("image", BATCH * count)).astype(np.float32)
batch = torch.from_numpy(drawn).double().reshape(BATCH, 1, SIDE, SIDE)
with open(sys.argv[1] + "/heads.txt", "w") as out:
    for name, (run, options) in CASES.items():
        out.write(f"case {name}\n")
        run(out, batch, options)
