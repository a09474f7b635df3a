"""The collectives of one group as a table: plain data that travels with the facts of a job.

Rows are ranks, columns the last calls. How such a table is made stands in
:mod:`slurmtop.triage.collective_table`.
"""

from dataclasses import dataclass
from enum import StrEnum


class Mark(StrEnum):
    NONE = ""
    WAITS = "waits"
    """The rank itself says that its wait here came to the timeout."""
    DIFFERS = "differs"
    """Other ranks called something else here. Of two equal sides both are marked."""
    MISSING = "missing"
    """Others have called this, and a line says that this rank has not."""


@dataclass(frozen=True, slots=True)
class Cell:
    """``text`` is "" where nothing is known of this rank at this position."""

    text: str = ""
    mark: Mark = Mark.NONE


@dataclass(frozen=True, slots=True)
class Row:
    """Ranks that did the same. ``ranks`` are those of the group, ``global_ranks`` the known ones
    of the job in the same order of rising number. ``note`` says how far they have come."""

    ranks: tuple[int, ...]
    global_ranks: tuple[int, ...]
    cells: tuple[Cell, ...]
    note: str = ""

    @property
    def marked(self) -> bool:
        return any(cell.mark in (Mark.DIFFERS, Mark.MISSING) for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Table:
    """One group. ``columns`` are positions in the group, None for one that no line numbers.

    ``comparable`` is false where the logs do not hold all calls: columns then count from the end
    of each rank's own log, and nothing is marked. ``unseen`` is how many ranks no line tells of.
    """

    group: str
    kind: str
    attempt: int
    size: int | None
    unseen: int | None
    columns: tuple[int | None, ...]
    rows: tuple[Row, ...]
    comparable: bool = True

    @property
    def marked(self) -> bool:
        return any(row.marked for row in self.rows)
