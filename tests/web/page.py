"""page.py ATTSCOPE FOLDER: makes reports of the runs that make_runs wrote to FOLDER, opens them and checks them."""

import array
import csv
import io
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

from browser import Browser
from checks import check, finish

HOSTILE = "<img src=x onerror=boom()>"
NAMES = ["plain-1", "plain-2", "cb-1", HOSTILE]
attscope, folder = sys.argv[1:3]


def near(a, b, tolerance=1e-12):
    return a is not None and b is not None and abs(a - b) <= tolerance * max(1, abs(b))


def report(names, output, *options):
    path = os.path.join(folder, output)
    subprocess.run(
        [attscope, "report", *[os.path.join(folder, n) for n in names], "-o", path, *options],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return path


def copy(name, to, changes=(), without=()):
    """Copies the folder of a run but these files, and replaces texts in its records. Returns the path."""
    made = os.path.join(folder, to)
    shutil.copytree(os.path.join(folder, name), made, ignore=shutil.ignore_patterns(*without))
    for file, old, new in changes:
        with open(os.path.join(made, file), encoding="utf-8") as lines:
            text = lines.read()
        check(old in text, f"{file} of {name} has {old}")
        with open(os.path.join(made, file), "w", encoding="utf-8") as out:
            out.write(text.replace(old, new))
    return made


def events(name, file, kind):
    with open(os.path.join(folder, name, file), encoding="utf-8") as lines:
        return [event for event in map(json.loads, lines) if event["event"] == kind]


def measured(name):
    return events(name, "measure.jsonl", "measure")[-1]["measurements"]


# --- the figures ------------------------------------------------------------------------------------------------------

READ_TABLES = """
(() => {
    for (const details of document.querySelectorAll("main details")) details.open = true;
    return new Promise(done => setTimeout(() => done(Object.fromEntries(
        [...document.querySelectorAll("main > section")].map(section => [section.id,
            [...section.querySelectorAll("details tbody tr")].map(row =>
                [...row.cells].map(cell => cell.dataset.value ?? cell.textContent))]))), 100));
})()
"""


def read_tables(page):
    """Checks that every mean, deviation and n of the files is in a table, exactly."""
    tables = page.evaluate(READ_TABLES)
    compared = 0
    for name in NAMES:
        for m in measured(name):
            if m["instrument"] in ("accuracy", "tns"):
                continue
            key = [name, m["statistic"], m["node"], str(m.get("head", "all"))]
            rows = [row[4:] for row in tables[m["instrument"]] if row[:4] == key]
            check(len(rows) == 1, f"one row for {m['instrument']} {key}, found {len(rows)}")
            if rows:
                mean, deviation, n, *tns = rows[0]
                left_out = m["instrument"] == "nsi" and m["node"] == "blocks.0.add1"
                wanted = [] if m["instrument"] != "nsi" else ["yes *"] if left_out else ["no"]
                if m["instrument"] in ("distance", "jacobian"):
                    check(tns and float(tns.pop(0)) == m["uniform"], f"{key}: uniform {rows[0]}, {m}")
                if m["instrument"] == "entropy":
                    check(tns and float(tns.pop(0)) == m["bound"], f"{key}: bound {rows[0]}, {m}")
                check(tns == wanted and m.get("excluded_from_tns", False) == left_out, f"{key}: {tns}, {m}")
                check(
                    float(mean) == m["mean"] and float(deviation) == m["deviation"] and n == str(m["n"]),
                    f"{m['instrument']} {key}: the page has {rows[0]}, the file {m}",
                )
                compared += 1
    check(compared == len(NAMES) * (5 * 3 * 3 + 3 * 6 + 2 * 7), f"{compared} figures compared")


READ_WHOLE = """
Object.fromEntries(["accuracy", "tns"].map(id => [id, [...document.querySelectorAll(`#${id} tbody tr`)].map(row =>
    [...row.cells].map(cell => cell.dataset.value ?? cell.textContent.trim()))]))
"""


def read_whole_network(page):
    tables = page.evaluate(READ_WHOLE)
    for index, name in enumerate(NAMES):
        figures = {
            (m["instrument"], m["statistic"]): m["mean"]
            for m in measured(name)
            if m["instrument"] in ("accuracy", "tns")
        }
        row = tables["accuracy"][index]
        check(row[0] == name, f"accuracy's row {index} is of {row[0]}")
        for cell, statistic in zip(row[1:], ("top1", "top5", "loss")):
            check(near(float(cell), figures["accuracy", statistic], 0), f"{name}: {statistic} {cell}")
        for row, reading in zip(tables["tns"][3 * index : 3 * index + 3], ("attention", "gated", "unit")):
            for cell, statistic in zip(row[2:], ("tns", "zeta*", "mu", "zeta*/mu")):
                check(near(float(cell), figures["tns", f"{statistic} {reading}"], 0), f"{name}: {statistic} {cell}")


READ_CHARTS = """
[...document.querySelectorAll("main > section figure")].map(figure => ({
    section: figure.closest("section").id, title: figure.querySelector("h3").textContent,
    blocks: [...figure.querySelectorAll(".axis.x .tick")].map(tick => tick.textContent),
    ticks: [...figure.querySelectorAll(".axis.y .tick")].map(tick => [Number(tick.textContent.replace("−", "-")
        .replace(",", "")), tick.transform.baseVal.consolidate().matrix.f]),
    marks: [...figure.querySelectorAll(".series .mark")].map(mark => [Number(mark.closest(".series").dataset.run),
        Number(mark.dataset.x), Number(mark.dataset.value), mark.transform.baseVal.consolidate().matrix.f,
        mark.classList.contains("hollow")]),
    heads: figure.querySelectorAll(":scope > svg .head-dot").length,
    references: [...figure.querySelectorAll(".reference")].map(r => [r.textContent,
        r.transform.baseVal.consolidate().matrix.f]),
    lines: [...figure.querySelectorAll(".line")].map(line => line.getAttribute("d") ?? ""),
}))
"""
DEPTHS = {
    "entropy": ["mean"],
    "distance": ["mean", "renormalised"],
    "jacobian": ["nuclear", "frobenius"],
    "nsi": ["attention", "gated", "unit"],
    "residual": ["composite", "frobenius"],
}


TITLE = "Neural stiffness index, reading %s"


def on_axis(chart, y):
    """Returns the value that the labels of the axis give to a height, with an error limited by their four digits."""
    measure = math.log if chart["section"] == "residual" else float
    (low, at_low), (high, at_high) = chart["ticks"][0], chart["ticks"][-1]
    share = (y - at_low) / (at_high - at_low)
    value = measure(low) + share * (measure(high) - measure(low))
    return math.exp(value) if chart["section"] == "residual" else value


def read_charts(page):
    """Checks that marks are at the height of their value on the axis, and that the values are those of the files."""
    charts = page.evaluate(READ_CHARTS)
    for instrument, statistics in DEPTHS.items():
        drawn = [c for c in charts if c["section"] == instrument]
        check(len(drawn) == len(statistics), f"{instrument}: {len(drawn)} charts")
        for chart, statistic in zip(drawn, statistics):
            for index, name in enumerate(NAMES):
                wanted = [
                    m["mean"]
                    for m in measured(name)
                    if m["instrument"] == instrument and m["statistic"] == statistic and "head" not in m
                ]
                marks = [m for m in chart["marks"] if m[0] == index]
                check([m[2] for m in marks] == wanted, f"{instrument} {statistic} of {name}: {marks}, wanted {wanted}")
                for _, _, value, y, _ in marks:
                    check(
                        near(on_axis(chart, y), value, 2e-3),
                        f"{instrument} {statistic}: {value} stands at {on_axis(chart, y)}",
                    )
            if instrument == "nsi":
                least = min(x for _, x, *_ in chart["marks"])
                check(all(hollow == (x == least) for _, x, _, _, hollow in chart["marks"]), "not exactly t = 0 is hollow")
                check(least == -0.25 and chart["blocks"] == ["0", "1", "2"], f"places of a ViT's steps: {chart}")
                check(chart["title"] == TITLE % statistic, f"a reading is called {chart['title']}")
            if instrument in ("entropy", "distance", "jacobian"):
                check(chart["heads"] == len(NAMES) * 3 * 2, f"{instrument}: {chart['heads']} heads")
            if instrument == "entropy":
                ((text, y),) = chart["references"]
                check("ln 5" in text and near(on_axis(chart, y), math.log(5), 2e-3), f"reference {text} at {y}")
    lines = page.evaluate("""(() => {
        const means = [[0, 49], [1, 49], [2, 16]].map(([block, keys]) =>
            ({ instrument: "entropy", node: `blocks.${block}.attn`, bound: Math.log(keys) }));
        return uniformLines([{ run: runs[0], means }], axisOf(means.map((f) => f.node)))
            .map((line) => [line.label, line.from, line.to]);
    })()""")
    wanted = [["ln 49, uniform attention", -0.5, 1.5], ["ln 16, uniform attention", 1.5, 2.5]]
    check(lines == wanted, f"bounds of layers {lines}, wanted {wanted}")
    loss = next(c for c in charts if c["section"] == "training" and c["title"].startswith("Training loss"))
    check(loss["lines"][0].count("M") == 2, "a loss of NaN must be a gap in the line")
    check(len(loss["ticks"]) > 2, "the loss has no axis")


def read_numbers(page):
    """Trailing zeros of mantissas are removed, those of exponents are not."""
    asked = {3.542e-10: "3.542e-10", 1.2346e20: "1.235e+20", 1e-100: "1e-100", 2.5e-5: "2.5e-5", 0.00012: "0.00012", 0: "0"}
    told = page.evaluate(f"{json.dumps(list(asked))}.map((value) => number(value))")
    check(told == list(asked.values()), f"numbers {told}, wanted {list(asked.values())}")


def read_methods(page):
    methods = page.evaluate(
        """[...document.querySelectorAll(".method")].map(m => [m.dataset.instrument,
            m.textContent + [...m.querySelectorAll("li")].map(rule => rule.textContent).join("; ")])"""
    )
    infos = page.evaluate("report.instruments")
    wanted = {m["instrument"] for name in NAMES for m in measured(name)}
    check(len(wanted) == 7, f"{len(wanted)} instruments with figures")
    for info in infos:
        if info["name"] not in wanted:
            continue
        text = next((text for name, text in methods if name == info["name"]), "")
        for part in ("formula", "reading", "source", "unit"):
            check(info[part] in text, f"{info['name']}: no {part} beside its figures")


# --- runs and seeds ---------------------------------------------------------------------------------------------------


def read_overview(page):
    cards = page.evaluate("""[...document.querySelectorAll(".card")].map(c => [c.querySelector(".name").textContent,
        c.querySelector(".big").dataset.value, c.querySelector("dl").textContent])""")
    check([card[0] for card in cards] == NAMES, f"cards of {[card[0] for card in cards]}")
    for (_, top1, facts), name in zip(cards, NAMES):
        wanted = next(m for m in measured(name) if m["statistic"] == "top1")["mean"]
        check(float(top1) == wanted, f"{name}: top-1 {top1}, wanted {wanted}")
        check("12,345" in facts and "3 of 3" in facts, f"{name}: {facts}")
    text = page.evaluate("document.getElementById('overview').textContent")
    check("4 runs of 3 configurations" in text and "no verdict" in text, "the page does not state what the seeds allow")
    rows = page.evaluate(
        "[...document.querySelectorAll('#overview .whole tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )
    check(rows[0][:2] == ["plain-1, plain-2", "1, 2"] and rows[0][3] == "2", f"seeds: {rows}")
    check(all(row[3] == "1" and "±" not in row[2] for row in rows[1:]), "one seed must have no deviation")


def read_one_seed(browser):
    page = browser.open(report(["plain-1", "cb-1"], "two.html"))
    verdict = page.evaluate("document.getElementById('verdict').textContent")
    check("one seed each" in verdict and "gives no verdict" in verdict, verdict)
    check(page.evaluate("document.title") == "plain-1 · cb-1 – attscope", "the title does not name the runs")
    check(not page.complaints(), f"two runs: {page.complaints()}")


def read_two_seeds(browser):
    """Two runs have the same configuration, although only one of them was measured."""
    copy("plain-2", "half", without=["measure.jsonl"])
    page = browser.open(report(["plain-1", "half"], "seeds.html"))
    verdict = page.evaluate("document.getElementById('verdict').textContent")
    check("2 runs of 1 configuration;" in verdict, verdict)
    row = page.evaluate("[...document.querySelector('#overview .whole tbody tr').cells].map(c => c.textContent)")
    check(row[1] == "1, 2" and "±" in row[2] and row[3] == "2", f"two seeds: {row}")


def read_repeated_seed(browser):
    """A repeated seed is shown twice and counts once; means combine accuracies of one kind only."""
    copy("plain-1", "again")
    page = browser.open(report(["plain-1", "again", "half"], "repeated.html"))
    row = page.evaluate("[...document.querySelector('#overview .whole tbody tr').cells].map(c => c.textContent)")
    check(row[1] == "1, 2" and row[3] == "2", f"a seed twice: {row}")
    check(row[2].startswith("60 ± 0") and row[4] == "evaluated after epoch 3", f"one kind of accuracy: {row}")
    note = page.evaluate("document.getElementById('repeated')?.textContent ?? ''")
    check("again repeats the seed of plain-1: shown, not averaged" in note, f"a repeated seed: {note}")
    page = browser.open(report(["plain-1", "again"], "one-seed.html"))
    check(page.evaluate("!document.querySelector('#overview .whole')"), "a repeated seed must have no mean")
    check(not page.complaints(), f"repeated seeds: {page.complaints()}")


def read_few_updates(browser):
    """With fewer updates than the logging interval, the chart of the learning rate shows epochs."""
    path = os.path.join(copy("plain-1", "few"), "metrics.jsonl")
    with open(path, encoding="utf-8") as lines:
        kept = [json.loads(line) for line in lines if '"event":"step"' not in line]
    for update, event in enumerate(event for event in kept if event["event"] == "epoch"):
        event["step"] = update + 1
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(event) + "\n" for event in kept)
    page = browser.open(report(["few"], "few.html"))
    marks, key = page.evaluate("""(figure => [figure.querySelector("svg.chart .line").getAttribute("d"),
        figure.querySelector(".key").textContent])(
        [...document.querySelectorAll("#training figure")].find(f => f.textContent.startsWith("Learning rate")))""")
    check(marks and marks.count("L") == 2, f"a learning rate of three epochs: {marks}")
    check(key == "after each epoch", f"the key of a learning rate of three epochs: {key}")
    read_counts(page)


def read_measured_beside_trained(browser):
    """A run that was only measured removes no row, and the settings of its measurement are shown. Figures from the
    training of another run are in charts of their own, with its warnings."""
    settings = '"images":9,"mean":"0.485 0.456 0.406","precision":"bf16","data":"photographs"'
    copy("plain-1", "apart", [("measure.jsonl", '"images":9', settings)], without=["metrics.jsonl", "args.yaml"])
    training = copy("plain-2", "training", without=["measure.jsonl"])
    with open(os.path.join(training, "metrics.jsonl"), "a", encoding="utf-8") as file:
        file.write('{"event":"warning","epoch":2,"step":29,"message":"image 7 is <b>damaged</b>","set":"train"}\n')
    page = browser.open(report(["plain-1", "cb-1", "apart", "training"], "kinds.html"))
    check(not page.complaints(), f"kinds: {page.complaints()}")
    rows = dict(
        page.evaluate("""[...document.querySelectorAll("#overview details:not(#warnings) tbody tr")].map(r =>
            [r.cells[0].textContent, [...r.cells].slice(1).map(c => c.textContent)])""")
    )
    check(rows.get("broadcast") == ["none", "cb", "–", "none"], f"broadcast: {rows}")
    check(rows.get("seed") == ["1", "1", "–", "2"], f"seed: {rows}")
    check("mean" not in rows, f"a mean that is the same in training and measurement: {rows}")
    check(rows.get("measured: precision") == ["–", "–", "bf16", "–"], f"precision: {rows}")
    check(rows.get("measured: data") == ["–", "–", "photographs", "–"], f"data: {rows}")
    check(rows.get("measured: images") == ["9", "9", "9", "–"], f"images: {rows}")
    drawn = page.evaluate("""[...document.querySelectorAll("#entropy figure")].map(f =>
        [...new Set([...f.querySelectorAll(".series")].map(s => s.dataset.run))].sort())""")
    check(drawn == [["0", "1", "2"], ["3"]], f"entropy's charts are of the runs {drawn}")
    heads = page.evaluate("[...document.querySelectorAll('#entropy h3.kind')].map(h => h.textContent)")
    check(len(heads) == 2 and "not comparable" in heads[1], f"kinds of figures: {heads}")
    told = page.evaluate("document.getElementById('warnings').textContent")
    check("Warnings and alerts (1)" in told and "image 7 is <b>damaged</b>" in told and "29" in told, f"warnings: {told}")


def use_scale(page):
    """Every chart by depth or over time has a linear and a logarithmic scale."""
    for name in ("training", "entropy", "residual", "development"):
        inputs = f"document.querySelectorAll('#{name} [aria-label=Scale] input')"
        for log in (True, False):
            page.evaluate(f"{inputs}[{int(log)}].click()")
            page.wait_for_layout()
            page.wait_for_layout()
            ticks = page.evaluate(
                f"[...document.querySelector('#{name} figure').querySelectorAll('.axis.y .tick')].map(t =>"
                "[Number(t.textContent.replace('−', '-')), t.transform.baseVal.consolidate().matrix.f])"
            )
            (a, at_a), (b, at_b), (c, at_c) = ticks[0], ticks[len(ticks) // 2], ticks[-1]
            share = (at_b - at_a) / (at_c - at_a)
            wanted = math.log(b / a) / math.log(c / a) if log else (b - a) / (c - a)
            check(abs(share - wanted) < 0.02, f"{name}, log {log}: ticks {ticks}")
    page.evaluate("document.querySelectorAll('#residual [aria-label=Scale] input')[1].click()")


READ_LOOKS = """
(() => {
    const shape = (mark) => mark?.getAttribute("d").replace(/[-.\\d,]+/g, n => n.split(",").map(v =>
        Math.sign(Number(v))).join()) ?? null;
    const look = (part, dashed) => [getComputedStyle(part).getPropertyValue("--c"), shape(part.querySelector(".mark")),
        ...(dashed ? [part.querySelector(".line").getAttribute("stroke-dasharray")] : [])];
    const chips = [...document.querySelectorAll("#legend .chip")];
    const series = (section, dashed) => [...document.querySelectorAll(`#${section} figure`)].flatMap(figure =>
        [...figure.querySelectorAll(".series")].filter(s => s.querySelector(".mark")).map(s =>
            [Number(s.dataset.run), look(s, dashed)]));
    return {
        chips: chips.map(chip => [chip.getAttribute("aria-label"), chip.textContent, look(chip, true)]),
        groups: [...document.querySelectorAll("#legend .setting")].map(g => [
            g.querySelector(".setting-name")?.textContent ?? null, g.querySelectorAll(".chip").length]),
        cards: [...document.querySelectorAll(document.querySelector(".card") ? ".card" : ".runs td:first-child")]
            .map(card => look(card, false)),
        drawn: ["training", "entropy", "nsi"].flatMap(id => series(id, true)),
        points: series("correlation", false),
        keys: [...document.querySelectorAll("#correlation figure")].map(figure =>
            [...figure.querySelectorAll(".key > span")].map(item => [item.textContent,
                [...item.querySelectorAll("svg")].map(svg => look(svg, false))])),
    };
})()
"""


def agree(looks, page):
    """Checks that each run has a style of its own, the same in legend, cards and charts. Returns the styles of the
    runs."""
    of_runs = [look for _, _, look in looks["chips"]]
    check(len(set(map(tuple, of_runs))) == len(of_runs), f"{page}: two runs look alike: {of_runs}")
    check(looks["cards"] == [look[:2] for look in of_runs], f"{page}: cards {looks['cards']}")
    check({run for run, _ in looks["drawn"]} == set(range(len(of_runs))), f"{page}: a run is not drawn")
    for run, look in looks["drawn"]:
        check(look == of_runs[run], f"{page}: run {run} is drawn as {look}, its chip is {of_runs[run]}")
    return of_runs


def read_many_runs(browser):
    """Colours are repeated after eight runs; runs with the same colour have other markers and dashes."""
    names = [f"many{i}" for i in range(18)]
    for name in names:
        copy("plain-1", name)
    page = browser.open(report(names, "many.html"))
    lines = page.evaluate("""
        [...document.querySelectorAll("figure")].map(figure => [...figure.querySelectorAll(".series .line")].map(
            line => getComputedStyle(line).stroke + getComputedStyle(line).strokeDasharray))
            .filter(lines => lines.length === 18)""")
    different = [len(set(looks)) for looks in lines]
    check(len(lines) > 4 and set(different) == {18}, f"lines of 18 runs: {different}")
    looks = agree(page.evaluate(READ_LOOKS), "many runs")
    for i in range(10):
        colours, shapes, dashes = zip(looks[i], looks[i + 8])
        check(colours[0] == colours[1], f"colours {colours}")
        check(shapes[0] != shapes[1] and dashes[0] != dashes[1], f"runs {i} and {i + 8}: {looks[i]}, {looks[i + 8]}")
    check(not page.complaints(), f"console, many: {page.complaints()}")


def read_swept_looks(browser):
    """In the report of a sweep, the colour shows the setting, and marker and dash show the seed, in every chart."""
    runs = []
    for setting in ("none", "cb"):
        for seed in (1, 2, 3):
            name = f"look={setting}-seed{seed}"
            copy("plain-1", os.path.join("looks", name), [("metrics.jsonl", '"seed":"1"', f'"seed":"{seed}"')])
            if (setting, seed) != ("none", 2):  # another seed of the same setting keeps its style
                runs.append({"name": name, "setting": f"look={setting}", "seed": seed, "status": "measured"})
    with open(os.path.join(folder, "looks", "sweep.json"), "w", encoding="utf-8") as file:
        json.dump({"runs": runs}, file)
    page = browser.open(report(["looks/"], "looks.html"))
    found = page.evaluate(READ_LOOKS)
    looks = agree(found, "a sweep")
    check(page.evaluate("document.querySelector('h1').textContent") == "looks", "the heading is not the sweep's name")
    check(found["groups"] == [["look=none", 2], ["look=cb", 3]], f"the legend's groups {found['groups']}")
    check([text for _, text, _ in found["chips"]] == [f"seed {s}" for s in (1, 3, 1, 2, 3)], f"{found['chips']}")
    colours = [look[0] for look in looks]
    check(len(set(colours[:2])) == len(set(colours[2:])) == 1 and colours[0] != colours[2], f"colours {colours}")
    check(looks[0][1:] == looks[2][1:] and looks[1][1:] == looks[4][1:], f"seeds of both settings: {looks}")
    for run, look in found["points"]:
        check(look == looks[run][:2], f"the point of run {run}: {look}")
    for key in found["keys"]:
        wanted = [["look=none", [x[:2] for x in looks[:2]]], ["look=cb", [x[:2] for x in looks[2:]]]]
        check(key == wanted, f"a key of points {key}, wanted {wanted}")
    lines = page.evaluate(
        "[...document.querySelectorAll('#trajectories .line')].map("
        "l => [l.classList.contains('faint'), l.getAttribute('stroke-dasharray')])"
    )
    drawn = {tuple(line) for line in lines}
    check(drawn == {(True, None), (False, "5 4")}, f"lines of images are solid, least and largest dashed: {drawn}")
    head = page.evaluate("[...document.querySelectorAll('#overview details th')].map(h => h.textContent)")
    check(head == ["setting", "look=none", "look=cb"], f"a column a setting: {head}")
    check(not page.complaints(), f"console, looks: {page.complaints()}")


def measured_run(name, figures):
    os.makedirs(os.path.join(folder, name))
    keys = ("instrument", "node", "statistic", "mean", "deviation")
    with open(os.path.join(folder, name, "measure.jsonl"), "w", encoding="utf-8") as file:
        found = [dict(zip(keys, figure), n=9) for figure in figures]
        file.write(json.dumps({"event": "measure", "measurements": found}) + "\n")


def read_several_gates(browser):
    """Different gates of one block have a chart each; the axis of shares ends at 1; names of blocks do not overlap; a
    table that is wider than the page has a hint."""
    blocks = [f"layer{s}.{b}" for s in (1, 2, 3) for b in range(18)]
    twice, once = [], []
    for i, block in enumerate(blocks):
        twice.append(("gate", f"{block}.se.channel.gate", "share < 1", 1 - 0.001 * i, 0.2))
        twice.append(("gate", f"{block}.se.spatial.gate", "share < 1", 0.5 + 0.001 * i, 0.2))
        once.append(("gate", f"{block}.se.gate", "share < 1", 0.7, 0.01))
    measured_run("a-run-with-" + 90 * "n", twice)
    measured_run("gated-once", once)
    page = browser.open(report(["a-run-with-" + 90 * "n", "gated-once"], "gates.html"), 1000, 800)
    charts = page.evaluate("""[...document.querySelectorAll("#gate figure")].map(figure => ({
        title: figure.querySelector("h3").textContent,
        top: Math.max(...[...figure.querySelectorAll(".axis.y .tick")].map(tick => Number(tick.textContent))),
        highest: Math.min(...[...figure.querySelectorAll(":scope > svg .whisker")].map(line => Number(line.getAttribute("y2")))),
        names: [...figure.querySelectorAll(".axis.x .tick text")].map(text => {
            const {left, right} = text.getBoundingClientRect();
            return [left, right];
        }),
        values: [...figure.querySelectorAll(".series")].map(series => [series.dataset.run,
            [...series.querySelectorAll(".mark")].map(mark => Number(mark.dataset.value))]),
    }))""")
    titles = [chart["title"] for chart in charts]
    check(titles == ["Share < 1: se.channel, se", "Share < 1: se.spatial"], f"a chart a gate: {titles}")
    of = lambda figures, part: [f[3] for f in figures if part in f[1]]
    check(charts[0]["values"] == [["0", of(twice, "channel")], ["1", of(once, "gate")]], f"{charts[0]['values']}")
    check(charts[1]["values"] == [["0", of(twice, "spatial")]], f"{charts[1]['values']}")
    for chart in charts:
        check(chart["top"] <= 1 and chart["highest"] >= 14, f"an axis of shares to {chart['top']}, {chart['highest']}")
        gaps = [b[0] - a[1] for a, b in zip(chart["names"], chart["names"][1:])]
        check(len(gaps) > 3 and min(gaps) > 3, f"names of blocks are {min(gaps)} pixels apart")
    page.evaluate(READ_TABLES)
    page.wait_for_layout()
    hints = page.evaluate("""[...document.querySelectorAll(".scrolling")].map(part => [
        part.firstChild.scrollWidth > part.firstChild.clientWidth, !part.lastChild.hidden])""")
    check(any(wider for wider, _ in hints), "no table is wider than the page")
    check(all(wider == said for wider, said in hints), f"hints of wide tables: {hints}")
    check(not page.complaints(), f"console, gates: {page.complaints()}")


def read_switches(browser):
    """The residuals of all switches are lines of one chart for each run and norm, on a logarithmic axis."""
    nodes = ["input"] + [f"blocks.{b}.add{half}" for b in range(3) for half in (1, 2)]
    wanted = {}
    for s, (switch, rate) in enumerate((("attention", 3.0), ("skip", 1.0), ("mlp_no_norm", 2.0), ("both", 0.5))):
        places = [node for node in nodes if s > 1 or not node.endswith("add2")]
        for k, kind in enumerate(("composite", "frobenius")):
            wanted[kind, switch] = [(k + 1) * 10.0 ** -((4 - s) * i) for i in range(len(places))]
            for node, value in zip(places, wanted[kind, switch]):
                wanted.setdefault("figures", []).append(("collapse", node, f"{kind} {switch}", value, value / 9))
        wanted["figures"].append(("collapse", "", f"rate {switch}", rate, 0.1))
    measured_run("switched", wanted["figures"])
    page = browser.open(report(["switched"], "switches.html"))
    charts = page.evaluate("""[...document.querySelectorAll("#collapse figure")].map(figure => ({
        title: figure.querySelector("h3").textContent,
        key: [...figure.querySelectorAll(".key > span")].map(item => item.textContent),
        blocks: [...figure.querySelectorAll(".axis.x .tick")].map(tick => tick.textContent),
        looks: [...figure.querySelectorAll(".series")].map(series =>
            [getComputedStyle(series.querySelector(".line")).stroke, series.querySelector(".line").getAttribute("stroke-dasharray")]),
        values: [...figure.querySelectorAll(".series")].map(series => [...series.querySelectorAll(".mark")].map(mark =>
            [Number(mark.dataset.value), mark.transform.baseVal.consolidate().matrix.f])),
    }))""")
    check([c["title"] for c in charts] == ["Composite norm", "Frobenius norm"], f"charts {charts}")
    for chart, kind in zip(charts, ("composite", "frobenius")):
        check(chart["key"] == ["attention only", "attention + skip", "attention + skip + MLP",
                               "attention + MLP, without norms"], f"key {chart['key']}")
        drawn = [[value for value, _ in line] for line in chart["values"]]
        lines = [wanted[kind, switch] for switch in ("attention", "skip", "both", "mlp_no_norm")]
        check(drawn == lines, f"{kind}: {drawn}, wanted {lines}")
        check(chart["blocks"] == ["in", "0", "1", "2"], f"places {chart['blocks']}")
        check([dash for _, dash in chart["looks"]] == ["none"] * 3 + ["5 3"], f"dashes {chart['looks']}")
        check(len({stroke for stroke, _ in chart["looks"]}) == 4, f"colours {chart['looks']}")
        heights = [y for _, y in chart["values"][0]]
        steps = [b - a for a, b in zip(heights, heights[1:])]
        check(min(steps) > 0 and max(steps) - min(steps) < 1e-3, f"equal factors are {steps} pixels apart")
    row = page.evaluate("[...document.querySelector('#collapse .whole tbody tr').cells].map(c => c.dataset.value)")
    check([float(cell) for cell in row[1:5]] == [3.0, 1.0, 2.0, 0.5], f"rates {row}")
    check(not page.complaints(), f"console, switches: {page.complaints()}")


def read_spreads(page):
    """A deviation has two digits, and its mean has as many decimals."""
    for mean, deviation, text in (
        (8.93333, 1.2, "8.9 ± 1.2"),
        (0.074543, 0.0238, "0.075 ± 0.024"),
        (20, 0.996, "20.0 ± 1.0"),
        (0.05, 0.999, "0.1 ± 1.0"),
        (12345.6, 123, "12,350 ± 120"),
        (60, 0, "60 ± 0"),
        (1.5, None, "1.5"),
        (0.0000312345, 0.0000012, "(3.12 ± 0.12)e-5"),
        (31234567, 1200000, "(3.12 ± 0.12)e7"),
        (float("nan"), 1, "–"),
    ):
        mean = "NaN" if math.isnan(mean) else mean
        told = page.evaluate(f"plusMinus({mean}, {json.dumps(deviation)})").replace("−", "-")
        check(told == text, f"{mean} ± {deviation} is written {told}, wanted {text}")


def read_counts(page):
    """The ticks of updates are whole numbers, however few updates there are."""
    ticks = page.evaluate(
        "[...new Set([...document.querySelectorAll('#training .axis.x .tick')].map(tick => tick.textContent))]"
    )
    check(ticks and all(tick.isdigit() for tick in ticks), f"ticks of updates: {ticks}")


def read_tasks(browser):
    """Titles and units are those of the task's metrics; metrics of an unknown task are shown by name."""
    path = os.path.join(copy("plain-1", "counted", without=["measure.jsonl"]), "metrics.jsonl")
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    for event in lines:
        if event["event"] == "run_begin":
            event["task"] = "unheard"
        if event["event"] == "epoch":
            event["eval_mae"] = event.pop("eval_top1")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(event) + "\n" for event in lines)
    page = browser.open(report(["plain-1", "counted"], "tasks.html"))
    check(not page.complaints(), f"tasks: {page.complaints()}")
    titles = page.evaluate("[...document.querySelectorAll('#training figure h3')].map(title => title.textContent)")
    wanted = ["Training loss, nats (classification)", "Training loss (unheard)",
              "Evaluation loss, nats (classification)", "Evaluation loss (unheard)",
              "Top-1 on evaluation images, %", "Top-5 on evaluation images, %", "Top5 on evaluation images",
              "Mae on evaluation images", "Learning rate"]
    check(titles == wanted, f"charts of two tasks: {titles}")
    page.evaluate(READ_TABLES)
    heads = page.evaluate("[...document.querySelectorAll('#training th')].map(head => head.textContent)")
    check(len(set(heads)) == len(heads) and "top-1, %" in heads and "mae" in heads, f"columns of two tasks: {heads}")
    scores = page.evaluate("[...document.querySelectorAll('.card')].map(card => card.querySelector('.big')?.textContent)")
    check("top-1" in scores[0] and scores[1] is None, f"scores of two tasks: {scores}")


def read_little(browser):
    """Runs with almost no records: a training that just began, figures without numbers."""
    os.makedirs(os.path.join(folder, "begun"))
    with open(os.path.join(folder, "begun", "metrics.jsonl"), "w", encoding="utf-8") as file:
        file.write('{"event":"run_begin","epoch":0,"step":0}\n{"event":"step","epoch":0,"step":1,"loss":null}\n')
    os.makedirs(os.path.join(folder, "empty"))
    figure = '{"instrument":"%s","node":"n","statistic":"mean","mean":null,"deviation":null,"n":0}'
    with open(os.path.join(folder, "empty", "measure.jsonl"), "w", encoding="utf-8") as file:
        figures = [figure % name for name in (*DEPTHS, "tns", "accuracy", "unheard of")]
        figures.append((figure % "of networks").replace('"node":"n"', '"node":""'))
        file.write('{"event":"measure","measurements":[%s]}\n' % ",".join(figures))
    for names in (["begun"], ["empty"], ["begun", "empty"]):
        page = browser.open(report(names, "little.html"))
        check(not page.complaints(), f"{names}: {page.complaints()}")
        check(page.evaluate("document.documentElement.dataset.ready") == "true", f"{names}: not drawn")
        text = page.evaluate("""(() => {
            const copy = document.body.cloneNode(true);
            for (const part of copy.querySelectorAll("script, .method")) part.remove();
            return copy.outerHTML;
        })()""")
        for unknown in ("unheard of", "of networks"):
            check(names == ["begun"] or unknown in text, f"{names}: {unknown}, an unknown instrument, is left out")
        check(
            not any(word in text for word in ("NaN", "undefined", "null")),
            f"{names}: missing values are shown as NaN, undefined or null",
        )


def read_hostile(page):
    check(page.evaluate("typeof boom") == "undefined", "boom")
    check(
        page.evaluate("document.querySelectorAll('img, main script, [onload], [onerror]').length") == 0,
        "hostile texts became elements",
    )
    text = page.evaluate("document.body.innerText")
    check(HOSTILE in text and "</script><script>boom()</script>" in text, "hostile texts are not shown literally")


# --- maps -------------------------------------------------------------------------------------------------------------


TOKENS, HEADS = 5, 2


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
WORDS = re.compile(
    rf"Strongest patch: row (\d+), column (\d+) \({NUMBER} %\)\. On the class token: {NUMBER} %\. "
    rf"On itself: {NUMBER} %\. Entropy(?: of the mean map)?: {NUMBER} of at most"
)


def correct(printed, true):
    """Whether the printed value is the true one to three significant digits, within the precision of f32."""
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
    """The buttons show the rows of the first image with the lowest, median and highest entropy. All layers are alike."""
    rows = sorted(entropy(weights(0, head, query)) for head in range(HEADS) for query in range(TOKENS))
    words = "document.querySelector('#maps .readout').textContent"
    for name, true in {"lowest": rows[0], "median": rows[len(rows) // 2], "highest": rows[-1]}.items():
        page.evaluate(f"""[...document.querySelectorAll('#maps .tools button')]
            .find(button => button.textContent === "Entropy: {name}").click()""")
        told = page.evaluate(words)
        found = re.search(rf"Entropy: {NUMBER} of at most", told)
        check(found is not None and correct(found[1], true), f"{name} entropy, should be {true}: {told}")


def read_maps(page):
    asked = list(itertools.product(range(3), range(3), range(-1, HEADS), range(TOKENS)))
    for (image, layer, head, query), words in zip(asked, page.evaluate(f"{READ_OUT}({json.dumps(asked)})")):
        row = weights(image, head, query)
        check_readout(words, row, query, 2, f"image {image}, head {head}, query {query}")
        check_mean_entropy(words, image, head, query)
        got = page.evaluate(f"[...atlasOf(runs[0]).row({image}, {layer}, {head}, {query})]")
        check(
            len(got) == 4 and all(abs(a - b) <= max(row[1:]) / 255 for a, b in zip(got, row[1:])),
            f"colours of image {image}, head {head}, query {query}: {got}",
        )
    box = page.evaluate("""(() => {
        const view = document.querySelector("#maps .view canvas");
        view.scrollIntoView({block: "center", behavior: "instant"});
        const {left, top, width, height} = view.getBoundingClientRect();
        return [left, top, width, height];
    })()""")
    words = "document.querySelector('#maps .readout').textContent"
    for query, (x, y) in {1: (0.25, 0.25), 2: (0.75, 0.25), 3: (0.25, 0.75), 4: (0.75, 0.75)}.items():
        page.move(box[0] + x * box[2], box[1] + y * box[3])
        page.wait_for_layout()
        told = page.evaluate(words)
        check(f"row {(query - 1) // 2 + 1}, column {(query - 1) % 2 + 1}" in told, f"query {query}: {told}")
        check_readout(told, weights(0, -1, query), query, 2, f"query {query} pointed at")
    page.evaluate("document.querySelector('#maps .view canvas').focus()")
    query = "document.querySelector('#maps .view canvas').dataset.query"
    page.move(1, 1)
    page.key("c")
    check(page.evaluate(query) == "0" and "the class token" in page.evaluate(words), "C does not choose the class token")
    page.key("ArrowRight")
    page.key("ArrowDown")
    check(page.evaluate(query) == "3", f"arrow keys move the query: {page.evaluate(query)}")
    page.evaluate("document.querySelectorAll('#maps .strip button')[1].click()")
    told = "document.querySelector('#maps figcaption').textContent"
    check(
        page.evaluate(told) == "dog/<b>.png · <b>dog</b>, predicted: cat (51.2 %). Next: <b>dog</b> 25 %.",
        f"names of image 2: {page.evaluate(told)}",
    )
    page.evaluate("document.querySelectorAll('#maps .choice input')[1].click()")
    check(page.evaluate(told).startswith("dog/<b>.png · "), f"the same image of another run: {page.evaluate(told)}")
    page.evaluate("document.querySelectorAll('#maps .strip button')[2].click()")
    page.evaluate("document.querySelectorAll('#maps .choice input')[0].click()")
    check(
        page.evaluate(told) == "c.png · predicted: class 6 (50 %). Next: cat 30 %.",
        f"an image without a class: {page.evaluate(told)}",
    )
    page.evaluate("document.querySelectorAll('#maps .strip button')[0].click()")
    check(page.evaluate(told).startswith("cat/a.png · cat, recognised (90 %)."), f"image 1: {page.evaluate(told)}")
    # Run 1 showed c.png last. An image of another data set is another image, whatever its name.
    page.evaluate("runs[1].measured_begin.data = 'elsewhere'")
    page.evaluate("document.querySelectorAll('#maps .choice input')[1].click()")
    check(page.evaluate(told).startswith("c.png · "), f"an image of other data: {page.evaluate(told)}")
    page.evaluate("runs[0].measured_begin.contents = runs[1].measured_begin.contents = 'same'")
    page.evaluate("document.querySelectorAll('#maps .choice input')[0].click()")
    check(page.evaluate(told).startswith("c.png · "), f"the same images elsewhere: {page.evaluate(told)}")
    page.evaluate("document.querySelectorAll('#maps .strip button')[0].click()")
    check(page.evaluate(told).startswith("cat/a.png · "), f"image 1 again: {page.evaluate(told)}")
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
    check(alone != covered and min(alone, covered) < between < max(alone, covered), "the slider does not mix image and attention")


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
            centres[head] = [sum(w * divmod(p, 2)[axis] for p, w in enumerate(maps[head])) / total - 1 for axis in (0, 1)]
            got = page.evaluate(f"[...centralMaps(runs[0].maps.nodes[{layer}])[{head}]]")
            check(all(near(a, b, 1e-5) for a, b in zip(got, maps[head])), f"{name}, head {head}: {got}, {maps[head]}")
        order = sorted(maps, key=lambda head: (round(centres[head][0]), centres[head][1]))
        check([head for head, _ in heads] == order, f"{name}: heads {[h for h, _ in heads]} in place of {order}")
        for (head, paths), text in zip(heads, words):
            found = re.fullmatch(rf"head {head}: row {NUMBER}, column {NUMBER}", text)
            check(
                found and all(near(float(found[i + 1].replace("−", "-")), centres[head][i], 1e-2) for i in (0, 1)),
                f"{name}: {text}, the centre is {centres[head]}",
            )
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
    check(page.evaluate("document.querySelector('#centres output').textContent") == "update 10, epoch 0", "the slider's label")
    check(page.evaluate("document.querySelectorAll('#centres g[data-head=\"1\"] path').length") == 1,
          "a head without spreads has contours")
    check(page.evaluate("document.querySelectorAll('#centres figure .export').length") == 1, "a picture without a button")
    saved = xml.etree.ElementTree.fromstring(page.evaluate("svgOf(document.querySelector('#centres figure'), {title: 't'})"))
    tag = "{http://www.w3.org/2000/svg}"
    lines = [path for path in saved.iter(f"{tag}path") if path.get("vector-effect") == "non-scaling-stroke"]
    colours = {group.get("stroke") for group in saved.iter(f"{tag}g") if group.get("stroke", "none").startswith("rgb(")}
    check(len(lines) == 6 and len(colours) == 2,
          f"the saved picture has a cross, two paths and three ellipses, found {len(lines)} lines, colours {colours}")
    texts = [text.text for text in saved.iter(f"{tag}text")]
    check(texts[0] == "t" and sum(text.startswith("head ") for text in texts) == 2, f"texts of the saved picture: {texts}")


def read_centres(browser):
    """The centres of single heads over a training; the charts of the development stay those of all heads."""
    paths = {0: [(1, -2), (0.5, -1), (0, 0.5)], 1: [(-3, 0), (-2, 1), (-2, 2)]}
    os.makedirs(os.path.join(folder, "moving"))
    with open(os.path.join(folder, "moving", "metrics.jsonl"), "w", encoding="utf-8") as file:
        file.write('{"event": "run_begin"}\n')
        for k in range(3):
            figures = [("row", head, path[k][0]) for head, path in paths.items()]
            figures += [("column", head, path[k][1]) for head, path in paths.items()]
            figures += [("row", None, 0.125 * k), ("row spread", None, 3)]
            figures += [("row spread", 0, 3 - k), ("column spread", 0, 2), ("correlation", 0, 0.6)]
            keys = {"instrument": "head_shape", "node": "blocks.0.attn", "deviation": 0.1, "n": 8}
            found = [keys | {"statistic": s, "mean": mean} | ({} if head is None else {"head": head})
                     for s, head, mean in figures]
            file.write(json.dumps({"event": "measure", "step": 10 * (k + 1), "epoch": 0, "measurements": found}) + "\n")
    page = browser.open(report(["moving"], "moving.html"))
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
    check(kept == wanted, f"series of a training: {kept}")
    check(not page.complaints(), f"console, centres: {page.complaints()}")


# Shows the maps of the first run as if its images and its grid had other sides. Returns the boxes of the large image
# and of all images, and the width of the column.
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
            told = page.evaluate("document.querySelector('#maps .readout').textContent")
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
    page = browser.open(report(["deit"], "deit.html"), 1440, 900)
    asked = list(itertools.product([0], range(layers), range(-1, heads), range(tokens)))
    for (_, layer, head, query), words in zip(asked, page.evaluate(f"{READ_OUT}({json.dumps(asked)})")):
        some = range(heads) if head < 0 else [head]
        rows = [full[((layer * heads + h) * tokens + query) * tokens :][:tokens] for h in some]
        row = rows[0] if head >= 0 else [sum(column) / heads for column in zip(*rows)]
        check_readout(words, row, query, 14, f"DeiT-Tiny, layer {layer}, head {head}, query {query}")
    words = page.evaluate(f"{READ_OUT}([[0, 1, 0, 0]])[0]")
    check("Entropy: 0.681 of at most" in words, f"the class token in blocks.1, head 0: {words}")


# --- manners ----------------------------------------------------------------------------------------------------------


def use_legend(page):
    chip = "document.querySelectorAll('#legend .chip')[1]"
    ticks = "[...document.querySelectorAll('.axis.y')].map(a => a.textContent).join('|')"
    all_runs = page.evaluate(ticks)
    page.evaluate(f"{chip}.click()")
    check(page.evaluate(ticks) != all_runs, "the axes do not follow the shown runs")
    check(
        page.evaluate(
            "[...document.querySelectorAll('.series')]"
            ".every(s => s.classList.contains('off') === (s.dataset.run === '1'))"
        ),
        "a click on the legend must hide its run, and no other",
    )
    page.evaluate(f"{chip}.click()")
    check(page.evaluate("document.querySelectorAll('.series.off').length") == 0, "another click does not show the run again")
    page.evaluate(f"{chip}.focus()")
    check(
        page.evaluate(
            "[...document.querySelectorAll('.series')]"
            ".every(s => s.classList.contains('dim') === (s.dataset.run !== '1'))"
        ),
        "the legend's focus must dim the other runs only",
    )
    page.evaluate(f"{chip}.blur()")


def use_keys(page):
    page.evaluate("document.querySelector('#entropy svg[tabindex]').focus()")
    page.key("ArrowRight")
    told = page.evaluate("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")
    check("blocks.0.attn" in told and "n = 9" in told, f"keys on a chart: {told}")
    page.key("Escape")
    check(page.evaluate("document.getElementById('tip').hidden"), "Escape does not hide the tip")


def use_development(page):
    for index, name in enumerate(NAMES):
        trained = events(name, "metrics.jsonl", "measure")
        wanted = [m for m in trained[-1]["measurements"] if "head" not in m]
        series = page.evaluate(f"runs[{index}].development.series")
        check(len(series) == len(wanted), f"{name}: {len(series)} series of a development, {len(wanted)} wanted")
        for s in series:
            means = [
                next(
                    m["mean"]
                    for m in e["measurements"]
                    if "head" not in m and all(m[k] == s[k] for k in ("instrument", "node", "statistic"))
                )
                for e in trained
            ]
            check(s["mean"] == means, f"{name}: development of {s['instrument']} {s['node']} {s['statistic']}")
    for choice in range(page.evaluate("document.querySelectorAll('#development .choice input').length")):
        page.evaluate(f"document.querySelectorAll('#development .choice input')[{choice}].click()")
        page.wait_for_layout()
        drawn = page.evaluate(
            "[...document.querySelectorAll('#development .line')].filter(l => l.getAttribute('d')).length"
        )
        check(drawn >= len(NAMES), f"development {choice}: {drawn} lines")
        dashed, captions, name = page.evaluate("""[
            [...document.querySelectorAll("#development figure")].map(f =>
                f.querySelectorAll(".line[stroke-dasharray]").length),
            document.querySelectorAll("#development figure figcaption").length,
            document.querySelectorAll("#development .choice input:checked")[0].parentElement.textContent]""")
        check(dashed == len(NAMES) * [int(name.startswith("Neural stiffness index"))], f"{name}: lines of what TNS leaves out: {dashed}")
        check(captions == sum(dashed), f"{name}: {captions} captions explain {sum(dashed)} dashed lines")


def use_theme(page, dark):
    shade = "Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
    check((page.evaluate(shade) < 60) == dark, "the system's theme is not used")
    for wanted in (False, True, dark):  # light, dark, the system's
        page.evaluate("document.getElementById('theme').click()")
        check((page.evaluate(shade) < 60) == wanted, f"theme {page.evaluate('document.documentElement.dataset.theme')}")
    contrast = page.evaluate("""(() => {
        const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
        const light = c => {
            const [r, g, b] = c.match(/[\\d.]+/g).map(v => linear(v / 255));
            return .2126 * r + .7152 * g + .0722 * b;
        };
        const of = (node, property) => light(getComputedStyle(node)[property]);
        const ratio = (a, b) => (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        const card = of(document.querySelector("figure"), "backgroundColor");
        return [ratio(of(document.querySelector(".card dd"), "color"), card),
            ratio(of(document.querySelector(".axis text"), "fill"), card),
            ...[...document.querySelectorAll("#entropy .mark")].map(m => ratio(of(m, "fill"), card))];
    })()""")
    check(contrast[0] > 7 and contrast[1] > 4.5 and min(contrast[2:]) > 3, f"contrast {contrast}")


READ_CONTRAST = """
(() => {
    for (const details of document.querySelectorAll("main details")) details.open = true;
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    const context = canvas.getContext("2d", {willReadFrequently: true});
    const rgba = colour => {
        context.clearRect(0, 0, 1, 1);
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data].map(v => v / 255);
    };
    const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
    const behind = node => {
        const layers = [];
        for (let at = node; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
        return layers.reduceRight((below, top) => over(top, below), [1, 1, 1, 1]);
    };
    const light = c => {
        const [r, g, b] = c.map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
    };
    const ratio = node => {
        const style = getComputedStyle(node), below = behind(node);
        const colour = rgba(node.ownerSVGElement ? style.fill : style.color);
        for (let at = node; at; at = at.parentElement) colour[3] *= Number(getComputedStyle(at).opacity);
        const [a, b] = [light(over(colour, below)), light(below)];
        return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    };
    return new Promise(done => setTimeout(() => {
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = new Map();
        while (walker.nextNode()) {
            const node = walker.currentNode.parentElement;
            const drawn = walker.currentNode.data.trim() && node.getClientRects().length;
            if (drawn && !["SCRIPT", "STYLE", "NOSCRIPT"].includes(node.tagName)) found.set(node, ratio(node));
        }
        done([...found].map(([node, value]) => [value, `${node.tagName}.${node.getAttribute("class") ?? ""} in ` +
            (node.parentElement.getAttribute("class") || node.parentElement.tagName), node.textContent.slice(0, 40)]));
    }, 100));
})()
"""


def read_contrast(page, where):
    """Every text has a contrast of at least 4.5 : 1 with its background: in charts, tables, captions and tips."""
    page.evaluate("document.querySelectorAll('#legend .chip')[1].click()")  # one that is switched off
    page.evaluate("document.querySelector('#entropy svg.chart').focus()")
    page.key("ArrowRight")
    found = page.evaluate(READ_CONTRAST)
    page.key("Escape")
    page.evaluate("document.querySelectorAll('#legend .chip')[1].click()")
    kinds = {what.split(" ")[0] for _, what, _ in found}
    check(len(found) > 300, f"{where}: {len(found)} texts")
    for kind in ("figcaption", "text", "TD", "TH", "BUTTON", "DIV", "DD", "P", "H2"):
        check(any(k.lower().startswith(kind.lower() + ".") for k in kinds), f"{where}: no {kind} among {kinds}")
    low = {what: (round(value, 2), text) for value, what, text in found if not value >= 4.5}
    check(not low, f"{where}: contrast of {low}")


# --- fingers ----------------------------------------------------------------------------------------------------------

TOLD = "document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent"


def chart_box(page, section):
    """Scrolls the first chart of a section into the window and returns its box there, once the page above it has stopped
    moving it."""
    box = None
    for _ in range(100):
        before, box = box, page.evaluate(f"""(() => {{
            const svg = document.querySelector("#{section} svg.chart");
            svg.scrollIntoView({{block: "center", behavior: "instant"}});
            const {{left, top, width, height}} = svg.getBoundingClientRect();
            return [left, top, width, height];
        }})()""")
        if box == before:
            return box
        page.wait_for_layout()
    raise TimeoutError(f"{section}: the chart does not stay where it is")


def mark_at(page, section, node):
    """Returns the position in the window of the first run's mark at this node."""
    return page.evaluate(f"""(() => {{
        const marks = document.querySelectorAll("#{section} svg.chart .series[data-run='0'] .mark");
        const {{left, top, width, height}} = marks[{node}].getBoundingClientRect();
        return [left + width / 2, top + height / 2];
    }})()""")


def use_touch(page):
    """A tap shows a tip, which stays; moving the finger moves the tip; scrolling the page, or a tap elsewhere, hides
    it."""
    page.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=1)
    page.evaluate("document.activeElement.blur()")
    for section in ("entropy", "nsi", "training"):
        left, top, width, height = chart_box(page, section)
        middle = left + width / 2, top + height / 2
        page.tap(*middle)
        told = page.evaluate(TOLD)
        hit = page.evaluate("(document.elementFromPoint({}, {}) ?? document).nodeName".format(*middle))
        check(told, f"{section}: a tap on a chart at {middle} shows no tip; the page has {hit} there")
        page.wait_for_layout()
        check(page.evaluate(TOLD) == told, f"{section}: the tip disappears with the finger")
        page.tap(5, 400)
        check(not page.evaluate(TOLD), f"{section}: a tap elsewhere leaves {page.evaluate(TOLD)}")
    chart_box(page, "entropy")
    first, last = mark_at(page, "entropy", 0), mark_at(page, "entropy", 2)
    page.touch("touchStart", *first)
    check("blocks.0.attn" in page.evaluate(TOLD), f"the first block: {page.evaluate(TOLD)}")
    for share in (0.2, 0.4, 0.6, 0.8, 1):
        page.touch("touchMove", *[a + share * (b - a) for a, b in zip(first, last)])
    check("blocks.2.attn" in page.evaluate(TOLD), f"after a move to the last block: {page.evaluate(TOLD)}")
    page.touch("touchEnd")
    check("blocks.2.attn" in page.evaluate(TOLD), f"after that: {page.evaluate(TOLD)}")
    spot = page.evaluate("""(() => {
        const {left, width} = document.querySelector("#entropy .spot").getBoundingClientRect();
        return left + width / 2;
    })()""")
    check(abs(spot - last[0]) < 12, f"the ring is at {spot}, the mark at {last[0]}")
    page.evaluate("document.querySelector('#entropy svg.chart').dispatchEvent(new PointerEvent('pointercancel'))")
    check(not page.evaluate(TOLD), "the tip stays while the page is scrolled")
    page.tap(*mark_at(page, "entropy", 1))
    check(page.evaluate(TOLD), "a tap after that shows no tip")
    page.resize(740, 360)
    page.wait_for_layout()
    page.wait_for_layout()
    check(not page.evaluate(TOLD), "the tip of a redrawn chart stays")
    page.call("Emulation.setTouchEmulationEnabled", enabled=False)


# --- files ------------------------------------------------------------------------------------------------------------


def take_file(where, seconds=30):
    """Waits for the one file that is being saved in the folder, removes it, and returns (name, text)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        names = os.listdir(where)
        if len(names) == 1 and not names[0].endswith(".crdownload"):
            path = os.path.join(where, names[0])
            with open(path, encoding="utf-8", newline="") as file:
                text = file.read()
            if text.endswith("\n"):
                os.remove(path)
                return names[0], text
        time.sleep(0.01)
    return None


def saved(page, where, selector):
    """Returns {file name: text} of the files that the buttons save. Only the first button is really pressed, because
    reading a saved file is slow."""
    page.click(f"document.querySelector('{selector}')")
    first = take_file(where)
    files = page.evaluate(f"""(() => {{
        const kept = [], real = save;
        save = (name, type, text) => kept.push([name, text]);
        for (const button of document.querySelectorAll("{selector}")) button.click();
        save = real;
        return kept;
    }})()""")
    check(first and list(first) == files[0], f"the first button of {selector} saves {first}, not {files[0][0]}")
    check(len(dict(files)) == len(files), f"two files have one name: {sorted(name for name, _ in files)}")
    return dict(files)


def read_csv(text):
    check(text.endswith("\r\n") and "\n" not in text.replace("\r\n", ""), "lines of a CSV must end in CR LF")
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    check(len({len(row) for row in rows}) == 1, f"a CSV with rows of {set(map(len, rows))} fields")
    check(len(set(rows[0])) == len(rows[0]), f"a CSV has a name twice: {rows[0]}")
    return rows


def check_values(files):
    """Checks that the CSV files have the exact values of an instrument, with names and units."""
    for instrument, unit in (("entropy", ", nats"), ("distance", ", image sides"), ("nsi", "")):
        rows = read_csv(files[f"4-runs-{instrument}-table.csv"])
        mark = {"nsi": ["excluded"], "entropy": [f"bound{unit}"], "distance": [f"uniform{unit}"]}[instrument]
        wanted = ["run", "statistic", "node", "head", f"mean{unit}", f"deviation{unit}", "n", *mark]
        check(rows[0] == wanted, f"{instrument}: columns {rows[0]}, wanted {wanted}")
        found = {tuple(row[:4]): row[4:] for row in rows[1:]}
        for name in NAMES:
            for m in measured(name):
                if m["instrument"] != instrument:
                    continue
                row = found.pop((name, m["statistic"], m["node"], str(m.get("head", "all"))), None)
                check(
                    row and float(row[0]) == m["mean"] and float(row[1]) == m["deviation"] and row[2] == str(m["n"]),
                    f"{instrument} in the CSV: {row}, in the file: {m}",
                )
                last = {"nsi": "yes *" if m["node"] == "blocks.0.add1" else "no", "entropy": str(m.get("bound")),
                        "distance": str(m.get("uniform"))}
                check(row[3] == last[instrument], f"{row}, wanted {last}")
        check(not found, f"{instrument}: rows of nothing: {found}")


def check_whole(files):
    """Cells with a deviation become two columns; hostile names keep their quotes and commas."""
    accuracy = read_csv(files["4-runs-accuracy-table.csv"])
    head = ["run", "top-1, %", "top-1, %, standard error", "top-5, %", "top-5, %, standard error", "loss, nats",
            "loss, nats, standard error", "n", "measured on"]
    check(accuracy[0] == head, f"accuracy: {accuracy[0]}")
    check([row[0] for row in accuracy[1:]] == NAMES, f"accuracy is of {[row[0] for row in accuracy[1:]]}")
    for row, name in zip(accuracy[1:], NAMES):
        m = next(m for m in measured(name) if m["statistic"] == "top1")
        check(float(row[1]) == m["mean"] and near(float(row[2]), m["deviation"] / 3), f"top-1 of {name}: {row}, {m}")
    tns = read_csv(files["4-runs-tns-table.csv"])
    check(tns[0][:6] == ["run", "reading", "TNS", "TNS, deviation", "ζ*", "ζ*, deviation"], f"tns: {tns[0]}")
    training = read_csv(files["4-runs-training-table.csv"])
    losses = events(NAMES[0], "metrics.jsonl", "epoch")
    check(training[0][3] == "train loss, nats", f"training: {training[0]}")
    check([float(row[3]) for row in training[1:4]] == [e["train_loss"] for e in losses], "losses of epochs")
    settings = [text for name, text in files.items() if name.startswith("4-runs-overview-table")]
    check(len(settings) == 3 and any(f'"{HOSTILE}' not in text and HOSTILE in text for text in settings), "settings")
    check(any('""' in text and "onload" in text for text in settings), "a quote in a value is not doubled")


NUMBERS = re.compile(r"-?\d+(\.\d+)?")


def check_drawing(name, text, chart):
    """Checks a saved SVG: it parses without the page, has a title, and has the chart's axes, lines and marks with their
    styles."""
    root = xml.etree.ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    check(root.tag == space + "svg" and root.get("width") and root.get("height"), f"{name}: {root.attrib}")
    check(root[0].tag == space + "title" and root[0].text == chart["title"], f"{name}: title {root[0].text}")
    texts = [node.text for node in root.iter(space + "text")]
    for wanted in (chart["title"], chart["label"], *chart["blocks"], *NAMES):
        check(wanted in texts, f"{name}: no text {wanted}")
    nodes = list(root.iter())
    check(not any({"class", "style"} & set(node.attrib) or node.tag == space + "style" for node in nodes), f"{name}: styles")
    check(not any("var(" in value or "url(" in value for node in nodes for value in node.attrib.values()), f"{name}: links")
    inherited(root, {})
    paths = [node for node in root.iter(space + "path") if node.get("d")]
    drawn = {(node.get("d"), node.get("transform")) for node in paths}
    for mark in chart["marks"]:
        check(tuple(mark) in drawn, f"{name}: no mark {mark}")
    check(all(tuple([line, None]) in drawn for line in chart["lines"] if line), f"{name}: a line is missing")
    colours = {node.get("all-fill") for node in paths if [node.get("d"), node.get("transform")] in chart["marks"]}
    check(len(colours) >= len(NAMES) and all(c.startswith("rgb") for c in colours), f"{name}: marks are {colours}")
    box = [float(v) for v in root.get("viewBox").split()]
    for node in root.iter(space + "text"):
        if node.get("y") and NUMBERS.fullmatch(node.get("y")):
            check(float(node.get("y")) < box[3], f"{name}: {node.text} lies below the edge")


def inherited(node, given):
    """Stores the inherited fill of each node in the attribute all-fill."""
    fill = node.get("fill", given.get("fill"))
    node.set("all-fill", fill or "black")
    for child in node:
        inherited(child, {"fill": fill})


READ_DRAWN = """
[...document.querySelectorAll("#entropy figure, #nsi figure")].map(figure => ({
    section: figure.closest("section").id, title: figure.querySelector("h3").textContent,
    label: figure.querySelector(".label").textContent,
    blocks: [...figure.querySelectorAll(".axis.x .tick")].map(tick => tick.textContent),
    marks: [...figure.querySelectorAll(".series .mark")].map(m => [m.getAttribute("d"), m.getAttribute("transform")]),
    lines: [...figure.querySelectorAll(".series .line")].map(line => line.getAttribute("d")),
}))
"""


def save_files(browser):
    """Every table has its CSV, and every chart and picture its SVG."""
    where = os.path.join(folder, "saved")
    os.makedirs(where)
    page = browser.open(os.path.join(folder, "page.html"))
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=where)
    page.evaluate(READ_TABLES)
    tables, buttons = page.evaluate("""[[...document.querySelectorAll("table")].map(t => t.closest(".scrolling") &&
        t.closest(".scrolling").querySelectorAll(".export").length), document.querySelectorAll(".scrolling .export").length]""")
    check(tables and all(n == 1 for n in tables) and len(tables) == buttons, f"{len(tables)} tables, {buttons} buttons")
    charts = page.evaluate("[...document.querySelectorAll('svg.chart, svg.shifts')].map(c => "
                           "c.closest('figure').querySelectorAll('.export').length)")
    check(len(charts) > 15 and all(n == 1 for n in charts), f"buttons of charts: {charts}")
    sheets = saved(page, where, ".scrolling .export")
    check(len(sheets) == len(tables), f"{len(sheets)} files of {len(tables)} tables: {sorted(sheets)}")
    for text in sheets.values():
        read_csv(text)
    check_values(sheets)
    check_whole(sheets)
    drawings = saved(page, where, "figure .export")
    check(len(drawings) == len(charts), f"{len(drawings)} files of {len(charts)} charts: {sorted(drawings)}")
    for text in drawings.values():
        xml.etree.ElementTree.fromstring(text)
    for chart in page.evaluate(READ_DRAWN):
        name = "4-runs-{}-{}.svg".format(chart["section"], re.sub(r"[^\w.-]+", "-", chart["title"]))
        check(name in drawings, f"no {name} among {sorted(drawings)}")
        if name in drawings:
            check_drawing(name, drawings[name], chart)
    check(not page.complaints(), f"console, files: {page.complaints()}")
    alone = os.path.join(folder, "alone.svg")
    with open(alone, "w", encoding="utf-8") as file:
        file.write(next(text for name, text in drawings.items() if "entropy" in name))
    opened = browser.open(alone)
    check(opened.evaluate("document.documentElement.getBBox().width") > 300, "a saved SVG shows nothing")
    named = page.evaluate("fileName('n'.repeat(90) + '/../x', 'nsi', '<NSI>, %', '2')")
    check(named == 48 * "n" + "-nsi-NSI-2", f"a file's name: {named}")
    quoted = page.evaluate("[`a`, `a,b`, `\"`, `a\\nb`, ``].map(csvField)")
    check(quoted == ["a", '"a,b"', '""""', '"a\nb"', ""], f"quoted: {quoted}")
    texts = page.evaluate("[`=HYPERLINK(\"x\")`, `+a`, `-a`, `@a`, `\\t=1`, `a=1`].map(csvField)")
    check(texts == ['"\'=HYPERLINK(""x"")"', "'+a", "'-a", "'@a", "'\t=1", "a=1"], f"formulas: {texts}")
    numbers = page.evaluate("[`-0.5`, `-1.2e-05`, `+3`, -7, `NaN`].map(csvField)")
    check(numbers == ["-0.5", "-1.2e-05", "+3", "-7", "NaN"], f"numbers: {numbers}")


def fits(page, width):
    check(
        page.evaluate("document.documentElement.scrollWidth") <= width, f"at {width} pixels the page scrolls sideways"
    )
    check(
        page.evaluate(
            "[...document.querySelectorAll('figure > svg')].every(s => s.getBoundingClientRect().width > 200)"
        ),
        f"at {width} pixels a chart is missing",
    )


def read(browser):
    path = report(NAMES, "page.html")
    page = browser.open(path, 1440, 900)
    check(page.evaluate("document.documentElement.dataset.ready") == "true", "the page is not drawn")
    for step in (
        read_charts,
        read_tables,
        read_whole_network,
        read_numbers,
        read_methods,
        read_overview,
        read_hostile,
        read_maps,
        read_contours,
        use_legend,
        use_keys,
        use_development,
        use_scale,
        read_spreads,
        read_oblong_maps,
        read_windows,
    ):
        step(page)
    use_theme(page, dark=False)
    fits(page, 1440)
    check(not page.complaints(), f"console: {page.complaints()}")
    check(all(url.startswith("file://") for url in page.requests()), f"requests: {page.requests()}")
    read_contrast(page, "light, desktop")
    phone = browser.open(path, 360, 740, dark=True)
    use_theme(phone, dark=True)
    read_contrast(phone, "dark, phone")
    use_touch(phone)
    for width in (360, 768):
        phone.resize(width, 740)
        phone.wait_for_layout()
        phone.wait_for_layout()
        fits(phone, width)
    phone.call("Emulation.setEmulatedMedia", media="print")
    check(
        phone.evaluate("getComputedStyle(document.querySelector('.contents')).display") == "none", "print has no menu"
    )
    check(not phone.complaints(), f"console, phone: {phone.complaints()}")
    read_deit(browser)
    read_one_seed(browser)
    read_two_seeds(browser)
    read_repeated_seed(browser)
    read_few_updates(browser)
    read_measured_beside_trained(browser)
    read_tasks(browser)
    read_little(browser)
    read_placed(browser)
    read_sweep(browser)
    read_differences(browser)
    read_reference(browser)
    read_entropies(browser)
    read_many_runs(browser)
    read_swept_looks(browser)
    read_several_gates(browser)
    read_centres(browser)
    read_switches(browser)
    save_files(browser)


READ_SWEEP = """
({
    settings: [...document.querySelectorAll("#settings tbody tr")].map(row =>
        [...row.cells].map(cell => cell.dataset.value ?? cell.textContent)),
    kinds: [...document.querySelectorAll("#trajectories .kind")].map(kind => kind.textContent),
    charts: [...document.querySelectorAll("#trajectories figure")].map(figure => [
        figure.querySelector("h3").textContent, figure.querySelectorAll(".line.faint").length,
        figure.querySelectorAll(".line:not(.faint)").length, figure.querySelector("figcaption").textContent]),
    scatter: [...document.querySelectorAll("#correlation figure")].map(figure =>
        [...figure.querySelectorAll(".series .mark")].map(mark =>
            [Number(mark.dataset.x), Number(mark.dataset.value)])),
    ranks: [...document.querySelectorAll("#correlation tbody tr")].map(row =>
        [...row.cells].map(cell => cell.dataset.value ?? cell.textContent)),
})
"""


def figure_of(name, instrument, statistic):
    return next(m["mean"] for m in measured(name) if m["instrument"] == instrument and m["statistic"] == statistic)


def tau_b(pairs):
    sign = lambda v: (v > 0) - (v < 0)
    apart = [(sign(a[0] - b[0]), sign(a[1] - b[1])) for i, a in enumerate(pairs) for b in pairs[:i]]
    both = sum(x != 0 for x, _ in apart) * sum(y != 0 for _, y in apart)
    return sum(x * y for x, y in apart) / math.sqrt(both) if both else None


PLACED = {"every-block": ["layer1.0", "layer1.1", "layer2.0", "layer2.1"], "layer2-only": ["layer2.0", "layer2.1"]}
READ_PLACED = """
Object.fromEntries([...document.querySelectorAll("#gate figure, #nsi figure")].map(figure => [
    figure.querySelector("h3").textContent, {
        ticks: [...figure.querySelectorAll(".axis.x .tick")].map(tick =>
            [tick.textContent, tick.transform.baseVal.consolidate().matrix.e]),
        label: figure.querySelector(".label").textContent,
        marks: [...figure.querySelectorAll(".series:not(.off) .mark")].map(mark => [
            Number(mark.closest(".series").dataset.run), Number(mark.dataset.value),
            mark.transform.baseVal.consolidate().matrix.e])}]))
"""


def read_placed(browser):
    """Gates are drawn at the position of their block, for any module and any number of gates; a single number of a
    network is in a table."""
    values = {}
    for run, (name, gated) in enumerate(PLACED.items()):
        os.makedirs(os.path.join(folder, name))
        module, figures = ("se", "step")[run], []
        for i, block in enumerate(gated):
            values[run, 0.3 + 0.1 * run + 0.01 * i] = block[len("layer") :]
            figures.append(("gate", f"{block}.{module}.gate", "mean", 0.3 + 0.1 * run + 0.01 * i))
        figures += [("nsi", f"{block}.add", "attention", 0.5) for block in PLACED["every-block"]]
        figures += [("gate", "", "rank correlation with zeta", 0.75)] if run == 0 else []
        with open(os.path.join(folder, name, "measure.jsonl"), "w", encoding="utf-8") as file:
            keys = ("instrument", "node", "statistic", "mean")
            found = [dict(zip(keys, figure), deviation=0.01, n=9) for figure in figures]
            file.write(json.dumps({"event": "measure", "measurements": found}) + "\n")
    page = browser.open(report(list(PLACED), "placed.html"))
    drawn = page.evaluate(READ_PLACED)
    check(set(drawn) == {"Mean", TITLE % "attention"}, f"charts of gates and NSI: {set(drawn)}")
    for title, chart in drawn.items():
        check([text for text, _ in chart["ticks"]] == ["1.0", "1.1", "2.0", "2.1"], f"{title}: {chart['ticks']}")
        check(chart["label"] == "block", f"{title}: an axis called {chart['label']}")
    at = dict(drawn["Mean"]["ticks"])
    for run, value, x in drawn["Mean"]["marks"]:
        check(abs(x - at[values.pop((run, value))]) < 8, f"gate {value} of run {run} stands at {x}, blocks at {at}")
    check(not values, f"gates that are not drawn: {values}")
    row = page.evaluate(
        "[...document.querySelector('#gate table').rows].map(row =>"
        "[...row.cells].map(cell => cell.dataset.value ?? cell.textContent))"
    )
    check(len(row) == 2 and row[1][:2] == ["every-block", "0.75"], f"a network's one number: {row}")
    page.evaluate("document.querySelectorAll('#legend .chip')[0].click()")
    ticks = page.evaluate(READ_PLACED)["Mean"]["ticks"]
    check(ticks == drawn["Mean"]["ticks"], f"the blocks stay where they are when a run is hidden: {ticks}")
    check(not page.complaints(), f"console, placed: {page.complaints()}")


READ_DIFFERENCES = """
({
    title: document.querySelector("#differences h2").textContent,
    rows: [...document.querySelectorAll("#differences table tbody tr")].map(row => [...row.cells].map(cell =>
        cell.dataset.more ? [cell.dataset.value, ...JSON.parse(cell.dataset.more)].map(v => v === "" ? null : Number(v))
            : cell.textContent)),
    charts: [...document.querySelectorAll("#differences figure")].map(figure => [
        figure.querySelector("h3").textContent,
        [...figure.querySelectorAll(".series .mark")].map(mark => Number(mark.dataset.value)),
        figure.querySelectorAll(".series .whisker").length,
        [...figure.querySelectorAll(".reference")].map(line => line.textContent)]),
    notes: [...document.querySelectorAll("#differences .ranking")].map(note => note.textContent),
    marked: ["best", "second"].map(place => [...document.querySelectorAll(`#settings td.${place}`)].map(cell =>
        [cell.parentElement.cells[0].textContent, Number(cell.dataset.value)])),
})
"""
STUDENT_1 = math.tan(0.475 * math.pi)  # the 0.975 quantile of Student's t with one degree of freedom


def read_differences(browser):
    """Settings minus the first one, paired by seed, with Student's interval; the best and the second-best setting."""
    settings = ["none", "none", "cb", "cb"]
    runs = [
        {"name": name, "setting": setting, "seed": seed, "status": "measured"}
        for name, setting, seed in zip(NAMES, settings, (1, 2, 2, 1))
    ]
    with open(os.path.join(folder, "sweep.json"), "w", encoding="utf-8") as file:
        json.dump({"runs": runs}, file)
    page = browser.open(report([""], "differences.html"))
    os.remove(os.path.join(folder, "sweep.json"))
    found = page.evaluate(READ_DIFFERENCES)
    check(found["title"] == "Differences from none", f"title of differences: {found['title']}")
    pairs = [(NAMES[3], NAMES[0]), (NAMES[2], NAMES[1])]
    row = next(row for row in found["rows"] if row[:2] == ["accuracy", "top-1, %"])
    each = [figure_of(a, "accuracy", "top1") - figure_of(b, "accuracy", "top1") for a, b in pairs]
    mean, half = sum(each) / 2, STUDENT_1 * abs(each[0] - each[1]) / 2
    for value, expected in zip(row[2], (mean, mean - half, mean + half, 2)):
        check(near(value, expected, 1e-9), f"difference {row}, expected {mean} +- {half}")
    titles = [title for title, *_ in found["charts"]]
    check(titles == ["Attention entropy, mean, nats"], f"charts of differences: {titles}")
    _, marks, whiskers, references = found["charts"][0]
    of = lambda name: {
        m["node"]: m["mean"] for m in measured(name) if m["instrument"] == "entropy" and "head" not in m
    }
    wanted = [sum(of(a)[node] - of(b)[node] for a, b in pairs) / 2 for node in of(NAMES[0])]
    check(len(marks) == len(wanted) and all(map(near, marks, wanted)), f"differences by block {marks}, {wanted}")
    check(whiskers == len(wanted) and references == ["none"], f"{whiskers} intervals, references {references}")
    order = ["cb", "none"] if mean > 0 else ["none", "cb"]
    note = next(note for note in found["notes"] if note.startswith("top-1, %"))
    verdict = "separates them" if half < abs(mean) else "does not separate them"
    check(note.startswith(f"top-1, %: best {order[0]}, second {order[1]}, difference ") and verdict in note, note)
    for (marked, *_), name in zip(found["marked"], order):
        check(marked[0] == name, f"best and second best: {found['marked']}, expected {order}")
    page.evaluate("[...document.querySelectorAll('#differences input')].find(i => "
                  "i.parentElement.textContent === 'nsi').click()")
    titles = [title for title, *_ in page.evaluate(READ_DIFFERENCES)["charts"]]
    check(titles == [f"Neural stiffness index, {s}" for s in ("attention", "gated", "unit")], f"NSI: {titles}")
    check(not page.complaints(), f"console, differences: {page.complaints()}")


READ_REFERENCE = """
({
    title: document.querySelector("#reference h2").textContent,
    charts: [...document.querySelectorAll("#reference figure")].map(figure => [
        figure.querySelector("h3").textContent,
        [...figure.querySelectorAll(".series .mark")].map(mark =>
            [Number(mark.closest(".series").dataset.run), Number(mark.dataset.value), mark.classList.contains("hollow")])]),
    rows: [...document.querySelectorAll("#reference tbody tr")].map(row =>
        [...row.cells].map(cell => cell.dataset.value ?? cell.textContent)),
})
"""


def read_reference(browser):
    """Deviations from a reference run by node, image by image, and their sum along the network; and all trajectories of
    a stage in one chart."""
    names = ["run-a", "run-b", "run-c"]
    for name, original in zip(names, NAMES):
        known = [] if name == "run-b" else [("measure.jsonl", '"images":9', '"images":9,"contents":"x"')]
        copy(original, name, known)
    page = browser.open(report(names[:2], "reference.html", "--reference", os.path.join(folder, names[2])))
    found = page.evaluate(READ_REFERENCE)
    check(found["title"] == f"Neural stiffness index: deviation from {names[2]}", f"title {found['title']}")
    of = lambda name: [m for m in measured(name) if m["instrument"] == "nsi" and m["statistic"] == "attention"]
    wanted = []
    for run in range(2):
        total, paired = 0, run == 0
        for own, other in zip(of(names[run]), of(names[2])):
            each = [abs(a - b) for a, b in zip(own["samples"], other["samples"])]
            size = sum(each) / len(each) if paired else abs(own["mean"] - other["mean"])
            total += 0 if own.get("excluded_from_tns") else size
            wanted.append((run, own["mean"] - other["mean"], size, total, own.get("excluded_from_tns", False)))
    (first, differences), (second, sums) = found["charts"]
    check([first, second] == ["Difference by block", "Accumulated deviation"], f"charts {first}, {second}")
    same = lambda marks, column: len(marks) == len(wanted) and all(
        m[0] == w[0] and near(m[1], w[column], 1e-9) and m[2] == w[4] for m, w in zip(marks, wanted))
    check(same(differences, 1), f"differences {differences}, wanted {wanted}")
    check(same(sums, 3), f"accumulated {sums}, wanted {wanted}")
    check(len(found["rows"]) == len(wanted) and all(
        near(float(row[3]), w[2], 1e-9) for row, w in zip(found["rows"], wanted)), f"table {found['rows']}")
    kinds = ["means over all images" if w[0] else "one by one" for w in wanted]
    check(all(row[5].endswith(kind) for row, kind in zip(found["rows"], kinds)), f"comparison {found['rows']}")
    page.evaluate("[...document.querySelectorAll('#trajectories input')].find(i => "
                  "i.parentElement.textContent === 'all runs in one chart').click()")
    drawn = page.evaluate("""new Promise(done => {
        const lines = () => [...document.querySelectorAll("#trajectories figure .series")].map(s =>
            [Number(s.dataset.run), s.querySelector(".line").getAttribute("stroke-dasharray")]);
        const look = () => (lines().length ? done(lines()) : requestAnimationFrame(look));
        look();
    })""")
    check(drawn == [[0, None], [0, "5 4"], [0, "5 4"], [1, None], [1, "5 4"], [1, "5 4"], [2, None], [2, "5 4"],
                     [2, "5 4"]], f"all runs in one chart: {drawn}")
    check(not page.complaints(), f"console, reference: {page.complaints()}")
    page = browser.open(report(names[:2], "no-reference.html"))
    check(page.evaluate("document.getElementById('reference') === null"), "deviations without a reference")


def read_sweep(browser):
    """Checks the report of a sweep: its settings, one line per image, and accuracy against stiffness."""
    names, settings = NAMES[:3], ["none", "none", "cb"]
    runs = [
        {"name": name, "setting": setting, "seed": seed, "status": "measured"}
        for name, setting, seed in zip(names, settings, (1, 2, 1))
    ]
    runs += [
        {"name": f"absent{seed}", "setting": "lr=<999>", "seed": seed, "status": "failed", "failure": reason}
        for seed, reason in ((1, ""), (2, "the loss is NaN"))
    ]
    with open(os.path.join(folder, "sweep.json"), "w", encoding="utf-8") as file:
        json.dump({"runs": runs}, file)
    page = browser.open(report([""], "sweep.html"))
    os.remove(os.path.join(folder, "sweep.json"))
    found = page.evaluate(READ_SWEEP)
    check(
        [row[:3] for row in found["settings"]] == 3 * [["none", "1, 2", "2"]] + 3 * [["cb", "1", "1"]],
        f"settings {found['settings']}",
    )
    scores = [figure_of(name, "accuracy", "top1") for name in names]
    check(near(float(found["settings"][0][5]), (scores[0] + scores[1]) / 2), "mean accuracy over seeds")
    failed = page.evaluate("[...document.querySelectorAll('#settings .failed')].map((note) => note.textContent)")
    check(failed == ["lr=<999>: 2 runs failed: the loss is NaN"], f"failed runs {failed}")
    check(found["kinds"] == ["One stage"], f"stages {found['kinds']}")
    check([c[:3] for c in found["charts"]] == [["none, seed 1", 6, 2], ["cb, seed 1", 6, 2]], f"{found['charts']}")
    check("maximum at each node over the 6 recorded images" in found["charts"][0][3], found["charts"][0][3])
    hollow = page.evaluate("""[...document.querySelectorAll("#trajectories figure")].map(figure =>
        [...figure.querySelectorAll(".series .mark")].map(mark => [mark.classList.contains("hollow"),
            Number(mark.dataset.x)]))""")
    check(hollow == 2 * [2 * [[True, -0.25]]], f"marks of steps that TNS leaves out: {hollow}")
    check("Hollow: the first step of its stage" in found["charts"][0][3], found["charts"][0][3])
    for reading, marks in zip(("attention", "gated", "unit"), found["scatter"]):
        pairs = [(figure_of(name, "tns", f"tns {reading}"), score) for name, score in zip(names, scores)]
        check(sorted(map(tuple, marks)) == sorted(pairs), f"scatter, {reading}: {marks}")
        row = next(row for row in found["ranks"] if row[:4] == ["all runs", f"TNS, {reading}", "top-1", "3 runs"])
        expected = tau_b(pairs)
        check((row[4] == "" and expected is None) or near(float(row[4]), expected), f"tau-b {row[4]}, {expected}")
        check(row[5:8] == (3 * ["1"] if row[4] else 3 * [""]), f"p of settings that cannot change places: {row}")
        means = next(row for row in found["ranks"] if row[:2] == ["all runs: means of settings", f"TNS, {reading}"])
        check(means[3] == "2 settings" and abs(float(means[4])) == 1, f"means of settings: {means}")
    power = page.evaluate("document.getElementById('power').textContent")
    check("all runs: with 2 settings no order of the figures has p below 1" in power, f"power: {power}")
    check(not page.complaints(), f"console, sweep: {page.complaints()}")
    read_asked(browser, runs, names)


def read_asked(browser, runs, names):
    """Requested rank correlations replace the default ones."""
    pairs = [("entropy/blocks.1.attn/mean", "accuracy/loss"), ("tns/zeta*/mu unit", "accuracy/loss")]
    with open(os.path.join(folder, "sweep.json"), "w", encoding="utf-8") as file:
        json.dump({"runs": runs, "correlate": [{"x": x, "y": y} for x, y in pairs]}, file)
    page = browser.open(report([""], "asked.html"))
    os.remove(os.path.join(folder, "sweep.json"))
    found = page.evaluate(READ_SWEEP)
    titles = page.evaluate("[...document.querySelectorAll('#correlation h2, #correlation h3')].map(h => h.textContent)")
    wanted = ["Rank correlations", "Loss nats against entropy mean of blocks.1.attn",
              "Loss nats against ζ*/μ, reading unit"]
    check(titles == wanted, f"titles of requested correlations: {titles}")
    losses = [figure_of(name, "accuracy", "loss") for name in names]
    stiffness = [figure_of(name, "tns", "zeta*/mu unit") for name in names]
    check(sorted(map(tuple, found["scatter"][1])) == sorted(zip(stiffness, losses)), f"asked: {found['scatter'][1]}")
    check(not page.complaints(), f"console, asked: {page.complaints()}")


def read_entropies(browser):
    """The table of settings has columns for the measured figures only: here no stiffness."""
    values, sweep = {"one": (1.0, 2.0), "two": (2.0, 4.0)}, os.path.join(folder, "entropies")
    for name, means in values.items():
        os.makedirs(os.path.join(sweep, name))
        figures = [("accuracy", "", "top1", 50)]
        figures += [("entropy", f"blocks.{i}.attn", "mean", mean) for i, mean in enumerate(means)]
        keys = ("instrument", "node", "statistic", "mean")
        found = [dict(zip(keys, figure), deviation=0.01, n=9) for figure in figures]
        with open(os.path.join(sweep, name, "measure.jsonl"), "w", encoding="utf-8") as file:
            file.write(json.dumps({"event": "measure", "measurements": found}) + "\n")
    runs = [dict(name=name, setting="none", seed=seed, status="measured") for seed, name in enumerate(values, 1)]
    with open(os.path.join(sweep, "sweep.json"), "w", encoding="utf-8") as file:
        json.dump({"runs": runs}, file)
    page = browser.open(report(["entropies"], "entropies.html"))
    rows = page.evaluate(
        "[...document.querySelector('#settings table').rows].map(row =>"
        "[...row.cells].map(cell => cell.dataset.value ?? cell.textContent).slice(5))"
    )
    check(rows == [["top-1, %", "entropy, mean over layers, nats"], ["50", "2.25"]], f"what was measured: {rows}")
    check(not page.complaints(), f"console, entropies: {page.complaints()}")


with Browser() as started:
    read(started)
finish()
