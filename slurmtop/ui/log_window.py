"""A bounded window of lines on a log of any size. Pure: bytes go in, rows come out.

The window knows the byte range it covers, so that older and newer parts can be asked for.
It never holds more than ``limit`` rows nor more than ``ROW_BYTES`` of one line.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from slurmtop.model.text import visible

LIMIT = 5_000
ROW_BYTES = 8_192
_CSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


class RowKind(StrEnum):
    LINE = "line"
    PARTIAL = "partial"
    """The last line, still without its line end: more may come."""
    MARKER = "marker"
    """Said by slurmtop, not by the log."""


@dataclass(frozen=True, slots=True)
class LogRow:
    """``offset`` is the byte where the line starts; -1 where it is no longer in the file."""

    offset: int
    text: str
    kind: RowKind = RowKind.LINE


def shown_text(raw: bytes) -> str:
    """One raw line as it is shown: the last state of a carriage-return bar, no escapes.

    Colours and cursor moves are removed; every other control is made visible; tabs become
    blanks; bytes that are no UTF-8 become a replacement sign.
    """
    if b"\r" in raw:
        parts = [part for part in raw.split(b"\r") if part]
        raw = parts[-1] if parts else b""
    cut = len(raw) > ROW_BYTES
    if cut:
        raw = whole_characters(raw[:ROW_BYTES])
    if b"\x1b" in raw:
        raw = _CSI.sub(b"", raw)
    text = raw.decode("utf-8", errors="replace")
    if "\t" in text:
        text = text.expandtabs(8)
    return visible(text) + (" …" if cut else "")


class LogWindow:
    """Rows with their byte range ``[start, end)``; ``size`` is the file's as last seen."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.rows: list[LogRow] = []
        self.start = 0
        self.end = 0
        self.size = 0
        self._partial = b""
        self._partial_at = 0
        self._partial_skipped = 0
        """Bytes of the partial line that are no longer kept (older states of a bar)."""

    @property
    def at_start(self) -> bool:
        return self.start == 0 or (bool(self.rows) and self.rows[0].offset < 0)

    @property
    def at_end(self) -> bool:
        return self.end >= self.size

    def load(self, offset: int, data: bytes, size: int) -> None:
        """Show the part that starts at ``offset``, which must be the start of a line."""
        self.rows = []
        self.start = self.end = offset
        self.size = size
        self._forget_partial(offset)
        self.append(data, size)

    def _forget_partial(self, at: int) -> None:
        self._partial, self._partial_at, self._partial_skipped = b"", at, 0

    def append(self, data: bytes, size: int) -> int:
        """Add the bytes that follow ``end``. Returns how many rows the top lost."""
        self.size = size
        if not data:
            return 0
        self._drop_partial_row()
        lines = (self._partial + data).split(b"\n")
        for line in lines[:-1]:
            self.rows.append(LogRow(self._partial_at, shown_text(line)))
            self._partial_at += self._partial_skipped + len(line) + 1
            self._partial_skipped = 0
        self.end += len(data)
        self._partial = lines[-1]
        if len(self._partial) > ROW_BYTES:
            self._shorten_partial()
        if self._partial:
            text = shown_text(whole_characters(self._partial))
            self.rows.append(LogRow(self._partial_at, text, RowKind.PARTIAL))
        return self._trim_top()

    def _shorten_partial(self) -> None:
        """A bar of carriage returns keeps its last state; an endless line is cut in rows."""
        head, _, tail = self._partial.rstrip(b"\r").rpartition(b"\r")
        if head:
            self._partial_skipped += len(self._partial) - len(tail)
            self._partial = tail
            return
        at = self._partial_at + self._partial_skipped
        whole = len(self._partial) - len(self._partial) % ROW_BYTES
        for start in range(0, whole, ROW_BYTES):
            piece = self._partial[start : start + ROW_BYTES]
            self.rows.append(LogRow(at + start, shown_text(piece)))
        self._partial = self._partial[whole:]
        self._partial_at, self._partial_skipped = at + whole, 0

    def _drop_partial_row(self) -> None:
        if self.rows and self.rows[-1].kind is RowKind.PARTIAL:
            self.rows.pop()

    def _trim_top(self) -> int:
        over = len(self.rows) - self.limit
        if over <= 0:
            return 0
        del self.rows[:over]
        self.start = max(0, self.rows[0].offset)
        return over

    def prepend(self, offset: int, data: bytes) -> int:
        """Add whole lines that end where the window starts. Returns how many rows came.

        Rows at the bottom give way; the window is then no longer at the end.
        """
        new = list(rows_of(offset, data))
        if not new:
            return 0
        self.rows[:0] = new
        self.start = offset
        over = len(self.rows) - self.limit
        if over > 0:
            self.end = self.rows[len(self.rows) - over].offset
            del self.rows[len(self.rows) - over :]
            self._forget_partial(self.end)
        return len(new)

    def began_anew(self, marker: str, data: bytes, size: int) -> None:
        """The file was cut or replaced: what is shown stays, behind a marker line.

        ``data`` is the new file from its first byte.
        """
        self._drop_partial_row()
        old = [LogRow(-1, row.text, row.kind) for row in self.rows]
        self.load(0, data, size)
        self.rows[:0] = [*old, LogRow(-1, marker, RowKind.MARKER)]
        over = len(self.rows) - self.limit
        if over > 0:
            del self.rows[:over]
            self.start = max(0, self.rows[0].offset)

    def index_of(self, offset: int) -> int | None:
        """The row that holds byte ``offset``; None where the window does not cover it."""
        if not self.start <= offset < max(self.end, self.start + 1):
            return None
        low, high = 0, len(self.rows)
        while low < high:
            middle = (low + high) // 2
            if self.rows[middle].offset <= offset:
                low = middle + 1
            else:
                high = middle
        return low - 1 if low and self.rows[low - 1].offset >= 0 else None


def rows_of(offset: int, data: bytes) -> Iterable[LogRow]:
    at = offset
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    for line in lines:
        yield LogRow(at, shown_text(line))
        at += len(line) + 1


def whole_characters(raw: bytes) -> bytes:
    """Without the first bytes of a character whose rest is still to be written."""
    for back in range(1, min(4, len(raw)) + 1):
        lead = raw[-back]
        if lead & 0xC0 == 0x80:
            continue
        need = 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1
        return raw[:-back] if back < need else raw
    return raw
