"""Writes src/core/classes: the class names of well-known data sets, one file for each, one class per line.

ImageNet-1k: WordNet's synsets in timm's order, each with its first lemma; if two synsets have the same lemma, with
torchvision's name. CIFAR-10 and Fashion-MNIST: torchvision's names. CIFAR-100: the fine labels in the data set's file
`meta`, which are sorted.
"""

import collections
import pathlib

from timm.data import ImageNetInfo
from torchvision.datasets import FashionMNIST
from torchvision.models._meta import _IMAGENET_CATEGORIES

CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck"
CIFAR100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle
caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant flatfish
forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle
mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine
possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider squirrel streetcar
sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree
wolf woman worm
"""


def imagenet():
    info = ImageNetInfo("imagenet-1k")
    synsets = [info.index_to_label_name(i) for i in range(1000)]
    names = [info.label_name_to_description(s, detailed=False).split(", ")[0] for s in synsets]
    often = collections.Counter(names)
    return [f"{s} {c if often[n] > 1 else n}" for s, n, c in zip(synsets, names, _IMAGENET_CATEGORIES)]


lists = {
    "imagenet-1k": imagenet(),
    "cifar10": CIFAR10.split(),
    "cifar100": CIFAR100.split(),
    "fashion-mnist": FashionMNIST.classes,
}
assert [len(names) for names in lists.values()] == [1000, 10, 100, 10]
assert all(len(set(names)) == len(names) for names in lists.values())
folder = pathlib.Path(__file__).parents[2] / "src" / "core" / "classes"
for name, lines in lists.items():
    (folder / f"{name}.txt").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
