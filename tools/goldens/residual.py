"""Small residual networks in PyTorch, in f64: logits, and three updates with SGD.

The networks for ImageNet are timm's, with fewer channels; those for CIFAR are defined here. Weights, images and labels
follow from formulas (training.py), so that any program can compute them. residual.txt has these lines for each case:

case <name>
logit <value>           ten lines: the logits of the first image, with running statistics
loss <value>            one line for each update
norm <tensor> <value>   the norm of the tensor's gradient in the first update
buffer <tensor> <value> the norm of the buffer after the first update

The last case is "seresnet164" at full size: the losses of its first twenty updates, and as "autocast <value>" the
losses of the same updates in f32 under autocast to bfloat16.
"""
import sys
import numpy as np
import torch
import torch.nn.functional as F
from timm.models.resnet import BasicBlock, Bottleneck, ResNet
from timm.layers import SEModule
from timm.optim import param_groups_weight_decay
from torch import nn
from formula import uniform

STEPS, BATCH, CLASSES = 3, 8, 10


def conv(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class Basic(nn.Module):
    """Basic block with shortcuts of option A (He et al., CVPR 2016): strided identity with zero padding."""

    def __init__(self, inputs, planes, stride, reduction):
        super().__init__()
        self.conv1, self.bn1 = conv(inputs, planes, 3, stride), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = conv(planes, planes, 3), nn.BatchNorm2d(planes)
        self.stride, self.padding = stride, (planes - inputs) // 2

    def forward(self, x):
        branch = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        shortcut = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.padding, self.padding))
        return F.relu(shortcut + branch)


