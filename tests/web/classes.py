"""classes.py ATTSCOPE FOLDER: tests what the page Explore and the report draw: class maps of a segmenter, boxes of a
detector. Photographs are no squares."""

import json
import math
import os
import struct
import subprocess
import sys
import zlib

from browser import Browser
from checks import check, finish
from detector import write_detector
from server import Server, wait

attscope, folder = sys.argv[1:3]
HEIGHT, WIDTH = 32, 48
PATCH = 4
GRID = WIDTH // PATCH  # columns
NAMES = ["<b>sky</b>", "road", "sea"]  # a name is no markup
COLOURS = [(0, 96, 255), (255, 255, 0), (255, 0, 0)]  # of the rule
data, run, upernet, detector = (os.path.join(folder, *path) for path in (
    ("data",), ("output", "run"), ("output", "upernet"), ("detector.safetensors",)))


def write_png(path, rows, channels):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2 if channels == 3 else 0, 0, 0, 0)
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
            bright = [200 if y >= line + 5 else 110 if y >= line - 5 else 20 for y in range(HEIGHT)]
            photo = [[bright[y] + 7 * (x * x + 3 * y * i) % 50 for x in range(3 * WIDTH)] for y in range(HEIGHT)]
            mask = [[(x + y) % 2 if abs(y - line) < 5 else int(y >= line) for x in range(WIDTH)] for y in range(HEIGHT)]
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
    check(values[0] == WIDTH, f"the class map has {values[0]} columns")
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
        return [box.left + ({place % WIDTH} + 0.5) / {WIDTH} * box.width,
                box.top + ({place // WIDTH} + 0.5) / {HEIGHT} * box.height];
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
    where = f"row {place // WIDTH + 1}, column {place % WIDTH + 1}"
    expected = f"road (class 1), {legend_share(page, 1)} of the image · {where}."
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
    numbers = server.get("/api/classes", model="run", image=image, changes=changes)
    return list(struct.unpack(f"={HEIGHT * WIDTH}H", numbers))


def ready(page, image):
    wait(page, f"document.querySelector('.view canvas').dataset.shown === '{image}'"
         " && document.querySelectorAll('.legend li').length > 0")


def softmax(values):
    powers = [math.exp(value - max(values)) for value in values]
    return [power / sum(powers) for power in powers]


def check_scores(server, page, place, changes="", model="run"):
    """The scores beside the maps are those of a pixel."""
    row, column = divmod(place, WIDTH)
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
    query = 1 + place // WIDTH // PATCH * GRID + place % WIDTH // PATCH
    wait(page, f"document.querySelector('.view canvas').dataset.query === '{query}'")


def scored_first(page):
    return page.evaluate("Number(document.querySelector('.scores li').dataset.class)")


def leave(page):
    """Moves the pointer away from the class map."""
    page.evaluate("document.querySelector('h1, h2, h3').scrollIntoView({block: 'center', behavior: 'instant'})")
    page.move(1, 1)


def test_explore(browser):
    names = os.path.join(data, "classes.txt")
    with Server(attscope, [run, upernet, detector, "--labels", names, "--images", os.path.join(data, "val")]) as server:
        check_detector(server, browser)
        page = server.open(browser, "/explore", "#model=run")
        ready(page, "d0")
        pixels = list(server.get("/api/input", model="run", image="d0", changes=""))
        classes = classes_of(server, "d0")
        check(len(set(classes)) == 2, f"the network predicts the classes {set(classes)}")
        check_view(page, pixels, classes)
        kept = classes.index(1)
        leave(page)
        check_scores(server, page, kept)
        check_query(page, kept)
        check(classes[kept] == scored_first(page), "the class of a pixel is not that of its largest score")
        point(page, WIDTH + 2)
        check_scores(server, page, WIDTH + 2)  # of the pixel under the pointer
        check_query(page, WIDTH + 2)
        leave(page)
        check_scores(server, page, kept)
        check_query(page, kept)
        drawn = server.json("/api/model", model="run")["drawn"]
        check([one["label"] for one in drawn] == NAMES and drawn[0]["colour"] == "#0060ff", f"classes of a model: {drawn}")
        answer = server.json("/api/run", model="run", image="d0", changes="")["classes"]
        check(abs(sum(one["share"] for one in answer) - 1) < 1e-9, f"shares: {answer}")

        # Without some branches the network answers otherwise, and the map follows.
        changes = ["b0", "b1", "b2", "b3", "b0-b1-b2-b3"]
        chosen = next((one for one in changes if classes_of(server, "d0", one) != classes), "")
        check(chosen, "no change matters, so they test nothing")
        changed = classes_of(server, "d0", chosen)
        page.evaluate(f"location.hash = '#model=run&image=d0&changes={chosen}'")
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
        other = list(server.get("/api/input", model="run", image="d1", changes=""))
        check(differ(shown(page), painted(other, classes_of(server, "d1", chosen))) == 0, "another image")

        # A network without attention has scores, too.
        page.evaluate("location.hash = '#model=upernet&image=d0'")
        wait(page, "document.querySelector('.panel').innerText.includes('no attention among tokens')")
        check_scores(server, page, HEIGHT // 2 * WIDTH + WIDTH // 2, model="upernet")  # the middle
        point(page, 5, click=True)
        leave(page)
        check_scores(server, page, 5, model="upernet")
        check(not page.complaints(), f"complaints: {page.complaints()}")


# --- boxes

ROWS = """[...document.querySelectorAll(".bar-row")]"""
FRAMES = """[...document.querySelectorAll(".frames .box")]"""


def rows_of(page):
    """The boxes in the list: [class, name, score, colour, mark, size, whether it is lost]."""
    return page.evaluate(ROWS + """.map((row) => {
        const number = row.querySelector(".bar-number"), before = row.querySelector(".bar-before");
        return [Number(row.dataset.class), row.querySelector(".bar-name").textContent, Number(number.dataset.value),
            getComputedStyle(row.querySelector(".bar-fill")).backgroundColor,
            before && parseFloat(before.style.left) / 100, row.querySelector(".bar-size").textContent,
            row.classList.contains("lost")];
    })""")


def frames_of(page):
    """Frames in shares of the picture, [left, top, right, bottom], by their names."""
    found = page.evaluate("(() => { const view = document.querySelector('.box-photo').getBoundingClientRect(); return "
                          + FRAMES + """.map((frame) => {
        const box = frame.getBoundingClientRect();
        return [frame.textContent, ...[[box.left, view.left, view.width], [box.top, view.top, view.height],
            [box.right, view.left, view.width], [box.bottom, view.top, view.height]].map(([at, from, side]) =>
                (at - from) / side)];
    }); })()""")
    return {name: sides for name, *sides in found}


def overlap(a, b):
    sides = [min(a[i] + a[i + 2], b[i] + b[i + 2]) - max(a[i], b[i]) for i in (0, 1)]
    common = max(0, sides[0]) * max(0, sides[1])
    return common / (a[2] * a[3] + b[2] * b[3] - common)


def expected_rows(boxes, plain, least):
    """What the list should show. plain: boxes of the network without changes; None: it has none."""
    left, rows = list(plain or []), []

    def row(box, score, before, lost):
        x, y, w, h = (math.floor(side + 0.5) for side in box["bbox"])
        size = f"{w} × {h} at {x}, {y}" + ("; unchanged network only" if lost else "")
        number = box["class"]
        return [number, NAMES[number], score, "rgb({}, {}, {})".format(*COLOURS[number]), before, size, lost]

    for box in boxes:
        if box["score"] < least:
            continue
        like = [b for b in left if b["class"] == box["class"] and overlap(b["bbox"], box["bbox"]) >= 0.5]
        before = max(like, key=lambda b: overlap(b["bbox"], box["bbox"]), default=None)
        if before:
            left.remove(before)
        rows.append(row(box, box["score"], before and before["score"], False))
    return rows + [row(box, 0, box["score"], True) for box in left if box["score"] >= least]


def same_rows(found, wanted):
    near = lambda a, b: a == b if a is None or b is None else abs(a - b) < 1e-6  # as for scores of pixels
    return len(found) == len(wanted) and all(
        all(near(a, b) if i in (2, 4) else a == b for i, (a, b) in enumerate(zip(one, other)))
        for one, other in zip(found, wanted))


def set_least(page, per_cent):
    page.evaluate(f"""(slider => {{
        slider.value = {per_cent};
        for (const event of ["input", "change"]) slider.dispatchEvent(new Event(event));
    }})(document.querySelector(".boxes input"))""")


def marked(page):
    """Places of the marked rows, of the chosen ones, and names of the marked frames."""
    return page.evaluate(f"[{ROWS}.flatMap((row, i) => row.classList.contains('on') ? [i] : []), "
                         f"{ROWS}.flatMap((row, i) => row.getAttribute('aria-pressed') === 'true' ? [i] : []), "
                         f"{FRAMES}.filter((frame) => frame.classList.contains('on')).map((frame) => frame.textContent)]")


def check_frames(page, answer, boxes):
    """The frames lie where the boxes are in the photograph. Borders are drawn inside of a frame."""
    a, _, _, _, e, _ = answer["map"]
    height, width, _ = answer["input"]
    found = frames_of(page)
    for box in boxes:
        x, y, w, h = box["bbox"]
        wanted = [a * x / width, e * y / height, a * (x + w) / width, e * (y + h) / height]
        name = next((name for name in found if name.startswith(NAMES[box["class"]])
                     and abs(float(name.split()[-2]) - 100 * box["score"]) < 0.1), None)
        check(name and max(abs(p - q) for p, q in zip(found[name], wanted)) < 0.02,  # borders of frames that are thin
              f"the frame of {box}: {found.get(name)}, expected {wanted}")


def check_marks(page, boxes):
    """A row marks its frame, and a frame its row; a click chooses both and the query."""
    page.evaluate(ROWS + "[1].focus()")
    rows, chosen, frames = marked(page)
    check(rows == [1] and chosen == [] and len(frames) == 1 and frames[0].startswith(NAMES[boxes[1]["class"]]),
          f"a focused row marks {rows}, {frames}")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    page.evaluate("document.activeElement.blur()")
    check(marked(page)[:2] == [[1], [1]], f"the Enter key chooses {marked(page)}")
    place = page.evaluate("new URLSearchParams(location.hash.slice(1)).get('at')")
    left, top, right, bottom = frames_of(page)[frames[0]]
    y, x = map(float, place.split(","))
    check(abs(x - (left + right) / 2) < 0.02 and abs(y - (top + bottom) / 2) < 0.02, f"a box keeps the query {place}")
    page.click(FRAMES + ".find((frame) => frame.classList.contains('on'))")
    check(marked(page)[1] == [], "a click on the frame of the chosen box leaves it chosen")
    leave(page)
    check(marked(page)[0] == [], f"without a pointer {marked(page)} is marked")


def check_detector(server, browser):
    page = server.open(browser, "/explore", "#model=detector.safetensors&image=d1&score=0.3")
    wait(page, f"{ROWS}.length > 0")
    answer = server.json("/api/run", model="detector.safetensors", image="d1", changes="")
    photographs = [os.path.join(data, "val", f"{i}.png") for i in range(3)]
    predicted = json.loads(subprocess.run([attscope, "predict", detector, *photographs, "--labels",
                                           os.path.join(data, "classes.txt"), "--json", "-"], check=True,
                                          capture_output=True, text=True).stdout)
    for box in predicted[1]["boxes"]:
        del box["image_id"]
    check(answer["boxes"] == predicted[1]["boxes"], "the boxes differ from those of attscope predict")
    check(answer["input"] == [64, 96, 3] and answer["photograph"] == [HEIGHT, WIDTH], f"sizes: {answer['input']}")
    shown = [box for box in answer["boxes"] if box["score"] >= 0.3]
    check(2 < len(shown) < len(answer["boxes"]), f"{len(shown)} boxes are too many or too few for a test")
    check(same_rows(rows_of(page), expected_rows(answer["boxes"], None, 0.3)),
          f"boxes: {rows_of(page)}, expected {expected_rows(answer['boxes'], None, 0.3)}")
    check_frames(page, answer, shown)
    check_marks(page, shown)
    check(page.evaluate("document.querySelectorAll('.box b, .bar-name b').length") == 0, "a name is markup")

    # Another limit, a branch less.
    set_least(page, 10)
    check(same_rows(rows_of(page), expected_rows(answer["boxes"], None, 0.1)), "boxes of a score of 10 %")
    check("score=0.1" in page.evaluate("location.hash"), "the address lacks the lowest score")
    branch, wanted = next((branch, rows) for branch in range(8) for rows in [expected_rows(
        server.json("/api/run", model="detector.safetensors", image="d1", changes=f"b{branch}")["boxes"], answer["boxes"], 0.1)]
        if any(row[6] for row in rows) and any(row[4] and not row[6] for row in rows))
    page.evaluate("document.querySelector('.branches').open = true")
    page.evaluate(f"document.querySelectorAll('.branches button')[{branch}].click()")
    wait(page, f"document.querySelector('.answer').dataset.changes === 'b{branch}'")
    check(same_rows(rows_of(page), wanted), f"boxes of a changed network: {rows_of(page)}, expected {wanted}")
    dashed = page.evaluate(FRAMES + ".filter((frame) => getComputedStyle(frame).borderStyle === 'dashed').length")
    check(dashed == sum(row[6] for row in wanted), f"{dashed} dashed frames")
    set_least(page, 100)
    check(page.evaluate("document.querySelector('.boxes .reading').textContent").startswith("None of "), "no words")
    check(not page.complaints(), f"boxes: {page.complaints()}")
    phone = server.open(browser, "/explore", "#model=detector.safetensors&image=d1&score=0.1", width=390, height=844)
    wait(phone, f"{ROWS}.length > 0")
    check(phone.evaluate("document.documentElement.scrollWidth") <= 390, "boxes scroll sideways on a phone")


def test_report(browser):
    path = os.path.join(folder, "report.html")
    command("measure", run, data, "--with", "entropy", "--maps", "2")
    command("report", run, "--output", path)
    with Server(attscope, [run, "--images", os.path.join(data, "val")]) as server:
        page = browser.open(path)
        wait(page, "document.querySelectorAll('.legend li').length > 0")
        for i in range(2):
            page.evaluate(f"document.querySelectorAll('#maps .strip button')[{i}].click()")
            pixels = list(server.get("/api/input", model="run", image=f"d{i}", changes=""))
            check_view(page, pixels, classes_of(server, f"d{i}"))


def train(experiment, *options):
    command("train", data, "--task", "segment", "--img-size", str(HEIGHT), str(WIDTH), "--crop-pct", "1", "--opt",
            "adamw", "--lr", "5e-3", "--warmup-epochs", "0", "-b", "4", "--threads", "2", "-j", "1", "--scale", "1",
            "1", "--output", os.path.join(folder, "output"), "--experiment", experiment, *options)


write_photographs()
write_detector(detector)
train("run", "--model", "vit_tiny_patch16_224", "--patch-size", str(PATCH), "--embed-dim", "32", "--depth", "2",
      "--num-heads", "2", "--epochs", "4")
train("upernet", "--model", "resnet20", "--head", "uper", "--head-channels", "8", "--aux-channels", "8", "--epochs", "1")
with Browser() as chromium:
    test_explore(chromium)
    test_report(chromium)
finish()
