"""The collectives of a job as lines: rows of ranks, columns the last calls. Pure.

What is odd is told by a letter before the cell, explained below the table, and by a role
besides; rows with somebody whom the verdict names stand on top.
"""

from collections.abc import Collection, Iterable, Sequence

from slurmtop.model.collective_table import Cell, Mark, Row, Table
from slurmtop.model.text import cell_width, fit, visible
from slurmtop.model.units import plural
from slurmtop.triage.next_steps import ranks_text
from slurmtop.ui.present.spans import Line, Span, cut_line, wrap

_LETTERS = {Mark.NONE: " ", Mark.WAITS: "W", Mark.DIFFERS: "D", Mark.MISSING: "M"}
_ROLES = {Mark.NONE: "", Mark.WAITS: "wait", Mark.DIFFERS: "bad", Mark.MISSING: "bad"}
_MEANINGS = {
    Mark.MISSING: "M others are in it, and a line says that this rank never came",
    Mark.DIFFERS: "D called something else here than others",
    Mark.WAITS: "W waited here for others until the timeout",
}
_NAMED = "! named by the verdict"
_NOT_COMPARABLE = (
    "The logs do not hold all calls: columns count back from the last call of each rank, and"
    " nothing is marked."
)
_MISSING_WORDS = "not there"
_UNKNOWN = "-"
MOST_TABLES = 4
MOST_ROWS = 8
_GAP = 2
_CELL_CELLS = 30
_LEAST_CELL = 12
_WHO_SHARE = 0.3


def collective_lines(
    tables: Sequence[Table], culprits: Collection[int], width: int
) -> tuple[Line, ...]:
    """All tables under one heading, each line at most ``width`` cells; nothing for no table.

    ``culprits`` are the global ranks that the verdict names.
    """
    if not tables:
        return ()
    named = frozenset(culprits)
    shown = sorted(tables, key=lambda table: not any(_has(row, named) for row in table.rows))
    out: list[Line] = [(), (("Collectives", "label"),)]
    signs: set[str] = set()
    for number, table in enumerate(shown[:MOST_TABLES]):
        out += [()] if number else []
        out += _head(table, width)
        out += _table(table, named, width, signs)
    if len(shown) > MOST_TABLES:
        more = plural(len(shown) - MOST_TABLES, "more group")
        out.append(cut_line(((f"  {more}, with nothing odder than these", "dim"),), width))
    return (*out, *_legend(signs, width))


def _is_global(row: Row) -> bool:
    """Are the ranks of the job known of all of the row?"""
    return len(row.global_ranks) == len(row.ranks)


def _has(row: Row, named: Collection[int]) -> bool:
    return any(rank in named for rank in row.global_ranks)


def _head(table: Table, width: int) -> list[Line]:
    words = [visible(table.group)]
    if table.size is not None:
        words.append(plural(table.size, "rank"))
    if table.unseen:
        words.append(f"of {table.unseen} no line was read")
    if table.attempt:
        words.append(f"attempt {table.attempt}")
    if not all(map(_is_global, table.rows)):
        words.append("ranks as this group counts them")
    text = ", ".join(words)
    out: list[Line] = [((piece, ""),) for piece in wrap(text, width, first="  ", rest="  ")]
    if not table.comparable:
        pieces = wrap(_NOT_COMPARABLE, width, first="  ", rest="  ")
        out += [((piece, "dim"),) for piece in pieces]
    return out


