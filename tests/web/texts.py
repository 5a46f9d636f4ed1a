"""texts.py ATTSCOPE GOLDENS FOLDER [PICTURES]: tests the pages of `attscope serve` with small networks for texts, and
writes screenshots to PICTURES."""

import json
import math
import os
import shutil
import struct
import sys
import urllib.parse

from browser import Browser
from checks import check, finish
from server import Server, look, wait

attscope, goldens, folder = sys.argv[1:4]
pictures = sys.argv[4] if len(sys.argv) > 4 else None
HEADS, LAYERS = 2, 2
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s", "on", "mat", "a", "dog", "ran",
          "far", "away", "from", "it", "##ing", "."]
TEXTS = ["The cats sat on the mat.", "A dog ran far away from it."]
WORDS = ["[CLS]", "the", "cat", "##s", "sat", "on", "the", "mat", ".", "[SEP]"]
LINE = "document.querySelector('.words')"


def make_network(name):
    path = os.path.join(folder, name)
    shutil.copytree(os.path.join(goldens, "encoders", name), path)
    with open(os.path.join(path, "vocab.txt"), "w") as file:
        file.write("\n".join(PIECES) + "\n")
    return path


ENCODER, CLASSIFIER = make_network("bert"), make_network("bert_classes")
FILE = os.path.join(folder, "texts.txt")
with open(FILE, "w") as file:
    file.write("\n".join(TEXTS) + "\n")


def drawn(page, **wanted):
    conditions = " && ".join(f"line?.dataset.{name} === {json.dumps(value)}" for name, value in wanted.items())
    wait(page, f"(line => {conditions or 'line?.dataset.asked'})({LINE})")


def answered(page, changes):
    wait(page, f"document.querySelector('.answer').dataset.changes === {json.dumps(changes)}")


def press(page, text):
    page.click(f"[...document.querySelectorAll('button')].find(b => b.textContent.startsWith({json.dumps(text)}))")


def values(page):
    """The numbers of the words, None for those that are not seen."""
    found = page.evaluate(f"[...{LINE}.querySelectorAll('.word')].map(word => word.dataset.value)")
    return [None if value == "NaN" else float(value) for value in found]


def weights(server, model, image, query, changes="", tokens=len(WORDS)):
    data = server.get("/api/weights", model=model, image=image, changes=changes, way="row", terms="both", scores=0,
                      queries=",".join([str(query)] * LAYERS))
    numbers = struct.unpack(f"{len(data) // 4}f", data)
    return [[numbers[(l * HEADS + h) * tokens:][:tokens] for h in range(HEADS)] for l in range(LAYERS)]


def same(shown, expected):
    return len(shown) == len(expected) and all(abs(a - b) < 1e-6 for a, b in zip(shown, expected))


def mean_of(heads):
    return [sum(column) / HEADS for column in zip(*heads)]


def words_of(page):
    return page.evaluate(f"[...{LINE}.querySelectorAll('.word')].map(word => word.textContent)")


def test_words(server, page):
    """The tokens are words in a line; special ones and pieces of one word are marked."""
    check(words_of(page) == WORDS, f"words: {words_of(page)}")
    classes = page.evaluate(f"[...{LINE}.querySelectorAll('.word')].map(word => word.className)")
    special = [i for i, name in enumerate(classes) if "special" in name]
    joined = [i for i, name in enumerate(classes) if "joined" in name]
    check(special == [0, 9] and joined == [3], f"special words {special}, pieces of the word before {joined}")
    check(not page.evaluate(f"{LINE}.hidden") and page.evaluate("!document.querySelector('.view canvas').offsetParent"),
          "an image is shown beside the text")
    check(page.evaluate("document.querySelector('.drop').hidden"), "images can be dropped for a network of texts")
    texts = page.evaluate("[...document.querySelectorAll('.text-list button')].map(button => button.textContent)")
    check(texts == TEXTS, f"texts to choose: {texts}")


