"""The explorer of a network, below the cell of a notebook."""

from __future__ import annotations

import ctypes
import html
import weakref
from ctypes import byref
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from . import _library as lib
from ._context import Context, Error, encode, texts, whole
from ._library import lab

if TYPE_CHECKING:
    from ._network import Network


class _Server:
    """A server of pages with the context that it allocates from."""

    def __init__(self, path: str, options: Any) -> None:
        self.context, self.server = Context(threads=1), ctypes.c_void_p()
        paths = texts("the checkpoint", [path])
        options.paths, options.path_count = ctypes.cast(paths, ctypes.c_void_p), 1
        try:
            with self.context.use():
                self.context.check(lab.att_server_start(self.context.pointer, byref(options), byref(self.server)))
        except BaseException:
            self.close()
            raise

    def url(self) -> str:
        url: bytes = lab.att_server_url(self.server)
        return url.decode()

    def close(self) -> None:
        if self.context.can_be_freed:
            lab.att_server_close(byref(self.server))
            self.context.destroy()


class Shown:
    """The pages that explore a network. A notebook shows them below the cell, as long as this object or its network
    lives; elsewhere, open `url` in a browser on this machine."""

    def __init__(self, network: Network, images: Any, sentences: Any, tokenizer: Any, height: int) -> None:
        """Programs call `Network.show()`."""
        path = network.path
        if path is None:
            raise Error("the network has no file, and the pages open its weights from there")
        options = lab.att_serve_options_defaults()
        options.images, options.network = encode("images", images), network.name.encode()
        options.texts = encode("texts", sentences)
        options.tokenizer = encode("tokenizer", network._tokenizer if tokenizer is None else tokenizer)
        options.framed = True
        self.height = whole("height", height, 1)
        server = _Server(path, options)
        self.url = server.url()
        """The address of the pages, with a secret token. They are answered on this machine only."""
        self._close = weakref.finalize(self, server.close)

    def close(self) -> None:
        """Ends the server."""
        self._close()

    def _repr_html_(self) -> str:
        address = urlsplit(self.url)
        page, name = f":{address.port}/explore?{address.query}", f"attscope-{address.port}"
        # The browser sends the server's cookie in a frame only if both have the same host.
        return (
            f'<iframe id="{name}" style="width: 100%; height: {self.height}px; border: 0" title="attscope"></iframe>'
            f'<script>document.getElementById("{name}").src = "http://" + '
            f'(location.hostname === "localhost" ? "localhost" : "127.0.0.1") + "{page}"</script>'
            f'<a href="{html.escape(f"http://127.0.0.1{page}")}" target="_blank" rel="noopener">in a tab of its own</a>'
        )

    def __repr__(self) -> str:
        return f"<attscope.Shown {self.url}>"
