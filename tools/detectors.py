"""torchvision's Faster R-CNN with a feature pyramid over ResNet-50, for images of one size that need no resizing.
create() makes the detectors whose speed tools/versus_pytorch compares."""
import torch
from torch import nn
from torchvision.models import resnet50
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.backbone_utils import _resnet_fpn_extractor
from torchvision.models.detection.image_list import ImageList
from torchvision.ops.misc import FrozenBatchNorm2d

HEIGHT, WIDTH, CLASSES, OBJECTS, TRAINED_STAGES = 800, 1088, 90, 8, 3
SCORE = 0.011  # with initial weights the scores of the 91 classes are almost equal


class Detector(nn.Module):
    """With targets the loss, else boxes, scores and classes of each image."""

    def __init__(self, trains):
        super().__init__()
        # In inference batch norm is faster than FrozenBatchNorm2d, which is two operations.
        body = resnet50(norm_layer=FrozenBatchNorm2d if trains else nn.BatchNorm2d)
        self.model = FasterRCNN(_resnet_fpn_extractor(body, TRAINED_STAGES), CLASSES + 1, box_score_thresh=SCORE)

    def forward(self, images, targets=None):
        sizes = [(HEIGHT, WIDTH)] * len(images)
        maps = self.model.backbone(images)
        listed = ImageList(images, sizes)
        proposals, of_anchors = self.model.rpn(listed, maps, targets)
        found, of_boxes = self.model.roi_heads(maps, proposals, sizes, targets)
        return found if targets is None else sum([*of_anchors.values(), *of_boxes.values()])


def targets_of(images):
    """Boxes of random places, whose sides are a sixteenth to a half of the image's."""
    extent = torch.tensor([WIDTH, HEIGHT], dtype=torch.float32)
    targets = []
    for _ in range(images):
        sides = extent * (1 + 7 * torch.rand(OBJECTS, 2)) / 16
        corners = (extent - sides) * torch.rand(OBJECTS, 2)
        labels = torch.randint(1, CLASSES + 1, (OBJECTS,))
        targets.append({"boxes": torch.cat([corners, corners + sides], 1), "labels": labels})
    return targets


def create(name, trains):
    """None: there is no detector of this name."""
    return Detector(trains) if name == "fasterrcnn_resnet50_fpn" else None
