"""Does a job fail in the same way each time it is started? Said before it is requeued again."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from slurmtop.model.job import ExitCode
from slurmtop.model.text import visible
from slurmtop.model.units import ago_text, plural

#: So many restarts, and so many runs in a row with the same error, make a loop.
LOOP_RESTARTS = 3
#: Where only exit codes are known: a run as long as this may well have got somewhere.
_LONG_RUN_S = 3_600
_ERROR_CHARS = 160
_COMPARED_CHARS = 400

#: Numbers that name a kind of error stay; all others tell when, where and which.
_NUMBERS = re.compile(
    r"(?i)(?P<kept>\b(?:errno|code|status|signal|xid|rc)\b\W{0,3}\d+)"
    r"|\b0x[0-9a-f]+|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b|\d+"
)
_JOINED = re.compile(r"#(?:[.,:/T_-]{0,2}#)+")
_HOSTS = re.compile(r"(?P<who>\bslurmstepd)-[\w.-]+(?=:)|(?P<srun>\bsrun: error: )[\w.-]+(?=:)")
_TAG = re.compile(r"^(?:\[?rank ?#\]?:?\s*|#: )+")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """One run of a job that is over.

    ``failed_itself`` is false where something from outside ended it (a requeue, a preemption, a
    dead node, a time limit) or where nobody can tell. ``exit`` is the code behind the failure.
    ``error`` is the first error of this run's own log, raw; None where the log tells no run from
    another. ``step`` is the last step that this run counted.
    """

    failed_itself: bool
    exit: ExitCode | None = None
    elapsed_s: int | None = None
    error: str | None = None
    step: int | None = None


def same_error(text: str) -> str:
    """``text`` without what differs between two runs: numbers, addresses, times, hosts, ranks."""
    bare = _HOSTS.sub(lambda match: match["who"] or f"{match['srun']}#", text[:_COMPARED_CHARS])
    bare = _NUMBERS.sub(lambda match: match["kept"] or "#", bare)
    bare = " ".join(_JOINED.sub("#", bare).split())
    return _TAG.sub("", bare)


def looping(
    runs: Sequence[EndedRun],
    *,
    restarts: int,
    told: Sequence[str] = (),
    log_error: str | None = None,
) -> str | None:
    """One sentence where a job keeps failing in the same way, else None.

    ``runs`` are those that are over, oldest first. ``told`` are the verdicts with which the job
    was requeued before. ``log_error`` is the first error of a log that tells no run from
    another. Only failures in an unbroken row up to the newest run count; one that got further
    than the run before it, another error, or a run that was ended from outside, and there is
    no loop.
    """
    if restarts < LOOP_RESTARTS:
        return None
    row = _newest_failures(runs)
    if len(row) < LOOP_RESTARTS or _gets_further(row):
        return None
    errors = [run.error for run in row if run.error is not None]
    if len({same_error(error) for error in errors}) > 1:
        return None
    head = f"looping: restarted {plural(restarts, 'time')}"
    if errors:
        of_runs = _of_runs(len(errors), len(row), _told_before(errors[-1], told))
        if of_runs:
            return f"{head}, {of_runs}{_after(row)}: {_shown(errors[-1])}"
    return _by_exit_codes(row, head, errors[-1] if errors else log_error)


def _of_runs(known: int, runs: int, told: int) -> str:
    """How many runs the same error is known of, in words; "" where they are too few."""
    if known == runs:
        return f"each of the last {runs} runs ended with the same error"
    if known >= LOOP_RESTARTS:
        return f"{known} of the last {runs} runs are known to have ended with the same error"
    if told and known + told >= LOOP_RESTARTS:
        return f"and the error is that of {plural(told, 'requeue')} before"
    return ""


def _newest_failures(runs: Sequence[EndedRun]) -> list[EndedRun]:
    row: list[EndedRun] = []
    for run in reversed(runs):
        if not run.failed_itself:
            break
        row.insert(0, run)
    return row


def _gets_further(row: Sequence[EndedRun]) -> bool:
    """The newest run counted more steps than one before it: it goes on from a checkpoint."""
    steps = [run.step for run in row if run.step is not None]
    return len(steps) > 1 and steps[-1] > min(steps[:-1])


def _told_before(error: str, told: Sequence[str]) -> int:
    """How many earlier verdicts tell this very error; 0 where one of them tells another."""
    same = same_error(error)
    return len(told) if all(same in same_error(text) for text in told) else 0


def _by_exit_codes(row: Sequence[EndedRun], head: str, error: str | None) -> str | None:
    """The weaker ground: the same exit each time, soon after the start."""
    exit = row[-1].exit
    quick = all(run.elapsed_s is not None and run.elapsed_s < _LONG_RUN_S for run in row)
    if exit is None or not quick or any(run.exit != exit for run in row):
        return None
    now = f"; the error in its log: {_shown(error)}" if error else ""
    return (
        f"{head}, it seems: each of the last {len(row)} runs ended the same way"
        f" ({_exit_text(exit)}{_after(row)}), but what the earlier ones wrote cannot be told{now}"
    )


def _exit_text(exit: ExitCode) -> str:
    return f"killed by signal {exit.signal}" if exit.signal else f"exit {exit.code}"


def _after(row: Sequence[EndedRun]) -> str:
    """``, after 4 s to 2 min``; nothing where a time is not known."""
    times = [run.elapsed_s for run in row if run.elapsed_s is not None]
    if len(times) < len(row):
        return ""
    low, high = ago_text(min(times)), ago_text(max(times))
    return f", after {low}" if low == high else f", after {low} to {high}"


def _shown(error: str) -> str:
    text = visible(error.strip())
    return text if len(text) <= _ERROR_CHARS else f"{text[: _ERROR_CHARS - 1]}…"
