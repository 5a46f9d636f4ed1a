"""explore.py ATTSCOPE SHARED FOLDER: tests the pages of `attscope serve` about checkpoints with DeiT-Tiny."""

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
CHECKPOINT = os.path.join(shared, "data/weights/deit_tiny_patch16_224.safetensors")
MODEL = os.path.basename(CHECKPOINT)
HEADS, LAYERS, TOKENS, GRID = 3, 12, 197, 14
PAGES = ("/explore", "/network", "/lessons")
LESSONS = {"convolution": "convolution", "rank": "rank", "uniform": "uniform", "stiffness": "step size"}

images = os.path.join(folder, "images")
os.makedirs(images)
photographs = sorted(glob.glob(os.path.join(shared, "data/imagenet200/val/*/*")))
for i, path in enumerate(photographs[:3]):
    shutil.copy(path, os.path.join(images, f"{i}.JPEG"))
upload = os.path.realpath(photographs[7])  # Chromium uploads no path with ".."


def command(*arguments):
    return json.loads(subprocess.run([attscope, *arguments], check=True, capture_output=True, text=True).stdout)


def close(a, b, bound):
    return abs(a - b) <= bound * max(abs(a), abs(b))


# --- Explore


def drawn(page, side=0, **wanted):
    """Waits until a side shows a place and changes."""
    conditions = " && ".join(f"view?.dataset.{name} === {json.dumps(value)}" for name, value in wanted.items())
    wait(page, f"(view => {conditions or 'view?.dataset.asked'})(document.querySelectorAll('.view canvas')[{side}])")


def bars(page, side=0):
    """The probabilities that a side shows, by class."""
    return dict(page.evaluate(f"""[...document.querySelectorAll('.answer')[{side}].querySelectorAll('li')]
            .map(item => [item.dataset.class, Number(item.querySelector('.bar-number').dataset.value)])"""))


def answered(page, changes, side=0):
    wait(page, f"document.querySelectorAll('.answer')[{side}].dataset.changes === {json.dumps(changes)}")


def press(page, text):
    page.click(f"[...document.querySelectorAll('button')].find(b => b.textContent.startsWith({json.dumps(text)}))")


def choose(page, label):
    page.click(f"[...document.querySelectorAll('.choice label')].find(l => l.textContent === {json.dumps(label)})")


def readout(page, side=0):
    return page.evaluate(f"document.querySelectorAll('.readout')[{side}].textContent")


def weights(server, image, query, changes="", **options):
    """The weights [layers][heads][tokens] of a query in all layers."""
    asked = {"model": MODEL, "image": image, "changes": changes, "way": "row", "terms": "both", "scores": 0, **options}
    data = server.get("/api/weights", queries=",".join([str(query)] * LAYERS), **asked)
    values = struct.unpack(f"{len(data) // 4}f", data)
    return [[values[(l * HEADS + h) * TOKENS :][:TOKENS] for h in range(HEADS)] for l in range(LAYERS)]


def words_of(row):
    """What the page says about one head's row: strongest patch and entropy."""
    best = max(range(1, TOKENS), key=lambda j: row[j])
    entropy = -sum(a * math.log(a) for a in row if a > 0)
    return best, row[best], row[0], entropy


def number(text, before):
    """The number after `before` in a text."""
    return float(text.split(before)[1].replace("(", "").split()[0].rstrip(".;,%"))


