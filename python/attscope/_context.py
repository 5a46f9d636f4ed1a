"""The context of a network or of a call: threads, messages, the log, and Ctrl-C."""

from __future__ import annotations

import atexit
import ctypes
import errno
import logging
import math
import operator
import os
import re
import signal
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _library as lib
from ._library import core

logger = logging.getLogger("attscope")


class Error(Exception):
    """A failure of the library. The text is its sentence: what failed, where, and what was expected.

    status: the name of the library's status code, such as "ERR_NOT_FOUND".
    """

    def __init__(self, message: str, status: str = "ERR_ARGUMENT") -> None:
        super().__init__(message)
        self.status = status


class MissingFile(Error, FileNotFoundError):
    """A file or folder that does not exist."""


# What the library says of paths; of names, which are also ERR_NOT_FOUND, it says something else.
_MISSING = (
    os.strerror(errno.ENOENT), " does not exist", "there is no such file or folder", "is neither a file nor a folder",
)  # fmt: skip


def failure(message: str, status: str) -> Error:
    """The error for a failed call of the library."""
    missing = status == "ERR_NOT_FOUND" and any(part in message for part in _MISSING)
    return MissingFile(message, status) if missing else Error(message, status)


@dataclass(frozen=True)
class Progress:
    """How far a long call has come. Numbers that are not known are NaN."""

    stage: str
    """ "train", "evaluate", "measure", "maps", "embed", "probe" """
    epoch: int = 0
    """from 0; 0 outside training"""
    epochs: int = 0
    batch: int = 0
    """finished batches of this stage"""
    batches: int = 0
    images_per_second: float = math.nan
    seconds_left: float = math.nan
    loss: float = math.nan
    lr: float = math.nan
    update: int = 0
    """updates of the training whose batches are finished; 0 outside training"""
    updates: int = 0
    """updates of the whole training"""
    done: int = 0
    """finished samples of this stage, if they are counted"""
    total: int = 0


ProgressCallback = Callable[[Progress], Any]
"""Called after every batch, on the thread that made the call. `False` (also numpy's) as result stops the call with an
`Error`."""


# A flag of the command in a message of the library ("--batch-size N"), but not in a whole command ("attscope convert
# --use-ema") and not in a quoted text of the user. Some messages add the name of the C member: "(batch_size)".
_FLAG = re.compile(
    r"(?P<command>(?:attscope [a-z]+|srun) --[a-z0-9-]+)"
    r"|(?<![\w/.\"-])--(?P<name>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)"
    r"(?P<member> \([a-z0-9_]+\)|, [a-z0-9_]+(?=\)))?(?P<value> (?=[A-Z]{2}))?"
)


def with_python_names(message: str) -> str:
    """The message with the names that options have in Python: "batch_size=N" for "--batch-size N"."""

    def name(found: re.Match[str]) -> str:
        if found["command"]:
            return found["command"]
        own, member = found["name"].replace("-", "_"), found["member"] or ""
        return own + ("" if member.strip(" (),") == own else member) + ("=" if found["value"] else "")

    return _FLAG.sub(name, message)


class _Requests:
    """What the callbacks of a context share. It refers to nothing, so that a context is freed without a cycle."""

    def __init__(self) -> None:
        self.stop = False
        self.error: BaseException | None = None


def _make_log() -> Any:
    def log(_user: Any, level: int, line: bytes) -> None:
        text = with_python_names(line.decode(errors="replace"))
        logger.log(logging.WARNING if level == lib.LOG_WARNING else logging.INFO, "%s", text)

    return lib.LogFn(log)


_log = _make_log()


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2)


def _python_handlers() -> dict[int, Callable[[int, Any], Any]]:
    """The handlers of signals that are Python functions."""
    found = {number: signal.getsignal(number) for number in _SIGNALS}
    return {number: handler for number, handler in found.items() if callable(handler)}


_contexts: weakref.WeakSet[Context] = weakref.WeakSet()
_ended = threading.Event()  # the program ends


@atexit.register
def _end() -> None:
    """Ends the calls of daemon threads: the end of the process destroys what the library's kernels use. Contexts stay
    locked, so that no other call begins."""
    _ended.set()
    for context in list(_contexts):
        context.lock_for_ever()


