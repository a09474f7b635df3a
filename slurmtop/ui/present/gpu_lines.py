"""The grid of a job's GPUs as lines: what fits, the sparkline, and what ticks. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from slurmtop.model.text import cell_width, fit, visible
from slurmtop.model.units import ago_text
from slurmtop.store.gpu_metrics import GpuMetric
from slurmtop.ui.present.gpu_grid import (
    DASH,
    IDLE,
    LOST,
    NO_VALUE,
    ODD,
    UNKNOWN,
    WAITS,
    WARNING,
    GridRow,
    is_old,
    is_stale,
    short_value,
)
from slurmtop.ui.present.spans import Line, Span, cut_line

#: What each sign says, in the order of the legend.
LEGEND = (
    (ODD, "odd one or in trouble"),
    (WARNING, "has a warning"),
    (WAITS, "full, but at low power: may only wait"),
    (IDLE, "idle"),
    (LOST, "lost or down"),
    (UNKNOWN, "unknown"),
    (NO_VALUE, "has no such value"),
)
_HOST_MOST = 16
_KIND_MOST = 12
_MEAN = 6
SPARK_LEAST, _SPARK_MOST = 8, 30


@dataclass(frozen=True, slots=True)
class Layout:
    """What fits one line. ``cells`` of ``most`` are shown from ``first`` on, each ``cell`` wide."""

    host: int
    kind: int
    cell: int
    first: int
    cells: int
    most: int
    spark: int
    mean: bool


def lay_out(rows: Sequence[GridRow], width: int, column: int) -> Layout:
    """Widths for all rows; cells scroll sideways so that ``column`` stays in sight."""
    host = min(_HOST_MOST, max((cell_width(visible(row.host)) for row in rows), default=4))
    kinds = {kind for row in rows for kind in row.kinds}
    kind = 0
    if len(kinds) > 1:
        kind = min(_KIND_MOST, max(cell_width("+".join(row.kinds)) for row in rows))
    text = max((len(cell.text) for row in rows for cell in row.cells), default=3)
    cell = max(3, text) + 2
    most = max((len(row.cells) for row in rows), default=0)
    room = width - 1 - host - 1 - (kind + 1 if kind else 0)
    fits = max(1, (room - 1) // cell)
    cells = min(most, fits)
    first = 0
    if most > fits:
        first = max(0, min(column - fits // 2, most - fits))
    left = room - cells * cell - 2
    mean = left >= _MEAN
    spark = min(_SPARK_MOST, left - _MEAN - 2)
    return Layout(host, kind, cell, first, cells, most, max(0, spark), mean)


def grid_header(layout: Layout, width: int) -> Line:
    """The place of each GPU above its cells; nvidia-smi's own number may be another."""
    text = " " + fit("NODE", layout.host) + " "
    if not layout.most:
        return cut_line(((text, "label"),), width)
    if layout.kind:
        text += fit("MODEL", layout.kind) + " "
    for index in range(layout.first, layout.first + layout.cells):
        before = "‹" if index == layout.first and layout.first else " "
        text += before + f"{index:>{layout.cell - 2}} "
    end = layout.first + layout.cells
    text += "›" if end < layout.most else " "
    if layout.mean:
        text += f"{'MEAN':>{_MEAN - 1}} "
    if layout.spark >= SPARK_LEAST:
        text += " " + fit("LAST MINUTES", layout.spark)
    return cut_line(((text.rstrip(), "label"),), width)


def row_line(
    row: GridRow,
    layout: Layout,
    metric: GpuMetric,
    width: int,
    now: datetime,
    *,
    column: int | None,
    trend: str = "",
) -> Line:
    """One node. ``column`` is the cell under the cursor, in brackets; None: another row's."""
    spans: list[Span] = [
        (">" if column is not None else " ", ""),
        (fit(visible(row.host), layout.host) + " ", "strong" if row.answered else "dim"),
    ]
    if layout.kind:
        spans.append((fit("+".join(row.kinds) or DASH, layout.kind) + " ", "dim"))
    words, role = row_words(row, now)
    if not row.cells:
        spans.append((words, role))
        return cut_line(tuple(spans), width)
    old = row.look is not None and is_old(row.look, now)
    for index in range(layout.first, layout.first + layout.cells):
        cell = row.cells[index] if index < len(row.cells) else None
        spans.append((_lead(row, index, column), ""))
        if cell is None:
            spans.append((" " * (layout.cell - 1), ""))
            continue
        text = f"{cell.text:>{layout.cell - 2}}{cell.sign}"
        spans.append((text, "dim" if old else cell.role))
    end = layout.first + layout.cells
    spans.append(("]" if column == end - 1 else "›" if end < len(row.cells) else " ", ""))
    if words and role != "dim":
        spans += [(" ", ""), (words, role)]
        return cut_line(tuple(spans), width)
    if layout.mean:
        mean = DASH if row.mean is None else short_value(metric, row.mean)
        spans.append((f"{mean:>{_MEAN - 1}} ", "strong"))
    if words:
        spans += [(" ", ""), (words, role)]
    elif layout.spark >= SPARK_LEAST:
        spans.append((" " + trend, "good"))
    return cut_line(tuple(spans), width)


def _lead(row: GridRow, index: int, column: int | None) -> str:
    if index == column:
        return "["
    if column is not None and index == column + 1:
        return "]"
    return "|" if _other_kind(row, index) else " "


def _other_kind(row: GridRow, index: int) -> bool:
    """Does another model than the one before stand here?"""
    if not 0 < index < len(row.cells) or len(row.kinds) < 2:
        return False
    one, other = row.cells[index - 1].gpu, row.cells[index].gpu
    return one is not None and other is not None and one.name != other.name


def row_words(row: GridRow, now: datetime) -> Span:
    """Why it failed, when it is tried again and how old the values are, in short."""
    look = row.look
    if look is None or (look.failure is None and not is_stale(look, now)):
        return (row.words, row.role)
    said: list[str] = []
    if row.cells and look.gpus_at is not None:
        said.append(f"{ago_text((now - look.gpus_at).total_seconds())} old")
    if look.failure is None:
        return (f"! {said[0]}" if said else row.words, "warn")
    if look.next_at is not None:
        said.append(next_try(look.next_at, now))
    head = " · ".join(said)
    return (f"! {head}{': ' if head else ''}{visible(look.failure.sentence)}", "bad")


def next_try(at: datetime, now: datetime) -> str:
    """``again in 40 s``."""
    wait = (at - now).total_seconds()
    return f"again in {ago_text(wait)}" if wait > 0 else "trying again"


def row_tick(row: GridRow, now: datetime) -> str:
    """Changes exactly when time alone changes what the row shows."""
    return row_words(row, now)[0]


def legend_line(rows: Iterable[GridRow], width: int) -> Line:
    """What the signs say that are to be seen."""
    used = frozenset().union(*(row.signs for row in rows))
    parts = [f"{sign} {says}" for sign, says in LEGEND if sign in used]
    return cut_line((("   ".join(parts), "dim"),), width) if parts else ()
