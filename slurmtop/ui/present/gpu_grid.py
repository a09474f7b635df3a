"""The grid of a job's GPUs as data: a row a node, a cell a GPU, with value and sign. Pure.

Signs carry the meaning, colours only repeat it. A row is built when its node has news; what
ticks (ages, the next try) is put in when it is painted (``gpu_lines``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from slurmtop.model.gpu import GpuSample, Level
from slurmtop.model.look import HostLook
from slurmtop.model.nic import NicPort
from slurmtop.model.text import visible
from slurmtop.model.units import bytes_text
from slurmtop.store.gpu_metrics import METRICS, GpuMetric
from slurmtop.triage.gpu_share import NOT_TOLD, Attributed
from slurmtop.triage.gpu_work import GpuRef, Odd, Work, ref_of, work_of
from slurmtop.triage.gpus import judge_gpu
from slurmtop.ui.present.spans import Span

_GIB = float(1 << 30)
#: Values older than this are told to be old.
STALE_S = 30.0
DASH = "–"
ODD, TROUBLE, WARNING, WAITS, IDLE = "!", "!", "*", "~", "·"
LOST, UNKNOWN, NO_VALUE = "×", "?", DASH
#: The ports of the nodes' network cards, both directions together: no number of a GPU.
NETWORK = GpuMetric(
    id="network",
    label="network ports",
    unit="bytes/s",
    pick=lambda _gpu: None,
    format=lambda value: f"{bytes_text(value)}/s",
    least=_GIB,
)
#: What ``m`` goes through.
SHOWN = (*METRICS, NETWORK)
_MAKERS = frozenset({"nvidia", "amd", "tesla", "instinct", "quadro", "geforce"})


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """``gpu`` is None for a card that is lost or of which nothing is known, and where the cells
    are the ports of the node's network cards (``port``)."""

    gpu: GpuSample | None
    text: str
    sign: str = " "
    role: str = ""
    ref: GpuRef | None = None
    odd: Odd | None = None
    port: NicPort | None = None


@dataclass(frozen=True, slots=True, eq=False)
class GridRow:
    """One node. ``words`` stand in the place of cells, or behind them where values are old.

    ``kinds`` are the models on it. ``mean`` is over the cells that have the metric. ``seen`` are
    the job's GPUs there whose values are known, whatever the cells show.
    """

    host: str
    look: HostLook | None
    cells: tuple[Cell, ...] = ()
    kinds: tuple[str, ...] = ()
    mean: float | None = None
    words: str = ""
    role: str = ""
    seen: tuple[tuple[GpuRef, GpuSample], ...] = ()

    @property
    def signs(self) -> frozenset[str]:
        return frozenset(cell.sign for cell in self.cells)

    @property
    def samples(self) -> tuple[GpuSample, ...]:
        return tuple(gpu for _, gpu in self.seen)

    @property
    def answered(self) -> bool:
        """Has it given values, and does it still? Whose they are is another question."""
        look = self.look
        if look is None or look.failure is not None:
            return False
        return bool(self.cells) or (look.gpus is not None and look.gpus.answered)


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
        if mine.says == NOT_TOLD and look.processes is None and look.failure is None:
            # Its processes may tell; they are listed while the GPUs are read.
            return GridRow(host, look, words="asking whose its GPUs are …", role="busy")
        return GridRow(host, look, words=mine.says, role="warn")
    samples = sorted(mine.gpus or (), key=_order)
    cells = [_cell(host, gpu, samples, metric, odd or {}) for gpu in samples]
    whole = len(samples) == sum(gpu.slice_id is None for gpu in gpus.samples)
    if whole:
        cells += [Cell(None, "", LOST, "bad") for _ in gpus.lost]
    cells += [Cell(None, "", UNKNOWN, "warn")] * max(0, held - len(cells))
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
    if metric.id == NETWORK.id and cells:
        cells = [_port_cell(port) for port in look.nics or ()] or [Cell(None, "", NO_VALUE, "dim")]
        words = words if gpus.failure is not None else "" if look.nics else "no network card told"
    seen = tuple((ref_of(host, gpu), gpu) for gpu in samples)
    return GridRow(host, look, tuple(cells), kinds, mean, visible(words), role, seen)


def _port_cell(port: NicPort) -> Cell:
    rates = (port.rx_bytes_s, port.tx_bytes_s)
    known = [rate for rate in rates if rate is not None]
    text = _rate(sum(known)) if len(known) == len(rates) else ""
    if port.works is False:
        return Cell(None, text, LOST, "bad", port=port)
    if not text:
        return Cell(None, "", UNKNOWN, "warn", port=port)
    return Cell(None, text, " ", "good", port=port)


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
    gpus = None if row.look is None else row.look.gpus
    if gpus is not None and gpus.lost:
        # A card that is lost here may be the job's one of which nothing is known.
        bad += sum(cell.gpu is None and cell.sign == UNKNOWN for cell in row.cells)
    odd = max((abs(cell.odd.value - cell.odd.usual) for cell in row.cells if cell.odd), default=0.0)
    fails = row.look is not None and (row.look.failure is not None or not row.cells)
    away = 0.0
    if row.mean is not None:
        away = usual - row.mean if metric.low_is_bad else row.mean - usual
    return (-bad, -odd, not fails, -away)


def is_stale(look: HostLook, now: datetime) -> bool:
    """Are its values too old to be taken for now?"""
    return look.gpus_at is not None and (now - look.gpus_at).total_seconds() > STALE_S


def is_old(look: HostLook, now: datetime) -> bool:
    """Does it fail, or has it said nothing new for too long?"""
    return look.failure is not None or is_stale(look, now)
