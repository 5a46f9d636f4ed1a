"""How a network that gives each pixel a class sees a photograph: in windows, at several scales, mirrored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _library as lib
from ._context import Error, as_whole, brief, truth, whole

Sides = int | tuple[int, int]


def options(
    img_scale: tuple[int, int] | None,
    stride: Sides | None,
    scales: Sequence[float] | None,
    flips: bool,
) -> Any:
    """The arguments as the library takes them, which checks them against the network; None: none was given."""
    made = lib.att_pass_options(flips=truth("flips", flips))
    if img_scale is not None:
        made.longer, made.shorter = _two("img_scale", img_scale)
    if stride is not None:
        made.stride[:] = [whole("stride", stride, 1)] * 2 if as_whole(stride) is not None else _two("stride", stride)
    if scales is not None:
        factors = _factors(scales)
        made.scale_count = len(factors)
        made.scales[: len(factors)] = factors
    return made if img_scale is not None or stride is not None or scales is not None or flips else None


def _two(what: str, values: Any) -> list[int]:
    if not isinstance(values, (list, tuple)) or len(values) != 2:
        raise Error(f"{what} is {brief(values)}; expected two whole numbers")
    return [whole(f"a number of {what}", value, 1) for value in values]


def _factors(scales: Any) -> list[float]:
    try:
        found = [] if isinstance(scales, (str, bytes)) else [float(scale) for scale in scales]
    except (TypeError, ValueError):
        found = []
    if not 0 < len(found) <= lib.MOST_SCALES:
        raise Error(f"scales is {brief(scales)}; expected 1 to {lib.MOST_SCALES} numbers")
    return found
