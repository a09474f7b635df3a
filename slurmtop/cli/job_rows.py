"""Jobs as lines of plain text and as JSON. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from slurmtop.cli.columns import column_lines, short_cell
from slurmtop.cli.masked import masked, masked_or_none
from slurmtop.model.job import Job, LimitKind, Phase, TimeLimit
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, clock_text, plural
from slurmtop.parse.slurm.exit_codes import explain_job_exit
from slurmtop.store.query import Query
from slurmtop.store.query_keys import Expand, Seen, search_text

JOBS_SCHEMA = "slurmtop.jobs/1"
_HEADS = ("JOB", "STATE", "USER", "NAME", "GPUS", "NODES", "TIME", "LEFT", "WHERE OR WHY")
#: Columns of numbers stand at the right.
_RIGHT = frozenset({"GPUS", "NODES", "TIME", "LEFT"})
_MOST_CELLS = {"STATE": 13, "USER": 16, "NAME": 32}
_HELD_NODES = (Phase.RUNNING, Phase.SUSPENDED, Phase.ENDING)
_ORDER = {
    Phase.RUNNING: 0,
    Phase.SUSPENDED: 0,
    Phase.ENDING: 0,
    Phase.PENDING: 1,
}


def elapsed_s(job: Job, now: datetime) -> float | None:
    """Seconds it has run or ran; None for a job that waits, or where Slurm did not say."""
    if job.start is None or job.state.phase is Phase.PENDING:
        return None
    ended = job.state.ended or job.state.phase is Phase.ENDING
    end = job.end if ended else now
    return max(0.0, (end - job.start).total_seconds()) if end is not None else None


def left_s(job: Job, now: datetime) -> float | None:
    """Seconds to its time limit; negative past it; None without one, or when it is not running."""
    if job.state.phase not in _HELD_NODES or job.state.phase is Phase.ENDING:
        return None
    if job.limit.kind is not LimitKind.SECONDS or job.end is None:
        return None
    return (job.end - now).total_seconds()


def in_order(jobs: Sequence[Job]) -> list[Job]:
    """What runs first, then what waits, then the rest; newest first within each."""
    return sorted(
        jobs,
        key=lambda job: (
            _ORDER.get(job.state.phase, 2),
            -(int(job.id.base) if job.id.base.isdigit() else 0),
            job.id.task if job.id.task is not None else -1,
            job.id.het_offset or 0,
        ),
    )


def filtered(jobs: Sequence[Job], query: Query, now: datetime, expand: Expand) -> list[Job]:
    """The jobs that match, in order."""
    if not query:
        return list(jobs)
    return [job for job in jobs if query.matches(Seen(job, search_text(job), now, False, expand))]


def table_lines(jobs: Sequence[Job], now: datetime) -> list[str]:
    """The jobs as columns, the titles first. The last column is never cut."""
    return column_lines([_HEADS, *(_cells(job, now) for job in jobs)], _RIGHT)


def _cells(job: Job, now: datetime) -> tuple[str, ...]:
    ran, left = elapsed_s(job, now), left_s(job, now)
    cells = (
        job.id.text,
        job.state.word,
        job.user,
        job.name,
        _count(job.tres.gpus),
        _count(job.node_count),
        clock_text(ran) if ran is not None else "-",
        (clock_text(left) if left >= 0 else "over") if left is not None else "-",
        _where_or_why(job) or "-",
    )
    return tuple(
        short_cell(visible(text), _MOST_CELLS.get(head)) or "-"
        for head, text in zip(_HEADS, cells, strict=True)
    )


def _where_or_why(job: Job) -> str | None:
    if job.state.ended:
        return explain_job_exit(job).short
    return job.nodes if job.state.phase in _HELD_NODES and job.nodes else job.reason


def _count(value: int | None) -> str:
    return str(value) if value is not None else "-"


def summary_line(
    jobs: Sequence[Job],
    *,
    whose: str,
    sampled_at: datetime,
    now: datetime,
    recorded_at: datetime | None = None,
) -> str:
    """``3 jobs of anna: 2 running, 1 waiting (0 s old)``, or whence where it was recorded."""
    counts: dict[str, int] = {}
    for job in in_order(jobs):
        word = "waiting" if job.state.phase is Phase.PENDING else str(job.state.phase)
        counts[word] = counts.get(word, 0) + (job.id.tasks.count if job.id.tasks else 1)
    parts = ", ".join(f"{count} {word}" for word, count in counts.items())
    age = f"{ago_text((now - sampled_at).total_seconds())} old"
    if recorded_at is not None:
        age = f"from a recording of {recorded_text(recorded_at)}"
    total = plural(sum(counts.values()), "job")
    return f"{total} of {visible(whose)}{f': {parts}' if parts else ''} ({age})"


def recorded_text(at: datetime) -> str:
    """``2026-11-30 09:12:03``, in the zone of the machine."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def job_dict(job: Job, now: datetime) -> dict[str, Any]:
    """One job for ``--json``: null for what Slurm did not say, ISO 8601 times with offset."""
    ran, left = elapsed_s(job, now), left_s(job, now)
    pending = job.state.phase is Phase.PENDING
    return {
        "id": job.id.text,
        "key": job.key.id,
        "raw_id": job.raw_id,
        "array_id": job.array_id,
        "het_leader": job.het_leader,
        "task": job.id.task,
        "tasks": job.id.tasks.count if job.id.tasks is not None else None,
        "tasks_exact": job.id.tasks.exact if job.id.tasks is not None else None,
        "name": masked(job.name),
        "user": job.user,
        "account": job.account,
        "partitions": list(job.partitions),
        "qos": job.qos,
        "state": job.state.word,
        "phase": str(job.state.phase),
        "reason": job.reason,
        "exit_code": job.exit_code.code if job.exit_code is not None else None,
        "exit_signal": job.exit_code.signal if job.exit_code is not None else None,
        "submit": _iso(job.submit),
        "eligible": _iso(job.eligible),
        "start": None if pending else _iso(job.start),
        "expected_start": _iso(job.start) if pending else None,
        "end": _iso(job.end) if job.state.ended else None,
        "ends_at_latest": _iso(job.end) if left is not None else None,
        "elapsed_s": round(ran) if ran is not None else None,
        "left_s": round(left) if left is not None else None,
        "limit": _limit(job.limit),
        "node_count": job.node_count,
        "nodes": job.nodes,
        "cpus": job.tres.cpus,
        "mem_bytes": job.tres.mem_bytes,
        "gpus": job.tres.gpus,
        "priority": job.priority,
        "restarts": job.restarts,
        "dependency": job.dependency,
        "workdir": job.workdir,
        "stdout": job.stdout,
        "stderr": job.stderr,
        "comment": masked_or_none(job.comment),
    }


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None


def _limit(limit: TimeLimit) -> dict[str, Any]:
    return {"kind": str(limit.kind), "seconds": limit.seconds}
