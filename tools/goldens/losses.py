"""Binary cross entropy and its gradient by timm and PyTorch, in f64.

losses.txt has one line for each case of one sample:

smoothing threshold positive_weight sum classes class logits[classes] targets[classes] loss gradient[classes]

threshold is -1 where targets stay as they are. class is -1 where the targets are given for each class, as Mixup and
CutMix make them; otherwise the targets in the line are only those of that class without smoothing.
"""
import itertools
import sys
import torch
from timm.data.mixup import mixup_target
from timm.loss import BinaryCrossEntropy

CLASSES = 7
generator = torch.Generator().manual_seed(20)


def mixed(smoothing):
    """Targets of two mixed samples, as timm's Mixup makes them."""
    return mixup_target(torch.tensor([5, 2]), CLASSES, 0.3, smoothing)[0].double()


with open(sys.argv[1] + "/losses.txt", "w") as out:
    for smoothing, threshold, weight, total in itertools.product((0, 0.1), (None, 0, 0.2, 0.65), (1, 2.5), (False, True)):
        for soft in False, True:
            loss = BinaryCrossEntropy(smoothing=smoothing, target_threshold=threshold, sum_classes=total,
                                      pos_weight=None if weight == 1 else torch.tensor(weight, dtype=torch.float64))
            logits = 4 * torch.randn(CLASSES, generator=generator, dtype=torch.float64)
            logits.requires_grad_()
            label = 3
            target = mixed(smoothing) if soft else torch.nn.functional.one_hot(torch.tensor(label), CLASSES).double()
            value = loss(logits[None], target[None] if soft else torch.tensor([label]))
            value.backward()
            numbers = [*logits.tolist(), *target.tolist(), value.item(), *logits.grad.tolist()]
            print(0 if soft else smoothing, -1 if threshold is None else threshold, weight, int(total), CLASSES,
                  -1 if soft else label, *map(repr, numbers), file=out)
