"""Which records of the queue, and which steps, an action reached. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from slurmtop.control.actions import Target
from slurmtop.control.commands import merge_ranges, task_ids
from slurmtop.model.ids import JobId, JobKey, TaskSet
from slurmtop.model.job import Job, Phase, Step
from slurmtop.model.spans import span_text
from slurmtop.model.text import visible

Ranges = Sequence[tuple[int, int]]
_NO_ID = JobId("", "")


def name_of(target: Target) -> str:
    """How a person is told which job it is: the id on the command line, where it is one."""
    return visible(target.ids[0]) if len(target.ids) == 1 else visible(target.key.id)


def numbers_of(target: Target) -> tuple[str, ...]:
    """The plain numbers that a query names: of a step in a het part that part's own, too."""
    own = target.ids[0].partition(".")[0].partition("_")[0] if target.step is not None else ""
    return tuple(dict.fromkeys(number for number in (target.base, own) if number))


def matching(target: Target, jobs: Iterable[Job]) -> list[Job]:
    """The records that the action reached: of an array only the tasks that were named."""
    rows = [job for job in jobs if job.id.base == target.base]
    if target.parts:
        return [job for job in rows if job.id.task is None and job.id.tasks is None]
    if not target.tasks:
        return [job for job in rows if job.id.stable == target.key.id]
    return [job for job in rows if _among(job, target.tasks) or _emptied(job, target)]


def steps_of(target: Target, steps: Iterable[Step]) -> list[Step]:
    """The steps of the target's job; of one part of a het job its own."""
    names = {target.key.id}
    if target.step is not None:
        # The first part of a het job is listed under the number of the whole.
        names.add(target.ids[0].partition(".")[0])
    out = []
    for step in steps:
        if target.parts or target.tasks:
            mine = step.job.base == target.base and (
                not target.tasks or _inside(step.job.task, target.tasks)
            )
        else:
            mine = step.job.stable in names
        if mine and (target.step is None or step.id == target.step):
            out.append(step)
    return out


def pieces_of(target: Target, rows: Sequence[Job]) -> list[tuple[Target, list[Job]]]:
    """The target cut along the records of its tasks; the last piece has none any more.

    A target without tasks is one piece with all of its records.
    """
    if not target.tasks:
        return [(target, list(rows))]
    left = merge_ranges(target.tasks)
    out: list[tuple[Target, list[Job]]] = []
    for row in rows:
        spans = id_ranges(row.id)
        mine = common(left, left if spans is None else spans)
        if mine:
            out.append((narrowed(target, mine), [row]))
            left = without(left, mine)
    if left:
        out.append((narrowed(target, left), []))
    return out


def join_alike(jobs: Sequence[Job]) -> tuple[Job, ...]:
    """``jobs``, where of each array the largest lot of equal waiting tasks is one record again.

    Only one lot: two records with the key of the waiting rest could not be told apart.
    """
    lots: dict[Job, list[Job]] = {}
    for job in jobs:
        if job.id.task is not None and job.state.phase is Phase.PENDING:
            bare = replace(job, key=JobKey(job.key.cluster, job.id.base), id=_NO_ID, raw_id=None)
            lots.setdefault(bare, []).append(job)
    largest: dict[JobKey, list[Job]] = {}
    for bare, lot in lots.items():
        if len(lot) > len(largest.get(bare.key, lot[:1])):
            largest[bare.key] = lot
    inside = {job.key for lot in largest.values() for job in lot}
    apart = [job for job in jobs if job.key not in inside]
    return (*apart, *map(_joined, largest.values()))


def _joined(lot: Sequence[Job]) -> Job:
    first = lot[0]
    ranges = merge_ranges((job.id.task, job.id.task) for job in lot if job.id.task is not None)
    text = ",".join(map(span_text, ranges))
    base = first.id.base
    id = JobId(f"{base}_[{text}]", base, tasks=TaskSet(text, len(lot)))
    return replace(first, key=JobKey(first.key.cluster, id.stable), id=id)


def id_ranges(id: JobId) -> Ranges | None:
    """The tasks that an id names; None where Slurm cut the list, () where it names none."""
    if id.task is not None:
        return [(id.task, id.task)]
    return () if id.tasks is None else spans_of(id.tasks.text)


def narrowed(target: Target, ranges: Ranges) -> Target:
    """``target`` with these tasks only."""
    merged = merge_ranges(ranges)
    if merged == merge_ranges(target.tasks):
        return target
    ids = tuple(task_ids(target.base, merged))
    return replace(target, tasks=tuple(merged), ids=ids, covers=task_count(merged))


def task_count(ranges: Ranges) -> int:
    return sum(high - low + 1 for low, high in ranges)


def common(one: Ranges, other: Ranges) -> list[tuple[int, int]]:
    """The tasks in both."""
    return merge_ranges(
        (max(low, low2), min(high, high2))
        for low, high in one
        for low2, high2 in other
        if low <= high2 and low2 <= high
    )


def without(one: Ranges, other: Ranges) -> list[tuple[int, int]]:
    """The tasks in ``one`` that are not in ``other``."""
    left = merge_ranges(one)
    for low, high in other:
        kept: list[tuple[int, int]] = []
        for start, end in left:
            kept.extend(((start, min(end, low - 1)), (max(start, high + 1), end)))
        left = [(start, end) for start, end in kept if start <= end]
    return merge_ranges(left)


def waited(target: Target) -> bool:
    """Did it stand for tasks that wait?"""
    return bool(target.tasks) and target.started_at is None


def spans_of(text: str) -> list[tuple[int, int]] | None:
    """The spans of a task list, strides taken as whole; None where it cannot be read."""
    out: list[tuple[int, int]] = []
    for piece in text.partition("]")[0].partition("%")[0].split(","):
        low, _, high = piece.partition(":")[0].partition("-")
        numbers = (low, high or low)
        if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in numbers):
            return None
        if int(numbers[0]) <= int(numbers[1]):
            out.append((int(numbers[0]), int(numbers[1])))
    return out


def _emptied(job: Job, target: Target) -> bool:
    """The record of an array whose waiting tasks were all cancelled by number.

    Slurm takes them out one by one and prints what is left, ended, without any bracket.
    """
    return waited(target) and job.id.stable == target.base


def _among(job: Job, ranges: Ranges) -> bool:
    if job.id.task is not None:
        return _inside(job.id.task, ranges)
    if job.id.tasks is None:
        return False
    own = spans_of(job.id.tasks.text)
    return own is None or bool(common(ranges, own))


def _inside(task: int | None, ranges: Ranges) -> bool:
    return task is not None and any(low <= task <= high for low, high in ranges)
