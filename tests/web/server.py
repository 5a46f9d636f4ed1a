"""A running `attscope serve`, and pages of it in a browser."""

import base64
import json
import os
import re
import subprocess
import time
import urllib.parse
import urllib.request


from checks import check

SIZES = (("desktop", 1440, False), ("dark", 1440, True), ("phone", 390, False), ("phone-dark", 390, True))


class Server:
    """`with Server(attscope, operands) as server: page = server.open(browser, "/explore", "#...")`."""

    def __init__(self, attscope, operands):
        self.process = subprocess.Popen(
            [attscope, "serve", *operands], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        line = self.process.stdout.readline()
        found = re.match(r"(http://127\.0\.0\.1:\d+)/\?token=([0-9a-f]+)$", line.strip())
        if not found:
            self.process.kill()
            raise RuntimeError(f"attscope serve printed {line!r}")
        self.base, self.token = found.groups()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()

    def get(self, path, **query):
        """Returns the answer of a route as bytes."""
        request = urllib.request.Request(
            f"{self.base}{path}?{urllib.parse.urlencode(query)}", headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def json(self, path, **query):
        return json.loads(self.get(path, **query))

    def open(self, browser, path, fragment="", query="", **options):
        """Opens a page and waits until its script says that it is ready."""
        page = browser.open(f"{self.base}{path}?{query}&token={self.token}{fragment}", **options)
        wait(page, "document.documentElement.dataset.ready === 'true'")
        return page


def wait(page, expression, seconds=30):
    """Waits until a JavaScript expression is true."""
    deadline = time.monotonic() + seconds
    while not page.evaluate(expression):
        if time.monotonic() > deadline:
            raise TimeoutError(f"never true: {expression}; {page.complaints()}; {page.evaluate('location.href')}")
        time.sleep(0.02)


def look(server, browser, path, fragment, ready, pictures=None, name="page"):
    """Checks that a page fits into windows of several widths. ready(page) waits for its contents. pictures: a folder for
    screenshots; None: none."""
    for size, width, dark in SIZES:
        page = server.open(browser, path, fragment, width=width, dark=dark)
        ready(page)
        page.wait_for_layout()
        wide = page.evaluate("document.documentElement.scrollWidth")
        check(wide <= width, f"{name}, {size}: the page is {wide} pixels wide")
        if pictures:
            page.resize(width, page.evaluate("Math.min(document.documentElement.scrollHeight, 2600)"))
            page.wait_for_layout()
            shot = page.call("Page.captureScreenshot", format="png")
            with open(os.path.join(pictures, f"{name}-{size}.png"), "wb") as file:
                file.write(base64.b64decode(shot["data"]))
