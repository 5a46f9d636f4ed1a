"""compare.py ATTSCOPE SHARED FOLDER: tests the pages of `attscope serve` with several checkpoints: the partner of a
comparison, linked layers, names of tokens, similar images, search, zoom and tensors of a network, the keyboard.
compare.py ATTSCOPE SHARED FOLDER PICTURES: makes screenshots, too."""

import glob
import json
import math
import os
import shutil
import struct
import subprocess
import sys

from browser import Browser
from checks import check, finish
from server import Server, wait

attscope, shared, folder = sys.argv[1:4]
pictures = sys.argv[4] if len(sys.argv) > 4 else None
WEIGHTS = os.path.join(shared, "data/weights")
CHECKPOINT = os.path.join(WEIGHTS, "deit_tiny_patch16_224.safetensors")
MODEL, RANDOM, REGISTERS = os.path.basename(CHECKPOINT), "deit_tiny_patch16_224", "vit_wee_patch16_reg1_gap_256"
RESNETS = {"resnet20-12fca82f.th": "resnet20", "resnet56-4bfd9763.th": "resnet56"}
IMAGES = 20

images = os.path.join(folder, "images")
os.makedirs(images)
photographs = sorted(glob.glob(os.path.join(shared, "data/imagenet200/val/*/*")))
for i, path in enumerate(photographs[:: len(photographs) // IMAGES][:IMAGES]):
    shutil.copy(path, os.path.join(images, f"{i:02}.JPEG"))


def shoot(server, browser, name, path, fragment, act=lambda page: None, query=""):
    """Screenshots of a page, on a desktop and a phone, light and dark."""
    for width, height in ((1440, 1000), (390, 844)) if pictures else ():
        for dark in (False, True):
            page = server.open(browser, path, fragment, query, width=width, height=height, dark=dark)
            act(page)
            page.wait_for_layout()
            kind = f"{'phone' if width < 600 else 'desktop'}-{'dark' if dark else 'light'}"
            page.screenshot(os.path.join(pictures, f"{name}-{kind}.png"), whole=True)


def hash_of(page):
    return page.evaluate("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")


def press(page, text, within="document"):
    page.click(f"[...{within}.querySelectorAll('button')].find(b => b.textContent.startsWith({json.dumps(text)}))")


def choose(page, label):
    page.click(f"[...document.querySelectorAll('.choice label')].find(l => l.textContent === {json.dumps(label)})")


def key(page, name, code, text=None):
    """A key as a keyboard sends it, which moves the focus and presses buttons, too."""
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code,
                  **({"text": text} if text else {}))


def tensors_of(path):
    """The F32 tensors of a safetensors file: functions that read them, and their shapes."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, info in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and info["dtype"] == "F32":
            begin, end = (8 + size + at for at in info["data_offsets"])
            found[name] = (struct.unpack(f"<{(end - begin) // 4}f", data[begin:end]), info["shape"])
    return found


# --- names and comparison ---------------------------------------------------------------------------------------------


def test_names(server):
    models = {model["id"]: model["network"] for model in server.json("/api/models")["models"]}
    check(models == {**RESNETS, MODEL: RANDOM, RANDOM: RANDOM, REGISTERS: REGISTERS}, f"models: {models}")
    for name, network in RESNETS.items():
        found = server.json("/api/model", model=name)["network"]
        check(found == network, f"{name} is opened as {found}")


def side(page, index):
    return f"document.querySelector('[data-side=\"{index}\"]')"


def map_button(index, layer, head, layers=12):
    """The button of a map in the grid of a side; head -1 is the mean."""
    return f"{side(None, index)}.querySelectorAll('.grid button')[{(head + 1) * layers + layer}]"


def drawn(page, index=0):
    wait(page, f"{side(page, index)}?.querySelector('.view canvas').dataset.asked !== undefined")


def test_comparison(server, browser):
    page = server.open(browser, "/explore", f"#model={MODEL}&image=d0&layer=2&head=0")
    drawn(page)
    press(page, "Compare with")
    drawn(page, 1)
    offered = page.evaluate(f"[...{side(page, 1)}.querySelector('select[aria-label=Checkpoint]').options].map(o => o.value)")
    check(hash_of(page)["model2"] == RANDOM, f"the partner of {MODEL} is {hash_of(page)['model2']}")
    check(set(offered[:2]) == {MODEL, RANDOM} and len(offered) == 5, f"partners are offered in the order {offered}")
    wait(page, "new URLSearchParams(location.hash.slice(1)).get('layer2') === '2'")
    page.click(map_button(0, 3, 1))
    state = hash_of(page)
    check((state["layer"], state["head"], state["layer2"], state["head2"]) == ("3", "1", "3", "1"), f"linked: {state}")
    wait(page, f"{side(page, 1)}.querySelector('.readout').textContent.includes('blocks.3.attn, head 1')")
    page.click(map_button(1, 5, 2))
    check((hash_of(page)["layer"], hash_of(page)["head"]) == ("5", "2"), f"linked the other way: {hash_of(page)}")
    choose(page, "apart")
    page.click(map_button(0, 7, 0))
    state = hash_of(page)
    check((state["layer"], state["layer2"], state["apart"]) == ("7", "5", "1"), f"apart: {state}")
    restored = server.open(browser, "/explore", page.evaluate("location.hash"))
    drawn(restored, 1)
    check(hash_of(restored)["layer"] == "7" and hash_of(restored)["layer2"] == "5", f"restored: {hash_of(restored)}")
    choose(page, "linked")
    check(hash_of(page)["layer2"] == "7", f"linked again: {hash_of(page)}")
    linked = page.evaluate("""(() => {
        const of = (n, name) => d3.range(n).map((i) => ({ node: name(i) }));
        const a = of(12, (i) => `blocks.${i}.attn`), b = of(24, (i) => `blocks.${i}.attn`), c = of(4, (i) => `s${i}`);
        return [linkedLayer(5, a, b), linkedLayer(11, a, c), linkedLayer(0, a, c), linkedLayer(4, a, a.slice())];
    })()""")
    check(linked == [5, 3, 0, 4], f"linked layers of other depths: {linked}")
    check(not page.complaints(), f"comparison: {page.complaints()}")
    shoot(server, browser, "compare", "/explore", f"#model={MODEL}&image=d0&layer=3&head=1&model2={RANDOM}",
          lambda shot: drawn(shot, 1))


def test_tokens(server, browser):
    """A network without class token has a register, which is called so."""
    page = server.open(browser, "/explore", f"#model={REGISTERS}&image=d0")
    drawn(page)
    press(page, "Query: register 0")
    wait(page, "document.querySelector('.readout').textContent.includes('From register 0')")
    text = page.evaluate("document.querySelector('.readout').textContent")
    check("On 1 register: " in text, f"the readout of a network with a register: {text}")
    check("class token" not in page.evaluate("document.querySelector('.sides').innerText"), "a register is a class token")
    words = page.evaluate("""[prefixWords({ prefix: 5, names: prefixNames({ class_token: 1, reg_tokens: 4 }) }),
        placeOf({ prefix: 5, names: prefixNames({ class_token: 1, reg_tokens: 4 }) }, 2),
        placeOf({ prefix: 2, names: prefixNames({ class_token: 1, distilled: 1 }) }, 1), placeOf({ prefix: 3 }, 2)]""")
    check(words == ["the class token and 4 registers", "register 1", "the distillation token", "prefix token 2"], f"{words}")
    shares = page.evaluate("[0, 8.17e-12, 5e-6, 1e-5, 0.5, 0.99999, 1].map(percent)")
    check(shares == ["0 %", "< 0.001 %", "< 0.001 %", "0.001 %", "50 %", "> 99.9 %", "100 %"], f"shares in per cent: {shares}")
    check(not page.complaints(), f"tokens: {page.complaints()}")


def test_lessons(server, browser):
    """Probabilities end at 1."""
    page = server.open(browser, "/lessons", f"#model={MODEL}&image=d0&lesson=uniform")
    wait(page, "document.querySelector('.lesson-figures').dataset.ready === 'uniform'", 60)
    ticks = page.evaluate("""[...document.querySelectorAll('.lesson-figure')[1].querySelectorAll('.axis.y text')]
        .map(t => Number(t.textContent))""")
    check(len(ticks) > 2 and max(ticks) <= 1, f"probabilities up to {ticks}")
    tops = page.evaluate("""(() => { const svg = plot({ title: "t", series: [{ name: "p", points: [{ x: 0, y: 0.99, label: "" },
        { x: 1, y: 0.2, label: "" }] }], xLabel: "x", yLabel: "y", bars: true, most: 1 });
        return [...svg.querySelectorAll('.axis.y text')].map(t => Number(t.textContent)); })()""")
    check(max(tops) == 1, f"ticks of probabilities up to 0.99: {tops}")


# --- similar images ---------------------------------------------------------------------------------------------------


def similarities(image):
    """Cosines of the features that `attscope embed` writes, by image."""
    path = os.path.join(folder, "features.safetensors")
    subprocess.run([attscope, "embed", CHECKPOINT, images, "-o", path], check=True, capture_output=True)
    values, shape = tensors_of(path)["features"]
    rows = [values[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])]
    norm = [math.sqrt(sum(v * v for v in row)) for row in rows]
    cosine = [sum(map(lambda a, b: a * b, rows[image], row)) / (norm[image] * n) for row, n in zip(rows, norm)]
    return {f"d{i}": c for i, c in enumerate(cosine) if i != image}


def nearest(page):
    return page.evaluate("[...document.querySelectorAll('.nearest li')].map(li => [li.dataset.image, Number(li.dataset.value)])")


def opened_nearest(page, image):
    wait(page, f"document.querySelector('.nearest').dataset.of === '{image}' && "
         f"document.querySelector('.nearest').dataset.images === '{IMAGES}'", 60)


def test_nearest(server, browser):
    page = server.open(browser, "/explore", f"#model={MODEL}&image=d3")
    drawn(page)
    check(nearest(page) == [], "images are compared before it is asked for")
    page.click("document.querySelector('.nearest-view summary')")
    opened_nearest(page, "d3")
    shown, expected = nearest(page), similarities(3)
    order = sorted(expected, key=lambda name: -expected[name])[:12]
    check([name for name, _ in shown] == order, f"nearest images: {shown}, expected {order}")
    # measured: 1.4e-7; both are sums of 192 products, in F32 and in F64
    worst = max(abs(value - expected[name]) for name, value in shown)
    check(worst < 2e-6, f"similarities differ by {worst}")
    page.click("document.querySelector('.nearest button')")
    wait(page, f"new URLSearchParams(location.hash.slice(1)).get('image') === '{order[0]}'")
    opened_nearest(page, order[0])
    check("d3" in dict(nearest(page)), "the list of another image stays")
    restored = server.open(browser, "/explore", page.evaluate("location.hash"))
    opened_nearest(restored, order[0])
    times = server.json("/api/times", model=MODEL)["times"]
    check(any(row["scope"].startswith("head") for row in times), "after a comparison the network is timed without its head")
    check(not page.complaints(), f"nearest: {page.complaints()}")
    shoot(server, browser, "nearest", "/explore", f"#model={MODEL}&image=d3&near=1", lambda shot: opened_nearest(shot, "d3"))


# --- the network ------------------------------------------------------------------------------------------------------


def test_tensors(server, browser):
    values, shape = tensors_of(CHECKPOINT)["patch_embed.proj.weight"]
    fragment = f"#model={MODEL}&find=patch_embed+linear"
    page = server.open(browser, "/network", fragment)
    wait(page, "Number(document.documentElement.dataset.times) > 0")
    page.evaluate("document.querySelector('[type=search]').focus()")
    key(page, "Enter", 13, "\r")
    wait(page, "Boolean(document.querySelector('[data-tensor=\"patch_embed.proj.weight\"]'))")
    page.click("document.querySelector('button[data-tensor=\"patch_embed.proj.weight\"]')")
    wait(page, "document.querySelector('.filters')?.dataset.first === '0'")
    tensor = server.json("/api/tensor", model=MODEL, name="patch_embed.proj.weight")
    mean = sum(values) / len(values)
    expected = {"count": len(values), "zeros": sum(v == 0 for v in values), "nonfinite": 0, "min": min(values),
                "max": max(values), "mean": mean, "norm": math.sqrt(sum(v * v for v in values)),
                "deviation": math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))}
    for name, value in expected.items():  # measured: 0; the sums have the same order
        check(abs(tensor[name] - value) <= 1e-11 * max(abs(value), 1e-3), f"{name}: {tensor[name]}, expected {value}")
    check(tensor["shape"] == shape, f"shape {tensor['shape']}")
    low, high = min(values), max(values)
    bins = [0] * 48
    for value in values:
        bins[min(47, int((value - low) / ((high - low) / 48)))] += 1
    check(tensor["histogram"] == {"from": low, "to": high, "counts": bins}, f"histogram: {tensor['histogram']}")
    drawn_bins = page.evaluate("[...document.querySelectorAll('.tensor-histogram .bin')].map(b => Number(b.dataset.value))")
    check(drawn_bins == bins, "the histogram on the page has other counts")
    text = page.evaluate("document.querySelector('.tensors').innerText")
    check(f"{expected['norm']:.5g}" in text.replace(",", ""), f"norm {expected['norm']}: {text}")
    # The first filter: red, green and blue are its three channels, with zero as grey.
    plane = shape[2] * shape[3]
    first = values[: 3 * plane]
    most = max(map(abs, first))
    pixel = page.evaluate("[...document.querySelector('.filters').getContext('2d').getImageData(5, 2, 1, 1).data]")
    wanted = [127.5 + 127.5 * first[c * plane + 2 * shape[3] + 5] / most for c in range(3)]
    # Bytes are rounded, by at most 0.5.
    check(all(abs(a - b) <= 0.51 for a, b in zip(pixel, wanted)), f"pixel of a filter: {pixel}, expected {wanted}")
    page.evaluate("""(input => { input.value = 64; input.dispatchEvent(new Event("change")); })(
        document.querySelector('.tensors input'))""")
    wait(page, "document.querySelector('.filters').dataset.first === '64'")
    check("tensor=patch_embed.proj.weight" in page.evaluate("location.hash"), "the URL lacks the tensor")
    check(not page.complaints(), f"tensors: {page.complaints()}")
    shoot(server, browser, "tensor", "/network", page.evaluate("location.hash"), lambda shot: wait(
        shot, "document.querySelector('.filters')?.dataset.first && Number(document.documentElement.dataset.times) > 0"))
    residual = server.open(browser, "/network", "#model=resnet20-12fca82f.th&find=layer2.1.conv2")
    wait(residual, "Number(document.documentElement.dataset.times) > 0")
    press(residual, "Next")
    residual.click("document.querySelector('button[data-tensor=\"layer2.1.conv2.weight\"]')")
    wait(residual, "document.querySelector('.filters')?.dataset.first === '0'")
    caption = residual.evaluate("document.querySelector('.tensors figcaption').textContent")
    check(caption.startswith("Filter 0 of 32: 32 of its 32 input channels."), f"caption of a filter: {caption}")
    check(not residual.complaints(), f"tensors of a residual network: {residual.complaints()}")
    shoot(server, browser, "filter", "/network", residual.evaluate("location.hash"), lambda shot: wait(
        shot, "document.querySelector('.filters')?.dataset.first && Number(document.documentElement.dataset.times) > 0"))


def test_search(server, browser):
    page = server.open(browser, "/network", f"#model={MODEL}")
    wait(page, "Number(document.documentElement.dataset.times) > 0")
    caption = page.evaluate("document.querySelector('.network-figure figcaption').textContent")
    check("median of 10 runs" in caption, f"caption of the times: {caption}")
    page.evaluate("""(input => { input.value = "blocks.7 softmax"; input.dispatchEvent(new Event("input")); })(
        document.querySelector('[type=search]'))""")
    check("no operation" in page.evaluate("document.querySelector('#network').innerText"), "words that no operation has")
    page.evaluate("""(input => { input.value = "BLOCKS.7 attn.qkv"; input.dispatchEvent(new Event("input")); })(
        document.querySelector('[type=search]'))""")
    marked = page.evaluate("[...document.querySelectorAll('.found')].map(box => box.dataset.box)")
    check(marked == ["blocks.7"], f"marked parts: {marked}")
    press(page, "Next")
    title = page.evaluate("document.querySelector('.network-view .panel h3').textContent")
    check(title == "blocks.7.attn.qkv", f"the found operation is {title}")
    check("find=BLOCKS.7" in page.evaluate("location.hash"), "the URL lacks the words")
    columns = "document.querySelector('svg.network').dataset.columns"
    check(page.evaluate(columns) == "2", "a tall network is not drawn in two columns")
    boxes = page.evaluate("""[...document.querySelectorAll('.operation')].map(box => {
        const { left, top, right, bottom } = box.getBoundingClientRect(); return [left, top, right, bottom]; })""")
    lapping = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i]
               if a[0] < b[2] - 1 and b[0] < a[2] - 1 and a[1] < b[3] - 1 and b[1] < a[3] - 1]
    check(not lapping, f"boxes lie over each other: {lapping[:2]}")
    width = "document.querySelector('svg.network').getBoundingClientRect().width"
    before = page.evaluate(width)
    for label, factor in (("Zoom in", 1.25), ("Zoom out", 1 / 1.25)):
        page.click(f"document.querySelector('[aria-label=\"{label}\"]')")
        after = page.evaluate(f"{width} / document.querySelector('svg.network').viewBox.baseVal.width")
        # The URL keeps three decimal places.
        check(abs(after - (factor if factor > 1 else 1)) < 0.001, f"{label}: scale {after}")
    press(page, "Fit")
    fitting = page.evaluate("document.querySelector('svg.network').getBoundingClientRect().height")
    check(0 < fitting <= 900 and before > 0, f"a fitting network is {fitting} pixels high")
    check("zoom=" in page.evaluate("location.hash"), "the URL lacks the zoom")
    check(not page.complaints(), f"search: {page.complaints()}")
    phone = server.open(browser, "/network", f"#model={MODEL}", width=390, height=844)
    wait(phone, "Boolean(document.querySelector('svg.network'))")
    check(phone.evaluate(columns) == "1", "a network has two columns on a phone")
    shoot(server, browser, "network", "/network", f"#model={MODEL}",
          lambda shot: wait(shot, "Number(document.documentElement.dataset.times) > 0"))


# --- the keyboard -----------------------------------------------------------------------------------------------------


def test_keyboard(server, browser):
    page = server.open(browser, "/explore", f"#model={MODEL}&image=d0&layer=2&head=0")
    drawn(page)
    before = page.evaluate("location.hash")
    for link, most in ((0, 14), (1, 1)):  # to the content, to the maps
        page.evaluate(f"document.querySelectorAll('.skip')[{link}].focus()")
        key(page, "Enter", 13, "\r")
        keys = 1
        while not page.evaluate("document.activeElement.matches('.grid button')") and keys < 60:
            key(page, "Tab", 9)
            keys += 1
        check(keys <= most, f"a map is reached from link {link} with {keys} keys")
    check(page.evaluate("location.hash") == before, f"the links change the address to {page.evaluate('location.hash')}")
    label = "document.activeElement.getAttribute('aria-label')"
    check(page.evaluate(label) == "blocks.2.attn, head 0", f"the first map of the focus: {page.evaluate(label)}")
    for name, wanted in (("ArrowRight", "blocks.3.attn, head 0"), ("ArrowDown", "blocks.3.attn, head 1"),
                         ("ArrowLeft", "blocks.2.attn, head 1"), ("ArrowUp", "blocks.2.attn, head 0"),
                         ("End", "blocks.11.attn, head 2"), ("Home", "blocks.0.attn, all heads")):
        key(page, name, 0)
        check(page.evaluate(label) == wanted, f"{name} leads to {page.evaluate(label)}")
    key(page, "ArrowRight", 0)
    key(page, "Enter", 13, "\r")
    wait(page, "new URLSearchParams(location.hash.slice(1)).get('layer') === '1'")
    key(page, "Tab", 9)
    check(not page.evaluate("document.activeElement.matches('.grid button')"), "the maps are several stops of the Tab key")
    page.evaluate("document.querySelector('.strip [tabindex=\"0\"]').focus()")
    key(page, "ArrowRight", 0)
    key(page, "Enter", 13, "\r")
    wait(page, "new URLSearchParams(location.hash.slice(1)).get('image') === 'd1'")
    focused = "document.activeElement === document.querySelector('.strip [aria-pressed=\"true\"]')"
    check(page.evaluate(focused), "the choice of an image loses the focus")
    stops = page.evaluate("[...document.querySelectorAll('.grid button')].filter(b => b.tabIndex === 0).length")
    check(stops == 1, f"{stops} maps are stops of the Tab key")


unnamed = [f"{network}={os.path.join(WEIGHTS, file)}" for file, network in RESNETS.items()]
operands = [CHECKPOINT, REGISTERS, *unnamed, RANDOM]
with Server(attscope, [*operands, "--images", images]) as running, Browser() as chromium:
    test_names(running)
    test_comparison(running, chromium)
    test_tokens(running, chromium)
    test_lessons(running, chromium)
    test_nearest(running, chromium)
    test_tensors(running, chromium)
    test_search(running, chromium)
    test_keyboard(running, chromium)
finish()