def test_numbers(server, page):
    """The prediction is that of attscope predict, and the readout follows from the engine's weights."""
    predicted = command("predict", CHECKPOINT, os.path.join(images, "0.JPEG"), "--json", "-")
    top = {str(entry["class"]): entry["probability"] for entry in predicted[0]["top"]}
    check(bars(page) == top, f"the page shows {bars(page)}, attscope predict {top}")
    page.evaluate("document.querySelectorAll('.grid button')[1 * 12 + 3 + 12 * 1].click()")
    wait(page, "location.hash.includes('head=1') && location.hash.includes('layer=3')")
    drawn(page, place="p0")
    best, strongest, on_class, entropy = words_of(weights(server, "d0", 0)[3][1])
    text = readout(page)
    place = f"row {(best - 1) // GRID + 1}, column {(best - 1) % GRID + 1} "
    check("blocks.3.attn, head 1" in text, f"the readout is of another head: {text}")
    check(place in text, f"strongest patch {best}: {text}")
    check(close(number(text, place), 100 * strongest, 5e-3), f"largest weight {strongest}: {text}")
    check(close(number(text, "On the class token: "), 100 * on_class, 5e-3), f"on the class token {on_class}: {text}")
    check(close(number(text, "Entropy: "), entropy, 5e-3), f"entropy {entropy}: {text}")


def test_query(server, page):
    """Hovering shows another query, leaving shows the kept one, clicks and keys keep one."""
    x, y, side = page.evaluate("""(view => {
        view.scrollIntoView({block: "center", behavior: "instant"});
        const {left, top, width} = view.getBoundingClientRect();
        return [left, top, width];
    })(document.querySelector('.view canvas'))""")
    page.move(x + side * 4.5 / GRID, y + side * 2.5 / GRID)
    wait(page, "document.querySelector('.view canvas').dataset.query === '33'")
    entropy = words_of(weights(server, "d0", 33)[3][1])[3]
    check(
        "row 3, column 5" in readout(page) and close(number(readout(page), "Entropy: "), entropy, 5e-3),
        f"query 33: {readout(page)}",
    )
    page.move(x - 5, y - 5)
    wait(page, "document.querySelector('.view canvas').dataset.query === '0'")
    for kind in ("mousePressed", "mouseReleased"):
        page.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x + side * 7.5 / GRID,
            y=y + side * 7.5 / GRID,
            button="left",
            clickCount=1,
        )
    page.move(x - 5, y - 5)
    middle = 1 + 7 * GRID + 7
    wait(page, f"document.querySelector('.view canvas').dataset.query === '{middle}'")
    page.evaluate("document.querySelector('.view canvas').focus()")
    page.key("ArrowRight")
    wait(page, f"document.querySelector('.view canvas').dataset.query === '{middle + 1}'")
    page.key("ArrowDown")
    wait(page, f"document.querySelector('.view canvas').dataset.query === '{middle + 1 + GRID}'")
    page.key("c")
    wait(page, "document.querySelector('.view canvas').dataset.query === '0'")


def test_ways(server, page):
    choose(page, "off")
    wait(page, "document.querySelector('.readout').textContent.includes('Scores from')")
    row = weights(server, "d0", 0, scores=1)[3][1]
    check(abs(number(readout(page), "Scores from ") - min(row)) < 0.01 * max(map(abs, row)), f"scores: {readout(page)}")
    choose(page, "on")
    choose(page, "mean over queries")
    wait(page, "document.querySelector('.readout').textContent.includes('Mean over all queries')")
    mean = weights(server, "d0", 0, way="mean")[3][1][0]
    check(
        close(number(readout(page), "On the class token: "), 100 * mean, 5e-3),
        f"mean over queries {mean}: {readout(page)}",
    )
    choose(page, "rollout")
    wait(page, "document.querySelector('.readout').textContent.includes('Rollout from')")
    check(rows(page) == ["rollout"] and not offered_heads(page), f"a rollout has heads: {rows(page)}")
    rollout = saved_weights(page)
    check(len(rollout) == LAYERS * TOKENS and {head for _, head, *_ in rollout} == {""},
          f"the CSV of a rollout: {len(rollout)} rows")
    choose(page, "this query")
    wait(page, "document.querySelector('.readout').textContent.includes('From the class token')")
    check(rows(page) == ["all", "head 0", "head 1", "head 2"], f"rows of maps: {rows(page)}")
    check(offered_heads(page) == ["h0", "h2"] and "head 1" in readout(page), "the chosen head is lost")
    heads = [head for _, head, *_ in saved_weights(page)]
    check(sorted(set(heads)) == ["0", "1", "2", "mean"] and len(heads) == LAYERS * (HEADS + 1) * TOKENS,
          f"the CSV of a query: {len(heads)} rows")


