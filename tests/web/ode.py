"""ode.py ATTSCOPE FOLDER: integrates a linear system, opens its page, and checks the charts."""

import os
import subprocess
import sys

from browser import Browser
from checks import check, finish

attscope, folder = sys.argv[1:3]
READ = """
({
    charts: [...document.querySelectorAll("#ode figure")].map(figure => ({
        title: figure.querySelector("h3").textContent,
        dots: [...figure.querySelectorAll(".series .head-dot")].map(dot => Number(dot.dataset.value)),
        lines: [...figure.querySelectorAll(".series .line")].map(l => l.getAttribute("d")),
    })),
    legend: [...document.querySelectorAll("#legend .chip")].map(chip => chip.textContent),
    cells: [...document.querySelectorAll("#ode tbody td")].map(cell => cell.dataset.value ?? cell.textContent),
    sections: [...document.querySelectorAll("main > section")].map(section => section.id),
})
"""

path = os.path.join(folder, "page.html")
subprocess.run([attscope, "ode", "linear", "--method", "euler", "--method", "rk4", "--step", "0.05", "--page", path],
               check=True, stdout=subprocess.DEVNULL)
with Browser() as browser:
    page = browser.open(path)
    found = page.evaluate(READ)
    check(found["sections"] == ["ode"], f"one section, found {found['sections']}")
    check(found["legend"] == ["euler", "rk4"], f"two methods, found {found['legend']}")
    check(len(found["charts"]) == 4, f"four charts, found {len(found['charts'])}")
    dots = found["charts"][0]["dots"]
    check(len(dots) > 13 and all(abs(h - 0.05) < 1e-9 for h in dots), f"every step has h 0.05: {dots}")
    lines = [line for line in found["charts"][0]["lines"] if line]
    check(len(lines) == 2 and not any("NaN" in line for line in lines), f"two lines of limits: {lines}")
    for chart in found["charts"][1:]:
        check(len(chart["lines"]) == 2 and all(chart["lines"]), f"{chart['title']} has two lines: {chart['lines']}")
    check(found["cells"][:5] == ["euler (diverged)", "13", "0", "13", "13"], f"the table: {found['cells']}")
    complaints = page.complaints()
    check(not complaints, str(complaints))
finish()
