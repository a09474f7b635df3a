"""What the queue says of the jobs of an action after it was planned. Pure.

An action is for the jobs that were shown: one that has become something else is lost, and
nothing is done to it.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slurmtop.control.actions import Action, Kind, Target
from slurmtop.control.plan import task_ranges
from slurmtop.model.ids import JobKey
from slurmtop.model.job import ENDED_STATES, Job, Phase
from slurmtop.model.text import visible
from slurmtop.store.jobs import Gone
from slurmtop.ui.present.job import state_words
from slurmtop.ui.present.spans import Line, cut_line

SHOWN_CHANGES = 3


class ChangeKind(StrEnum):
    ENDED = "ended"
    LEFT = "left"
    ANOTHER_RUN = "another run"
    STARTED = "started"
    STOPPED_RUNNING = "stopped running"
    REVIVED = "no longer over"


_ALWAYS_LOST = frozenset(
    {ChangeKind.ENDED, ChangeKind.LEFT, ChangeKind.ANOTHER_RUN, ChangeKind.REVIVED}
)
#: Of a job that started these would do something else than was shown, or be refused.
_FOR_WAITING = frozenset({Kind.HOLD, Kind.RELEASE, Kind.EXCLUDE})
#: These are for a run: without it they are refused, or meant for the next run.
_FOR_RUNNING = frozenset({Kind.SIGNAL, Kind.REQUEUE, Kind.REQUEUE_HOLD})


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a target after the dialog opened.

    ``lost`` means that the action would do nothing, or hit what was not shown.
    """

    key: JobKey
    kind: ChangeKind
    sentence: str
    lost: bool = True


def changes_since(
    action: Action,
    job_of: Callable[[JobKey], Job | None],
    gone: Mapping[JobKey, Gone],
    sampled_at: datetime | None,
) -> tuple[Change, ...]:
    """What the queue now says that the dialog did not when it opened.

    A job that the queue never showed is no change: nothing is known of it. An answer that is
    older than the plan is no news either.
    """
    planned = action.planned_at
    if planned is not None and (sampled_at is None or sampled_at <= planned):
        return ()
    out: list[Change] = []
    for target in action.targets:
        left = gone.get(target.key)
        news = left is not None and (planned is None or left.since > planned)
        change = _change(action.kind, target, job_of(target.key), left is not None, news)
        if change is not None:
            out.append(change)
    return tuple(out)


def _change(kind: Kind, target: Target, job: Job | None, gone: bool, news: bool) -> Change | None:
    key, name = target.key, visible(target.key.id)
    was_over = target.state_word in ENDED_STATES
    if job is not None and job.state.ended and not was_over:
        sentence = f"{name} has ended meanwhile: {state_words(job.state)}"
        return Change(key, ChangeKind.ENDED, sentence)
    if gone:
        return (
            Change(key, ChangeKind.LEFT, f"{name} has left the queue meanwhile") if news else None
        )
    if job is None:
        return None
    if _another_run(target, job):
        return Change(key, ChangeKind.ANOTHER_RUN, f"{name} is another run now, not the one shown")
    if was_over:
        if job.state.ended:
            return None
        word = state_words(job.state)
        return Change(key, ChangeKind.REVIVED, f"{name} is no longer over: {word}")
    if target.started_at is None:
        return _started(kind, target, job, name)
    if job.state.phase is Phase.PENDING:
        lost = kind in _FOR_RUNNING or target.step is not None
        sentence = f"{name} waits in the queue again"
        return Change(key, ChangeKind.STOPPED_RUNNING, sentence, lost)
    return None


def _another_run(target: Target, job: Job) -> bool:
    if target.submit is not None and job.submit is not None and job.submit != target.submit:
        return True
    return None not in (target.restarts, job.restarts) and target.restarts != job.restarts


def _started(kind: Kind, target: Target, job: Job, name: str) -> Change | None:
    lost = kind in _FOR_WAITING
    if job.state.phase is Phase.RUNNING:
        where = f" on {visible(job.nodes)}" if job.nodes else ""
        sentence = f"{name} has started meanwhile{where}"
        return Change(target.key, ChangeKind.STARTED, sentence, lost)
    if job.id.tasks is None or not target.tasks:
        return None
    waiting = task_ranges(job.id.tasks)
    if waiting is None or all(_within(span, waiting) for span in target.tasks):
        return None
    sentence = f"some of the waiting tasks of {visible(target.base)} have started meanwhile"
    return Change(target.key, ChangeKind.STARTED, sentence, lost)


def _within(span: tuple[int, int], ranges: tuple[tuple[int, int], ...]) -> bool:
    """Is every number of ``span`` in one of ``ranges``? They may be one number each."""
    at = span[0]
    for low, high in sorted(ranges):
        if low > at:
            return False
        if high >= at:
            at = high + 1
        if at > span[1]:
            return True
    return False


def change_lines(changes: tuple[Change, ...], targets: int, width: int) -> tuple[Line, ...]:
    """The news while the dialog is open, at most :data:`SHOWN_CHANGES` lines."""
    if not changes:
        return ()
    if len(changes) <= SHOWN_CHANGES:
        return tuple(
            cut_line(((f"! {visible(change.sentence)}", "bad"),), width) for change in changes
        )
    kinds = Counter(change.kind for change in changes)
    words = ", ".join(f"{count} {_KIND_WORDS[kind]}" for kind, count in kinds.most_common())
    return (cut_line(((f"! meanwhile, of {targets}: {words}", "bad"),), width),)


_KIND_WORDS = {
    ChangeKind.ENDED: "have ended",
    ChangeKind.LEFT: "left the queue",
    ChangeKind.ANOTHER_RUN: "are another run now",
    ChangeKind.STARTED: "have started",
    ChangeKind.STOPPED_RUNNING: "wait again",
    ChangeKind.REVIVED: "are no longer over",
}


def nothing_left(action: Action, changes: tuple[Change, ...]) -> bool:
    """True when no target is any longer what was shown."""
    lost = {change.key for change in changes if change.lost}
    return all(target.key in lost for target in action.targets)
