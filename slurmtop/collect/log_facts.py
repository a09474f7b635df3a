"""Where the logs of a job are, and what stands at their two ends."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from slurmtop.collect.log_files import checked_stat, log_status
from slurmtop.collect.log_spans import END_BYTES as JUDGED_BYTES
from slurmtop.collect.log_verdict import LogBytes
from slurmtop.model.facts import LogFacts, LogLine, LogStatus, Progress
from slurmtop.model.ids import JobKey
from slurmtop.model.job import AccountingRecord, Job, JobDetail, Phase
from slurmtop.model.ports import FileStat, Runner, RunnerError
from slurmtop.parse.logs.behind import left_behind
from slurmtop.parse.logs.errors import find_first_error, find_slurm_line
from slurmtop.parse.logs.lines import split_lines
from slurmtop.parse.logs.progress import find_progress
from slurmtop.parse.logs.step_lines import step_lines
from slurmtop.parse.slurm.log_paths import expand_log_path

END_BYTES = 64 * 1024
#: A log that was written outside of the run by more than this is some other job's.
_BEFORE_START = timedelta(minutes=1)
_AFTER_END = timedelta(hours=1)


async def read_log_facts(
    runner: Runner, label: str, path: str, *, why: str = "", written: "Span | None" = None
) -> LogFacts:
    """The log at ``path``: its first and last 64 KiB, or all of it where it is not longer.

    ``written`` is set for a path that was guessed: a file that was last written outside of it
    belongs to some other job, and then the path is unknown. Never raises for what is wrong with
    the file.
    """
    return (await read_log(runner, label, path, why=why, written=written, most=END_BYTES))[0]


async def read_log(
    runner: Runner,
    label: str,
    path: str,
    *,
    why: str = "",
    written: "Span | None" = None,
    most: int = JUDGED_BYTES,
) -> tuple[LogFacts, LogBytes | None]:
    """As :func:`read_log_facts`, and ``most`` bytes of each end, from the same reads."""
    try:
        stat = await checked_stat(runner, path)
        if written is not None and not written.holds(stat.mtime):
            return LogFacts(label=label, path=None, status=LogStatus.UNKNOWN_PATH), None
        return await _both_ends(runner, label, path, stat, why, most)
    except (OSError, RunnerError) as error:
        status, reason = log_status(error)
        return LogFacts(label=label, path=path, status=status, why=reason), None


async def newer_log_facts(runner: Runner, logs: Sequence[LogFacts]) -> tuple[LogFacts, ...] | None:
    """The logs read again where one of them changed since; None where none did.

    A log that did not change costs one stat. Never raises for what is wrong with a file.
    """
    out = [await _newer(runner, log) for log in logs]
    return tuple(out) if any(new is not old for new, old in zip(out, logs, strict=True)) else None


def errs_anew(old: Sequence[LogFacts], new: Sequence[LogFacts]) -> bool:
    """Is there an error line, or a word of Slurm, that was not there before?"""

    def told(logs: Sequence[LogFacts]) -> list[tuple[object, ...]]:
        return [(one.path, one.first_error, one.late_error, one.slurm_line) for one in logs]

    return told(old) != told(new)


async def _newer(runner: Runner, log: LogFacts) -> LogFacts:
    if log.path is None:
        return log
    try:
        stat = await checked_stat(runner, log.path)
    except (OSError, RunnerError) as error:
        status, reason = log_status(error)
        if status is log.status:
            return log
        return LogFacts(label=log.label, path=log.path, status=status, why=reason)
    if (stat.size, stat.mtime) == (log.size, log.mtime):
        return log
    why = log.why if log.status is LogStatus.READ else ""
    return await read_log_facts(runner, log.label, log.path, why=why)


async def _both_ends(
    runner: Runner, label: str, path: str, stat: FileStat, why: str, most: int
) -> tuple[LogFacts, LogBytes]:
    parts = await _read_ends(runner, path, stat.size, most)
    read = LogBytes(path=path, size=stat.size, year=stat.mtime.year, parts=parts)
    return await _facts_of(label, path, stat, why, read), read


async def _read_ends(
    runner: Runner, path: str, size: int, most: int
) -> tuple[tuple[int, bytes], ...]:
    if size <= 2 * most:
        return ((0, await runner.read(path, 0, size)),)
    head = await runner.read(path, 0, most)
    return ((0, head), (size - most, await runner.read(path, size - most, most)))


async def _facts_of(label: str, path: str, stat: FileStat, why: str, read: LogBytes) -> LogFacts:
    whole = stat.size <= 2 * END_BYTES
    (_, head), (tail_at, tail) = read.parts[0], read.parts[-1]
    head = head if whole else head[:END_BYTES]
    first = split_lines(head)
    last: tuple[LogLine, ...] = ()
    if not whole:
        if not head.endswith(b"\n"):
            first = first[:-1]
        start = max(0, stat.size - END_BYTES - tail_at)
        last = split_lines(tail[start:], offset=tail_at + start, number=None, starts_inside=True)
    # Thousands of lines: other tasks get their turn between the searches.
    await asyncio.sleep(0)
    # Of two ends with a hole between them each is searched for itself.
    error = find_first_error(first) or find_first_error(last)
    await asyncio.sleep(0)
    newest = first if whole else last
    # A counter at the start of a long log is no progress of now.
    progress = find_progress(newest)
    await asyncio.sleep(0)
    return LogFacts(
        label=label,
        path=path,
        status=LogStatus.READ,
        why=why,
        size=stat.size,
        mtime=stat.mtime,
        last_line=_last_line(newest),
        first_error=error,
        slurm_line=find_slurm_line(newest) or find_slurm_line(first),
        progress=progress,
        late_error=_error_after(progress, newest),
        left_behind=left_behind(progress, newest, () if whole else first),
        steps=step_lines(newest, first) if progress is not None else None,
        complete=whole,
    )


def _last_line(lines: Sequence[LogLine]) -> LogLine | None:
    return next((line for line in reversed(lines) if line.text.strip()), None)


def _error_after(progress: Progress | None, lines: Sequence[LogLine]) -> LogLine | None:
    if progress is None:
        return None
    return find_first_error(line for line in lines if line.offset > progress.line.offset)


def same_run(source: Job | AccountingRecord, written: datetime | None) -> bool:
    """May the newest run have written to a log that was last written then?"""
    begun = None if source.state.phase is Phase.PENDING else source.start
    return begun is None or written is None or written >= begun - _BEFORE_START


class Span:
    """When a run wrote. An open end is now; without a start nothing is in it."""

    def __init__(self, start: datetime | None, end: datetime | None) -> None:
        self._start = start
        self._end = end

    def holds(self, at: datetime) -> bool:
        early = self._start is None or at < self._start - _BEFORE_START
        late = self._end is not None and at > self._end + _AFTER_END
        return not early and not late


def log_paths(job: Job | None, detail: JobDetail | None) -> tuple[tuple[str, str | None], ...]:
    """(label, path) of the logs of a job that the controller knows; None: nobody says where."""
    sources = [one for one in (detail.job if detail else None, job) if one is not None]
    if not sources:
        return ()
    best = job or sources[0]
    out = _first_path(sources, "stdout", best)
    err = _first_path(sources, "stderr", best)
    if err is None or err == out:
        return (("stdout", out),)
    return (("stdout", out), ("stderr", err))


def _first_path(sources: Sequence[Job], field: str, job: Job) -> str | None:
    for source in sources:
        pattern = source.stdout if field == "stdout" else source.stderr
        path = None if pattern is None else expand_log_path(pattern, job)
        if path is not None:
            return path
    return None


def recorded_log(
    record: AccountingRecord, steps: Sequence[AccountingRecord], cluster: str
) -> tuple[str | None, "Span | None"]:
    """Where the log of a forgotten job is, and when it was written if the path is a guess.

    Accounting keeps the path since 24.05. Before, Slurm's default name in the work directory is
    tried for batch jobs.
    """
    job = Job(
        key=JobKey(cluster, record.id.stable),
        id=record.id,
        raw_id=record.raw_id,
        name=record.name,
        user=record.user or "",
        state=record.state,
        nodes=record.nodes,
        workdir=record.workdir,
        name_unsure=record.name_unsure,
    )
    if record.stdout is not None:
        return expand_log_path(record.stdout, job), None
    if not any(step.id.step == "batch" for step in steps):
        return None, None
    pattern = "slurm-%A_%a.out" if record.id.task is not None else "slurm-%j.out"
    return expand_log_path(pattern, job), Span(record.start, record.end)
