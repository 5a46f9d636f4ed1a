"""Both ends of the spectrum of branches and stages, in PyTorch and f64.

stiffness.txt has a line for each map: a label, attscope's name and options, "=", the node, then the real and the
imaginary part of the eigenvalue with the smallest real part, those of the eigenvalue with the largest, and |f(x)| / |x|.
Small networks: all eigenvalues of the dense Jacobian, whose columns are forward-mode derivatives. Their weights and the
image follow from formulas. DeiT-Tiny has its published weights, if ATT_SHARED has them: the Jacobian of an MLP is dense
for each token, that of an attention branch is known to SciPy by its products.
"""
import os
import sys
import warnings
import numpy as np
import scipy.sparse.linalg
import timm
import torch
from formula import uniform
from residual import Basic, Cifar

warnings.filterwarnings("ignore")
timm.layers.set_fused_attn(False)  # PyTorch's fused attention has no forward-mode derivative


def fill(model):
    for name, tensor in model.state_dict().items():
        if not tensor.is_floating_point() or name.endswith(("relative_position_index", "attn_mask")):
            continue
        start = 1.0 if tensor.dim() == 1 and name.endswith(("weight", "running_var")) else 0.0
        wide = 0.4 if tensor.dim() > 1 else 0.2
        values = (start + wide * uniform(name, tensor.numel())).astype(np.float32)
        tensor.copy_(torch.from_numpy(values).double().reshape(tensor.shape))


def picture(side):
    image = (4 * uniform("image", side * side * 3)).astype(np.float32).reshape(1, side, side, 3)
    return torch.from_numpy(image).double().permute(0, 3, 1, 2)


def ends(values):
    left, right = values[values.real.argmin()], values[values.real.argmax()]
    return left.real, abs(left.imag), right.real, abs(right.imag)


def dense(f, x):
    jacobian = torch.func.jacfwd(lambda row: f(row.reshape(x.shape)).reshape(-1))(x.reshape(-1))
    return ends(np.linalg.eigvals(jacobian.numpy()))


def by_token(f, x):
    """f acts on each token of x [1, N, C] alone."""
    values = [np.linalg.eigvals(torch.func.jacfwd(f)(token).numpy()) for token in x[0]]
    return ends(np.concatenate(values))


def by_products(f, x):
    size = x.numel()

    def product(v):
        v = torch.from_numpy(np.ascontiguousarray(v).reshape(x.shape))
        return torch.func.jvp(f, (x,), (v,))[1].numpy().reshape(-1)
    operator = scipy.sparse.linalg.LinearOperator((size, size), product, dtype=float)
    found = [scipy.sparse.linalg.eigs(operator, 1, which=which, ncv=60, tol=1e-7, return_eigenvectors=False)
             for which in ("SR", "LR")]
    return ends(np.concatenate(found))


def steps_of_vit(model, image):
    x = model.norm_pre(model._pos_embed(model.patch_embed(image)))
    first = x
    for i, block in enumerate(model.blocks):
        for name, f in (("add1", lambda x, b=block: b.attn(b.norm1(x))), ("add2", lambda x, b=block: b.mlp(b.norm2(x)))):
            yield f"blocks.{i}.{name}", f, x
            x = x + f(x)

    def whole(x):
        for block in model.blocks:
            x = block(x)
        return x
    yield "stage.1", lambda x: whole(x) - x, first


def steps_of_swin(model, image):
    x, stages = model.patch_embed(image), []
    for s, layer in enumerate(model.layers):
        x = layer.downsample(x)
        first = x
        for i, b in enumerate(layer.blocks):
            flat = lambda f: (lambda x: f(x.reshape(1, -1, x.shape[-1])).reshape(x.shape))
            for name, f in (("add1", lambda x, b=b: b._attn(b.norm1(x))),
                            ("add2", flat(lambda x, b=b: b.mlp(b.norm2(x))))):
                yield f"layers.{s}.blocks.{i}.{name}", f, x
                x = x + f(x)
        stages.append((f"stage.{s + 1}", lambda x, blocks=layer.blocks: blocks(x) - x, first))
    yield from stages


def steps_of_resnet(model, image):
    relu = torch.nn.functional.relu
    x, stages = relu(model.bn1(model.conv1(image))), []
    for s in (1, 2, 3):
        blocks = getattr(model, f"layer{s}")
        first, after = x, blocks
        for i, b in enumerate(blocks):
            if s > 1 and i == 0:
                x = first = b(x)
                after = blocks[1:]
                continue
            yield f"layer{s}.{i}.add", lambda x, b=b: b.bn2(b.conv2(relu(b.bn1(b.conv1(x))))), x
            x = b(x)
        stages.append((f"stage.{s}", lambda x, after=after: after(x) - x, first))
    yield from stages


VIT = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3}
SWIN = {"img_size": 32, "patch_size": 4, "window_size": 4, "embed_dim": 12, "depths": (2, 2), "num_heads": (2, 4)}


def text(options):
    names = {"num_heads": "stage_heads"} if "depths" in options else {}
    return " ".join(f"{names.get(key, key)}={','.join(map(str, value)) if isinstance(value, tuple) else value}"
                    for key, value in options.items())


def tell(out, label, network, name, f, x, find):
    values = *find(f, x), (f(x).norm() / x.norm()).item()
    print(label, network, "=", name, *(f"{value:.9g}" for value in values), file=out, flush=True)


def tell_small(out):
    cases = {"vit": (timm.create_model("vit_tiny_patch16_224", num_classes=4, **VIT), steps_of_vit, 32,
                     "vit_tiny_patch16_224 " + text(VIT)),
             "swin": (timm.create_model("swin_tiny_patch4_window7_224", num_classes=4, **SWIN), steps_of_swin, 32,
                      "swin_tiny_patch4_window7_224 " + text(SWIN)),
             "resnet": (Cifar(Basic, 3, 4), steps_of_resnet, 12, "resnet20 img_size=12 width=4")}
    for label, (model, steps_of, side, network) in cases.items():
        model.double().eval()
        fill(model)
        for name, f, x in list(steps_of(model, picture(side))):
            tell(out, label, network, name, f, x, dense)


def tell_deit(out, weights):
    from safetensors.torch import load_file
    model = timm.create_model("deit_tiny_patch16_224").double().eval()
    model.load_state_dict({name: value.double() for name, value in load_file(weights).items()})
    for name, f, x in steps_of_vit(model, picture(224)):
        if name in ("blocks.2.add2", "blocks.10.add1"):
            tell(out, "deit", "deit_tiny_patch16_224", name, f, x, by_token if name.endswith("add2") else by_products)


weights = os.environ.get("ATT_SHARED", "") + "/data/weights/deit_tiny_patch16_224.safetensors"
path, old = sys.argv[1] + "/stiffness.txt", []
if not os.path.exists(weights) and os.path.exists(path):
    old = [line for line in open(path) if line.startswith("deit ")]
with open(path, "w") as out, torch.no_grad():
    tell_small(out)
    if os.path.exists(weights):
        tell_deit(out, weights)
    out.writelines(old)
