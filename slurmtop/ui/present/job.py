"""A job's header and the moments, limits and amounts in it, as lines of spans. Pure.

Nothing that ticks is stored: elapsed, left, GPU-hours and ages are worked out from
timestamps at ``now``. What Slurm did not say is a dash, never 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from slurmtop.model.job import Job, JobDetail, JobState, LimitKind, Phase, TimeLimit, Tres
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, clock_text, count_text, plural
from slurmtop.ui.present.spans import Line, Span, cut_line, ends, join, join_with_slack

HEADER_LINES = 5
DASH = "–"
#: Data from further in the future than this: the clock of this machine stepped back.
CLOCK_SLACK_S = 5.0

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_WORDS = {
    "PENDING": "waits in the queue",
    "RUNNING": "running",
    "SUSPENDED": "suspended",
    "COMPLETED": "completed",
    "CANCELLED": "cancelled",
    "FAILED": "failed",
    "TIMEOUT": "ended at its time limit",
    "NODE_FAIL": "ended, a node died",
    "PREEMPTED": "pushed out by another job",
    "BOOT_FAIL": "ended, its nodes did not boot",
    "DEADLINE": "ended, its deadline cannot be met",
    "OUT_OF_MEMORY": "ended, out of memory",
    "COMPLETING": "ending, nodes are being cleaned",
    "STAGE_OUT": "ending, data is copied out",
    "CONFIGURING": "starting, nodes are being prepared",
    "EXPEDITING": "being put back in the queue",
    "RESIZING": "running, changes its size",
    "REQUEUED": "being put back in the queue",
    "REQUEUE_FED": "being put back in the queue",
    "REQUEUE_HOLD": "put back in the queue and held",
    "SPECIAL_EXIT": "put back in the queue and held (special exit)",
    "STOPPED": "stopped, keeps its nodes",
    "REVOKED": "started on another cluster",
    "RESV_DEL_HOLD": "held, its reservation is gone",
    "SIGNALING": "running, a signal is on its way",
}

_ROLES = {
    Phase.PENDING: "wait",
    Phase.RUNNING: "good",
    Phase.SUSPENDED: "warn",
    Phase.ENDING: "busy",
    Phase.COMPLETED: "good",
    Phase.FAILED: "bad",
    Phase.CANCELLED: "warn",
    Phase.ELSEWHERE: "dim",
    Phase.UNKNOWN: "warn",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCard:
    """What the header shows. ``job`` is None while nothing is known of ``asked``.

    ``sampled_at`` is when the queue last showed the job; ``detail`` comes from ``scontrol
    show job`` at ``detail_at``. ``trouble`` is a sentence when the queue cannot be read now;
    ``gone`` means that a good answer of the queue no longer holds the job; ``unknown`` that
    everything was asked and nothing knows it.
    """

    asked: str
    job: Job | None = None
    sampled_at: datetime | None = None
    detail: JobDetail | None = None
    detail_at: datetime | None = None
    trouble: str | None = None
    gone: bool = False
    unknown: bool = False
    stale_after_s: float = 60.0
    still_at: datetime | None = None
    """The moment at which what ticks stands still: up to then it is known; None is now."""


def state_words(state: JobState) -> str:
    """``running``, ``ended at its time limit``; the word itself where it is not known."""
    return _WORDS.get(state.word) or _WORDS.get(state.base or "") or f"state {visible(state.word)}"


def state_span(state: JobState) -> Span:
    return (state_words(state), _ROLES[state.phase])


def moment_text(moment: datetime, now: datetime, zone: tzinfo | None = None) -> str:
    """``14:02:11`` today, ``5 May 14:02`` this year, else ``5 May 2030 14:02``.

    ``zone`` is the viewer's; None is the zone of the machine.
    """
    local, today = moment.astimezone(zone), now.astimezone(zone)
    if local.date() == today.date():
        return f"{local:%H:%M:%S}"
    day = f"{local.day} {_MONTHS[local.month - 1]}"
    if local.year != today.year:
        day = f"{day} {local.year}"
    return f"{day} {local:%H:%M}"


def elapsed_s(card: JobCard, now: datetime) -> float | None:
    """Seconds the job has run; None where it cannot be known. Never negative.

    Slurm's own counter plus the age of that answer is preferred to a difference of dates:
    the clocks of the controller and of this machine may differ.
    """
    job, detail = card.job, card.detail
    if job is None or job.state.phase is Phase.PENDING:
        return None
    counts = job.state.phase in (Phase.RUNNING, Phase.ENDING) and job.state.word != "STOPPED"
    if detail is not None and detail.run_time_s is not None and detail.job.start == job.start:
        since = (now - card.detail_at).total_seconds() if card.detail_at and counts else 0.0
        if counts or detail.job.state == job.state:
            return max(0.0, detail.run_time_s + since)
    if job.used_s is not None:
        return float(job.used_s)
    if job.start is None or job.state.phase is Phase.SUSPENDED:
        return None
    until = job.end if job.state.ended else now
    return max(0.0, (until - job.start).total_seconds()) if until is not None else None


def limit_text(limit: TimeLimit) -> str:
    """``1-00:00:00``, ``no limit``, ``over a year``, ``the partition's``, or a dash."""
    if limit.kind is LimitKind.SECONDS and limit.seconds is not None:
        return clock_text(limit.seconds)
    return {
        LimitKind.UNLIMITED: "no limit",
        LimitKind.OVER_A_YEAR: "over a year",
        LimitKind.PARTITION_DEFAULT: "the partition's",
    }.get(limit.kind, DASH)


