"""paths.py ATTSCOPE FOLDER: writes a run with figures of paths, opens its report, and checks charts and picture."""

import math
import os
import xml.etree.ElementTree

from browser import Browser
from checks import check, finish
from reports import folder, report, write_records

PATHS = {"0.path.0-0": 0.9, "1.path.2-0": 0.5, "1.path.0-1": 0.4, "2.path.1-3": 0.01}


def figure(instrument, node, statistic, mean):
    return {"instrument": instrument, "node": node, "statistic": statistic, "mean": mean, "deviation": 0.001, "n": 4}


CHAINS = {1: [0.5, 0.6, 0.7, 0.8, 0.9], 2: [1e-4, 1e-3, 1e-2, 0.1, 0.2]}
QUANTILES = ["minimum", "quantile 0.25", "median", "quantile 0.75", "maximum"]


SURFACE = {(m1, m2): 0.8 - 0.3 * m1 - 0.2 * m2 for m1 in (0.5, 1.5) for m2 in (0.25, 0.75, 1.25)}


def figures():
    for order, factor in {"formula": 1, "code": 0.5}.items():
        for k, values in CHAINS.items():
            for quantile, value in zip(QUANTILES, values):
                yield figure("head_chains", f"length.{k}", f"{quantile} {order}", factor * value)
    for block in (0, 1):
        for statistic, value in {"on grid": 0.9, "row": 0.5}.items():
            yield figure("head_shape", f"blocks.{block}.attn", statistic, value)
        yield {**figure("collapse", f"blocks.{block}.attn", "composite mlp", 0.01), "deviation": 0.002 + 0.1 * block}
    yield figure("collapse", "", "rate mlp", 0.5)
    for m1 in (0.5, 1.5):
        for m2 in (0.25, 0.75, 1.25):
            yield figure("stiff_surface", f"M1={m1:g} M2={m2:g}", "delta", SURFACE[m1, m2])
            yield figure("stiff_surface", f"M1={m1:g} M2={m2:g}", "p", SURFACE[m1, m2] / 4)
    for statistic, value in {"tns by grid": 0.7, "tns": 0.75, "outside": 0}.items():
        yield figure("stiff_surface", "", statistic, value)
    for statistic, values in {"norm": [0.5, 0.05, 0.0005], "share": [0.4, 0.1, -0.02], "composite": [0.9, 0.3, 0.001]}.items():
        for length, value in enumerate(values):
            yield figure("paths", f"length.{length}", statistic, value)
        yield figure("paths", "biases", statistic, 0.25)
        yield figure("paths", "others", statistic, 0.75)
    for length, value in enumerate([1, 6, 9]):
        yield figure("paths", f"length.{length}", "paths", value)
    yield figure("paths", "", "unexplained", 1.5e-7)
    for length, value in enumerate([0.9, 0.45, 0.01]):
        yield figure("path_samples", f"length.{length}", "composite", value)
    for name, value in PATHS.items():
        yield figure("path_samples", f"length.{name}", "composite", value)


def write_events(name, file, events):
    write_records(name, file, [{"epoch": 0, "step": 0, "seconds": 1.0, **event} for event in events])


def write_run(name, **facts):
    write_events(name, "measure.jsonl", [
        {"event": "run_begin", "model": "vit_tiny_patch16_224", **facts},
        {"event": "measure", "split": "all", "images": 4, "nodes": "*", "measurements": list(figures())},
        {"event": "run_end", "status": "OK"},
    ])


def write_wide_run():
    """A run that was trained in f32 and measured in f64."""
    write_run("wide", precision="f64")
    write_events("wide", "metrics.jsonl", [{"event": "run_begin", "model": "vit_tiny_patch16_224"},
                                           {"event": "run_end", "status": "OK"}])
    with open(os.path.join(folder, "wide", "args.yaml"), "w", encoding="utf-8") as file:
        file.write("model: vit_tiny_patch16_224\namp: false\n")


