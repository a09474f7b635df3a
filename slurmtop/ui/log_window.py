"""A bounded window of lines on a log of any size. Pure: lines go in, rows come out.

The window knows the byte range it covers, so that older and newer parts can be asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from slurmtop.model.facts import LogLine
from slurmtop.model.text import visible
from slurmtop.parse.logs.lines import LINE_LIMIT

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


def _row(line: LogLine, kind: RowKind = RowKind.LINE) -> LogRow:
    text = line.text.expandtabs(8) if "\t" in line.text else line.text
    cut = " …" if len(line.text) >= LINE_LIMIT else ""
    return LogRow(line.offset, visible(text) + cut, kind)


class LogWindow:
    """Rows with their byte range ``[start, end)``; ``size`` is the file's as last seen."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.rows: list[LogRow] = []
        self.start = 0
        self.end = 0
        self.size = 0

    @property
    def at_start(self) -> bool:
        return self.start == 0 or (bool(self.rows) and self.rows[0].offset < 0)

    @property
    def at_end(self) -> bool:
        return self.end >= self.size

    def load(
        self, lines: Sequence[LogLine], partial: LogLine | None, *, end: int, size: int
    ) -> None:
        """Show these lines and nothing else; they reach up to byte ``end``."""
        self.rows = []
        self.start = next((line.offset for line in lines), partial.offset if partial else end)
        self.append(lines, partial, end=end, size=size)

    def append(
        self, lines: Sequence[LogLine], partial: LogLine | None, *, end: int, size: int
    ) -> int:
        """Add what follows the window's end. Returns how many rows the top lost.

        A ``partial`` line takes the place of the one before; whole lines begin where it did.
        """
        if self.rows and self.rows[-1].kind is RowKind.PARTIAL:
            self.rows.pop()
        self.rows.extend(_row(line) for line in lines)
        if partial is not None:
            self.rows.append(_row(partial, RowKind.PARTIAL))
        self.end, self.size = end, size
        return self._trim_top()

    def _trim_top(self) -> int:
        over = len(self.rows) - self.limit
        if over <= 0:
            return 0
        del self.rows[:over]
        self.start = max(0, self.rows[0].offset)
        return over

    def prepend(self, lines: Sequence[LogLine], start: int) -> int:
        """Add whole lines that end where the window starts. Returns how many rows came.

        Rows at the bottom give way; the window is then no longer at the end.
        """
        self.rows[:0] = [_row(line) for line in lines]
        self.start = start
        over = len(self.rows) - self.limit
        if over > 0:
            self.end = self.rows[-over].offset
            del self.rows[-over:]
        return len(lines)

    def began_anew(
        self, marker: str, lines: Sequence[LogLine], partial: LogLine | None, size: int
    ) -> None:
        """The file was cut short or replaced: what was shown stays above a marker line."""
        old = [LogRow(-1, row.text, row.kind) for row in self.rows if row.kind != RowKind.PARTIAL]
        self.load(lines, partial, end=size, size=size)
        self.rows[:0] = [*old, LogRow(-1, marker, RowKind.MARKER)]
        self._trim_top()

    def index_of(self, offset: int) -> int | None:
        """The row that holds byte ``offset``; None where the window does not cover it."""
        if not self.start <= offset < self.end:
            return None
        low, high = 0, len(self.rows)
        while low < high:
            middle = (low + high) // 2
            if self.rows[middle].offset <= offset:
                low = middle + 1
            else:
                high = middle
        return low - 1 if low and self.rows[low - 1].offset >= 0 else None
