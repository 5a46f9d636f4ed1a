"""Features of the images of data sets, and linear classifiers on them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _inputs, _progress
from . import _library as lib
from ._context import Error, brief, encode, texts, truth, whole
from ._library import core

if TYPE_CHECKING:
    from ._network import Network


class Embedding(NamedTuple):
    """Features of the images of a data set, see `Network.embed()`."""

    features: np.ndarray
    """float32 [images, ...]"""
    labels: np.ndarray
    """int32 [images]: the class of each image; -1: unknown"""
    names: list[str]
    """The names of the images in the data set."""
    classes: list[str]
    """The names of the data set's classes, by number."""


class Probe(dict[str, Any]):
    """A linear classifier on features, and how well it classifies.

    "top1", "top5": in per cent; "images": that were classified; "c": the inverse of the regularisation; "objective";
    "iterations"; "converged"; "train_images"; "held_out_images": that chose `c`, 0 if it was given; "fits": a
    dictionary for each value of `c` that was tried, with "c", "top1" of the images that were held out, "iterations" and
    "converged".
    """

    weights: np.ndarray
    """float64 [classes, channels]"""
    biases: np.ndarray
    """float64 [classes]"""
    classes: np.ndarray
    """int32 [classes]: the numbers of the classes, which are those that occur in the training images."""


class Source:
    """What the methods below need to read a data set."""

    def __init__(
        self, network: Network, of: Any, batch_size: Any, workers: Any, skip_corrupt: Any, progress: Any
    ) -> None:
        self.network = network
        self.options = core.att_embed_options_defaults()
        self.options.output = encode("of", of)
        self.options.batch_size = whole("batch_size", batch_size, 1)
        self.options.workers = whole("workers", workers, 0)
        self.options.skip_corrupt = truth("skip_corrupt", skip_corrupt)
        self.options.progress = network._context.progress(progress)

    @contextmanager
    def dataset(self, what: str, data: Any, split: Any, unlabelled: bool) -> Iterator[ctypes.c_void_p]:
        paths = [data] if _inputs.is_path(data) else data
        if not isinstance(paths, (list, tuple)) or not paths or not all(map(_inputs.is_path, paths)):
            raise Error(f"{what} is {brief(data)}; expected the path of a data set, or a list of paths of images")
        opening, opened = core.att_dataset_options_defaults(), ctypes.c_void_p()
        opening.split, opening.unlabelled = encode("split", split), unlabelled
        check = self.network._context.check
        try:
            check(
                core.att_network_open_dataset(
                    self.network._handles.network, texts(what, paths), len(paths), byref(opening), byref(opened)
                )
            )
            yield opened
        finally:
            core.att_dataset_close(byref(opened))

    @contextmanager
    def found(self, dataset: ctypes.c_void_p) -> Iterator[Any]:
        """The features of all images, as the library has them."""
        embedding, context = lib.att_embedding(), self.network._context
        inner = self.network._inner(self.network._handles.network)
        try:
            context.check(core.att_network_embed(inner, dataset, byref(self.options), byref(embedding)))
            yield embedding
        finally:
            core.att_embedding_free(context.pointer, byref(embedding))


def _names(dataset: ctypes.c_void_p, embedding: Any) -> Iterator[str]:
    room = ctypes.create_string_buffer(8192)
    for i in range(embedding.count):
        name = core.att_dataset_short_name(dataset, embedding.indices[i], room, len(room))
        yield name.decode(errors="surrogateescape")


def embed(
    network: Network, data: Any, of: Any, split: Any, output: Any, batch_size: Any, workers: Any, skip_corrupt: Any,
    progress: _progress.Wish,
) -> Embedding:  # fmt: skip
    """As `Network.embed()`."""
    path = encode("output", output)
    with _progress.shown(progress) as shown, network._use():
        source = Source(network, of, batch_size, workers, skip_corrupt, shown)
        with source.dataset("data", data, split or "validation", True) as dataset, source.found(dataset) as found:
            if path is not None:
                network._context.check(core.att_embedding_write(network._context.pointer, byref(found), dataset, path))
            shape = (found.count, *found.shape.dims[: found.shape.rank])
            classes = range(core.att_dataset_class_count(dataset))
            return Embedding(
                np.ctypeslib.as_array(found.values, shape).copy(),
                np.ctypeslib.as_array(found.labels, (found.count,)).copy(),
                list(_names(dataset, found)),
                [core.att_dataset_class_name(dataset, c).decode(errors="replace") for c in classes],
            )


def _of_probe(made: Any, found: Any, train_images: int) -> Probe:
    fits = [
        {"c": fit.c, "top1": fit.top1, "iterations": fit.iterations, "converged": fit.converged}
        for fit in made.fits[: made.fit_count]
    ]
    probe = Probe(
        top1=found.top1, top5=found.top5, images=found.count, c=made.c, objective=made.objective,
        iterations=made.iterations, converged=made.converged, train_images=train_images,
        held_out_images=made.held_out_count, fits=fits,
    )  # fmt: skip
    probe.weights = np.ctypeslib.as_array(made.weights, (made.classes, made.channels)).copy()
    probe.biases = np.ctypeslib.as_array(made.biases, (made.classes,)).copy()
    probe.classes = np.ctypeslib.as_array(made.numbers, (made.classes,)).copy()
    return probe


def probe(
    network: Network, train: Any, val: Any, of: Any, c: float | None, held_out: float, max_iter: Any, seed: Any,
    split: Any, batch_size: Any, workers: Any, skip_corrupt: Any, progress: _progress.Wish,
) -> Probe:  # fmt: skip
    """As `Network.probe()`."""
    options, made, result = core.att_probe_options_defaults(), lib.att_probe(), lib.att_embedding_result()
    options.iterations = whole("max_iter", max_iter, 1)
    options.seed = whole("seed", seed, 0, 2**64 - 1)
    try:
        options.c, options.held_out = float(c or 0), float(held_out)
    except (TypeError, ValueError):
        raise Error(f"c is {brief(c)} and held_out {brief(held_out)}; expected numbers") from None
    with _progress.shown(progress) as shown, network._use():
        check, pointer = network._context.check, network._context.pointer
        source = Source(network, of, batch_size, workers, skip_corrupt, shown)
        options.progress = source.options.progress
        with (
            source.dataset("val", val, split or "validation", False) as tested,
            source.dataset("train", train, "train", False) as trained,
        ):
            check(core.att_embedding_check_sets(pointer, trained, tested))
            with source.found(trained) as to_train, source.found(tested) as to_test:
                try:
                    check(core.att_embedding_probe(pointer, byref(to_train), byref(options), byref(made)))
                    check(core.att_probe_classify(pointer, byref(made), byref(to_test), byref(result)))
                    return _of_probe(made, result, to_train.count)
                finally:
                    core.att_probe_free(pointer, byref(made))


