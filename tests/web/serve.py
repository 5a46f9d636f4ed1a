"""serve.py ATTSCOPE FOLDER: starts `attscope serve` in FOLDER, opens its pages while runs grow, and checks them.
serve.py ATTSCOPE FOLDER PICTURES: makes screenshots, too."""

import json
import os
import signal
import struct
import subprocess
import sys
import time

from browser import Browser
from checks import check, finish

HOSTILE = "<img src=x onerror=boom()>"
attscope, folder = sys.argv[1:3]
pictures = sys.argv[3] if len(sys.argv) > 3 else None
runs = os.path.join(folder, "runs")
PATIENCE = 60  # seconds; only a page that hangs takes so long
SERVED = ["Runs", "Explore", "Ablate", "Means", "Network", "Lessons"]  # links to pages


def wait_until(page, expression, what):
    deadline = time.monotonic() + PATIENCE
    while not page.evaluate(expression):
        if time.monotonic() > deadline:
            check(False, f"{what}: {page.evaluate('document.body.innerText')[:500]}")
            return
        time.sleep(0.05)


# --- records ----------------------------------------------------------------------------------------------------------


def record(event, step, **fields):
    return json.dumps({"event": event, "epoch": step // 10, "step": step, "seconds": step / 2, **fields}) + "\n"


def begin():
    settings = {"model": "vit_tiny_patch16_224", "task": "classification", "train_images": 80, "batch_size": "8"}
    return record("run_begin", 0, epochs="4", grad_accum_steps="1", **settings)


def step(number):
    return record("step", number, loss=2 / number, lr=0.1, grad_norm=1, images_per_second=100 + number)


def measure(number):
    nodes = [{"instrument": "entropy", "node": f"blocks.{i}.attn", "statistic": "mean", "mean": 1 + i + 1 / number,
              "deviation": 0.1, "n": 4} for i in range(2)]
    return record("measure", number, split="train", images=4, measurements=nodes)


def write(name, text, mode="a"):
    os.makedirs(os.path.join(runs, name), exist_ok=True)
    with open(os.path.join(runs, name, "metrics.jsonl"), mode, encoding="utf-8") as file:
        file.write(text)


# --- the server and a training run ----------------------------------------------------------------------------------------


def start_server():
    server = subprocess.Popen([attscope, "serve", runs], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return server, server.stdout.readline().strip()


def write_images(path, name, count):
    pixels = bytes((i * 37 + k * 11) % 256 for i in range(count) for k in range(64))
    with open(os.path.join(path, name + "-images-idx3-ubyte"), "wb") as file:
        file.write(struct.pack(">IIII", 0x803, count, 8, 8) + pixels)
    with open(os.path.join(path, name + "-labels-idx1-ubyte"), "wb") as file:
        file.write(struct.pack(">II", 0x801, count) + bytes(i % 4 for i in range(count)))


def start_training(name):
    """Starts a training run that lasts until it is stopped."""
    data = os.path.join(folder, "data")
    os.makedirs(data)
    write_images(data, "train", 96)
    write_images(data, "t10k", 32)
    command = [attscope, "train", data, "--model", "vit_tiny_patch16_224"]
    command += "--img-size 8 --patch-size 4 --in-chans 1 --num-classes 4 --embed-dim 16 --depth 1 --num-heads 2".split()
    command += "--batch-size 16 --opt adamw --lr 1e-3 --warmup-epochs 0 --no-aug --threads 1".split()
    command += "--epochs 1000000 --log-interval 3 --checkpoint-hist 1".split()
    return subprocess.Popen(
        [*command, "--output", runs, "--experiment", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


# --- pages ------------------------------------------------------------------------------------------------------------

ROW = "[...document.querySelectorAll('#runs tbody tr')].find(row => row.cells[0].textContent === %s)"
POINTS = """
(title => {
    const figures = [...document.querySelectorAll("figure")];
    const own = figures.find(f => f.querySelector("h3").textContent.startsWith(title));
    const lines = own?.querySelectorAll("svg.chart .line");
    return [...lines ?? []].map(line => (line.getAttribute("d")?.match(/[ML]/g) ?? []).length);
})(%s)
"""


def points(page, title):
    """The number of points of each line of a chart."""
    return page.evaluate(POINTS % json.dumps(title))


def wait_for_points(page, title, wanted, what):
    found = POINTS % json.dumps(title)
    wait_until(page, f"JSON.stringify({found}) === JSON.stringify({wanted})", what)


def quiet(page, what):
    complaints = page.complaints()
    check(complaints == [], f"{what}: {complaints}")
    outside = [url for url in page.requests() if not url.startswith((origin, "data:"))]
    check(outside == [], f"{what} requests {outside}")


def check_start(browser):
    page = browser.open(address)
    wait_until(page, "document.documentElement.dataset.ready === 'true'", "the start page loads")
    check("token" not in page.evaluate("location.href"), "the address has no token after the first request")
    check(page.evaluate("document.cookie") == "", "scripts cannot read the cookie")
    for name in ("growing", HOSTILE):
        row = page.evaluate(f"({ROW % json.dumps(name)})?.innerText ?? ''")
        check("unfinished" in row and "0 of 4" in row, f"the row of {name}: {row}")
    write("later", begin() + step(1))
    wait_until(page, f"Boolean({ROW % json.dumps('later')})", "a run that starts later appears")
    links = page.evaluate("[...document.querySelectorAll('.pages a')].map(link => link.textContent)")
    check(links == SERVED, f"links of the start page: {links}")
    quiet(page, "the start page")
    return page


def check_live(browser):
    page = browser.open(origin + "/live?run=growing")
    name = page.evaluate("document.getElementById('title').textContent")
    check(name == "growing", f"the name of the run: {name}")
    wait_for_points(page, "Training loss", [3, 0], "the first records are drawn")
    for number in (4, 5):
        write("growing", step(number))
        wait_for_points(page, "Training loss", [number, 0], f"the curve grows to {number} points")
    check(points(page, "Throughput") == [5] and points(page, "Learning rate") == [5], "all curves grow")
    words = page.evaluate("document.getElementById('subtitle').textContent")
    check(words == "update 5 of 40 · epoch 0 of 4 done · 105 images per second · 18 s left", f"progress: {words}")
    write("growing", record("epoch", 10, train_loss=1, eval_loss=0.5, eval_top1=50, eval_top5=100, lr=0.1))
    wait_for_points(page, "Top-1", [1], "the metric of an epoch is drawn")
    write("growing", measure(10) + measure(11))
    wait_for_points(page, "Attention entropy", [2, 2], "measurements are drawn, one line per layer")
    page.click("document.querySelector('input[type=radio]:not(:checked)')")  # the logarithmic scale
    wait_for_points(page, "Training loss", [5, 1], "the logarithmic scale is drawn")
    write("growing", begin() + step(1), "w")
    wait_for_points(page, "Training loss", [1, 0], "a run that begins anew is drawn anew")
    quiet(page, "the live page")


def check_refused_first(browser):
    """A live page whose events are refused at first draws them later."""
    page = browser.open(origin + "/live?run=growing")
    page.call("Page.addScriptToEvaluateOnNewDocument", source="""window.opened = 0;
        window.EventSource = class extends EventSource {
            constructor(address) { super(opened++ ? address : "/api/none"); }
        };""")
    page.call("Page.reload")
    told = "(document.getElementById('subtitle')?.textContent ?? '')"
    wait_until(page, f"{told}.startsWith('The server refuses this page')", "a live page says that it is refused")
    wait_for_points(page, "Training loss", [1, 0], "a live page that was refused is drawn later")
    check(page.evaluate(f"opened === 2 && {told}.startsWith('update 1 of ')"), f"progress: {page.evaluate(told)}")


def check_short(browser):
    """A training run that logs no steps has its values after epochs; one without throughput has no chart of it."""
    write("later", begin() + record("epoch", 10, train_loss=1, lr=0.1, images_per_second=50), "w")
    page = browser.open(origin + "/live?run=later")
    wait_for_points(page, "Throughput", [1], "the throughput of an epoch is drawn")
    check(points(page, "Learning rate") == [1], "the learning rate of an epoch is drawn")
    write("later", begin() + record("epoch", 10, train_loss=None, lr=0.1), "w")
    wait_until(page, "runs[0].epochs[0]?.train_loss === null && document.querySelectorAll('figure').length === 2",
               "a chart without a value goes")
    texts = page.evaluate("[...document.querySelectorAll('figure')].map(f => f.innerText)")
    check("There are no values." in texts[0] and "There are no values." not in texts[1], f"charts: {texts}")
    quiet(page, "the live page of a short training")


def check_many_steps(browser):
    """Long training runs are thinned, and keep their first and a late step."""
    write("later", begin() + "".join(map(step, range(1, 5002))), "w")
    page = browser.open(origin + "/live?run=later")
    wait_until(page, "runs[0].steps.step.length > 1000 && runs[0].steps.step.at(-1) > 4990", "a long training is drawn")
    steps = page.evaluate("runs[0].steps.step")
    check(len(steps) <= 2000 and steps[0] == 1, f"{len(steps)} steps from {steps[0]}")
    distances = {b - a for a, b in zip(steps, steps[1:])}
    check(distances == {page.evaluate("runs[0].steps.stride")}, f"steps at distances {distances}")
    quiet(page, "the live page of a long training")


def check_training(browser):
    training = start_training("real")
    try:
        state = f"({ROW % json.dumps('real')})?.querySelector('[data-state]').dataset.state"
        wait_until(start, f"{state} === 'running'", "a training run that runs is listed as running")
        page = browser.open(origin + "/live?run=real")
        wait_until(page, "runs[0].steps.step.length > 5", "the curve of a training run has points")
        before = page.evaluate("runs[0].steps.step.length")
        wait_until(page, f"runs[0].steps.step.length > {before + 20}", "the curve of a training run grows")
        wait_until(page, f"{POINTS % json.dumps('Training loss')}[0] > {before}", "its chart grows")
        training.send_signal(signal.SIGINT)
        training.wait(PATIENCE)
        wait_until(page, "!document.getElementById('subtitle').textContent.includes('left')", "the end is shown")
        wait_until(start, f"{state} === 'stopped'", "a training run that was stopped is listed as stopped")
        quiet(page, "the live page of a training run")
    finally:
        training.kill()
        training.wait()


PAGES = "[...document.querySelectorAll('.pages a')].map(link => link.textContent)"
FOLLOWED = "[...document.querySelectorAll('.followed li')].map(item => item.innerText)"


def check_together(browser):
    """Runs that are chosen on the start page share charts that grow; one can be hidden, or left out."""
    write("growing", begin() + step(1) + step(2) + step(3), "w")
    write("second", begin() + step(1), "w")
    page = browser.open(origin + "/")
    wait_until(page, f"Boolean({ROW % json.dumps('second')})", "the start page lists two runs")
    check(page.evaluate(f"({ROW % json.dumps('second')}).cells[2].textContent.length") == 16, "a run has no date")
    for name in ("growing", "second"):
        page.click(f"({ROW % json.dumps(name)}).querySelector('input')")
    link = page.evaluate("[...document.querySelectorAll('#runs .tools a')].map(a => [a.textContent, a.hidden, a.href])")
    check(link[0] == ["Charts of 2 runs", False, origin + "/live?run=growing&run=second"], f"link to the charts: {link}")
    check(link[1][0] == "Report of 2 runs" and not link[1][1], f"link to the report: {link}")
    again = browser.open(page.evaluate("location.href"))
    wait_until(again, "document.querySelectorAll('#runs input:checked').length === 2", "the address keeps the choice")
    quiet(page, "the start page with chosen runs")
    page = browser.open(link[0][2])
    wait_for_points(page, "Training loss", [3, 0, 1, 0], "the records of two runs are drawn")
    write("second", step(2) + step(3) + step(4))
    wait_for_points(page, "Training loss", [3, 0, 4, 0], "the curve of the second run grows")
    write("growing", step(4))
    wait_for_points(page, "Training loss", [4, 0, 4, 0], "the curve of the first run grows")
    wait_until(page, f"{FOLLOWED}[1]?.includes('update 4 of 40')", "the progress of the second run")
    check(page.evaluate(PAGES)[:6] == SERVED, "links of the page of two runs")
    page.click("document.querySelector('.followed .chip')")
    shown = page.evaluate("[...document.querySelectorAll('svg.chart .series:not(.off)')].map(g => g.dataset.run)")
    check(set(shown) == {"1"}, f"after a click on the first run, {set(shown)} are shown")
    write("second", "nonsense\n")
    wait_until(page, f"{FOLLOWED}[1]?.includes('not valid JSON')", "damaged records are named")
    write("growing", step(5))
    wait_for_points(page, "Training loss", [5, 0, 4, 0], "the other run grows beside a damaged one")
    without = page.evaluate("document.querySelectorAll('.followed a')[1].href")
    check(without == origin + "/live?run=growing", f"the link that leaves a run out: {without}")
    quiet(page, "the live page of two runs")
    page.call("Page.navigate", url="about:blank")  # a browser opens six connections to a server
    if pictures:
        write("second", begin() + "".join(map(step, range(1, 40))), "w")
        write("growing", "".join(map(step, range(6, 30))))
        for width, height in ((1440, 1000), (390, 844)):
            for dark in (False, True):
                for name, path in (("start", "/#chosen=growing,second"), ("live", link[0][2][len(origin):]),
                                   ("report", "/report?run=growing&run=later")):
                    page = browser.open(origin + path, width, height, dark)
                    time.sleep(1)
                    kind = f"{'phone' if width < 600 else 'desktop'}-{'dark' if dark else 'light'}"
                    page.screenshot(os.path.join(pictures, f"{name}-{kind}.png"), whole=True)
                    page.call("Page.navigate", url="about:blank")


def check_report(browser):
    page = browser.open(origin + "/report?run=growing")
    check(page.evaluate(PAGES) == [*SERVED, "Charts of this run"],
          f"links of the report: {page.evaluate(PAGES)}")
    check(page.evaluate("document.documentElement.dataset.ready") == "true", "the report is built")
    check(page.evaluate("document.getElementById('title').textContent") == "growing", "the report is of the run")
    quiet(page, "the report")


def check_refused(browser):
    """A page of another origin reads nothing."""
    with open(os.path.join(folder, "other.html"), "w", encoding="utf-8") as file:
        file.write("<!DOCTYPE html><title>other</title>")
    page = browser.open(os.path.join(folder, "other.html"))
    for mode in ("cors", "no-cors"):
        answer = page.evaluate(f"""fetch("{origin}/api/runs", {{mode: "{mode}", credentials: "include"}})
            .then(answer => answer.text()).then(text => text || "nothing", () => "nothing")""")
        check(answer == "nothing", f"another page reads with {mode}: {answer}")


def check_end(server):
    server.send_signal(signal.SIGINT)
    check(server.wait(PATIENCE) == 0, "the server ends with exit status 0")
    wait_until(start, "document.getElementById('subtitle').textContent.startsWith('The server does not answer')",
               "the start page says that the server has ended")


write(HOSTILE, begin())
write("growing", begin() + step(1) + step(2) + step(3))
server, address = start_server()
origin = address.split("/?")[0]
try:
    with Browser() as browser:
        start = check_start(browser)
        check_live(browser)
        check_refused_first(browser)
        check_report(browser)
        check_short(browser)
        check_many_steps(browser)
        check_together(browser)
        check_training(browser)
        check_refused(browser)
        check_end(server)
finally:
    server.kill()
    server.wait()
finish()
