"""Runs, seeds and sweeps in a report: how runs are grouped, drawn, averaged and compared."""

import json
import math
import os

from checks import check
from reports import (
    DEPTHS, NAMES, READ_TABLES, TITLE, cells, choose, copy, figure_of, folder, measured, near, open_report,
    open_sweep, press, records, text_of, texts, write_figures, write_records,
)


# --- runs and seeds ---------------------------------------------------------------------------------------------------


def read_overview(page):
    cards = page.evaluate("""[...document.querySelectorAll(".card")].map(c => [c.querySelector(".name").textContent,
        c.querySelector(".big").dataset.value, c.querySelector("dl").textContent])""")
    check([card[0] for card in cards] == NAMES, f"cards of {[card[0] for card in cards]}")
    for (_, top1, facts), name in zip(cards, NAMES):
        wanted = next(m for m in measured(name) if m["statistic"] == "top1")["mean"]
        check(float(top1) == wanted, f"{name}: top-1 {top1}, wanted {wanted}")
        check("12,345" in facts and "3 of 3" in facts, f"{name}: {facts}")
    text = text_of(page, "#overview")
    check("4 runs of 3 configurations" in text and "no verdict" in text, "the page does not state what the seeds allow")
    rows = cells(page, "#overview .whole tbody tr", exact=False)
    check(rows[0][:2] == ["plain-1, plain-2", "1, 2"] and rows[0][3] == "2", f"seeds: {rows}")
    check(all(row[3] == "1" and "±" not in row[2] for row in rows[1:]), "one seed must have no deviation")


def read_one_seed(browser):
    page = open_report(browser, ["plain-1", "cb-1"], "two.html")
    verdict = text_of(page, "#verdict")
    check("one seed each" in verdict and "gives no verdict" in verdict, verdict)
    check(page.evaluate("document.title") == "plain-1 · cb-1 – attscope", "the title does not name the runs")


def read_two_seeds(browser):
    """Two runs have the same configuration, although only one of them was measured."""
    copy("plain-2", "half", without=["measure.jsonl"])
    page = open_report(browser, ["plain-1", "half"], "seeds.html")
    verdict = text_of(page, "#verdict")
    check("2 runs of 1 configuration;" in verdict, verdict)
    row = cells(page, "#overview .whole tbody tr", exact=False)[0]
    check(row[1] == "1, 2" and "±" in row[2] and row[3] == "2", f"two seeds: {row}")


def read_repeated_seed(browser):
    """A repeated seed is shown twice and counts once; means combine accuracies of one kind only."""
    copy("plain-1", "again")
    page = open_report(browser, ["plain-1", "again", "half"], "repeated.html")
    row = cells(page, "#overview .whole tbody tr", exact=False)[0]
    check(row[1] == "1, 2" and row[3] == "2", f"a seed twice: {row}")
    check(row[2].startswith("60 ± 0") and row[4] == "evaluated after epoch 3", f"one kind of accuracy: {row}")
    note = page.evaluate("document.getElementById('repeated')?.textContent ?? ''")
    check("again repeats the seed of plain-1: shown, not averaged" in note, f"a repeated seed: {note}")
    page = open_report(browser, ["plain-1", "again"], "one-seed.html")
    check(page.evaluate("!document.querySelector('#overview .whole')"), "a repeated seed must have no mean")


def read_few_updates(browser):
    """With fewer updates than the logging interval, the chart of the learning rate shows epochs."""
    copy("plain-1", "few")
    kept = [event for event in records("few", "metrics.jsonl") if event["event"] != "step"]
    for update, event in enumerate(event for event in kept if event["event"] == "epoch"):
        event["step"] = update + 1
    write_records("few", "metrics.jsonl", kept)
    page = open_report(browser, ["few"], "few.html")
    marks, key = page.evaluate("""(figure => [figure.querySelector("svg.chart .line").getAttribute("d"),
        figure.querySelector(".key").textContent])(
        [...document.querySelectorAll("#training figure")].find(f => f.textContent.startsWith("Learning rate")))""")
    check(marks and marks.count("L") == 2, f"a learning rate of three epochs: {marks}")
    check(key == "after each epoch", f"the key of a learning rate of three epochs: {key}")
    read_counts(page)


