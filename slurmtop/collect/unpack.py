"""Packed logs, unpacked block by block: memory stays bounded, whatever they would grow to."""

import importlib
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from slurmtop.collect.log_content import Content

#: The most that one step gives out, and what is lost in front of damage.
BLOCK_BYTES = 64 * 1024
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
#: Python's own module (3.14), then the package that brings it to older versions.
_ZSTD_MODULES = ("compression.zstd", "backports.zstd")


class CannotUnpack(Exception):
    """``str()`` says in words for people why the rest, or all, of it cannot be had."""


class _Decoder(Protocol):
    """One member of a packed file, as ``bz2`` and ``compression.zstd`` do it."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """zlib's object in the form of the newer modules."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(_GZIP_WINDOW)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


class Unpacker:
    """``feed`` gives what the packed bytes hold, in blocks of at most :data:`BLOCK_BYTES`.

    Several members in one file follow each other, as gzip does it. :class:`CannotUnpack` where
    the bytes are damaged or there is no module for the format; ``open`` is true while a member
    has begun and not ended.
    """

    def __init__(self, content: Content) -> None:
        self._content = content
        self._decoder: _Decoder | None = None
        self._broken: tuple[type[Exception], ...] = (zlib.error, OSError, EOFError, ValueError)
        self._make: Callable[[], _Decoder] = _Gzip if content is Content.GZIP else _zstd_decoder()
        error = getattr(self._make, "error", None)
        if error is not None:
            self._broken += (error,)

    @property
    def open(self) -> bool:
        return self._decoder is not None

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data or (self._decoder is not None and not self._decoder.needs_input):
            decoder = self._decoder
            if decoder is None:
                if not data.strip(b"\0"):
                    return
                decoder = self._decoder = self._make()
            try:
                out = decoder.decompress(data, BLOCK_BYTES)
            except self._broken as error:
                raise CannotUnpack(f"it is damaged from here on ({error})") from error
            data = b""
            if decoder.eof:
                data = decoder.unused_data
                self._decoder = None
            if out:
                yield out


class _ZstdMaker:
    """Makes decoders of whichever module is there; ``error`` is what it raises."""

    def __init__(self, module: object) -> None:
        self._decoder = getattr(module, "ZstdDecompressor")  # noqa: B009 - no stub before 3.14
        self.error: type[Exception] = getattr(module, "ZstdError")  # noqa: B009

    def __call__(self) -> _Decoder:
        decoder: _Decoder = self._decoder()
        return decoder


def _zstd_decoder() -> _ZstdMaker:
    for name in _ZSTD_MODULES:
        try:
            return _ZstdMaker(importlib.import_module(name))
        except ImportError:
            continue
    raise CannotUnpack(
        "it is packed with zstd, which this Python cannot unpack: unpack it first (zstd -d),"
        " or install backports.zstd"
    )