def gpu_hours(gpus: int | None, seconds: float | None) -> float | None:
    """GPUs times hours; None where either is unknown."""
    return None if gpus is None or seconds is None else gpus * seconds / 3600


def gpu_hours_text(hours: float | None) -> str:
    """``0.4 GPU-hours``, ``1,204 GPU-hours``, ``GPU-hours unknown``."""
    if hours is None:
        return "GPU-hours unknown"
    if hours and hours < 0.05:
        return "under 0.1 GPU-hours"
    return f"{hours:,.1f} GPU-hours" if hours < 100 else f"{count_text(round(hours))} GPU-hours"


def tres_text(tres: Tres) -> str:
    """``16 GPUs (h100)``, ``no GPU``, ``GPUs unknown``; slices and shards are named as such."""
    if tres.gpus:
        kinds = ", ".join(
            visible(kind) if len(tres.gpus_by_type) == 1 else f"{count} {visible(kind)}"
            for kind, count in tres.gpus_by_type
        )
        text = plural(tres.gpus, "GPU")
        return f"{text} ({kinds})" if kinds else text
    if tres.slices_by_type:
        return ", ".join(f"{count} slice {visible(kind)}" for kind, count in tres.slices_by_type)
    if tres.shards:
        return plural(tres.shards, "GPU shard")
    if tres.mps:
        return plural(tres.mps, "MPS share")
    return "GPUs unknown" if tres.gpus is None else "no GPU"


def header_lines(
    card: JobCard, now: datetime, width: int, zone: tzinfo | None = None
) -> tuple[Line, ...]:
    """Exactly :data:`HEADER_LINES` lines of at most ``width`` cells."""
    job = card.job
    if job is None:
        lines: tuple[Line, ...] = (
            ends((("Job ", "label"), (visible(card.asked), "strong")), _age(card, now), width),
        )
        return lines + ((),) * (HEADER_LINES - len(lines))
    still = card.still_at or now
    return (
        _title(card, job, width),
        _clock_line(card, job, still, width, zone),
        _place_line(card, job, still, width),
        _account_line(job, width),
        ends(_times(card, job, now, zone), _age(card, now), width),
    )


def _title(card: JobCard, job: Job, width: int) -> Line:
    left: Line = (
        ("Job ", "label"),
        (visible(job.id.text), "strong"),
        ("  ", ""),
        (visible(job.name) or DASH, ""),
    )
    if card.gone:
        state: Line = ((f"last seen {state_words(job.state)}", "warn"),)
    else:
        state = (state_span(job.state),)
    return ends(left, state, width)


def _clock_line(card: JobCard, job: Job, now: datetime, width: int, zone: tzinfo | None) -> Line:
    parts: list[Line] = [((visible(job.user) or DASH, "strong"),)]
    limit = limit_text(job.limit)
    if job.state.phase is Phase.PENDING:
        waited = (now - job.submit).total_seconds() if job.submit else None
        parts.append((("waiting ", "label"), (clock_text(waited) if waited else DASH, "")))
        parts.append((("limit ", "label"), (limit, "")))
        if job.reason:
            parts.append((("reason ", "label"), (visible(job.reason), "wait")))
        return join_with_slack(parts, len(parts) - 1, width)
    ran = elapsed_s(card, now)
    parts.append((("elapsed ", "label"), (DASH if ran is None else clock_text(ran), "")))
    parts.append((("limit ", "label"), (limit, "")))
    if not job.state.ended and not card.gone:
        parts.append(_left(job, ran))
    return join_with_slack(parts, 0, width)


def _left(job: Job, ran: float | None) -> Line:
    if job.limit.kind is not LimitKind.SECONDS or job.limit.seconds is None:
        return ()
    if ran is None:
        return (("left ", "label"), (DASH, ""))
    left = job.limit.seconds - ran
    if left < 0:
        return ((f"over its limit by {clock_text(-left)}", "warn"),)
    return (("left ", "label"), (clock_text(left), "warn" if left < 600 else ""))


