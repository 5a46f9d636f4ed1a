"""Maps of attention and relevance: the same numbers in Python and from the command, and its files."""

import json
import os
import re
import shutil
import struct
import subprocess
import unittest
import zlib

import attscope
import numpy as np
from common import CLASSES, TINY, Case, environment, main, pictures, write_data, write_png

METHODS = ["chefer", "attention_gradient:layer=0", "grad_cam", "integrated_gradients:steps=4", "occlusion:cell=4",
           "rollout", "flow", "random:cells=3", "centre"]  # fmt: skip
FILE_NAMES = [re.sub("[:,=]", "_", method) for method in METHODS]
COMMAND = os.environ.get("ATTSCOPE")
CHECKPOINT = "runs/short/last.safetensors"


def command(*arguments, fails=False):
    made = subprocess.run([COMMAND, *arguments, "--threads", "2"], capture_output=True, text=True,
                          env=environment())  # fmt: skip
    assert (made.returncode != 0) == fails, made.stderr
    return made.stderr if fails else made.stdout


def png_pixels(data):
    """RGB pixels of a PNG without interlacing."""
    at, rows = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height = struct.unpack(">II", body[:8])
        rows += body if kind == b"IDAT" else b""
        at += 12 + length
    return unfilter(zlib.decompress(rows), height, width)


