"""Stiffness of DeiT-Tiny's residual steps on 200 photographs. The JPEGs are decoded and preprocessed here; x_t and the
branches are those of timm's network in f32, stored whole, and everything after them is computed in f64.

deit_tiny_steps.txt has one line for each figure, with tabs: instrument, statistic, node ("-": the network), mean over
photographs, standard deviation over photographs (n - 1; "-": none). The figures are those of the instruments nsi, sai,
tns, tns_blocks and stiff_surface with their default options (attscope measure --help), in one reading: without gates
all are the same.
"""

import glob
import sys

import torch
from PIL import Image
from networks import deit_tiny

M1, M2, CELLS = 4, 2, 8
shared, model, transform = deit_tiny()
names = [f"blocks.{layer}.add{which}" for layer in range(len(model.blocks)) for which in (1, 2)]
states, branches = {}, {}


def keep(stored, step, value):
    stored[step] = value[0].double().norm()


for layer, block in enumerate(model.blocks):
    block.norm1.register_forward_pre_hook(lambda module, given, step=2 * layer: keep(states, step, given[0]))
    block.norm2.register_forward_pre_hook(lambda module, given, step=2 * layer + 1: keep(states, step, given[0]))
    block.attn.register_forward_hook(lambda module, given, result, step=2 * layer: keep(branches, step, result))
    block.mlp.register_forward_hook(lambda module, given, result, step=2 * layer + 1: keep(branches, step, result))

state, branch = [], []
with torch.inference_mode():
    for path in sorted(glob.glob(shared + "/data/imagenet200/val/*/*")):
        model(transform(Image.open(path).convert("RGB"))[None])
        state.append(torch.stack([states[step] for step in range(len(names))]))
        branch.append(torch.stack([branches[step] for step in range(len(names))]))
state, branch = torch.stack(state), torch.stack(branch)
all_zeta = branch / state
zeta = all_zeta[:, 1:]  # the first step does not count
lines = []


def put(instrument, statistic, node, values):
    lines.append(f"{instrument}\t{statistic}\t{node}\t{values.mean():.9g}\t{values.std():.9g}\n")


def put_alone(instrument, statistic, node, value):
    lines.append(f"{instrument}\t{statistic}\t{node}\t{float(value):.9g}\t-\n")


def tns(of):
    return of.amax(1) * (of.amax(1) / of.mean(1) - 1)


for step, name in enumerate(names):
    put("nsi", "attention", name, all_zeta[:, step])
    put("sai", "full attention", name, all_zeta[:, step])
    put("sai", "simplified attention", name, branch[:, step])
    put("sai", "state", name, state[:, step])
put("tns", "tns attention", "-", tns(zeta))
put("tns", "zeta* attention", "-", zeta.amax(1))
put("tns", "mu attention", "-", zeta.mean(1))
put("tns", "zeta*/mu attention", "-", zeta.amax(1) / zeta.mean(1))
shares = torch.bincount(zeta.argmax(1), minlength=zeta.shape[1]).double() / len(zeta)
others = [torch.cat([zeta[:, :step], zeta[:, step + 1:]], 1) for step in range(zeta.shape[1])]
for step, name in enumerate(names[1:]):
    put_alone("tns_blocks", "share attention", name, shares[step])
    put("tns_blocks", "without attention", name, tns(others[step]))
put("tns_blocks", "without the first attention", "-", tns(others[int(shares.argmax())]))
common = (zeta.amax(1) * (zeta.amax(1) / zeta.mean() - 1)).clamp(min=0)
put_alone("tns_blocks", "common mu attention", "-", common.mean())
by_grid = 0
for i in range(CELLS):
    for j in range(CELLS):
        m1, m2 = M1 * (i + 0.5) / CELLS, M2 * (j + 0.5) / CELLS
        stiff = zeta >= torch.clamp(zeta.mean(1, keepdim=True) * (1 + m1), min=m2)
        put_alone("stiff_surface", "delta", f"M1={m1:g} M2={m2:g}", stiff.any(1).double().mean())
        put_alone("stiff_surface", "p", f"M1={m1:g} M2={m2:g}", stiff.double().mean())
        by_grid += float(stiff.any(1).double().mean()) * M1 * M2 / CELLS ** 2
put_alone("stiff_surface", "tns by grid", "-", by_grid)
put("stiff_surface", "tns", "-", tns(zeta))
with open(sys.argv[1] + "/deit_tiny_steps.txt", "w") as out:
    out.writelines(lines)
