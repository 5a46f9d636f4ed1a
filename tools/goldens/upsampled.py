"""Cross entropy of upsampled logits, its gradient, and the class map, by PyTorch in f64.

upsampled.txt has one line for each case of one sample:

h w C H W ignored over_all logits[h, w, C] mask[H, W] loss gradient[h, w, C] classes[H, W]

over_all: 1 if the loss is the mean over all pixels, 0 if over those that are not ignored.
"""
import sys
import torch
from torch.nn.functional import cross_entropy, interpolate

generator = torch.Generator().manual_seed(47)
# Larger in both directions, by whole and other factors; smaller in one direction and in both; of the same size; one
# pixel and one class; a class of the mask that is ignored.
CASES = [(2, 3, 5, 8, 12, 255), (3, 4, 3, 7, 9, 255), (5, 3, 4, 3, 8, 255), (6, 5, 2, 4, 2, 255), (3, 3, 6, 3, 3, 255),
         (1, 1, 4, 3, 5, 255), (2, 2, 1, 4, 4, 255), (3, 2, 4, 6, 4, 2)]

with open(sys.argv[1] + "/upsampled.txt", "w") as out:
    for h, w, classes, height, width, ignored in CASES:
        for over_all in 0, 1:
            logits = 3 * torch.randn(h, w, classes, generator=generator, dtype=torch.float64)
            logits.requires_grad_()
            mask = torch.randint(0, classes, (height, width), generator=generator)
            mask[torch.rand(height, width, generator=generator) < 0.2] = ignored
            large = interpolate(logits.permute(2, 0, 1)[None], (height, width), mode="bilinear", align_corners=False)
            losses = cross_entropy(large, mask[None], ignore_index=ignored, reduction="none")
            loss = losses.mean() if over_all else cross_entropy(large, mask[None], ignore_index=ignored)
            loss.backward()
            numbers = [*logits.flatten().tolist(), *mask.flatten().tolist(), loss.item(),
                       *logits.grad.flatten().tolist(), *large.argmax(1).flatten().tolist()]
            print(h, w, classes, height, width, ignored, over_all, *map(repr, numbers), file=out)
