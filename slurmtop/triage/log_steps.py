"""When a job made its last progress, by its logs: where one tells steps it is a step, no byte."""

from collections.abc import Iterable
from datetime import datetime

from slurmtop.model.facts import LogFacts, LogStatus


def step_behind(logs: Iterable[LogFacts]) -> LogFacts | None:
    """The freshest log that goes on without a new step; None where one moves, or none has steps."""
    steps = _with_steps(logs)
    if not steps or any(log.left_behind is None for log in steps):
        return None
    return max(steps, key=_written)


def written_at(logs: Iterable[LogFacts]) -> datetime | None:
    """When the job wrote last as far as that is a sign of life: to a log whose steps move; to any
    where none tells steps. None where that is not known: where its steps were left behind, and
    where the last word is Slurm's, and not the job's own."""
    read = [log for log in logs if log.status is LogStatus.READ and log.mtime is not None]
    steps = _with_steps(read)
    moving = [log for log in steps if log.left_behind is None] if steps else read
    times = [log.mtime for log in moving if log.mtime is not None and not _by_slurm(log)]
    return max(times, default=None)


def last_progress(logs: Iterable[LogFacts]) -> datetime | None:
    """The time of the last progress: only a step that nothing was written after has one."""
    known = tuple(logs)
    at = written_at(known)
    return None if at is None or any(_more_than_step(log, at) for log in known) else at


def _more_than_step(log: LogFacts, at: datetime) -> bool:
    return log.mtime == at and log.progress is not None and log.last_line != log.progress.line


def _with_steps(logs: Iterable[LogFacts]) -> list[LogFacts]:
    return [
        log
        for log in logs
        if log.status is LogStatus.READ
        and log.mtime is not None
        and (log.progress is not None or log.left_behind is not None)
    ]


def _by_slurm(log: LogFacts) -> bool:
    return log.slurm_line is not None and log.slurm_line == log.last_line


def _written(log: LogFacts) -> float:
    return log.mtime.timestamp() if log.mtime is not None else 0.0
