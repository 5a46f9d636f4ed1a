"""ablate.py ATTSCOPE FOLDER: tests the page Ablate: its numbers are those of `attscope ablate`.
ablate.py ATTSCOPE FOLDER PICTURES CHECKPOINT IMAGES: makes screenshots of an ablation of IMAGES."""

import json
import os
import subprocess
import sys

from browser import Browser
from checks import check, finish
from server import Server, look, wait
from trained import HEADS, IMAGES, LAYERS, SIDE, picture, train, write_png

attscope, folder = sys.argv[1:3]
data, loose, run = (os.path.join(folder, *path) for path in (("data",), ("loose",), ("output", "run")))


def command(*arguments):
    found = subprocess.run([attscope, "ablate", run, data, *arguments, "--json", "-"], check=True, capture_output=True,
                           text=True)  # fmt: skip
    return json.loads(found.stdout)


def near(a, b):
    return abs(a - b) <= 1e-5  # measured: 3e-6; batches of another size are summed in another order


def done(page, images=IMAGES):
    """Waits until all images are seen."""
    wait(page, f"document.querySelector('.panel')?.dataset.images === '{images}' && !document.querySelector('.panel').hidden"
         " && document.querySelector('.panel').dataset.done === 'true'", 120)  # fmt: skip


def lists(**given):
    """The parameters of a request."""
    return {"model": "run", "heads": "", "branches": "", "tokens": "", "uniform": 0, "greedy": 0, "bound": 0,
            "images": IMAGES, **given}  # fmt: skip


def write(page, label, value):
    """Types into a field."""
    page.evaluate(f"""(field => {{ field.value = {json.dumps(value)}; field.dispatchEvent(new Event("change")); }})(
        document.querySelector(`input[aria-label="{label}"]`))""")


def cells(page):
    return page.evaluate("""[...document.querySelectorAll(".heat button")].map((cell) =>
        [Number(cell.dataset.part), Number(cell.dataset.value)])""")


def choose(page, label):
    page.click(f"[...document.querySelectorAll('.choice label')].find(l => l.textContent === {json.dumps(label)})")


def check_map(page, parts, figure, what):
    found = dict(cells(page))
    check(len(found) == len(parts), f"{what}: {len(found)} cells, expected {len(parts)}")
    check(all(near(found[i], part[figure]["mean"]) for i, part in enumerate(parts)), f"{what}: {figure} differs: {found}")


def test_heads(server, page):
    done(page)
    wanted = command("--heads", "all")
    check_map(page, wanted["parts"], "loss", "heads")
    size = page.evaluate("[document.querySelectorAll('.heat tbody tr').length, "
                         "document.querySelectorAll('.heat thead th').length - 1]")  # fmt: skip
    check(size == [HEADS, LAYERS], f"the heat map has {size} rows and columns")
    text = page.evaluate("document.querySelector('.readout').textContent")
    check(f"{IMAGES} of {IMAGES} images" in text and f"accuracy {wanted['unchanged']['accuracy']:.4g} %" in text, text)
    choose(page, "accuracy")
    check_map(page, wanted["parts"], "accuracy", "heads")
    choose(page, "p of the class")
    check_map(page, wanted["parts"], "p_class", "heads")
    choose(page, "loss")
    answer = server.json("/api/ablation", **lists(heads="all"))
    check(answer["images"] == answer["total"] == IMAGES and answer["unlabelled"] == 0, f"{answer['images']} images")
    for found, part in zip(answer["parts"], wanted["parts"]):
        for figure in ("loss", "accuracy", "p_class"):
            check(all(near(found[figure][end], part[figure][end]) for end in ("mean", "low", "high")),
                  f"{part['name']}: {found[figure]}, expected {part[figure]}")  # fmt: skip
    check(answer["methods"] == wanted["methods"], "the methods differ")
    rows = page.evaluate("[...document.querySelectorAll('details tbody tr')].map((row) => row.cells[0].textContent)")
    ranked = sorted(answer["parts"], key=lambda part: part["rank"])
    check(rows == [part["name"] for part in ranked], f"the table has the order {rows[:3]}")


def test_images(server, page):
    part = 4
    page.click(f"document.querySelector('.heat button[data-part=\"{part}\"]')")
    wait(page, f"document.querySelector('.changed').dataset.part === '{part}'")
    check(f"part={part}" in page.evaluate("location.hash"), "the address does not name the part")
    answer = server.json("/api/changed", **lists(heads="all", part=part))
    found = page.evaluate("""[...document.querySelectorAll(".changed li")].map((item) =>
        [Number(item.dataset.before), Number(item.dataset.after), item.querySelector("b").textContent,
         item.querySelector("img").getAttribute("src")])""")
    wanted = [[image["unchanged"]["loss"], image["changed"]["loss"], image["label"],
               f"api/thumbnail?image={image['id']}"] for image in answer["images"]]  # fmt: skip
    links = page.evaluate("[...document.querySelectorAll('.changed a')].map((link) => link.getAttribute('href'))")
    check(links == [f"/explore#model=run&image={image['id']}&changes=h{part // HEADS}.{part % HEADS}r"
                    for image in answer["images"]], f"links: {links}")  # fmt: skip
    check(found == wanted and len(found) == IMAGES, f"images: {found}, expected {wanted}")
    changes = [abs(after - before) for before, after, *_ in found]
    check(changes == sorted(changes, reverse=True), f"the images are not in the order of their change: {changes}")
    # The same losses by the page Explore: its run has the logits.
    image = answer["images"][0]
    run = server.json("/api/run", model="run", image=image["id"], changes=f"h{part // HEADS}.{part % HEADS}r")
    probability = next((top["probability"] for top in run["top"] if top["class"] == image["class"]), None)
    check(probability is None or near(probability, image["changed"]["p_class"]), f"Explore says {probability}: {image}")


