"""Pictures of maps of attention and relevance, as `attscope maps` draws them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _inputs, _progress, _texts
from . import _library as lib
from ._context import Error, brief, encode, texts, truth, whole
from ._library import core

if TYPE_CHECKING:
    from ._network import Network


def _listed(what: str, value: Any, count: int | None = None) -> bytes | None:
    """A text, or the items of a list with commas between them. count: of the numbers that a list must have."""
    if value is None or isinstance(value, str):
        return encode(what, value)
    items = value if isinstance(value, Sequence) else [value]
    if count is not None and len(items) != count:
        raise Error(f"{what} is {brief(value)}; expected {count} numbers")
    return encode(what, ",".join(str(item) for item in items))


def _options(
    show: Any, layers: Any, heads: Any, query: Any, at: Any, target: int | None, means: str, form: str, format: Any,
    colours: str, scale: Any, smooth: bool, opacity: float, zoom: int,
) -> Any:  # fmt: skip
    options = core.att_map_options_defaults()
    options.show, options.layers = _listed("show", show), _listed("layers", layers)
    options.heads, options.query = _listed("heads", heads), _listed("query", query, 2)
    options.at = _listed("at", at, 2)
    options.target = -1 if target is None else whole("target", target, 0)
    options.means, options.form = encode("means", means), encode("form", form)
    options.format, options.colours = _listed("format", format), encode("colours", colours)
    options.scale = _listed("scale", scale, 2)
    options.smooth, options.zoom = truth("smooth", smooth), whole("zoom", zoom, 1, 16)
    try:
        options.opacity = float(opacity)
    except (TypeError, ValueError):
        raise Error(f"opacity is {brief(opacity)}; expected a number from 0 to 1") from None
    return options


def _add(network: Network, handle: ctypes.c_void_p, files: ctypes.c_void_p, images: Any, means: str) -> None:
    """Adds texts, or images: paths as a data set, so that folders and archives are allowed; others one by one."""
    check, dataset = network._context.check, ctypes.c_void_p()
    if _texts.are_read(handle):
        with _texts.tokens(network, handle, images) as ids:
            check(core.att_map_files_add_texts(files, byref(ids)))
        return
    singles = _inputs.split(images)
    if not singles:
        raise Error("no image is given; expected at least one")
    if not all(_inputs.is_path(single) for single in singles):
        for single in singles:
            pixels = network._pixels(handle, single)
            name = encode("an image", single if _inputs.is_path(single) else "image")
            check(core.att_map_files_add(files, name, -1, pixels.ctypes.data))
        return
    opening = core.att_dataset_options_defaults()
    opening.unlabelled = means != "class"
    paths = texts("an image", singles)
    try:
        check(core.att_network_open_dataset(handle, paths, len(singles), byref(opening), byref(dataset)))
        check(core.att_map_files_add_dataset(files, dataset))
    finally:
        core.att_dataset_close(byref(dataset))


def draw(
    network: Network, images: Any, folder: Any, progress: _progress.Wish, **how: Any
) -> dict[str, dict[str, np.ndarray]]:
    """As `Network.draw_maps()`."""
    found: dict[str, dict[str, np.ndarray]] = {}

    def keep(_user: Any, name: bytes, maps: Any, count: int) -> None:
        shapes = [(maps[i].map.height, maps[i].map.width) for i in range(count)]
        found[name.decode(errors="replace")] = {
            maps[i].name.decode(): np.ctypeslib.as_array(maps[i].map.values, shape).copy()
            for i, shape in enumerate(shapes)
        }

    options, path, files = _options(**how), encode("folder", folder), ctypes.c_void_p()
    if path is None:
        raise Error("folder is None; expected the path of a folder")
    with _progress.shown(progress) as shown, network._use() as handle:
        options.found, options.progress = lib.FoundFn(keep), network._context.progress(shown)
        check = network._context.check
        try:
            check(core.att_map_files_open(handle, byref(options), path, byref(files)))
            _add(network, handle, files, images, how["means"])
            check(core.att_map_files_finish(files))
        finally:
            core.att_map_files_close(byref(files))
    return found
