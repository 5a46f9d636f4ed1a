"""Attention maps, and figures of heads, in a report."""

import array
import itertools
import json
import math
import os
import re
import xml.etree.ElementTree

from checks import check
from reports import box_of, folder, near, open_report, press, text_of, write_records


# --- maps -------------------------------------------------------------------------------------------------------------

TOKENS, HEADS = 5, 2
READOUT, CAPTION = "#maps .readout", "#maps figcaption"


def weights(image, head, query):
    """Returns the attention weights that tests/lab/report/fixture.h writes; head -1: the mean of all heads."""
    if head < 0:
        of_heads = [weights(image, h, query) for h in range(HEADS)]
        return [sum(column) / HEADS for column in zip(*of_heads)]
    row = [100000 if query == 0 else 1 + image]
    row += [8 if (query + head) % (TOKENS - 1) == p else p for p in range(TOKENS - 1)]
    return [w / sum(row) for w in row]


def entropy(row):
    return -sum(a * math.log(a) for a in row if a > 0)


# Returns the texts for each of [image, layer, head, query].
READ_OUT = """(asked => {
    const atlas = atlasOf(runs[0]);
    return asked.map(([image, layer, head, query]) =>
        describeRow(atlas, {image, layer}, head, atlas.figures(image, layer, head, query), query)
            .map(part => part.textContent ?? part).join(""));
})"""
NUMBER = r"([-−+.\de]+)"
SHARE = r"((?:[<>] )?[-−+.\de]+)"
WORDS = re.compile(
    rf"Strongest patch: row (\d+), column (\d+) \({SHARE} %\)\. On the class token: {SHARE} %\. "
    rf"On itself: {SHARE} %\. Entropy(?: of the mean map)?: {NUMBER} of at most"
)


def correct(printed, true):
    """Whether the printed value is the true one to three significant digits, within the precision of f32, or says that a
    share in per cent is nearly 0 or 100."""
    if printed[0] in "<>":
        return printed == "< 0.001" and 0 < true < 0.001 or printed == "> 99.9" and 99.95 <= true < 100
    value = float(printed.replace("−", "-"))
    return any(value == float(f"{true * (1 + error):.3g}") for error in (-2e-7, 0, 2e-7))


def check_readout(words, row, query, side, what):
    found = WORDS.search(words)
    if not found:
        return check(False, f"{what}: {words}")
    line, column = int(found[1]) - 1, int(found[2]) - 1
    largest = max(row[1:])
    check(row[1 + side * line + column] >= largest * (1 - 1e-6), f"{what}: another patch has {largest}: {words}")
    for printed, true in zip(found.groups()[2:], (100 * largest, 100 * row[0], 100 * row[query], entropy(row))):
        check(correct(printed, true), f"{what}: {printed} is printed, {true} is right")


def check_mean_entropy(words, image, head, query):
    """For the mean map, the mean of the heads' entropies is shown beside the entropy of the mean map, both with
    labels."""
    found = re.search(rf"mean of the heads' entropies: {NUMBER}\)", words)
    check((found is not None) == (head < 0), f"head {head}: {words}")
    check(("Entropy of the mean map" in words) == (head < 0), f"head {head}: {words}")
    if found:
        true = sum(entropy(weights(image, h, query)) for h in range(HEADS)) / HEADS
        check(correct(found[1], true), f"head {head}, query {query}: {found[1]} is printed, {true} is right")