def _place_line(card: JobCard, job: Job, now: datetime, width: int) -> Line:
    asks = "asks for " if job.state.phase is Phase.PENDING else ""
    count = DASH + " nodes" if job.node_count is None else plural(job.node_count, "node")
    parts: list[Line] = [((asks, "label"), (count, ""))]
    if job.nodes:
        parts = [((count, ""), (" ", ""), (visible(job.nodes), ""))]
    parts.append(((tres_text(job.tres), ""),))
    if job.state.phase is not Phase.PENDING and job.tres.gpus != 0:
        spent = gpu_hours(job.tres.gpus, elapsed_s(card, now))
        parts.append(((gpu_hours_text(spent), ""), (" spent", "label")))
    return join_with_slack(parts, 0, width)


def _account_line(job: Job, width: int) -> Line:
    return join_with_slack(
        [
            (("partition ", "label"), (_words(job.partitions), "")),
            (("account ", "label"), (visible(job.account or "") or DASH, "")),
            (("qos ", "label"), (visible(job.qos or "") or DASH, "")),
            (("restarts ", "label"), (DASH if job.restarts is None else str(job.restarts), "")),
        ],
        0,
        width,
    )


def _words(words: Sequence[str]) -> str:
    return ", ".join(visible(word) for word in words) or DASH


def _times(card: JobCard, job: Job, now: datetime, zone: tzinfo | None) -> Line:
    def at(moment: datetime | None) -> str:
        return DASH if moment is None else moment_text(moment, now, zone)

    parts: list[Line] = [(("submitted ", "label"), (at(job.submit), ""))]
    if job.state.phase is Phase.PENDING:
        if job.start is not None:
            parts.append((("may start ", "label"), (at(job.start), "")))
        return join(parts)
    parts.append((("started ", "label"), (at(job.start), "")))
    if job.state.ended:
        parts.append((("ended ", "label"), (at(job.end), "")))
    return join(parts)


def _age(card: JobCard, now: datetime) -> Line:
    """How old the data is; an outage and a job that is gone each in their own words."""
    if card.sampled_at is None and card.unknown and not card.trouble:
        return (("no record of it was found", "warn"),)
    if card.sampled_at is None:
        return ((card.trouble or "asking Slurm …", "bad" if card.trouble else "busy"),)
    age = (now - card.sampled_at).total_seconds()
    if age < -CLOCK_SLACK_S:
        return (("! age of the data unknown: the clock stepped back", "bad"),)
    if card.trouble:
        return ((f"! no answer, data {ago_text(age)} old", "bad"),)
    if card.gone:
        return ((f"left the queue, seen {ago_text(age)} ago", "warn"),)
    if age > card.stale_after_s:
        return ((f"! data {ago_text(age)} old", "warn"),)
    return ((f"data {ago_text(age)} old", "dim"),)


def expected_start_text(moment: datetime | None, now: datetime, zone: tzinfo | None = None) -> str:
    """What Slurm said when it was asked when a pending job may start."""
    if moment is None:
        return "Slurm names no time at which it may start"
    wait = (moment - now).total_seconds()
    when = moment_text(moment, now, zone)
    if wait <= 0:
        return f"Slurm expected it to start at {when}, which has passed: no promise"
    return f"Slurm expects it to start at {when}, in {ago_text(wait)}: a guess, not a promise"


def tab_line(names: Sequence[str], current: int, width: int) -> Line:
    """The names of the tabs; the one that is shown stands in brackets, alone where there is no
    room for all."""
    if sum(len(name) + 2 for name in names) > width:
        return cut_line(((f"[{names[current]}]", "strong"),), width)
    line: list[Span] = []
    for index, name in enumerate(names):
        chosen = index == current
        line.append((f"[{name}]" if chosen else f" {name} ", "strong" if chosen else "dim"))
    return cut_line(tuple(line), width)


def marks_line(
    *,
    cluster: str,
    demo: str,
    read_only: bool,
    calls: int,
    dry_run: bool = False,
    way: str = "",
) -> Line:
    """What must be in sight on every screen: a demo, read-only, how nodes are reached (once that
    is known), the calls that were made."""
    parts: list[Line] = []
    if demo:
        parts.append(((f"DEMO {visible(demo)}, simulated", "warn"),))
    if read_only:
        parts.append((("read-only", "warn"),))
    if dry_run:
        parts.append((("DRY RUN", "warn"),))
    if cluster:
        parts.append(((visible(cluster), "dim"),))
    if way:
        parts.append(((f"via {way}", "dim"),))
    parts.append(((f"{calls} calls/min", "dim"),))
    return join(parts)
