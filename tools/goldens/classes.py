"""Writes src/base/core/classes: the class names of well-known data sets, one file for each, one class per line.

ImageNet-1k: WordNet's synsets in timm's order, each with its first lemma; if two synsets have the same lemma, with
torchvision's name. CIFAR-10 and Fashion-MNIST: torchvision's names. CIFAR-100: the fine labels in the data set's file
`meta`, which are sorted.

ImageNet-21k: the 21,843 synsets of timm's imagenet21k_goog, each with as few of its lemmas as tell it from all others;
if two synsets have the same lemmas, with the first lemma and the synset. Its other orders are subsets,
sorted by synset as it is. Letters before the name say to which of them a synset belongs, as the first line lists.

COCO: torchvision's names of the 80 categories. coco-91: class c is the category with the number c; categories that the
data set lacks have the names of its paper (Lin et al., ECCV 2014, appendix), and class 0 is the background. ADE20K: the
first name of each of the 150 classes in objectInfo150.csv of the MIT scene parsing benchmark (Zhou et al., CVPR 2017),
and the colours of its color150.mat. A list whose first line is "# colours" has a colour after each name.
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
ADE20K_COLOURS = """
787878 b47878 06e6e6 503232 04c803 787850 8c8c8c cc05ff e6e6e6 04fa07 e005ff ebff07 96053d 787846 08ff33 ff0652
8fff8c ccff04 ff3307 cc4603 0066c8 3de6fa ff0633 0b66ff ff0747 ff09e0 0907e6 dcdcdc ff095c 7009ff 08ffd6 07ffe0
ffb806 0aff47 ff290a 07ffff e0ff08 6608ff ff3d06 ffc207 ff7a08 00ff14 ff0829 ff0599 0633ff eb0cff a09614 00a3ff
8c8c8c fa0a0f 14ff00 1fff00 ff1f00 ffe000 99ff00 0000ff ff4700 00ebff 00adff 1f00ff 0bc8c8 ff5200 00fff5 003dff
00ff70 00ff85 ff0000 ffa300 ff6600 c2ff00 008fff 33ff00 0052ff 00ff29 00ffad 0a00ff adff00 00ff99 ff5c00 ff00ff
ff00f5 ff0066 ffad00 ff0014 ffb8b8 001fff 00ff3d 0047ff ff00cc 00ffc2 00ff52 000aff 0070ff 3300ff 00c2ff 007aff
00ffa3 ff9900 00ff0a ff7000 8fff00 5200ff a3ff00 ffeb00 08b8aa 8500ff 00ff5c b800ff ff001f 00b8ff 00d6ff ff0070
5cff00 00e0ff 70e0ff 46b8a0 a300ff 9900ff 47ff00 ff00a3 ffcc00 ff008f 00ffeb 85ff00 ff00eb f500ff ff007a fff500
0abed4 d6ff00 00ccff 1400ff ffff00 0099ff 0029ff 00ffcc 2900ff 29ff00 ad00ff 00f5ff 4700ff 7a00ff 00ffb8 005cff
b8ff00 0085ff ffd600 19c2c2 66ff00 5c00ff
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


def ade20k():
    names, colours = ADE20K.replace("\n", " ").strip().split(", "), map(bytes.fromhex, ADE20K_COLOURS.split())
    return ["# colours"] + [" ".join([name, *map(str, colour)]) for name, colour in zip(names, colours, strict=True)]


lists = {
    "imagenet-1k": imagenet(),
    "cifar10": CIFAR10.split(),
    "cifar100": CIFAR100.split(),
    "fashion-mnist": FashionMNIST.classes,
    "imagenet-21k": imagenet_21k(),
    "coco": [name for name in _COCO_CATEGORIES[1:] if name != "N/A"],
    "coco-91": [COCO_UNUSED.get(number, name) for number, name in enumerate(_COCO_CATEGORIES)],
    "ade20k": ade20k(),
}
assert [len(names) for names in lists.values()] == [1000, 10, 100, 10, 1 + 21843, 80, 91, 1 + 150]
assert all(len(set(names)) == len(names) for names in lists.values())
folder = pathlib.Path(__file__).parents[2] / "src" / "base" / "core" / "classes"
for name, lines in lists.items():
    (folder / f"{name}.txt").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