class After(nn.Module):
    """Bottleneck with the ReLU after the addition, optionally with squeeze and excitation."""

    def __init__(self, inputs, planes, stride, reduction):
        super().__init__()
        outputs = 4 * planes
        self.conv1, self.bn1 = conv(inputs, planes, 1), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = conv(planes, planes, 3, stride), nn.BatchNorm2d(planes)
        self.conv3, self.bn3 = conv(planes, outputs, 1), nn.BatchNorm2d(outputs)
        if reduction:
            self.se = SEModule(outputs, rd_channels=outputs // reduction)
        if inputs != outputs:
            self.downsample = nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        branch = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        branch = self.bn3(self.conv3(branch))
        if hasattr(self, "se"):
            branch = self.se(branch)
        return F.relu((self.downsample(x) if hasattr(self, "downsample") else x) + branch)


class Before(nn.Module):
    """Pre-activation bottleneck: batch norm and ReLU before each convolution."""

    def __init__(self, inputs, planes, stride, reduction):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(inputs), conv(inputs, planes, 1)
        self.bn2, self.conv2 = nn.BatchNorm2d(planes), conv(planes, planes, 3, stride)
        self.bn3, self.conv3 = nn.BatchNorm2d(planes), conv(planes, 4 * planes, 1)
        if inputs != 4 * planes:
            self.downsample = nn.Sequential(conv(inputs, 4 * planes, 1, stride))

    def forward(self, x):
        branch = self.conv1(F.relu(self.bn1(x)))
        branch = self.conv2(F.relu(self.bn2(branch)))
        branch = self.conv3(F.relu(self.bn3(branch)))
        return (self.downsample(x) if hasattr(self, "downsample") else x) + branch


class Cifar(nn.Module):
    """blocks: number of blocks in each stage. se: numbers, over the whole network, of the blocks with an SE module."""

    def __init__(self, block, blocks, width, se=(), reduction=4):
        super().__init__()
        expansion = 1 if block is Basic else 4
        self.conv1, channels, number = conv(3, width, 3), width, 0
        if block is not Before:
            self.bn1 = nn.BatchNorm2d(width)
        for stage in range(3):
            layers = []
            for i in range(blocks):
                stride, squeeze = 2 if stage and not i else 1, reduction if number in se else 0
                layers.append(block(channels, width << stage, stride, squeeze))
                channels, number = expansion * (width << stage), number + 1
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        if block is Before:
            self.bn = nn.BatchNorm2d(channels)
        self.head = "linear" if block is Basic else "fc"
        setattr(self, self.head, nn.Linear(channels, CLASSES))

    def forward(self, x):
        x = self.conv1(x)
        x = F.relu(self.bn1(x)) if hasattr(self, "bn1") else x
        x = self.layer3(self.layer2(self.layer1(x)))
        x = F.relu(self.bn(x)) if hasattr(self, "bn") else x
        return getattr(self, self.head)(x.mean((2, 3)))


def plain(block, **options):
    model = ResNet(block, (1, 1, 2, 1), CLASSES, stem_width=4, stem_type="deep", channels=(8, 16, 32, 64), **options)
    model.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
    return model


def tricks(stem_type, **options):
    return ResNet(Bottleneck, (1, 2, 1, 1), CLASSES, stem_width=4, stem_type=stem_type, avg_down=True,
                  channels=(8, 16, 32, 64), **options)


CASES = {
    "cifar_a": (lambda: Cifar(Basic, 2, 8), 9),
    "after_se": (lambda: Cifar(After, 2, 4, se=(1, 2, 5)), 8),
    "before": (lambda: Cifar(Before, 1, 4), 8),
    "basic": (lambda: plain(BasicBlock), 40),
    "bottleneck": (lambda: plain(Bottleneck), 33),
    "tiered_eca_groups": (lambda: tricks("deep_tiered", cardinality=2, base_width=32,
                                         block_args={"attn_layer": "eca"}), 44),
    "deep": (lambda: tricks("deep"), 36),
}


def fill(model, last=1.0):
    """Sets weights and buffers. last: centre of the gains of a bottleneck's last norm."""
    for name, tensor in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        start = 1.0 if tensor.dim() == 1 and name.endswith(("weight", "running_var")) else 0.0
        start = last if name.endswith("bn3.weight") else start
        wide = 0.8 if tensor.dim() > 1 else 0.2
        tensor.copy_(torch.from_numpy((start + wide * uniform(name, tensor.numel())).astype(np.float32))
                     .double().reshape(tensor.shape))


def batch(step, side):
    count = 3 * side * side
    images = (4 * uniform("image", BATCH * count, step * BATCH * count)).astype(np.float32)
    labels = np.floor((uniform("label", BATCH, step * BATCH) + 0.5) * CLASSES).astype(np.int64)
    # Drawn in the order [h, w, C], which attscope's images have.
    return torch.from_numpy(images).double().reshape(BATCH, side, side, 3).permute(0, 3, 1, 2), torch.from_numpy(labels)


def train(model, side, steps, dtype=torch.float64, autocast=False):
    """Returns the losses, and the norms of the first update as lines."""
    model.to(dtype).train()
    update = torch.optim.SGD(param_groups_weight_decay(model, 1e-2), lr=0.005, momentum=0.9)
    losses, lines = [], []
    for step in range(steps):
        images, labels = batch(step, side)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = F.cross_entropy(model(images.to(dtype)), labels)
        update.zero_grad()
        loss.backward()
        if step == 0:
            lines = [f"norm {n} {p.grad.norm().item():.9g}\n" for n, p in model.named_parameters()]
            lines += [f"buffer {n} {b.norm().item():.9g}\n" for n, b in model.named_buffers() if b.dim()]
        update.step()
        losses.append(loss.item())
    return losses, lines


def run(out, name, make, side):
    model = make().double()
    fill(model)
    out.write(f"case {name}\n")
    model.eval()
    with torch.no_grad():
        out.writelines(f"logit {value:.12g}\n" for value in model(batch(0, side)[0])[0].tolist())
    losses, lines = train(model, side, STEPS)
    out.writelines(f"loss {value:.12g}\n" for value in losses)
    out.writelines(lines)


def run_at_full_size(out):
    model = Cifar(After, 18, 16, se=range(3 * 18), reduction=16).double()
    out.write("case seresnet164\n")
    for word, how in {"loss": {}, "autocast": {"dtype": torch.float32, "autocast": True}}.items():
        model.double()
        fill(model, last=0.0)  # with 54 branches of full gain, rounding errors would dominate the losses
        out.writelines(f"{word} {value:.12g}\n" for value in train(model, 32, 20, **how)[0])


if __name__ == "__main__":
    with open(sys.argv[1] + "/residual.txt", "w") as out:
        for name, (make, side) in CASES.items():
            run(out, name, make, side)
        run_at_full_size(out)
