"""What a line of the Jobs screen stands for, and the orders that lines can have."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job, Phase
from slurmtop.store.jobs import Gone

#: Names of the orders, as the ``s`` key goes through them.
SORTS = (
    "natural",
    "id",
    "name",
    "user",
    "state",
    "time",
    "gpus",
    "nodes",
    "priority",
    "submit",
    "reason",
)

RANK = {
    Phase.RUNNING: 0,
    Phase.SUSPENDED: 0,
    Phase.ENDING: 0,
    Phase.PENDING: 1,
    Phase.UNKNOWN: 2,
    Phase.FAILED: 3,
    Phase.CANCELLED: 3,
    Phase.COMPLETED: 3,
    Phase.ELSEWHERE: 4,
}
_COUNT_ORDER = (
    ("R", Phase.RUNNING),
    ("S", Phase.SUSPENDED),
    ("CG", Phase.ENDING),
    ("PD", Phase.PENDING),
    ("F", Phase.FAILED),
    ("CD", Phase.COMPLETED),
    ("CA", Phase.CANCELLED),
    ("RV", Phase.ELSEWHERE),
    ("?", Phase.UNKNOWN),
)


@dataclass(frozen=True, slots=True)
class Count:
    """``exact`` is false where Slurm cut the list of tasks: then ``count`` is the least."""

    label: str
    count: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Group:
    """An array or het job as one row. ``jobs`` are its records that pass the filter.

    ``counts`` is by state, e.g. 12 R, 4 PD, 981 waiting; ``waiting`` is the pending rest of
    an array, one record that stands for many tasks and is never expanded.
    """

    kind: str
    jobs: tuple[Job, ...]
    open: bool
    counts: tuple[Count, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One line. A row object is kept as long as what it shows stays the same.

    ``job`` of a group is its first record in view. ``depth`` is 1 below an open group.
    """

    key: JobKey
    job: Job
    gone: Gone | None = None
    group: Group | None = None
    depth: int = 0

    @property
    def jobs(self) -> tuple[Job, ...]:
        return self.group.jobs if self.group is not None else (self.job,)

    @property
    def lost(self) -> bool:
        """Left the queue, and nobody knows yet how it ended."""
        return self.gone is not None and self.gone.result is None


class Entry:
    """A job with what is worked out of it once."""

    __slots__ = ("gone", "group", "job", "lost", "natural", "problem", "rows", "text")

    def __init__(self, job: Job, gone: Gone | None) -> None:
        self.job = job
        self.gone = gone
        self.lost = gone is not None and gone.result is None
        base = job.group_id
        self.group = JobKey(job.key.cluster, base) if base is not None else None
        self.text: str | None = None
        self.problem: bool | None = None
        self.natural: tuple[Any, ...] | None = None
        self.rows: dict[int, Row] = {}

    def row(self, depth: int) -> Row:
        row = self.rows.get(depth)
        if row is None:
            row = self.rows[depth] = Row(self.job.key, self.job, self.gone, depth=depth)
        return row


def _id_key(job: Job) -> tuple[int, int, str]:
    part = job.id.task if job.id.task is not None else job.id.het_offset
    rest = 1 << 62 if job.id.tasks is not None else -1
    base = int(job.id.base) if job.id.base.isdecimal() else 0
    return (base, part if part is not None else rest, job.key.cluster)


def _natural(entry: Entry) -> tuple[Any, ...]:
    """Running by start, then pending by priority, then what is over, the newest first."""
    if entry.natural is None:
        job = entry.job
        rank = 2 if entry.lost else RANK[job.state.phase]
        if rank == 0:
            second = _seconds(job.start) or 0.0
        elif rank == 1:
            second = float(-(job.priority or 0))
        else:
            ended = entry.gone.since if entry.gone is not None else job.end
            second = -(_seconds(ended) or 0.0)
        entry.natural = (rank, second, *_id_key(job))
    return entry.natural


def _started(job: Job) -> float | None:
    return None if job.state.phase is Phase.PENDING else _seconds(job.start)


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


#: None sorts last, whichever way round the order is.
SORT_KEYS: dict[str, Callable[[Entry], Any]] = {
    "natural": _natural,
    "id": lambda entry: _id_key(entry.job),
    "name": lambda entry: entry.job.name.lower(),
    "user": lambda entry: entry.job.user.lower(),
    "state": lambda entry: (RANK[entry.job.state.phase], entry.job.state.word),
    "time": lambda entry: _started(entry.job),
    "gpus": lambda entry: _negative(entry.job.tres.gpus),
    "nodes": lambda entry: _negative(entry.job.node_count),
    "priority": lambda entry: _negative(entry.job.priority),
    "submit": lambda entry: _negative(_seconds(entry.job.submit)),
    "reason": lambda entry: entry.job.reason.lower() if entry.job.reason else None,
}


def count_states(entries: Iterable[Entry], *, rest_apart: bool) -> tuple[Count, ...]:
    numbers: dict[str, int] = {}
    loose: set[str] = set()
    labels = {phase: label for label, phase in _COUNT_ORDER}
    for entry in entries:
        tasks = entry.job.id.tasks
        label = "?" if entry.lost else labels[entry.job.state.phase]
        if tasks is not None and rest_apart and label == "PD":
            label = "waiting"
        numbers[label] = numbers.get(label, 0) + (tasks.count if tasks is not None else 1)
        if tasks is not None and not tasks.exact:
            loose.add(label)
    order = [label for label, _ in _COUNT_ORDER] + ["waiting"]
    return tuple(
        Count(label, numbers[label], label not in loose) for label in order if label in numbers
    )


def out_of_marked_rests(
    marks: set[JobKey], before: Iterable[Entry], now: Iterable[Entry]
) -> set[JobKey]:
    """The tasks that left the marked waiting rest of their array, for a record of their own.

    They were meant by the mark. A record that an array did not have before can only come out
    of its rest.
    """
    before = tuple(before)
    rests = {
        entry.group
        for entry in before
        if entry.job.id.tasks is not None and entry.gone is None and entry.job.key in marks
    }
    if not rests:
        return set()
    known = {entry.job.key for entry in before}
    return {
        entry.job.key
        for entry in now
        if entry.group in rests and entry.job.id.task is not None and entry.job.key not in known
    }