def test_attention(server, page):
    """Hover, focus, click and keys choose the query, whose weights shade the words."""
    drawn(page, query="0")
    page.evaluate("document.querySelectorAll('.grid button')[1 * 2 + 1].click()")
    wait(page, "location.hash.includes('layer=1') && location.hash.includes('head=0')")
    drawn(page, query="0")
    check(same(values(page), weights(server, "bert", "t0", 0)[1][0]), f"weights of the first token: {values(page)}")
    x, y = page.evaluate(f"""(word => {{
        word.scrollIntoView({{block: "center", behavior: "instant"}});
        const {{left, top, width, height}} = word.getBoundingClientRect();
        return [left + width / 2, top + height / 2];
    }})({LINE}.querySelector('[data-token="4"]'))""")
    page.move(x, y)
    drawn(page, query="4")
    row = weights(server, "bert", "t0", 4)[1][0]
    check(same(values(page), row), f"weights of token 4: {values(page)}")
    best = max(range(len(row)), key=row.__getitem__)
    readout = page.evaluate("document.querySelector('.readout').textContent")
    check("From “sat” (token 4)" in readout and f"Strongest token: “{WORDS[best]}” (token {best})" in readout, readout)
    entropy = -sum(a * math.log(a) for a in row)
    check(abs(float(readout.split("Entropy: ")[1].split()[0]) - entropy) < 5e-3 * entropy, f"entropy {entropy}: {readout}")
    page.move(2, 2)
    drawn(page, query="0")
    page.click(f"{LINE}.querySelector('[data-token=\"7\"]')")
    page.move(2, 2)
    page.evaluate("document.activeElement.blur()")
    drawn(page, query="7")
    page.evaluate(f"{LINE}.querySelector('[tabindex=\"0\"]').focus()")
    drawn(page, query="7")
    page.key("ArrowLeft")
    drawn(page, query="6")
    page.key("Home")
    drawn(page, query="0")
    page.evaluate("document.activeElement.blur()")
    drawn(page, query="7")
    page.evaluate(f"{LINE}.querySelector('[tabindex=\"0\"]').focus()")
    page.key("c")
    page.evaluate("document.activeElement.blur()")
    drawn(page, query="0")
    count = page.evaluate(f"{LINE}.querySelectorAll('[tabindex=\"0\"]').length")
    check(count == 1, f"the words are {count} stops of the Tab key")


def distance(page):
    """What the page tells; None: nothing."""
    return page.evaluate("document.querySelector('.vector') && Number(document.querySelector('.vector').dataset.distance)")


def test_changes(server, page):
    """Changes change the vector by the distance that the engine tells, and the weights."""
    page.click(f"{LINE}.querySelector('[data-token=\"2\"]')")
    press(page, "Remove head 0 of blocks.1.attn")
    answered(page, "h1.0r")
    expected = server.json("/api/run", model="bert", image="t0", changes="h1.0r")["vector"]["distance"]
    check(distance(page) == expected > 0, f"distance {distance(page)}, should be {expected}")
    press(page, "Remove “cat” (token 2)")
    answered(page, "h1.0r-t2")
    wait(page, f"{LINE}.querySelector('[data-token=\"2\"]').classList.contains('unseen')")
    shown = values(page)
    check(shown[2] is None and abs(sum(v for v in shown if v is not None) - 1) < 1e-5, f"without token 2: {shown}")
    check("“cat” (token 2) removed" in page.evaluate("document.querySelector('.panel').innerText"), "the change's name")
    page.evaluate("document.querySelector('.branches').open = true")
    press(page, "blocks.0 MLP")
    answered(page, "h1.0r-t2-b1")
    check(distance(page) != expected, "removing a branch changes nothing")
    press(page, TEXTS[1])
    answered(page, "h1.0r-b1")  # another text has other tokens
    wait(page, f"{LINE}.dataset.shown === 't1'")
    press(page, "Undo all")
    answered(page, "")
    check(distance(page) is None, "the unchanged network has a distance")


