"""A bounded window of lines on a log of any size. Pure: bytes go in, rows come out.

The window knows the byte range it covers, so that older and newer parts can be asked for.
It never holds more than ``limit`` rows, and of one line no more than the parser keeps.
"""

from dataclasses import dataclass
from enum import StrEnum

from slurmtop.model.facts import LogLine
from slurmtop.model.text import visible
from slurmtop.parse.logs.lines import LINE_LIMIT, LineDecoder, split_lines

LIMIT = 5_000


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


def shown(text: str) -> str:
    """A decoded line as it is shown: tabs as blanks, every control made visible."""
    return visible(text.expandtabs(8) if "\t" in text else text)


def _row(line: LogLine, kind: RowKind = RowKind.LINE) -> LogRow:
    cut = " …" if len(line.text) >= LINE_LIMIT else ""
    return LogRow(line.offset, shown(line.text) + cut, kind)


class LogWindow:
    """Rows with their byte range ``[start, end)``; ``size`` is the file's as last seen."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.rows: list[LogRow] = []
        self.start = 0
        self.end = 0
        self.size = 0
        self._decoder = LineDecoder()

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
        self._decoder = LineDecoder(offset=offset, number=None)
        self.append(data, size)

    def append(self, data: bytes, size: int) -> int:
        """Add the bytes that follow ``end``. Returns how many rows the top lost."""
        self.size = size
        if not data:
            return 0
        self._drop_partial_row()
        self.rows.extend(_row(line) for line in self._decoder.feed(data))
        self.end += len(data)
        pending = self._decoder.pending
        if pending is not None:
            self.rows.append(_row(pending, RowKind.PARTIAL))
        return self._trim_top()

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
        new = [_row(line) for line in split_lines(data, offset=offset, number=None)]
        if not new:
            return 0
        self.rows[:0] = new
        self.start = offset
        over = len(self.rows) - self.limit
        if over > 0:
            self.end = self.rows[-over].offset
            del self.rows[-over:]
            self._decoder = LineDecoder(offset=self.end, number=None)
        return len(new)

    def began_anew(self, marker: str, data: bytes, size: int) -> None:
        """The file was cut or replaced: what is shown stays, behind a marker line.

        ``data`` is the new file from its first byte.
        """
        self._drop_partial_row()
        old = [LogRow(-1, row.text, row.kind) for row in self.rows]
        self.load(0, data, size)
        self.rows[:0] = [*old, LogRow(-1, marker, RowKind.MARKER)]
        self._trim_top()

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
