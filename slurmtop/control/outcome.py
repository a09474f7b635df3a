"""What became of each job of an action, as data. ``judge`` finds it out; nothing here runs."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slurmtop.control.actions import Action, Kind, Target
from slurmtop.model.job import Job, Step
from slurmtop.model.snapshot import Failure


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
    PARTLY = "partly done"
    """Some of the processes of the job were reached, and some were not."""


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
    if result is Result.OVER and kind is not Kind.CANCEL:
        return "already finished"
    return done_word(kind) if result is Result.DONE else str(result)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """``sentence`` is for people; ``state_word`` what Slurm last said, None if nothing.

    ``final`` is false while the job may still change because of the action. Where the tasks of
    one target fared differently, each group of them has an outcome with its part of the target.
    """

    target: Target
    result: Result
    sentence: str
    state_word: str | None = None
    final: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an action, whose ``argvs`` are here the commands that did run.

    ``refused`` is a sentence when it was not begun at all; then ``jobs`` is empty. ``unlogged``
    is one when it was not begun because it could not be written down: ask the person once more,
    then execute it ``without_log``. ``unsaved`` is one when it was not begun because what is known
    could not be saved first: likewise ``without_save``. ``saved`` is where it was saved.
    ``trouble`` tells what else went wrong. With ``dry_run``
    nothing was run, and they are what would have been.
    """

    action: Action
    jobs: tuple[JobOutcome, ...] = ()
    refused: str | None = None
    unlogged: str | None = None
    unsaved: str | None = None
    saved: tuple[str, ...] = ()
    trouble: str | None = None
    dry_run: bool = False
    started_at: datetime
    took_s: float = 0.0

    def count(self, result: Result) -> int:
        """How many jobs came to ``result``, each array task counted."""
        return sum(job.target.covers for job in self.jobs if job.result is result)

    @property
    def begun_not(self) -> str | None:
        """Why nothing was begun; None where it was."""
        return self.refused or self.unlogged or self.unsaved

    @property
    def ok(self) -> bool:
        """Is every job as it was wished? Of a dry run: would every job have been asked for?"""
        if self.begun_not is not None:
            return False
        if self.dry_run:
            return self.trouble is None
        good = {Result.DONE, Result.OVER} if self.action.kind is Kind.CANCEL else {Result.DONE}
        return all(job.result in good for job in self.jobs)

    @property
    def sentence(self) -> str:
        """All of it in one line: ``80 held, 19 already finished``."""
        if self.refused is not None:
            return self.refused
        if self.begun_not is not None:
            return f"nothing was done: {self.begun_not}"
        if self.dry_run:
            return self._would
        if len(self.jobs) == 1:
            return self.jobs[0].sentence
        counts = [(self.count(result), result) for result in Result]
        words = [(count, result_word(self.action.kind, result)) for count, result in counts]
        return ", ".join(f"{count} {word}" for count, word in words if count)

    @property
    def _would(self) -> str:
        lines = self.action.command_lines
        more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
        run = f"; it would run: {lines[0]}{more}" if lines else ""
        return f"dry run: nothing was done{run}"


@dataclass(frozen=True, slots=True)
class Seen:
    """What came back. With ``failure`` set, a job that is not in ``jobs`` is not known."""

    jobs: tuple[Job, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class StepsSeen:
    """The running steps of some jobs. With ``failure`` set, what is not there is not known."""

    steps: tuple[Step, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What the command itself said about one job, as the end of a sentence each.

    ``denied`` and ``refused`` are final; ``unsure`` says why the controller may not have heard
    the command at all. ``gone`` is true where it does not know the job (or the step), ``over``
    where it knows that it has ended.
    """

    denied: str | None = None
    refused: str | None = None
    unsure: str | None = None
    gone: bool = False
    over: bool = False
