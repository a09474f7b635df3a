"""Streams cut into rounds: ``nvidia-smi -lms`` and ``dcgmi dmon`` print all GPUs again and again.

Nothing stands between two rounds; one is over where a GPU comes a second time::

    0, GPU-00000000-1111-2222-3333-444455550000, 97
    1, GPU-00000001-1111-2222-3333-444455550001, 98
    0, GPU-00000000-1111-2222-3333-444455550000, 96

A round as long as the one before is whole with its last line; the first one, and one that is
shorter, when the next begins or when the tool is quiet (``settle``).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

_LONGEST_LINE = 16 * 1024
#: More lines than any node has GPUs and slices: something else is coming.
_LONGEST_ROUND = 1024
_SMI_INDEX = re.compile(rb"[ \t]{0,8}(\d{1,4})[ \t]*,")
_DCGM_ENTITY = re.compile(rb"(GPU(?:-I|-CI)?[ \t]{1,8}\d{1,6})[ \t\r]")


def smi_key(line: bytes) -> bytes | None:
    """The index at the start of a row of ``--query-gpu=index,…``; None for any other line."""
    found = _SMI_INDEX.match(line)
    return found[1] if found else None


def dmon_key(line: bytes) -> bytes | None:
    """The entity at the start of a row of ``dcgmi dmon``; None for any other line."""
    found = _DCGM_ENTITY.match(line)
    return b" ".join(found[1].split()) if found else None


@dataclass(slots=True)
class Lines:
    """Whole lines out of chunks that are cut anywhere; a line without end is cut itself."""

    _rest: bytes = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            lines.append(self._rest[:_LONGEST_LINE])
            self._rest = b""
        return [line[:_LONGEST_LINE] for line in lines]


@dataclass(slots=True)
class Rounds:
    """Puts lines together to rounds. ``key`` names the GPU of a row.

    A round may be told twice: a GPU that comes after it was taken for whole makes it longer.
    """

    key: Callable[[bytes], bytes | None]
    _lines: list[bytes] = field(default_factory=list)
    _keys: set[bytes] = field(default_factory=set)
    _usual: int | None = None
    _told: int = 0

    def add(self, line: bytes) -> list[bytes]:
        """Rounds that are whole now: none, one, or two where a shorter one came before."""
        if not line.strip():
            return []
        key = self.key(line)
        out: list[bytes] = []
        if key is not None and key in self._keys:
            out += self.settle()
            self._usual = len(self._keys)
            self._lines, self._keys, self._told = [], set(), 0
        if len(self._lines) < _LONGEST_ROUND:
            self._lines.append(line)
        if key is not None:
            self._keys.add(key)
            if self._usual is not None and len(self._keys) >= self._usual:
                out += self.settle()
        return out

    @property
    def pending(self) -> bool:
        """Is there something that was not told yet?"""
        return bool(self._keys) and len(self._lines) != self._told

    def settle(self) -> list[bytes]:
        """What has come so far, where it was not told yet: nothing more follows for now."""
        if not self.pending:
            return []
        self._told = len(self._lines)
        return [b"\n".join(self._lines)]

    def rest(self) -> bytes:
        """Every line since the last round began, told or not: what a tool said at its end."""
        return b"\n".join(self._lines)
