"""The collectives of each group as tables: rows are ranks, columns the last calls.

Plain data for a screen or a report. Ranks whose rows are equal stand in one row, so that 8 and
8,000 ranks look alike, and rows with something odd stand first. Unseen ranks have no row: that
nothing was read of a rank is told beside the table, as a number, and marks nobody.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from slurmtop.model.collective_table import Cell, Mark, Row, Table
from slurmtop.model.events.nccl import Call
from slurmtop.triage.join_groups import PRINTS
from slurmtop.triage.ops import UNEVEN_OPS, plain_op
from slurmtop.triage.picture import GroupView, Picture, Place
from slurmtop.triage.waiting import label_of, size_of

__all__ = ["Cell", "Mark", "Row", "Table", "collective_tables"]

_COLUMNS = 6
_TYPES = ("i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2")


def collective_tables(picture: Picture, *, columns: int = _COLUMNS) -> tuple[Table, ...]:
    """A table for each group with a call or a wait; those with something odd first.

    ``columns`` is how many of the last positions are shown (at least one).
    """
    tables = [
        table
        for view in picture.groups
        if view.key != PRINTS and (table := _table(picture, view, max(columns, 1))) is not None
    ]
    return tuple(sorted(tables, key=lambda table: (not table.marked, -(table.size or 0))))


def _table(picture: Picture, view: GroupView, columns: int) -> Table | None:
    if view.from_calls:
        positions, cells, comparable = _of_calls(view, columns)
    else:
        positions, cells, comparable = _of_waits(view, columns)
    if not positions:
        return None
    size = size_of(picture, view)
    return Table(
        group=label_of(view) or "group not told",
        kind=view.kind,
        attempt=view.attempt,
        size=size,
        unseen=None if size is None else max(size - len(view.places), 0),
        columns=positions,
        rows=_folded(view.places, cells),
        comparable=comparable,
    )


_Parts = tuple[tuple[int | None, ...], Mapping[int, tuple[Cell, ...]], bool]


def _of_calls(view: GroupView, columns: int) -> _Parts:
    """Calls that NCCL logged, by position; by their place from the end where that is all."""
    places = [place for place in view.places if place.calls]
    ends = {place.rank: place.enqueued for place in places}
    comparable = None not in ends.values()
    told: dict[int, dict[int, Call]] = {}
    for place in places:
        end = place.enqueued if comparable and place.enqueued is not None else 0
        first = end - len(place.calls) + 1
        told[place.rank] = {first + n: call for n, call in enumerate(place.calls)}
    last = max((max(calls) for calls in told.values() if calls), default=0)
    earliest = min((min(calls) for calls in told.values() if calls), default=last)
    positions = tuple(range(max(earliest, last - columns + 1), last + 1)) if told else ()
    cells: dict[int, list[Cell]] = defaultdict(list)
    for position in positions:
        row = {rank: _call_words(calls.get(position)) for rank, calls in told.items()}
        odd = _odd(row, {rank: _uneven(calls.get(position)) for rank, calls in told.items()})
        for rank, words in row.items():
            mark = Mark.NONE
            if comparable and rank in odd:
                mark = Mark.DIFFERS
            if comparable and not words and position > (ends[rank] or 0):
                mark = Mark.MISSING
            cells[rank].append(Cell(words, mark))
    return positions, {rank: tuple(row) for rank, row in cells.items()}, comparable


def _call_words(call: Call | None) -> str:
    if call is None:
        return ""
    known = 0 <= call.datatype < len(_TYPES)
    kind = _TYPES[call.datatype] if known else f"type {call.datatype}"
    root = f" root {call.root}" if plain_op(call.op) in ("broadcast", "reduce") else ""
    return f"{plain_op(call.op) or call.op} {call.count} {kind}{root}"


def _uneven(call: Call | None) -> str | None:
    """What has to agree of an operation whose sizes need not."""
    op = plain_op(call.op) if call is not None else None
    return op if op in UNEVEN_OPS else None


def _of_waits(view: GroupView, columns: int) -> _Parts:
    """What the watchdog told: who waits where, and how far each rank has come."""
    waits = sorted({p.timed_out for p in view.places if p.timed_out is not None})
    unnumbered = [p for p in view.places if p.timed_out is None and p.op is not None]
    positions: tuple[int | None, ...] = tuple(waits[-columns:])
    if unnumbered:
        positions = (*positions, None)
    cells: dict[int, list[Cell]] = defaultdict(list)
    for position in positions:
        row = {place.rank: _wait_words(place, position) for place in view.places}
        waiting = {p.rank for p in view.places if row[p.rank] and p.timed_out == position}
        sides = {rank: words for rank, words in row.items() if rank in waiting}
        uneven = {p.rank: p.op if p.op in UNEVEN_OPS else None for p in view.places}
        odd = _odd(sides, uneven)
        for place in view.places:
            cells[place.rank].append(_wait_cell(place, position, row[place.rank], odd))
    return positions, {rank: tuple(row) for rank, row in cells.items()}, True


def _wait_words(place: Place, position: int | None) -> str:
    if place.timed_out == position:
        size = f" {place.numel_in}" if place.numel_in is not None else ""
        return f"{place.op}{size}" if place.op is not None else ("" if position is None else "?")
    if position is None:
        return ""
    if place.completed is not None and place.completed >= position:
        return "done"
    if place.enqueued is not None and place.enqueued >= position:
        return "launched"
    return ""


def _wait_cell(place: Place, position: int | None, words: str, odd: frozenset[int]) -> Cell:
    if place.rank in odd:
        return Cell(words, Mark.DIFFERS)
    if words and place.timed_out == position:
        return Cell(words, Mark.WAITS)
    behind = position is not None and place.enqueued is not None and place.enqueued < position
    if behind and place.timed_out is None:
        return Cell("", Mark.MISSING)
    return Cell(words)


def _odd(row: Mapping[int, str], uneven: Mapping[int, str | None]) -> frozenset[int]:
    """The ranks that differ from most; of equal sides, all. Unknown ones differ from nobody."""
    values = {rank: uneven.get(rank) or words for rank, words in row.items() if words}
    values = {rank: words for rank, words in values.items() if words != "?"}
    counts = Counter(values.values()).most_common()
    if len(counts) < 2:
        return frozenset()
    if counts[0][1] == counts[1][1]:
        return frozenset(values)
    return frozenset(rank for rank, words in values.items() if words != counts[0][0])


def _folded(places: Sequence[Place], cells: Mapping[int, tuple[Cell, ...]]) -> tuple[Row, ...]:
    alike: dict[tuple[tuple[Cell, ...], str], list[Place]] = defaultdict(list)
    for place in places:
        if place.rank in cells:
            alike[cells[place.rank], _note(place)].append(place)
    rows = [
        Row(
            tuple(sorted(place.rank for place in found)),
            _numbers(place.global_rank for place in found),
            row,
            note,
        )
        for (row, note), found in alike.items()
    ]
    return tuple(sorted(rows, key=lambda row: (not row.marked, len(row.ranks), row.ranks)))


def _numbers(ranks: Iterable[int | None]) -> tuple[int, ...]:
    return tuple(sorted(rank for rank in ranks if rank is not None))


def _note(place: Place) -> str:
    if place.calls:
        return "" if place.enqueued is None else f"{place.enqueued} calls"
    words = []
    if place.enqueued is not None:
        words.append(f"launched {place.enqueued}")
    if place.completed is not None:
        words.append(f"done {place.completed}")
    return ", ".join(words)
