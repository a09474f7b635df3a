"""Streams cut into rounds: ``nvidia-smi -lms`` and ``dcgmi dmon`` print all GPUs again and again.

Nothing stands between two rounds; one is over where a GPU comes a second time::

    0, GPU-00000000-1111-2222-3333-444455550000, 97
    1, GPU-00000001-1111-2222-3333-444455550001, 98
    0, GPU-00000000-1111-2222-3333-444455550000, 96

A round as long as the one before is whole with its last line; the first one, and one that is
shorter, when the next begins or when the tool is quiet (``settle``). The line of a card that is
lost names no GPU by its index and may stand anywhere in its round, also first or last: after a
whole round it begins the next one.
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
    _before: list[bytes] = field(default_factory=list)
    """The last round that had rows, while the one that has begun has none."""
    _usual: tuple[int, int] | None = None
    """Rows and other lines of the round before; None as long as none is over."""
    _told: int = 0
    _whole: bool = False

    def add(self, line: bytes) -> list[bytes]:
        """Rounds that are whole now: none, one, or two where a shorter one came before."""
        if not line.strip():
            return []
        key = self.key(line)
        out: list[bytes] = []
        if key in self._keys or (key is None and self._whole and not _is_header(line)):
            out += self._tell()
            self._begin()
        if len(self._lines) < _LONGEST_ROUND:
            self._lines.append(line)
        if key is not None:
            self._keys.add(key)
        if self._as_long_as_usual():
            self._whole = True
            out += self._tell()
        return out

    def _begin(self) -> None:
        self._usual = (len(self._keys), self._others())
        self._before = self._lines
        self._lines, self._keys, self._told, self._whole = [], set(), 0, False

    def _others(self) -> int:
        return sum(self.key(one) is None and not _is_header(one) for one in self._lines)

    def _as_long_as_usual(self) -> bool:
        if self._usual is None or not self._keys:
            return False
        rows, others = self._usual
        return len(self._keys) >= rows and self._others() >= others

    @property
    def pending(self) -> bool:
        """Is there something that was not told yet?"""
        return bool(self._keys) and len(self._lines) != self._told

    def settle(self) -> list[bytes]:
        """What has come so far, where it was not told yet: nothing more follows for now."""
        self._whole = bool(self._keys)
        return self._tell()

    def _tell(self) -> list[bytes]:
        if not self.pending:
            return []
        self._told = len(self._lines)
        return [b"\n".join(self._lines)]

    def rest(self) -> bytes:
        """Every line since the last round with rows began, told or not: what a tool said at its
        end."""
        return b"\n".join(self._lines if self._keys else self._before + self._lines)


def _is_header(line: bytes) -> bool:
    return line.startswith((b"#", b"ID"))
