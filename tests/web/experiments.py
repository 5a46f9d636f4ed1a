"""experiments.py ATTSCOPE FOLDER: runs two short experiments, opens their report, checks charts and trajectories."""

import json
import os
import subprocess

from browser import Browser
from checks import check, finish
from reports import attscope, folder, report


def run(name, *options):
    """Returns the figures of the record by node and statistic."""
    subprocess.run([attscope, "experiment", name, "--epochs", "1", "--lr", "1e-3", "--output", folder, *options],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(os.path.join(folder, name, "measure.jsonl"), encoding="utf-8") as lines:
        figures = next(event for event in map(json.loads, lines) if event["event"] == "measure")["measurements"]
    return {(f["node"], f["statistic"]): f for f in figures}


READ = """
({
    sections: [...document.querySelectorAll("main > section")].map(section => section.id),
    charts: [...document.querySelectorAll("#path_accuracy svg.chart")].map(svg => ({
        series: [...svg.querySelectorAll(".series")].map(series => ({
            marks: [...series.querySelectorAll(".mark")].map(m => [Number(m.dataset.x), Number(m.dataset.value),
                m.transform.baseVal.consolidate().matrix.f]),
            band: series.querySelector(".band")?.getAttribute("d"),
            whiskers: series.querySelectorAll(".whisker").length,
            dots: [...series.querySelectorAll(".head-dot")].map(d => Number(d.dataset.value)),
        })),
        references: [...svg.querySelectorAll(".reference text")].map(text => text.textContent),
        labels: [...svg.querySelectorAll(".reference text")].map(text => text.getBoundingClientRect())
            .map(({left, top, right, bottom}) => ({left, top, right, bottom})),
    })),
    key: [...document.querySelectorAll("#path_accuracy .key span")].map(span => span.textContent),
    caption: document.querySelector("#path_accuracy figcaption")?.textContent,
    paths: [...document.querySelectorAll("#path_accuracy .path-line")].map(l => [l.dataset.path, l.textContent]),
    circle: [...document.querySelectorAll("#circle figure")].map(figure => ({
        variant: figure.dataset.variant,
        box: figure.querySelector("svg").getAttribute("viewBox").split(" ").map(Number),
        lines: [...figure.querySelectorAll("g path")].map(path => path.getAttribute("d")),
        starts: [...figure.querySelectorAll("g circle")]
            .map(c => [c.getAttribute("cx"), c.getAttribute("cy")].map(Number)),
        caption: figure.querySelector("figcaption").textContent,
    })),
    notes: [...document.querySelectorAll("#path_accuracy .note, #circle .note")].map(note => note.textContent),
    verdict: document.getElementById("verdict").textContent,
})
"""


def points(line):
    return [tuple(map(float, point.split(","))) for point in line.strip("MZ").split("L")]


def check_accuracy(found, figures):
    sums, single = found["charts"]
    check(len(sums["series"]) == 2, f"a line for 5 and one for 20 paths: {sums['series']}")
    for series, summed in zip(sums["series"], (5, 20)):
        wanted = [figures[f"sum.{summed}.length.{length}", "accuracy"] for length in range(7)]
        check([mark[:2] for mark in series["marks"]] == [[k, f["mean"]] for k, f in enumerate(wanted)],
              f"accuracies of {summed} paths: {series['marks']}")
        check(series["whiskers"] == 0, "a band takes the place of whiskers")
        # Height of a band in units of the axis; the scale follows from two marks.
        (_, a, y_a), (_, b, y_b) = min(series["marks"], key=lambda m: m[1]), max(series["marks"], key=lambda m: m[1])
        scale, border = (b - a) / (y_a - y_b), points(series["band"])
        for k, f in enumerate(wanted):
            height = abs(border[k][1] - border[2 * 7 - 1 - k][1]) * scale
            check(abs(height - 2 * f["deviation"]) < 0.002, f"band of length {k}: {height}, deviation {f['deviation']}")
    check([text.rsplit(" ", 1)[0] for text in sums["references"]] == ["whole network", "most frequent class"],
          f"lines of whole network and baseline: {sums['references']}")
    check(found["key"] == ["5 paths", "20 paths"], f"key: {found['key']}")
    paths = {node: f["mean"] for (node, statistic), f in figures.items() if ".path." in node}
    check(sorted(single["series"][0]["dots"]) == sorted(paths.values()), f"single paths: {single['series']}")
    check("over 3 draws of paths through one network" in found["caption"], found["caption"])
    check([path for path, _ in found["paths"]][0] == "0-0-0-0-0-0" and len(found["paths"]) == 7,
          f"one path of each length: {found['paths']}")
    check(all("accuracy 0." in words for _, words in found["paths"]), f"paths have accuracies: {found['paths']}")


def check_circle(found, figures):
    check([f["variant"] for f in found["circle"]] == ["base", "skip", "mlp"], f"three variants: {found['circle']}")
    for figure in found["circle"]:
        check(figure["box"] == [-0.56, -0.56, 1.12, 1.12], f"a box of 0.56: {figure['box']}")
        check(len(figure["lines"]) == 2, f"two trajectories: {len(figure['lines'])}")
        for point, line in zip(("first", "second"), figure["lines"]):
            x, y = (figures[f"{figure['variant']}.{point}", axis]["samples"] for axis in "xy")
            drawn = points(line)
            check(len(drawn) == 300, f"300 steps, found {len(drawn)}")
            check(all(abs(p[0] - a) < 2e-3 and abs(p[1] + b) < 2e-3 for p, a, b in zip(drawn, x, y)),
                  f"the trajectory of {figure['variant']}, {point}")
        check(abs(figure["starts"][0][0] - 0.3) < 1e-3 and abs(figure["starts"][1][0] + 0.3) < 1e-3,
              f"starts: {figure['starts']}")
        mean = figures[figure["variant"], "radius error"]["mean"]
        shown = float(figure["caption"].split("radius ")[1].split(";")[0])
        check(abs(shown / mean - 1) < 1e-3, f"error of the radius {mean}: {figure['caption']}")


sort, circle = run("sort", "--repeats", "3"), run("circle")
path, both = report(["sort"], "report.html"), report(["sort", "circle"], "both.html")
for first, record in (("0", "c0"), ("3", "c3")):
    quirks = [] if first == "0" else ["--quirk", "pairs"]
    subprocess.run([attscope, "experiment", "circle", "--epochs", "1", "--seeds", "2", "--seed", first, *quirks,
                    "--output", folder, "--experiment", record], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
seeds = report(["c0", "c3"], "seeds.html")
with Browser() as browser:
    page = browser.open(path)
    found = page.evaluate(READ)
    check(found["sections"] == ["overview", "path_accuracy"], f"sections: {found['sections']}")
    check(found["verdict"].startswith("One experiment"), found["verdict"])
    check("6 layers, 2 heads, width 48; adam, learning rate 0.001, 1 epoch, 34 updates" in found["notes"][0],
          found["notes"][0])
    check_accuracy(found, sort)
    page.evaluate("document.querySelectorAll('#path_accuracy .tools input')[1].click()")
    check(len(page.evaluate(READ)["paths"]) == sum(".path." in node for node, _ in sort), "all sampled paths")
    page = browser.open(both)
    found = page.evaluate(READ)
    check(found["sections"] == ["overview", "path_accuracy", "circle"], f"sections: {found['sections']}")
    check_circle(found, circle)
    settings = page.evaluate("document.querySelector('#overview details').textContent")
    check("published_whole" in settings and "null" not in settings, f"a setting without a value: {settings}")
    check("2 runs of 2 configurations, one seed each" in found["verdict"], f"one network each: {found['verdict']}")
    # Lines at the same height have labels that can be read.
    page.evaluate(f"""{{
        runs[0].figures.find(f => f.statistic === "whole").mean = {sort["", "baseline"]["mean"]};
        document.querySelector("#path_accuracy figure").replaceWith(accuracyChart(runs[0]));
    }}""")
    page.wait_for_layout()
    one, other = sorted(page.evaluate(READ)["charts"][0]["labels"], key=lambda label: label["top"])
    check(one["bottom"] <= other["top"] + 1, f"labels overlap: {one}, {other}")  # a pixel of leading
    page = browser.open(seeds)
    found = page.evaluate(READ)
    check("Each is an experiment with several seeds of its own" in found["verdict"] and "one seed" not in
          found["verdict"].lower(), f"several networks each: {found['verdict']}")
    cards = page.evaluate("[...document.querySelectorAll('.card dl')].map(card => card.textContent)")
    check(["seeds0 to 1" in cards[0], "seeds3 to 4" in cards[1]] == [True, True], f"seeds of networks: {cards}")
    complaints = page.complaints()
    check(not complaints, str(complaints))
finish()