def rows(page):
    """The words beside the rows of maps."""
    return page.evaluate(f"[...document.querySelectorAll('.grid > span')].slice({LAYERS + 1}).map(e => e.textContent)")


def offered_heads(page):
    """The heads that can be subtracted."""
    return page.evaluate("""[...document.querySelectorAll('select[aria-label="Subtract"] option')]
        .map(option => option.value).filter(value => value.startsWith('h'))""")


def saved_weights(page):
    """The rows of the CSV file, without their heading."""
    text = page.evaluate("""new Promise(done => {
        const real = save;
        save = (name, type, kept) => { save = real; done(kept); };
        document.querySelector('[aria-label="Download weights as CSV"]').click();
    })""")
    head, *rest = [line.split(",") for line in text.split()]
    check(head == ["node", "head", "key", "weight"], f"heading of the CSV: {head}")
    return rest


def test_changes(server, page):
    before = bars(page)
    for name, word in (("Remove head 1 of blocks.3.attn", "h3.1r"), ("Make it uniform", "h3.1u")):
        press(page, name)
        answered(page, word)
        expected = server.json("/api/run", model=MODEL, image="d0", changes=word)["top"]
        shown = bars(page)
        check(all(shown[str(e["class"])] == e["probability"] for e in expected), f"{word}: {shown} and {expected}")
        check(shown != before, f"{word} changes nothing")
    press(page, "blocks.3.attn head 1 uniform")
    answered(page, "")
    check(bars(page) == before, "a change that is undone leaves a trace")
    page.evaluate("document.querySelector('.branches').open = true")
    press(page, "blocks.0 MLP")
    answered(page, "b1")
    check(bars(page) != before, "removing a branch changes nothing")
    press(page, "Remove the class token")
    answered(page, "b1-t0")
    press(page, "Undo all")
    answered(page, "")
    check(bars(page) == before, "changes that are undone leave a trace")


def select(page, label, value):
    page.evaluate(f"""(select => {{ select.value = {json.dumps(value)};
        select.dispatchEvent(new Event("change")); }})(document.querySelector('select[aria-label="{label}"]'))""")


def relevance(page, **wanted):
    """Waits until the map of relevance has these data, and returns the words below it."""
    found = " && ".join(f"canvas.dataset.{name} === {json.dumps(value)}" for name, value in wanted.items())
    wait(page, f"(canvas => {found} && !document.querySelector('.relevance-view').hidden)("
         "document.querySelector('.relevance-view canvas'))")
    return page.evaluate("document.querySelector('.relevance-words').textContent")


