"""The earlier runs of a job that was restarted, and whether they all failed in the same way.

Accounting tells the runs apart (``sacct -D``: one row a run), and the log what each of them
said, where it was appended to. Measured on 22.05.8: every run but the newest has the word
REQUEUED; one that had failed by itself keeps its exit code; of one that was requeued from
outside the steps are CANCELLED; a job that requeues itself after a failure has a FAILED step.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from posixpath import basename

from slurmtop.collect.asking import slurm_id
from slurmtop.collect.clock import within
from slurmtop.collect.log_facts import log_paths
from slurmtop.collect.log_files import checked_stat
from slurmtop.collect.meant import belongs, same_job
from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.sacct import Accounting
from slurmtop.collect.scontrol import fetch_job_detail
from slurmtop.model.facts import LogLine
from slurmtop.model.job import AccountingRecord, ExitCode, Job
from slurmtop.model.ports import Clock, Runner, RunnerError
from slurmtop.parse.logs.attempts import match_ends, split_attempts
from slurmtop.parse.logs.errors import find_first_error, only_reports_an_end
from slurmtop.parse.logs.lines import split_lines
from slurmtop.parse.logs.progress import find_progress
from slurmtop.triage.loops import LOOP_RESTARTS, EndedRun, looping

BUDGET_S = 6.0
#: From the end of a log: as much as it takes to see enough runs, and never more than the last.
_TAIL_BYTES = (256 * 1024, 1024 * 1024, 4 * 1024 * 1024)
_BLOCK_BYTES = 256 * 1024
_END_MARK = b" CANCELLED AT "
#: Signals with which Slurm itself ends a run.
_FROM_OUTSIDE = (9, 15, 18)
_FAILED = ("FAILED", "OUT_OF_MEMORY")


async def read_looping(
    runner: Runner,
    clock: Clock,
    accounting: Accounting | None,
    job: Job,
    *,
    told: Sequence[str] = (),
    budget_s: float = BUDGET_S,
) -> str | None:
    """One sentence where ``job`` keeps failing in the same way; None where not, or not known.

    A job with fewer restarts than make a loop costs nothing; any other one ``sacct`` and a few
    reads of its log. ``accounting`` None means that it must not be asked. ``told`` are the
    verdicts of its earlier requeues. Never raises.
    """
    if (job.restarts or 0) < LOOP_RESTARTS or job.id.tasks is not None or accounting is None:
        return None
    reading = _read(runner, accounting, job, tuple(told), budget_s)
    try:
        return await within(clock, reading, budget_s, name=f"earlier runs of {job.key.id}")
    except (SourceFailed, RunnerError, OSError, TimeoutError):
        return None


async def _read(
    runner: Runner, accounting: Accounting, job: Job, told: tuple[str, ...], budget_s: float
) -> str | None:
    restarts = job.restarts or 0
    found = await accounting.history(slurm_id(job.id), duplicates=True, timeout_s=budget_s)
    runs = _runs_of(job, found.rows, restarts + 1)
    ended = [_ended(run) for run in runs if run[0].end is not None]
    if not all(run.failed_itself for run in ended[-LOOP_RESTARTS:]):
        return None
    lines, from_start = await _end_of_log(runner, job, len(runs))
    attempts = split_attempts(lines, _ids(job), from_start=from_start)
    times = [(_start(run), run[0].end) for run in runs]
    for attempt, place in zip(attempts, match_ends(attempts, times), strict=True):
        if place is not None and place < len(ended):
            error, step = _error_and_step(attempt.lines)
            ended[place] = replace(ended[place], error=error, step=step)
    newest = _error_and_step(attempts[-1].lines)[0] if attempts else None
    return looping(ended, restarts=restarts, told=told, log_error=newest)


def _runs_of(job: Job, rows: Sequence[AccountingRecord], most: int) -> list[list[AccountingRecord]]:
    """The runs that got nodes, oldest first, each with its steps. ``most`` keeps out an earlier
    job that had the same id."""
    runs: list[list[AccountingRecord]] = []
    for row in rows:
        if not belongs(row.id, job.id):
            continue
        if row.id.step is None:
            runs.append([row])
        elif runs and runs[-1][0].id.stable == row.id.stable:
            runs[-1].append(row)
    waits = [run for run in runs if run[0].start is None]
    begun = [run for run in runs if run[0].start is not None]
    begun.sort(key=_start)
    return begun[-max(1, most - len(waits)) :]


def _start(run: Sequence[AccountingRecord]) -> datetime:
    start = run[0].start
    assert start is not None
    return start


def _ended(run: Sequence[AccountingRecord]) -> EndedRun:
    """What accounting alone says of a run that is over."""
    row, steps = run[0], run[1:]
    exit = _own(row.exit_code)
    failed_steps = [
        step.exit_code
        for step in steps
        if step.id.step != "extern" and step.state.base in _FAILED and step.exit_code is not None
    ]
    if exit is None and failed_steps:
        exit = failed_steps[-1]
    stopped = row.state.base is not None and row.state.base not in _FAILED
    # A failed job that is requeued by hand is told to have ended then: its steps know better.
    times = [step.elapsed_s for step in steps if step.id.step != "extern"]
    ran = [seconds for seconds in times if seconds is not None]
    return EndedRun(
        failed_itself=not stopped and exit is not None,
        exit=exit,
        elapsed_s=max(ran) if ran else row.elapsed_s,
    )


def _own(exit: ExitCode | None) -> ExitCode | None:
    """An exit code that the job gave itself; None for success and for what Slurm does."""
    if exit is None or exit.signal in _FROM_OUTSIDE or not (exit.code or exit.signal):
        return None
    return exit


def _ids(job: Job) -> tuple[str, ...]:
    return tuple({one for one in (job.raw_id, job.id.stable) if one})


async def _end_of_log(runner: Runner, job: Job, runs: int) -> tuple[tuple[LogLine, ...], bool]:
    """The end of the log that errors go to, as far back as the runs reach or the limit lets;
    and whether that is all that this job ever wrote there. Empty where it cannot be read."""
    paths = [path for _, path in await _log_paths(runner, job)]
    path = next((path for path in reversed(paths) if path is not None), None)
    if path is None:
        return (), False
    try:
        size = (await checked_stat(runner, path)).size
        data = b""
        for reach in _TAIL_BYTES:
            start = max(0, size - reach)
            data = await _bytes(runner, path, start, size - start - len(data)) + data
            await asyncio.sleep(0)
            if start == 0 or data.count(_END_MARK) > runs:
                break
    except (OSError, RunnerError):
        return (), False
    lines = split_lines(data, offset=start, number=None, starts_inside=start > 0)
    return lines, start == 0 and _named_after(job, basename(path))


def _named_after(job: Job, name: str) -> bool:
    """No other job writes to a file that has this job's id in its name."""
    numbers = set(re.findall(r"[0-9]+", name))
    return any(numbers.issuperset(re.findall(r"[0-9]+", one)) for one in _ids(job))


