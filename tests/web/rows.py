"""rows.py ATTSCOPE FOLDER: writes records of runs, and sorts and filters the tables of runs in a report and on the start
page of `attscope serve`."""

import csv
import io
import json
import os

from browser import Browser
from checks import check, finish
from reports import attscope, folder, report, write_records
from server import Server, wait

# Name, model, seed, top-1 of each epoch. As texts, 9.5 is after 62 and 100 before it; one run has no score.
RUNS = [
    ("slow-b", "vit_small", 3, [9.5]),
    ("fast-a", "vit_tiny", 10, [40.0, 62.0]),
    ("fast-b", "vit_tiny", 2, [100.0]),
    ("new", "vit_tiny", 1, []),
    ("<b>&\"x", "resnet", 4, [61.0]),
    ("equal", "resnet", 5, [62.0]),
    ("slow-a", "vit_small", 6, [12.25]),
    ("last-1", "resnet", 7, [13.0]),
    ("last-2", "resnet", 8, [14.0]),
    ("last-3", "resnet", 9, [15.0]),
]
NAMES = [name for name, *_ in RUNS]


def write(name, model, seed, scores):
    records = [{"event": "run_begin", "step": 0, "epoch": 0, "seconds": 0, "model": model, "seed": str(seed),
                "epochs": "2", "parameters": 1000 * seed}]
    records += [{"event": "epoch", "step": 10 * (i + 1), "epoch": i, "seconds": i, "train_loss": 1.0, "eval_loss": 1.0,
                 "eval_top1": score} for i, score in enumerate(scores)]
    write_records(name, "metrics.jsonl", records)


TABLE = "document.querySelector('{} .arranged table')"


def rows(page, section, column=0):
    """The texts of a column in the rows that are shown."""
    return page.evaluate(f"[...{TABLE.format(section)}.tBodies[0].rows].filter(r => r.getClientRects().length)"
                         f".map(r => r.cells[{column}].textContent)")


def heading(page, section, title):
    return page.evaluate(f"[...{TABLE.format(section)}.tHead.rows[0].cells].findIndex(h => h.textContent === {json.dumps(title)})")


def sorted_by(page, section, title):
    return page.evaluate(f"{TABLE.format(section)}.tHead.rows[0].cells[{heading(page, section, title)}].ariaSort")


def press(page, section, title):
    page.click(f"{TABLE.format(section)}.tHead.rows[0].cells[{heading(page, section, title)}].firstElementChild")


def find(page, section, words):
    page.evaluate(f"""(input => {{
        input.value = {json.dumps(words)};
        input.dispatchEvent(new Event("input"));
    }})(document.querySelector("{section} .arranged [type=search]"))""")


def saved(page, section):
    """The rows of the CSV file of the table."""
    text = page.evaluate(f"csvOf({TABLE.format(section)})")
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def by_score(descending):
    """Names by their last score; missing ones last, equal ones in their order."""
    scored = [run for run in RUNS if run[3]]
    return [run[0] for run in sorted(scored, key=lambda run: run[3][-1], reverse=descending)] + ["new"]


def read_sorting(page, section, score):
    check(rows(page, section) == NAMES, f"{section}: first order {rows(page, section)}")
    for descending, state in ((False, "ascending"), (True, "descending")):
        press(page, section, score)
        check(rows(page, section) == by_score(descending), f"{section}: {state} by {score}: {rows(page, section)}")
        check(sorted_by(page, section, score) == state, f"{section}: {score} is {sorted_by(page, section, score)}")
        check(sorted_by(page, section, "run") == "none", f"{section}: two columns are sorted")
        names = [row[0] for row in saved(page, section)[1:]]
        check(names == by_score(descending), f"{section}: the CSV has {names}")
    page.evaluate(f"{TABLE.format(section)}.tHead.rows[0].cells[{heading(page, section, 'model')}].firstElementChild.focus()")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    wanted = [run[0] for run in sorted(RUNS, key=lambda run: run[1])]
    check(rows(page, section) == wanted, f"{section}: by model with the Enter key: {rows(page, section)}")
    press(page, section, "model")
    press(page, section, "model")
    check(rows(page, section) == NAMES, f"{section}: a third press does not restore the first order")


