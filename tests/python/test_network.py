"""Networks: forms of images, predictions, attention, figures, and what is refused."""

import contextlib
import gc
import inspect
import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import threading
import types
import unittest
import urllib.request
import warnings
import zlib
from unittest import mock

import attscope
import numpy as np
from common import (
    CLASSES, TINY, TOKENS, Case, Tensor, environment, main, pictures, read_safetensors, tiny, write_data, write_png,
)  # fmt: skip


COMMAND = os.environ.get("ATTSCOPE")
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/python.md")


class Pil:
    """Behaves as an image of PIL, as far as the package uses one."""

    def __init__(self, array, mode="RGBA"):
        self.array = array
        self.mode = mode

    def getbands(self):
        return tuple(self.mode)

    def __array__(self, dtype=None, copy=None):
        return self.array

    def convert(self, mode):
        assert mode == "RGB"
        return self.array


def normalised(image):
    """The image as the network takes it: mean 0.5, std 0.5, channels first."""
    return np.moveaxis((image / np.float32(255) - np.float32(0.5)) / np.float32(0.5), -1, 0).astype(np.float32)


def same(found, wanted, message=""):
    """Equal but for rounding: the bits of a product depend on its rows, so on the images that are computed together."""
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-7, err_msg=message)  # measured: 8e-7, 3e-8


class Inputs(Case):
    def test_every_form_of_an_image_gives_the_same_answer(self):
        images = pictures(3)
        with tiny() as network:
            for i, image in enumerate(images):
                write_png(f"{i}.png", image)
            from_files = network.predict(["0.png", "1.png", "2.png"]).logits
            self.assertEqual(from_files.shape, (3, 4))
            self.assertEqual(from_files.dtype, np.float32)
            alpha = np.concatenate([images[1], images[1][:, :, :1]], axis=2)
            forms = [
                (images, 3),
                (list(images), 3),
                (Tensor(np.moveaxis(images, -1, 1)), 3),
                (["0.png", images[1], Pil(images[2])], 3),
                ([images[:2], Tensor(np.moveaxis(images[2], -1, 0))], 3),
                ([images[0], alpha], 2),
                (images[0], 1),
                (os.fspath("0.png"), 1),
                (np.asfortranarray(images[0]), 1),
            ]
            for i, (form, count) in enumerate(forms):
                same(network.predict(form).logits, from_files[:count], str(i))
            same(network.predict(images, batch_size=2).logits, from_files)
            grey = network.predict(images[0][:, :, 0]).logits
            np.testing.assert_array_equal(network.predict(np.repeat(images[0][:, :, :1], 3, 2)).logits, grey)
            deep = images[0][:, :, 0].astype(np.uint16) * 256 + 7
            np.testing.assert_array_equal(network.predict(Pil(deep, "I;16")).logits, grey)
            for mode in ("I", "F"):
                with self.assertRaisesRegex(attscope.Error, f"the mode {mode}, which does not say"):
                    network.predict(Pil(deep, mode))

    def test_floats_are_not_transformed(self):
        floats = np.stack([normalised(image) for image in pictures(3)])
        with tiny() as network:
            wanted = network.predict(floats).logits
            for form in (
                list(floats),
                Tensor(floats),
                Tensor(floats.astype(np.float16).astype(np.float32)),
                floats * 1.0,
            ):
                np.testing.assert_allclose(network.predict(form).logits, wanted, atol=1e-3)
            for form in (
                floats.astype(">f4"),
                np.asfortranarray(floats),
                floats[::-1, :, ::-1].copy()[::-1, :, ::-1],
                iter(floats),
            ):
                np.testing.assert_array_equal(network.predict(form).logits, wanted)
            np.testing.assert_array_equal(network.predict(floats.astype(np.float64)).logits, wanted)
            # The order of channels and axes matters.
            self.assertGreater(np.abs(network.predict(floats[:, ::-1]).logits - wanted).max(), 1e-4)
            self.assertGreater(np.abs(network.predict(floats.swapaxes(2, 3)).logits - wanted).max(), 1e-4)

    def test_other_objects_are_refused(self):
        with tiny() as network:
            for images, part in [
                (np.zeros((16, 16, 3), np.float32), "expected [channels, height, width] with 3 channels for floats"),
                (np.zeros((16, 16), np.float32), "floats of shape [16, 16]"),
                (np.zeros((16, 16, 3), np.int64), "array of int64; expected uint8, or floats that are normalised"),
                (np.zeros((16, 16, 5), np.uint8), "uint8 of shape [16, 16, 5]"),
                ([None], "an image is a NoneType"),
                ([], "no image is given"),
                ("absent.png", "absent.png"),
                ("a\0b", "contains a zero byte"),
            ]:
                self.fails(part, network.predict, images)
            self.fails("no image is given", network.measure, np.zeros((0, 16, 16, 3), np.uint8))
            self.fails("image of 0 x 16", network.predict, np.zeros((0, 16, 3), np.uint8))
            self.fails("the path of an image is empty", network.predict, [""])
            self.fails("3 images are given; expected one", network.relevance, pictures(3))

    def test_truth_values_are_no_numbers(self):
        for key in ("num_classes", "drop_rate", "img_size"):
            self.fails(f"the option {key} is True; expected a number", tiny, **{key: True})
        with tiny(class_token=False, global_pool="avg") as network:
            self.assertEqual(network.predict(np.zeros((3, 16, 16), np.float32)).logits.shape, (1, 4))

    def test_a_segmenter_gives_a_class_for_each_pixel(self):
        with tiny(task="segment") as network:
            image = pictures(2)
            found = network.outputs(image, ["class_map", "pixel_logits"])
            self.assertEqual((found["class_map"].shape, found["class_map"].dtype), ((2, 16, 16), np.int32))
            self.assertEqual((found["pixel_logits"].shape, found["pixel_logits"].dtype), ((2, 4, 4, 4), np.float32))
            shares = np.bincount(found["class_map"][1].ravel(), minlength=4) / 256
            for told in network.predict(image)[1]["classes"]:
                self.assertEqual(told["share"], shares[told["class"]])

    def test_floats_have_the_size_of_the_network(self):
        sizes = [(0, 0), (8, 8), (16, 20), (32, 32)]
        with tiny() as network, attscope.open("resnet18", num_classes=4, seed=1, img_size=32, threads=1) as residual:
            calls = [network.predict, network.features, lambda image: network.outputs(image, "tokens")]
            calls += [lambda image: network.attention(image, 0), lambda image: network.measure(image, "entropy")]
            for height, width in sizes:
                part = f"16 x 16 pixels; resize the image, or open the network with img_size=({height}, {width})"
                for call in calls:
                    self.fails(part, call, np.zeros((3, height, width), np.float32))
            self.fails("the network takes 32 x 32", residual.predict, np.zeros((3, 64, 64), np.float32))
        with tiny(img_size=(16, 20)) as network:
            self.assertEqual(len(network.predict(np.zeros((3, 16, 20), np.float32))), 1)

    def test_paths_are_texts_bytes_or_objects(self):
        os.makedirs("ünï", exist_ok=True)
        write_png("ünï/é.png", pictures(1)[0])
        with tiny() as network:
            wanted = network.predict(pictures(1)).logits
            name = "ünï/é.png"
            for path in (name, name.encode(), pathlib.Path(name), [name.encode()]):
                np.testing.assert_array_equal(network.predict(path).logits, wanted)
            self.assertEqual(network.measure("ünï".encode(), "entropy", frame=False).images, 1)
            self.fails("could not be opened", network.predict, "\udcff.png")

    def test_numbers_that_the_library_cannot_take_are_refused(self):
        images = pictures(2)
        with tiny() as network:
            for value in (0, -1, 2.5, "2", None, True, np.True_, 2**32 + 1):
                self.fails("topk is", network.predict, images, topk=value)
            for value in (0, -1, 2.5, "2", True, 2**32 + 1):
                self.fails("batch_size is", network.predict, images, batch_size=value)
                self.fails("batch_size is", network.measure, images, batch_size=value)
                self.fails("batch_size is", network.measure, ["a.png"], batch_size=value)
            for name in ("samples", "maps", "workers"):
                self.fails(f"{name} is -1", network.measure, ["a.png"], **{name: -1})
            self.fails("samples is -1", network.measure, images, samples=-1)
            for value in (1.5, None, [0], True):
                self.fails("layer is", network.attention, images[0], value)
                if value is not None:
                    self.fails("head is", network.attention, images[0], 0, value)
                    self.fails("query is", network.attention, images[0], 0, 0, value)
            for value in (2.0, np.float32(2), np.array(2)):
                self.assertEqual(network.predict(images, topk=value), network.predict(images, topk=np.int8(2)))
        self.fails("threads is -1", tiny, threads=-1)
        self.fails("seed is -1", tiny, seed=-1)
        self.fails("seed is 1", tiny, seed=2**64)
        self.fails("a side of img_size is", tiny, img_size=(2**32 + 16, 16))

    def test_arguments_of_another_kind_are_refused(self):
        images = pictures(2)
        write_png("one.png", images[0])
        with tiny() as network:
            for names in (None, 5, [], "", [""], [5], [["logits"]], b"logits", np.array(2)):
                self.fails("names is", network.outputs, images, names)
                if names is not None:
                    self.fails("instruments is", network.measure, images, names)
                    self.fails("instruments is", network.measure, ["one.png"], names)
            for data in (images, ["one.png"]):
                self.fails("nodes is 5; expected a text", network.measure, data, "entropy", nodes=5)
                self.fails("progress is 5; expected a function", network.measure, data, "entropy", progress=5)
                self.fails("split is for the path of a data set", network.measure, data, "entropy", split="train")
                for name in ("frame", "skip_corrupt"):
                    self.fails(f"{name} is 'no'; expected True", network.measure, data, "entropy", **{name: "no"})
            self.fails("no image is given", network.measure, [], "entropy")
            self.assertEqual(network.measure(["one.png"], ("entropy",), frame=np.False_).images, 1)
        for what in (None, 5, [], ["a"]):
            self.fails("expected a file, a folder, or the name of a network", attscope.open, what)
        self.fails("the name of the checkpoint is empty", attscope.open, "")
        self.fails("model is 5; expected a text", tiny, model=5)
        self.fails("averaged is 'no'; expected True or False", tiny, averaged="no")
        self.fails("test_images is 1", tiny, test_images=1)
        self.fails("the precision is []", tiny, precision=[])
        self.fails("the model is a str; expected a module", attscope.from_torch, "vit", "vit_tiny_patch16_224")
        self.fails("title is 5; expected a text", attscope.report, "absent", title=5)
        self.fails("map_bytes is -1", attscope.report, "absent", map_bytes=-1)

    def test_instruments_that_need_labels(self):
        images = pictures(2)
        with tiny() as network:
            for instruments in ("accuracy", ["entropy", "accuracy"], "tns_classes", "all,block_pruning"):
                self.fails(
                    "needs the classes of the images: give them as labels", network.measure, images, instruments
                )
            for instruments in (None, ["entropy", "accuracy?"]):
                found = network.measure(images, instruments, frame=False)
                self.assertIn("entropy", found["instrument"])
                self.assertNotIn("accuracy", found["instrument"])

    def test_labels(self):
        images = pictures(3)
        with tiny() as network:

            def top1(labels):
                return network.measure(images, "accuracy", labels=labels, frame=False)["mean"][0]

            answers = network.predict(images).logits.argmax(1)
            self.assertEqual(top1(answers), 100)
            self.assertEqual(top1(list(answers)), 100)
            self.assertEqual(top1(answers.astype(">i8")), 100)
            self.assertEqual(top1((answers + 1) % 4), 0)
            self.fails("the label of image 2 is 4, and the network has 4 classes", top1, [0, 1, 4])
            self.fails("the label of image 2 is -1", top1, [0, 1, -1])
            self.fails("expected the numbers of classes", top1, answers + 2**32)
            self.fails("labels are float64", top1, [0.5, 1, 2])
            self.fails("labels of shape [2]", top1, [0, 1])
            self.fails("labels is [[0], [1, 2], [0]]", top1, [[0], [1, 2], [0]])