class Context:
    """A context of the library. It belongs to one thread at a time: `use()` makes others wait.

    After `os.fork()` the threads of the context exist only in the parent process, so that a call in the child would
    wait for ever: every use checks that the process is still the one that made the context.
    """

    def __init__(self, threads: int = 0) -> None:
        self.requests = requests = _Requests()
        self._stop = lib.StopFn(lambda _user: requests.stop or _ended.is_set())
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._owner = 0
        self.pointer = ctypes.c_void_p()
        settings = core.att_settings_defaults()
        settings.threads = whole("threads", threads, 0)
        settings.log = _log
        settings.stop = self._stop
        status = core.att_context_create(byref(settings), byref(self.pointer))
        if status:
            raise Error(f"a context with {threads} threads could not be created", lib.status_name(status))
        _contexts.add(self)

    def lock_for_ever(self) -> None:
        """Waits for the call of another thread, which stops."""
        if not self.is_inherited and self._owner != threading.get_ident():
            self._lock.acquire(timeout=10)

    @property
    def is_inherited(self) -> bool:
        """Whether another process made the context, and this one is a fork of it."""
        return self._pid != os.getpid()

    @contextmanager
    def use(self) -> Iterator[None]:
        """Reserves the context for the calling thread, and lets Ctrl-C stop the library's calls."""
        if self.is_inherited:
            raise Error(
                "this object was made before os.fork(), and its threads exist in the parent process only; open it in "
                "the child process, or start processes by multiprocessing's method spawn",
                "ERR_UNSUPPORTED",
            )
        if self._owner == threading.get_ident():
            raise Error("a callback called the object whose call is still running")
        try:
            with self._lock:
                self._owner = threading.get_ident()
                try:
                    with self._interruptible():
                        yield
                finally:
                    self._owner = 0
        except Error:
            if _ended.is_set():
                threading.Event().wait()  # a daemon thread, whose traceback nobody would understand
            raise

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Lets Ctrl-C stop the library's call, and raises KeyboardInterrupt when that has ended.

        Python runs the handlers of signals within the callback that asks whether to stop, where an exception would be
        lost. So the exceptions of other handlers (SIGTERM, SIGALRM) stop the call and are raised after it, too. Python
        runs handlers on the main thread only: a call on another thread is not stopped.
        """
        requests = self.requests
        requests.stop, requests.error = False, None
        former = _python_handlers() if threading.current_thread() is threading.main_thread() else {}
        interrupted: list[Any] = []

        def interrupt(_number: int, frame: Any) -> None:
            requests.stop = True
            interrupted.append(frame)

        def relay(number: int, frame: Any) -> None:
            try:
                former[number](number, frame)
            except BaseException as error:
                requests.error = error
                requests.stop = True

        for number in former:
            signal.signal(number, interrupt if number == signal.SIGINT else relay)
        failure: Error | None = None
        try:
            yield
        except Error as error:
            if not interrupted:
                raise
            failure = error
        finally:
            requests.stop = False
            for number, handler in former.items():
                signal.signal(number, handler)
        if interrupted:
            former[signal.SIGINT](signal.SIGINT, interrupted[0])
        if failure is not None:  # the program's own handler does not raise
            raise failure
        error, requests.error = requests.error, None
        if error is not None:  # of a handler after the last call of the library
            raise error

    def progress(self, callback: ProgressCallback | None) -> Any:
        """A progress function for the library. The caller keeps it until the call returns."""
        requests = self.requests

        def report(_user: Any, pointer: Any) -> bool:
            p = pointer.contents
            try:
                if callback is not None and not requests.stop:
                    shown = Progress(
                        p.stage.decode(), p.epoch, p.epochs, p.batch, p.batches, p.images_per_second, p.seconds_left,
                        p.loss, p.lr, p.update, p.updates, p.done, p.total,
                    )  # fmt: skip
                    requests.stop = is_stop(callback(shown)) or requests.stop
            except BaseException as error:  # passed on to the caller of the library by check()
                requests.error = error
                requests.stop = True
            return not requests.stop

        return lib.ProgressFn(report)

    def check(self, status: int) -> None:
        """Raises an Error unless the status is ATT_OK, or the exception that a callback raised."""
        error, self.requests.error = self.requests.error, None
        if error is not None:
            raise error
        if status:
            message = with_python_names(core.att_context_message(self.pointer).decode(errors="replace"))
            raise failure(message or lib.status_name(status), lib.status_name(status))

    @property
    def can_be_freed(self) -> bool:
        """False in a forked child, whose parent frees the context, and while a call runs in another thread, which is so
        at the end of a program with daemon threads."""
        return not self.is_inherited and (self._owner in (0, threading.get_ident()))

    def destroy(self) -> None:
        """Frees the context, if it can be freed."""
        if self.can_be_freed:
            core.att_context_destroy(byref(self.pointer))


# --- arguments of users -----------------------------------------------------------------------------------------------


def brief(value: Any) -> str:
    """The value as messages show it: on one line, and not the whole of a large one."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def as_whole(number: Any) -> int | None:
    """The number as int; None for what is no whole number, such as 2.5 or True."""
    if isinstance(number, (bool, np.bool_)):
        return None
    is_whole = isinstance(number, (float, np.floating)) and float(number).is_integer()
    try:
        return operator.index(int(number) if is_whole else number)
    except TypeError:
        return None


def whole(what: str, number: Any, least: int, most: int = 2**31 - 1) -> int:
    """A whole number for the library. ctypes would cut off the high bits of one that is too large."""
    found = as_whole(number)
    if found is None or not least <= found <= most:
        raise Error(f"{what} is {brief(number)}; expected a whole number from {least} to {most}")
    return found


def truth(what: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise Error(f"{what} is {brief(value)}; expected True or False")
    return bool(value)


def is_stop(result: Any) -> bool:
    """Whether the result of a progress function is False, also that of numpy."""
    return isinstance(result, (bool, np.bool_)) and not result


def encode(what: str, text: Any) -> bytes | None:
    """A text or path for the library; None stays None."""
    if text is None:
        return None
    try:
        encoded = os.fsencode(text)
    except TypeError:
        raise Error(f"{what} is {brief(text)}; expected a text or a path") from None
    if b"\0" in encoded:
        raise Error(f"{what}: {text!r} contains a zero byte")
    return encoded


def texts(what: str, values: Sequence[Any]) -> Any:
    """An array of texts or paths."""
    return (ctypes.c_char_p * len(values))(*[encode(what, value) for value in values])
