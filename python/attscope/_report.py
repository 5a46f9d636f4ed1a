"""The report: one HTML page about runs."""

from __future__ import annotations

import html
import os
import tempfile
from collections.abc import Sequence
from ctypes import byref
from pathlib import Path
from typing import Any

from ._context import Context, Error, encode, texts, whole
from ._inputs import is_path
from ._library import lab


class Report:
    """A page about runs. A notebook shows it below the cell."""

    def __init__(self, page: str, height: int) -> None:
        self.html = page
        self.height = height

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to the file `path`, which needs no other file and no network connection."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" style="width: 100%; height: {self.height}px; border: 0" '
            'title="attscope report"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<attscope.Report of {len(self.html)} characters; save() writes it, and notebooks show it>"


def _folder(run: Any) -> Any:
    """The folder of a run: a path, a Training, or figures, of which a DataFrame has it in its attrs."""
    if is_path(run):
        return run
    folder = getattr(run, "folder", None) or getattr(run, "attrs", {}).get("folder")
    if folder:
        return folder
    if hasattr(run, "folder") or hasattr(run, "attrs"):
        raise Error("the figures are not recorded in a folder; call measure() with output")
    raise Error(f"a run is a {type(run).__name__}; expected a folder, a Training or figures of measure()")


def report(
    runs: Any, *, title: str | None = None, map_bytes: int | None = None, reference: Any = None, height: int = 800
) -> Report:
    """Makes the page of one or several runs, as `attscope report` does.

    runs: the folder of a training run or of a measurement, the folder of a sweep, a `Training`, what `measure()` returned
    if it recorded its figures, or a list of these.
    title: heading of the page.
    map_bytes: limit for the bytes of all images and attention maps on the page.
    reference: the run from whose trajectory the page shows the deviations of the others.
    height: of the page in a notebook, in pixels.
    """
    listed: Sequence[Any] = runs if isinstance(runs, (list, tuple)) else [runs]
    folders = [_folder(run) for run in listed]
    options = lab.att_report_options_defaults()
    options.title = encode("title", title)
    options.reference = None if reference is None else encode("reference", _folder(reference))
    if map_bytes is not None:
        options.map_bytes = whole("map_bytes", map_bytes, 0, 2**63 - 1)
    height = whole("height", height, 1)
    context = Context(threads=1)
    with tempfile.TemporaryDirectory(prefix="attscope-") as scratch:
        path = os.path.join(scratch, "report.html")
        try:
            with context.use():
                paths = texts("a run", folders)
                context.check(
                    lab.att_report_write(
                        context.pointer, paths, len(folders), byref(options), encode("the page", path), None
                    )
                )
        finally:
            context.destroy()
        return Report(Path(path).read_text(encoding="utf-8"), height)
