"""What a network answers without parts of it: ablations of data sets, and the exploration of one image."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from ctypes import byref
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _inputs, _progress, _texts
from . import _library as lib
from ._context import Error, as_whole, brief, encode, texts, truth, whole
from ._library import core

if TYPE_CHECKING:
    from ._network import Network


class Ablation(dict[str, Any]):
    """An ablation of a data set, as `attscope ablate --json` writes it.

    "unchanged": accuracy (in per cent), loss and p_class of the unchanged network; "parts": a dictionary for each part
    in the order of the network, with "name", "rank" (0: without it the loss rises most), and "accuracy", "loss" and
    "p_class", each the "mean" change over images with the 95 % interval from "low" to "high"; "correlations": rank
    correlations ("rho") of the change of the loss with figures of instruments; "methods": how the numbers are computed
    and read. Of a network for texts without classes, "vector" and the "distance" of each part in place of the numbers
    of classes.
    """

    losses: np.ndarray
    """[1 + parts, images]: the loss of each image, or the distance of each text; row 0 is the unchanged network."""
    right: np.ndarray
    """bool [1 + parts, images]: whether the class of the image is the first by its logit."""
    images: list[str]
    """The names of the images."""
    classes: np.ndarray
    """[images]: the classes of the images."""

    @property
    def ranked(self) -> list[dict[str, Any]]:
        """The parts, that without which the loss rises most first."""
        return sorted(self["parts"], key=lambda part: part["rank"])

    def most_changed(self, part: int, count: int = 8) -> list[str]:
        """The names of the images whose loss changes most without the part with this number."""
        change = np.abs(self.losses[1 + part] - self.losses[0])
        return [self.images[i] for i in np.argsort(-change, kind="stable")[:count]]


def _options(
    heads: Any, branches: Any, tokens: Any, uniform: Any, greedy: Any, bound: Any
) -> Any:
    options = lib.lab.att_ablation_options_defaults()
    for name, value in (("heads", heads), ("branches", branches), ("tokens", tokens)):
        if value is not None:
            setattr(options, name, encode(name, ";".join(value) if isinstance(value, (list, tuple)) else value))
    options.uniform, options.greedy = truth("uniform", uniform), truth("greedy", greedy)
    try:
        options.bound = float(bound)
    except (TypeError, ValueError):
        raise Error(f"bound is {brief(bound)}; expected a number, in per cent") from None
    return options


def _row(pointer: Any, count: int) -> np.ndarray:
    return np.ctypeslib.as_array(pointer, (count,)).copy()


def _read(network: Network, found: ctypes.c_void_p) -> Ablation:
    """What the library found."""
    with network._json_writer() as writer:
        core.att_json_begin_object(writer)
        lib.lab.att_ablation_write_json(found, writer)
        core.att_json_end_object(writer)
        ablation = Ablation(network._finish_json(writer))
    images = ablation["texts"] if "texts" in ablation else ablation["images"]
    changes = range(-1, len(ablation["parts"]))
    ablation.losses = np.stack([_row(lib.lab.att_ablation_losses(found, c), images) for c in changes])
    ablation.right = np.stack([_row(lib.lab.att_ablation_right(found, c), images) for c in changes])
    seen = [lib.lab.att_ablation_image_at(found, i) for i in range(images)]
    ablation.images = [os.fsdecode(image.name) for image in seen]
    ablation.classes = np.array([image.label for image in seen])
    return ablation


def ablate(
    network: Network, data: Any, split: str | None, batch_size: int, workers: int, skip_corrupt: bool, npz: Any,
    progress: _progress.Wish, **parts: Any,
) -> Ablation:  # fmt: skip
    """As `Network.ablate()`."""
    with network._use() as handle:
        reads_texts = _texts.are_read(handle)
    if not reads_texts and not _inputs.is_path(data):
        raise Error(f"data is {brief(data)}; expected the path of a data set")
    if reads_texts and (isinstance(data, str) or not isinstance(data, Sequence)):
        raise Error(f"data is {brief(data)}; expected a list of texts, since the network reads texts")
    opening, options = core.att_dataset_options_defaults(), _options(**parts)
    opening.split, opening.unlabelled = encode("split", "validation" if split is None else split), True
    options.batch_size, options.workers = whole("batch_size", batch_size, 1), whole("workers", workers, 0)
    options.skip_corrupt = truth("skip_corrupt", skip_corrupt)
    dataset, found, path = ctypes.c_void_p(), ctypes.c_void_p(), encode("npz", npz)
    with _progress.shown(progress) as shown, network._use() as handle:
        options.progress = network._context.progress(shown)
        check = network._context.check
        try:
            if reads_texts:
                with _texts.tokens(network, handle, data) as ids:
                    check(lib.lab.att_ablate_texts(handle, byref(ids), byref(options), byref(found)))
            else:
                check(core.att_network_need_head(handle, b"its answers cannot be compared"))
                check(core.att_network_open_dataset(handle, texts("data", [data]), 1, byref(opening), byref(dataset)))
                if core.att_dataset_class_count(dataset):
                    check(core.att_network_compare_classes(handle, dataset, True))
                check(lib.lab.att_ablate(handle, dataset, byref(options), byref(found)))
            if path is not None:
                check(lib.lab.att_ablation_write_npz(found, path))
            return _read(network, found)
        finally:
            lib.lab.att_ablation_destroy(byref(found))
            core.att_dataset_close(byref(dataset))


class Exploration:
    """One image in a network of which parts are changed, as on the page Explore. `Network.explore()` makes it.

        network.explore("cat.jpg").remove(head=(3, 1)).remove(branch="blocks.5.add2").predict()

    Each method that changes something returns a new exploration; this one stays as it is.
    """

    def __init__(self, network: Network, image: Any, changes: tuple[tuple[Any, ...], ...] = ()) -> None:
        """Programs call `Network.explore()`."""
        self._network, self._image, self._changes = network, image, changes

    def remove(self, *, head: Any = None, branch: Any = None, token: Any = None) -> Exploration:
        """Removes one part.

        head: layer (its number or name) and head. Its output is 0.
        branch: a residual branch, by its number or the name of its addition, see `Network.branches`: x instead of
        x + f(x).
        token: its number. No query sees its key in any layer.
        """
        given = [(kind, value) for kind, value in (("head", head), ("branch", branch), ("token", token))
                 if value is not None]  # fmt: skip
        if len(given) != 1:
            raise Error(f"{len(given)} parts are given; expected one: head, branch or token")
        kind, value = given[0]
        return self._with((kind, *_pair(value), lib.HEAD_REMOVED) if kind == "head" else (kind, value))

    def uniform(self, *, head: Any) -> Exploration:
        """Makes a head uniform: every key that a query sees has the same weight. head: layer and head."""
        return self._with(("head", *_pair(head), lib.HEAD_UNIFORM))

    def predict(self, *, topk: int = 5) -> dict[str, Any]:
        """The prediction, as one of `Network.predict()`, with the outputs of the task, such as "logits"."""
        return self._network._predict_changed(self._image, self._apply, whole("topk", topk, 1))

    def attention(self, layer: int | str, head: int | None = None, query: int | None = None) -> np.ndarray:
        """As `Network.attention()`, with the changes. The map of a removed head is that of the head."""
        return self._network._attention_changed(self._image, self._apply, layer, head, query)

    def _with(self, change: tuple[Any, ...]) -> Exploration:
        with self._network._use() as network:
            explorer = self._network._explorer_of(network, self._image)
            try:  # refuses it now
                core.att_explorer_reset(explorer)
                self._apply(explorer)
                self._apply_one(explorer, change)
            finally:
                core.att_explorer_reset(explorer)
        return Exploration(self._network, self._image, (*self._changes, change))

    def _apply(self, explorer: ctypes.c_void_p) -> None:
        for change in self._changes:
            self._apply_one(explorer, change)

    def _apply_one(self, explorer: ctypes.c_void_p, change: tuple[Any, ...]) -> None:
        check = self._network._context.check
        if change[0] == "head":
            layer = self._network._layer_number(explorer, change[1])
            check(core.att_explorer_change_head(explorer, layer, change[2], change[3]))
        elif change[0] == "branch":
            check(core.att_explorer_remove_branch(explorer, self._branch_number(explorer, change[1]), True))
        else:
            check(core.att_explorer_remove_token(explorer, _number("token", change[1]), True))

    def _branch_number(self, explorer: ctypes.c_void_p, branch: int | str) -> int:
        if not isinstance(branch, str):
            return _number("branch", branch)
        names = self._network._branch_names(explorer)
        if branch not in names:
            raise Error(f'the network has no residual branch "{branch}"; it has {", ".join(names)}', "ERR_NOT_FOUND")
        return names.index(branch)


def _number(what: str, value: Any) -> int:
    number = as_whole(value)
    if number is None or abs(number) >= 2**31:
        raise Error(f"{what} is {brief(value)}; expected a whole number")
    return number


def _pair(head: Any) -> tuple[Any, int]:
    if not isinstance(head, (tuple, list)) or len(head) != 2:
        raise Error(f"head is {brief(head)}; expected a pair: the layer and the head")
    return head[0], _number("head", head[1])
