"""The figures of a measurement as columns."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ._context import truth
from ._library import core


class Figures(dict[str, Any]):
    """Figures of instruments: a dictionary of columns, which are numpy arrays of one length.

    Columns: `instrument`, `node` (such as "blocks.3.attn"), `statistic`, `unit`, `head` (NaN: all heads together),
    `mean` and `deviation` over images, `count` (images), `undefined` (images without a finite value), `bound` (largest
    possible mean; NaN: not known), `uniform` (mean under uniform attention; NaN: not known). With `samples`, also
    `samples` [rows, samples]: the values of the first images, NaN for instruments without single values.
    """

    images: int
    """number of measured images"""
    split: str
    """the split of the data set; "" for images in memory"""
    folder: str
    """the run's folder in which the figures were recorded; "": they were not"""

    def __str__(self) -> str:
        """A short table: the figures of all heads together, 40 at most, with their deviations between images."""
        most, rows = 40, [i for i, head in enumerate(self["head"]) if np.isnan(head)]
        names = [[str(self[column][i]) for column in ("instrument", "node", "statistic")] for i in rows[:most]]
        widths = [max(map(len, column)) for column in zip(*names)]
        lines = [
            "  ".join(f"{name:{width}}" for name, width in zip(row, widths))
            + f"  {self['mean'][i]:.4g}"
            + (f" ± {self['deviation'][i]:.2g}" if self["deviation"][i] >= 0 else "")
            + f" {self['unit'][i]}"
            for row, i in zip(names, rows)
        ]
        left = len(self["head"]) - len(lines)
        return "\n".join([*lines, *([f"... {left} more rows"] if left else [])])

    def frame(self) -> Any:
        """The columns as a pandas DataFrame, without `samples`; images, split and folder are in its `attrs`."""
        import pandas

        made = pandas.DataFrame({name: column for name, column in self.items() if column.ndim == 1})
        made.attrs.update(images=self.images, split=self.split, folder=self.folder)
        return made


def read(measure: ctypes.c_void_p, samples: int) -> Figures:
    """The figures of an att_measure that have samples."""
    count = ctypes.c_int()
    all_figures = core.att_measure_observed(measure, ctypes.byref(count))
    rows = [all_figures[i] for i in range(count.value)]

    def text(member: str) -> np.ndarray:
        return np.array([getattr(row, member).decode() for row in rows], dtype=object)

    def number(member: str, dtype: type = float) -> np.ndarray:
        return np.array([getattr(row, member) for row in rows], dtype=dtype)

    def known(member: str) -> np.ndarray:
        values = number(member)
        values[values == 0] = np.nan
        return values

    figures = Figures(
        instrument=text("instrument"),
        node=text("node"),
        statistic=text("statistic"),
        unit=text("unit"),
        head=np.where(number("head") < 0, np.nan, number("head")),
        mean=number("mean"),
        deviation=number("deviation"),
        count=number("count", np.int64),
        undefined=number("undefined", np.int64),
        bound=known("bound"),
        uniform=known("uniform"),
    )
    if samples:
        values = np.full((len(rows), samples), np.nan)
        for i, row in enumerate(rows):
            values[i, : row.sample_count] = row.samples[: row.sample_count] if row.samples else []
        figures["samples"] = values
    return figures


def check_wish(frame: Any) -> None:
    """Raises the errors of as_wanted() before figures are measured."""
    if frame is not None and truth("frame", frame):
        import pandas  # noqa: F401


def as_wanted(figures: Figures, frame: bool | None) -> Any:
    """A DataFrame if `frame` is true, or None and pandas is installed; else the columns."""
    if frame is None:
        try:
            import pandas  # noqa: F401
        except ImportError:
            return figures
    return figures.frame() if frame in (None, True) else figures
