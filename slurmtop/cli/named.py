"""Which jobs a command line names: ids taken apart, then looked for in what Slurm shows. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slurmtop.cli.errors import UsageError
from slurmtop.control.actions import Kind
from slurmtop.control.commands import id_allowed, merge_ranges, task_ids
from slurmtop.control.plan import task_ranges
from slurmtop.control.tasks import Ranges, chosen_tasks
from slurmtop.model.job import Job, Phase
from slurmtop.model.text import visible
from slurmtop.model.units import plural
from slurmtop.parse.slurm.ids import parse_job_id, split_cluster

_STEP = re.compile(r"(.+)\.([0-9]{1,9}|batch|extern|interactive)", re.ASCII)
_TASKS = re.compile(r"[1-9][0-9]{0,9}_\[[0-9][0-9,:%-]{0,4095}\]", re.ASCII)
_WAITING = re.compile(r"([1-9][0-9]{0,9})_\[\*\]", re.ASCII)
_HET = re.compile(r"[1-9][0-9]{0,9}\+[0-9]{1,9}", re.ASCII)
_BETWEEN = re.compile(r",(?![^\[]*\])")
_OVER = (Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED)
#: Slurm's numbers of jobs have 32 bits; the last of them mean something else.
_LARGEST = 0xFFFFFFF0
_REQUEUES = (Kind.REQUEUE, Kind.REQUEUE_HOLD)
_FORMS = "a job looks like 4711, 4711_3, '4711_[1-5,7]', 4711+1, a step like 4711.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """One id of the command line. Without ``tasks``, ``waiting`` and ``het_offset`` it is a
    whole job; ``tasks`` are inclusive ranges; ``waiting`` is ``4711_[*]``, the waiting rest."""

    text: str
    base: str
    tasks: tuple[tuple[int, int], ...] = ()
    waiting: bool = False
    het_offset: int | None = None
    step: str | None = None

    @property
    def several(self) -> bool:
        """Does it name more tasks than one?"""
        return self.waiting or len(self.tasks) > 1 or any(low != high for low, high in self.tasks)


@dataclass(frozen=True, slots=True)
class Absent:
    """An id for which there is nothing to act on. ``known`` is false where nobody knows it."""

    text: str
    sentence: str
    known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The records that were named.

    ``jobs`` are named one by one; ``swept`` stand for a whole array, by its number: that some
    of its tasks cannot be meant is no failure. ``steps`` are (job, step id, text as typed).
    """

    jobs: tuple[Job, ...] = ()
    swept: tuple[tuple[str, tuple[Job, ...]], ...] = ()
    steps: tuple[tuple[Job, str, str], ...] = ()
    absent: tuple[Absent, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def all_jobs(self) -> tuple[Job, ...]:
        """All but those of which only a step is meant, each once."""
        every = (*self.jobs, *(job for _, jobs in self.swept for job in jobs))
        return tuple({job.key: job for job in every}.values())


def parse_named(texts: Sequence[str], cluster: str | None) -> tuple[tuple[Named, ...], str | None]:
    """The ids of the command line, and the cluster that they or ``cluster`` name.

    ``4711;beta`` (``sbatch --parsable``) names a cluster too. :class:`UsageError` for what is
    no job id and for several clusters.
    """
    out: list[Named] = []
    for text in texts:
        ids, own = split_cluster(text)
        if own and cluster is not None and own != cluster:
            raise UsageError(f"{own!r} and {cluster!r}: name the jobs of one cluster at a time")
        cluster = own or cluster
        out.extend(_named(piece) for piece in _BETWEEN.split(ids))
    return tuple(out), cluster


def _named(text: str) -> Named:
    head, step = text, None
    found = _STEP.fullmatch(text)
    if found is not None:
        head, step = found[1], found[2]
    waiting = _WAITING.fullmatch(head)
    if waiting is not None and step is None and _allowed(waiting[1]):
        return Named(text=text, base=waiting[1], waiting=True)
    id = parse_job_id(head)
    if not _allowed(id.base):
        raise UsageError(f"{text!r} is no job id; {_FORMS}")
    if _HET.fullmatch(head):
        return Named(text=text, base=id.base, het_offset=id.het_offset, step=step)
    if _TASKS.fullmatch(head) and id.tasks is not None and step is None:
        ranges = task_ranges(id.tasks)
        if ranges is not None:
            return Named(text=text, base=id.base, tasks=tuple(merge_ranges(ranges)))
    if id_allowed(head) and "[" not in head:
        tasks = () if id.task is None else ((id.task, id.task),)
        return Named(text=text, base=id.base, tasks=tasks, step=step)
    raise UsageError(f"{text!r} is no job id; {_FORMS}")


def _allowed(base: str) -> bool:
    """Slurm itself refuses a whole list for one number that is none."""
    return id_allowed(base) and int(base) <= _LARGEST


def choose(named: Sequence[Named], rows: Sequence[Job], kind: Kind) -> Chosen:
    """The records of ``rows`` that were named, each once.

    Of a whole array, what is over is left out, unless it is named beside it; a requeue of it
    means its failed tasks and nothing else, for Slurm would run the completed ones again.
    """
    chooser = _Chooser(rows, kind)
    for one in named:
        if one.step is not None:
            chooser.step(one, one.step)
    plain = [one for one in named if one.step is None]
    for base in dict.fromkeys(one.base for one in plain):
        chooser.base([one for one in plain if one.base == base])
    return Chosen(
        jobs=tuple({job.key: job for job in chooser.jobs}.values()),
        swept=tuple(chooser.swept),
        steps=tuple(chooser.steps),
        absent=tuple(dict.fromkeys(chooser.absent)),
        notes=tuple(chooser.notes),
    )


class _Chooser:
    def __init__(self, rows: Sequence[Job], kind: Kind) -> None:
        self._rows = rows
        self._kind = kind
        self.jobs: list[Job] = []
        self.swept: list[tuple[str, tuple[Job, ...]]] = []
        self.steps: list[tuple[Job, str, str]] = []
        self.absent: list[Absent] = []
        self.notes: list[str] = []

    def base(self, named: Sequence[Named]) -> None:
        """All that was named of one number."""
        number = named[0].base
        rows = self._rows_of(number)
        for one in named:
            if one.het_offset is not None:
                part = [row for row in rows if row.id.het_offset == one.het_offset]
                self._take(one.text, part)
        plain = [one for one in named if one.het_offset is None]
        waiting = any(one.waiting for one in plain)
        whole = any(not one.tasks and not one.waiting for one in plain)
        if whole:
            self._whole(number, rows)
        if waiting:
            rest = [row for row in rows if row.id.tasks is not None]
            self._take(f"{number}_[*]", rest)
        ranges = tuple(merge_ranges(span for one in plain for span in one.tasks))
        if ranges:
            # The waiting rest is one record: where all of it is meant, so are its tasks.
            all_waiting = waiting or (whole and self._kind not in _REQUEUES)
            self._tasks(number, rows, ranges, whole_rest=all_waiting)

    def step(self, one: Named, step: str) -> None:
        """One step of one record."""
        rows = self._rows_of(one.base)
        if one.tasks:
            (task, _), *_more = one.tasks
            rows = [row for row in rows if row.id.task == task]
        elif one.het_offset is not None:
            rows = [row for row in rows if row.id.het_offset == one.het_offset]
        elif any(row.id.task is not None or row.id.tasks is not None for row in rows):
            text = f"step {one.text}: {one.base} is an array: name a task, like {one.base}_3.{step}"
            self.absent.append(Absent(one.text, text, known=True))
            return
        else:
            rows = [row for row in rows if not row.id.het_offset]
        if rows:
            self.steps.append((rows[0], step, one.text))
        else:
            self.absent.append(_unknown(one.text.rpartition(".")[0], one.text))

    def _rows_of(self, number: str) -> list[Job]:
        rows = [row for row in self._rows if row.id.base == number]
        # The own number of an array task or a het part names it, too.
        return rows or [row for row in self._rows if row.raw_id == number]

    def _take(self, text: str, rows: Sequence[Job]) -> None:
        self.jobs.extend(rows)
        if not rows:
            self.absent.append(_unknown(text, text))

    def _whole(self, number: str, rows: Sequence[Job]) -> None:
        tasks = [row for row in rows if row.id.task is not None or row.id.tasks is not None]
        if not tasks or rows[0].id.base != number:
            self._take(number, rows)
            return
        if self._kind in _REQUEUES:
            self._failed(number, tasks)
            return
        alive = [row for row in tasks if row.state.phase not in _OVER]
        self.swept.append((number, _in_order(alive or tasks)))

    def _failed(self, number: str, tasks: Sequence[Job]) -> None:
        failed = _in_order(row for row in tasks if row.state.phase is Phase.FAILED)
        if not failed:
            text = (
                f"array {number}: no task of it has failed, as far as Slurm remembers;"
                f" to requeue others, name them, like {number}_3"
            )
            self.absent.append(Absent(number, text, known=True))
            return
        self.jobs.extend(failed)
        others: Counter[str] = Counter()
        for row in tasks:
            if row.state.phase is not Phase.FAILED:
                others[str(row.state.phase)] += _tasks_in(row)
        left = ", ".join(f"{count} {phase}" for phase, count in sorted(others.items()))
        self.notes.append(
            f"array {number}: only its {plural(len(failed), 'failed task')}, as far as Slurm"
            f" remembers; left as they are: {left or 'none'}"
        )

    def _tasks(self, number: str, rows: Sequence[Job], ranges: Ranges, *, whole_rest: bool) -> None:
        if any(row.id.tasks is not None and task_ranges(row.id.tasks) is None for row in rows):
            text = f"job {number}: Slurm cut the list of its waiting tasks, so none can be named"
            self.absent.append(Absent(number, text, known=True))
            return
        found, rest = chosen_tasks([row for row in rows if row.id.base == number], ranges)
        full = {row.key: row for row in rows} if whole_rest else {}
        self.jobs.extend(full.get(job.key, job) for job in _in_order(found))
        for text in task_ids(number, rest):
            self.absent.append(_unknown(text, text))


def _unknown(job: str, text: str) -> Absent:
    base = job.partition("_")[0].partition("+")[0]
    return Absent(
        text,
        f"job {visible(text)}: no such job in the queue (any more);"
        f" sacct -j {visible(base)} tells whether it ended",
    )


def _in_order(rows: Iterable[Job]) -> tuple[Job, ...]:
    """By task, as a person counts; the waiting rest last."""
    return tuple(sorted(rows, key=lambda row: (row.id.task is None, row.id.task or 0)))


def _tasks_in(row: Job) -> int:
    return row.id.tasks.count if row.id.tasks is not None else 1
