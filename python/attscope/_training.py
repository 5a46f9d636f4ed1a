"""Training runs."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Sequence
from ctypes import byref
from typing import Any

import numpy as np

from . import _library as lib
from . import _inputs, _open, _progress, _report
from ._context import Context, Error, ProgressCallback, brief, encode, whole
from ._library import lab
from ._network import Network


class Training:
    """A finished training and its folder."""

    folder: str
    """the folder of the run: checkpoints, args.yaml, records"""
    epochs: int
    """finished epochs, with those before a resume"""
    updates: int
    train_loss: float
    """mean loss of the last epoch, or with eval_every of the updates before the last evaluation; NaN: none"""
    best_metric: float
    """NaN: nothing was evaluated"""
    best_epoch: int
    """from 0; -1: none"""
    best_update: int
    """updates done at the best evaluation; -1: none"""
    history: dict[str, np.ndarray]
    """figures of the epochs of this call, or with eval_every of its evaluations, by name: "epoch", "update",
    "train_loss", "lr", "eval_top1", ..."""

    def __init__(self, folder: str, result: lib.att_train_result, epochs: list[dict[str, float]]) -> None:
        self.folder = folder
        self.epochs, self.updates = result.epochs, result.updates
        self.train_loss, self.best_metric = result.train_loss, result.best_metric
        self.best_epoch, self.best_update = result.best_epoch, result.best_update
        names = dict.fromkeys(name for epoch in epochs for name in epoch)
        self.history = {name: np.array([epoch.get(name, math.nan) for epoch in epochs]) for name in names}

    def open(self, **options: Any) -> Network:
        """Opens the best weights of the training. options: as in `attscope.open()`."""
        return _open.open(self.folder, **options)

    def report(self, **options: Any) -> _report.Report:
        """The page of this training. options: as in `attscope.report()`."""
        return _report.report(self, **options)

    def __repr__(self) -> str:
        return f"<attscope.Training {self.folder}, {self.epochs} epochs, best metric {self.best_metric:.4g}>"


Callback = Callable[[dict[str, Any]], Any]


def train(
    data_dir: Any = None,
    *,
    config: Any = None,
    callback: Callback | None = None,
    progress: _progress.Wish = None,
    **options: Any,
) -> Training:
    """Trains a network, as `attscope train` does, and records the run in a folder.

    data_dir: the data set: class folders, archives, shards, IDX or CIFAR files.
    config: a YAML file of options, such as the args.yaml of a run.
    callback: called with each record of the run, a dictionary: "kind" is "begin", "step" (after every log_interval-th
    update; log_interval=1: after each), "measure", "epoch" (also after an evaluation within an epoch), "end", "warning"
    or "alert"; "epoch", "update" and "seconds" since the beginning; then the values of the record, such as
    "loss", "lr" and "eval_top1"; of "measure" a number for each figure of all heads together, such as
    "entropy/blocks.3.attn/mean". An exception in it ends the run.
    progress: as in `Network.measure()`; a run that is stopped can be resumed.
    options: the options of timm's train.py and of `attscope train`, with underscores: model="deit_tiny_patch16_224",
    img_size=64, epochs=10, opt="adamw", lr=1e-3, output="output", experiment="first", resume="auto", ... None: not
    given. Several numbers are a list or a tuple.

    Ctrl-C writes a checkpoint, with which `resume` continues, and raises KeyboardInterrupt.
    """
    if data_dir is not None:
        if not _inputs.is_path(data_dir):
            raise Error(f"data_dir is {brief(data_dir)}; expected a path")
        options["data_dir"] = data_dir
    if callback is not None and not callable(callback):
        raise Error(f"callback is {brief(callback)}; expected a function")
    _progress.check(progress)
    context = Context(_threads(options.get("threads")))
    try:
        with _progress.shown(progress) as shown, context.use():
            return _run(context, config, callback, shown, options)
    finally:
        context.destroy()


def _threads(given: Any) -> int:
    """The option may be a text, as in an args.yaml."""
    if given is None:
        return 0
    return whole("threads", int(given) if isinstance(given, str) and given.isdecimal() else given, 0)


def _run(
    context: Context,
    config: Any,
    callback: Callback | None,
    progress: ProgressCallback | None,
    options: dict[str, Any],
) -> Training:
    flags, yaml, training = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    try:
        context.check(lab.att_recipe_flags(context.pointer, byref(flags)))
        recipe = ctypes.create_string_buffer(lab.att_flags_size(flags))
        kept = _fill(context, flags, yaml, config, options, recipe)
        context.check(lab.att_training_open(context.pointer, recipe, byref(training)))
        epochs: list[dict[str, float]] = []
        sink = lib.att_sink(emit=_collector(context, epochs, callback))
        observer = lib.att_training_observer(ctypes.pointer(sink), context.progress(progress))
        result = lib.att_train_result()
        context.check(lab.att_training_run(training, byref(observer), byref(result)))
        del kept
        return Training(os.fsdecode(lab.att_training_folder(training).contents.folder), result, epochs)
    finally:
        lab.att_training_close(byref(training))
        lab.att_yaml_destroy(byref(yaml))
        lab.att_flags_destroy(byref(flags))


def _fill(
    context: Context, flags: Any, yaml: Any, config: Any, options: dict[str, Any], recipe: Any
) -> list[bytes | None]:
    """Stores the settings in the recipe. It points into the texts that are returned, and into the YAML file."""
    lab.att_flags_default(flags, recipe)
    if config is not None:
        context.check(lab.att_recipe_read(context.pointer, encode("config", config), recipe, byref(yaml)))
    kept = []
    for name, value in options.items():
        if value is None:
            continue
        text = encode(name, _text(name, value))
        kept.append(text)
        context.check(lab.att_flags_set(flags, encode("the name of an option", name), text, recipe))
    return kept


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _text(name: str, value: Any) -> str:
    """The value of an option as in an args.yaml."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if _inputs.is_path(value):
        return os.fsdecode(value)
    plain = value.tolist() if isinstance(value, np.ndarray) else value
    numbers = [plain] if _is_number(plain) else plain
    if not isinstance(numbers, Sequence) or not numbers or not all(map(_is_number, numbers)):
        raise Error(f"{name} is {brief(value)}; expected a number, a text, True or False, or a list of numbers")
    return " ".join(repr(number.item() if isinstance(number, np.number) else number) for number in numbers)


