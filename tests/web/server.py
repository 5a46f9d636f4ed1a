"""A running `attscope serve`, and pages of it in a browser."""

import json
import re
import subprocess
import time
import urllib.parse
import urllib.request


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
