"""Writes src/base/core/classes: the class names of well-known data sets, one file for each, one class per line.

ImageNet-1k: WordNet's synsets in timm's order, each with its first lemma; if two synsets have the same lemma, with
torchvision's name. CIFAR-10 and Fashion-MNIST: torchvision's names. CIFAR-100: the fine labels in the data set's file
`meta`, which are sorted.

ImageNet-21k: the 21,843 synsets of timm's imagenet21k_goog, each with as few of its lemmas as tell it from all others;
if two synsets have the same lemmas, with the first lemma and the synset. Its other orders are subsets,
sorted by synset as it is. Letters before the name say to which of them a synset belongs, as the first line lists.

COCO: torchvision's names of the 80 categories. coco-91: class c is the category with the number c; categories that the
data set lacks have the names of its paper (Lin et al., ECCV 2014, appendix), and class 0 is the background. ADE20K: the
first name of each of the 150 classes in objectInfo150.csv of the MIT scene parsing benchmark (Zhou et al., CVPR 2017).
"""

import collections
import pathlib
import pkgutil

from timm.data import ImageNetInfo
from torchvision.datasets import FashionMNIST
from torchvision.models._meta import _COCO_CATEGORIES, _IMAGENET_CATEGORIES

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

ADE20K = """
wall, building, sky, floor, tree, ceiling, road, bed, windowpane, grass, cabinet, sidewalk, person, earth, door, table,
mountain, plant, curtain, chair, car, water, painting, sofa, shelf, house, sea, mirror, rug, field, armchair, seat,
fence, desk, rock, wardrobe, lamp, bathtub, railing, cushion, base, box, column, signboard, chest of drawers, counter,
sand, sink, skyscraper, fireplace, refrigerator, grandstand, path, stairs, runway, case, pool table, pillow,
screen door, stairway, river, bridge, bookcase, blind, coffee table, toilet, flower, book, hill, bench, countertop,
stove, palm, kitchen island, computer, swivel chair, boat, bar, arcade machine, hovel, bus, towel, light, truck, tower,
chandelier, awning, streetlight, booth, television receiver, airplane, dirt track, apparel, pole, land, bannister,
escalator, ottoman, bottle, buffet, poster, stage, van, ship, fountain, conveyer belt, canopy, washer, plaything,
swimming pool, stool, barrel, basket, waterfall, tent, bag, minibike, cradle, oven, ball, food, step, tank, trade name,
microwave, pot, animal, bicycle, lake, dishwasher, screen, blanket, sculpture, hood, sconce, vase, traffic light, tray,
ashcan, fan, pier, crt screen, plate, monitor, bulletin board, shower, radiator, glass, clock, flag
"""
# Categories of COCO that no image has, with their numbers.
COCO_UNUSED = {0: "background", 12: "street sign", 26: "hat", 29: "shoe", 30: "eye glasses", 45: "plate", 66: "mirror",
               68: "window", 69: "desk", 71: "door", 83: "blender"}
SUBSETS = {"a": ("imagenet-22k", "imagenet22k_synsets"), "t": ("imagenet-12k", "imagenet12k_synsets"),
           "p": ("imagenet-21k-p", "imagenet21k_miil_synsets"),
           "w": ("imagenet-21k-p-w21", "imagenet21k_miil_w21_synsets")}


def synsets_of(file):
    return pkgutil.get_data("timm.data", f"_info/{file}.txt").decode().split()


def imagenet_21k():
    info = ImageNetInfo("imagenet-21k-goog")
    synsets = info.label_names()
    lemmas = [info.label_name_to_description(s).split(", ") for s in synsets]
    often = collections.Counter(tuple(own[:n + 1]) for own in lemmas for n in range(len(own)))
    whole = collections.Counter(map(tuple, lemmas))
    members = {letter: set(synsets_of(file)) for letter, (_, file) in SUBSETS.items()}
    assert synsets == sorted(synsets)
    for _, file in SUBSETS.values():
        assert synsets_of(file) == [s for s in synsets if s in set(synsets_of(file))]
    lines = ["# subsets: " + " ".join(f"{letter}={name}" for letter, (name, _) in SUBSETS.items())]
    for synset, own in zip(synsets, lemmas):
        alone = [n for n in range(len(own)) if often[tuple(own[:n + 1])] == 1]
        name = ", ".join(own[:alone[0] + 1] if alone else own)
        if whole[tuple(own)] > 1:
            name = f"{own[0]} ({synset})"
        letters = "".join(letter for letter in SUBSETS if synset in members[letter])
        lines.append(f"{synset} {letters or '-'} {name}")
    return lines


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
    "imagenet-21k": imagenet_21k(),
    "coco": [name for name in _COCO_CATEGORIES[1:] if name != "N/A"],
    "coco-91": [COCO_UNUSED.get(number, name) for number, name in enumerate(_COCO_CATEGORIES)],
    "ade20k": ADE20K.replace("\n", " ").strip().split(", "),
}
assert [len(names) for names in lists.values()] == [1000, 10, 100, 10, 1 + 21843, 80, 91, 150]
assert all(len(set(names)) == len(names) for names in lists.values())
folder = pathlib.Path(__file__).parents[2] / "src" / "core" / "classes"
for name, lines in lists.items():
    (folder / f"{name}.txt").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