def unfilter(raw, height, width):
    """Undoes the filters of PNG."""
    rows = np.frombuffer(raw, np.uint8).reshape(height, 1 + 3 * width).astype(int)
    out = np.zeros((height + 1, width + 1, 3), int)
    for y in range(height):
        kind, row = rows[y, 0], rows[y, 1:].reshape(width, 3)
        for x in range(width):
            left, up, corner = out[y + 1, x], out[y, x + 1], out[y, x]
            p = left + up - corner
            near = np.abs([p - left, p - up, p - corner])
            paeth = np.where((near[0] <= near[1]) & (near[0] <= near[2]), left, np.where(near[1] <= near[2], up, corner))
            out[y + 1, x + 1] = (row[x] + [0, left, up, (left + up) // 2, paeth][kind]) % 256
    return out[1:, 1:]


class Relevance(Case):
    @classmethod
    def setUpClass(cls):
        cls.picture = pictures(4, size=24)[2]
        write_png("cow.png", cls.picture)
        write_data("data", train=8, validation=4)
        options = {name: value for name, value in TINY.items() if name != "num_classes"}
        attscope.train("data", model="vit_tiny_patch16_224", epochs=1, lr=0.1, opt="sgd", batch_size=4, output="runs",
                       experiment="short", threads=2, workers=1, **options)  # fmt: skip
        cls.network = attscope.open(CHECKPOINT, threads=2)

    def test_methods(self):
        for method in METHODS:
            found = self.network.relevance("cow.png", method)
            self.assertEqual(found.target, self.network.predict("cow.png")[0]["top"][0]["class"], method)
            self.assertTrue(np.isfinite(found.values).all(), method)
        grid = self.network.relevance(self.picture, "chefer", target=1)
        self.assertEqual((grid.values.shape, grid.target), ((4, 4), 1))
        self.assertEqual(self.network.relevance("cow.png", "grad_cam", 3).logit,
                         self.network.predict("cow.png").logits[0, 3])  # fmt: skip
        self.fails('did you mean "grad_cam"', self.network.relevance, "cow.png", "gradcam")
        self.fails("class 4 does not exist", self.network.relevance, "cow.png", "chefer", 4)

    def test_curves(self):
        probabilities = np.exp(self.network.predict("cow.png").logits[0].astype(float))
        for curve, end in (("deletion", 0), ("insertion", -1)):
            found = self.network.curve("cow.png", self.network.relevance("cow.png"), curve, 6)
            self.assertEqual(found.probabilities.shape, (7,))
            self.assertAlmostEqual(found.probabilities[end], max(probabilities / probabilities.sum()), 6)
            p = found.probabilities
            self.assertAlmostEqual(found.area, (p.sum() - (p[0] + p[-1]) / 2) / 6, 12)
        self.fails("expected deletion or insertion", self.network.curve, "cow.png", self.network.relevance("cow.png"), "x")
        self.fails("1 to 28 steps", self.network.curve, "cow.png", self.network.relevance("cow.png"), "deletion", 29)

    def test_maps(self):
        rows = self.network.attention("cow.png", 1)
        np.testing.assert_array_equal(self.network.maps("cow.png", 1), rows[:, 0, 1:].reshape(2, 4, 4))
        np.testing.assert_allclose(self.network.maps("cow.png", 1, head=-1), rows[:, 0, 1:].mean(0).reshape(4, 4), 1e-6)
        mean = self.network.maps("cow.png", -1, head=1, query=None)
        np.testing.assert_allclose(mean, rows[1, :, 1:].mean(0).reshape(4, 4), 1e-6)

    @unittest.skipUnless(COMMAND, "the command is not built")
    def test_command_gives_the_same_numbers(self):
        command("maps", CHECKPOINT, "cow.png", "-o", "maps", "--show", ",".join(METHODS), "--class", "3")
        written = np.load("maps/cow.npz")
        self.assertEqual(set(written.files), {*FILE_NAMES, "class", "logit"})
        for method, name in zip(METHODS, FILE_NAMES):
            found = self.network.relevance("cow.png", method, 3)
            np.testing.assert_array_equal(written[name], found.values, method)
            self.assertEqual((written["class"], written["logit"]), (3, found.logit))
            self.assertTrue(os.path.exists(f"maps/cow.{name}.png"))
        shown = json.loads(command("maps", CHECKPOINT, "cow.png", "-o", "all", "--show=attention,mean",
                                   "--attn-layers=all", "--heads=0,1", "--at=0.99,0.3", "--json=-"))  # fmt: skip
        self.assertEqual(len(shown[0]["maps"]), 8)
        for one in shown[0]["maps"]:
            kind, layer, head = re.fullmatch(r"(\w+)\.blocks\.(\d)\.attn\.head(\d)", one["name"]).groups()
            found = self.network.maps("cow.png", int(layer), int(head), None if kind == "mean" else 1 + 4 + 3)
            np.testing.assert_allclose(np.reshape(one["values"], (4, 4)), found, 1e-12)

    @unittest.skipUnless(COMMAND, "the command is not built")
    def test_double_precision(self):
        methods = METHODS[:6]
        command("maps", CHECKPOINT, "cow.png", "-o", "wide", "--f64", "--show", ",".join(methods), "--class", "3")
        written = np.load("wide/cow.npz")
        with attscope.open(CHECKPOINT, threads=2, precision="f64") as wide:
            for method, name in zip(methods, FILE_NAMES):
                found, narrow = (network.relevance("cow.png", method, 3).values for network in (wide, self.network))
                np.testing.assert_array_equal(written[name], found, method)
                self.assertLess(np.abs(found - narrow).max() / np.abs(found).max(), 1e-5, method)  # measured: 1.1e-6
                self.assertTrue((found != narrow).any(), f"{method} is the same in both precisions")
        self.assertIn("--f64 and --amp exclude each other", command("maps", CHECKPOINT, "cow.png", "-o", "no", "--f64",
                                                                    "--amp", fails=True))  # fmt: skip

    @unittest.skipUnless(COMMAND, "the command is not built")
    def test_explain_is_the_mean_of_curves(self):
        told = json.loads(command("explain", CHECKPOINT, "data", "--split=validation", "--steps=5",
                                  "--with=chefer,random:cells=3,seed=7", "--json=-"))  # fmt: skip
        files = [f"data/validation/{CLASSES[i % 4]}/{i:03}.png" for i in range(4)]
        self.assertEqual((told["images"], told["steps"]), (4, 5))
        for one in told["methods"]:
            maps = [self.network.relevance(file, one["method"]) for file in files]
            for curve in ("deletion", "insertion"):
                areas = [self.network.curve(file, of, curve, 5).area for file, of in zip(files, maps)]
                self.assertAlmostEqual(one[curve]["area"], np.mean(areas), 12)
                half = 3.1824463052837078 * np.std(areas, ddof=1) / 2  # Student's t with 3 degrees of freedom
                self.assertAlmostEqual(one[curve]["high"] - one[curve]["area"], half, 12)
                self.assertAlmostEqual(one[curve]["area"] - one[curve]["low"], half, 12)

    @unittest.skipUnless(COMMAND, "the command is not built")
    def test_pointing_game(self):
        """By definition: pictures of 72 x 72 pixels are resized to 17 x 17, of which the input is the upper left part."""
        os.makedirs("boxes/images")
        boxes, names = np.random.default_rng(3).integers(0, 60, (12, 2)), ["bee", "dog", "zebra", "cow"]
        images = [{"id": i, "file_name": f"{i}.png", "width": 72, "height": 72} for i in range(6)]
        for i, picture in enumerate(pictures(6, size=72, seed=9)):
            write_png(f"boxes/images/{i}.png", picture)
        objects = [{"id": i + 1, "image_id": i // 2, "category_id": i % 4, "bbox": [*map(int, corner), 3, 3], "area": 9,
                    "iscrowd": 0} for i, corner in enumerate(boxes)]  # fmt: skip
        with open("boxes/annotations.json", "w") as file:
            json.dump({"images": images, "annotations": objects,
                       "categories": [{"id": i, "name": name} for i, name in enumerate(names)]}, file)  # fmt: skip
        methods = ["chefer", "grad_cam", "centre"]
        told = json.loads(command("explain", CHECKPOINT, "boxes", "--pointing", "--steps=0", "--json=-",
                                  f"--with={','.join(methods)}"))  # fmt: skip
        self.check_pointing(told, methods, objects, {0: [1], 1: [3], 3: [2]})
        with open("classes.txt", "w") as file:
            file.write("# dogs and cows are one\ndog: 3, 2\nzebra: 0-1\n")
        told = json.loads(command("explain", CHECKPOINT, "boxes", "--pointing", "--steps=1", "--json=-",
                                  "--categories=classes.txt", f"--with={','.join(methods)}"))  # fmt: skip
        self.check_pointing(told, methods, objects, {1: [3, 2], 2: [0, 1]})
        self.assertIn("area", told["methods"][0]["deletion"])
        for text, part in {"bees: 1\n": 'no category "bees"; did you mean "bee"?', "bee 1\n": "expected NAME: NUMBERS",
                           "bee: 1-9\n": "classes from 0 to 3", "bee:\n": "classes from 0 to 3"}.items():  # fmt: skip
            with open("classes.txt", "w") as file:
                file.write(text)
            self.assertIn(part, command("explain", CHECKPOINT, "boxes", "--pointing", "--categories=classes.txt",
                                        fails=True))  # fmt: skip
        self.assertIn("requires --pointing", command("explain", CHECKPOINT, "data", "--categories=x", fails=True))
        self.assertIn("without --pointing", command("explain", CHECKPOINT, "data", "--steps=0", fails=True))

    def check_pointing(self, told, methods, objects, classes):
        asked = sorted({(o["image_id"], o["category_id"]) for o in objects if o["category_id"] in classes})
        self.assertEqual(told["questions"], len(asked))
        self.assertEqual({one["category"]: one["classes"] for one in told["categories"]},
                         {["bee", "dog", "zebra", "cow"][c]: list_ for c, list_ in classes.items()})  # fmt: skip
        answers = []
        for method, found in zip(methods, told["methods"]):
            hits = {}
            for image, category in asked:
                file = f"boxes/images/{image}.png"
                logits = self.network.predict(file).logits[0]
                values = self.network.relevance(file, method, max(classes[category], key=lambda c: logits[c])).values
                row, column = np.unravel_index(values.argmax(), values.shape)
                x, y = ((at + 0.5) * 16 / side * 72 / 17 for at, side in zip((column, row), values.shape[::-1]))
                near = [all(o["bbox"][i] - 15 <= at <= o["bbox"][i] + 3 + 15 for i, at in ((0, x), (1, y)))
                        for o in objects if (o["image_id"], o["category_id"]) == (image, category)]  # fmt: skip
                hits.setdefault(category, []).append(any(near))
            every = [hit for of in hits.values() for hit in of]
            answers += every
            self.assertEqual(found["pointing"]["questions"], len(every))
            self.assertAlmostEqual(found["pointing"]["share"], np.mean(every), 12)
            self.assertAlmostEqual(found["pointing"]["category_mean"], np.mean([np.mean(of) for of in hits.values()]), 12)
        self.assertTrue(0 < np.mean(answers) < 1, "there are no hits, or no misses")

    @unittest.skipUnless(COMMAND, "the command is not built")
    def test_pictures(self):
        command("maps", CHECKPOINT, "cow.png", "-o", "grid", "--form=grid", "--format=png,svg,pdf",
                "--scale=0,1", "--zoom=1", "--colours=grey", "--opacity=1")  # fmt: skip
        maps = np.concatenate([self.network.maps("cow.png", layer) for layer in (0, 1)])
        expected = np.rint(255 * maps).repeat(4, 1).repeat(4, 2)
        with open("grid/cow.attention.png", "rb") as file:
            png = png_pixels(file.read())
        self.assertEqual(png.shape, (16 + 2 * 16 + 4 + 16, 16 + 4 + 16, 3))
        tiles = [png[y : y + 16, x : x + 16, 0] for y in (16, 52) for x in (0, 20)]
        self.assertLessEqual(np.abs(np.array(tiles) - expected).max(), 1)
        with open("grid/cow.attention.pdf", "rb") as file:
            pdf = file.read()
        streams = re.findall(rb"/Width 16 /Height 16 .*?stream\n(.*?)\nendstream", pdf, re.S)
        self.assertEqual(len(streams), 4)
        for stream, tile in zip(streams, tiles):
            np.testing.assert_array_equal(unfilter(zlib.decompress(stream), 16, 16)[..., 0], tile)
        self.check_index(pdf)
        with open("grid/cow.attention.svg") as file:
            svg = file.read()
        self.assertEqual(svg.count("<image "), 4)
        self.assertIn(">attention.blocks.1.attn.head0</text>", svg)

    def test_scales(self):
        """Each map has its own scale, or all maps of an item share one."""
        own = self.network.maps("cow.png", 0), self.network.maps("cow.png", 1)
        for scale in "map", "shared":
            self.network.draw_maps("cow.png", scale, show="attention,centre", form="grid", zoom=1, colours="grey",
                                   opacity=1, scale=scale)  # fmt: skip
            with open(f"{scale}/cow.attention.png", "rb") as file:
                png = png_pixels(file.read())
            maps = np.concatenate(own)
            low, high = ((of(axis=(1, 2), keepdims=True) if scale == "map" else of()) for of in (maps.min, maps.max))
            expected = np.rint(255 * (maps - low) / (high - low)).repeat(4, 1).repeat(4, 2)
            tiles = [png[y : y + 16, x : x + 16, 0] for y in (16, 52) for x in (0, 20)]
            self.assertLessEqual(np.abs(np.array(tiles) - expected).max(), 1, scale)

    def check_index(self, pdf):
        """Each entry of the PDF's table leads to its object."""
        start = int(re.search(rb"startxref\n(\d+)\n", pdf)[1])
        entries = pdf[start:].split(b"\n")[2:]
        count = int(re.search(rb"xref\n0 (\d+)\n", pdf[start:])[1])
        for number in range(1, count):
            at = int(entries[number][:10])
            self.assertTrue(pdf[at:].startswith(b"%d 0 obj\n" % number))

    @unittest.skipUnless(COMMAND, "the command is not built")
    def test_photographs_of_one_name_have_files_of_their_own(self):
        os.mkdir("twins")
        for name in "cow.png", "cow.jpg":
            shutil.copy("cow.png", f"twins/{name}")
        command("maps", CHECKPOINT, "twins", "-o", "told", "--show=centre")
        names = ["cow-2.centre.png", "cow-2.npz", "cow.centre.png", "cow.npz"]
        self.assertEqual(sorted(os.listdir("told")), names)

    @unittest.skipUnless(COMMAND, "the command is not built")
    def test_means(self):
        write_data("means", train=4, validation=8)
        show = ["--show", "grad_cam,attention", "--class", "1"]
        command("maps", CHECKPOINT, "means/validation", "-o", "class", "--mean-maps=class", *show)
        files = [f"means/validation/{CLASSES[i % 4]}/{i:03}.png" for i in range(8)]
        for label in range(4):
            written = np.load(f"class/mean.class{label}.npz")
            of = files[label::4]
            expected = np.mean([self.network.relevance(file, "grad_cam", 1).values for file in of], 0)
            np.testing.assert_allclose(written["grad_cam"], expected, 1e-12)
            expected = np.mean([self.network.maps(file, -1, head=-1) for file in of], 0)
            np.testing.assert_allclose(written["attention.blocks.1.attn"], expected, 1e-12)

    @unittest.skipUnless(COMMAND, "the command is not built")
    def test_python_draws_the_same_files(self):
        write_data("drawn", train=4, validation=4)
        for number, (flags, how) in enumerate([
            (["--show=attention,grad_cam", "--form=grid", "--format=png,svg,pdf", "--scale=shared", "--at=0.5,0.9"],
             {"show": ["attention", "grad_cam"], "form": "grid", "format": ["png", "svg", "pdf"], "scale": "shared",
              "at": (0.5, 0.9)}),
            (["--show=attention,occlusion:cell=4", "--attn-layers=0,1", "--heads=1", "--query=2,3", "--class=1", "--smooth",
              "--colours=diverging", "--scale=-1,1", "--opacity=0.3", "--zoom=3"],
             {"show": "attention,occlusion:cell=4", "layers": [0, 1], "heads": 1, "query": (2, 3), "target": 1,
              "smooth": True, "colours": "diverging", "scale": (-1, 1), "opacity": 0.3, "zoom": 3}),
            (["--show=mean,flow", "--mean-maps=all", "--form=map"], {"show": "mean,flow", "means": "all", "form": "map"}),
        ]):  # fmt: skip
            command("maps", CHECKPOINT, "drawn/validation", "-o", f"of_command{number}", *flags)
            found = self.network.draw_maps("drawn/validation", f"of_python{number}", **how)
            names = sorted(os.listdir(f"of_command{number}"))
            self.assertEqual(sorted(os.listdir(f"of_python{number}")), names)
            for name in names:
                with open(f"of_command{number}/{name}", "rb") as one, open(f"of_python{number}/{name}", "rb") as other:
                    self.assertEqual(one.read(), other.read(), f"{name} of {flags}")
            self.assertEqual({f"{name}.npz" for name in found}, {name for name in names if name.endswith(".npz")})
            for name, maps in found.items():
                written = np.load(f"of_command{number}/{name}.npz")
                self.assertEqual({*maps} | {"class", "logit"}, {*written.files} | {"class", "logit"})
                for what, values in maps.items():
                    np.testing.assert_array_equal(written[what], values)

    def test_images_in_memory_are_drawn(self):
        found = self.network.draw_maps([self.picture, self.picture, "cow.png"], "memory", show="centre", zoom=1)
        self.assertEqual(sorted(found), ["cow", "image", "image-2"])
        with open("memory/image.centre.png", "rb") as one, open("memory/cow.centre.png", "rb") as other:
            self.assertEqual(one.read(), other.read())
        seen = []
        self.network.draw_maps("cow.png", "watched", show="centre", progress=lambda p: seen.append(p.stage))
        self.assertEqual(seen, ["maps"])
        draw = self.network.draw_maps
        self.fails("expected mean, all, or numbers", draw, "cow.png", "no", heads=7)
        self.fails("expected overlay, map or grid", draw, "cow.png", "no", form="x")
        self.fails("expected 2 numbers", draw, "cow.png", "no", at=(1,))
        self.fails("expected a number from 0 to 1", draw, "cow.png", "no", opacity="x")
        self.fails("expected 0 to 1", draw, "cow.png", "no", opacity=2.0)
        self.fails("no image is given", draw, [], "no")
        self.fails("need images with classes", draw, self.picture, "no", means="class")
        with self.assertRaises(attscope.Error) as caught:
            draw("cow.png", "stopped", show="centre", progress=lambda _progress: False)
        self.assertEqual(caught.exception.status, "ERR_STOPPED")

    @unittest.skipUnless(COMMAND, "the command is not built")
    def test_refusals(self):
        for part, arguments in {
            "needs --output": [],
            "--output .: the folder holds the photograph cow.png": ["-o", "."],
            'form "x": expected overlay': ["-o", "no", "--form=x"],
            'format "tiff": expected': ["-o", "no", "--format=tiff"],
            'colours "jet": expected': ["-o", "no", "--colours=jet"],
            'scale "1,0": expected': ["-o", "no", "--scale=1,0"],
            'at "2,0": expected': ["-o", "no", "--at=2,0"],
            'query "9,9": blocks.1.attn has 1 tokens': ["-o", "no", "--query=9,9"],
            'heads "2": blocks.1.attn has 2 heads': ["-o", "no", "--heads=2"],
            'layers "5": the network has 2': ["-o", "no", "--attn-layers=5"],
            '"attention" and "mean" are maps, too': ["-o", "no", "--show=nothing"],
        }.items():
            self.assertIn(part, command("maps", CHECKPOINT, "cow.png", *arguments, fails=True))
            self.assertFalse(os.path.exists("no") and os.listdir("no"))


if __name__ == "__main__":
    main()
