"""The plain files of a tar archive, one after the other, as little as a bundle needs.

Whatever an archive says of itself (long names, attributes, holes) Python's own reader keeps in
memory, however much it is. Here of a member that is no plain file only its head is looked at, and
a name that somebody's ``tar`` has put into a member of its own; all else is passed over block by
block.
"""

import io
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

_HEAD = tarfile.BLOCKSIZE
_BLOCK = 1024 * 1024
_LONGEST_NAME = 64 * 1024
_PAX_NAME = re.compile(rb"(?:\A|\n)\d{1,6} path=([^\n]*)\n")
_PAX_HOLES = b" GNU.sparse."


class BrokenTar(Exception):
    """It is no archive, or ends too early; ``str()`` says which."""


@dataclass(slots=True)
class Member:
    """A plain file. ``read`` works once, before the next member is asked for."""

    name: str
    size: int
    _inner: IO[bytes]
    _left: int = 0

    def read(self) -> bytes:
        """Block by block into one piece: asked for all at once it stands in memory three times."""
        out = io.BytesIO()
        while self._left:
            block = _some(self._inner, min(self._left, _BLOCK))
            self._left -= len(block)
            out.write(block)
        return out.getvalue()

    def skip(self) -> None:
        while self._left:
            self._left -= len(_some(self._inner, min(self._left, _BLOCK)))
        pad = -self.size % _HEAD
        if pad:
            _exactly(self._inner, pad)


def members(inner: IO[bytes]) -> Iterator[Member]:
    """The plain files of the archive, in their order. Raises :class:`BrokenTar`, and what reading
    ``inner`` raises."""
    named, holes = "", False
    while True:
        head = _head(inner)
        if head is None:
            return
        member = Member(head.name, head.size, inner, head.size)
        if head.type in (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE):
            if head.size > _LONGEST_NAME:
                raise BrokenTar("a name in it has no end")
            said = member.read()
            member.skip()
            if head.type == tarfile.GNUTYPE_LONGNAME:
                named = said.rstrip(b"\0").decode("utf-8", "replace")
            elif (found := _PAX_NAME.search(said)) is not None:
                named = found[1].decode("utf-8", "replace")
            holes = holes or _PAX_HOLES in said
            continue
        if head.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not holes:
            member.name = named or head.name
            yield member
        member.skip()
        named, holes = "", False


def _head(inner: IO[bytes]) -> tarfile.TarInfo | None:
    """None at the end: a block of zeros, or no more blocks."""
    block = inner.read(_HEAD)
    if not block.strip(b"\0"):
        return None
    block += _exactly(inner, _HEAD - len(block)) if len(block) < _HEAD else b""
    try:
        head = tarfile.TarInfo.frombuf(block, "utf-8", "replace")
    except (tarfile.HeaderError, ValueError) as error:
        raise BrokenTar(str(error)) from error
    if head.size < 0:
        raise BrokenTar("a size in it is no size")
    return head


def _some(inner: IO[bytes], most: int) -> bytes:
    data = inner.read(most)
    if not data:
        raise BrokenTar("unexpected end of data")
    return data


def _exactly(inner: IO[bytes], size: int) -> bytes:
    out = b""
    while len(out) < size:
        out += _some(inner, size - len(out))
    return out
