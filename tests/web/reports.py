"""Runs and reports for tests of the report's page, whose arguments are the command attscope and a folder for runs. The
folder has the runs NAMES, if make_runs wrote them."""

import json
import os
import shutil
import subprocess
import sys

from checks import check

HOSTILE = "<img src=x onerror=boom()>"
NAMES = ["plain-1", "plain-2", "cb-1", HOSTILE]
attscope, folder = sys.argv[1:3]
# Statistics that a chart by depth shows for each instrument, and the titles of the index's charts.
DEPTHS = {
    "entropy": ["mean"],
    "distance": ["mean", "renormalised"],
    "jacobian": ["nuclear", "frobenius"],
    "nsi": ["attention", "gated", "unit"],
    "residual": ["composite", "frobenius"],
}
TITLE = "Neural stiffness index, reading %s"
opened = []  # (name, page) of every report


def near(a, b, tolerance=1e-12):
    return a is not None and b is not None and abs(a - b) <= tolerance * max(1, abs(b))


# --- runs -------------------------------------------------------------------------------------------------------------


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


def records(name, file):
    with open(os.path.join(folder, name, file), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_records(name, file, events):
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    with open(os.path.join(folder, name, file), "w", encoding="utf-8") as out:
        out.writelines(json.dumps(event) + "\n" for event in events)


def write_figures(name, figures, n=9):
    """Writes a run that was only measured: figures (instrument, node, statistic, mean, deviation) of n images. The
    deviation is 0.01 unless it is given."""
    keys = ("instrument", "node", "statistic", "mean", "deviation")
    found = [{"deviation": 0.01, **dict(zip(keys, figure)), "n": n} for figure in figures]
    write_records(name, "measure.jsonl", [{"event": "measure", "measurements": found}])


def events(name, file, kind):
    return [event for event in records(name, file) if event["event"] == kind]


def measured(name):
    return events(name, "measure.jsonl", "measure")[-1]["measurements"]


def figure_of(name, instrument, statistic):
    return next(m["mean"] for m in measured(name) if m["instrument"] == instrument and m["statistic"] == statistic)


# --- reports ----------------------------------------------------------------------------------------------------------


def report(names, output, *options):
    path = os.path.join(folder, output)
    subprocess.run([attscope, "report", *[os.path.join(folder, n) for n in names], "-o", path, *options], check=True,
                   stdout=subprocess.DEVNULL)
    return path


def open_report(browser, names, output, *options, **look):
    page = browser.open(report(names, output, *options), **look)
    opened.append((output, page))
    return page


def open_sweep(browser, runs, output, where="", **more):
    """Opens the report of a sweep, whose record is kept no longer. runs: (name, setting, seed) of measured runs, or
    whole records."""
    keys = ("name", "setting", "seed")
    found = [run if isinstance(run, dict) else {**dict(zip(keys, run)), "status": "measured"} for run in runs]
    path = os.path.join(folder, where, "sweep.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"runs": found, **more}, file)
    page = open_report(browser, [where], output)
    os.remove(path)
    return page


def check_complaints():
    """Nothing went wrong on any page, in whatever was done there."""
    for output, page in opened:
        check(not page.complaints(), f"console, {output}: {page.complaints()}")


# --- what a page shows ------------------------------------------------------------------------------------------------


def texts(page, selector):
    return page.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(part => part.textContent)")


def text_of(page, selector):
    return page.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")


def cells(page, rows, exact=True):
    """The cells of rows, a selector. exact: numbers in full, not as they are shown."""
    return page.evaluate(f"[...document.querySelectorAll({json.dumps(rows)})].map(row =>"
                         f"[...row.cells].map(cell => {'cell.dataset.value ?? ' if exact else ''}cell.textContent))")


def box_of(page, selector):
    """Scrolls an element into the window and returns its box there: left, top, width, height."""
    return page.evaluate(f"""(() => {{
        const part = document.querySelector({json.dumps(selector)});
        part.scrollIntoView({{block: "center", behavior: "instant"}});
        const {{left, top, width, height}} = part.getBoundingClientRect();
        return [left, top, width, height];
    }})()""")


def press(page, selector, index=0):
    page.evaluate(f"document.querySelectorAll({json.dumps(selector)})[{index}].click()")


def choose(page, section, label):
    """Chooses the input with this label."""
    labels = f"#{section} label:has(input)"
    press(page, labels, texts(page, labels).index(label))


READ_TABLES = """
(() => {
    for (const details of document.querySelectorAll("main details")) details.open = true;
    return new Promise(done => setTimeout(() => done(Object.fromEntries(
        [...document.querySelectorAll("main > section")].map(section => [section.id,
            [...section.querySelectorAll("details tbody tr")].map(row =>
                [...row.cells].map(cell => cell.dataset.value ?? cell.textContent))]))), 100));
})()
"""
