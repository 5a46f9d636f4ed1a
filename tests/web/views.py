"""views.py ATTSCOPE FOLDER: the four views on the page of a single run: of a network with attention, of one without, and
with figures missing."""

from browser import Browser
from checks import check, finish
from reports import check_complaints, open_report, text_of, texts, write_figures

ATTENTION = [
    ("nsi", "blocks.0.add1", "attention", 0.5), ("nsi", "blocks.0.add2", "attention", 0.25),
    ("gate", "blocks.0.mlp.se", "mean", 0.75),
    ("head_types", "", "local", 0.25), ("head_types", "", "global", 0.75),
    ("residual", "input", "frobenius", 0.9), ("residual", "blocks.0.add1", "frobenius", 0.5),
    ("residual", "blocks.0.add2", "frobenius", 0.05),
    ("distance", "blocks.0.attn", "mean", 0.3),
]


def views(page):
    """The sentence of each view."""
    return dict(zip(page.evaluate("[...document.querySelectorAll('.view')].map(v => v.dataset.view)"),
                    texts(page, ".view .says")))


def check_attention(browser):
    write_figures("attention", ATTENTION)
    page = open_report(browser, ["attention"], "attention.html")
    says = views(page)
    check(list(says) == ["step size", "convolution", "rank", "uniform"], f"views {list(says)}")
    check("0.25 (blocks.0.add2) to 0.5 (blocks.0.add1)" in says["step size"], says["step size"])
    check("multiply branches by 0.75 on average" in says["step size"], says["step size"])
    check("25 % attend to the query's surroundings" in says["convolution"] and "75 % attend globally" in
          says["convolution"], says["convolution"])
    check("50 % of their norm after the first addition and 5 % after the last: the tokens have nearly collapsed" in
          says["rank"], says["rank"])
    check("no attention, or it was not measured" in says["uniform"], says["uniform"])  # no figure of this view
    row = texts(page, "[data-view='rank'] tbody tr:first-child td")
    check(row[0] == "Rank residual" and row[2] == "0.05 to 0.9, mean 0.483", f"the row of the residual: {row}")
    check("0 if all tokens are equal" in row[3], f"the scale: {row[3]}")
    check("path_samples" in text_of(page, "[data-view='rank'] .note-below"), "costly instruments that are missing")


def check_maps(browser):
    write_figures("maps", [("nsi", "layer1.0.add", "attention", 0.5), ("tns", "", "tns attention", 2.0)])
    page = open_report(browser, ["maps"], "maps.html", width=390)
    says = views(page)
    check("it has no gates" in says["step size"], says["step size"])
    for name in ("convolution", "rank", "uniform"):
        check(says[name].startswith("No figures: the network has no "), f"{name}: {says[name]}")
    check(page.evaluate("document.documentElement.scrollWidth") <= 390, "the page fits a phone")


def check_several(browser):
    page = open_report(browser, ["maps", "attention"], "both.html")
    check(page.evaluate("document.getElementById('views')") is None, "several runs have no views")


with Browser() as browser:
    check_attention(browser)
    check_maps(browser)
    check_several(browser)
    check_complaints()
finish()