def _record(event: Any) -> dict[str, Any]:
    """An event as a callback receives it."""
    fields = [event.fields[i] for i in range(event.field_count)]
    figures = [event.measurements[i] for i in range(event.measurement_count)]
    return {
        "kind": lib.EVENTS[event.kind],
        "epoch": event.epoch,
        "update": event.step,
        "seconds": event.seconds,
        **{f.name.decode(): f.number if f.text is None else f.text.decode(errors="replace") for f in fields},
        **{
            "/".join(part.decode() for part in (m.instrument, m.node, m.statistic) if part): m.mean
            for m in figures
            if m.head < 0
        },
    }


def _collector(context: Context, epochs: list[dict[str, float]], callback: Callback | None) -> Any:
    """A receiver of events that keeps the figures of each epoch or evaluation, and calls the user's function."""

    def emit(_user: Any, pointer: Any) -> int:
        event = pointer.contents
        if event.kind == lib.EVENT_EPOCH:
            fields = [event.fields[i] for i in range(event.field_count)]
            numbers = {field.name.decode(): field.number for field in fields if field.text is None}
            epochs.append({"epoch": event.epoch, "update": event.step, **numbers})
        if callback is not None and context.requests.error is None:
            try:
                callback(_record(event))
            except BaseException as error:  # passed on to the caller of the library by check()
                context.requests.error = error
        return lib.ERR_STOPPED if context.requests.error is not None else 0

    return lib.EmitFn(emit)