def choose_by_entropy(page):
    """The buttons show the rows of the first image with the lowest, median and highest entropy. All layers are
    alike."""
    rows = sorted(entropy(weights(0, head, query)) for head in range(HEADS) for query in range(TOKENS))
    for name, true in {"lowest": rows[0], "median": rows[len(rows) // 2], "highest": rows[-1]}.items():
        page.evaluate(f"""[...document.querySelectorAll('#maps .tools button')]
            .find(button => button.textContent === "Entropy: {name}").click()""")
        told = text_of(page, READOUT)
        found = re.search(rf"Entropy: {NUMBER} of at most", told)
        check(found is not None and correct(found[1], true), f"{name} entropy, should be {true}: {told}")


def shows_image(page, begin, what):
    told = text_of(page, CAPTION)
    check(told.startswith(begin), f"{what}: {told}")


def read_maps(page):
    asked = list(itertools.product(range(3), range(3), range(-1, HEADS), range(TOKENS)))
    for (image, layer, head, query), words in zip(asked, page.evaluate(f"{READ_OUT}({json.dumps(asked)})")):
        row = weights(image, head, query)
        check_readout(words, row, query, 2, f"image {image}, head {head}, query {query}")
        check_mean_entropy(words, image, head, query)
        got = page.evaluate(f"[...atlasOf(runs[0]).row({image}, {layer}, {head}, {query})]")
        check(len(got) == 4 and all(abs(a - b) <= max(row[1:]) / 255 for a, b in zip(got, row[1:])),
              f"colours of image {image}, head {head}, query {query}: {got}")
    box = box_of(page, "#maps .view canvas")
    for query, (x, y) in {1: (0.25, 0.25), 2: (0.75, 0.25), 3: (0.25, 0.75), 4: (0.75, 0.75)}.items():
        page.move(box[0] + x * box[2], box[1] + y * box[3])
        page.wait_for_layout()
        told = text_of(page, READOUT)
        check(f"row {(query - 1) // 2 + 1}, column {(query - 1) % 2 + 1}" in told, f"query {query}: {told}")
        check_readout(told, weights(0, -1, query), query, 2, f"query {query} pointed at")
    page.evaluate("document.querySelector('#maps .view canvas').focus()")
    query = "document.querySelector('#maps .view canvas').dataset.query"
    page.move(1, 1)
    page.key("c")
    check(page.evaluate(query) == "0" and "the class token" in text_of(page, READOUT),
          "C does not choose the class token")
    page.key("ArrowRight")
    page.key("ArrowDown")
    check(page.evaluate(query) == "3", f"arrow keys move the query: {page.evaluate(query)}")
    press(page, "#maps .strip button", 1)
    told = text_of(page, CAPTION)
    check(told == "dog/<b>.png · <b>dog</b>, predicted: cat (51.2 %). Next: <b>dog</b> 25 %.", f"image 2: {told}")
    press(page, "#maps .choice input", 1)
    shows_image(page, "dog/<b>.png · ", "the same image of another run")
    press(page, "#maps .strip button", 2)
    press(page, "#maps .choice input")
    told = text_of(page, CAPTION)
    check(told == "c.png · predicted: class 6 (50 %). Next: cat 30 %.", f"an image without a class: {told}")
    press(page, "#maps .strip button")
    shows_image(page, "cat/a.png · cat, recognised (90 %).", "image 1")
    # Run 1 showed c.png last. An image of another data set is another image, whatever its name.
    page.evaluate("runs[1].measured_begin.data = 'elsewhere'")
    press(page, "#maps .choice input", 1)
    shows_image(page, "c.png · ", "an image of other data")
    page.evaluate("runs[0].measured_begin.contents = runs[1].measured_begin.contents = 'same'")
    press(page, "#maps .choice input")
    shows_image(page, "c.png · ", "the same images elsewhere")
    press(page, "#maps .strip button")
    shows_image(page, "cat/a.png · ", "image 1 again")
    page.evaluate("delete runs[1].measured_begin.data")
    page.evaluate("for (const run of runs) delete run.measured_begin?.contents")
    thumbs = page.evaluate("document.querySelectorAll('#maps .grid canvas').length")
    check(thumbs == 3 * 3, f"{thumbs} small maps for 3 layers of 2 heads and all together")
    seen = page.evaluate("""(() => {
        const canvas = document.querySelector("#maps .view canvas");
        const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
    })()""")
    check(seen > 10, "the view is not drawn")
    choose_by_entropy(page)
    shades = """(strength => {
        const slider = document.querySelector("#maps input[type=range]");
        slider.value = strength;
        slider.dispatchEvent(new Event("input"));
        const canvas = document.querySelector("#maps .view canvas");
        const copy = document.createElement("canvas");
        copy.width = copy.height = 60;
        const context = copy.getContext("2d", {willReadFrequently: true});
        context.drawImage(canvas, 0, 0, 60, 60);
        const {data} = context.getImageData(0, 0, 60, 60);
        return d3.sum(data.filter((_, i) => i % 4 < 3));
    })"""
    alone, covered = page.evaluate(f"{shades}(0)"), page.evaluate(f"{shades}(100)")
    between = page.evaluate(f"{shades}(40)")
    check(alone != covered and min(alone, covered) < between < max(alone, covered),
          "the slider does not mix image and attention")


SHOW_OBLONG = """((h, w, grid_h, grid_w) => {
    const {maps} = runs[0];
    const nodes = maps.nodes.map(node => ({...node, grid_h, grid_w, window_h: grid_h, window_w: grid_w}));
    const made = explorer({...runs[0], maps: {...maps, nodes, image: {...maps.image, h, w}}}, {});
    document.querySelector("#maps .panel").replaceWith(made.panel);
    made.follow();
    const view = made.panel.querySelector(".view canvas");
    view.scrollIntoView({block: "center", behavior: "instant"});
    const box = (canvas) => {
        const {left, top, width, height} = canvas.getBoundingClientRect();
        return [left, top, width, height];
    };
    return [box(view), [...made.panel.querySelectorAll("canvas")].map(box), view.parentElement.clientWidth];
})"""


def read_oblong_maps(page):
    """Shows images of 4 x 16 and 16 x 4 pixels with patches of 4 x 4, 1 x 16, 2 x 8 and others."""
    for (h, w), (rows, columns) in itertools.product(((4, 16), (16, 4)), ((1, 4), (2, 2), (4, 1))):
        what = f"{rows} x {columns} patches of an image of {h} x {w}"
        view, boxes, width = page.evaluate(f"{SHOW_OBLONG}({h}, {w}, {rows}, {columns})")
        check(all(near(box[2] / box[3], w / h, 0.1) for box in boxes), f"{what}: proportions of the pictures: {boxes}")
        check(near(max(view[2:]), width, 0.01), f"{what}: the view is {view[2:]} in a column of {width}")
        for row, column in itertools.product(range(rows), range(columns)):
            page.move(view[0] + (column + 0.5) / columns * view[2], view[1] + (row + 0.5) / rows * view[3])
            page.wait_for_layout()
            told = text_of(page, READOUT)
            check(f"From the patch in row {row + 1}, column {column + 1} " in told, f"{what}: {told}")


def read_windows(page):
    """Compares the patches that a query sees with the definition in attscope/maps.h."""
    grid_h, grid_w, window_h, window_w, shift_h, shift_w, prefix = 4, 6, 2, 3, 1, 2, 0
    node = dict(prefix=prefix, grid_h=grid_h, grid_w=grid_w, window_h=window_h, window_w=window_w, shift_h=shift_h,
                shift_w=shift_w)
    for query in range(grid_h * grid_w):
        seen = page.evaluate(f"patchesSeen({json.dumps(node)}, {query})")

        def window(patch):
            y, x = (patch // grid_w - shift_h) % grid_h, (patch % grid_w - shift_w) % grid_w
            return (y // window_h, x // window_w), y % window_h * window_w + x % window_w

        wanted = sorted((window(p)[1], p) for p in range(grid_h * grid_w) if window(p)[0] == window(query)[0])
        check(seen == [p for _, p in wanted], f"query {query} sees {seen}, not {wanted}")
    whole = {**node, "window_h": grid_h, "window_w": grid_w, "shift_h": 0, "shift_w": 0, "prefix": 2}
    for query in (0, 2, 25):
        seen = page.evaluate(f"patchesSeen({json.dumps(whole)}, {query})")
        check(seen == list(range(grid_h * grid_w)), f"without windows, query {query} sees {seen}")
    coarse = {**whole, "grid_h": 2, "grid_w": 3, "prefix": 0}
    for query, same in {0: 0, 1: 0, 2: 0, 3: 0, 4: 1, 10: 1, 14: 3, 25: 5}.items():
        got = page.evaluate(f"sameToken({query}, {json.dumps(whole)}, {json.dumps(coarse)})")
        check(got == same, f"token {query} is at the place of {got} of the coarser grid, not of {same}")


def read_deit(browser):
    """Compares every query of DeiT-Tiny on a photograph with the exact maps, which make_runs writes beside the rounded
    ones."""
    layers, heads, tokens = 12, 3, 197
    path = os.path.join(folder, "deit", "maps.f32")
    if not os.path.exists(path):
        print("skipped: the queries of DeiT-Tiny; ATT_SHARED has no DeiT-Tiny or no photograph")
        return
    full = array.array("f")
    with open(path, "rb") as file:
        full.frombytes(file.read())
    check(len(full) == layers * heads * tokens**2, f"{len(full)} weights")
    page = open_report(browser, ["deit"], "deit.html")
    asked = list(itertools.product([0], range(layers), range(-1, heads), range(tokens)))
    for (_, layer, head, query), words in zip(asked, page.evaluate(f"{READ_OUT}({json.dumps(asked)})")):
        some = range(heads) if head < 0 else [head]
        rows = [full[((layer * heads + h) * tokens + query) * tokens :][:tokens] for h in some]
        row = rows[0] if head >= 0 else [sum(column) / heads for column in zip(*rows)]
        check_readout(words, row, query, 14, f"DeiT-Tiny, layer {layer}, head {head}, query {query}")
    words = page.evaluate(f"{READ_OUT}([[0, 1, 0, 0]])[0]")
    check("Entropy: 0.681 of at most" in words, f"the class token in blocks.1, head 0: {words}")


# --- heads ------------------------------------------------------------------------------------------------------------


def held(weights, share):
    """Returns the cells that hold a share of the weights, the largest first."""
    found, total = set(), 0
    for cell in sorted(range(len(weights)), key=lambda i: (-weights[i], i)):
        if total >= share * sum(weights) * (1 - 1e-6):
            break
        found.add(cell)
        total += weights[cell]
    return found


def outline(cells, width):
    """Returns the sides of the border of a set of cells, each as (y, x, whether it is horizontal)."""
    sides = [side for c in cells for y, x in [divmod(c, width)]
             for side in ((y, x, True), (y + 1, x, True), (y, x, False), (y, x + 1, False))]
    return {side for side in sides if sides.count(side) == 1}


READ_CONTOURS = """
[...document.querySelectorAll("#contours figure")].map(figure => [figure.querySelector("h3").textContent,
    [...figure.querySelectorAll("svg.shifts g")].map(g => [Number(g.dataset.head),
        [...g.querySelectorAll("path")].map(path => [path.getAttribute("class"), path.getAttribute("d")])]),
    [...figure.querySelectorAll(".key span")].map(span => span.textContent)])
"""
SIDES = re.compile(r"M(\d+) (\d+)([hv])1")


def read_contours(page):
    """The contours of the mean over the images of the map of the query in the middle: token 4, of a grid of 2 x 2."""
    drawn = page.evaluate(READ_CONTOURS)
    check([name for name, *_ in drawn] == [f"blocks.{i}.attn" for i in range(3)], f"layers {[d[0] for d in drawn]}")
    for layer, (name, heads, words) in enumerate(drawn):
        maps, centres = {}, {}
        for head in range(HEADS):
            rows = [weights(image, head, 4)[1:] for image in range(3)]
            maps[head] = [sum(column) / 3 for column in zip(*rows)]
            total = sum(maps[head])
            centres[head] = [sum(w * divmod(p, 2)[axis] for p, w in enumerate(maps[head])) / total - 1
                             for axis in (0, 1)]
            got = page.evaluate(f"[...centralMaps(runs[0].maps.nodes[{layer}])[{head}]]")
            check(all(near(a, b, 1e-5) for a, b in zip(got, maps[head])), f"{name}, head {head}: {got}, {maps[head]}")
        order = sorted(maps, key=lambda head: (round(centres[head][0]), centres[head][1]))
        check([head for head, _ in heads] == order, f"{name}: heads {[h for h, _ in heads]} in place of {order}")
        for (head, paths), text in zip(heads, words):
            found = re.fullmatch(rf"head {head}: row {NUMBER}, column {NUMBER}", text)
            check(found and all(near(float(found[i + 1].replace("−", "-")), centres[head][i], 1e-2) for i in (0, 1)),
                  f"{name}: {text}, the centre is {centres[head]}")
            for share, (kind, path) in zip((90, 50, 10), paths):
                sides = {(int(y), int(x), way == "h") for x, y, way in SIDES.findall(path)}
                check(kind == f"held-{share}", f"{name}, head {head}: {kind}")
                check(sides == outline(held(maps[head], share / 100), 2), f"{name}, head {head}, {share} %: {path}")


READ_CENTRES = """
[...document.querySelectorAll("#centres figure")].map(figure => [figure.querySelector("h3").textContent,
    [...figure.querySelectorAll("svg.shifts g")].map(g => [Number(g.dataset.head),
        g.querySelector("path").getAttribute("d"), ["cx", "cy"].map(at =>
            Number(g.querySelector("circle").getAttribute(at)))])])
"""
READ_ELLIPSES = """
Object.fromEntries([...document.querySelectorAll("#centres g[data-head='0'] path")].map(path =>
    [path.getAttribute("class"), path.getAttribute("d")]))
"""


def check_moving_contours(page, paths):
    """Head 0 has all moments, so that it has ellipses; at the chosen update their points have the distance of their
    share, in the metric of the covariance, from the centre."""
    for k in (2, 0):
        page.evaluate("(() => { const slider = document.querySelector('#centres input[type=range]');"
                      f" slider.value = {k}; slider.dispatchEvent(new Event('input')); }})()")
        drawn = page.evaluate(READ_ELLIPSES)
        check(sorted(drawn) == ["held-10", "held-50", "held-90", "track"], f"contours at update {k}: {sorted(drawn)}")
        row, column = paths[0][k]
        for share in (10, 50, 90):
            distances = []
            for point in re.split("[ML]", drawn[f"held-{share}"].rstrip("Z"))[1:]:
                x, y = map(float, point.split(","))
                a, b = (y - row) / (3 - k), (x - column) / 2
                distances.append((a * a - 2 * 0.6 * a * b + b * b) / (1 - 0.6 ** 2))
            wanted = -2 * math.log(1 - share / 100)
            check(len(distances) == 64 and all(abs(d / wanted - 1) < 1e-2 for d in distances),
                  f"held-{share} at update {k}: {min(distances)} to {max(distances)}, expected {wanted}")
    check(text_of(page, "#centres output") == "update 10, epoch 0", "the slider's label")
    check(page.evaluate("document.querySelectorAll('#centres g[data-head=\"1\"] path').length") == 1,
          "a head without spreads has contours")
    check(page.evaluate("document.querySelectorAll('#centres figure .export').length") == 1,
          "a picture without a button")
    picture = page.evaluate("svgOf(document.querySelector('#centres figure'), {title: 't'})")
    saved = xml.etree.ElementTree.fromstring(picture)
    tag = "{http://www.w3.org/2000/svg}"
    lines = [path for path in saved.iter(f"{tag}path") if path.get("vector-effect") == "non-scaling-stroke"]
    colours = {group.get("stroke") for group in saved.iter(f"{tag}g") if group.get("stroke", "none").startswith("rgb(")}
    check(len(lines) == 6 and len(colours) == 2,
          f"the saved picture has a cross, two paths and three ellipses, found {len(lines)} lines, colours {colours}")
    texts = [text.text for text in saved.iter(f"{tag}text")]
    check(texts[0] == "t" and sum(text.startswith("head ") for text in texts) == 2,
          f"texts of the saved picture: {texts}")


def read_centres(browser):
    """The centres of single heads over a training run; the charts of the development stay those of all heads."""
    paths = {0: [(1, -2), (0.5, -1), (0, 0.5)], 1: [(-3, 0), (-2, 1), (-2, 2)]}
    written = [{"event": "run_begin"}]
    for k in range(3):
        figures = [("row", head, path[k][0]) for head, path in paths.items()]
        figures += [("column", head, path[k][1]) for head, path in paths.items()]
        figures += [("row", None, 0.125 * k), ("row spread", None, 3)]
        figures += [("row spread", 0, 3 - k), ("column spread", 0, 2), ("correlation", 0, 0.6)]
        keys = {"instrument": "head_shape", "node": "blocks.0.attn", "deviation": 0.1, "n": 8}
        found = [keys | {"statistic": s, "mean": mean} | ({} if head is None else {"head": head})
                 for s, head, mean in figures]
        written.append({"event": "measure", "step": 10 * (k + 1), "epoch": 0, "measurements": found})
    write_records("moving", "metrics.jsonl", written)
    page = open_report(browser, ["moving"], "moving.html")
    drawn = page.evaluate(READ_CENTRES)
    check([name for name, _ in drawn] == ["blocks.0.attn"], f"layers with centres: {drawn}")
    check([head for head, *_ in drawn[0][1]] == [1, 0], f"heads by their last centre: {drawn}")
    for head, path, last in drawn[0][1]:
        points = [tuple(map(float, point.split(","))) for point in re.split("[ML]", path)[1:]]
        check(points == [(x, y) for y, x in paths[head]], f"head {head}: {path}")
        check(last == [paths[head][2][1], paths[head][2][0]], f"head {head} ends at {last}")
    check_moving_contours(page, paths)
    kept = page.evaluate("runs[0].development.series.map(s => [s.statistic, s.head])")
    wanted = [["row", 0], ["row", 1], ["column", 0], ["column", 1], ["row", -1], ["row spread", -1]]
    wanted += [["row spread", 0], ["column spread", 0], ["correlation", 0]]
    check(kept == wanted, f"series of a training run: {kept}")