def test_relevance(server, browser, page):
    """The block shows the maps of `attscope maps`; what does not apply is said."""
    image = os.path.join(images, "0.JPEG")
    methods = [info["name"] for info in server.json("/api/model", model=MODEL)["relevance"]]
    offered = page.evaluate("""[...document.querySelector('select[aria-label="Method"]').options].map(o => o.value)""")
    check(offered == ["", *methods] and "chefer" in methods, f"methods: {offered}")
    shown = command("maps", CHECKPOINT, image, "--output", os.path.join(folder, "maps"), "--show", "chefer,grad_cam",
                    "--json", "-")[0]
    for map_ in shown["maps"]:
        select(page, "Method", map_["name"])
        words = relevance(page, method=map_["name"], target=str(shown["class"]))
        served = server.json("/api/relevance", model=MODEL, image="d0", changes="", method=map_["name"], **{"class": -1})
        check(served["values"] == map_["values"] and served["logit"] == shown["logit"],
              f"{map_['name']}: the page's numbers are not the command's")
        best = max(range(len(map_["values"])), key=map_["values"].__getitem__)
        place = f"in row {best // GRID + 1}, column {best % GRID + 1} of {GRID} × {GRID}"
        check(place in words and close(number(words, "logit "), shown["logit"], 5e-3), f"{place}: {words}")
        check(close(number(words, "Largest: "), max(map_["values"]), 5e-3), f"largest value: {words}")
    other = page.evaluate("""document.querySelector('select[aria-label="Class"]').options[2].value""")
    select(page, "Class", other)
    relevance(page, method="grad_cam", target=other)
    press(page, "Remove head 1 of blocks.3.attn")
    answered(page, "h3.1r")
    relevance(page, method="grad_cam", target=other, changes="h3.1r")
    fragment = page.evaluate("location.hash")
    check("method=grad_cam" in fragment and f"class={other}" in fragment, f"the URL: {fragment}")
    press(page, "blocks.3.attn head 1 removed")
    answered(page, "")
    select(page, "Class", "")
    select(page, "Method", "")
    wait(page, "document.querySelector('.relevance-view').hidden")
    residual = server.open(browser, "/explore", "#image=d0&model=resnet20&method=chefer")
    wait(residual, "document.querySelector('.relevance .problem').textContent.includes('no attention layer')")
    select(residual, "Method", "integrated_gradients")
    words = relevance(residual, method="integrated_gradients")
    check("Orange speaks for the class" in words, f"signed values: {words}")
    check(residual.evaluate("document.querySelector('.relevance .problem').hidden"), "the refusal stays")


def test_state(server, browser, page):
    """The URL restores the state."""
    press(page, "Remove head 1 of blocks.3.attn")
    answered(page, "h3.1r")
    fragment = page.evaluate("location.hash")
    other = server.open(browser, "/explore", fragment)
    answered(other, "h3.1r")
    drawn(other, place="p0")
    check(bars(other) == bars(page) and readout(other) == readout(page), f"{fragment} restores another state")
    check(not other.complaints(), f"restored page: {other.complaints()}")
    press(page, "blocks.3.attn head 1 removed")
    answered(page, "")


def test_upload(server, page):
    document = page.call("DOM.getDocument")["root"]["nodeId"]
    node = page.call("DOM.querySelector", nodeId=document, selector=".drop input")["nodeId"]
    page.call("DOM.setFileInputFiles", nodeId=node, files=[upload])
    wait(page, "location.hash.includes('image=u0')")
    predicted = command("predict", CHECKPOINT, upload, "--json", "-")
    top = {str(entry["class"]): entry["probability"] for entry in predicted[0]["top"]}
    wait(page, f"document.querySelector('.answer li').dataset.class === '{predicted[0]['top'][0]['class']}'")
    check(bars(page) == top, f"upload: the page shows {bars(page)}, attscope predict {top}")
    bad = os.path.join(folder, "bad.jpg")
    with open(bad, "w") as file:
        file.write("no image")
    page.call("DOM.setFileInputFiles", nodeId=node, files=[bad])
    wait(page, "!document.querySelector('.problem').hidden")
    problem = page.evaluate("document.querySelector('.problem').textContent")
    check(problem == "bad.jpg: not a JPEG, PNG or WebP image", f"the sentence for a bad upload: {problem}")
    wait(page, f"!({SHOWN}).length")
    check("image=" not in page.evaluate("location.hash"), "a refused upload leaves the image before it")
    page.click("document.querySelector('.strip button')")
    wait(page, f"({SHOWN}).length === 3 && document.querySelector('.problem').hidden")


# What a side of the page shows of its image: the view, the maps, the prediction.
SHOWN = """[".view canvas", ".grid canvas", ".answer li"].filter(
    name => document.querySelector(name)?.getClientRects().length)"""
