"""Small segmenters with the names that the transformers library and mmsegmentation write, and their logits in f64.

mmsegmentation's networks are written here from the papers' definitions, with its names of tensors. Weights and image
follow from formulas. segmenter_files.txt has these lines for each case:

case <name>
config <json>             the folder's config.json, if there is one
processor <json>          the folder's preprocessor_config.json
tensor <name> <sides>     a tensor of the file
logit <value>             every eleventh of the logits [h, w, classes]
"""
import json
import pathlib
import sys
import tempfile

import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn
from transformers import SegformerImageProcessor, SwinConfig, UperNetConfig, UperNetForSemanticSegmentation

from segmenters import AUXILIARY, CHANNELS, CLASSES, SIZES, batch, value_of, write_logits
from upernet import Fcn, MultiLevel, Uper  # segmenters knows where it is

SIDE = 32


def shifts_in(side):
    """The number of the shift between each two places of a window."""
    y, x = torch.arange(side).repeat_interleave(side), torch.arange(side).repeat(side)
    return (y[:, None] - y + side - 1) * (2 * side - 1) + x[:, None] - x + side - 1


class Ffn(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(width, hidden), nn.GELU()), nn.Linear(hidden, width)])

    def forward(self, x):
        return self.layers[1](self.layers[0](x))


# --- ResNet-V1c ---


class Basic(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.downsample = nn.Sequential()
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.downsample(x) + self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))