def read_updates(browser):
    """With --eval-every, evaluations lie within epochs, and updates tell them apart."""
    copy("plain-1", "in-updates")
    kept = records("in-updates", "metrics.jsonl")
    kept[0].update(eval_every="4", epoch_updates=10, epochs="2", updates="12")
    kept = [event for event in kept if event["event"] in ("run_begin", "epoch")]
    for i, event in enumerate(kept[1:]):
        event.update(step=4 * (i + 1), epoch=i // 2)
    write_records("in-updates", "metrics.jsonl", kept)
    os.remove(os.path.join(folder, "in-updates", "measure.jsonl"))
    page = open_report(browser, ["in-updates"], "in-updates.html")
    card = text_of(page, "#overview .card")
    check("1.2 of 2" in card and "after update 12" in card, f"the card of a training run in updates: {card}")
    rows = page.evaluate(READ_TABLES)["training"]
    check([row[1:3] for row in rows] == [["0.4", "4"], ["0.8", "8"], ["1.2", "12"]], f"evaluations: {rows}")
    key = page.evaluate("document.querySelector('#training .key').textContent")
    check("at each evaluation" in key, f"the key of evaluations within epochs: {key}")


def read_counts(page):
    """The ticks of updates are whole numbers, however few updates there are."""
    ticks = texts(page, "#training .axis.x .tick")
    check(ticks and all(tick.isdigit() for tick in ticks), f"ticks of updates: {ticks}")


def read_measured_beside_trained(browser):
    """A run that was only measured removes no row, and the settings of its measurement are shown. Figures from the
    training of another run are in charts of their own, with its warnings."""
    settings = '"images":9,"mean":"0.485 0.456 0.406","precision":"bf16","data":"photographs"'
    copy("plain-1", "apart", [("measure.jsonl", '"images":9', settings)], without=["metrics.jsonl", "args.yaml"])
    training = copy("plain-2", "training", without=["measure.jsonl"])
    with open(os.path.join(training, "metrics.jsonl"), "a", encoding="utf-8") as file:
        file.write('{"event":"warning","epoch":2,"step":29,"message":"image 7 is <b>damaged</b>","set":"train"}\n')
    page = open_report(browser, ["plain-1", "cb-1", "apart", "training"], "kinds.html")
    rows = {name: row for name, *row in cells(page, "#overview details:not(#warnings) tbody tr", exact=False)}
    for name, wanted in (
        ("broadcast", ["none", "cb", "–", "none"]),
        ("seed", ["1", "1", "–", "2"]),
        ("mean", None),  # the same in training and measurement
        ("measured: precision", ["–", "–", "bf16", "–"]),
        ("measured: data", ["–", "–", "photographs", "–"]),
        ("measured: images", ["9", "9", "9", "–"]),
    ):
        check(rows.get(name) == wanted, f"{name}: {rows}, wanted {wanted}")
    drawn = page.evaluate("""[...document.querySelectorAll("#entropy figure")].map(f =>
        [...new Set([...f.querySelectorAll(".series")].map(s => s.dataset.run))].sort())""")
    check(drawn == [["0", "1", "2"], ["3"]], f"entropy's charts are of the runs {drawn}")
    heads = texts(page, "#entropy h3.kind")
    check(len(heads) == 2 and "not comparable" in heads[1], f"kinds of figures: {heads}")
    told = text_of(page, "#warnings")
    check("Warnings and alerts (1)" in told and "image 7 is <b>damaged</b>" in told and "29" in told,
          f"warnings: {told}")


def read_tasks(browser):
    """Titles and units are those of the task's metrics; metrics of an unknown task are shown by name."""
    copy("plain-1", "counted", without=["measure.jsonl"])
    events = records("counted", "metrics.jsonl")
    for event in events:
        if event["event"] == "run_begin":
            event["task"] = "unheard"
        if event["event"] == "epoch":
            event["eval_mae"] = event.pop("eval_top1")
    write_records("counted", "metrics.jsonl", events)
    page = open_report(browser, ["plain-1", "counted"], "tasks.html")
    titles = texts(page, "#training figure h3")
    wanted = ["Training loss, nats (classification)", "Training loss (unheard)",
              "Evaluation loss, nats (classification)", "Evaluation loss (unheard)",
              "Top-1 on evaluation images, %", "Top-5 on evaluation images, %", "Top5 on evaluation images",
              "Mae on evaluation images", "Learning rate"]
    check(titles == wanted, f"charts of two tasks: {titles}")
    page.evaluate(READ_TABLES)
    heads = texts(page, "#training th")
    check(len(set(heads)) == len(heads) and "top-1, %" in heads and "mae" in heads, f"columns of two tasks: {heads}")
    scores = page.evaluate("[...document.querySelectorAll('.card')].map(c => c.querySelector('.big')?.textContent)")
    check("top-1" in scores[0] and scores[1] is None, f"scores of two tasks: {scores}")


def read_little(browser):
    """Runs with almost no records: a training run that just began, figures without numbers."""
    write_records("begun", "metrics.jsonl", [{"event": "run_begin", "epoch": 0, "step": 0},
                                             {"event": "step", "epoch": 0, "step": 1, "loss": None}])
    names = (*DEPTHS, "tns", "accuracy", "unheard of", "of networks")
    write_figures("empty", [(name, "" if name == "of networks" else "n", "mean", None, None) for name in names], n=0)
    for names in (["begun"], ["empty"], ["begun", "empty"]):
        page = open_report(browser, names, "little.html")
        check(page.evaluate("document.documentElement.dataset.ready") == "true", f"{names}: not drawn")
        source = page.evaluate("""(() => {
            const copy = document.body.cloneNode(true);
            for (const part of copy.querySelectorAll("script, .method")) part.remove();
            return copy.outerHTML;
        })()""")
        for unknown in ("unheard of", "of networks"):
            check(names == ["begun"] or unknown in source, f"{names}: {unknown}, an unknown instrument, is left out")
        for word in ("NaN", "undefined", "null"):
            check(word not in source, f"{names}: a missing value is shown as {word}")


# --- looks ------------------------------------------------------------------------------------------------------------

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
    page = open_report(browser, names, "many.html")
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


def read_swept_looks(browser):
    """In the report of a sweep, the colour shows the setting, and marker and dash show the seed, in every chart."""
    runs = []
    for setting in ("none", "cb"):
        for seed in (1, 2, 3):
            name = f"look={setting}-seed{seed}"
            copy("plain-1", os.path.join("looks", name), [("metrics.jsonl", '"seed":"1"', f'"seed":"{seed}"')])
            if (setting, seed) != ("none", 2):  # another seed of the same setting keeps its style
                runs.append((name, f"look={setting}", seed))
    page = open_sweep(browser, runs, "looks.html", "looks/")
    found = page.evaluate(READ_LOOKS)
    looks = agree(found, "a sweep")
    check(text_of(page, "h1") == "looks", "the heading is not the sweep's name")
    check(found["groups"] == [["look=none", 2], ["look=cb", 3]], f"the legend's groups {found['groups']}")
    check([words for _, words, _ in found["chips"]] == [f"seed {s}" for s in (1, 3, 1, 2, 3)], f"{found['chips']}")
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
    head = texts(page, "#overview details th")
    check(head == ["setting", "look=none", "look=cb"], f"a column a setting: {head}")


# --- places -----------------------------------------------------------------------------------------------------------


def read_several_gates(browser):
    """Different gates of one block have a chart each; the axis of shares ends at 1; names of blocks do not overlap; a
    table that is wider than the page has a hint."""
    blocks = [f"layer{s}.{b}" for s in (1, 2, 3) for b in range(18)]
    twice, once = [], []
    for i, block in enumerate(blocks):
        twice.append(("gate", f"{block}.se.channel.gate", "share < 1", 1 - 0.001 * i, 0.2))
        twice.append(("gate", f"{block}.se.spatial.gate", "share < 1", 0.5 + 0.001 * i, 0.2))
        once.append(("gate", f"{block}.se.gate", "share < 1", 0.7, 0.01))
    names = ["a-run-with-" + 90 * "n", "gated-once"]
    for name, figures in zip(names, (twice, once)):
        write_figures(name, figures)
    page = open_report(browser, names, "gates.html", width=1000, height=800)
    charts = page.evaluate("""[...document.querySelectorAll("#gate figure")].map(figure => ({
        title: figure.querySelector("h3").textContent,
        top: Math.max(...[...figure.querySelectorAll(".axis.y .tick")].map(tick => Number(tick.textContent))),
        highest: Math.min(...[...figure.querySelectorAll(":scope > svg .whisker")].map(line =>
            Number(line.getAttribute("y2")))),
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
    write_figures("switched", wanted["figures"])
    page = open_report(browser, ["switched"], "switches.html")
    charts = page.evaluate("""[...document.querySelectorAll("#collapse figure")].map(figure => ({
        title: figure.querySelector("h3").textContent,
        key: [...figure.querySelectorAll(".key > span")].map(item => item.textContent),
        blocks: [...figure.querySelectorAll(".axis.x .tick")].map(tick => tick.textContent),
        looks: [...figure.querySelectorAll(".series .line")].map(line =>
            [getComputedStyle(line).stroke, line.getAttribute("stroke-dasharray")]),
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
    row = cells(page, "#collapse .whole tbody tr")[0]
    check([float(cell) for cell in row[1:5]] == [3.0, 1.0, 2.0, 0.5], f"rates {row}")


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
        module, figures = ("se", "step")[run], []
        for i, block in enumerate(gated):
            values[run, 0.3 + 0.1 * run + 0.01 * i] = block[len("layer") :]
            figures.append(("gate", f"{block}.{module}.gate", "mean", 0.3 + 0.1 * run + 0.01 * i))
        figures += [("nsi", f"{block}.add", "attention", 0.5) for block in PLACED["every-block"]]
        figures += [("gate", "", "rank correlation with zeta", 0.75)] if run == 0 else []
        write_figures(name, figures)
    page = open_report(browser, list(PLACED), "placed.html")
    drawn = page.evaluate(READ_PLACED)
    check(set(drawn) == {"Mean", TITLE % "attention"}, f"charts of gates and NSI: {set(drawn)}")
    for title, chart in drawn.items():
        check([words for words, _ in chart["ticks"]] == ["1.0", "1.1", "2.0", "2.1"], f"{title}: {chart['ticks']}")
        check(chart["label"] == "block", f"{title}: an axis called {chart['label']}")
    at = dict(drawn["Mean"]["ticks"])
    for run, value, x in drawn["Mean"]["marks"]:
        check(abs(x - at[values.pop((run, value))]) < 8, f"gate {value} of run {run} stands at {x}, blocks at {at}")
    check(not values, f"gates that are not drawn: {values}")
    rows = cells(page, "#gate .whole tbody tr")
    check(len(rows) == 1 and rows[0][:2] == ["every-block", "0.75"], f"a network's one number: {rows}")
    press(page, "#legend .chip")
    ticks = page.evaluate(READ_PLACED)["Mean"]["ticks"]
    check(ticks == drawn["Mean"]["ticks"], f"the blocks stay where they are when a run is hidden: {ticks}")


# --- sweeps -----------------------------------------------------------------------------------------------------------

RANKS = "#correlation tbody tr"
READ_SWEEP = """
({
    kinds: [...document.querySelectorAll("#trajectories .kind")].map(kind => kind.textContent),
    charts: [...document.querySelectorAll("#trajectories figure")].map(figure => [
        figure.querySelector("h3").textContent, figure.querySelectorAll(".line.faint").length,
        figure.querySelectorAll(".line:not(.faint)").length, figure.querySelector("figcaption").textContent]),
    scatter: [...document.querySelectorAll("#correlation figure")].map(figure =>
        [...figure.querySelectorAll(".series .mark")].map(mark =>
            [Number(mark.dataset.x), Number(mark.dataset.value)])),
})
"""


def tau_b(pairs):
    sign = lambda v: (v > 0) - (v < 0)
    apart = [(sign(a[0] - b[0]), sign(a[1] - b[1])) for i, a in enumerate(pairs) for b in pairs[:i]]
    both = sum(x != 0 for x, _ in apart) * sum(y != 0 for _, y in apart)
    return sum(x * y for x, y in apart) / math.sqrt(both) if both else None


def read_sweep(browser):
    """Checks the report of a sweep: its settings, one line per image, and accuracy against stiffness."""
    names = NAMES[:3]
    runs = list(zip(names, ("none", "none", "cb"), (1, 2, 1)))
    runs += [{"name": f"absent{seed}", "setting": "lr=<999>", "seed": seed, "status": "failed", "failure": reason}
             for seed, reason in ((1, ""), (2, "the loss is NaN"))]
    page = open_sweep(browser, runs, "sweep.html")
    found, settings, ranks = page.evaluate(READ_SWEEP), cells(page, "#settings tbody tr"), cells(page, RANKS)
    check([row[:3] for row in settings] == 3 * [["none", "1, 2", "2"]] + 3 * [["cb", "1", "1"]], f"settings {settings}")
    scores = [figure_of(name, "accuracy", "top1") for name in names]
    check(near(float(settings[0][5]), (scores[0] + scores[1]) / 2), "mean accuracy over seeds")
    failed = texts(page, "#settings .failed")
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
        row = next(row for row in ranks if row[:4] == ["all runs", f"TNS, {reading}", "top-1", "3 runs"])
        expected = tau_b(pairs)
        check((row[4] == "" and expected is None) or near(float(row[4]), expected), f"tau-b {row[4]}, {expected}")
        check(row[5:8] == (3 * ["1"] if row[4] else 3 * [""]), f"p of settings that cannot change places: {row}")
        means = next(row for row in ranks if row[:2] == ["all runs: means of settings", f"TNS, {reading}"])
        check(means[3] == "2 settings" and abs(float(means[4])) == 1, f"means of settings: {means}")
    power = text_of(page, "#power")
    check("all runs: with 2 settings no order of the figures has p below 1" in power, f"power: {power}")
    read_asked(browser, runs, names)


def read_asked(browser, runs, names):
    """Requested rank correlations replace the default ones."""
    pairs = [("entropy/blocks.1.attn/mean", "accuracy/loss"), ("tns/zeta*/mu unit", "accuracy/loss")]
    page = open_sweep(browser, runs, "asked.html", correlate=[{"x": x, "y": y} for x, y in pairs])
    found = page.evaluate(READ_SWEEP)
    titles = texts(page, "#correlation h2, #correlation h3")
    wanted = ["Rank correlations", "Loss nats against entropy mean of blocks.1.attn",
              "Loss nats against ζ*/μ, reading unit"]
    check(titles == wanted, f"titles of requested correlations: {titles}")
    losses = [figure_of(name, "accuracy", "loss") for name in names]
    stiffness = [figure_of(name, "tns", "zeta*/mu unit") for name in names]
    check(sorted(map(tuple, found["scatter"][1])) == sorted(zip(stiffness, losses)), f"asked: {found['scatter'][1]}")


def read_entropies(browser):
    """The table of settings has columns for the measured figures only: here no stiffness."""
    values = {"one": (1.0, 2.0), "two": (2.0, 4.0)}
    for name, means in values.items():
        write_figures(os.path.join("entropies", name), [("accuracy", "", "top1", 50)] + [
            ("entropy", f"blocks.{i}.attn", "mean", mean) for i, mean in enumerate(means)])
    runs = [(name, "none", seed) for seed, name in enumerate(values, 1)]
    page = open_sweep(browser, runs, "entropies.html", "entropies")
    rows = [row[5:] for row in cells(page, "#settings table tr")]
    check(rows == [["top-1, %", "entropy, mean over layers, nats"], ["50", "2.25"]], f"what was measured: {rows}")


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
    page = open_sweep(browser, zip(NAMES, ("none", "none", "cb", "cb"), (1, 2, 2, 1)), "differences.html")
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
    for mean, low, high, text in [  # as in tests/cli/test_cells.c
        (2.5, -10.25, 15.25, "+2.5 [-10.3, 15.3]"), (-2.5, -152.5, 147.5, "-3 [-153, 148]"),
        (2.5, -123.5, 128.5, "+3 [-124, 129]"), (-0.125, -0.25, 0, "-0.125 [-0.250, 0.000]"),
        (1.25, None, None, "+1.25"),
    ]:  # fmt: skip
        shown = page.evaluate(f"intervalText({json.dumps({'mean': mean, 'low': low, 'high': high})})")
        check(shown == text, f"interval {shown}, expected {text}")
    choose(page, "differences", "nsi")
    titles = [title for title, *_ in page.evaluate(READ_DIFFERENCES)["charts"]]
    check(titles == [f"Neural stiffness index, {s}" for s in ("attention", "gated", "unit")], f"NSI: {titles}")


def read_scores(browser):
    """A sweep of detectors, which have no measured score: the curves of their metric, its last values in the table of
    settings, and their differences from the first setting, paired by seed."""
    curves = {("none", 1): (8, 20), ("none", 2): (9, 26), ("cb", 2): (10, 27), ("cb", 1): (7, 25)}
    for (setting, seed), curve in curves.items():
        name = os.path.join("detectors", f"{setting}-{seed}")
        write_figures(name, [("entropy", "blocks.0.attn", "mean", seed)])
        write_records(name, "metrics.jsonl", [
            {"event": "run_begin", "step": 0, "epoch": 0, "seconds": 0, "model": "vit", "task": "detect",
             "seed": str(seed), "epochs": "2"}, *({"event": "epoch", "step": 5 * i + 5, "epoch": i, "seconds": i,
             "train_loss": 1.5 - i, "eval_ap": ap} for i, ap in enumerate(curve))])
    runs = [(f"{setting}-{seed}", setting, seed) for setting, seed in curves]
    page = open_sweep(browser, runs, "detectors.html", "detectors")
    heads = texts(page, "#settings thead th")
    check(heads[5:7] == ["AP, %, last evaluation", "difference from none"], f"columns of scores: {heads}")
    found = page.evaluate("""[...document.querySelectorAll("#settings tbody tr")].map(row => [...row.cells].slice(5, 7)
        .map(cell => [cell.dataset.value, ...JSON.parse(cell.dataset.more ?? "[]")].filter(Boolean).map(Number)))""")
    half = STUDENT_1 * 2  # of the differences 5 and 1
    wanted = [[[23, math.sqrt(18)], []], [[26, math.sqrt(2)], [3, 3 - half, 3 + half, 2]]]
    check([[len(cell) for cell in row] for row in found] == [[len(cell) for cell in row] for row in wanted]
          and all(near(a, b) for row, other in zip(found, wanted) for one, two in zip(row, other)
                  for a, b in zip(one, two)), f"scores {found}, expected {wanted}")
    shown = cells(page, "#settings tbody tr", exact=False)[1][6]
    check(shown == "+3.0 [-22.4, 28.4] n 2", f"the difference is shown as {shown}")
    titles = texts(page, "#training figure h3")
    check("AP on evaluation images, %" in titles, f"charts of a detector's training: {titles}")
    check("top-1" not in page.evaluate("document.body.innerText"), "a detector's report speaks of top-1")


READ_REFERENCE = """
({
    title: document.querySelector("#reference h2").textContent,
    charts: [...document.querySelectorAll("#reference figure")].map(figure => [
        figure.querySelector("h3").textContent,
        [...figure.querySelectorAll(".series .mark")].map(mark =>
            [Number(mark.closest(".series").dataset.run), Number(mark.dataset.value),
                mark.classList.contains("hollow")])]),
})
"""


def read_reference(browser):
    """Deviations from a reference run by node, image by image, and their sum along the network; and all trajectories of
    a stage in one chart."""
    names = ["run-a", "run-b", "run-c"]
    for name, original in zip(names, NAMES):
        known = [] if name == "run-b" else [("measure.jsonl", '"images":9', '"images":9,"contents":"x"')]
        copy(original, name, known)
    page = open_report(browser, names[:2], "reference.html", "--reference", os.path.join(folder, names[2]))
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
    rows = cells(page, "#reference tbody tr")
    check(len(rows) == len(wanted) and all(near(float(row[3]), w[2], 1e-9) for row, w in zip(rows, wanted)), f"{rows}")
    kinds = ["means over all images" if w[0] else "one by one" for w in wanted]
    check(all(row[5].endswith(kind) for row, kind in zip(rows, kinds)), f"comparison {rows}")
    choose(page, "trajectories", "all runs in one chart")
    drawn = page.evaluate("""new Promise(done => {
        const lines = () => [...document.querySelectorAll("#trajectories figure .series")].map(s =>
            [Number(s.dataset.run), s.querySelector(".line").getAttribute("stroke-dasharray")]);
        const look = () => (lines().length ? done(lines()) : requestAnimationFrame(look));
        look();
    })""")
    check(drawn == [[0, None], [0, "5 4"], [0, "5 4"], [1, None], [1, "5 4"], [1, "5 4"], [2, None], [2, "5 4"],
                     [2, "5 4"]], f"all runs in one chart: {drawn}")
    page = open_report(browser, names[:2], "no-reference.html")
    check(page.evaluate("document.getElementById('reference') === null"), "deviations without a reference")
