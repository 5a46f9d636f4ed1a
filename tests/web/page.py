"""page.py ATTSCOPE FOLDER: makes reports of the runs that make_runs wrote to FOLDER, opens them and checks them."""

import json
import math

import page_files
import page_maps
import page_runs
from browser import Browser
from checks import check, finish
from reports import (
    DEPTHS, HOSTILE, NAMES, READ_TABLES, TITLE, box_of, cells, check_complaints, events, measured, near, open_report,
    press,
)


# --- the figures ------------------------------------------------------------------------------------------------------


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
                check(float(mean) == m["mean"] and float(deviation) == m["deviation"] and n == str(m["n"]),
                      f"{m['instrument']} {key}: the page has {rows[0]}, the file {m}")
                compared += 1
    check(compared == len(NAMES) * (5 * 3 * 3 + 3 * 6 + 2 * 7), f"{compared} figures compared")


def read_whole_network(page):
    accuracy, tns = (cells(page, f"#{section} tbody tr") for section in ("accuracy", "tns"))
    for index, name in enumerate(NAMES):
        figures = {(m["instrument"], m["statistic"]): m["mean"] for m in measured(name)}
        check(accuracy[index][0].strip() == name, f"accuracy's row {index} is of {accuracy[index][0]}")
        for cell, statistic in zip(accuracy[index][1:], ("top1", "top5", "loss")):
            check(near(float(cell), figures["accuracy", statistic], 0), f"{name}: {statistic} {cell}")
        for row, reading in zip(tns[3 * index :], ("attention", "gated", "unit")):
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
                    check(near(on_axis(chart, y), value, 2e-3),
                          f"{instrument} {statistic}: {value} stands at {on_axis(chart, y)}")
            if instrument == "nsi":
                least = min(x for _, x, *_ in chart["marks"])
                check(all(hollow == (x == least) for _, x, _, _, hollow in chart["marks"]),
                      "not exactly t = 0 is hollow")
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
    asked = {3.542e-10: "3.542e-10", 1.2346e20: "1.235e+20", 1e-100: "1e-100", 2.5e-5: "2.5e-5", 0.00012: "0.00012",
             0: "0"}
    told = page.evaluate(f"{json.dumps(list(asked))}.map((value) => number(value))")
    check(told == list(asked.values()), f"numbers {told}, wanted {list(asked.values())}")


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


def read_hostile(page):
    check(page.evaluate("typeof boom") == "undefined", "boom")
    check(page.evaluate("document.querySelectorAll('img, main script, [onload], [onerror]').length") == 0,
          "hostile texts became elements")
    shown = page.evaluate("document.body.innerText")
    check(HOSTILE in shown and "</script><script>boom()</script>" in shown, "hostile texts are not shown literally")


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
    check(page.evaluate("document.querySelectorAll('.series.off').length") == 0,
          "another click does not show the run again")
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
    told = tip(page)
    check("blocks.0.attn" in told and "n = 9" in told, f"keys on a chart: {told}")
    page.key("Escape")
    check(not tip(page), "Escape does not hide the tip")


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
        check(dashed == len(NAMES) * [int(name.startswith("Neural stiffness index"))],
              f"{name}: lines of what TNS leaves out: {dashed}")
        check(captions == sum(dashed), f"{name}: {captions} captions explain {sum(dashed)} dashed lines")


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
    press(page, "#residual [aria-label=Scale] input", 1)


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
    press(page, "#legend .chip", 1)  # one that is switched off
    page.evaluate("document.querySelector('#entropy svg.chart').focus()")
    page.key("ArrowRight")
    found = page.evaluate(READ_CONTRAST)
    page.key("Escape")
    press(page, "#legend .chip", 1)
    kinds = {what.split(" ")[0] for _, what, _ in found}
    check(len(found) > 300, f"{where}: {len(found)} texts")
    for kind in ("figcaption", "text", "TD", "TH", "BUTTON", "DIV", "DD", "P", "H2"):
        check(any(k.lower().startswith(kind.lower() + ".") for k in kinds), f"{where}: no {kind} among {kinds}")
    low = {what: (round(value, 2), text) for value, what, text in found if not value >= 4.5}
    check(not low, f"{where}: contrast of {low}")


# --- fingers ----------------------------------------------------------------------------------------------------------