def test_others(server, page):
    choose(page, "uniform")
    uniform = command("--heads", "all", "--uniform")["parts"]
    wait(page, f"[...document.querySelectorAll('.heat button')].length === {len(uniform)} && "
         f"Math.abs(Number(document.querySelector('.heat button').dataset.value) - ({uniform[0]['loss']['mean']})) < 1e-5"
         f" && document.querySelector('.panel').dataset.images === '{IMAGES}'", 120)  # fmt: skip
    check_map(page, uniform, "loss", "uniform heads")
    choose(page, "residual branches")
    branches = command("--branches", "all")["parts"]
    wait(page, "[...document.querySelectorAll('.heat tbody th')].map(h => h.textContent).join() === 'add1,add2'"
         f" && document.querySelector('.panel').dataset.images === '{IMAGES}'", 120)  # fmt: skip
    check_map(page, branches, "loss", "branches")
    check(not page.complaints(), f"complaints: {page.complaints()}")
    for query, part in [({"heads": "layers"}, 'no attention layer "layers"'), ({"images": 0}, "images"),
                        ({"bound": 101}, "expected 0 to 100"), ({"greedy": 2}, "greedy"),
                        ({"part": 99}, "part 99 does not exist: expected 0 to 5")]:  # fmt: skip
        try:
            server.get("/api/changed", **{**lists(heads="all", part=0), **query})
            check(False, f"{query} is accepted")
        except OSError as error:
            check(error.code == 400 and part in json.loads(error.read())["error"], f"{query}: {error}")


def test_correlations(page):
    wanted = command("--heads", "all")["correlations"]
    found = page.evaluate("""[...document.querySelectorAll(".correlations tbody tr")].map((row) =>
        [row.cells[0].textContent, ...[1, 2, 3, 4].map((i) => Number(row.cells[i].dataset.value || NaN)),
         row.cells[5].textContent])""")
    check(len(wanted) > 2 and len(found) == len(wanted), f"{len(found)} correlations, expected {len(wanted)}")
    for row, of in zip(found, wanted):
        check(row[0] == of["figure"] and row[5] == f"{of['count']} heads", f"a correlation: {row}, expected {of}")
        check(all(near(value, of[name]) for value, name in zip(row[1:5], ("rho", "low", "high", "p"))),
              f"{of['figure']}: {row}, expected {of}")  # fmt: skip


def test_tokens(page):
    choose(page, "tokens")
    wanted = command("--tokens", "all")["parts"]
    wait(page, "document.querySelector('.heat.tokens') !== null", 120)
    done(page)
    check_map(page, wanted, "loss", "tokens")
    places = page.evaluate("""[...document.querySelectorAll(".heat tbody tr")].flatMap((row) =>
        [...row.cells].slice(1).map((cell, i) => [row.cells[0].textContent, i, Number(cell.querySelector("button")
        ?.dataset.part ?? -1)])).filter(([, , part]) => part >= 0)""")
    grid = SIDE // 4
    expected = [["no patch", 0, 0], *[[f"row {t // grid + 1}", t % grid, t + 1] for t in range(grid * grid)]]
    check(places == expected, f"places of tokens: {places}")


def test_groups(server, page):
    choose(page, "groups")
    choose(page, "removed")
    write(page, "Heads", "blocks.0:0,1;blocks.2:*+blocks.1:1")
    write(page, "Branches", "mlp")
    write(page, "Tokens", "1-4")
    given = {"heads": "blocks.0:0,1;blocks.2:*+blocks.1:1", "branches": "mlp", "tokens": "1-4"}
    wanted = command(*[text for name, value in given.items() for text in (f"--{name}", value)])
    wait(page, f"[...document.querySelectorAll('.heat button')].length === {len(wanted['parts'])}", 120)
    done(page)
    check_map(page, wanted["parts"], "loss", "groups")
    names = page.evaluate("[...document.querySelectorAll('.heat tbody th')].map((name) => name.textContent)")
    check(names == [part["name"] for part in wanted["parts"]], f"groups: {names}")
    check("heads=" in page.evaluate("location.hash"), "the address does not hold the lists")
    for part, changes in ((0, "h0.0r-h0.1r"), (1, "h2.0r-h2.1r-h1.1r"), (2, "b1"), (5, "t1-t2-t3-t4")):
        check_part(server, page, part, changes, **given)