READ = """
({
    charts: [...document.querySelectorAll("#paths figure")].filter(f => f.querySelector("svg.chart")).map(figure => ({
        title: figure.querySelector("h3").textContent,
        marks: [...figure.querySelectorAll(".series .mark")].map(m => [Number(m.dataset.x), Number(m.dataset.value),
            m.transform.baseVal.consolidate().matrix.f]),
        dots: [...figure.querySelectorAll(":scope > svg .head-dot")].map(d => Number(d.dataset.value)),
    })),
    lines: [...document.querySelectorAll("#paths .path-line")].map(l => [l.dataset.path, l.getAttribute("d")]),
    nodes: document.querySelectorAll("#paths .path-node").length,
    boxes: [...document.querySelectorAll("#head_chains figure")].map(figure => [...figure.querySelectorAll(".box")].map(
        box => [Number(box.dataset.x), box.dataset.box.split(" ").map(Number),
            ["y", "height"].map(name => Number(box.getAttribute(name)))])),
    chains: [...document.querySelectorAll("#head_chains tbody tr")].map(row => [...row.cells].map(cell =>
        cell.dataset.value ?? cell.textContent)),
    shape: [...document.querySelectorAll("#head_shape h3")].map(title => title.textContent),
    blocks: [...document.querySelectorAll("#head_shape figure")].map(figure =>
        [...figure.querySelectorAll(".axis.x .tick text")].map(tick => tick.textContent)),
    bars: [...document.querySelectorAll("#collapse .whisker[y1]")].filter(bar => !bar.closest(".key")).map(bar => [
        Number(bar.getAttribute("y1")), Number(bar.getAttribute("y2"))]),
    means: [...document.querySelectorAll("#collapse .series .mark")].map(m => m.transform.baseVal.consolidate().matrix.f),
    surfaces: [...document.querySelectorAll("#stiff_surface figure")].map(figure => ({
        title: figure.querySelector("h3").textContent,
        caption: figure.querySelector("figcaption").textContent,
        ticks: [...figure.querySelectorAll(".axis")].map(axis =>
            Number([...axis.querySelectorAll(".tick")].at(-1).textContent)),
        cells: [...figure.querySelectorAll("rect.cell")].map(cell => [Number(cell.dataset.value),
            ...["x", "y", "width", "height"].map(name => Number(cell.getAttribute(name)))]),
    })),
    integrals: [...document.querySelectorAll("#stiff_surface tbody td")].map(cell => cell.dataset.value),
    collapse: document.querySelector("#collapse").textContent,
    layers: [...document.querySelectorAll(".path-picture .label")].map(label => label.textContent),
    card: document.querySelector(".card").textContent,
    rest: [...document.querySelectorAll("#paths .headline td")].map(cell => cell.dataset.value),
    sections: [...document.querySelectorAll("main > section")].map(section => section.id),
})
"""


def check_charts(charts):
    titles = [chart["title"] for chart in charts]
    check(len(charts) == 5, f"five charts, found {titles}")
    by_title = {chart["title"]: chart for chart in charts}
    norm = by_title["Norm of the contribution, relative to the output"]["marks"]
    check([mark[:2] for mark in norm] == [[0, 0.5], [1, 0.05], [2, 0.0005]], f"norms: {norm}")
    # On a logarithmic axis, a factor of 100 takes twice the height of a factor of 10.
    heights = [mark[2] for mark in norm]
    check(abs((heights[2] - heights[1]) / (heights[1] - heights[0]) - 2) < 1e-3, f"the axis is not logarithmic: {heights}")
    share = by_title["Share of the output"]["marks"]
    check([mark[1] for mark in share] == [0.4, 0.1, -0.02], f"shares: {share}")
    single = by_title["Rank residual of single paths, composite norm"]
    check(sorted(single["dots"]) == sorted(PATHS.values()), f"single paths: {single['dots']}")
    check([mark[1] for mark in single["marks"]] == [0.9, 0.45, 0.01], f"their means: {single['marks']}")


def points(line):
    return [tuple(map(float, point.split(","))) for point in line[1:].split("L")]


def check_picture(found, paths):
    check([path for path, _ in found["lines"]] == paths, f"paths {paths}, found {found['lines']}")
    check(found["nodes"] == 2 * (3 + 1), f"two layers of three heads and a skip, found {found['nodes']} nodes")
    columns = {x for _, line in found["lines"] for x, _ in points(line)}
    check(len(columns) == 2, f"one column for each layer: {columns}")
    heights = {}
    for path, line in found["lines"]:
        for head, (_, y) in zip(map(int, path.split("-")), points(line)):
            heights.setdefault(head, []).append(y)
    order = sorted(heights)
    check(all(min(heights[a]) > max(heights[b]) for a, b in zip(order, order[1:])), f"higher heads lie higher: {heights}")