def tip(page):
    return page.evaluate("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")


def chart_box(page, section):
    """Scrolls the first chart of a section into the window and returns its box there, once the page above it has
    stopped moving it."""
    box = None
    for _ in range(100):
        before, box = box, box_of(page, f"#{section} svg.chart")
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
        told = tip(page)
        hit = page.evaluate("(document.elementFromPoint({}, {}) ?? document).nodeName".format(*middle))
        check(told, f"{section}: a tap on a chart at {middle} shows no tip; the page has {hit} there")
        page.wait_for_layout()
        check(tip(page) == told, f"{section}: the tip disappears with the finger")
        page.tap(5, 400)
        check(not tip(page), f"{section}: a tap elsewhere leaves {tip(page)}")
    chart_box(page, "entropy")
    first, last = mark_at(page, "entropy", 0), mark_at(page, "entropy", 2)
    page.touch("touchStart", *first)
    check("blocks.0.attn" in tip(page), f"the first block: {tip(page)}")
    for share in (0.2, 0.4, 0.6, 0.8, 1):
        page.touch("touchMove", *[a + share * (b - a) for a, b in zip(first, last)])
    check("blocks.2.attn" in tip(page), f"after a move to the last block: {tip(page)}")
    page.touch("touchEnd")
    check("blocks.2.attn" in tip(page), f"after that: {tip(page)}")
    spot = page.evaluate("""(() => {
        const {left, width} = document.querySelector("#entropy .spot").getBoundingClientRect();
        return left + width / 2;
    })()""")
    check(abs(spot - last[0]) < 12, f"the ring is at {spot}, the mark at {last[0]}")
    page.evaluate("document.querySelector('#entropy svg.chart').dispatchEvent(new PointerEvent('pointercancel'))")
    check(not tip(page), "the tip stays while the page is scrolled")
    page.tap(*mark_at(page, "entropy", 1))
    check(tip(page), "a tap after that shows no tip")
    page.resize(740, 360)
    page.wait_for_layout()
    page.wait_for_layout()
    check(not tip(page), "the tip of a redrawn chart stays")
    page.call("Emulation.setTouchEmulationEnabled", enabled=False)


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


def use_phone(page):
    use_theme(page, dark=True)
    read_contrast(page, "dark, phone")
    use_touch(page)
    for width in (360, 768):
        page.resize(width, 740)
        page.wait_for_layout()
        page.wait_for_layout()
        fits(page, width)
    page.call("Emulation.setEmulatedMedia", media="print")
    menu = page.evaluate("getComputedStyle(document.querySelector('.contents')).display")
    check(menu == "none", "print has no menu")


ON_THE_PAGE = (
    read_charts, read_tables, read_whole_network, read_numbers, read_methods, page_runs.read_overview, read_hostile,
    page_maps.read_maps, page_maps.read_contours, use_legend, use_keys, use_development, use_scale, read_spreads,
    page_maps.read_oblong_maps, page_maps.read_windows,
)
OTHER_PAGES = (
    page_maps.read_deit, page_runs.read_one_seed, page_runs.read_two_seeds, page_runs.read_repeated_seed,
    page_runs.read_few_updates, page_runs.read_updates, page_runs.read_measured_beside_trained, page_runs.read_tasks,
    page_runs.read_little,
    page_runs.read_placed, page_runs.read_sweep, page_runs.read_differences, page_runs.read_scores,
    page_runs.read_reference,
    page_runs.read_entropies, page_runs.read_many_runs, page_runs.read_swept_looks, page_runs.read_several_gates,
    page_maps.read_centres, page_runs.read_switches, page_files.save_files,
)
with Browser() as browser:
    page = open_report(browser, NAMES, "page.html")
    check(page.evaluate("document.documentElement.dataset.ready") == "true", "the page is not drawn")
    for step in ON_THE_PAGE:
        step(page)
    use_theme(page, dark=False)
    fits(page, 1440)
    check(all(url.startswith("file://") for url in page.requests()), f"requests: {page.requests()}")
    read_contrast(page, "light, desktop")
    use_phone(open_report(browser, NAMES, "page.html", width=360, height=740, dark=True))
    for step in OTHER_PAGES:
        step(browser)
    check_complaints()
finish()
