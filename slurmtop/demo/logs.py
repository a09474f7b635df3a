"""A log as a function of time: its size, its newest moment, and any range of its bytes.

A log is a few pieces of text and long runs of lines of one width, each made from its number
alone. So a range in the middle costs what it holds and nothing more.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Text:
    """Bytes that were written at once."""

    t: int
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def last_t(self) -> int:
        return self.t

    def cut(self, start: int, stop: int) -> bytes:
        return self.data[start:stop]


@dataclass(frozen=True, slots=True)
class Lines:
    """``count`` lines of ``width`` bytes, one every ``every`` seconds from ``t`` on.

    ``make`` gives line number ``first``, ``first + 1`` …, always ``width`` bytes long.
    """

    t: int
    every: int
    count: int
    width: int
    make: Callable[[int], bytes]
    first: int = 0

    @property
    def size(self) -> int:
        return self.count * self.width

    @property
    def last_t(self) -> int:
        return self.t + (self.count - 1) * self.every

    def cut(self, start: int, stop: int) -> bytes:
        low, high = start // self.width, -(-stop // self.width)
        data = b"".join(self.make(self.first + at) for at in range(low, min(high, self.count)))
        return data[start - low * self.width : stop - low * self.width]

    def until(self, t: int) -> "Lines":
        """The lines written up to ``t``."""
        count = (t - self.t) // self.every + 1 if t >= self.t else 0
        return replace(self, count=max(0, min(self.count, count)))

    def after(self, t: int) -> "Lines":
        """The lines written later than ``t``."""
        done = self.until(t).count
        return replace(
            self,
            t=self.t + done * self.every,
            count=self.count - done,
            first=self.first + done,
        )


Piece = Text | Lines


def written(pieces: Iterable[Piece], until: int) -> list[Piece]:
    """What of the pieces is there at ``until``."""
    out: list[Piece] = []
    for piece in pieces:
        if piece.t > until:
            continue
        here = piece if isinstance(piece, Text) else piece.until(until)
        if here.size:
            out.append(here)
    return out


def insert(pieces: Sequence[Piece], mark: Text) -> list[Piece]:
    """``mark`` put where its time is; lines that go on after it are parted."""
    out: list[Piece] = []
    placed = False
    for piece in pieces:
        if placed or piece.last_t <= mark.t:
            out.append(piece)
            continue
        if isinstance(piece, Lines):
            out += [part for part in (piece.until(mark.t), mark, piece.after(mark.t)) if part.size]
        else:
            out += [mark, piece]
        placed = True
    return out if placed else [*out, mark]


class Log:
    """The bytes of a log at one moment."""

    def __init__(self, pieces: Sequence[Piece], created_t: int) -> None:
        self._pieces = list(pieces)
        self._starts: list[int] = []
        self.size = 0
        self.last_t = created_t
        for piece in self._pieces:
            self._starts.append(self.size)
            self.size += piece.size
            self.last_t = max(self.last_t, piece.last_t)

    def read(self, offset: int, length: int) -> bytes:
        """At most ``length`` bytes from ``offset`` on."""
        start, stop = max(0, offset), min(self.size, max(0, offset) + max(0, length))
        out: list[bytes] = []
        at = max(0, bisect_right(self._starts, start) - 1)
        while start < stop and at < len(self._pieces):
            piece, began = self._pieces[at], self._starts[at]
            end = min(stop, began + piece.size)
            out.append(piece.cut(start - began, end - began))
            start = max(start, end)
            at += 1
        return b"".join(out)
