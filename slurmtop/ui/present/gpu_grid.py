"""The grid of a job's GPUs: a row a node, a cell a GPU, with value and sign. Pure.

Signs carry the meaning, colours only repeat it. A row is built when its node has news; what
ticks (ages, the next try) is put in when it is painted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from slurmtop.model.gpu import GpuSample, Level
from slurmtop.model.look import HostLook
from slurmtop.model.text import cell_width, fit, visible
from slurmtop.model.units import ago_text
from slurmtop.store.gpu_metrics import GpuMetric
from slurmtop.triage.gpu_share import Attributed
from slurmtop.triage.gpu_work import GpuRef, Odd, Work, ref_of, work_of
from slurmtop.triage.gpus import judge_gpu
from slurmtop.ui.present.spans import Line, Span, cut_line

#: Values older than this are told to be old.
STALE_S = 30.0
DASH = "–"
ODD, TROUBLE, WARNING, WAITS, IDLE = "!", "!", "*", "~", "·"
LOST, UNKNOWN, NO_VALUE = "×", "?", DASH
#: What each sign says, in the order of the legend.
LEGEND = (
    (ODD, "odd one or in trouble"),
    (WARNING, "has a warning"),
    (WAITS, "full, but at low power: may only wait"),
    (IDLE, "idle"),
    (LOST, "lost"),
    (UNKNOWN, "unknown"),
    (NO_VALUE, "has no such value"),
)
_HOST_MOST = 16
_KIND_MOST = 12
_MEAN = 6
SPARK_LEAST, _SPARK_MOST = 8, 30
_GIB = float(1 << 30)
_MAKERS = frozenset({"nvidia", "amd", "tesla", "instinct", "quadro", "geforce"})


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """``gpu`` is None for a card that is lost or of which nothing is known."""

    gpu: GpuSample | None
    text: str
    sign: str = " "
    role: str = ""
    ref: GpuRef | None = None
    odd: Odd | None = None


@dataclass(frozen=True, slots=True, eq=False)
class GridRow:
    """One node. ``words`` stand in the place of cells, or behind them where values are old.

    ``kinds`` are the models on it. ``mean`` is over the cells that have the metric.
    """

    host: str
    look: HostLook | None
    cells: tuple[Cell, ...] = ()
    kinds: tuple[str, ...] = ()
    mean: float | None = None
    words: str = ""
    role: str = ""

    @property
    def signs(self) -> frozenset[str]:
        return frozenset(cell.sign for cell in self.cells)

    @property
    def samples(self) -> tuple[GpuSample, ...]:
        return tuple(cell.gpu for cell in self.cells if cell.gpu is not None)

    @property
    def seen(self) -> tuple[tuple[GpuRef, GpuSample], ...]:
        """The GPUs whose values are known."""
        return tuple(
            (cell.ref, cell.gpu)
            for cell in self.cells
            if cell.gpu is not None and cell.ref is not None
        )

    @property
    def answered(self) -> bool:
        """Has it given values, and does it still?"""
        return bool(self.cells) and self.look is not None and self.look.failure is None


def build_row(
    host: str,
    look: HostLook | None,
    mine: Attributed | None,
    metric: GpuMetric,
    odd: Mapping[GpuRef, Odd] | None = None,
    *,
    held: int = 0,
) -> GridRow:
    """A node's row. ``mine``: which of its GPUs are the job's; ``held``: how many it holds there,
    0 where that is not known. What is not seen of these is unknown, never idle."""
    if look is None or (look.gpus is None and look.failure is None):
        return GridRow(host, look, words=f"asking {visible(host)} …", role="busy")
    gpus = look.gpus
    if gpus is None or mine is None:
        return GridRow(host, look, role="bad")
    if mine.gpus is None and gpus.samples:
        return GridRow(host, look, words=mine.says, role="warn")
    samples = sorted(mine.gpus or (), key=_order)
    cells = [_cell(host, gpu, samples, metric, odd or {}) for gpu in samples]
    whole = len(samples) == sum(gpu.slice_id is None for gpu in gpus.samples)
    if whole:
        cells += [Cell(None, "", LOST, "bad") for _ in gpus.lost]
    missing = held - len(cells)
    cells += [Cell(None, "", UNKNOWN, "warn")] * max(0, missing if whole else 0)
    words = mine.says
    if not cells and look.failure is None:
        words = gpus.failure.sentence if gpus.failure is not None else "no GPU is visible there"
    elif gpus.failure is not None and look.failure is None:
        words = gpus.failure.sentence
    elif not words:
        words = _mig_words(samples)
    values = [value for gpu in samples if (value := metric.pick(gpu)) is not None]
    mean = sum(values) / len(values) if values else None
    kinds = tuple(dict.fromkeys(kind_text(gpu.name) for gpu in samples))
    role = "warn" if words and gpus.failure is not None else "dim"
    return GridRow(host, look, tuple(cells), kinds, mean, visible(words), role)


def _order(gpu: GpuSample) -> tuple[bool, int, str]:
    number = gpu.index if gpu.index is not None else gpu.dcgm_id
    return (number is None, number or 0, gpu.uuid or "")


def _cell(
    host: str,
    gpu: GpuSample,
    neighbours: Sequence[GpuSample],
    metric: GpuMetric,
    odd: Mapping[GpuRef, Odd],
) -> Cell:
    ref = ref_of(host, gpu)
    value = metric.pick(gpu)
    text = short_value(metric, value) if value is not None else ""
    level, stands_out = judge_gpu(gpu, neighbours).level, odd.get(ref)
    sign, role = " ", ""
    if level is Level.CRITICAL:
        sign, role = TROUBLE, "bad"
    elif stands_out is not None:
        sign, role = ODD, "warn"
    elif value is None:
        sign, role = _no_value(gpu, metric)
        text = "MIG" if "(MIG)" in metric.text(gpu) else text
    elif level is Level.WARNING:
        sign, role = WARNING, "warn"
    elif (work := work_of(gpu)) in (Work.WAITS, Work.PERHAPS_WAITS):
        sign, role = WAITS, "wait"
    elif work is Work.IDLE:
        sign, role = IDLE, "dim"
    elif work in (Work.COMPUTES, Work.BUSY, Work.LIKELY_BUSY):
        role = "good"
    return Cell(gpu, text, sign, role, ref, stands_out)


def _no_value(gpu: GpuSample, metric: GpuMetric) -> Span:
    """A metric that is not there is told from one whose sensor gives words."""
    broken = any("unknown" in text.casefold() or "err" in text.casefold() for _, text in gpu.words)
    return (UNKNOWN, "warn") if broken else (NO_VALUE, "dim")


def _mig_words(samples: Sequence[GpuSample]) -> str:
    """What a card in slices can tell: its power, never a utilisation."""
    cards = [gpu for gpu in samples if gpu.mig]
    if not cards:
        return ""
    known = [gpu.power_w for gpu in cards if gpu.power_w is not None]
    power = f", {sum(known):,.0f} W" if len(known) == len(cards) else ""
    return f"utilisation n/a (MIG){power}"


def short_value(metric: GpuMetric, value: float) -> str:
    """At most five cells, without the unit: that stands in the title of the grid."""
    if metric.unit == "share":
        return "100+" if value > 1 else f"{100 * value:.0f}"
    if metric.unit == "bytes/s":
        return _rate(value)
    return f"{value:.0f}"


def _rate(value: float) -> str:
    for size, unit in ((_GIB, "G"), (_GIB / 1024, "M"), (1024.0, "K")):
        if value >= size:
            return (
                f"{value / size:.0f}{unit}" if value >= 10 * size else f"{value / size:.1f}{unit}"
            )
    return f"{value:.0f}"


def metric_title(metric: GpuMetric) -> str:
    """``utilisation %``, ``SM activity %``, ``NVLink B/s``."""
    unit = {"share": "%", "bytes/s": "B/s", "C": "°C"}.get(metric.unit, metric.unit)
    return f"{metric.label} {unit}"


def kind_text(name: str | None) -> str:
    """``H100`` out of ``NVIDIA H100 80GB HBM3``; the whole name where it has no such word."""
    if not name:
        return "?"
    words = [word for word in visible(name).split() if word.casefold() not in _MAKERS]
    for index, word in enumerate(words):
        if any(char.isdigit() for char in word):
            short = word.split("-")[0]
            before = words[index - 1] if index else ""
            return f"{before} {short}" if short.isdigit() and before else short
    return " ".join(words) or visible(name)


def sort_rows(rows: Iterable[GridRow], metric: GpuMetric, *, worst_first: bool) -> list[GridRow]:
    """In the order of the nodes, or the stragglers first: nodes with cards in trouble or lost,
    then those with odd GPUs, those that fail, and then by their distance from the usual mean."""
    kept = list(rows)
    if not worst_first:
        return kept
    means = [row.mean for row in kept if row.mean is not None]
    usual = median(means) if means else 0.0
    return sorted(kept, key=lambda row: _badness(row, metric, usual))


def _badness(row: GridRow, metric: GpuMetric, usual: float) -> tuple[float, ...]:
    bad = sum(cell.role == "bad" for cell in row.cells)
    odd = max((abs(cell.odd.value - cell.odd.usual) for cell in row.cells if cell.odd), default=0.0)
    fails = row.look is not None and (row.look.failure is not None or not row.cells)
    away = 0.0
    if row.mean is not None:
        away = usual - row.mean if metric.low_is_bad else row.mean - usual
    return (-bad, -odd, not fails, -away)


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
        (fit(visible(row.host), layout.host) + " ", "strong" if row.answered else ""),
    ]
    if layout.kind:
        spans.append((fit("+".join(row.kinds) or DASH, layout.kind) + " ", "dim"))
    words, role = row_words(row, now)
    if not row.cells:
        spans.append((words, role))
        return cut_line(tuple(spans), width)
    old = row.look is not None and row.look.failure is not None
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


def is_stale(look: HostLook, now: datetime) -> bool:
    """Are its values too old to be taken for now?"""
    return look.gpus_at is not None and (now - look.gpus_at).total_seconds() > STALE_S


def row_tick(row: GridRow, now: datetime) -> str:
    """Changes exactly when time alone changes what the row shows."""
    return row_words(row, now)[0]


def legend_line(rows: Iterable[GridRow], width: int) -> Line:
    """What the signs say that are to be seen."""
    used = frozenset().union(*(row.signs for row in rows))
    parts = [f"{sign} {says}" for sign, says in LEGEND if sign in used]
    return cut_line((("   ".join(parts), "dim"),), width) if parts else ()
