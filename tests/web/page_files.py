"""The files that the buttons of a report save."""

import csv
import io
import os
import re
import time
import xml.etree.ElementTree

from checks import check
from reports import HOSTILE, NAMES, READ_TABLES, events, folder, measured, near, open_report


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
                check(row and float(row[0]) == m["mean"] and float(row[1]) == m["deviation"] and row[2] == str(m["n"]),
                      f"{instrument} in the CSV: {row}, in the file: {m}")
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
    check(not any({"class", "style"} & set(node.attrib) or node.tag == space + "style" for node in nodes),
          f"{name}: styles")
    check(not any("var(" in value or "url(" in value for node in nodes for value in node.attrib.values()),
          f"{name}: links")
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
    page = open_report(browser, NAMES, "files.html")
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=where)
    page.evaluate(READ_TABLES)
    tables, buttons = page.evaluate("""[[...document.querySelectorAll("table")].map(t => t.closest(".scrolling") &&
        t.closest(".scrolling").querySelectorAll(".export").length),
        document.querySelectorAll(".scrolling .export").length]""")
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