class Drawings(Case):
    def test_a_drawing_has_the_size_of_the_photograph(self):
        wide = np.random.default_rng(2).integers(0, 256, (16, 40, 3), dtype=np.uint8)
        write_png("wide.png", wide)
        with tiny(task="segment", num_classes=3) as network:
            for form in ("wide.png", wide, Pil(wide), Tensor(np.moveaxis(wide, -1, 0))):
                image, classes, colours = network.draw(form)
                self.assertEqual((image.shape, image.dtype), ((16, 40, 3), np.uint8))
                self.assertEqual((classes.shape, classes.dtype), ((16, 40), np.uint16))
                self.assertEqual(colours.tolist(), [[0, 96, 255], [255, 255, 0], [255, 0, 0]])
                self.assertLess(classes.max(), 3)  # the whole photograph is seen
                np.testing.assert_array_equal(image, (wide.astype(int) + colours[classes] + 1) // 2)
            image, classes, colours = network.draw(wide[:, :, 0])
            np.testing.assert_array_equal(image, (wide[:, :, :1].astype(int) + colours[classes] + 1) // 2)

    def test_what_cannot_be_drawn(self):
        image = pictures(1)[0]
        with tiny() as network, self.assertRaisesRegex(attscope.Error, "task .classification. cannot be drawn"):
            network.draw(image)
        with tiny(task="segment") as network:
            with self.assertRaisesRegex(attscope.Error, "an image is floats; expected a photograph"):
                network.draw(normalised(image))
            with self.assertRaisesRegex(attscope.Error, "2 images are given; expected one"):
                network.draw([image, image])


def write_segments(folder, sizes, classes=3):
    """Writes photographs and masks of a validation split. Returns both, by the photograph's path."""
    written = {}
    for i, (height, width) in enumerate(sizes):
        photograph = np.random.default_rng(i).integers(0, 256, (height, width, 3), dtype=np.uint8)
        mask = np.random.default_rng(i + 100).integers(0, classes, (height, width), dtype=np.uint8)
        for part, image in (("images", photograph), ("masks", mask)):
            os.makedirs(f"{folder}/{part}/val", exist_ok=True)
            write_png(f"{folder}/{part}/val/{i}.png", image)
        written[f"{folder}/images/val/{i}.png"] = photograph, mask
    pathlib.Path(folder, "classes.txt").write_text("".join(f"class{c}\n" for c in range(classes)))
    return written


class Passes(Case):
    HOW = {"img_scale": (48, 32), "stride": 24, "scales": [0.75, 1], "flips": True}

    def segmenter(self):
        return tiny(task="segment", num_classes=3, img_size=32, patch_size=4)

    def test_classes_have_the_size_of_the_photograph(self):
        written = write_segments("street", [(30, 50), (41, 23)])
        with self.segmenter() as network:
            found = network.predict(list(written), **self.HOW)
            maps = found.outputs["class_map"]
            self.assertEqual([m.shape for m in maps], [(30, 50), (41, 23)])
            self.assertEqual(list(found.outputs), ["class_map"])
            for path, answer, classes in zip(written, found, maps):
                shares = np.bincount(classes.ravel(), minlength=3) / classes.size
                self.assertEqual({one["class"]: one["share"] for one in answer["classes"]},
                                 {c: share for c, share in enumerate(shares) if share})  # fmt: skip
                drawing = network.draw(path, **self.HOW)
                np.testing.assert_array_equal(drawing.classes, classes)
                in_memory = network.predict(written[path][0], **self.HOW)
                np.testing.assert_array_equal(in_memory.outputs["class_map"][0], classes)
            photograph = written[list(written)[0]][0]
            # The passes of a mirrored photograph are those of the photograph.
            mirrored = network.predict(photograph[:, ::-1], **self.HOW).outputs["class_map"][0]
            self.assertLess(np.mean(mirrored[:, ::-1] != maps[0]), 0.01)  # measured: 0
            # Each option changes the classes.
            for name in self.HOW:
                other = network.predict(photograph, **{**self.HOW, name: None if name != "flips" else False})
                self.assertTrue((other.outputs["class_map"][0] != maps[0]).any(), name)
            # Later calls see the photographs once.
            self.assertEqual(network.predict(photograph).outputs["class_map"].shape, (1, 32, 32))

    def test_an_evaluation_compares_these_classes(self):
        written = write_segments("street", [(30, 50), (41, 23)])
        batches = []
        with self.segmenter() as network:
            found = network.evaluate("street", **self.HOW, batch_size=2, progress=lambda p: batches.append(p.stage))
            maps = network.predict(list(written), **self.HOW).outputs["class_map"]
            counts = np.zeros((3, 3))
            for (_, mask), classes in zip(written.values(), maps):
                np.add.at(counts, (mask, classes), 1)
            right, true, predicted = counts.diagonal(), counts.sum(1), counts.sum(0)
            iou, accuracy = 100 * right / (true + predicted - right), 100 * right / true
            self.assertEqual(found["images"], 2)
            for name, wanted in (("miou", iou.mean()), ("macc", accuracy.mean()),
                                 ("aacc", 100 * right.sum() / counts.sum())):  # fmt: skip
                self.assertAlmostEqual(found[name], wanted, places=10)
            self.assertEqual(list(found["classes"]), ["class0", "class1", "class2"])
            for c in range(3):
                self.assertAlmostEqual(found["classes"][f"class{c}"]["iou"], iou[c], places=10)
                self.assertAlmostEqual(found["classes"][f"class{c}"]["accuracy"], accuracy[c], places=10)
            self.assertEqual(set(batches), {"evaluate"})
            self.assertNotEqual(network.evaluate("street")["miou"], found["miou"])

    def test_a_classifier_is_evaluated_without_passes(self):
        data = write_data("data")
        with tiny() as network:
            found = network.evaluate(data)
            self.assertEqual((set(found), found["images"]), ({"loss", "top1", "top5", "images"}, 16))
            self.assertEqual(found["top5"], 100)
            self.fails("pixel", network.evaluate, data, flips=True, status="ERR_UNSUPPORTED")
            self.fails("pixel", network.predict, pictures(1), stride=8, status="ERR_UNSUPPORTED")

    def test_wrong_arguments_are_refused(self):
        image = pictures(1)[0]
        with self.segmenter() as network:
            for how, part in (
                ({"img_scale": 512}, "img_scale is 512; expected two whole numbers"),
                ({"img_scale": (512, 0)}, "a number of img_scale is 0; expected a whole number from 1"),
                ({"stride": (1, 2, 3)}, "stride is (1, 2, 3); expected two whole numbers"),
                ({"stride": 0}, "stride is 0; expected a whole number from 1"),
                ({"stride": 33}, "33"),
                ({"scales": []}, "scales is []; expected 1 to 8 numbers"),
                ({"scales": [1] * 9}, "expected 1 to 8 numbers"),
                ({"scales": 2}, "scales is 2; expected"),
                ({"scales": "12"}, "scales is '12'; expected"),
                ({"scales": [-1]}, "at the scale -1"),
                ({"flips": 1}, "flips is 1; expected True or False"),
            ):
                self.fails(part, network.predict, image, **how)
            self.fails("an image is floats", network.predict, np.zeros((3, 32, 32), np.float32), flips=True)
            self.fails("data is 3; expected the path of a data set", network.evaluate, 3)
            self.fails("nowhere", network.evaluate, "nowhere", status="ERR_NOT_FOUND")


def write_boxes(folder, photographs, answers):
    """Writes photographs and half of the boxes of answers as a data set in COCO's format."""
    os.makedirs(f"{folder}/images", exist_ok=True)
    images, annotations = [], []
    for number, (photograph, answer) in enumerate(zip(photographs, answers)):
        write_png(f"{folder}/images/{number}.png", photograph)
        height, width, _ = photograph.shape
        images.append({"id": number, "file_name": f"{number}.png", "height": height, "width": width})
        for box in answer["boxes"][::2]:
            annotations.append({"id": len(annotations) + 1, "image_id": number, "category_id": box["category_id"],
                                "bbox": box["bbox"], "area": 100, "iscrowd": 0})  # fmt: skip
    categories = [{"id": c + 1, "name": f"class{c}"} for c in range(3)]
    pathlib.Path(folder, "annotations.json").write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories})
    )


