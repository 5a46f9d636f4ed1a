"""paths.py ATTSCOPE FOLDER: writes a run with figures of paths, opens its report, and checks charts and picture."""

import json
import os
import subprocess
import sys

from browser import Browser

attscope, folder = sys.argv[1:3]
PATHS = {"0.path.0-0": 0.9, "1.path.2-0": 0.5, "1.path.0-1": 0.4, "2.path.1-3": 0.01}
failures = 0


def check(condition, what):
    global failures
    if not condition:
        failures += 1
        print("FAILED:", what)


def figure(instrument, node, statistic, mean):
    return {"instrument": instrument, "node": node, "statistic": statistic, "mean": mean, "deviation": 0.001, "n": 4}


def figures():
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


def write_run():
    events = [
        {"event": "run_begin", "model": "vit_tiny_patch16_224"},
        {"event": "measure", "split": "all", "images": 4, "nodes": "*", "measurements": list(figures())},
        {"event": "run_end", "status": "OK"},
    ]
    os.mkdir(os.path.join(folder, "run"))
    with open(os.path.join(folder, "run", "measure.jsonl"), "w", encoding="utf-8") as file:
        for event in events:
            file.write(json.dumps({"epoch": 0, "step": 0, "seconds": 1.0, **event}) + "\n")


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


write_run()
path = os.path.join(folder, "report.html")
subprocess.run([attscope, "report", os.path.join(folder, "run"), "-o", path], check=True, stdout=subprocess.DEVNULL)
with Browser() as browser:
    page = browser.open(path)
    found = page.evaluate(READ)
    check(found["sections"].count("paths") == 1 and "path_samples" not in found["sections"], str(found["sections"]))
    check_charts(found["charts"])
    check_picture(found, ["0-0", "2-0", "1-3"])
    check(found["rest"][1:] == ["0.25", "0.25", "0.75", "0.75", "1.5e-7"], f"the rest: {found['rest']}")
    page.evaluate("document.querySelectorAll('#paths .tools input')[1].click()")
    check_picture(page.evaluate(READ), ["0-0", "2-0", "0-1", "1-3"])
    complaints = page.complaints()
    check(not complaints, str(complaints))
sys.exit(failures > 0)
