"""The jobs that a person saw, as Slurm has them now: the same runs, and no task more. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from slurmtop.control.actions import Kind
from slurmtop.control.commands import task_ids
from slurmtop.control.outcome import Seen
from slurmtop.control.plan import task_ranges
from slurmtop.control.requeue import COMPLETED_AMONG_OTHERS
from slurmtop.control.tasks import Ranges, chosen_tasks
from slurmtop.model.job import Job, LimitKind, Phase
from slurmtop.model.text import visible

_GONE = "no longer known to Slurm"
_TOO_OLD = "no longer known to Slurm, so too old to requeue: resubmit it"
_OTHER_RUN = "put back in the queue meanwhile, or its id was used again: not the run you saw"
_NOT_WAITING = "no longer waiting"
_NAMES = 5


@dataclass(frozen=True, slots=True)
class Look:
    """``jobs`` are what is left to plan for, ``left_out`` the ids of the others by the reason.

    ``known`` is what the queue shows besides, renewed. ``stale`` are those of ``jobs`` of which
    Slurm said nothing now.
    """

    jobs: tuple[Job, ...]
    known: tuple[Job, ...]
    left_out: dict[str, list[str]]
    stale: tuple[Job, ...] = ()

    @property
    def told(self) -> tuple[str, ...]:
        """A sentence for each reason."""
        return tuple(f"left out, {why}: {_some(ids)}" for why, ids in self.left_out.items())


def fresh_look(kind: Kind, jobs: Sequence[Job], known: Iterable[Job], seen: Seen) -> Look:
    """``jobs`` as ``seen`` has them.

    What is another run by now, or gone, is left out; where ``seen`` tells of a failure, it
    stays as it was given. Of the waiting rest of an array the tasks stay that still wait.
    """
    out = _Sorting(kind, seen)
    given = list({job.key: job for job in jobs}.values())
    for job in given:
        ranges = _ranges(job)
        if ranges is None:
            out.add_one(job)
        else:
            out.add_tasks(job, ranges)
    if kind in (Kind.REQUEUE, Kind.REQUEUE_HOLD) and len(given) > 1:
        out.leave_out_completed()
    return Look(tuple(out.jobs), _known(jobs, known, seen), out.left_out, tuple(out.stale))


class _Sorting:
    """What becomes of each job that was shown."""

    def __init__(self, kind: Kind, seen: Seen) -> None:
        self._gone = _TOO_OLD if kind in (Kind.REQUEUE, Kind.REQUEUE_HOLD) else _GONE
        self._failed = seen.failure is not None
        self._rows = {row.key: row for row in seen.jobs}
        self._arrays: dict[tuple[str, str], list[Job]] = {}
        for row in seen.jobs:
            self._arrays.setdefault(_base(row), []).append(row)
        self.jobs: list[Job] = []
        self.stale: list[Job] = []
        self.left_out: dict[str, list[str]] = {}

    def add_one(self, job: Job) -> None:
        now = self._rows.get(job.key)
        same = now is not None and _same_run(job, now)
        if now is None:
            now = self._in_its_array(job)
            same = now is not None and job.state.phase is Phase.PENDING
        if now is None:
            self._missing(job, visible(job.key.id))
        elif same:
            self.jobs.append(renewed(job, now))
        else:
            self._leave_out(_OTHER_RUN, visible(job.key.id))

    def add_tasks(self, job: Job, ranges: Ranges) -> None:
        rows = self._arrays.get(_base(job), [])
        waiting = [row for row in rows if row.state.phase is Phase.PENDING]
        found, rest = chosen_tasks(waiting, ranges)
        for row in found:
            self.jobs.append(renewed(replace(job, key=row.key, id=row.id), row))
        if rest:
            ids = ", ".join(task_ids(visible(job.id.base), rest))
            if rows:
                self._leave_out(_NOT_WAITING, ids)
            else:
                self._missing(job, ids)

    def leave_out_completed(self) -> None:
        """Alone such a job could be requeued, but it was not asked for alone."""
        done = [job for job in self.jobs if job.state.phase is Phase.COMPLETED]
        if done:
            self.jobs = [job for job in self.jobs if job.state.phase is not Phase.COMPLETED]
            for job in done:
                self._leave_out(COMPLETED_AMONG_OTHERS, visible(job.key.id))

    def _missing(self, job: Job, id: str) -> None:
        if self._failed:
            # What it excluded a while ago must not be written back.
            job = replace(job, excluded_nodes=None)
            self.jobs.append(job)
            self.stale.append(job)
        else:
            self._leave_out(self._gone, id)

    def _leave_out(self, why: str, id: str) -> None:
        self.left_out.setdefault(why, []).append(id)

    def _in_its_array(self, job: Job) -> Job | None:
        """A waiting task may stand among others in one record of its array."""
        if job.id.task is None:
            return None
        rows = [row for row in self._arrays.get(_base(job), []) if row.id.tasks is not None]
        found, _ = chosen_tasks(rows, ((job.id.task, job.id.task),))
        return found[0] if found else None


def renewed(job: Job, now: Job) -> Job:
    """``job`` with what ``now`` says of it; what a look does not ask for stays."""
    return replace(
        job,
        raw_id=now.raw_id or job.raw_id,
        user=now.user or job.user,
        account=now.account or job.account,
        state=now.state,
        reason=now.reason,
        submit=now.submit or job.submit,
        start=now.start,
        end=now.end,
        limit=job.limit if now.limit.kind is LimitKind.UNKNOWN else now.limit,
        node_count=job.node_count if now.node_count is None else now.node_count,
        nodes=now.nodes,
        tres=job.tres if now.tres.gpus is None else now.tres,
        priority=job.priority if now.priority is None else now.priority,
        restarts=job.restarts if now.restarts is None else now.restarts,
        het_leader=now.het_leader or job.het_leader,
        requeueable=job.requeueable if now.requeueable is None else now.requeueable,
        batch=job.batch if now.batch is None else now.batch,
        # None where the look could not tell: an older list must not be written back.
        excluded_nodes=now.excluded_nodes,
    )


def _same_run(job: Job, now: Job) -> bool:
    """A requeue gives a job a new submit time and counts a restart; so does an id used again."""
    pairs = ((job.submit, now.submit), (job.restarts, now.restarts))
    return all(one is None or other is None or one == other for one, other in pairs)


def _known(jobs: Sequence[Job], known: Iterable[Job], seen: Seen) -> tuple[Job, ...]:
    """What the queue shows, renewed; and rows that only the look has, under their owner."""
    out = {job.key: job for job in known}
    owners = {_base(job): job for job in jobs}
    for row in seen.jobs:
        owner = owners.get(_base(row))
        if row.key in out:
            out[row.key] = renewed(out[row.key], row)
        elif owner is not None:
            user, account = row.user or owner.user, row.account or owner.account
            out[row.key] = replace(row, name=owner.name, user=user, account=account)
    return tuple(out.values())


def _base(job: Job) -> tuple[str, str]:
    return job.key.cluster, job.id.base


def _ranges(job: Job) -> Ranges | None:
    return None if job.id.tasks is None else task_ranges(job.id.tasks)


def _some(ids: Sequence[str]) -> str:
    names = ", ".join(ids[:_NAMES])
    return names if len(ids) <= _NAMES else f"{names} and {len(ids) - _NAMES} more"
