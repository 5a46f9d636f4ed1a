"""charts.py ATTSCOPE FOLDER: writes the records of two training runs, and checks zoom, smoothing and the x axes of their
charts in a report and on the live page of `attscope serve`; and histograms of the values of single images."""

import json
import os
import xml.etree.ElementTree

from browser import Browser
from checks import check, finish
from reports import attscope, folder, near, report, write_records
from server import Server, wait

UPDATES, EVERY, EPOCHS = 100, 5, 4  # updates of an epoch, between two records, epochs
STOPPED = 250  # after this update, another process continued run "first" and counts its seconds from 0


def loss_of(run, step):
    return (2 if run == "first" else 3) / (1 + step / 50) + 0.1 * (step // EVERY % 3)


def seconds_of(run, step):
    """The seconds in the record of an update."""
    return 2.0 * step if run == "second" or step <= STOPPED else 3.0 * (step - STOPPED)


def time_of(run, step):
    """The time that the training took until an update."""
    return 2.0 * step if run == "second" or step <= STOPPED else 2.0 * STOPPED + 3.0 * (step - STOPPED)


def records_of(run):
    yield {"event": "run_begin", "step": 0, "epoch": 0, "seconds": 0, "model": "m", "seed": run, "epochs": str(EPOCHS)}
    for step in range(EVERY, EPOCHS * UPDATES + 1, EVERY):
        at = {"step": step, "epoch": (step - 1) // UPDATES, "seconds": seconds_of(run, step)}
        yield {"event": "step", **at, "loss": loss_of(run, step), "lr": 0.1 / step, "images_per_second": 64.0}
        if step % UPDATES == 0:
            yield {"event": "epoch", **at, "train_loss": loss_of(run, step), "eval_loss": 1 + step / 400,
                   "eval_top1": 50.0 + step / 10, "lr": 0.1 / step}
            figure = {"instrument": "entropy", "statistic": "mean", "deviation": 0.1, "n": 8}
            yield {"event": "measure", **at, "split": "train", "images": 8, "measurements": [
                {**figure, "node": f"blocks.{i}.attn", "mean": 1.5 + i - step / 1000} for i in range(2)]}
    yield {"event": "run_end", **at, "status": "OK", "message": ""}


def write(run):
    write_records(run, "metrics.jsonl", records_of(run))


STEPS = range(EVERY, EPOCHS * UPDATES + 1, EVERY)
LOSS = 0  # the chart of the training loss is the first one
# The line of run `run` that is faint or not: its points in the units of the axes, from the positions of the ticks.
READ = """
((run, faint) => {
    const figure = document.querySelector("#training figure"), svg = figure.querySelector("svg.chart");
    const series = [...svg.querySelectorAll(`.series[data-run="${run}"]`)]
        .find(s => s.querySelector(".line").classList.contains("faint") === faint);
    return (series?.querySelector(".line").getAttribute("d") ?? "").split(/[ML]/).slice(1).map(p => p.split(",").map(Number));
})"""
TICKS = """
(axis => [...document.querySelector("#training figure").querySelectorAll(`.axis.${axis} .tick`)].map(tick => {
    const {e, f} = tick.transform.baseVal.consolidate().matrix;
    return [tick.textContent, axis === "x" ? e : f];
}))"""
UNITS = {"s": 1, "min": 60, "h": 3600}


def value_of(text):
    """The value of a tick: "1.5k", "0.5", "1:30 min", "2 h"."""
    text = text.replace("−", "-").replace(",", "")
    if text.endswith("k"):
        return 1000 * float(text[:-1])
    number, _, unit = text.partition(" ")
    if not unit:
        return float(text)
    places = number.split(":")
    return sum(float(part) * UNITS[unit] / 60**i for i, part in enumerate(places))


def line(page, run, faint):
    """The points of a line, in the units of the axes."""
    points = page.evaluate(f"{READ}({run}, {json.dumps(faint)})")
    scales = []
    for axis in "xy":
        ticks = page.evaluate(f"{TICKS}({json.dumps(axis)})")
        (low, at_low), (high, at_high) = ticks[0], ticks[-1]
        low, high = value_of(low), value_of(high)
        scales.append(lambda at, a=low, b=high, c=at_low, d=at_high: a + (b - a) * (at - c) / (d - c))
    return [(scales[0](x), scales[1](y)) for x, y in points]


def same(found, wanted, what):
    """Coordinates of a line have three decimals of a pixel, and labels of ticks four digits: measured 2e-3."""
    wanted = list(wanted)
    largest = [max(abs(p[i]) for p in wanted) for i in (0, 1)]
    check(
        len(found) == len(wanted)
        and all(abs(f[i] - w[i]) < 4e-3 * largest[i] for f, w in zip(found, wanted) for i in (0, 1)),
        f"{what}: {found[:3]} ... ({len(found)}), wanted {wanted[:3]} ... ({len(wanted)})",
    )


def smoothed(values, weight):
    total, result = 0, []
    for t, value in enumerate(values, 1):
        total = weight * total + (1 - weight) * value
        result.append(total / (1 - weight**t))
    return result


def choose(page, label):
    page.click(f"[...document.querySelectorAll('#training .choice label')].find(l => l.textContent === {json.dumps(label)})")
    page.wait_for_layout()


def slide(page, value):
    page.evaluate(f"""(input => {{
        input.value = {value};
        input.dispatchEvent(new Event("input", {{bubbles: true}}));
    }})(document.querySelector("#training .slider input"))""")
    page.wait_for_layout()


def drag(page, start, end, index=LOSS, release=True):
    """Drags over a chart, from one share of the x axis to another one."""
    left, top, width, height = page.evaluate(f"""(svg => {{
        svg.scrollIntoView({{block: "center", behavior: "instant"}});
        const {{left, top, width, height}} = svg.getBoundingClientRect(), scale = width / svg.viewBox.baseVal.width;
        return [left + 50 * scale, top, width - 64 * scale, height];
    }})(document.querySelectorAll("#training svg.chart")[{index}])""")
    y = top + height / 2
    mouse = lambda kind, x: page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1,
                                      buttons=1)
    mouse("mousePressed", left + start * width)
    for share in (0.3, 0.7, 1):
        mouse("mouseMoved", left + (start + share * (end - start)) * width)
    if release:
        mouse("mouseReleased", left + end * width)
    page.wait_for_layout()


def interval(page):
    """The interval in the URL, None if there is none."""
    return page.evaluate("(zoom => zoom && zoom.split(',').map(Number))(fragment.get('zoom'))")


def read_axes(page):
    """By update, by epoch and by the time that the training took."""
    places = {"update": lambda run, step: step, "epoch": lambda run, step: step / UPDATES, "time": time_of}
    for axis in ("epoch", "time", "update"):
        choose(page, axis)
        for index, run in enumerate(("first", "second")):
            same(line(page, index, True), [(places[axis](run, s), loss_of(run, s)) for s in STEPS], f"{run} by {axis}")
        label = page.evaluate("document.querySelector('#training .label').textContent")
        check(label == {"time": "training time"}.get(axis, axis), f"the axis is called {label}")
        check(page.evaluate("fragment.get('x')") == (None if axis == "update" else axis), f"{axis} in the URL")


def read_smoothing(page):
    """The smoothed line is TensorBoard's, in front of the faint values; learning rates stay; the table stays."""
    for weight in (0.6, 0.99):
        slide(page, weight)
        for index, run in enumerate(("first", "second")):
            values = [loss_of(run, s) for s in STEPS]
            same(line(page, index, False), zip(STEPS, smoothed(values, weight)), f"{run}, smoothed by {weight}")
            same(line(page, index, True), zip(STEPS, values), f"{run}, behind")
    check(page.evaluate("fragment.get('smooth')") == "0.99", "the smoothing is not in the URL")
    order = page.evaluate("[...document.querySelectorAll('#training figure:nth-child(1) svg.chart .line')]"
                          ".map(l => l.classList.contains('faint'))")
    check(order == [True, True, False, False], f"faint lines lie behind: {order}")
    rates = page.evaluate("[...document.querySelectorAll('#training figure')].at(-1).querySelectorAll('svg.chart .line').length")
    check(rates == 2, f"{rates} lines of learning rates")
    text = page.evaluate("document.querySelector('#training .note-below').textContent")
    check("sₜ = β sₜ₋₁ + (1 − β) yₜ" in text and "sₜ / (1 − βᵗ)" in text, f"the formula: {text}")
    page.evaluate("document.querySelector('#training details').open = true")
    wait(page, "document.querySelector('#training tbody') !== null")
    told = page.evaluate("[...document.querySelectorAll('#training tbody tr')].map(r => Number(r.cells[3].dataset.value))")
    wanted = [loss_of(run, s) for run in ("first", "second") for s in range(UPDATES, EPOCHS * UPDATES + 1, UPDATES)]
    check(told == wanted, f"the table has {told}, the records {wanted}")
    slide(page, 0)


def read_zoom(page):
    """A drag shows its interval in all charts; a double click, the button and the keys show more of the axis."""
    drag(page, 0.255, 0.505)
    low, high = interval(page)
    check(near(low, 102, 0.02) and near(high, 202, 0.02), f"a drag from 0.255 to 0.505 of 0 ... 400: {low} ... {high}")
    inside = [(s, loss_of("first", s)) for s in STEPS if low <= s <= high]
    found = line(page, 0, True)
    same(found[1:-1], inside, "points of the interval")
    check(near(found[0][0], low, 0.01) and near(found[-1][0], high, 0.01), f"the line ends at {found[0]}, {found[-1]}")
    before, after = max(s for s in STEPS if s < low), min(s for s in STEPS if s > low)
    share = (low - before) / (after - before)
    crossing = loss_of("first", before) * (1 - share) + loss_of("first", after) * share
    check(abs(found[0][1] - crossing) < 0.02, f"the line enters at {found[0]}, wanted {crossing}")
    domains = page.evaluate("[...document.querySelectorAll('#training svg.chart .axis.x')]"
                            ".map(a => [...a.querySelectorAll('.tick')].map(t => t.textContent).join())")
    check(len(set(domains)) == 1, f"charts show different intervals: {domains}")
    marks = page.evaluate("[...document.querySelectorAll('#training .mark')].every(m => "
                          "Number(m.dataset.x) >= 95 && Number(m.dataset.x) <= 205)")
    check(marks, "marks outside of the interval")
    page.evaluate("""document.querySelector('#training svg.chart').dispatchEvent(new MouseEvent('dblclick'))""")
    check(interval(page) is None, "a double click does not reset the zoom")
    drag(page, 0.6, 0.2, index=1)
    low, high = interval(page)
    check(near(low, 80, 0.03) and near(high, 240, 0.03), f"a drag to the left shows {low} ... {high}")
    page.click("[...document.querySelectorAll('#training button')].find(b => b.textContent === 'Reset zoom')")
    check(interval(page) is None, "the button does not reset the zoom")
    drag(page, 0.3, 0.301)
    check(interval(page) is None, "a click zooms")


def read_keys(page):
    """+ and - zoom around the cursor, which stays where it is."""
    page.evaluate("document.querySelector('#training svg.chart').focus()")
    page.key("Escape")
    for _ in range(3):
        page.key("ArrowRight")
    told = "document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent"
    before = page.evaluate(told)
    page.key("+")
    low, high = interval(page)
    check(near(high - low, 200, 1e-9), f"+ shows {low} ... {high}")
    check(page.evaluate(told) == before and before, f"the cursor was at {before}, is at {page.evaluate(told)}")
    check(page.evaluate("document.activeElement.matches('svg.chart')"), "the chart loses the focus")
    spot = page.evaluate("Number(document.querySelector('#training .spot')?.getAttribute('cx'))")
    wanted = page.evaluate("scalesOf({ series: [], zoom: { interval: fragment.get('zoom').split(',').map(Number) } }, "
                           "document.querySelector('#training svg.chart').viewBox.baseVal.width).x(10)")
    check(near(spot, wanted, 1e-9), f"the ring is at {spot}, update 10 at {wanted}")
    for _ in range(30):
        page.key("+")
    low, high = interval(page)
    check(near(high - low, 2, 1e-4), f"an axis of counts keeps two of them: {low} ... {high}")
    for _ in range(30):
        page.key("-")
    check(interval(page) is None, "- does not lead back to the whole axis")
    page.click("document.querySelector('#training [aria-label=\"Zoom in\"]')")
    check(interval(page) is not None, "the button + does not zoom")
    page.click("document.querySelector('#training [aria-label=\"Zoom out\"]')")
    check(interval(page) is None, "the button - does not zoom")


def read_state(browser, path, page):
    """The address restores the choices; links to sections keep them; nonsense in it is ignored."""
    choose(page, "epoch")
    slide(page, 0.5)
    page.evaluate("document.querySelectorAll('#training [aria-label=Scale] input')[1].click()")
    drag(page, 0.5, 0.75)
    page.evaluate("[...document.querySelectorAll('#contents a')].find(a => a.hash === '#training').click()")
    page.wait_for_layout()
    address = page.evaluate("location.href")
    check("#training&" in address, f"a link to a section loses the state: {address}")
    other = browser.open(address)
    drawn = "[...document.querySelectorAll('#training svg.chart .line')].map(l => l.getAttribute('d'))"
    check(other.evaluate(drawn) == page.evaluate(drawn), f"{address} shows other charts")
    state = """[...document.querySelectorAll('#training .tools input')].map(i => i.type === 'radio' ? i.checked : i.value)"""
    check(other.evaluate(state) == page.evaluate(state), "the controls do not show the state")
    check(other.evaluate("document.querySelector('#training h2').getBoundingClientRect().top < innerHeight"),
          "the address does not lead to its section")
    other.evaluate("location.hash = 'x=time'")
    wait(other, "document.querySelector('#training .label').textContent === 'training time'")
    check(other.evaluate(state)[-1] == "0", "another address keeps the smoothing of the last one")
    check(not other.complaints(), f"restored: {other.complaints()}")
    wild = browser.open(f"{path}#x=__proto__&smooth=7&zoom=9,1,x&scale=%3Cb%3E")
    check(wild.evaluate("fragment.get('zoom')") == "9,1,x", "the fragment was not read")
    check(wild.evaluate(drawn) == browser.open(path).evaluate(drawn), "nonsense in the address changes charts")
    check(not wild.complaints(), f"nonsense: {wild.complaints()}")


def read_exports(page):
    """A zoomed and smoothed chart is saved as shown."""
    slide(page, 0.5)
    drag(page, 0.25, 0.5)
    check(page.evaluate("[...document.querySelectorAll('#training figure')].every(f => f.querySelector('.export'))"),
          "a chart has no export")
    text = page.evaluate("""(() => {
        let kept = null;
        const real = save;
        save = (name, type, text) => { kept = text; };
        document.querySelector("#training figure .export").click();
        return new Promise(done => setTimeout(() => { save = real; done(kept); }, 50));
    })()""")
    saved = {node.get("d") for node in xml.etree.ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}path")}
    drawn = page.evaluate("[...document.querySelectorAll('#training figure:nth-child(1) svg.chart .line')].map(l => l.getAttribute('d'))")
    check(len(drawn) == 4 and set(drawn) <= saved, "the saved chart differs from the one shown")


def read_pinch(page, x, y):
    """Two fingers zoom around the point between them; the address changes when they are lifted."""
    left, width = page.evaluate("""(svg => {
        const {left, width} = svg.getBoundingClientRect(), scale = width / svg.viewBox.baseVal.width;
        return [left + 50 * scale, width - 64 * scale];
    })(document.querySelector('#training svg.chart'))""")
    middle = x + 20
    page.touch("touchStart", middle - 20, y)
    page.touch("touchStart", middle - 20, y, middle + 20, y)
    for half in range(25, 45, 5):
        page.touch("touchMove", middle - half, y, middle + half, y)
    check(interval(page) is None, "the address changes while two fingers move")
    check(page.evaluate("document.getElementById('tip').hidden"), "a tooltip is shown while two fingers move")
    page.touch("touchEnd")
    low, high = interval(page) or (0, 0)
    # Fingers 40 pixels apart, then 80: half of the axis, and the update between the fingers stays between them.
    first = (middle - left) / width * EPOCHS * UPDATES / 2
    wanted = [first, first + EPOCHS * UPDATES / 2]
    is_kept = near(low, wanted[0], 1e-7) and near(high, wanted[1], 1e-7)  # measured 2.5e-9: the address has 8 digits
    check(is_kept, f"two fingers zoom to {low} to {high}, wanted {wanted}")
    page.touch("touchStart", middle - 40, y)
    page.touch("touchStart", middle - 40, y, middle + 40, y)
    for half in range(35, 5, -5):
        page.touch("touchMove", middle - half, y, middle + half, y)
    page.touch("touchEnd")
    check(interval(page) is None, f"two fingers that meet show all: {interval(page)}")


def read_touch(browser, path):
    """A finger scrolls the page and does not zoom; two fingers zoom."""
    page = browser.open(path, 390, 844)
    page.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    middle = """(svg => {
        svg.scrollIntoView({block: "center", behavior: "instant"});
        const {left, top, width, height} = svg.getBoundingClientRect();
        return [left + width / 2, top + height / 2];
    })(document.querySelector('#training svg.chart'))"""
    page.evaluate(middle)
    page.wait_for_layout()
    x, y = page.evaluate(middle)
    page.touch("touchStart", x, y)
    for distance in range(20, 120, 20):
        page.touch("touchMove", x + distance, y)
    page.touch("touchEnd")
    check(not page.evaluate("document.getElementById('tip').hidden"), "a finger that moves on a chart shows no tooltip")
    check(interval(page) is None, "a finger zooms")
    read_pinch(page, x, y)
    before = page.evaluate("scrollY")
    page.touch("touchStart", x, y)
    for distance in range(20, 320, 20):
        page.touch("touchMove", x, y - distance)
    page.touch("touchEnd")
    check(page.evaluate("scrollY") > before + 200, f"a finger on a chart scrolls from {before} to {page.evaluate('scrollY')}")
    check(page.evaluate("document.documentElement.scrollWidth") <= 390, "the page scrolls sideways")
    check(not page.complaints(), f"phone: {page.complaints()}")


def read_report(browser):
    path = report(["first", "second"], "report.html")
    page = browser.open(path, 1440, 900)
    read_axes(page)
    read_smoothing(page)
    read_zoom(page)
    read_keys(page)
    read_state(browser, path, page)
    check(not page.complaints(), f"report: {page.complaints()}")
    page = browser.open(path, 1440, 900)
    read_exports(page)
    check(not page.complaints(), f"exports: {page.complaints()}")
    read_touch(browser, path)


def read_placeless(browser):
    """Where the records have no time, or no epoch has ended, the charts say so."""
    os.makedirs(os.path.join(folder, "begun"))
    with open(os.path.join(folder, "begun", "metrics.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"event": "step", "step": s, "epoch": 0, "loss": 1.0, "lr": 0.1}) + "\n" for s in (1, 2))
    page = browser.open(report(["begun"], "begun.html"))
    for axis, words in (("time", "The records have no times."), ("epoch", "No epoch has ended yet"), ("update", None)):
        choose(page, axis)
        captions = page.evaluate("[...document.querySelectorAll('#training figcaption')].map(c => c.textContent)")
        told = [words is not None and caption.startswith(words) for caption in captions]
        check(len(told) >= 2 and all(told) if words else not any("no times" in c or "No epoch" in c for c in captions), f"{axis}: {captions}")
    check(not page.complaints(), f"begun: {page.complaints()}")


def read_live(browser, server):
    """The live page has the same charts. New records leave the zoom, the cursor, and a selection that is being made."""
    page = browser.open(f"{server.base}/live?token={server.token}&run=first#x=time&smooth=0.6", 1440, 900)
    wait(page, f"document.querySelectorAll('#training svg.chart').length >= 4 && runs[0].steps.step.at(-1) === {UPDATES * EPOCHS}")
    wait(page, "document.querySelector('#training .line')?.getAttribute('d')")
    page.evaluate("draw()")
    page.wait_for_layout()
    same(line(page, 0, False), zip([time_of("first", s) for s in STEPS],
                                   smoothed([loss_of("first", s) for s in STEPS], 0.6)), "live, smoothed")
    check(page.evaluate("location.search").startswith("?"), "the address loses its query")
    lines = "[...document.querySelectorAll('#training figure')].at(-1).querySelectorAll('svg.chart .line')"
    check(page.evaluate(f"{lines}.length") == 2, "the live page does not draw the measurements")
    linear = page.evaluate(f"{lines}[0].getAttribute('d')")
    page.evaluate("[...document.querySelectorAll('#training [aria-label=Scale]')].at(-1).querySelectorAll('input')[1].click()")
    page.wait_for_layout()
    check(page.evaluate(f"{lines}[0].getAttribute('d')") != linear, "the scale of the measurements has no effect")
    drag(page, 0.25, 0.5)
    kept = interval(page)
    page.evaluate("document.querySelector('#training svg.chart').focus()")
    page.key("ArrowRight")
    drag(page, 0.4, 0.6, release=False)
    page.evaluate("document.querySelector('#training svg.chart').marked = 1")
    with open(os.path.join(folder, "first", "metrics.jsonl"), "a", encoding="utf-8") as file:
        record = {"event": "step", "step": 405, "epoch": 4, "seconds": 480.0, "loss": 0.5, "lr": 0.1}
        file.write(json.dumps(record) + "\n")
    wait(page, "runs[0].steps.step.at(-1) === 405")
    page.evaluate("draw()")
    check(interval(page) == kept, "a record changes the zoom")
    check(page.evaluate("document.querySelector('#training svg.chart').marked") == 1, "a record replaces the charts")
    check(page.evaluate("document.activeElement.matches('#training svg.chart')"), "a record takes the focus")
    page.call("Input.dispatchMouseEvent", type="mouseReleased", x=10, y=10, button="left", clickCount=1)
    page.wait_for_layout()
    check(interval(page) != kept and interval(page)[0] == kept[0], f"a selection during a record: {interval(page)} in {kept}")
    check(page.evaluate("document.documentElement.scrollWidth") <= 1440, "the page scrolls sideways")
    check(not page.complaints(), f"live: {page.complaints()}")


# Values of single images at two nodes. 0.4 lies on a bound of bins of 0.2; the last bin includes 1; one value is missing.
SAMPLES = {
    "one": {"blocks.0.add1": [0.05, 0.3, 0.3, 0.4, 1.0, 0.62, None], "blocks.1.add1": [2.0, 2.0, 2.0]},
    "two": {"blocks.0.add1": [0.91, 0.95, 0.0, 0.5], "blocks.1.add1": [2.0, 2.0]},
}
READ_BARS = """
[...document.querySelectorAll("#histograms figure")].map(figure => ({
    title: figure.querySelector("h3").textContent, caption: figure.querySelector("figcaption").textContent,
    bars: [...figure.querySelectorAll(".bin")].map(bin => [Number(bin.dataset.from), Number(bin.dataset.value),
        ...["x", "width", "y", "height"].map(name => Number(bin.getAttribute(name)))]),
    mean: Number(figure.querySelector(".reference").dataset.x),
    at: figure.querySelector(".reference").transform.baseVal.consolidate().matrix.e,
    ticks: [...figure.querySelectorAll(".axis.x .tick")].map(t => [Number(t.textContent),
        t.transform.baseVal.consolidate().matrix.e]),
    exports: figure.querySelectorAll(".export").length,
}))
"""


def read_histograms(browser):
    for name, nodes in SAMPLES.items():
        figures = [{"instrument": "nsi", "node": node, "statistic": "attention", "mean": 0.4, "deviation": 0.1, "n": 50,
                    "samples": values} for node, values in nodes.items()]
        figures.append({"instrument": "tns", "node": "", "statistic": "tns attention", "mean": 1.5, "deviation": 0.1,
                        "n": 3, "samples": [1.5, 1.25, 1.75]})
        write_records(f"samples/{name}", "measure.jsonl", [{"event": "measure", "measurements": figures}])
    path = report([f"samples/{name}" for name in SAMPLES], "samples.html")
    page = browser.open(path)
    choose_node = """(node => {
        const select = document.querySelector('#histograms select[aria-label="Node"]');
        select.value = node;
        select.dispatchEvent(new Event("change"));
        return new Promise(done => setTimeout(done, 100));
    })"""
    page.evaluate(f"{choose_node}('blocks.0.add1')")
    found = page.evaluate(READ_BARS)
    check([chart["title"] for chart in found] == list(SAMPLES), f"histograms of {[c['title'] for c in found]}")
    for chart, nodes in zip(found, SAMPLES.values()):
        values = [v for v in nodes["blocks.0.add1"] if v is not None]
        bounds = [0.2 * k for k in range(6)]  # Sturges: 1 + log2(7), 4 bins; round numbers make 5 of them
        wanted = [sum(a <= v < b or v == b == bounds[-1] for v in values) for a, b in zip(bounds, bounds[1:])]
        check([bar[1] for bar in chart["bars"]] == wanted, f"{chart['title']}: bins {chart['bars']}, wanted {wanted}")
        check(all(near(bar[0], b, 1e-9) for bar, b in zip(chart["bars"], bounds)), f"bounds {chart['bars']}")
        mean = sum(values) / len(values)
        check(near(chart["mean"], mean, 1e-9), f"{chart['title']}: mean {chart['mean']}, wanted {mean}")
        (low, at_low), (high, at_high) = chart["ticks"][0], chart["ticks"][-1]
        place = at_low + (mean - low) / (high - low) * (at_high - at_low)
        check(abs(place - chart["at"]) < 1, f"the mean is drawn at {chart['at']}, should be at {place}")
        heights = [bar[5] for bar in chart["bars"]]
        check(all(near(h * wanted[0], heights[0] * w, 1e-6) for h, w in zip(heights, wanted)), f"heights {heights}")
        check(f"n = {len(values)} recorded images of 50" in chart["caption"], f"caption {chart['caption']}")
        check(("1 image without a value" in chart["caption"]) == (None in nodes["blocks.0.add1"]), chart["caption"])
        check(chart["exports"] == 1, "a histogram has no export")
    check(found[0]["bars"][0][5] == found[1]["bars"][0][5], "runs have different axes")
    page.evaluate(f"{choose_node}('blocks.1.add1')")
    bars = [[bar[1] for bar in chart["bars"]] for chart in page.evaluate(READ_BARS)]
    check(bars == [[3], [2]], f"equal values are in one bin: {bars}")
    page.evaluate("document.querySelector('#histograms details').open = true")
    wait(page, "document.querySelector('#histograms tbody') !== null")
    told = page.evaluate("[...document.querySelectorAll('#histograms tbody tr')].map(r => Number(r.cells[2].dataset.value))")
    check(told == 5 * [2.0], f"the table of values has {told}")
    page.evaluate("""(select => {
        select.selectedIndex = [...select.options].findIndex(o => o.textContent.includes("Total neural stiffness"));
        select.dispatchEvent(new Event("change"));
        return new Promise(done => setTimeout(done, 100));
    })(document.querySelector('#histograms select[aria-label="Figure"]'))""")
    node = page.evaluate("document.querySelector('#histograms select[aria-label=\"Node\"]').selectedOptions[0].textContent")
    counted = [sum(bar[1] for bar in chart["bars"]) for chart in page.evaluate(READ_BARS)]
    check((node, counted) == ("whole network", [3, 3]), f"values of whole networks: {counted} at {node}")
    titles = page.evaluate("[...document.querySelectorAll('h2')].map(title => title.textContent)")
    along = [title for title in titles if title.endswith("along the network")]
    check(along == ["Neural stiffness index along the network"], f"trajectories of whole networks: {along}")
    check(not page.complaints(), f"histograms: {page.complaints()}")
    phone = browser.open(path, 390, 844)
    check(phone.evaluate("document.documentElement.scrollWidth") <= 390, "histograms scroll sideways on a phone")


write("first")
write("second")
with Browser() as chromium:
    read_report(chromium)
    read_placeless(chromium)
    read_histograms(chromium)
    with Server(attscope, [folder]) as running:
        read_live(chromium, running)
finish()
