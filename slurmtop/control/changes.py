"""What has become of the jobs of an action since it was planned. Pure.

An action is for the jobs that were shown: one that has become something else is lost, and
nothing is done to it. The dialog, the executor right before it sends, and scripts all go by
this one rule.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slurmtop.control.actions import Action, Kind, Target
from slurmtop.control.plan import task_ranges
from slurmtop.control.rows import without
from slurmtop.model.ids import JobKey
from slurmtop.model.job import ENDED_STATES, Job, Phase
from slurmtop.store.jobs import Gone


class ChangeKind(StrEnum):
    ENDED = "ended"
    ENDING = "ending"
    LEFT = "left"
    ANOTHER_RUN = "another run"
    STARTED = "started"
    STOPPED_RUNNING = "stopped running"
    REVIVED = "no longer over"


#: Of a job that started these would do something else than was shown, or be refused.
_FOR_WAITING = frozenset({Kind.HOLD, Kind.RELEASE, Kind.EXCLUDE})
#: These are for a run: without it they are refused, or meant for the next run.
_FOR_RUNNING = frozenset({Kind.SIGNAL, Kind.REQUEUE, Kind.REQUEUE_HOLD})
REQUEUES = frozenset({Kind.REQUEUE, Kind.REQUEUE_HOLD})


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to a target after it was planned.

    ``lost`` means that the action would do nothing, or hit what was not shown. ``job`` is its
    record now, where there is one. ``some`` is true where it is so of some of its tasks only.
    """

    key: JobKey
    kind: ChangeKind
    lost: bool = True
    job: Job | None = None
    some: bool = False


def changes_since(
    action: Action,
    job_of: Callable[[JobKey], Job | None],
    gone: Mapping[JobKey, Gone],
    sampled_at: datetime | None,
) -> tuple[Change, ...]:
    """What the queue now says that it did not when the action was planned.

    A job that the queue never showed is no change: nothing is known of it. An answer that is
    older than the plan is no news either.
    """
    planned = action.planned_at
    if planned is not None and (sampled_at is None or sampled_at <= planned):
        return ()
    out: list[Change] = []
    for target in action.targets:
        job, left = job_of(target.key), gone.get(target.key)
        change = None if job is None else change_of(action.kind, target, job)
        ended = change is not None and change.kind is ChangeKind.ENDED
        if left is not None and not ended:
            news = planned is None or left.since > planned
            change = Change(target.key, ChangeKind.LEFT) if news else None
        if change is not None:
            out.append(change)
    return tuple(out)


def change_of(kind: Kind, target: Target, job: Job) -> Change | None:
    """What ``job``, the record of ``target`` now, says that was not so when it was planned."""
    key = target.key
    was_over = target.state_word in ENDED_STATES
    if job.state.ended and not was_over:
        return Change(key, ChangeKind.ENDED, job=job)
    if another_run(target, job):
        return Change(key, ChangeKind.ANOTHER_RUN, job=job)
    if was_over:
        return None if job.state.ended else Change(key, ChangeKind.REVIVED, job=job)
    if kind in REQUEUES and job.state.phase is Phase.ENDING:
        # Nobody knows yet how it ends: what completes would run again.
        return Change(key, ChangeKind.ENDING, job=job)
    if target.started_at is None:
        return _started(kind, target, job)
    if job.state.phase is Phase.PENDING:
        lost = kind in _FOR_RUNNING or target.step is not None
        return Change(key, ChangeKind.STOPPED_RUNNING, lost, job)
    return None


def another_run(target: Target, job: Job) -> bool:
    """A requeue gives a job a new submit time and counts a restart; so does an id used again."""
    if target.submit is not None and job.submit is not None and job.submit != target.submit:
        return True
    return None not in (target.restarts, job.restarts) and target.restarts != job.restarts


def nothing_left(action: Action, changes: tuple[Change, ...]) -> bool:
    """True when no target is any longer what was shown."""
    lost = {change.key for change in changes if change.lost}
    return all(target.key in lost for target in action.targets)


def _started(kind: Kind, target: Target, job: Job) -> Change | None:
    if job.state.phase in (Phase.RUNNING, Phase.SUSPENDED, Phase.ENDING):
        return Change(target.key, ChangeKind.STARTED, kind in _FOR_WAITING, job)
    if job.id.tasks is None or not target.tasks:
        return None
    waiting = task_ranges(job.id.tasks)
    if waiting is None or not without(target.tasks, waiting):
        return None
    # Those that started are left out right before the command is sent, where that matters.
    return Change(target.key, ChangeKind.STARTED, lost=False, job=job, some=True)