def test_wrong_list(page):
    choose(page, "groups")
    write(page, "Heads", "blocks.9")
    wait(page, "!document.querySelector('.problem').hidden")
    text = page.evaluate("document.querySelector('.problem').textContent")
    check('no attention layer "blocks.9"' in text, text)


def check_part(server, page, part, changes, **given):
    """A click on a part shows its images, with links to the page Explore, where the network answers the same."""
    page.click(f"document.querySelector('.heat button[data-part=\"{part}\"]')")
    wait(page, f"document.querySelector('.changed').dataset.part === '{part}'")
    answer = server.json("/api/changed", **lists(part=part, **given))
    check(answer["changes"] == changes, f"part {part} has the changes {answer['changes']}, expected {changes}")
    links = page.evaluate("[...document.querySelectorAll('.changed a')].map((link) => link.getAttribute('href'))")
    check(links == [f"/explore#model=run&image={image['id']}&changes={changes}" for image in answer["images"]],
          f"links of part {part}: {links}")  # fmt: skip
    image = answer["images"][0]
    run = server.json("/api/run", model="run", image=image["id"], changes=changes)
    probability = next((top["probability"] for top in run["top"] if top["class"] == image["class"]), None)
    check(probability is not None and near(probability, image["changed"]["p_class"]),
          f"Explore says {probability}: {image}")  # fmt: skip


def test_greedy(server, page):
    choose(page, "heads")
    choose(page, "removed")
    choose(page, "greedily")
    wanted = command("--heads", "all", "--greedy")
    wait(page, f"document.querySelector('.panel').dataset.steps === '{len(wanted['parts'])}'", 120)
    done(page)
    check_map(page, wanted["parts"], "loss", "steps")
    names = page.evaluate("[...document.querySelectorAll('.heat tbody th')].map((name) => name.textContent)")
    check(names == [("+ " if i else "") + part["name"] for i, part in enumerate(wanted["parts"])], f"steps: {names}")
    check(len(names) == HEADS * LAYERS, f"{len(names)} steps")
    words = ["h{}.{}r".format(*part["name"][len("blocks."):].replace(".attn", "").split(":")) for part in wanted["parts"]]
    check_part(server, page, 2, "-".join(words[:3]), heads="all", greedy=1)
    bound = wanted["unchanged"]["accuracy"] + wanted["parts"][1]["accuracy"]["mean"]
    bounded = command("--heads", "all", "--greedy", "--bound", str(bound))["parts"]
    write(page, "Down to an accuracy of, %", str(bound))
    wait(page, f"document.querySelector('.panel').dataset.steps === '{len(bounded)}'", 120)
    done(page)
    check_map(page, bounded, "loss", "bounded steps")
    check(not page.complaints(), f"complaints: {page.complaints()}")


def test_loose(browser):
    """Images without classes count by what the network predicts."""
    with Server(attscope, [run, "--images", loose]) as server:
        page = server.open(browser, "/ablate", "#model=run&parts=branches")
        done(page, 1)
        text = page.evaluate("document.querySelector('.readout').textContent")
        check("1 of 1 images" in text and "accuracy 100 %" in text and "without classes" in text, text)
    with Server(attscope, [run]) as server:
        page = server.open(browser, "/ablate", "#model=run")
        wait(page, "!document.querySelector('.problem').hidden")
        text = page.evaluate("document.querySelector('.problem').textContent")
        check("no images were named" in text, text)


def shoot(server, browser, model, images, pictures=None, state="part=4", name="ablate"):
    """Whether the page fits; with a folder, screenshots."""
    def ready(page):
        done(page, images)
        if "part" in state:
            wait(page, "document.querySelector('.changed').dataset.part !== undefined")
        page.evaluate("document.querySelector('details').open = true")

    look(server, browser, "/ablate", f"#model={model}&images={images}&{state}", ready, pictures, name)


# What screenshots show, of a network such as DeiT-Tiny.
VIEWS = {
    "heads": "part=4",
    "tokens": "parts=tokens&part=100",
    "groups": "parts=lists&heads=blocks.0:*;blocks.3:0,2;blocks.11:*&branches=mlp&part=1",
    "greedy": "parts=lists&heads=blocks.0:*;blocks.3:*;blocks.11:*;blocks.6:0&greedy=1&part=1",
}
with Browser() as chromium:
    if len(sys.argv) > 3:
        with Server(attscope, [sys.argv[4], "--images", sys.argv[5]]) as running:
            for name, state in VIEWS.items():
                shoot(running, chromium, os.path.basename(sys.argv[4]), 8, sys.argv[3], state, name)
        finish()
    train(attscope, data, os.path.dirname(run))
    write_png(os.path.join(loose, "one.png"), picture(1))
    with Server(attscope, [run, "--images", data]) as running:
        opened = running.open(chromium, "/ablate", f"#model=run&images={IMAGES}")
        test_heads(running, opened)
        test_images(running, opened)
        test_correlations(opened)
        shoot(running, chromium, "run", IMAGES)
        test_others(running, opened)
        test_tokens(opened)
        test_groups(running, opened)
        test_greedy(running, opened)
        test_wrong_list(opened)
    test_loose(chromium)
finish()