class Bottleneck(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        width = outputs // 4
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.downsample = nn.Sequential()
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        return F.relu(self.downsample(x) + self.bn3(self.conv3(y)))


class ResNet(nn.Module):
    """widths, depths: of the stages; stem: channels of the first three convolutions."""

    def __init__(self, block, widths, depths, stem):
        super().__init__()
        self.widths, layers, inputs = widths, [], 3
        for i, outputs in enumerate(stem):
            layers += [nn.Conv2d(inputs, outputs, 3, 1 if i else 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
            inputs = outputs
        self.stem = nn.Sequential(*layers)
        for i, (outputs, depth) in enumerate(zip(widths, depths)):
            blocks = [block(inputs, outputs, 2 if i else 1), *(block(outputs, outputs, 1) for _ in range(depth - 1))]
            self.add_module(f"layer{i + 1}", nn.Sequential(*blocks))
            inputs = outputs

    def forward(self, x):
        x, maps = F.max_pool2d(self.stem(x), 3, 2, 1), []
        for i in range(4):
            x = getattr(self, f"layer{i + 1}")(x)
            maps.append(x)
        return maps


# --- ViT ---


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attn = nn.MultiheadAttention(width, 3, batch_first=True)

    def forward(self, x):
        return self.attn(x, x, x, need_weights=False)[0]


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn, self.ffn = Attention(width), Ffn(width, 2 * width)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.ffn(self.ln2(x))


class Projection(nn.Module):
    def __init__(self, width, patch, norm):
        super().__init__()
        self.projection = nn.Conv2d(3, width, patch, patch)
        if norm:
            self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.projection(x).permute(0, 2, 3, 1)


class VisionTransformer(nn.Module):
    width, patch, widths = 12, 8, (12,) * 4

    def __init__(self, final_norm):
        super().__init__()
        self.ln1 = nn.LayerNorm(self.width, eps=1e-6) if final_norm else None
        self.patch_embed = Projection(self.width, self.patch, False)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, self.width))
        self.pos_embed = nn.Parameter(torch.zeros(1, (SIDE // self.patch) ** 2 + 1, self.width))
        self.layers = nn.ModuleList(Layer(self.width) for _ in range(8))

    def forward(self, x):
        x = torch.cat([self.cls_token, self.patch_embed(x).flatten(1, 2)], 1) + self.pos_embed
        maps = []
        for number, layer in enumerate(self.layers):
            x = layer(x)
            if self.ln1 and number == len(self.layers) - 1:
                x = self.ln1(x)
            if number % 2:
                maps.append(x[:, 1:].transpose(1, 2).unflatten(2, (SIDE // self.patch,) * 2))
        return maps


# --- BEiT ---


class RelativeAttention(nn.Module):
    """Attention with a bias for each shift between patches, and three for pairs with the class token."""

    def __init__(self, width, heads, side):
        super().__init__()
        self.heads, shifts = heads, (2 * side - 1) ** 2
        self.relative_position_bias_table = nn.Parameter(torch.zeros(shifts + 3, heads))
        self.q_bias, self.v_bias = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(width))
        self.qkv, self.proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.rows = torch.full((side**2 + 1,) * 2, shifts + 1)  # from a patch to the class token
        self.rows[0], self.rows[0, 0], self.rows[1:, 1:] = shifts, shifts + 2, shifts_in(side)

    def forward(self, x):
        bias = torch.cat([self.q_bias, torch.zeros_like(self.q_bias), self.v_bias])
        q, k, v = (self.qkv(x) + bias).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / q.shape[-1] ** 0.5 + self.relative_position_bias_table[self.rows].permute(2, 0, 1)
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class ScaledLayer(nn.Module):
    def __init__(self, width, side):
        super().__init__()
        self.gamma_1, self.gamma_2 = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))
        self.ln1, self.ln2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn, self.ffn = RelativeAttention(width, 3, side), Ffn(width, 2 * width)

    def forward(self, x):
        x = x + self.gamma_1 * self.attn(self.ln1(x))
        return x + self.gamma_2 * self.ffn(self.ln2(x))


class Beit(nn.Module):
    width, patch, widths = 12, 8, (12,) * 4

    def __init__(self):
        super().__init__()
        self.patch_embed = Projection(self.width, self.patch, False)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, self.width))
        self.layers = nn.ModuleList(ScaledLayer(self.width, SIDE // self.patch) for _ in range(6))

    def forward(self, x):
        x = torch.cat([self.cls_token, self.patch_embed(x).flatten(1, 2)], 1)
        maps = []
        for number, layer in enumerate(self.layers):
            x = layer(x)
            if number in (1, 2, 3, 5):
                maps.append(x[:, 1:].transpose(1, 2).unflatten(2, (SIDE // self.patch,) * 2))
        return maps


class Pyramid(nn.Module):
    """Feature2Pyramid."""

    def __init__(self, width):
        super().__init__()
        self.upsample_4x = nn.Sequential(nn.ConvTranspose2d(width, width, 2, 2), nn.BatchNorm2d(width), nn.GELU(),
                                         nn.ConvTranspose2d(width, width, 2, 2))
        self.upsample_2x = nn.Sequential(nn.ConvTranspose2d(width, width, 2, 2))

    def forward(self, maps):
        return [self.upsample_4x(maps[0]), self.upsample_2x(maps[1]), maps[2], F.max_pool2d(maps[3], 2)]


# --- Swin ---


class Windows(nn.Module):
    """Attention in windows, of which `regions` says what part of the grid a token comes from."""

    def __init__(self, width, heads, side):
        super().__init__()
        self.heads = heads
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * side - 1) ** 2, heads))
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.shifts = shifts_in(side)

    def forward(self, x, regions):
        q, k, v = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / q.shape[-1] ** 0.5 + self.relative_position_bias_table[self.shifts].permute(2, 0, 1)
        scores = scores - 100.0 * (regions[:, None, :, None] != regions[:, None, None, :])
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class ShiftedWindows(nn.Module):
    def __init__(self, width, heads, side, shift):
        super().__init__()
        self.side, self.shift, self.w_msa = side, shift, Windows(width, heads, side)

    def split(self, x):
        x = x.unfold(1, self.side, self.side).unfold(2, self.side, self.side)  # [1, m, n, C, y, x]
        return x.permute(0, 1, 2, 4, 5, 3).flatten(3, 4).flatten(0, 2)

    def forward(self, x):
        """The grid is filled up to whole windows, then shifted."""
        height, width = x.shape[1:3]
        x = F.pad(x, (0, 0, 0, -width % self.side, 0, -height % self.side))
        rows, columns = x.shape[1:3]

        # After the shift, tokens that came round the edge are regions of their own.
        regions = [3 * (torch.arange(n) >= n - self.side).long() + (torch.arange(n) >= n - self.shift).long()
                   if self.shift else torch.zeros(n, dtype=torch.long) for n in (rows, columns)]
        regions = (10 * regions[0][:, None] + regions[1])[None, :, :, None]
        y = self.w_msa(self.split(x.roll((-self.shift, -self.shift), (1, 2))), self.split(regions)[..., 0])
        y = y.unflatten(0, (rows // self.side, columns // self.side)).unflatten(2, (self.side, self.side))
        y = y.transpose(1, 2).reshape(1, rows, columns, -1).roll((self.shift, self.shift), (1, 2))
        return y[:, :height, :width]


class Block(nn.Module):
    def __init__(self, width, heads, side, shift):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.ffn = ShiftedWindows(width, heads, side, shift), Ffn(width, 4 * width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.ffn(self.norm2(x))


class Merging(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.reduction = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x):
        size = x.shape[1] // 2, x.shape[2] // 2
        x = F.unfold(x.permute(0, 3, 1, 2), 2, stride=2).transpose(1, 2)
        return self.reduction(self.norm(x)).unflatten(1, size)


class Stage(nn.Module):
    def __init__(self, width, depth, heads, side, last):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, heads, side, i % 2 * (side // 2)) for i in range(depth))
        self.downsample = None if last else Merging(width)


class Swin(nn.Module):
    widths = (8, 16, 32, 64)

    def __init__(self):
        super().__init__()
        self.patch_embed = Projection(8, 2, True)
        self.stages = nn.ModuleList(Stage(width, depth, heads, 3, width == 64)
                                    for width, depth, heads in zip(self.widths, (2, 1, 2, 2), (1, 2, 2, 4)))
        for i, width in enumerate(self.widths):
            self.add_module(f"norm{i}", nn.LayerNorm(width))

    def forward(self, x):
        x, maps = self.patch_embed.norm(self.patch_embed(x)), []
        for i, stage in enumerate(self.stages):
            for block in stage.blocks:
                x = block(x)
            maps.append(getattr(self, f"norm{i}")(x).permute(0, 3, 1, 2))
            x = stage.downsample(x) if stage.downsample else x
        return maps


# --- segmenters ---


class Segmenter(nn.Module):
    """sizes: channels of UPerNet and of the auxiliary head, and the number of classes."""

    def __init__(self, backbone, auxiliary_index, neck=None, sizes=SIZES):
        super().__init__()
        channels, auxiliary, classes = sizes
        self.backbone, self.decode_head = backbone, Uper(backbone.widths, channels, classes)
        self.auxiliary_head = Fcn(backbone.widths[auxiliary_index], auxiliary, classes)
        self.neck = neck

    def forward(self, x):
        maps = self.backbone(x)
        return self.decode_head(self.neck(maps) if self.neck else maps)


CASES = {"resnet": lambda: Segmenter(ResNet(Basic, (8, 16, 32, 64), (1, 1, 1, 1), (4, 4, 8)), 2),
         "swin": lambda: Segmenter(Swin(), 2),
         "vit": lambda: Segmenter(VisionTransformer(False), 3),
         "vit_neck": lambda: Segmenter(VisionTransformer(True), 3, MultiLevel(12)),
         "beit": lambda: Segmenter(Beit(), 2, Pyramid(12))}


def picture():
    values = batch(0)[0].permute(0, 2, 3, 1).reshape(-1)[:SIDE * SIDE * 3]
    return values.reshape(1, SIDE, SIDE, 3).permute(0, 3, 1, 2)


def write_tensors(out, items):
    for name, tensor in items:
        if tensor.is_floating_point():
            out.write(f"tensor {name} {' '.join(map(str, tensor.shape))}\n")


def run(out, name, model):
    out.write(f"case {name}\n")
    write_tensors(out, model.state_dict().items())
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(value_of(key, tensor.shape))
        write_logits(out, model.eval()(picture()))


def transformers(out):
    """The file is saved, filled with the formula's values by its own names, and opened."""
    swin = SwinConfig(image_size=224, patch_size=2, embed_dim=8, depths=[2, 1, 2, 2], num_heads=[1, 2, 2, 4],
                      window_size=3, out_features=["stage1", "stage2", "stage3", "stage4"])
    model = UperNetForSemanticSegmentation(UperNetConfig(
        backbone_config=swin, hidden_size=CHANNELS, auxiliary_channels=AUXILIARY, num_labels=CLASSES))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model.save_pretrained(folder)
        SegformerImageProcessor(size={"height": SIDE, "width": SIDE}, do_reduce_labels=True).save_pretrained(folder)
        with safe_open(folder / "model.safetensors", "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        out.write("case transformers\n")
        for word, name in (("config", "config.json"), ("processor", "preprocessor_config.json")):
            out.write(f"{word} {json.dumps(json.loads((folder / name).read_text()))}\n")
        write_tensors(out, tensors.items())
        filled = {name: value_of(name, tensor.shape) if tensor.is_floating_point() else tensor
                  for name, tensor in tensors.items()}
        save_file(filled, folder / "model.safetensors", {"format": "pt"})
        model = UperNetForSemanticSegmentation.from_pretrained(folder, dtype=torch.float64).eval()
        with torch.no_grad():
            write_logits(out, model.decode_head(model.backbone(picture()).feature_maps))


if __name__ == "__main__":
    with open(sys.argv[1] + "/segmenter_files.txt", "w") as out:
        for name, make in CASES.items():
            run(out, name, make())
        transformers(out)