PROBLEM = "document.querySelector('.panel .problem')"


def test_unreadable(browser):
    """What cannot be read leaves nothing of what was shown before it: an image, weights, a checkpoint."""
    pictures, damaged = os.path.join(folder, "pictures"), os.path.join(folder, "broken.safetensors")
    os.makedirs(pictures)
    shutil.copy(photographs[0], os.path.join(pictures, "0.JPEG"))
    with open(photographs[1], "rb") as file, open(os.path.join(pictures, "1.JPEG"), "wb") as copy:
        copy.write(file.read(500))
    with open(damaged, "wb") as file:
        file.write(b"hello")
    with Server(attscope, [CHECKPOINT, damaged, "resnet20", "--images", pictures]) as server:
        page = server.open(browser, "/explore", f"#image=d0&model={MODEL}")
        drawn(page)
        check(len(page.evaluate(SHOWN)) == 3, f"shown: {page.evaluate(SHOWN)}")
        press_image = "document.querySelectorAll('.strip button')[%d]"
        page.click(press_image % 1)
        wait(page, f"{PROBLEM}.textContent.includes('1.JPEG')")
        check(page.evaluate(SHOWN) == [], f"beside an image that cannot be read: {page.evaluate(SHOWN)}")
        page.click(press_image % 0)
        wait(page, f"{PROBLEM}.hidden && ({SHOWN}).length === 3")
        page.evaluate("""window.realFetch = fetch;
            fetch = async (url, ...more) => (url.includes("api/weights") && url.includes("rollout")
                ? new Response('{"error": "no rollout"}', { status: 422 }) : realFetch(url, ...more))""")
        choose(page, "rollout")
        wait(page, f"{PROBLEM}.textContent === 'no rollout'")
        check(page.evaluate(SHOWN) == [".view canvas", ".answer li"], f"without weights: {page.evaluate(SHOWN)}")
        page.evaluate("document.querySelector('.branches').open = true")
        press(page, "blocks.0 MLP")
        answered(page, "b1")
        check(page.evaluate(f"{PROBLEM}.textContent") == "no rollout", "another answer hides why there are no weights")
        choose(page, "this query")
        wait(page, f"{PROBLEM}.hidden && ({SHOWN}).length === 3")
        choose_model = """(select => { select.value = "%s"; select.dispatchEvent(new Event("change")); })(
            document.querySelector('select[aria-label="Checkpoint"]'))"""
        page.evaluate(choose_model % "resnet20")
        wait(page, "document.querySelector('.panel').innerText.includes('no attention among tokens')")
        wait(page, f"({SHOWN}).includes('.answer li')")
        check(page.evaluate(SHOWN) == [".view canvas", ".answer li"], f"of a residual network: {page.evaluate(SHOWN)}")
        page.evaluate(choose_model % MODEL)
        wait(page, f"({SHOWN}).length === 3")
        page.evaluate(choose_model % "broken.safetensors")
        wait(page, f"{PROBLEM}.textContent.includes('a safetensors file begins with')")
        check(page.evaluate(SHOWN) == [], f"beside a damaged checkpoint: {page.evaluate(SHOWN)}")
        left = page.evaluate("[...document.querySelectorAll('.panel')].map(e => e.innerText).join()")
        check("Remove" not in left and "Opening" not in left, f"beside a damaged checkpoint: {left}")


def test_links(page):
    """The links to the other pages take the checkpoint and the image along."""
    links = page.evaluate("[...document.querySelectorAll('.pages a')].map(link => link.getAttribute('href'))")
    page.evaluate("document.querySelector('.pages a[href^=\"/network\"]').focus()")
    link = page.evaluate("document.querySelector('.pages a[href^=\"/network\"]').getAttribute('href')")
    check(len(links) == 6 and links[0] == "/", f"links to pages: {links}")
    check(link == f"/network#image=d0&model={MODEL}", f"link to the network: {link}")