async def _log_paths(runner: Runner, job: Job) -> tuple[tuple[str, str | None], ...]:
    """Where the logs are. A record that was not asked for paths costs one more request."""
    paths = log_paths(job, None)
    if any(path is not None for _, path in paths):
        return paths
    try:
        found = await fetch_job_detail(runner, slurm_id(job.id), job.key.cluster)
    except SourceFailed:
        return ()
    return log_paths(None, next((one for one in found if same_job(one.job, job)), None))


async def _bytes(runner: Runner, path: str, start: int, length: int) -> bytes:
    parts: list[bytes] = []
    while length > 0:
        part = await runner.read(path, start, min(length, _BLOCK_BYTES))
        if not part:
            break
        parts.append(part)
        start += len(part)
        length -= len(part)
    return b"".join(parts)


def _error_and_step(lines: Sequence[LogLine]) -> tuple[str | None, int | None]:
    """The first error that no counting of steps follows, and the last step of one run.

    What a script shrugged off while it set up is not what the run ended with, and a line that
    tells somebody else's end does not say why.
    """
    progress = find_progress(lines)
    if progress is None:
        error = find_first_error(lines)
    else:
        error = find_first_error(line for line in lines if line.offset > progress.line.offset)
    said = None if error is None or only_reports_an_end(error) else error.text
    return said, None if progress is None else progress.step