def test_typed(server, page):
    text = "The cat ran."
    page.evaluate(f"""(field => {{ field.value = {json.dumps(text)}; field.focus(); }})(
        document.querySelector('.type-text textarea'))""")
    page.key("Enter")
    wait(page, f"{LINE}.dataset.shown === {json.dumps('text:' + text)}")
    check(words_of(page) == ["[CLS]", "the", "cat", "ran", ".", "[SEP]"], f"typed: {words_of(page)}")
    check(f"image={urllib.parse.quote_plus('text:' + text)}" in page.evaluate("location.hash"), "the address has no text")
    link = page.evaluate("""(link => { link.focus(); return link.getAttribute('href'); })(
        document.querySelector('.pages a[href^="/network"]'))""")
    check("image=text" in link, f"link to the network: {link}")


    page.evaluate("""(field => { field.value = "é".repeat(2046); field.focus(); })(
        document.querySelector('.type-text textarea'))""")
    page.key("Enter")
    problem = page.evaluate("document.querySelector('.type-text textarea').validationMessage")
    check("This text has 4,092 bytes" in problem, f"a long text: {problem}")
    check(page.evaluate(f"{LINE}.dataset.shown") == "text:" + text, "a text that is too long is shown")


def test_marked_words(page):
    """Vocabularies with a mark at the beginning of words, such as ALBERT's."""
    words = page.evaluate("""wordsOfText({pieces: [["[CLS]", 1], ["▁the", 0], ["▁cat", 0], ["s", 0], ["▁", 0], ["[SEP]", 1]]
        .map(([piece, special]) => ({piece, special: Boolean(special)}))})""")
    check([word["name"] for word in words] == ["[CLS]", "the", "cat", "s", "▁", "[SEP]"], f"names: {words}")
    check([word["joined"] for word in words] == [False, False, False, True, False, False], f"joined: {words}")


def test_state(server, browser, page):
    fragment = page.evaluate("location.hash")
    other = server.open(browser, "/explore", fragment)
    drawn(other)
    check(words_of(other) == words_of(page) and values(other) == values(page), f"{fragment} restores another state")
    check(not other.complaints(), f"restored page: {other.complaints()}")


def test_classifier(server, browser):
    """Class scores, their changes, relevance of the words; and the choice of what the network reads."""
    page = server.open(browser, "/explore", "#model=bert_classes&image=t0&method=chefer")
    drawn(page)
    top = {str(one["class"]): one["probability"] for one in server.json("/api/run", model="bert_classes", image="t0",
                                                                       changes="")["top"]}
    shown = dict(page.evaluate("""[...document.querySelectorAll('.answer li')].map(item =>
        [item.dataset.class, Number(item.querySelector('.bar-number').dataset.value)])"""))
    check(shown == top and len(top) == 3, f"classes {shown}, should be {top}")
    wait(page, "document.querySelector('.relevance-words').textContent.includes('Largest')")
    served = server.json("/api/relevance", model="bert_classes", image="t0", changes="", method="chefer", **{"class": -1})
    line = page.evaluate("[...document.querySelectorAll('.relevance .word')].map(word => Number(word.dataset.value))")
    check(same(line, served["values"]), f"relevance of the words: {line}")
    methods = page.evaluate("""[...document.querySelector('select[aria-label="Method"]').options].map(o => o.value)""")
    check("grad_cam" in methods and "occlusion" not in methods, f"methods: {methods}")
    check(not page.complaints(), f"classifier: {page.complaints()}")
    page.evaluate("""(select => { select.value = "vit_tiny_patch16_224"; select.dispatchEvent(new Event("change")); })(
        document.querySelector('select[aria-label="Checkpoint"]'))""")
    wait(page, "!document.querySelector('.drop').hidden && document.querySelector('.text-list').hidden")
    wait(page, f"{LINE}.dataset.shown === undefined")
    page.evaluate("""(select => { select.value = "bert"; select.dispatchEvent(new Event("change")); })(
        document.querySelector('select[aria-label="Checkpoint"]'))""")
    wait(page, f"{LINE}.dataset.shown === 't0'")
    two = server.open(browser, "/explore", "#model=bert&image=t0&model2=vit_tiny_patch16_224")
    wait(two, "document.querySelector('[data-side=\"1\"] .problem')?.textContent.includes('reads images, and this is a text')")
    drawn(two)
    check(two.evaluate("document.querySelector('[data-side=\"0\"] .problem').hidden"), "the first side has a problem")