def test_functions(page):
    """What the pages compute themselves: means of heads, tokens of a place, requests that are asked for together."""
    mean = page.evaluate("[...weightsOf([{heads: 2, tokens: 2}], 'row', new Float32Array([1, 2, 3, 6])).keys(0, -1)]")
    check(mean == [2, 4], f"the mean of two heads is {mean}")
    token = page.evaluate("tokenAt('1,1', {prefix: 1, grid_h: 2, grid_w: 2, queries: 1})")
    check(token == 0, f"a layer with one query has query {token}")
    run = page.evaluate("""(async () => {
        const seen = [], start = latest(async (value) => { seen.push(value); });
        await Promise.all([start(1), start(2), start(3)]);
        return seen;
    })()""")
    check(run == [1, 3], f"of the requests 1, 2 and 3 the page has sent {run}")


def test_comparison(server, browser):
    page = server.open(browser, "/explore", f"#image=d0&model={MODEL}&layer=3&head=1&model2={MODEL}&layer2=3&head2=1&minus2=other")
    answered(page, "", 1)
    drawn(page, 1)
    wait(page, "document.querySelectorAll('.readout')[1].textContent.includes('Difference')")
    check("from 0 to 0" in readout(page, 1), f"a checkpoint differs from itself: {readout(page, 1)}")
    check(page.evaluate("document.querySelectorAll('[data-side]').length") == 2, "two checkpoints are not side by side")
    page.evaluate("""(select => { select.value = "h0"; select.dispatchEvent(new Event("change")); })(
        document.querySelector('[data-side="0"] select[aria-label="Subtract"]'))""")
    wait(page, "document.querySelector('.readout').textContent.includes('Difference')")
    rows = weights(server, "d0", 0)[3]
    differences = [a - b for a, b in zip(rows[1][1:], rows[0][1:])]
    check(
        close(number(readout(page), "Difference: from "), min(differences), 5e-3),
        f"difference of heads: {readout(page)}",
    )
    check(not page.complaints(), f"comparison: {page.complaints()}")


# --- Network and lessons


def boxes(page):
    return page.evaluate("[...document.querySelectorAll('[data-box]')].map(box => box.dataset.box)")


def test_network(server, browser):
    page = server.open(browser, "/network", f"#model={MODEL}")
    wait(page, "Number(document.documentElement.dataset.times) > 0")
    check("blocks.3" in boxes(page) and "blocks.11" in boxes(page), f"folded blocks: {boxes(page)}")
    inspected = command("inspect", CHECKPOINT, "--json", "-")
    caption = page.evaluate("document.querySelector('.network-figure figcaption').textContent")
    parameters = sum(node["parameters"] for node in server.json("/api/graph", model=MODEL)["nodes"])
    check(
        parameters == inspected["param_count"] and "5.72 M parameters" in caption, f"{parameters} parameters; {caption}"
    )
    page.click("document.querySelector('[data-box=\"blocks.3\"]')")
    wait(page, "document.querySelector('[data-box=\"blocks.3.attn\"]')")
    check("blocks.3" not in boxes(page), "an open part is still shown as one box")
    page.evaluate("document.querySelector('[data-box=\"blocks.3.attn\"]').focus()")
    page.key("Enter")
    wait(
        page,
        "[...document.querySelectorAll('.operation')].some(box => box.textContent.includes('blocks.3.attnattention'))",
    )
    page.click(
        "[...document.querySelectorAll('.operation')].find(box => box.textContent.includes('blocks.3.attnattention'))"
    )
    link = page.evaluate("document.querySelector('.network-view .panel a').getAttribute('href')")
    check(link.startswith("/explore#") and "layer=3" in link, f"link to the maps: {link}")
    page.evaluate("""(select => { select.value = "entropy"; select.dispatchEvent(new Event("change")); })(
        document.querySelector('select[aria-label="Figures"]'))""")
    wait(page, "document.querySelector('.network').textContent.includes('entropy')")
    measured = command("measure", CHECKPOINT, os.path.join(images, "0.JPEG"), "--with", "entropy", "--json", "-")
    rows = {(m["node"], m.get("head", -1)): m["mean"] for m in measured["measurements"]}
    text = page.evaluate("document.querySelector('[data-box=\"blocks.5\"]').textContent")
    check(close(number(text, "entropy mean "), rows["blocks.5.attn", -1], 5e-3), f"entropy of blocks.5: {text}")
    press(page, "▾ blocks.3")
    wait(page, "document.querySelector('[data-box=\"blocks.3\"]')")
    check(not page.complaints(), f"network: {page.complaints()}")


