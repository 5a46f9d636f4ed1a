"""classes.py ATTSCOPE FOLDER: tests the class maps of a segmenter on the page Explore and in the report."""

import math
import os
import struct
import subprocess
import sys
import zlib

from browser import Browser
from checks import check, finish
from server import Server, wait

attscope, folder = sys.argv[1:3]
SIDE = 32
PATCH = 4
GRID = SIDE // PATCH
NAMES = ["<b>sky</b>", "road", "sea"]  # a name is no markup
COLOURS = [(0, 96, 255), (255, 255, 0), (255, 0, 0)]  # of the rule
data, run, upernet = (os.path.join(folder, *path) for path in (("data",), ("output", "run"), ("output", "upernet")))


def write_png(path, rows, channels):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2 if channels == 3 else 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))


def write_photographs():
    """The sky is dark, the road below it bright. Between both, pixels of either class alternate, so that predictions there
    depend on all parts of the network."""
    for split, count in (("train", 16), ("val", 3)):
        for part in (split, split + "annot"):
            os.makedirs(os.path.join(data, part))
        for i in range(count):
            line = 8 + 5 * i % 16
            bright = [200 if y >= line + 5 else 110 if y >= line - 5 else 20 for y in range(SIDE)]
            photo = [[bright[y] + 7 * (x * x + 3 * y * i) % 50 for x in range(3 * SIDE)] for y in range(SIDE)]
            mask = [[(x + y) % 2 if abs(y - line) < 5 else int(y >= line) for x in range(SIDE)] for y in range(SIDE)]
            write_png(os.path.join(data, split, f"{i}.png"), photo, 3)
            write_png(os.path.join(data, split + "annot", f"{i}.png"), mask, 1)
    with open(os.path.join(data, "classes.txt"), "w") as file:
        file.write("\n".join(NAMES) + "\n")