def _table(table: Table, named: Collection[int], width: int, signs: set[str]) -> list[Line]:
    rows = sorted(table.rows, key=lambda row: not _has(row, named))[:MOST_ROWS]
    most_who = max(10, int(width * _WHO_SHARE))
    names = [_name(row, most_who) for row in rows]
    heads = [_column(table, position) for position in table.columns]
    who_cells = min(max([*map(cell_width, names), 4]), most_who)
    room = width - who_cells - 4
    first, cells = _columns(heads, rows, room)
    out = [_head_line(heads[first:], cells, who_cells, width)]
    for row, name in zip(rows, names, strict=True):
        is_named = _has(row, named)
        marks = {cell.mark for cell in row.cells[first:]}
        signs |= {_LETTERS[mark] for mark in marks} | ({"!"} if is_named else set())
        out.append(_row_line(row, name, is_named, cells, first, who_cells, width))
    left = len(table.rows) - len(rows)
    if left:
        more = f"    {plural(left, 'more row')} of ranks"
        out.append(cut_line(((more, "dim"),), width))
    return out


def _column(table: Table, position: int | None) -> str:
    if position is None:
        return "no number"
    if table.comparable:
        return f"#{position}"
    return "last" if not position else f"last{position}"


def _name(row: Row, room: int) -> str:
    """``rank 11``, ``ranks 0-10, 12-15``; how many they are where that does not fit."""
    ranks = row.global_ranks if _is_global(row) else row.ranks
    text = f"{'rank' if len(ranks) == 1 else 'ranks'} {ranks_text(ranks)}"
    return text if len(text) <= room else plural(len(ranks), "rank")


def _columns(heads: Sequence[str], rows: Sequence[Row], room: int) -> tuple[int, list[int]]:
    """(the first column that is shown, how wide each is): the newest ones that fit.

    A narrow screen cuts what stands in the cells before it gives up the oldest columns.
    """
    wanted = [
        min(
            _CELL_CELLS,
            max([cell_width(head), *(cell_width(_words(row.cells[at])) for row in rows)]),
        )
        for at, head in enumerate(heads)
    ]
    least = [min(want, _LEAST_CELL) for want in wanted]
    first = 0
    while first < len(wanted) - 1 and _needs(least[first:]) > room:
        first += 1
    cells = least[first:]
    slack = room - _needs(cells)
    for at in reversed(range(len(cells))):
        more = max(0, min(slack, wanted[first + at] - cells[at]))
        cells[at] += more
        slack -= more
    return first, cells


def _needs(cells: Sequence[int]) -> int:
    return sum(size + 2 + _GAP for size in cells)


def _words(cell: Cell) -> str:
    if cell.text:
        return visible(cell.text)
    return _MISSING_WORDS if cell.mark is Mark.MISSING else _UNKNOWN


def _head_line(heads: Sequence[str], cells: Sequence[int], who: int, width: int) -> Line:
    text = " " * (who + 4)
    for head, size in zip(heads, cells, strict=True):
        text += " " * (_GAP + 2) + fit(head, size)
    return cut_line(((text.rstrip(), "dim"),), width)


def _row_line(
    row: Row, name: str, is_named: bool, cells: Sequence[int], first: int, who: int, width: int
) -> Line:
    spans: list[Span] = [("  ", "")]
    spans.append(("! " if is_named else "  ", "bad"))
    spans.append((fit(name, who), "bad" if is_named else ""))
    for cell, size in zip(row.cells[first:], cells, strict=True):
        role = _ROLES[cell.mark] if cell.text or cell.mark else "dim"
        spans.append((" " * _GAP, ""))
        spans.append((f"{_LETTERS[cell.mark]} {fit(_words(cell), size)}", role))
    if row.note:
        room = width - sum(cell_width(text) for text, _ in spans) - _GAP
        if cell_width(visible(row.note)) <= room:
            spans.append((" " * _GAP + visible(row.note), "dim"))
    return cut_line(tuple(spans), width)


def _legend(signs: Iterable[str], width: int) -> tuple[Line, ...]:
    """What the letters mean, of those that stand above."""
    seen = set(signs)
    words = [text for mark, text in _MEANINGS.items() if _LETTERS[mark] in seen]
    if "!" in seen:
        words.insert(0, _NAMED)
    return tuple(
        ((piece, "dim"),) for text in words for piece in wrap(text, width, first="  ", rest="    ")
    )