VALUES = """
[...document.querySelectorAll('.lesson-figure')[%d].querySelectorAll('%s')].map(mark => Number(mark.dataset.value))
"""


def measured_means(instrument, statistic):
    """The means of a statistic over all heads of each node, as the command prints them."""
    image = os.path.join(images, "0.JPEG")
    rows = command("measure", CHECKPOINT, image, "--with", instrument, "--json", "-")["measurements"]
    return [m["mean"] for m in rows if m["statistic"] == statistic and m["node"] and m.get("head", -1) < 0]


def probability(server, wanted, changes):
    """The probability of a class: its softmax over all logits."""
    logits = server.json("/api/run", model=MODEL, image="d0", changes=changes)["logits"]
    return math.exp(logits[int(wanted)]) / sum(map(math.exp, logits))


def check_list(what, shown, expected, count):
    same = all(close(a, b, 1e-6) for a, b in zip(shown, expected))
    check(len(shown) == len(expected) == count and count > 0 and same, f"{what}: {shown} and {expected}")


def test_lessons(server, browser):
    page = server.open(browser, "/lessons", f"#model={MODEL}&image=d0")
    for i, lesson in enumerate(LESSONS):
        choose(page, f"{i + 1} {LESSONS[lesson]}")
        wait(page, f"document.querySelector('.lesson-figures').dataset.ready === '{lesson}'")
        check(
            page.evaluate("document.querySelectorAll('.lesson-figures figure').length") >= 1, f"{lesson} has no figure"
        )
        check(page.evaluate("document.querySelector('.problem').hidden"), f"{lesson} has a problem")
        text = page.evaluate("document.getElementById('lessons').innerText")
        check("undefined" not in text and "NaN" not in text, f"{lesson} has no words for a value: {text}")
        check(("does not refute" in text) == (lesson == "rank"), f"{lesson}: why MLPs can speed up the collapse")
        if lesson == "convolution":
            press(page, "Play")
            wait(page, "document.querySelector('.shift-sum').dataset.step === '2'")
        if lesson == "rank":
            for key, series in (("attention", "attention only"), ("both", "attention + skip + MLP")):
                expected = measured_means("collapse", f"composite {key}")
                shown = page.evaluate(VALUES % (0, f"[data-series=\"{series}\"] .mark"))
                check_list(f"residuals {series}", shown, expected, len(expected))
        if lesson == "uniform":
            check_list("entropy", page.evaluate(VALUES % (0, ".bar")), measured_means("entropy", "mean"), LAYERS)
            best = str(server.json("/api/run", model=MODEL, image="d0", changes="")["top"][0]["class"])
            expected = [probability(server, best, "-".join(f"h{layer}.{h}u" for h in range(3))) for layer in range(LAYERS)]
            check_list("uniform layers", page.evaluate(VALUES % (1, ".bar")), expected, LAYERS)
    check_list("NSI", page.evaluate(VALUES % (0, ".bar")), measured_means("nsi", "attention"), 2 * LAYERS)
    check(not page.complaints(), f"lessons: {page.complaints()}")