class Detections(Case):
    def detector(self):
        return attscope.open("resnet18", task="detect", img_size=(64, 96), num_classes=3, head_channels=8, seed=2,
                             threads=2, box_channels=8, anchor_size=8, proposals=30, detections=10)  # fmt: skip

    def test_photographs_of_several_sizes(self):
        draw = np.random.default_rng(5)
        photographs = [draw.integers(0, 256, (*sides, 3), dtype=np.uint8) for sides in ((30, 50), (41, 23), (30, 50))]
        write_png("12.png", photographs[1])
        with self.detector() as network:
            found = network.predict([photographs[0], "12.png", photographs[2]])
            self.assertEqual([answer["image"] for answer in found], [None, "12.png", None])
            self.assertEqual({name: array.shape for name, array in found.outputs.items()},
                             {"boxes": (3, 10, 4), "scores": (3, 10), "classes": (3, 10), "count": (3,)})  # fmt: skip
            for photograph, answer, count in zip(photographs, found, found.outputs["count"]):
                height, width, _ = photograph.shape
                self.assertTrue(0 < len(answer["boxes"]) == count)
                self.assertEqual(network.predict(photograph)[0]["boxes"],
                                 [{key: value for key, value in box.items() if key != "image_id"}
                                  for box in answer["boxes"]])  # fmt: skip
                for box in answer["boxes"]:
                    left, top, wide, high = box["bbox"]
                    self.assertTrue(min(left, top) >= 0 and left + wide < width + 1e-3 and top + high < height + 1e-3)
            self.assertEqual({box["image_id"] for box in found[1]["boxes"]}, {12})
            self.fails("the output stage1 has the shapes", network.outputs, photographs, "stage1")
            self.assertEqual(network.draw(photographs[1]).image.shape, (41, 23, 3))

    def test_an_evaluation_gives_cocos_figures(self):
        photographs = [np.random.default_rng(i).integers(0, 256, (30 + 9 * i, 50, 3), dtype=np.uint8) for i in range(3)]
        with self.detector() as network:
            write_boxes("boxes", photographs, network.predict(photographs))
            found = network.evaluate("boxes", batch_size=2)
            names = "ap ap50 ap75 aps apm apl ar1 ar10 ar100 ars arm arl".split()
            self.assertEqual(list(found), [*names, "images", "classes"])
            self.assertEqual((found["images"], found["ar100"]), (3, 100))
            self.assertTrue(20 < found["ap"] < 100 and np.isnan(found["apl"]))
            self.assertEqual({tuple(figures) for figures in found["classes"].values()}, {("ap", "ar")})
            mean = np.mean([figures["ap"] for figures in found["classes"].values()])
            self.assertAlmostEqual(found["ap"], mean, places=10)
            self.fails("data has no boxes", network.evaluate, write_data("data"), status="ERR_MISMATCH")


