"""means.py ATTSCOPE FOLDER: tests the page Means: its numbers are those of `attscope maps --mean-maps`.
means.py ATTSCOPE FOLDER PICTURES CHECKPOINT IMAGES: makes screenshots of means over IMAGES."""

import csv
import io
import json
import os
import subprocess
import sys

from browser import Browser
from checks import check, finish
from server import Server, look, wait
from trained import HEADS, IMAGES, LAYERS, NAMES, SIDE, picture, train, write_png

attscope, folder = sys.argv[1:3]
data, loose, run = (os.path.join(folder, *path) for path in (("data",), ("loose",), ("output", "run")))


def command(*arguments):
    """The means of the validation split, by the name of their files."""
    told = subprocess.run([attscope, "maps", run, os.path.join(data, "val"), "-o", os.path.join(folder, "files"), "--json",
                           "-", *arguments], check=True, capture_output=True, text=True)  # fmt: skip
    return {one["image"]: one["maps"] for one in json.loads(told.stdout)}


def done(page, images=IMAGES):
    wait(page, f"document.querySelector('.panel')?.dataset.seen === '{images}' && !document.querySelector('.panel').hidden",
         120)  # fmt: skip


def choose(page, label):
    page.click(f"[...document.querySelectorAll('.choice label')].find(l => l.textContent === {json.dumps(label)})")


def select(page, label, value):
    page.evaluate(f"""(list => {{ list.value = {json.dumps(value)}; list.dispatchEvent(new Event("change")); }})(
        document.querySelector(`select[aria-label="{label}"]`))""")


def near(found, wanted):
    """Images may be added in another order."""
    return len(found) == len(wanted) and all(abs(a - b) <= 1e-12 for a, b in zip(found, wanted))


def means(server, show, over):
    """The answer after all images."""
    while True:
        answer = server.json("/api/means", model="run", show=show, over=over, images=IMAGES)
        if answer["seen"] == answer["total"]:
            return answer


def same(found, wanted, what):
    check([one["name"] for one in found] == [one["name"] for one in wanted], f"{what}: other maps")
    for one, of in zip(found, wanted):
        check(near(one["values"], of["values"]), f"{what}: {one['name']} differs")


def test_attention(server, page):
    done(page)
    wanted = command("--mean-maps=all", "--attn-layers=all", "--heads=all")["mean"]
    answer = means(server, "attention", "all")
    check(answer["seen"] == answer["total"] == answer["means"][0]["images"] == IMAGES, f"images: {answer['seen']}")
    same(answer["means"][0]["maps"], wanted, "attention")
    found = page.evaluate("[...document.querySelectorAll('.grid button')].map((b) => [b.title, Number(b.dataset.largest)])")
    titles = [f"blocks.{layer}.attn, head {head}" for layer in range(LAYERS) for head in range(HEADS)]
    largest = [max(one["values"]) for one in wanted]
    check(sorted(title for title, _ in found) == titles, f"maps: {found}")
    check(near([dict(found)[title] for title in titles], largest), f"largest values: {found}, expected {largest}")
    page.click("document.querySelector('.grid button[title=\"blocks.1.attn, head 1\"]')")
    check(page.evaluate("document.querySelector('.view canvas').dataset.map") == "blocks.1.attn, head 1", "another map")
    pressed = page.evaluate("[...document.querySelectorAll('.grid [aria-pressed=true]')].map((b) => b.title)")
    check(pressed == ["blocks.1.attn, head 1"], f"marked maps: {pressed}")
    check("map=" in page.evaluate("location.hash"), "the address does not name the map")
    values = wanted[HEADS + 1]["values"]
    best, side = values.index(max(values)), SIDE // 4
    text = page.evaluate("document.querySelector('.panel .readout').textContent")
    check(f"mean over {IMAGES} images" in text and f"row {best // side + 1}, column {best % side + 1} of" in text, text)
    page.evaluate("""window.saved = null; URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved = text);
        return "#"; }""")
    page.click("[...document.querySelectorAll('.mean-maps button')].find((b) => b.textContent.includes('CSV'))")
    wait(page, "window.saved !== null")
    rows = list(csv.DictReader(io.StringIO(page.evaluate("window.saved"))))
    check(near([float(row["value"]) for row in rows], [value for one in wanted for value in one["values"]]),
          "the CSV differs")  # fmt: skip


