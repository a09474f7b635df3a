"""What became of each job of an action, judged from what Slurm shows afterwards. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slurmtop.control.actions import Action, Kind, Target
from slurmtop.model.job import Job, Phase
from slurmtop.model.snapshot import Failure
from slurmtop.model.text import visible
from slurmtop.model.units import plural


class Result(StrEnum):
    """What became of one job. DONE means that the wish was met."""

    DONE = "done"
    OVER = "already over"
    NO_SUCH_JOB = "no such job"
    DENIED = "denied"
    REFUSED = "refused"
    SENT = "sent, not final yet"
    NOT_SENT = "not sent"
    """slurmtop did not ask: the job is not the one that was confirmed, or nothing could run."""
    NOT_KNOWN = "not known"


_DONE_WORDS = {
    Kind.CANCEL: "cancelled",
    Kind.REQUEUE: "requeued",
    Kind.REQUEUE_HOLD: "requeued and held",
    Kind.HOLD: "held",
    Kind.RELEASE: "released",
    Kind.LIMIT: "time limit set",
    Kind.EXCLUDE: "nodes excluded",
    Kind.SIGNAL: "signalled",
}


def done_word(kind: Kind) -> str:
    """What a job is once ``kind`` was done to it: ``cancelled``, ``requeued`` …"""
    return _DONE_WORDS[kind]


def result_word(kind: Kind, result: Result) -> str:
    """How a result is said, in a sum and in the log: ``cancelled``, ``denied``."""
    return done_word(kind) if result is Result.DONE else str(result)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """``sentence`` is for people; ``state_word`` what Slurm last said, None if nothing.

    ``final`` is false while the job may still change because of the action.
    """

    target: Target
    result: Result
    sentence: str
    state_word: str | None = None
    final: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an action.

    ``refused`` is a sentence when it was not begun at all; then ``jobs`` is empty.
    ``trouble`` tells what else went wrong: above all that the action could not be logged.
    """

    action: Action
    jobs: tuple[JobOutcome, ...] = ()
    refused: str | None = None
    trouble: str | None = None
    started_at: datetime
    took_s: float = 0.0

    def count(self, result: Result) -> int:
        """How many of the rows that were asked for came to ``result``."""
        return sum(1 for job in self.jobs if job.result is result)

    @property
    def ok(self) -> bool:
        """Is every job over?"""
        over = (Result.DONE, Result.OVER)
        return self.refused is None and all(job.result in over for job in self.jobs)

    @property
    def sentence(self) -> str:
        """All of it in one line: ``2 cancelled, 1 denied``."""
        if self.refused is not None:
            return self.refused
        if len(self.jobs) == 1:
            return self.jobs[0].sentence
        counts = [(self.count(result), result) for result in Result]
        words = [(count, result_word(self.action.kind, result)) for count, result in counts]
        return ", ".join(f"{count} {word}" for count, word in words if count)