class Answers(Case):
    def test_predictions(self):
        with tiny() as network:
            found = network.predict(pictures(5), topk=2, batch_size=3)
            self.assertEqual((len(found), len(found[0]["top"])), (5, 2))
            for answer, logits in zip(found, found.logits):
                self.assertEqual(answer["top"][0]["class"], int(np.argmax(logits)))
                softmax = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
                self.assertAlmostEqual(answer["top"][0]["probability"], softmax.max(), places=6)
            self.fails("topk is 0; expected a whole number from 1", network.predict, pictures(1), topk=0)
            write_png("named.png", pictures(1)[0])
            mixed = network.predict([pictures(1)[0], "named.png", pathlib.Path("named.png")], batch_size=2)
            self.assertEqual([answer["image"] for answer in mixed], [None, "named.png", "named.png"])
            self.assertEqual({tuple(answer) for answer in mixed}, {("image", "top")})
            self.assertEqual(list(found.outputs), ["logits"])

    def test_features_give_the_logits(self):
        with tiny() as network:
            images = pictures(4)
            before = network.predict(images).logits
            features = network.features(images)
            self.assertEqual(features.shape, (4, 16))
            outputs = network.outputs(images, ["logits", "features", "blocks.*.attn.map"], batch_size=3)
            same(outputs["logits"], before)
            same(outputs["features"], features)
            self.assertEqual(outputs["blocks.1.attn.map"].shape, (4, 2, TOKENS, TOKENS))
            np.testing.assert_array_equal(network.predict(images).logits, before)
            one = network.outputs(images, "features")
            self.assertEqual(list(one), ["features"])
            np.testing.assert_array_equal(one["features"], features)
            self.fails('no output "stage9"', network.outputs, images, ["stage9"], status="ERR_NOT_FOUND")

    def test_named_arrays_give_the_same_answers(self):
        images = [normalised(image) for image in pictures(3)]
        with tiny() as network:
            side = images[0].shape[1]
            self.assertEqual(network.inputs, {"image": ("float32", (side, side, 3))})
            rows = np.stack([np.moveaxis(image, 0, -1) for image in images])
            expected = network.predict(images).logits
            np.testing.assert_array_equal(network.run({"image": rows})["logits"], expected)
            np.testing.assert_array_equal(network.run({"image": Tensor(rows.astype(np.float64))})["logits"], expected)
            found = network.run({"image": rows}, ["features", "logits"])
            self.assertEqual(set(found), {"features", "logits"})
            np.testing.assert_array_equal(found["features"], network.features(images))
            larger = np.zeros((1, 2 * side, side, 3), np.float32)
            self.assertEqual(network.run({"image": larger}, "logits")["logits"].shape, (1, len(CLASSES)))
            np.testing.assert_array_equal(network.attention({"image": rows[:1]}, 0), network.attention(images[0], 0))
            named = network.measure({"image": rows}, "entropy", batch_size=2, frame=False)
            plain = network.measure(images, "entropy", batch_size=2, frame=False)
            np.testing.assert_array_equal(named["mean"], plain["mean"])
            self.assertEqual(named.images, 3)

    def test_named_arrays_that_are_refused(self):
        with tiny() as network:
            side = network.image_size[1]
            image = np.zeros((2, side, side, 3), np.float32)
            for arrays, message in (
                ({}, "expected a dictionary of arrays by the names of the inputs"),
                (image, "expected a dictionary of arrays by the names of the inputs"),
                ({"tokens": image}, "the network has no input 'tokens'; its inputs are: image"),
                ({"image": image.astype(np.uint8)}, "the input image is an array of uint8; expected float32"),
                ({"image": np.float32(1)}, "expected one row for each sample"),
                ({"image": np.zeros((1,) * 7, np.float32)}, "expected one row for each sample"),
            ):
                self.fails(message, network.run, arrays)
            for wrong in (image[..., :1], image.transpose(0, 3, 1, 2)):
                self.fails("expected [height, width, 3]", network.run, {"image": wrong}, status="ERR_MISMATCH")
            self.fails("at least 1", network.run, {"image": image[:0]})

    def test_a_folder_stands_for_its_images(self):
        images = pictures(3)
        os.makedirs("shown/more", exist_ok=True)
        for path, image in zip(("shown/2.png", "shown/10.png", "shown/more/1.png"), images, strict=True):
            write_png(path, image)
        with tiny() as network:
            found = network.predict("shown")
            self.assertEqual([one["image"] for one in found], ["shown/2.png", "shown/10.png", "shown/more/1.png"])
            same(found.logits, network.predict(images).logits)
            same(network.features(["shown/more", images[0]]), network.features([images[2], images[0]]))
            os.makedirs("none", exist_ok=True)
            self.fails("none", network.predict, "none")

    def test_attention_of_several_images(self):
        images = pictures(3)
        with tiny() as network:
            wanted = [network.attention(image, 1, head=0) for image in images]
            for form in (images, list(images)):
                np.testing.assert_array_equal(network.attention(form, 1, head=0), wanted)
            self.assertEqual(network.attention(images[:1], 1).shape, (1, 2, TOKENS, TOKENS))
            self.assertEqual(network.attention(images[0], 1).shape, (2, TOKENS, TOKENS))
            self.fails("no image", network.attention, [], 1)

    def test_missing_files_are_python_errors(self):
        with tiny() as network:
            for call in (network.predict, network.features, network.evaluate, network.embed):
                with self.assertRaises(FileNotFoundError) as caught:
                    call("absent.png")
                self.assertIsInstance(caught.exception, attscope.Error)
                self.assertEqual(caught.exception.status, "ERR_NOT_FOUND")
                self.assertIn("absent.png", str(caught.exception))
            with self.assertRaises(attscope.Error) as caught:
                network.attention(pictures(1)[0], "absent")
            self.assertNotIsInstance(caught.exception, FileNotFoundError)
        with self.assertRaises(FileNotFoundError):
            attscope.open("absent.safetensors")

    def test_photographs_are_turned_by_exif(self):
        """An image that is stored on its side, in every call that reads files."""
        images = pictures(2, size=24)
        os.makedirs("turned/on", exist_ok=True)
        os.makedirs("stored/on", exist_ok=True)
        for i, image in enumerate(images):
            lying = np.ascontiguousarray(np.rot90(image))  # orientation 6: turn it clockwise
            write_png(f"turned/on/{i}.png", lying)
            shutil.copy(f"turned/on/{i}.png", f"stored/on/{i}.png")
            data = pathlib.Path(f"turned/on/{i}.png").read_bytes()
            exif = b"eXIfMM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"
            chunk = struct.pack(">I", len(exif) - 4) + exif + struct.pack(">I", zlib.crc32(exif))
            pathlib.Path(f"turned/on/{i}.png").write_bytes(data[:33] + chunk + data[33:])
        calls = {
            "predict": lambda network, where: network.predict(where).logits,
            "attention": lambda network, where: network.attention(where, 1),
            "embed": lambda network, where: network.embed(where).features,
            "measure": lambda network, where: network.measure(where, "entropy", frame=False)["mean"],
        }
        with tiny() as as_stored, tiny(exif_transpose=True) as upright:
            for name, call in calls.items():
                # The network says it once of files, and each data set says it.
                says = self.assertLogs("attscope") if name in ("predict", "embed") else contextlib.nullcontext()
                with says as log:
                    same(call(as_stored, "turned"), call(as_stored, "stored"), name)
                if log:
                    self.assertIn("EXIF says to turn it", " ".join(log.output), name)
                self.assertGreater(np.abs(call(upright, "turned") - call(as_stored, "turned")).max(), 1e-6, name)
                same(call(upright, "stored"), call(as_stored, "stored"), name)
            same(upright.predict("turned").logits, as_stored.predict(images).logits)
            same(upright.features("turned"), as_stored.features(images))
            same(upright.embed("turned").features, as_stored.features(images))
            same(upright.attention("turned", 1), as_stored.attention(images, 1))

    def test_names_of_networks(self):
        self.assertIn("vit_tiny_patch16_224", attscope.models())
        found = attscope.models("*dinov2*")
        self.assertTrue(found and all("dinov2" in name for name in found))
        self.assertEqual(attscope.models(["resnet18", "no_such*"]), ["resnet18"])
        self.assertIn("vit_tiny_patch16_224.augreg_in21k_ft_in1k", attscope.models("vit_tiny*", tags=True))
        self.fails("the pattern is [5]", attscope.models, [5])

    def test_features_of_data_sets(self):
        write_data("embedded")
        with tiny() as network:
            found = network.embed("embedded", "both", output="features.npz")
            self.assertEqual(found.features.shape, (16, 32))
            self.assertEqual(found.classes, CLASSES)
            paths = [f"embedded/{name}" for name in found.names]
            np.testing.assert_allclose(found.features, network.outputs(paths, "both")["both"], atol=1e-5)
            self.assertEqual([name.split("/")[-2] for name in found.names], [CLASSES[c] for c in found.labels])
            with np.load("features.npz") as file:
                np.testing.assert_array_equal(file["features"], found.features)
            self.assertEqual(list(network.embed(paths[:2]).labels), [-1, -1])
            self.fails("data is 5; expected the path", network.embed, 5)

    def test_a_linear_classifier(self):
        write_data("embedded")
        with tiny() as network:
            found = network.probe("embedded", "embedded", c=10)
            train, val = network.embed("embedded", split="train"), network.embed("embedded")
            logits = val.features.astype(float) @ found.weights.T + found.biases
            self.assertEqual(found["top1"], 100 * np.mean(found.classes[logits.argmax(1)] == val.labels))
            logits = train.features.astype(float) @ found.weights.T + found.biases
            losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(48), train.labels]
            self.assertAlmostEqual(found["objective"], losses.mean() + (found.weights**2).sum() / (2 * 10 * 48), 12)
            self.assertEqual((found["images"], found["train_images"], found["fits"]), (16, 48, []))
            chosen = network.probe("embedded", "embedded")
            self.assertIn(chosen["c"], [fit["c"] for fit in chosen["fits"]])
            self.fails("are the same images", network.probe, "embedded", "./embedded/", split="train")
            self.fails("c is 'x'", network.probe, "embedded", "embedded", c="x")

    def test_progress_is_shown_in_terminals(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        write_data("shown_data", train=4, validation=8)
        cases = (None, True, True), (None, False, False), (False, True, False), (True, False, True)
        for wish, terminal, shows in cases:
            stream = Terminal() if terminal else io.StringIO()
            with contextlib.redirect_stderr(stream), tiny() as network:
                network.evaluate("shown_data", batch_size=4, progress=wish)
            self.assertEqual("evaluate" in stream.getvalue(), shows, (wish, terminal))
            if shows:
                self.assertIn("8/8", stream.getvalue())
                self.assertEqual(stream.getvalue().split("\r")[-2].strip(), "")  # removed at the end
        with tiny() as network:
            self.fails("progress is 5; expected a function", network.evaluate, "shown_data", progress=5)

    def test_the_explorer_is_shown(self):
        write_data("data")
        attscope.train(
            "data", model="vit_tiny_patch16_224", epochs=1, batch_size=16, output="shown_runs", experiment="one",
            threads=2, **TINY,
        )  # fmt: skip
        with attscope.open("shown_runs/one", threads=1) as network:
            try:
                shown = network.show("data/validation")
            except attscope.Error as error:
                self.assertEqual(error.status, "ERR_UNSUPPORTED")  # a build without libmicrohttpd or pages
                self.skipTest(str(error))
        page = shown._repr_html_()
        self.assertIn("<iframe", page)
        self.assertIn("/explore?token=", page)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(), urllib.request.ProxyHandler({}))
        with opener.open(shown.url.replace("/?", "/explore?")) as answer:
            self.assertIn("frame-ancestors http://localhost:*", answer.headers["Content-Security-Policy"])
        with opener.open(shown.url.split("?")[0] + "api/models") as answer:
            self.assertEqual(len(json.load(answer)["models"]), 1)
        shown.close()
        with self.assertRaises(OSError):
            opener.open(shown.url)
        with tiny() as network:
            self.fails("the network has no file", network.show)

    def test_attention_is_the_map(self):
        with tiny() as network:
            image = pictures(1)[0]
            maps = network.outputs(image, ["blocks.1.attn.map"])["blocks.1.attn.map"][0]
            self.assertEqual(network.layers, ["blocks.0.attn", "blocks.1.attn"])
            found = network.attention(image, 1)
            np.testing.assert_allclose(found, maps, atol=1e-6)  # measured: 3e-8
            np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-5)
            np.testing.assert_array_equal(network.attention(image, -1, 1), found[1])
            np.testing.assert_array_equal(network.attention(image, "blocks.1.attn", query=3), found[:, 3])
            np.testing.assert_array_equal(network.attention(image, 1, 0, -1), found[0, TOKENS - 1])
            np.testing.assert_allclose(network.attention(normalised(image), 1), found, atol=0.2)
            self.fails("there is no layer 2; expected 0 to 1", network.attention, image, 2)
            self.fails("there is no head -3", network.attention, image, 0, -3)
            self.fails("there is no query 17", network.attention, image, 0, 0, 17)
            self.fails('no attention layer "x"', network.attention, image, "x")

    def test_properties(self):
        with tiny() as network:
            self.assertEqual(repr(network), "<attscope.Network vit_tiny_patch16_224>")
            self.assertEqual((network.classes, network.class_names, network.path), (4, None, None))
            self.assertEqual(network.image_size, (3, 16, 16))
            self.assertEqual((network.options["depth"], network.options["img_size"]), (2, (16, 16)))
            self.assertEqual(repr(network.options["embed_dim"]), "16")  # not 16.0
            with tiny(seed=1, **network.options) as again:
                self.assertEqual(again.options, network.options)

    def test_a_folder_of_the_transformers_library(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../goldens/layouts/dinov3")
        images = np.random.default_rng(1).integers(0, 256, (2, 20, 30, 3), dtype=np.uint8)
        with attscope.open(folder) as network:
            self.assertEqual(network.classes, 0)
            self.assertEqual(network.features(images).shape, (2, 8))
            self.assertEqual(network.layers, ["blocks.0.attn", "blocks.1.attn"])
            weights = network.attention(images[0], 1)
            self.assertEqual(weights.shape, (2, 1 + 2 + 16, 1 + 2 + 16))
            np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)  # measured: 2e-7
            self.assertEqual(network.measure(images, "entropy", frame=False).images, 2)

    def test_a_projection_gives_no_classes(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../goldens/layouts/clip_projection")
        with attscope.open(folder) as network:
            image = pictures(1, size=24)[0]
            self.fails("features, not scores of classes", network.predict, image)
            self.fails("features, not scores of classes", network.explore(image).predict)
            self.fails("features, not scores of classes: relevance needs classes", network.relevance, image, "rollout")
            self.assertEqual(network.outputs(image, "logits")["logits"].shape, (1, network.classes))

    def test_a_live_model_of_transformers_is_saved(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../goldens/layouts/vit")
        saved = []

        class Saved:
            def __init__(self, *names):
                self.names = names

            def state_dict(self):
                raise AssertionError("the names in memory are not those of files")

            def save_pretrained(self, to):
                saved.append(to)
                for name in self.names:
                    shutil.copy(f"{folder}/{name}", to)

        model, processor = Saved("config.json", "model.safetensors"), Saved("preprocessor_config.json")
        with attscope.open(folder) as network:
            wanted = network.predict(pictures(2, size=24)).logits
        with attscope.from_torch(types.SimpleNamespace(module=model, state_dict=None), processor=processor) as network:
            self.assertTrue(os.path.exists(saved[0]))
            np.testing.assert_array_equal(network.predict(pictures(2, size=24)).logits, wanted)
        with attscope.from_torch(model, img_size=12) as network:
            self.assertEqual(network.image_size, (3, 12, 12))
        self.assertFalse([path for path in saved if os.path.exists(path)])
        self.fails("from_torch() opens a live model", attscope.open, model, status="ERR_ARGUMENT")

    def test_random_weights_are_not_taken_for_pretrained_ones(self):
        with self.assertWarnsRegex(UserWarning, "its weights are random, not pretrained"):
            tiny(seed=None).close()
        with warnings.catch_warnings(), self.assertLogs("attscope", "INFO") as log, tiny(seed=1) as network:
            warnings.simplefilter("error")
            self.assertTrue(network.is_random)
        self.assertIn("random weights", log.output[0])

    def test_networks_without_a_head(self):
        with tiny(num_classes=0) as network:
            self.fails("no head", network.predict, pictures(1))
            self.assertEqual(network.features(pictures(1)).shape, (1, 16))

    def test_numbers_that_are_not_finite(self):
        with tiny() as network:
            self.fails('sample 0 of the input "image" contains NaN', network.predict, np.full((3, 16, 16), np.nan), status="ERR_NONFINITE")
            network.predict(pictures(1))

    def test_refusals(self):
        self.fails("absent is neither a file nor a folder", attscope.open, "absent", status="ERR_NOT_FOUND")
        self.fails("the precision is 'f16'", tiny, precision="f16")
        self.fails("the option depth is {}", tiny, depth={})
        self.fails("dept", tiny, dept=3)
        self.fails("threads", tiny, threads=-1)


class Documentation(Case):
    def test_docstrings_describe_every_argument(self):
        classes = (attscope.Network, attscope.Training, attscope.Report, attscope.Figures)
        methods = [method for one in classes for _, method in inspect.getmembers(one, inspect.isfunction)]
        for function in [attscope.open, attscope.from_torch, attscope.train, attscope.report, *methods]:
            if function.__name__.startswith("_"):
                continue
            text = inspect.getdoc(function) or ""
            described = {"self", *re.findall(r"`(\w+)`", text), *re.findall(r"\b(\w+)(?=(?:, \w+)*:)", text)}
            self.assertEqual(set(inspect.signature(function).parameters) - described, set(), function.__qualname__)

    @unittest.skipUnless(os.path.exists(PAGE), "the documentation is not here")
    def test_the_page_lists_the_columns_of_figures(self):
        with open(PAGE, encoding="utf-8") as file:
            columns = re.search(r"The columns are (.*?);", file.read(), re.DOTALL)
        with tiny() as network:
            found = network.measure(pictures(1), "entropy", frame=False)
            lines = str(found).splitlines()
            self.assertRegex(lines[0], r"^entropy  blocks\.0\.attn +mean +[0-9.]+ nats$")
            self.assertRegex(lines[-1], r"^\.\.\. \d+ more rows$")
            several = str(network.measure(pictures(3), "entropy", frame=False))
            self.assertRegex(several.splitlines()[0], r"^entropy  blocks\.0\.attn +mean +[0-9.]+ ± [0-9.e-]+ nats$")
        self.assertEqual(re.findall(r"`(\w+)`", columns[1]), list(found))


class Measuring(Case):
    def test_files_and_arrays_have_the_same_figures(self):
        write_data("data")
        images, labels = pictures(16, seed=16), np.arange(16) % 4
        train = attscope.train(
            "data", model="vit_tiny_patch16_224", epochs=1, batch_size=16, experiment="run", **TINY, threads=2
        )
        with train.open(threads=2) as network:
            order = np.argsort(labels, kind="stable")  # the order of the class folders
            named = ["entropy", "accuracy", "nsi"]
            files = network.measure("data", named, samples=3, frame=False)
            arrays = network.measure(images[order], named, labels=labels[order], samples=3, batch_size=16, frame=False)
            self.assertEqual((files.images, files.split, arrays.images, arrays.split), (16, "validation", 16, ""))
            self.assertEqual((files.folder, arrays.folder), (train.folder, ""))
            self.assertEqual(list(files), list(arrays))
            self.assertEqual(list(files), re.findall(r"`(\w+)`", attscope.Figures.__doc__.replace("`samples`", "", 1)))
            for name in files:
                if files[name].dtype == object:
                    self.assertEqual(list(files[name]), list(arrays[name]))
                else:
                    same(files[name], arrays[name], name)
            entropy = files["instrument"] == "entropy"
            self.assertTrue((files["bound"][entropy] == files["uniform"][entropy]).all())
            self.assertTrue((files["mean"][entropy] < files["bound"][entropy]).all())
            nsi = files["instrument"] == "nsi"
            np.testing.assert_array_equal(np.isfinite(files["samples"]).all(axis=1), nsi)
            heads = files["head"][files["node"] == "blocks.0.attn"]
            self.assertEqual(set(heads[~np.isnan(heads)]), {0, 1})
            self.assertTrue(np.isnan(heads).any())
            some = network.measure(["data/validation/ant/000.png"], "entropy", nodes="blocks.1*", frame=False)
            self.assertEqual((set(some["node"]), some.images), ({"blocks.1.attn"}, 1))
            self.fails("entrop", network.measure, "data", "entrop", status="ERR_NOT_FOUND")
            self.fails("labels are for images in memory", network.measure, "data", labels=[1])
            self.fails("need paths", network.measure, images, output="out")
            self.fails("16 images and labels of shape [2]", network.measure, images, labels=[1, 2])
            for wrong in (-1, 4, 2000000):
                part = f"the label of image 1 is {wrong}"
                self.fails(part, network.measure, images[:2], "accuracy", labels=[0, wrong])
            try:
                import pandas
            except ImportError:
                self.assertIsInstance(network.measure(images, "entropy"), attscope.Figures)
            else:
                frame = network.measure(images, "entropy")
                self.assertIsInstance(frame, pandas.DataFrame)
                self.assertEqual(frame.attrs["images"], 16)

    @unittest.skipUnless(COMMAND, "ATTSCOPE names no command")
    def test_predictions_are_those_of_the_command(self):
        write_data("commanded")
        train = attscope.train(
            "commanded", model="vit_tiny_patch16_224", epochs=0, experiment="commanded", **TINY, threads=2
        )
        paths = ["commanded/validation/ant/000.png", "commanded/validation/dog/003.png"]
        run = subprocess.run(
            [COMMAND, "predict", train.folder, *paths, "--topk", "2", "--threads", "1", "--json", "-"],
            check=True, capture_output=True,
            env=environment(),
        )  # fmt: skip
        with train.open(threads=1) as network:
            found = network.predict(paths, topk=2)
        self.assertEqual([list(answer) for answer in found], [["image", "top"]] * 2)
        self.assertEqual(list(found[0]["top"][0]), ["class", "label", "probability"])
        for printed, answer in zip(json.loads(run.stdout), found, strict=True):
            self.assertEqual((printed["image"], len(printed["top"])), (answer["image"], len(answer["top"])))
            for one, other in zip(printed["top"], answer["top"]):
                self.assertAlmostEqual(one.pop("probability"), other["probability"], delta=1e-6)
                self.assertEqual(one, {key: value for key, value in other.items() if key != "probability"})

    def test_random_weights_are_measured(self):
        write_data("random")
        with tiny(seed=3) as network:
            files = network.measure("random/validation", "entropy", output="figures", frame=False)
            self.assertEqual(files.folder, "figures/vit_tiny_patch16_224-init-3")
            images = [
                f"random/validation/{CLASSES[i % 4]}/{i:03}.png" for i in np.argsort(np.arange(16) % 4, kind="stable")
            ]
            again = network.measure([*images[:8], *images[8:]], "entropy", frame=False)
            np.testing.assert_array_equal(files["mean"], again["mean"])

    def test_pretrained_weights_are_opened_by_name(self):
        write_data("named")
        train = attscope.train(
            "named", model="vit_tiny_patch16_224", epochs=0, experiment="named", **TINY, threads=2
        )
        commit = "0123456789abcdef0123456789abcdef01234567"
        snapshot = pathlib.Path("hub/models--org--net/snapshots", commit)
        snapshot.mkdir(parents=True)
        shutil.copy(f"{train.folder}/last.safetensors", snapshot / "model.safetensors")
        (snapshot / "config.json").write_text("{}")
        refs = snapshot.parents[1] / "refs"
        refs.mkdir()
        (refs / "main").write_text(commit)
        here = os.getcwd()
        settings = {"HF_HUB_CACHE": f"{here}/hub", "HF_HUB_OFFLINE": "1", "TORCH_HOME": f"{here}/none"}
        with mock.patch.dict(os.environ, settings), warnings.catch_warnings():
            warnings.simplefilter("error")
            with train.open() as wanted, attscope.open("hf-hub:org/net@main", threads=1) as network:
                self.assertEqual(network.path, os.path.abspath(snapshot / "model.safetensors"))
                self.assertFalse(network.is_random)
                same(network.features(pictures(2)), wanted.features(pictures(2)))
            for name in ("hf-hub:org/other", "hf-hub:org/net@v2", "torchvision/resnet18"):
                self.fails("HF_HUB_OFFLINE forbids to download it", attscope.open, name, status="ERR_NOT_FOUND")
            self.fails("did you mean", attscope.open, "timm/vit_tiny_patch16_225", status="ERR_NOT_FOUND")
            self.fails("no name of pretrained weights", attscope.open, "hf-hub:../../x", status="ERR_ARGUMENT")

    def test_a_live_model_is_measured(self):
        write_data("live")
        train = attscope.train(
            "live", model="vit_tiny_patch16_224", epochs=1, batch_size=16, experiment="live", **TINY, threads=2
        )

        class Model:
            def __init__(self, config):
                self.pretrained_cfg = config

            def state_dict(self):
                tensors = read_safetensors(f"{train.folder}/model_best.safetensors")
                return {f"module.{name}": Tensor(array) for name, array in tensors.items() if "." not in name[:4]
                        and not name.startswith("optimizer.")}  # fmt: skip

        options = {name: TINY[name] for name in ("img_size", "patch_size", "num_heads")}
        with train.open(threads=2) as file:
            wanted = file.predict(pictures(4)).logits
        config = {"architecture": "vit_tiny_patch16_224", "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5),
                  "crop_pct": 0.9, "interpolation": "bicubic"}  # fmt: skip
        with attscope.from_torch(Model(config), **options) as network:
            gc.collect()
            np.testing.assert_array_equal(network.predict(pictures(4)).logits, wanted)
            figures = network.measure("live", ["entropy"], output="figures", frame=False)
            self.assertEqual(figures.folder, "figures/vit_tiny_patch16_224")
            page = attscope.report(figures.folder).html
            self.assertIn("vit_tiny_patch16_224", page)
            self.assertEqual(attscope.report(figures).html, page)
            frame = types.SimpleNamespace(attrs={"folder": figures.folder})  # as a DataFrame of pandas has it
            self.assertEqual(attscope.report([frame]).html, page)
            unrecorded = network.measure(pictures(2), "entropy", frame=False)
            self.fails("the figures are not recorded in a folder", attscope.report, unrecorded)
        compiled = types.SimpleNamespace(_orig_mod=Model(config), state_dict=Model(config).state_dict)
        parallel = types.SimpleNamespace(module=compiled, state_dict=Model(config).state_dict)
        with attscope.from_torch(parallel, **options) as network:
            np.testing.assert_array_equal(network.predict(pictures(4)).logits, wanted)
        with attscope.from_torch(Model(dict(config, crop_pct=0.5)), **options) as network:
            self.assertGreater(np.abs(network.predict(pictures(4)).logits - wanted).max(), 1e-5)
        # A network of grey images sums the weights of the three colours, and averages mean and std.
        grey = pictures(4)[:, :, :, 0]
        three = {"mean": (0.25, 0.25, 1.0), "std": (0.25, 0.5, 0.75)}
        with attscope.from_torch(Model(config), **options) as network:
            wanted = network.predict(list(grey)).logits
        with attscope.from_torch(Model(config | three), in_chans=1, **options) as network:
            self.assertEqual(network.image_size, (1, 16, 16))
            np.testing.assert_allclose(network.predict(list(grey)).logits, wanted, rtol=0, atol=1e-6)  # measured: 2e-8
        self.fails("give the name of the network", attscope.from_torch, Model(None))
        self.fails("a processor belongs to a model of transformers", attscope.from_torch, Model(config), processor=1)
        odd = Model(config)
        odd.state_dict = lambda: {"blocks._extra_state": {"step": 3}}
        self.fails("blocks._extra_state of the state_dict is a dict", attscope.from_torch, odd)
        complex_model = Model(config)
        complex_model.state_dict = lambda: {"x": Tensor(np.zeros(2), "torch.complex64")}
        self.fails("the tensor x is complex64", attscope.from_torch, complex_model)


class Life(Case):
    def test_closing(self):
        network = tiny()
        network.close()
        network.close()
        self.assertEqual(repr(network), "<attscope.Network vit_tiny_patch16_224, closed>")
        self.fails("the network is closed", network.predict, pictures(1))

    def test_two_networks_in_two_threads(self):
        images = pictures(8)
        with tiny(seed=1) as one, tiny(seed=2) as two:
            wanted = [one.predict(images).logits, two.predict(images).logits]
            failures = []

            def work(number, network):
                for _ in range(20):
                    if not np.array_equal(network.predict(images).logits, wanted[number]):
                        failures.append(number)

            # Two threads share the first network, a third has its own.
            threads = [threading.Thread(target=work, args=pair) for pair in ((0, one), (1, two), (0, one))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

    def test_a_call_waits_for_the_call_of_another_thread(self):
        images = pictures(2)
        with tiny() as network:
            waited = []
            other = threading.Thread(target=network.predict, args=(images,))

            def progress(_state):
                if not waited:
                    other.start()
                    other.join(0.2)  # long enough for a prediction that does not wait
                    waited.append(other.is_alive())

            network.measure(images, "entropy", batch_size=1, progress=progress, frame=False)
            other.join()
            self.assertEqual(waited, [True])

    def test_a_program_can_end_while_a_thread_runs(self):
        code = """
import threading
from common import pictures, tiny
network, images, started = tiny(img_size=64, embed_dim=64, depth=6), pictures(128, size=64), threading.Event()
def work():
    while True:
        network.predict(images, batch_size=128)
        started.set()
threading.Thread(target=work, daemon=True).start()
started.wait()
"""
        path = os.pathsep.join(filter(None, [os.path.dirname(__file__), os.environ.get("PYTHONPATH")]))
        run = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
        )
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_a_fork_is_refused_and_can_open_its_own(self):
        images = pictures(2)
        with tiny() as network:
            wanted = network.predict(images).logits
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    self.fails("was made before os.fork()", network.predict, images, status="ERR_UNSUPPORTED")
                    network.close()
                    with tiny() as own:
                        status = 0 if np.array_equal(own.predict(images).logits, wanted) else 2
                finally:
                    os._exit(status)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            np.testing.assert_array_equal(network.predict(images).logits, wanted)


if __name__ == "__main__":
    main()
