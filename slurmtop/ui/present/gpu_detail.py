"""The lines below the grid: all that is known of the GPU or the node under the cursor. Pure."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from slurmtop.model.gpu import GpuSample, Level, MigSlice, ratio_text, util_text
from slurmtop.model.nic import NicPort
from slurmtop.model.process import RankProcess, Rung
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, bytes_text
from slurmtop.store.gpu_metrics import GpuMetric
from slurmtop.triage.gpu_work import Work, work_note, work_of
from slurmtop.triage.gpus import judge_gpu, judge_node
from slurmtop.ui.present.gpu_grid import LOST, NO_VALUE, Cell, GridRow, is_old, is_stale
from slurmtop.ui.present.gpu_lines import next_try
from slurmtop.ui.present.spans import Line, Span, cut_line, ends, join, wrap

DETAIL_LINES = 7
_UUID_CHARS = 12
_LEVELS = {Level.OK: "dim", Level.UNKNOWN: "warn", Level.WARNING: "warn", Level.CRITICAL: "bad"}
_WORK: dict[Work, Span] = {
    Work.COMPUTES: ("computes", "good"),
    Work.WAITS: ("~ full, and does nothing: so looks a wait for a peer", "wait"),
    Work.PERHAPS_WAITS: ("~ full at low power: it may only wait for a peer", "wait"),
    Work.FULL: ("full; whether it computes or waits cannot be told", ""),
    Work.BUSY: ("busy", "good"),
    Work.LIKELY_BUSY: ("likely busy, by its power", "good"),
    Work.IDLE: ("· idle", "dim"),
    Work.UNKNOWN: ("what it does cannot be told", "dim"),
}
_GONE = "a card that the driver cannot reach any more: drain the node"
_NOT_KNOWN = "a GPU of this job of which nothing is known here: that does not make it idle"


def detail_lines(
    row: GridRow,
    cell: Cell | None,
    metric: GpuMetric,
    now: datetime,
    width: int,
    *,
    ranks: Sequence[RankProcess] | None = None,
    trend: str = "",
    slices: Sequence[MigSlice] = (),
) -> tuple[Line, ...]:
    """At most :data:`DETAIL_LINES` lines. ``ranks`` None: the processes were not read."""
    trouble = _node_trouble(row, now, width)
    if cell is None or (cell.gpu is None and cell.sign == NO_VALUE):
        # Of the node only: a network card that nobody told of is no GPU that is unknown.
        return tuple((trouble or _node_words(row, width))[:DETAIL_LINES])
    gpu = cell.gpu
    if cell.port is not None:
        return tuple((*_port_lines(row, cell.port, width), *trouble)[:DETAIL_LINES])
    if gpu is None:
        gone = _GONE if cell.sign == LOST else _NOT_KNOWN
        title: Line = ((f"{visible(row.host)}  {cell.sign} ", "strong"), (gone, "bad"))
        return (cut_line(title, width), *trouble[: DETAIL_LINES - 1])
    lines = [
        _title(row, gpu, width, ranks),
        cut_line(_work(row, cell, gpu, metric, now), width),
        cut_line(join(_power(gpu)), width),
        cut_line(join([*_slices(gpu, slices), *_activity(gpu, row)]), width),
        cut_line(join(_memory(gpu)), width),
    ]
    if trend.strip():
        lines.append(cut_line(((f"{metric.label} ", "label"), (trend, "good")), width))
    return tuple((lines[:2] + _findings(gpu, row, width) + trouble + lines[2:])[:DETAIL_LINES])


def _title(row: GridRow, gpu: GpuSample, width: int, ranks: Sequence[RankProcess] | None) -> Line:
    number = gpu.index if gpu.index is not None else gpu.dcgm_id
    left: list[Span] = [
        (f"{visible(row.host)} GPU {'?' if number is None else number}", "strong"),
        (f"  {visible(gpu.name or 'model unknown')}", ""),
        (f"  {short_uuid(gpu.uuid)}", "dim"),
    ]
    return ends(tuple(left), rank_line(ranks, max(10, width // 2)), width)


def short_uuid(uuid: str | None) -> str:
    """``GPU-5f3a9c11…``: enough to tell cards apart."""
    if not uuid:
        return "no UUID"
    shown = visible(uuid)
    return shown if len(shown) <= _UUID_CHARS else f"{shown[:_UUID_CHARS]}…"


def rank_line(ranks: Sequence[RankProcess] | None, width: int) -> Line:
    """``rank 3 (environment) pid 8123``; how a rank was told always stands with it."""
    if ranks is None:
        return (("ranks not known", "dim"),)
    if not ranks:
        return (("no process of the job seen on it", "dim"),)
    parts: list[Line] = []
    for one in ranks:
        if one.rank is None or one.rung is Rung.UNKNOWN:
            parts.append(((f"rank unknown, pid {one.process.pid}", "dim"),))
        else:
            said = f"({one.rung}) pid {one.process.pid}"
            parts.append(((f"rank {one.rank} ", "strong"), (said, "dim")))
    return cut_line(join(parts), width)


def _work(row: GridRow, cell: Cell, gpu: GpuSample, metric: GpuMetric, now: datetime) -> Line:
    """What it does; of values that are old, what it did then."""
    words, role = _WORK[work_of(gpu)]
    look = row.look
    if look is not None and is_old(look, now) and look.gpus_at is not None:
        words, role = f"{ago_text((now - look.gpus_at).total_seconds())} ago: {words}", "dim"
    parts: list[Line] = [((words, role),)]
    if (note := work_note(gpu)) is not None:
        parts.append(((note, "dim"),))
    if cell.odd is not None:
        value, usual = metric.format(cell.odd.value), metric.format(cell.odd.usual)
        parts.append(((f"! the odd one by {metric.label}: {value}, the others {usual}", "warn"),))
    return join(parts)


def _findings(gpu: GpuSample, row: GridRow, width: int) -> list[Line]:
    verdict = judge_gpu(gpu, row.samples)
    if verdict.says is None:
        return []
    says = "; ".join(one.says for one in verdict.findings)
    sign = {Level.CRITICAL: "! ", Level.WARNING: "* "}.get(verdict.level, "")
    return [cut_line(((sign + visible(says), _LEVELS[verdict.level]),), width)]


def _pair(label: str, value: str, role: str = "") -> Line:
    return ((f"{label} ", "label"), (value, role))


def _power(gpu: GpuSample) -> list[Line]:
    parts = [_pair("utilisation", util_text(gpu))]
    if gpu.power_w is not None:
        limit = f" of {gpu.power_limit_w:.0f} W" if gpu.power_limit_w else ""
        share = f" ({ratio_text(gpu.power_share)})" if gpu.power_share is not None else ""
        parts.append(_pair("power", f"{gpu.power_w:.0f} W{limit}{share}"))
    else:
        parts.append(_pair("power", "n/a"))
    clock = "n/a" if gpu.sm_clock_mhz is None else f"{gpu.sm_clock_mhz:,.0f} MHz"
    parts.append(_pair("SM clock", clock))
    if gpu.pstate:
        parts.append(((visible(gpu.pstate), "dim"),))
    return parts


def _activity(gpu: GpuSample, row: GridRow) -> list[Line]:
    """Profiling counters; where nobody counts them, why not."""
    shares = (
        ("SM active", gpu.sm_active),
        ("tensor", gpu.tensor_active),
        ("DRAM", gpu.dram_active),
    )
    parts = [_pair(label, ratio_text(value)) for label, value in shares if value is not None]
    for label, tx, rx in (
        ("NVLink", gpu.nvlink_tx_bytes_s, gpu.nvlink_rx_bytes_s),
        ("PCIe", gpu.pcie_tx_bytes_s, gpu.pcie_rx_bytes_s),
    ):
        if tx is not None or rx is not None:
            parts.append(_pair(label, f"{_rate(tx)} out, {_rate(rx)} in"))
    hints = row.look.hints if row.look is not None else ()
    why = f" ({visible(hints[0])})" if hints else ""
    return parts or [((f"SM activity and NVLink unknown: no profiling counters{why}", "dim"),)]


def _rate(value: float | None) -> str:
    """Whole numbers from a hundred on: both directions have to stand in a line."""
    if value is None:
        return "n/a"
    number, _, unit = bytes_text(value).partition(" ")
    return f"{float(number):.0f} {unit}/s" if float(number) >= 100 else f"{number} {unit}/s"


def _memory(gpu: GpuSample) -> list[Line]:
    used, total = gpu.mem_used_mib, gpu.mem_total_mib
    memory = "n/a"
    if used is not None:
        memory = bytes_text(used * 1024**2)
        if total:
            memory += f" of {bytes_text(total * 1024**2)} ({gpu.mem_percent:.0f} %)"
    heat = "n/a" if gpu.temp_c is None else f"{gpu.temp_c:.0f} °C"
    if gpu.mem_temp_c is not None:
        heat += f", memory {gpu.mem_temp_c:.0f} °C"
    ecc = "n/a" if gpu.ecc_uncorrected is None else f"{gpu.ecc_uncorrected:.0f}"
    return [_pair("memory", memory), _pair("ECC errors", ecc), _pair("temperature", heat)]


def _slices(gpu: GpuSample, slices: Sequence[MigSlice]) -> list[Line]:
    """``MIG 2 × 3g.40gb``: the slices that a card is cut into."""
    own = Counter(one.profile for one in slices if one.parent_uuid in (None, gpu.uuid))
    if not gpu.mig or not own:
        return []
    kinds = ", ".join(f"{count} × {visible(profile)}" for profile, count in own.items())
    return [_pair("MIG", kinds)]


def _port_lines(row: GridRow, port: NicPort, width: int) -> list[Line]:
    """A port of a network card, and in how many ways it can be read."""
    state = visible(port.state or "state unknown").lower()
    title: Line = (
        (f"{visible(row.host)} {visible(port.name)}", "strong"),
        (f"  {port.kind}  {visible(port.speed or '')}", "dim"),
        (f"  {'× ' if port.works is False else ''}{state}", "bad" if port.works is False else ""),
    )
    errors = "n/a" if port.errors is None else f"{port.errors:,}"
    parts = [
        _pair("out", _rate(port.tx_bytes_s)),
        _pair("in", _rate(port.rx_bytes_s)),
        _pair("errors since its driver was loaded", errors, "warn" if port.errors else ""),
    ]
    note = "traffic of NCCL over InfiniBand and RoCE is counted; a rate needs two looks"
    return [cut_line(title, width), cut_line(join(parts), width), cut_line(((note, "dim"),), width)]


def _node_trouble(row: GridRow, now: datetime, width: int) -> list[Line]:
    """The whole sentence of a failure, with the age of what is shown and the next try."""
    look = row.look
    if look is None:
        return []
    if look.failure is None:
        if not is_stale(look, now) or look.gpus_at is None:
            return []
        age = ago_text((now - look.gpus_at).total_seconds())
        return [((f"! nothing new from {visible(row.host)} for {age}", "warn"),)]
    tail: list[str] = []
    if look.gpus_at is not None:
        age = ago_text((now - look.gpus_at).total_seconds())
        tail.append(f"its values are {age} old")
    else:
        tail.append("nothing was read from it yet")
    if look.next_at is not None:
        tail.append(next_try(look.next_at, now))
    if look.failing_since is not None:
        tail.append(f"failing for {ago_text((now - look.failing_since).total_seconds())}")
    sentence = visible(look.failure.sentence)
    host = visible(row.host)
    text = f"! {'' if host in sentence else host + ': '}{sentence} ({'; '.join(tail)})"
    lines: list[Line] = [((piece, "bad"),) for piece in wrap(text, max(20, width))]
    return lines


def _node_words(row: GridRow, width: int) -> list[Line]:
    look = row.look
    lines: list[Line] = [((piece, row.role),) for piece in wrap(row.words, max(20, width))]
    if look is None:
        return lines
    said = list(look.hints)
    if look.gpus is not None:
        said += [one.says for one in judge_node(look.gpus).findings]
    for sentence in said:
        lines += [((piece, "dim"),) for piece in wrap(visible(sentence), max(20, width))]
    return lines
