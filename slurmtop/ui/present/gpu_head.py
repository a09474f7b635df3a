"""What stands above the grid of GPUs, and in its place while there is none. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from slurmtop.model.job import Job, Phase
from slurmtop.model.look import HostLook
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, plural
from slurmtop.store.gpu_metrics import GpuMetric
from slurmtop.triage.gpu_work import JobWork, Odd, WorkVerdict
from slurmtop.ui.present.gpu_grid import (
    LOST,
    NO_VALUE,
    STALE_S,
    UNKNOWN,
    GridRow,
    metric_title,
    short_value,
)
from slurmtop.ui.present.job import state_words
from slurmtop.ui.present.spans import Line, cut_line, ends, join, line_width, wrap

HEAD_LINES = 2
OVER_TEXT = "Its nodes are no longer asked; nothing was seen of its GPUs."


class Why(StrEnum):
    """Why there is no grid, or why it is not kept fresh."""

    NONE = ""
    LOADING = "loading"
    UNKNOWN_JOB = "unknown job"
    WAITS = "waits"
    OVER = "over"
    NO_GPU = "no GPU"
    CANNOT = "cannot"
    RIGHTS = "rights"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHead:
    """``held`` is what Slurm gave the job (:func:`held_text`). Of the rows ``in_turn`` are not kept
    fresh, but looked at one after the other. ``verdict`` is what the GPUs alone
    say of the job, ``odd`` those that stand out by ``metric``."""

    metric: GpuMetric
    held: str
    worst_first: bool = False
    way: str = ""
    verdict: WorkVerdict | None = None
    odd: Sequence[Odd] = ()
    paused: bool = False
    over: bool = False
    in_turn: int = 0
    chart: str = ""


_WORK = {
    JobWork.HEALTHY: ("by their counters the GPUs work", "good"),
    JobWork.HANG: ("hang, by the GPUs and the log", "bad"),
    JobWork.POSSIBLE_HANG: ("possible hang, by the GPUs alone", "warn"),
    JobWork.UNKNOWN: ("", ""),
}


def head_lines(
    head: GpuHead, rows: Sequence[GridRow], now: datetime, width: int
) -> tuple[Line, ...]:
    """Exactly :data:`HEAD_LINES` lines of at most ``width`` cells."""
    title = metric_title(head.metric)
    if head.worst_first:
        title += ", worst first"
    room = max(20, width - len(title) - 1)
    left = join(_summary(head, rows, now, short=False))
    if line_width(left) > room:
        left = join(_summary(head, rows, now, short=True))
    if line_width(left) > room:
        left = cut_line(join(_summary(replace(head, way=""), rows, now, short=True)), room)
    first = ends(left, ((title, "strong"),), width)
    if head.chart:
        return (first, cut_line(((head.chart, "strong"),), width))
    return (first, cut_line(join(_judgement(head, rows)), width))


def _summary(head: GpuHead, rows: Sequence[GridRow], now: datetime, *, short: bool) -> list[Line]:
    answered = [row for row in rows if row.answered]
    where = f"{', ' if short else ' on '}{plural(len(rows), 'node')}"
    parts: list[Line] = [((head.held + where, ""),)]
    whole = len(answered) == len(rows)
    parts.append(((f"{len(answered)} of {len(rows)} answered", "" if whole else "warn"),))
    if 0 < head.in_turn < len(rows) and not (head.over or head.paused):
        live = len(rows) - head.in_turn
        others = f"{live} live" if short else f"{live} watched, the others in turn"
        parts.append(((others, "dim"),))
    if not answered:
        return parts
    values = [
        value for row in rows for _, gpu in row.seen if _known(value := head.metric.pick(gpu))
    ]
    signs = [cell.sign for row in rows for cell in row.cells if cell.gpu is None and not cell.port]
    if lost := signs.count(LOST):
        parts.append(((f"{LOST} {plural(lost, 'GPU')} lost", "bad"),))
    told = all(row.cells for row in rows)
    if whole and told and values and LOST not in signs and UNKNOWN not in signs:
        mean = sum(value for value in values if value is not None) / len(values)
        unit = {"share": " %", "bytes/s": "B/s", "C": " °C"}.get(head.metric.unit)
        text = short_value(head.metric, mean) + (f" {head.metric.unit}" if unit is None else unit)
        parts.append(((f"mean {text}", ""),))
    if head.way:
        parts.append((("" if short else "via ", "dim"), (visible(head.way), "dim")))
    times = [row.look.gpus_at for row in answered if row.look and row.look.gpus_at is not None]
    if times:
        age = (now - min(times)).total_seconds()
        old = age > STALE_S
        text = f"{'! ' if old else ''}{'' if short else 'data '}{ago_text(age)} old"
        parts.append(((text, "warn" if old else "dim"),))
    if head.over:
        parts.append((("over" if short else "the job is over: not asked any more", "warn"),))
    elif head.paused:
        parts.append((("paused" if short else "paused while no key is pressed", "warn"),))
    return parts


def _known(value: float | None) -> bool:
    return value is not None


def _judgement(head: GpuHead, rows: Sequence[GridRow]) -> list[Line]:
    parts: list[Line] = []
    if (untold := no_source_text(head.metric, rows)) is not None:
        parts.append(((untold, "warn"),))
    verdict = head.verdict
    if verdict is not None:
        words, role = _WORK[verdict.state]
        says = visible(verdict.says)
        text = f"{words}: {says}" if words and says else words or says
        if text:
            parts.append(((text, role),))
    if head.odd:
        first = max(head.odd, key=lambda one: abs(one.value - one.usual))
        metric = head.metric
        says = (
            f"! {visible(first.gpu.host)} {first.gpu.name} {metric.format(first.value)},"
            f" the others {metric.format(first.usual)}"
        )
        more = f" and {len(head.odd) - 1} more" if len(head.odd) > 1 else ""
        parts.append(((says + more, "warn"),))
    return parts


def no_source_text(metric: GpuMetric, rows: Sequence[GridRow]) -> str | None:
    """What is said where nodes answered and none of their GPUs has a value; None elsewhere."""
    cells = [cell for row in rows if row.answered for cell in row.cells]
    if not cells or any(cell.sign != NO_VALUE or cell.text for cell in cells):
        return None
    return f"no source here tells {metric.label}"


def why_not(
    job: Job | None, *, mine: bool | None, possible: bool, recorded: bool
) -> tuple[Why, str]:
    """Why no node of ``job`` is asked, and a sentence where that needs one.

    ``mine`` is whether this person may look at its nodes, None where nobody said yet.
    """
    if job is None:
        return Why.UNKNOWN_JOB, ""
    phase, tres = job.state.phase, job.tres
    if phase is Phase.PENDING:
        return Why.WAITS, ""
    if job.state.ended:
        return Why.OVER, ""
    if phase not in (Phase.RUNNING, Phase.SUSPENDED, Phase.ENDING) or not job.nodes:
        return Why.CANNOT, f"Slurm names no nodes of it here: {state_words(job.state)}."
    if tres.gpus == 0 and not (tres.slices_by_type or tres.shards or tres.mps):
        return Why.NO_GPU, ""
    if not possible:
        if recorded:
            return Why.CANNOT, "A recording has no nodes that could be asked."
        return Why.CANNOT, "The settings forbid it (node_access: off), or nothing here can."
    if mine is None:
        return Why.RIGHTS, ""
    if mine:
        return Why.NONE, ""
    owner, name = visible(job.user) or "somebody else", visible(job.id.text)
    return Why.REFUSED, (
        f"This is a job of {owner}: only {owner}, an operator or root may look at its nodes."
        f" They can run: slurmtop gpus {name}"
    )


def notice_lines(why: Why, sentence: str, width: int) -> tuple[Line, ...]:
    """What stands in the place of the grid. Nothing here looks like an idle or an empty node."""
    title, role, more = _NOTICES[why]
    texts = [(title, role), (sentence, ""), (more, "dim")]
    return tuple(
        (("  " + line, role),)
        for text, role in texts
        if text
        for line in wrap(text, max(8, width - 4))
    )


_NOTICES: dict[Why, tuple[str, str, str]] = {
    Why.NONE: ("", "", ""),
    Why.LOADING: ("Loading", "busy", ""),
    Why.UNKNOWN_JOB: ("asking Slurm which nodes it has …", "busy", ""),
    Why.WAITS: ("Not started", "wait", "It has no nodes yet, so there is nothing to look at."),
    Why.OVER: ("Over", "", OVER_TEXT),
    Why.NO_GPU: ("No GPU", "", "Slurm says that this job holds none."),
    Why.CANNOT: ("Nodes are not asked", "warn", "This says nothing about the job's GPUs."),
    Why.RIGHTS: ("asking Slurm whether you may look at this job's nodes …", "busy", ""),
    Why.REFUSED: ("Not yours to look at", "bad", "This says nothing about the job's GPUs."),
}


def way_text(looks: Sequence[HostLook | None]) -> str:
    """How the nodes were reached: ``ssh``, or ``ssh, srun`` where they differ."""
    return ", ".join(sorted({str(look.way) for look in looks if look and look.way is not None}))
