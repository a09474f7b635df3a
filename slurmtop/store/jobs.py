"""The jobs as the queue last showed them, and what changed between two answers.

The queue says what is there now and nothing about what became of the rest: a job that is
missing from a good answer has left the queue, and its result is known to accounting only,
some time later. Such a job stays here for a while, marked as gone.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from slurmtop.model.ids import JobKey
from slurmtop.model.job import ExitMeaning, Job, JobState, Phase

#: How long a job that left the queue stays in sight.
KEEP_GONE = timedelta(minutes=10)
_HOLDS_NODES = (Phase.RUNNING, Phase.SUSPENDED, Phase.ENDING)


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something that happened to ``job`` between two answers; ``at`` is the newer one."""

    job: Job
    at: datetime


@dataclass(frozen=True, slots=True)
class JobAppeared(JobEvent):
    """New in the queue. Not told of the first answer, nor when more users come in sight."""


@dataclass(frozen=True, slots=True)
class JobStarted(JobEvent):
    """Attempt ``attempt`` (counted from 1) got its nodes."""

    attempt: int


@dataclass(frozen=True, slots=True)
class JobRequeued(JobEvent):
    """Back in the queue, or running again after it; ``attempt`` is the one that comes now."""

    attempt: int


@dataclass(frozen=True, slots=True)
class JobEnded(JobEvent):
    """Over, and ``job.state`` says how."""


@dataclass(frozen=True, slots=True)
class JobVanished(JobEvent):
    """No longer in the queue; how it ended is not known yet. ``job`` is the last record."""


@dataclass(frozen=True, slots=True)
class Gone:
    """A job that left the queue: its last record, and since when it is missing.

    ``result`` is what accounting said afterwards; None while nobody knows. ``exit`` is how it
    ended by the same source, where that was asked for.
    """

    job: Job
    since: datetime
    result: JobState | None = None
    exit: ExitMeaning | None = None