def command(*arguments):
    subprocess.run([attscope, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def shown(page):
    """The pixels of the class map as the page draws them, [red, green, blue] of each."""
    values = page.evaluate("""(() => {
        const canvas = document.querySelector(".class-map"), copy = document.createElement("canvas");
        copy.width = canvas.width;
        copy.height = canvas.height;
        const context = copy.getContext("2d", {willReadFrequently: true});
        context.drawImage(canvas, 0, 0);
        return [canvas.width, ...context.getImageData(0, 0, canvas.width, canvas.height).data];
    })()""")
    check(values[0] == SIDE, f"the class map has {values[0]} columns")
    return [values[i : i + 3] for i in range(1, len(values), 4)]


def painted(pixels, classes, chosen=None):
    """What the page should draw."""
    wanted = []
    for p, found in enumerate(classes):
        pixel = pixels[3 * p : 3 * p + 3]
        if chosen is not None and found != chosen:
            wanted.append([sum(pixel) // 3] * 3)
        else:
            wanted.append([(value + colour + 1) // 2 for value, colour in zip(pixel, COLOURS[found])])
    return wanted


def differ(found, wanted):
    """The largest difference; a canvas rounds grey values."""
    return max(abs(a - b) for one, other in zip(found, wanted) for a, b in zip(one, other))


def legend(page):
    return page.evaluate("""[...document.querySelectorAll(".legend button")].map((item) =>
        [Number(item.dataset.class), item.childNodes[1].textContent, item.querySelector(".bar-number").textContent,
         getComputedStyle(item.querySelector(".swatch")).backgroundColor, item.getAttribute("aria-pressed")])""")


def words(page):
    return page.evaluate("document.querySelector('.classes .readout').textContent")


def point(page, place, click=False):
    """Moves the pointer to a pixel, or clicks it."""
    x, y = page.evaluate(f"""(() => {{
        const view = document.querySelector(".class-map");
        view.scrollIntoView({{block: "center", behavior: "instant"}});
        const box = view.getBoundingClientRect();
        return [box.left + ({place % SIDE} + 0.5) / {SIDE} * box.width,
                box.top + ({place // SIDE} + 0.5) / {SIDE} * box.height];
    }})()""")
    page.move(x, y)
    for kind in ("mousePressed", "mouseReleased") if click else ():
        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def check_view(page, pixels, classes):
    """The map, its legend, and what the pointer does."""
    counts = sorted(((classes.count(c), -c) for c in set(classes)), reverse=True)
    wanted = [[-c, NAMES[-c], round(100 * n / len(classes), 1), "rgb({}, {}, {})".format(*COLOURS[-c]), "false"]
              for n, c in counts]
    found = [[c, name, round(float(share.split()[0]), 1), *rest] for c, name, share, *rest in legend(page)]
    check(found == wanted, f"legend: {found}, expected {wanted}")
    check(differ(shown(page), painted(pixels, classes)) == 0, "the pixels of the class map")
    place = classes.index(1)
    point(page, place)
    expected = f"road (class 1), {legend_share(page, 1)} of the image · row {place // SIDE + 1}, column {place % SIDE + 1}."
    check(words(page) == expected, f"words at a pixel: {words(page)}, expected {expected}")
    check(differ(shown(page), painted(pixels, classes)) == 0, "a pointer changes the class map")
    point(page, place, click=True)
    check(words(page) == expected, f"words after a click: {words(page)}")
    check([row[4] for row in legend(page) if row[0] == 1] == ["true"], "a click chooses the class in the legend")
    check(differ(shown(page), painted(pixels, classes, 1)) <= 1, "a click leaves other classes painted")
    point(page, place, click=True)
    check(differ(shown(page), painted(pixels, classes)) == 0, "a second click does not show all classes again")
    page.evaluate("document.querySelector('.legend button[data-class=\"0\"]').click()")
    check(words(page).startswith("<b>sky</b> (class 0), "), f"words of the legend: {words(page)}")
    check(differ(shown(page), painted(pixels, classes, 0)) <= 1, "the legend does not choose a class")
    page.evaluate("document.querySelector('.legend button[data-class=\"0\"]').click()")
    check(page.evaluate("document.querySelectorAll('.legend b, .classes .readout i').length") == 0, "a name is markup")
    check(not page.complaints(), f"complaints: {page.complaints()}")


def legend_share(page, number):
    return next(share for c, _, share, *_ in legend(page) if c == number)


def classes_of(server, image, changes=""):
    numbers = server.get("/api/classes", model="r0", image=image, changes=changes)
    return list(struct.unpack(f"={SIDE * SIDE}H", numbers))


def ready(page, image):
    wait(page, f"document.querySelector('.view canvas').dataset.shown === '{image}'"
         " && document.querySelectorAll('.legend li').length > 0")


def softmax(values):
    powers = [math.exp(value - max(values)) for value in values]
    return [power / sum(powers) for power in powers]


def check_scores(server, page, place, changes="", model="r0"):
    """The scores beside the maps are those of a pixel."""
    row, column = divmod(place, SIDE)
    wait(page, "(({shown, row, column, changes}) => `${shown} ${row} ${column} ${changes}`)"
         f"(document.querySelector('.scores').dataset) === 'd0 {row} {column} {changes}'")

    def logits(some):
        numbers = server.get("/api/logits", model=model, image="d0", changes=some, row=row, column=column)
        return list(struct.unpack(f"={len(NAMES)}f", numbers))

    values, plain = logits(changes), softmax(logits(""))
    scores = softmax(values)
    wanted = [[c, NAMES[c], scores[c], values[c], "rgb({}, {}, {})".format(*COLOURS[c]), plain[c] if changes else None]
              for c in sorted(range(len(NAMES)), key=lambda c: -values[c])]
    found = page.evaluate("""[...document.querySelectorAll(".scores li")].map((item) => {
        const [score, logit] = item.querySelectorAll(".bar-number"), before = item.querySelector(".bar-before");
        return [Number(item.dataset.class), item.querySelector(".bar-name").textContent, Number(score.dataset.value),
            Number(logit.dataset.value), getComputedStyle(item.querySelector(".bar-fill")).backgroundColor,
            before && parseFloat(before.style.left) / 100];
    })""")
    near = lambda a, b: a == b if a is None or b is None else abs(a - b) < 1e-6  # measured: 3e-17, marks 5e-7
    check(len(found) == len(wanted) and all(
        one[:2] == other[:2] and one[4] == other[4] and all(near(one[i], other[i]) for i in (2, 3, 5))
        for one, other in zip(found, wanted)), f"scores of pixel {place}: {found}, expected {wanted}")
    text = page.evaluate("document.querySelector('.scores p').textContent")
    check(text.startswith(f"Row {row + 1}, column {column + 1}. Softmax over 3 classes"), f"words of scores: {text}")


def check_query(page, place):
    """The query is the token that holds a pixel, behind the class token."""
    query = 1 + place // SIDE // PATCH * GRID + place % SIDE // PATCH
    wait(page, f"document.querySelector('.view canvas').dataset.query === '{query}'")


def scored_first(page):
    return page.evaluate("Number(document.querySelector('.scores li').dataset.class)")


def leave(page):
    """Moves the pointer away from the class map."""
    page.evaluate("document.querySelector('h1, h2, h3').scrollIntoView({block: 'center', behavior: 'instant'})")
    page.move(1, 1)


def test_explore(browser):
    with Server(attscope, [run, upernet, "--images", os.path.join(data, "val")]) as server:
        page = server.open(browser, "/explore", "#model=r0")
        ready(page, "d0")
        pixels = list(server.get("/api/input", model="r0", image="d0", changes=""))
        classes = classes_of(server, "d0")
        check(len(set(classes)) == 2, f"the network predicts the classes {set(classes)}")
        check_view(page, pixels, classes)
        kept = classes.index(1)
        leave(page)
        check_scores(server, page, kept)
        check_query(page, kept)
        check(classes[kept] == scored_first(page), "the class of a pixel is not that of its largest score")
        point(page, SIDE + 2)
        check_scores(server, page, SIDE + 2)  # of the pixel under the pointer
        check_query(page, SIDE + 2)
        leave(page)
        check_scores(server, page, kept)
        check_query(page, kept)
        drawn = server.json("/api/model", model="r0")["drawn"]
        check([one["label"] for one in drawn] == NAMES and drawn[0]["colour"] == "#0060ff", f"classes of a model: {drawn}")
        answer = server.json("/api/run", model="r0", image="d0", changes="")["classes"]
        check(abs(sum(one["share"] for one in answer) - 1) < 1e-9, f"shares: {answer}")

        # Without some branches the network answers otherwise, and the map follows.
        changes = ["b0", "b1", "b2", "b3", "b0-b1-b2-b3"]
        chosen = next((one for one in changes if classes_of(server, "d0", one) != classes), "")
        check(chosen, "no change matters, so they test nothing")
        changed = classes_of(server, "d0", chosen)
        page.evaluate(f"location.hash = '#model=r0&image=d0&changes={chosen}'")
        wait(page, f"document.querySelector('.answer').dataset.changes === '{chosen}'")
        ready(page, "d0")
        check(differ(shown(page), painted(pixels, changed)) == 0, "the class map of a changed network")
        for _ in range(2):  # the second click shows all classes again
            point(page, kept, click=True)
        leave(page)
        check_scores(server, page, kept, chosen)
        page.evaluate("document.querySelector('.view canvas').focus()")
        page.key("c")  # the class token is no pixel
        wait(page, "document.querySelector('.scores').hidden")
        page.evaluate("document.querySelectorAll('.strip button')[1].click()")
        ready(page, "d1")
        other = list(server.get("/api/input", model="r0", image="d1", changes=""))
        check(differ(shown(page), painted(other, classes_of(server, "d1", chosen))) == 0, "another image")

        # A network without attention has scores, too.
        page.evaluate("location.hash = '#model=r1&image=d0'")
        wait(page, "document.querySelector('.panel').innerText.includes('no attention among tokens')")
        check_scores(server, page, SIDE // 2 * SIDE + SIDE // 2, model="r1")  # the middle
        point(page, 5, click=True)
        leave(page)
        check_scores(server, page, 5, model="r1")
        check(not page.complaints(), f"complaints: {page.complaints()}")


def test_report(browser):
    path = os.path.join(folder, "report.html")
    command("measure", run, data, "--with", "entropy", "--maps", "2")
    command("report", run, "--output", path)
    with Server(attscope, [run, "--images", os.path.join(data, "val")]) as server:
        page = browser.open(path)
        wait(page, "document.querySelectorAll('.legend li').length > 0")
        for i in range(2):
            page.evaluate(f"document.querySelectorAll('#maps .strip button')[{i}].click()")
            pixels = list(server.get("/api/input", model="r0", image=f"d{i}", changes=""))
            check_view(page, pixels, classes_of(server, f"d{i}"))


def train(experiment, *options):
    command("train", data, "--task", "segment", "--img-size", str(SIDE), "--crop-pct", "1", "--opt", "adamw", "--lr",
            "5e-3", "--warmup-epochs", "0", "-b", "4", "--threads", "2", "-j", "1", "--scale", "1", "1", "--output",
            os.path.join(folder, "output"), "--experiment", experiment, *options)


write_photographs()
train("run", "--model", "vit_tiny_patch16_224", "--patch-size", str(PATCH), "--embed-dim", "32", "--depth", "2",
      "--num-heads", "2", "--epochs", "4")
train("upernet", "--model", "resnet20", "--head", "uper", "--head-channels", "8", "--aux-channels", "8", "--epochs", "1")
with Browser() as chromium:
    test_explore(chromium)
    test_report(chromium)
finish()