def test_residual(server, browser):
    """The menu of instruments and the lessons say what a residual network lacks, without a request that fails."""
    page = server.open(browser, "/network", "#model=resnet20&image=d0&with=entropy")
    wait(page, "Number(document.documentElement.dataset.times) > 0 && !document.querySelector('.problem').hidden")
    options = page.evaluate("""[...document.querySelector('select[aria-label="Figures"]').options].map(
        option => [option.value, option.disabled, option.title])""")
    offered = [name for name, disabled, _ in options if not disabled]
    check(offered == ["", "nsi", "tns", "tns_blocks"], f"instruments for a residual network: {offered}")
    check([name for name, _, _ in options[: len(offered)]] == offered, f"instruments without use come first: {options}")
    reasons = [reason for _, disabled, reason in options if disabled]
    check(reasons and all("nothing to observe" in reason for reason in reasons), f"reasons: {reasons}")
    check("no attention" in page.evaluate("document.querySelector('.problem').textContent"), "figures without a reason")
    check(not page.complaints(), f"network of a residual network: {page.complaints()}")
    page = server.open(browser, "/lessons", "#model=resnet20&image=d0")
    for i, lesson in enumerate(LESSONS):
        choose(page, f"{i + 1} {LESSONS[lesson]}")
        wait(page, f"document.querySelector('.lesson-figures').dataset.ready === '{lesson}'")
        refused = not page.evaluate("document.querySelector('.problem').hidden")
        check(refused == (lesson != "stiffness"), f"{lesson} of a residual network: refused is {refused}")
    check(not page.complaints(), f"lessons of a residual network: {page.complaints()}")


def test_damaged(browser):
    """A damaged checkpoint shows its sentence on all pages, and the choice of another one."""
    damaged = os.path.join(folder, "damaged.safetensors")
    with open(damaged, "wb") as file:
        file.write(b"hello")
    with Server(attscope, [damaged, "resnet20", "--images", images]) as server:
        for path in PAGES:
            page = server.open(browser, path, "#model=damaged.safetensors&image=d0")
            wait(page, "document.body.innerText.includes('a safetensors file begins with')")
            choices = page.evaluate(
                "[...document.querySelectorAll('select[aria-label=Checkpoint] option')].map(option => option.value)"
            )
            check(choices == ["damaged.safetensors", "resnet20"], f"{path}: the choice beside a damaged checkpoint: {choices}")


def test_widths(server, browser):
    """No page scrolls sideways on a phone, and all controls have names."""
    for path in PAGES:
        for dark in (False, True):
            page = server.open(browser, path, f"#model={MODEL}&image=d0", width=390, height=844, dark=dark)
            page.wait_for_layout()
            wide = page.evaluate("document.documentElement.scrollWidth")
            check(wide <= 390, f"{path} is {wide} pixels wide on a phone")
            nameless = page.evaluate(
                """[...document.querySelectorAll('button, input, select, [role=button], [role=img]')]
                .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.closest('label')?.textContent.trim()))
                .map(e => e.outerHTML)"""
            )
            check(not nameless, f"{path}: controls without names: {nameless}")
            check(not page.complaints(), f"{path} on a phone: {page.complaints()}")


with Server(attscope, [CHECKPOINT, "resnet20", "--images", images]) as running, Browser() as chromium:
    explore = running.open(chromium, "/explore")
    answered(explore, "")
    drawn(explore)
    test_numbers(running, explore)
    test_functions(explore)
    test_links(explore)
    test_query(running, explore)
    test_ways(running, explore)
    test_changes(running, explore)
    test_relevance(running, chromium, explore)
    test_state(running, chromium, explore)
    check(not explore.complaints(), f"explore: {explore.complaints()}")
    test_upload(running, explore)
    test_comparison(running, chromium)
    test_network(running, chromium)
    test_lessons(running, chromium)
    test_residual(running, chromium)
    test_widths(running, chromium)
    test_damaged(chromium)
    test_unreadable(chromium)
finish()
