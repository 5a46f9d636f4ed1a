"""ablate.py ATTSCOPE FOLDER: tests the page Ablate: its numbers are those of `attscope ablate`.
ablate.py ATTSCOPE FOLDER PICTURES CHECKPOINT IMAGES: makes screenshots of an ablation of IMAGES."""

import base64
import json
import os
import struct
import subprocess
import sys
import zlib

from browser import Browser
from checks import check, finish
from server import Server, wait

attscope, folder = sys.argv[1:3]
IMAGES, HEADS, LAYERS, SIDE = 6, 2, 3, 16
NAMES = ["ant", "<b>bee</b>", "cow"]  # a name is no markup
data, loose, run = (os.path.join(folder, *path) for path in (("data",), ("loose",), ("output", "run")))


def write_png(path, rows):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))


def picture(number):
    """A picture of class number % 3: a third of it is bright."""
    return [[20 + 37 * (x * x + 3 * y * number) % 90 + 120 * (3 * x // SIDE == number % 3) for x in range(SIDE)]
            for y in range(SIDE)]  # fmt: skip


def prepare():
    for split, numbers in (("train", range(48)), ("val", range(48, 48 + IMAGES))):
        for i in numbers:
            write_png(os.path.join(data, split, NAMES[i % 3].replace("/", "_"), f"{i}.png"), picture(i))
    write_png(os.path.join(loose, "one.png"), picture(1))
    options = {"model": "vit_tiny_patch16_224", "img-size": SIDE, "patch-size": 4, "embed-dim": 16, "depth": LAYERS,
               "num-heads": HEADS, "epochs": 8, "batch-size": 8, "lr": 0.01, "output": os.path.join(folder, "output"),
               "experiment": "run"}  # fmt: skip
    subprocess.run([attscope, "train", data, *[text for name, value in options.items() for text in (f"--{name}", str(value))]],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip


def command(*arguments):
    found = subprocess.run([attscope, "ablate", run, data, *arguments, "--json", "-"], check=True, capture_output=True,
                           text=True)  # fmt: skip
    return json.loads(found.stdout)


def near(a, b):
    return abs(a - b) <= 1e-5  # measured: 3e-6; batches of another size are summed in another order


def done(page, images=IMAGES):
    """Waits until all images are seen."""
    wait(page, f"document.querySelector('.panel')?.dataset.images === '{images}' && !document.querySelector('.panel').hidden"
         " && document.querySelector('details summary') !== null", 120)  # fmt: skip


def cells(page):
    return page.evaluate("""[...document.querySelectorAll(".heat button")].map((cell) =>
        [Number(cell.dataset.part), Number(cell.dataset.value)])""")


def choose(page, label):
    page.click(f"[...document.querySelectorAll('.choice label')].find(l => l.textContent === {json.dumps(label)})")


def check_map(page, parts, figure, what):
    found = dict(cells(page))
    check(len(found) == len(parts), f"{what}: {len(found)} cells, expected {len(parts)}")
    check(all(near(found[i], part[figure]["mean"]) for i, part in enumerate(parts)), f"{what}: {figure} differs: {found}")


def test_heads(server, page):
    done(page)
    wanted = command("--heads", "all")
    check_map(page, wanted["parts"], "loss", "heads")
    size = page.evaluate("[document.querySelectorAll('.heat tbody tr').length, "
                         "document.querySelectorAll('.heat thead th').length - 1]")  # fmt: skip
    check(size == [HEADS, LAYERS], f"the heat map has {size} rows and columns")
    text = page.evaluate("document.querySelector('.readout').textContent")
    check(f"{IMAGES} of {IMAGES} images" in text and f"accuracy {wanted['unchanged']['accuracy']:.4g} %" in text, text)
    choose(page, "accuracy")
    check_map(page, wanted["parts"], "accuracy", "heads")
    choose(page, "p of the class")
    check_map(page, wanted["parts"], "p_class", "heads")
    choose(page, "loss")
    answer = server.json("/api/ablation", model="run", parts="heads", uniform=0, images=IMAGES)
    check(answer["images"] == answer["total"] == IMAGES and answer["unlabelled"] == 0, f"{answer['images']} images")
    for found, part in zip(answer["parts"], wanted["parts"]):
        for figure in ("loss", "accuracy", "p_class"):
            check(all(near(found[figure][end], part[figure][end]) for end in ("mean", "low", "high")),
                  f"{part['name']}: {found[figure]}, expected {part[figure]}")  # fmt: skip
    check(answer["methods"] == wanted["methods"], "the methods differ")
    rows = page.evaluate("[...document.querySelectorAll('details tbody tr')].map((row) => row.cells[0].textContent)")
    ranked = sorted(answer["parts"], key=lambda part: part["rank"])
    check(rows == [part["name"] for part in ranked], f"the table has the order {rows[:3]}")


def test_images(server, page):
    part = 4
    page.click(f"document.querySelector('.heat button[data-part=\"{part}\"]')")
    wait(page, f"document.querySelector('.changed').dataset.part === '{part}'")
    check(f"part={part}" in page.evaluate("location.hash"), "the address does not name the part")
    answer = server.json("/api/changed", model="run", parts="heads", uniform=0, images=IMAGES, part=part)
    found = page.evaluate("""[...document.querySelectorAll(".changed li")].map((item) =>
        [Number(item.dataset.before), Number(item.dataset.after), item.querySelector("b").textContent,
         item.querySelector("img").getAttribute("src")])""")
    wanted = [[image["unchanged"]["loss"], image["changed"]["loss"], image["label"],
               f"api/thumbnail?image={image['id']}"] for image in answer["images"]]  # fmt: skip
    links = page.evaluate("[...document.querySelectorAll('.changed a')].map((link) => link.getAttribute('href'))")
    check(links == [f"/explore#model=run&image={image['id']}&changes=h{part // HEADS}.{part % HEADS}r"
                    for image in answer["images"]], f"links: {links}")  # fmt: skip
    check(found == wanted and len(found) == IMAGES, f"images: {found}, expected {wanted}")
    changes = [abs(after - before) for before, after, *_ in found]
    check(changes == sorted(changes, reverse=True), f"the images are not in the order of their change: {changes}")
    # The same losses by the page Explore: its run has the logits.
    image = answer["images"][0]
    run = server.json("/api/run", model="run", image=image["id"], changes=f"h{part // HEADS}.{part % HEADS}r")
    probability = next((top["probability"] for top in run["top"] if top["class"] == image["class"]), None)
    check(probability is None or near(probability, image["changed"]["p_class"]), f"Explore says {probability}: {image}")


def test_others(server, page):
    choose(page, "uniform")
    uniform = command("--heads", "all", "--uniform")["parts"]
    wait(page, f"[...document.querySelectorAll('.heat button')].length === {len(uniform)} && "
         f"Math.abs(Number(document.querySelector('.heat button').dataset.value) - ({uniform[0]['loss']['mean']})) < 1e-5"
         f" && document.querySelector('.panel').dataset.images === '{IMAGES}'", 120)  # fmt: skip
    check_map(page, uniform, "loss", "uniform heads")
    choose(page, "residual branches")
    branches = command("--branches", "all")["parts"]
    wait(page, "[...document.querySelectorAll('.heat tbody th')].map(h => h.textContent).join() === 'add1,add2'"
         f" && document.querySelector('.panel').dataset.images === '{IMAGES}'", 120)  # fmt: skip
    check_map(page, branches, "loss", "branches")
    check(not page.complaints(), f"complaints: {page.complaints()}")
    for query, part in [({"parts": "layers"}, "expected heads or branches"), ({"images": 0}, "images"),
                        ({"part": 99}, "part 99 does not exist: expected 0 to 5")]:  # fmt: skip
        asked = {"model": "run", "parts": "heads", "uniform": 0, "images": IMAGES, "part": 0, **query}
        try:
            server.get("/api/changed", **asked)
            check(False, f"{query} is accepted")
        except OSError as error:
            check(error.code == 400 and part in json.loads(error.read())["error"], f"{query}: {error}")


def test_loose(browser):
    """Images without classes count by what the network predicts."""
    with Server(attscope, [run, "--images", loose]) as server:
        page = server.open(browser, "/ablate", "#model=run&parts=branches")
        done(page, 1)
        text = page.evaluate("document.querySelector('.readout').textContent")
        check("1 of 1 images" in text and "accuracy 100 %" in text and "without classes" in text, text)
    with Server(attscope, [run]) as server:
        page = server.open(browser, "/ablate", "#model=run")
        wait(page, "!document.querySelector('.problem').hidden")
        text = page.evaluate("document.querySelector('.problem').textContent")
        check("no images were named" in text, text)


SIZES = (("desktop", 1440, False), ("dark", 1440, True), ("phone", 390, False), ("phone-dark", 390, True))


def shoot(server, browser, model, images, pictures=None):
    """Whether the page fits; with a folder, screenshots."""
    for name, width, dark in SIZES:
        page = server.open(browser, "/ablate", f"#model={model}&images={images}&part=4", width=width, dark=dark)
        done(page, images)
        wait(page, "document.querySelector('.changed').dataset.part === '4'")
        page.evaluate("document.querySelector('details').open = true")
        page.wait_for_layout()
        wide = page.evaluate("document.documentElement.scrollWidth")
        check(wide <= width, f"{name}: the page is {wide} pixels wide")
        if pictures:
            page.resize(width, page.evaluate("Math.min(document.documentElement.scrollHeight, 2600)"))
            page.wait_for_layout()
            shot = page.call("Page.captureScreenshot", format="png")
            with open(os.path.join(pictures, f"{name}.png"), "wb") as file:
                file.write(base64.b64decode(shot["data"]))


with Browser() as chromium:
    if len(sys.argv) > 3:
        with Server(attscope, [sys.argv[4], "--images", sys.argv[5]]) as running:
            shoot(running, chromium, os.path.basename(sys.argv[4]), 8, sys.argv[3])
        finish()
    prepare()
    with Server(attscope, [run, "--images", data]) as running:
        opened = running.open(chromium, "/ablate", f"#model=run&images={IMAGES}")
        test_heads(running, opened)
        test_images(running, opened)
        shoot(running, chromium, "run", IMAGES)
        test_others(running, opened)
    test_loose(chromium)
finish()
