"""UPerNet, its auxiliary head and the necks of ViTs in PyTorch, from the papers' definitions. Names of parameters are
mmsegmentation's. create() makes the segmenters whose speed tools/versus_pytorch compares."""
import torch
import torch.nn.functional as F
from torch import nn


class Conv(nn.Module):
    def __init__(self, inputs, outputs, kernel):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


def resized(x, like):
    return F.interpolate(x, like.shape[2:], mode="bilinear", align_corners=False)


class Uper(nn.Module):
    def __init__(self, widths, channels, classes):
        super().__init__()
        last = widths[-1]
        self.psp_modules = nn.ModuleList(nn.Sequential(nn.AdaptiveAvgPool2d(scale), Conv(last, channels, 1))
                                         for scale in (1, 2, 3, 6))
        self.bottleneck = Conv(last + 4 * channels, channels, 3)
        self.lateral_convs = nn.ModuleList(Conv(width, channels, 1) for width in widths[:-1])
        self.fpn_convs = nn.ModuleList(Conv(channels, channels, 3) for _ in widths[:-1])
        self.fpn_bottleneck = Conv(len(widths) * channels, channels, 3)
        self.conv_seg = nn.Conv2d(channels, classes, 1)

    def forward(self, maps):
        pooled = [resized(pool(maps[-1]), maps[-1]) for pool in self.psp_modules]
        above = self.bottleneck(torch.cat([maps[-1], *pooled], 1))
        levels = [above]
        for lateral, fpn, x in reversed(list(zip(self.lateral_convs, self.fpn_convs, maps))):
            above = lateral(x) + resized(above, x)
            levels.insert(0, fpn(above))
        return self.conv_seg(self.fpn_bottleneck(torch.cat([resized(x, levels[0]) for x in levels], 1)))


class Fcn(nn.Module):
    def __init__(self, width, channels, classes):
        super().__init__()
        self.convs = nn.ModuleList([Conv(width, channels, 3)])
        self.conv_seg = nn.Conv2d(channels, classes, 1)

    def forward(self, x):
        return self.conv_seg(self.convs[0](x))


class Pyramid(nn.Module):
    """XCiT's, of maps of patches of 16 pixels."""

    def __init__(self, width):
        super().__init__()
        self.fpn1 = nn.Sequential(nn.ConvTranspose2d(width, width, 2, 2), nn.BatchNorm2d(width), nn.GELU(),
                                  nn.ConvTranspose2d(width, width, 2, 2))
        self.fpn2 = nn.Sequential(nn.ConvTranspose2d(width, width, 2, 2))

    def forward(self, maps):
        return [self.fpn1(maps[0]), self.fpn2(maps[1]), maps[2], F.max_pool2d(maps[3], 2)]


class Convolution(nn.Module):
    def __init__(self, width, kernel):
        super().__init__()
        self.conv = nn.Conv2d(width, width, kernel, padding=kernel // 2)

    def forward(self, x):
        return self.conv(x)


class MultiLevel(nn.Module):
    """mmsegmentation's MultiLevelNeck."""

    def __init__(self, width):
        super().__init__()
        self.lateral_convs = nn.ModuleList(Convolution(width, 1) for _ in range(4))
        self.convs = nn.ModuleList(Convolution(width, 3) for _ in range(4))

    def forward(self, maps):
        maps = [lateral(x) for lateral, x in zip(self.lateral_convs, maps)]
        return [conv(F.interpolate(x, scale_factor=scale, mode="bilinear", align_corners=False))
                for conv, x, scale in zip(self.convs, maps, (4, 2, 1, 0.5))]


# --- segmenters over timm's networks ---

SIDE, CHANNELS, AUXILIARY, CLASSES, WEIGHT = 512, 512, 256, 150, 0.4


class Segmenter(nn.Module):
    """With masks [n, h, w] the loss, else the classes of the images' pixels."""

    def __init__(self, backbone, features, widths, neck=None):
        super().__init__()
        self.backbone, self.features, self.neck = backbone, features, neck
        self.head, self.auxiliary = Uper(widths, CHANNELS, CLASSES), Fcn(widths[2], AUXILIARY, CLASSES)

    def forward(self, images, masks=None):
        maps = self.features(self.backbone, images)
        maps = self.neck(maps) if self.neck else maps
        logits = resized(self.head(maps), images)
        if masks is None:
            return logits.argmax(1)
        return F.cross_entropy(logits, masks) + WEIGHT * F.cross_entropy(resized(self.auxiliary(maps[2]), images), masks)


def stages(model, x):
    """Results of the stages of a ResNet."""
    x, maps = model.maxpool(model.act1(model.bn1(model.conv1(x)))), []
    for layer in (model.layer1, model.layer2, model.layer3, model.layer4):
        x = layer(x)
        maps.append(x)
    return maps


def taps(model, x):
    """Results of the blocks 3, 5, 7 and 11 of a ViT, as maps."""
    x, maps = model.norm_pre(model._pos_embed(model.patch_embed(x))), []
    for number, block in enumerate(model.blocks):
        x = block(x)
        if number in (3, 5, 7, 11):
            maps.append(x[:, 1:].transpose(1, 2).unflatten(2, model.patch_embed.grid_size))
    return maps


def create(name):
    """None: there is no segmenter of this name."""
    import timm

    if name == "upernet_resnet50":
        backbone = timm.create_model("resnet50")
        backbone.fc = nn.Identity()
        return Segmenter(backbone, stages, (256, 512, 1024, 2048))
    if name == "upernet_vit_small":
        backbone = timm.create_model("vit_small_patch16_224", img_size=SIDE, num_classes=0)
        return Segmenter(backbone, taps, (384,) * 4, Pyramid(384))
    return None
