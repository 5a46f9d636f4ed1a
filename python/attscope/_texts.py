"""Texts as the tokens of a network."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _library as lib
from ._context import Error, brief, encode, whole
from ._library import core

if TYPE_CHECKING:
    import ctypes

    from ._network import Network


def are_read(network: ctypes.c_void_p) -> bool:
    """Whether the network's inputs are the tokens of texts."""
    return bool(core.att_network_most_tokens(network))


def listed(sentences: Any) -> Sequence[str]:
    """The texts of a list."""
    if not isinstance(sentences, Sequence) or not sentences or not all(isinstance(line, str) for line in sentences):
        raise Error(f"the texts are {brief(sentences)}; expected one text or a list of texts")
    return sentences


@contextmanager
def tokens(
    network: Network, handle: ctypes.c_void_p, sentences: Any, tokenizer: Any = None, max_length: int | None = None
) -> Iterator[Any]:
    """The tokens of one text or of a list of texts, as att_token_texts."""
    if isinstance(sentences, os.PathLike) or (isinstance(sentences, str) and os.path.isfile(sentences)):
        raise Error(
            f"{brief(sentences)} is a file, and texts are expected; give its lines, as of "
            "pathlib.Path(...).read_text().splitlines()"
        )
    try:
        coded = [line.encode() for line in listed([sentences] if isinstance(sentences, str) else sentences)]
    except UnicodeEncodeError as error:
        raise Error(f"a text cannot be written as UTF-8: {error}") from None
    given = (lib.att_encode_text * len(coded))(*[lib.att_encode_text(line, len(line)) for line in coded])
    most = 0 if max_length is None else whole("max_length", max_length, 1)
    tokenizer = network._tokenizer if tokenizer is None else tokenizer
    path = None if tokenizer is None else encode("tokenizer", os.fspath(tokenizer))
    ids = lib.att_token_texts()
    try:
        network._context.check(core.att_network_tokenize(handle, path, given, len(coded), most, None, byref(ids)))
        yield ids
    finally:
        core.att_token_texts_free(network._context.pointer, byref(ids))


def pieces(ids: Any, text: int) -> list[str]:
    """The pieces of a text's tokens."""
    one = ids.texts[text]
    return [core.att_tokenizer_piece(ids.tokenizer, one.tokens[i]).decode() for i in range(one.count)]


def sample(ids: Any, text: int, names: Sequence[str]) -> dict[str, np.ndarray]:
    """A text as the network's inputs, by their names."""
    one = ids.texts[text]
    rows = {"tokens": one.tokens, "types": one.types}
    return {
        name: np.ctypeslib.as_array(rows[name], (one.count,)).copy()[None]
        if name in rows
        else np.array([one.count], np.int32)
        for name in names
    }