class JobBook:
    """Keeps the newest record of every job in sight, by key.

    ``version`` changes exactly when ``jobs`` or ``gone`` did. Only good answers may be
    applied: a failed poll is not an answer, so it changes nothing here.
    """

    def __init__(self) -> None:
        self.version = 0
        self.sampled_at: datetime | None = None
        self._answer: Sequence[Job] = ()
        self._jobs: dict[JobKey, Job] = {}
        self._gone: dict[JobKey, Gone] = {}
        self._attempts: dict[JobKey, int] = {}
        self.user: str | None = None
        """Whose jobs the last answer holds; None is everybody's."""

    @property
    def jobs(self) -> tuple[Job, ...]:
        """In the order of the answer, each key once."""
        return tuple(self._jobs.values())

    @property
    def gone(self) -> Mapping[JobKey, Gone]:
        return self._gone

    def get(self, key: JobKey) -> Job | None:
        """The newest record, also of a job that has left the queue."""
        job = self._jobs.get(key)
        if job is not None:
            return job
        gone = self._gone.get(key)
        return gone.job if gone is not None else None

    def attempt(self, key: JobKey) -> int:
        """Which run of the job this is, from 1."""
        return self._attempts.get(key, 1)

    def siblings(self, job: Job) -> tuple[Job, ...]:
        """The other records of the same array or het job."""
        group = job.group_id
        if group is None:
            return ()
        return tuple(
            other
            for other in self._jobs.values()
            if other.group_id == group and other.key != job.key
        )

    def apply(
        self, jobs: Sequence[Job], sampled_at: datetime, *, user: str | None = None
    ) -> tuple[JobEvent, ...]:
        """Take in one good answer; an answer older than the last one is dropped whole.

        ``user`` says whose jobs were asked for (None: everybody's). A job outside of that
        has not ended because it is missing.
        """
        if self.sampled_at is not None and sampled_at < self.sampled_at:
            return ()
        first = self.sampled_at is None
        self.sampled_at = sampled_at
        before, self.user = self.user, user
        expired = self._forget_old(sampled_at)
        if (
            not first
            and before == user
            and len(jobs) == len(self._answer)
            and all(map(operator.is_, jobs, self._answer))
        ):
            self.version += expired
            return ()
        self._answer = tuple(jobs)
        events = self._take(jobs, sampled_at, new_is_news=not first, before=before)
        self.version += 1
        return events

    def rewind(self, to: datetime) -> None:
        """The clock stepped back behind the last answer: what comes now is newer all the same."""
        if self.sampled_at is None or self.sampled_at <= to:
            return
        self.sampled_at = to
        for key, gone in self._gone.items():
            if gone.since > to:
                self._gone[key] = replace(gone, since=to)

    def settle(
        self,
        key: JobKey,
        result: JobState,
        at: datetime,
        *,
        exit: ExitMeaning | None = None,
    ) -> tuple[JobEvent, ...]:
        """Note what accounting says of a job that left the queue.

        Accounting lags behind: a state that is not an end is no news about such a job.
        """
        gone = self._gone.get(key)
        if gone is None or gone.result is not None or not result.ended:
            return ()
        job = replace(gone.job, state=result)
        self._gone[key] = replace(gone, job=job, result=result, exit=exit)
        self.version += 1
        return (JobEnded(job, at),)

    def _forget_old(self, now: datetime) -> bool:
        old = [key for key, gone in self._gone.items() if now - gone.since > KEEP_GONE]
        for key in old:
            del self._gone[key]
            self._attempts.pop(key, None)
        return bool(old)

    def _take(
        self, jobs: Sequence[Job], at: datetime, *, new_is_news: bool, before: str | None
    ) -> tuple[JobEvent, ...]:
        events: list[JobEvent] = []
        old = self._jobs
        new: dict[JobKey, Job] = {}
        for job in jobs:
            key = job.key
            known = old.get(key)
            twin = new.get(key)
            if twin is not None:
                job = _with_partitions_of(twin, job)
                known = old.get(key)
                if known == job and known is not None:
                    job = known
            new[key] = job
            if known is job:
                continue
            if known is not None and known.user == job.user:
                self._compare(known, job, at, events)
            else:
                if known is not None:
                    events.append(JobVanished(known, at))
                self._attempts[key] = (job.restarts or 0) + 1
                self._gone.pop(key, None)
                if new_is_news and (before is None or job.user == before):
                    events.append(JobAppeared(job, at))
        self._jobs = new
        self._miss(old, at, events)
        return tuple(events)

    def _compare(self, known: Job, job: Job, at: datetime, events: list[JobEvent]) -> None:
        was, now = known.state.phase, job.state.phase
        attempt = self._attempts.get(job.key, 1)
        again = (job.restarts or 0) + 1
        if was in _HOLDS_NODES and now is Phase.PENDING:
            counted = job.restarts is not None and was is Phase.ENDING
            attempt = max(again, attempt if counted else attempt + 1)
            events.append(JobRequeued(job, at, attempt))
        elif again > attempt and now is not Phase.ENDING:
            # Slurm counts a requeue while the job still completes; it is told once it waits.
            attempt = again
            events.append(JobRequeued(job, at, attempt))
            was = Phase.PENDING
        self._attempts[job.key] = attempt
        if was is Phase.PENDING and now is Phase.RUNNING:
            events.append(JobStarted(job, at, attempt))
        if job.state.ended and not known.state.ended:
            events.append(JobEnded(job, at))

    def _miss(self, old: dict[JobKey, Job], at: datetime, events: list[JobEvent]) -> None:
        missing = [job for key, job in old.items() if key not in self._jobs]
        if missing:
            groups = {job.group_id for job in self._jobs.values()}
            for job in missing:
                if not self._in_sight(job) or (job.id.tasks is not None and job.group_id in groups):
                    self._attempts.pop(job.key, None)
                else:
                    self._leave(job, at, events)
        for key in [key for key, gone in self._gone.items() if not self._in_sight(gone.job)]:
            del self._gone[key]

    def _leave(self, job: Job, at: datetime, events: list[JobEvent]) -> None:
        if job.state.ended:
            self._gone[job.key] = Gone(job, at, job.state)
            return
        self._gone[job.key] = Gone(job, at)
        events.append(JobVanished(job, at))

    def _in_sight(self, job: Job) -> bool:
        return self.user is None or job.user == self.user


def _with_partitions_of(first: Job, second: Job) -> Job:
    """One record of the two that ``squeue -P`` prints for a job in several partitions."""
    extra = tuple(name for name in second.partitions if name not in first.partitions)
    return replace(first, partitions=first.partitions + extra) if extra else first