def check_chains(found):
    boxes = found["boxes"]
    check(len(boxes) == 2 and [box[:2] for box in boxes[0]] == [list(item) for item in CHAINS.items()], f"boxes: {boxes}")
    check([box[1][2] for box in boxes[1]] == [0.35, 0.005], f"medians in the code's order: {boxes[1]}")
    # On a logarithmic axis the box from 1e-3 to 0.1 is 2 / lg(8 / 6) times as high as that from 0.6 to 0.8.
    heights = [box[2][1] for box in boxes[0]]
    check(abs(heights[1] / heights[0] / (2 / math.log10(8 / 6)) - 1) < 1e-2, f"the axis is not logarithmic: {heights}")
    check(len(found["chains"]) == 4 and found["chains"][3][1:5] == ["code", "2", "0.00005", "0.0005"],
          f"table of chains: {found['chains']}")


def check_surfaces(found):
    delta, p = found["surfaces"]
    titles = [delta["title"], p["title"]]
    check(titles == ["δ(M), share of stiff images", "p̂(M), share of stiff steps"], f"titles: {titles}")
    check([cell[0] for cell in delta["cells"]] == list(SURFACE.values()), f"cells: {delta['cells']}")
    check(delta["ticks"] == [2, 1.4], f"axes to {delta['ticks']}")
    # Two columns of three cells, which fill the area between the axes; M2 grows upwards.
    (_, x, y, width, height), (_, _, above, _, _), right = delta["cells"][0], delta["cells"][1], delta["cells"][3]
    check(abs(right[1] - x - width) < 1e-6 and abs(y - above - height) < 1e-6, f"places: {delta['cells']}")
    check("to 1 (" in delta["caption"] and "to 0.15 (" in p["caption"], f"colours: {delta['caption']} {p['caption']}")
    check(found["integrals"][1:4] == ["0.7", "0.75", "0"], f"integrals: {found['integrals']}")


def check_others(found):
    check(sorted(found["shape"]) == ["Attention on the grid", "Centre, rows, tokens"], f"units: {found['shape']}")
    check(all(ticks == ["0", "1"] for ticks in found["blocks"]), f"lengths are no blocks: {found['blocks']}")
    (low, _), (end, _) = found["bars"]
    check(low > found["means"][0] + 1, f"a bar with a place for its lower end: {found['bars']}, {found['means']}")
    check(abs(end - found["means"][1]) < 1e-3, f"a bar to a value below 0: {found['bars']}, {found['means']}")
    check("Collapse rate, attention + MLP" in found["collapse"], "names of switches in the table")
    check("rounding noise" in found["collapse"], "figures of f32 have a note")
    check(found["layers"] == ["0", "1", "skip", "head 0", "head 1", "head 2"], f"counted from 0: {found['layers']}")
    check("parameters" not in found["card"], f"a card without parameters: {found['card']}")


def check_export(page):
    saved = xml.etree.ElementTree.fromstring(page.evaluate("svgOf(document.querySelector('.paths-figure'), {title: 't'})"))
    lines = [path for path in saved.iter("{http://www.w3.org/2000/svg}path") if path.get("stroke-width") == "2px"]
    check(len(lines) == 3, f"the saved picture has three paths, found {len(lines)}")
    check(page.evaluate("document.querySelectorAll('.paths-figure .export').length") == 1, "a picture without a button")


write_run("run")
write_wide_run()
with Browser() as browser:
    page = browser.open(report(["run"], "run.html"))
    found = page.evaluate(READ)
    check(found["sections"].count("paths") == 1 and "path_samples" not in found["sections"], str(found["sections"]))
    check_charts(found["charts"])
    check_picture(found, ["0-0", "2-0", "1-3"])
    check_chains(found)
    check_surfaces(found)
    check_others(found)
    check_export(page)
    check(found["rest"][1:] == ["0.25", "0.25", "0.75", "0.75", "1.5e-7"], f"the rest: {found['rest']}")
    page.evaluate("document.querySelectorAll('#paths .tools input')[1].click()")
    check_picture(page.evaluate(READ), ["0-0", "2-0", "0-1", "1-3"])
    complaints = page.complaints()
    check(not complaints, str(complaints))
    page = browser.open(report(["wide"], "wide.html"))
    check(page.evaluate("runs[0].trained.precision") == "f32", "the training's precision")
    check("rounding noise" not in page.evaluate(READ)["collapse"], "figures of f64 have no note")
finish()