def read_filter(page, section, score):
    find(page, section, "  FAST tiny ")
    check(rows(page, section) == ["fast-a", "fast-b"], f"{section}: rows with both words: {rows(page, section)}")
    told = page.evaluate(f"document.querySelector('{section} .arranged [role=status]').textContent")
    check(told == "2 of 10 runs", f"{section}: the filter says {told}")
    press(page, section, score)
    press(page, section, score)
    names = [row[0] for row in saved(page, section)[1:]]
    check(names == ["fast-b", "fast-a"], f"{section}: the CSV of filtered rows has {names}")
    find(page, section, "tiny resnet")
    check(rows(page, section) == [], f"{section}: rows without one of the words: {rows(page, section)}")
    find(page, section, "<b>&")
    check(rows(page, section) == ["<b>&\"x"], f"{section}: a hostile name: {rows(page, section)}")
    find(page, section, "fast")


def fits(page, where):
    check(page.evaluate("document.documentElement.scrollWidth") <= 390, f"{where} scrolls sideways on a phone")
    check(not page.complaints(), f"{where}, phone: {page.complaints()}")


def read_report(browser):
    path = report(NAMES, "report.html")
    page = browser.open(path)
    check(page.evaluate("document.querySelectorAll('.card').length") == 0, "cards beside a table of ten runs")
    read_sorting(page, "#overview", "top-1 %")
    read_filter(page, "#overview", "top-1 %")
    row = saved(page, "#overview")
    cells = dict(zip(row[0], row[2]))
    check(cells["run"] == "fast-a" and cells["epochs"] == "2" and cells["epochs planned"] == "2"
          and cells["parameters"] == "10000" and cells["top-1 %"] == "62", f"a row of the CSV: {cells}")
    address = page.evaluate("location.href")
    other = browser.open(address)
    check(rows(other, "#overview") == ["fast-b", "fast-a"], f"{address} shows {rows(other, '#overview')}")
    check(sorted_by(other, "#overview", "top-1 %") == "descending", "the restored table is not marked as sorted")
    fits(browser.open(path, 390, 844), "the report")
    check(not page.complaints() and not other.complaints(), f"report: {page.complaints()} {other.complaints()}")


def read_start(browser, server):
    page = server.open(browser, "/")
    section = "#runs"
    order = rows(page, section)
    check(sorted(order) == sorted(NAMES), f"the start page lists {order}")
    RUNS.sort(key=lambda run: order.index(run[0]))
    NAMES[:] = order
    read_sorting(page, section, "best")
    read_filter(page, section, "best")
    check(rows(page, section) == ["fast-b", "fast-a"], f"the start page shows {rows(page, section)}")
    page.evaluate(f"{TABLE.format(section)}.tBodies[0].querySelector('tr:not([hidden]) a').focus()")
    page.evaluate("document.querySelector('#runs [type=search]').marked = 1")
    with open(os.path.join(folder, "fast-a", "metrics.jsonl"), "a", encoding="utf-8") as file:
        record = {"event": "epoch", "step": 30, "epoch": 2, "seconds": 3, "train_loss": 1.0, "eval_top1": 100.5}
        file.write(json.dumps(record) + "\n")
    wait(page, f"{TABLE.format(section)}.textContent.includes('100.5')")
    check(rows(page, section) == ["fast-a", "fast-b"], f"after a record: {rows(page, section)}")
    check(page.evaluate("document.activeElement.matches('#runs a')"), "a record takes the focus from a link")
    check(page.evaluate("document.querySelector('#runs [type=search]').marked") == 1, "a record replaces the filter")
    other = server.open(browser, "/", page.evaluate("location.hash"))
    check(rows(other, section) == ["fast-a", "fast-b"], f"the address restores {rows(other, section)}")
    fits(server.open(browser, "/", width=390, height=844), "the start page")
    check(not page.complaints() and not other.complaints(), f"start: {page.complaints()} {other.complaints()}")


for run in RUNS:
    write(*run)
with Browser() as chromium:
    read_report(chromium)
    with Server(attscope, [folder]) as running:
        read_start(chromium, running)
finish()
