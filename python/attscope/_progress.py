"""A line on the terminal, or below the cell of a notebook, that shows how far a long call has come."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Union

from ._context import Error, Progress, ProgressCallback, brief

Wish = Union[ProgressCallback, bool, None]
"""What a call does with its progress: a function that is called after every batch; True: a line on the terminal or
below the cell; False: nothing; None: a line if standard error is a terminal, or in a notebook."""

_SILENCE = 0.1  # seconds between two lines


def _is_notebook() -> bool:
    return type(sys.stdout).__module__.startswith("ipykernel.")


def _is_terminal() -> bool:
    return bool(getattr(sys.stderr, "isatty", lambda: False)())


def text(p: Progress) -> str:
    """ "measure  96/1000  61 images/s  0:15 left" """
    stage = f"{p.stage} {p.epoch + 1}/{p.epochs}" if p.epochs else p.stage
    parts = [stage, f"{p.done}/{p.total}" if p.total else f"{p.batch}/{p.batches}"]
    if math.isfinite(p.loss):
        parts.append(f"loss {p.loss:.4f}")
    if math.isfinite(p.images_per_second):
        parts.append(f"{p.images_per_second:.{0 if p.images_per_second >= 10 else 1}f} images/s")
    if math.isfinite(p.seconds_left):
        minutes, seconds = divmod(round(p.seconds_left), 60)
        parts.append(f"{minutes}:{seconds:02} left")
    return "  ".join(parts)


class _Line:
    def __init__(self) -> None:
        self.stream: Any = sys.stdout if _is_notebook() else sys.stderr
        self.length, self.last = 0, -math.inf

    def __call__(self, p: Progress) -> None:
        now = time.monotonic()
        if now - self.last < _SILENCE and p.batch != p.batches:
            return
        self.last = now
        self.write(text(p)[:79])

    def write(self, shown: str) -> None:
        self.stream.write("\r" + shown.ljust(self.length) + ("" if shown else "\r"))
        self.stream.flush()
        self.length = len(shown)

    def clear(self) -> None:
        if self.length:
            self.write("")


def check(wish: Any) -> None:
    """Raises the error of shown() before a call begins."""
    if wish is not None and not isinstance(wish, bool) and not callable(wish):
        raise Error(f"progress is {brief(wish)}; expected a function, True or False")


@contextmanager
def shown(wish: Wish) -> Iterator[ProgressCallback | None]:
    """The function that a call hands its progress to. A line that it writes is removed at the end."""
    check(wish)
    if callable(wish):
        yield wish
        return
    if wish is False or (wish is None and not (_is_terminal() or _is_notebook())):
        yield None
        return
    line = _Line()
    try:
        yield line
    finally:
        line.clear()