def test_comparison(server, browser):
    """Two checkpoints side by side, whose difference shades the words in two colours; the weights as CSV."""
    page = server.open(browser, "/explore", "#model=bert&image=t0&layer=1&head=1&model2=bert_classes&minus2=other")
    wait(page, "document.querySelectorAll('.readout')[1]?.textContent.includes('Difference')")
    mine, others = (weights(server, model, "t0", 0)[1][1] for model in ("bert_classes", "bert"))
    shown = page.evaluate("""[...document.querySelectorAll('[data-side="1"] .words')[0].querySelectorAll('.word')]
        .map(word => [Number(word.dataset.value), word.classList.contains('against')])""")
    expected = [a - b for a, b in zip(mine, others)]
    check(same([value for value, _ in shown], expected), f"differences {shown}, should be {expected}")
    check([against for _, against in shown] == [value < 0 for value in expected], f"colours of differences: {shown}")
    text = page.evaluate("""new Promise(done => {
        const real = save;
        save = (name, type, kept) => { save = real; done(kept); };
        document.querySelector('[aria-label="Download weights as CSV"]').click();
    })""").split("\r\n")
    check(text[0] == "node,head,key,token,weight" and text[1].startswith("blocks.0.attn,mean,0,[CLS],"), f"CSV: {text[:2]}")
    check(not page.complaints(), f"comparison: {page.complaints()}")


def test_pages(server, browser):
    """The other pages take a text where it applies, and say why where it does not."""
    page = server.open(browser, "/network", "#model=bert&image=t1&with=entropy")
    wait(page, "Number(document.documentElement.dataset.times) > 0")
    wait(page, "document.querySelector('.network').textContent.includes('entropy')")
    check(page.evaluate("""document.querySelector('select[aria-label="of text"]').value""") == "t1", "the text is lost")
    check(page.evaluate("document.querySelector('.network').textContent.includes('text')"), "no box of the text")
    check(not page.complaints(), f"network: {page.complaints()}")
    page = server.open(browser, "/lessons", "#model=bert&image=t0&lesson=rank")
    wait(page, "document.querySelector('.lesson-figures').dataset.ready === 'rank'")
    check(page.evaluate("document.querySelectorAll('.lesson-figure').length") == 1, "rank collapse has no picture")
    check(page.evaluate("""document.querySelector('select[aria-label="Text"]').value""") == "t0", "the lesson's text")
    check("TEXTS --with collapse" in page.evaluate("document.body.innerText"), "the command of the lesson")
    check(not page.complaints(), f"lessons: {page.complaints()}")
    for path in ("/ablate", "/means"):
        page = server.open(browser, path, "#model=bert")
        wait(page, "[...document.querySelectorAll('.problem')].some(p => p.textContent.includes('reads texts'))")


def test_widths(server, browser):
    look(server, browser, "/explore", "#model=bert&image=t0", drawn, pictures, "text")
    look(server, browser, "/explore", "#model=bert_classes&image=t0&method=chefer&changes=h1.0r&at=0.5,0.3", drawn,
         pictures, "text-classes")


with Server(attscope, [ENCODER, CLASSIFIER, "vit_tiny_patch16_224", "--texts", FILE]) as running, Browser() as chromium:
    explore = running.open(chromium, "/explore")
    drawn(explore)
    test_words(running, explore)
    test_attention(running, explore)
    test_changes(running, explore)
    test_typed(running, explore)
    test_marked_words(explore)
    test_state(running, chromium, explore)
    check(not explore.complaints(), f"explore: {explore.complaints()}")
    test_classifier(running, chromium)
    test_comparison(running, chromium)
    test_pages(running, chromium)
    test_widths(running, chromium)
finish()
