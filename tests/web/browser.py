"""A headless Chromium, driven over the pipes of its DevTools protocol; Python's standard library only."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """Returns the path of the browser, None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """`with Browser() as browser: page = browser.open(path, ...)`. Commands that take too long raise TimeoutError."""

    def __init__(self, seconds=60):
        self.seconds = seconds
        self.profile = tempfile.mkdtemp(prefix="attscope-browser-")
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()

        def place():  # the browser reads file descriptor 3 and writes 4
            read, write = os.dup(to_browser), os.dup(from_browser)
            os.dup2(read, 3)
            os.dup2(write, 4)

        # --no-sandbox: as root, the browser refuses to run with its sandbox; the page is our own.
        command = [
            find(),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--no-first-run",
            "--force-color-profile=srgb",
            "--remote-debugging-pipe",
            "--user-data-dir=" + self.profile,
            "about:blank",
        ]
        self.process = subprocess.Popen(
            command,
            preexec_fn=place,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.events = b"", 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.into], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            got = os.read(self.into, 1 << 20)
            if not got:
                raise RuntimeError("the browser has ended")
            self.buffer += got
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data) :]
        deadline = time.monotonic() + self.seconds
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def open(self, path, width=1440, height=900, dark=False, scale=1):
        """Opens a tab with the file `path`, or with a URL, and waits until it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        page.resize(width, height, scale)
        page.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        for domain in ("Runtime", "Log", "Network", "Page"):
            page.call(domain + ".enable")
        page.call(
            "Page.addScriptToEvaluateOnNewDocument",
            source="window.errors = []; addEventListener('error', e => errors.push(e.message))",
        )
        page.call("Page.navigate", url=path if "://" in path else "file://" + os.path.abspath(path))
        deadline = time.monotonic() + self.seconds
        while page.evaluate("document.readyState") != "complete":
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} does not load")
            time.sleep(0.05)
        page.wait_for_layout()
        return page


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def resize(self, width, height, scale=1):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    def evaluate(self, expression):
        """Returns the value of a JavaScript expression, which must be representable in JSON."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def wait_for_layout(self):
        """Waits until layout and its observers are done."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def complaints(self):
        """Returns errors and warnings in the console, exceptions, and errors that only the page's own handler
        received."""
        found = [f"error event: {message}" for message in self.evaluate("window.errors")]
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            method, parameters = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(str([a.get("value") for a in parameters["args"]]))
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
        return found

    def requests(self):
        """Returns the URLs that the page requested."""
        return [
            event["params"]["request"]["url"]
            for event in self.browser.events
            if event.get("sessionId") == self.session and event["method"] == "Network.requestWillBeSent"
        ]

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, expression):
        """Clicks on the element that the JavaScript expression returns."""
        x, y = self.evaluate(f"""(node => {{
            node.scrollIntoView({{block: "center", behavior: "instant"}});
            const {{left, top, width, height}} = node.getBoundingClientRect();
            return [left + width / 2, top + height / 2];
        }})({expression})""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def touch(self, kind, *places):
        """kind: touchStart, touchMove or touchEnd. places: x and y of each finger that touches the screen then."""
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(zip(places[::2], places[1::2]))]
        self.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)
        self.wait_for_layout()

    def tap(self, x, y):
        self.touch("touchStart", x, y)
        self.touch("touchEnd")

    def screenshot(self, path, whole=False, clip=None):
        """Saves a PNG. whole: of the whole page; clip: of the part {x, y, width, height}."""
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"]}
        parameters = {"clip": {**clip, "scale": 1}, "captureBeyondViewport": True} if clip else {}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png", **parameters)["data"]))