def test_classes(server, page):
    choose(page, "each class")
    done(page)
    for show in ("attention", "grad_cam"):
        wanted = command("--mean-maps=class", f"--show={show}")
        answer = means(server, show, "class")
        check(len(answer["means"]) == len(NAMES), f"{len(answer['means'])} classes")
        for mean in answer["means"]:
            check(mean["label"] == sorted(NAMES)[mean["class"]] and mean["images"] == IMAGES // len(NAMES),
                  f"a class: {mean['label']}")  # fmt: skip
            same(mean["maps"], wanted[f"mean.class{mean['class']}"], f"{show} of {mean['label']}")
    titles = page.evaluate("[...document.querySelectorAll('.grid .class-name')].map((text) => text.textContent)")
    check(sorted(titles) == sorted(f"{name} ({IMAGES // len(NAMES)})" for name in NAMES), f"classes: {titles}")


def test_relevance(server, page):
    choose(page, "all images")
    select(page, "Maps", "integrated_gradients")
    wait(page, "document.querySelectorAll('.grid button').length === 1", 120)
    done(page)
    wanted = command("--mean-maps=all", "--show=integrated_gradients")["mean"]
    answer = means(server, "integrated_gradients", "all")
    same(answer["means"][0]["maps"], wanted, "integrated gradients")
    found = page.evaluate("Number(document.querySelector('.grid button').dataset.largest)")
    check(near([found], [max(wanted[0]["values"])]), f"the largest value is {found}")
    check(not page.complaints(), f"complaints: {page.complaints()}")
    for query, part in [({"over": "x"}, "expected all or class"), ({"images": 0}, "images"),
                        ({"show": "gradcam"}, 'did you mean "grad_cam"'), ({"show": ""}, "")]:  # fmt: skip
        try:
            server.get("/api/means", **{"model": "run", "show": "attention", "over": "all", "images": 1, **query})
            check(False, f"{query} is accepted")
        except OSError as error:
            check(error.code == 400 and part in json.loads(error.read())["error"], f"{query}: {error}")


def test_loose(browser):
    with Server(attscope, [run, "--images", loose]) as server:
        page = server.open(browser, "/means", "#model=run&over=class")
        wait(page, "!document.querySelector('.problem').hidden")
        text = page.evaluate("document.querySelector('.problem').textContent")
        check("need images with the network's classes" in text, text)
        choose(page, "all images")
        done(page, 1)


def shoot(server, browser, model, images, pictures=None):
    for name, state in (("means", "map=blocks.8.attn, head 1"), ("relevance", "show=chefer"), ("classes", "over=class")):
        look(server, browser, "/means", f"#model={model}&images={images}&{state}", lambda page: done(page, images), pictures,
             name)  # fmt: skip


with Browser() as chromium:
    if len(sys.argv) > 3:
        with Server(attscope, [sys.argv[4], "--images", sys.argv[5]]) as running:
            shoot(running, chromium, os.path.basename(sys.argv[4]), 8, sys.argv[3])
        finish()
    train(attscope, data, os.path.dirname(run))
    write_png(os.path.join(loose, "one.png"), picture(1))
    with Server(attscope, [run, "--images", data]) as running:
        opened = running.open(chromium, "/means", f"#model=run&images={IMAGES}")
        test_attention(running, opened)
        test_classes(running, opened)
        test_relevance(running, opened)
        shoot(running, chromium, "run", IMAGES)
    test_loose(chromium)
finish()