@dataclass(frozen=True, slots=True)
class Seen:
    """What came back. With ``failure`` set, a job that is not in ``jobs`` is not known."""

    jobs: tuple[Job, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What the command itself said about one job.

    ``denied`` and ``refused`` are sentences; ``unsure`` is one that says why the controller
    may not have heard the command at all.
    """

    denied: str | None = None
    refused: str | None = None
    unsure: str | None = None


def judge(target: Target, said: Said, seen: Seen, *, seen_before: bool) -> JobOutcome:
    """The outcome of a cancel for one job after one look at the queue.

    ``seen_before`` is true when an earlier look of this action still showed the job.
    """
    name = visible(target.ids[0]) if len(target.ids) == 1 else visible(target.key.id)
    rows = matching(target, seen.jobs)
    if not rows:
        if _left_its_array(target, seen):
            text = f"job {name}: cancelled: it no longer waits in its array"
            return JobOutcome(target, Result.DONE, text)
        return _gone(target, name, seen, seen_before)
    word = _word(rows)
    alive = [row for row in rows if not row.state.ended]
    if not alive:
        return _ended(target, name, rows, word)
    word = _word(alive)
    if said.denied is not None:
        return JobOutcome(target, Result.DENIED, f"job {name}: {said.denied}", word)
    if said.refused is not None:
        return JobOutcome(target, Result.REFUSED, f"job {name}: {said.refused}", word)
    ending = [row for row in alive if row.state.phase is Phase.ENDING]
    if len(ending) == len(alive):
        nodes = _nodes(ending)
        text = f"job {name}: cancel sent, still completing{nodes} (epilog or a stuck process)"
        return JobOutcome(target, Result.SENT, text, word, final=False)
    if said.unsure is not None:
        text = f"job {name}: not known whether Slurm took the cancel ({said.unsure}); it is {word}"
        return JobOutcome(target, Result.NOT_KNOWN, text, word, final=False)
    text = f"job {name}: cancel sent, not final yet; it is still {word}"
    return JobOutcome(target, Result.SENT, text, word, final=False)


def matching(target: Target, jobs: Iterable[Job]) -> list[Job]:
    """The records that the action reached: of an array only the tasks that were named."""
    rows = [job for job in jobs if job.id.base == target.base]
    if target.parts:
        return [job for job in rows if job.id.task is None and job.id.tasks is None]
    if not target.tasks:
        return [job for job in rows if job.id.stable == target.key.id]
    return [job for job in rows if _among(job, target.tasks) or _emptied(job, target)]


def _emptied(job: Job, target: Target) -> bool:
    """The record of an array whose waiting tasks were all cancelled by number.

    Slurm takes them out one by one and prints what is left, ended, without any bracket.
    """
    return _waited(target) and job.id.stable == target.base


def _waited(target: Target) -> bool:
    return bool(target.tasks) and target.started_at is None


def _left_its_array(target: Target, seen: Seen) -> bool:
    """Waiting tasks that are taken out of an array leave no record; the others stay.

    Had they started instead, each would have a record of its own.
    """
    return _waited(target) and any(job.id.base == target.base for job in seen.jobs)


def _among(job: Job, ranges: Sequence[tuple[int, int]]) -> bool:
    if job.id.task is not None:
        return any(low <= job.id.task <= high for low, high in ranges)
    if job.id.tasks is None:
        return False
    own = _spans(job.id.tasks.text)
    return own is None or any(
        low <= high2 and low2 <= high for low, high in ranges for low2, high2 in own
    )


def _spans(text: str) -> list[tuple[int, int]] | None:
    """The spans of a task list, strides taken as whole; None where it cannot be read."""
    out: list[tuple[int, int]] = []
    for piece in text.partition("%")[0].split(","):
        low, _, high = piece.partition(":")[0].partition("-")
        if not (low.isascii() and low.isdigit()) or (high and not high.isdigit()):
            return None
        out.append((int(low), int(high or low)))
    return out


def _gone(target: Target, name: str, seen: Seen, seen_before: bool) -> JobOutcome:
    if seen.failure is not None:
        text = f"job {name}: not known: {visible(seen.failure.sentence)}"
        return JobOutcome(target, Result.NOT_KNOWN, text, final=False)
    if seen_before:
        text = f"job {name}: over, and Slurm has let go of it; sacct -j {target.base} tells how"
        return JobOutcome(target, Result.OVER, text)
    text = (
        f"job {name}: no such job in the queue (any more);"
        f" sacct -j {target.base} tells whether it ended"
    )
    return JobOutcome(target, Result.NO_SUCH_JOB, text)


def _ended(target: Target, name: str, rows: Sequence[Job], word: str) -> JobOutcome:
    cancelled = sum(1 for row in rows if row.state.base == "CANCELLED")
    if cancelled == len(rows):
        return JobOutcome(target, Result.DONE, f"job {name}: cancelled", word)
    if cancelled:
        rest = len(rows) - cancelled
        text = f"job {name}: cancelled; {plural(rest, 'record')} of it had already ended"
        return JobOutcome(target, Result.DONE, text, word)
    text = f"job {name}: already over before the cancel reached it ({word})"
    return JobOutcome(target, Result.OVER, text, word)


def _word(rows: Sequence[Job]) -> str:
    words = dict.fromkeys(visible(row.state.word) for row in rows)
    return ", ".join(words)


def _nodes(rows: Sequence[Job]) -> str:
    counts = [row.node_count for row in rows]
    known = [count for count in counts if count]
    return f" on {plural(sum(known), 'node')}" if known and len(known) == len(counts) else ""
