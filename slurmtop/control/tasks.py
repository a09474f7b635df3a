"""Some tasks of an array: what a person names, and the records behind it. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from slurmtop.control.commands import merge_ranges
from slurmtop.control.plan import task_ranges
from slurmtop.control.rows import common, task_count, without
from slurmtop.model.ids import TaskSet
from slurmtop.model.job import Job
from slurmtop.model.spans import span_text

Ranges = tuple[tuple[int, int], ...]
#: Slurm's own largest task number has seven digits.
_DIGITS = 7
#: More than this many pieces is no list that a person typed.
_PIECES = 1_000


def parse_tasks(text: str) -> Ranges | None:
    """The inclusive ranges of ``3,7-9``, merged; None for anything else. Total."""
    spans: list[tuple[int, int]] = []
    pieces = [piece.strip() for piece in text.strip().split(",")]
    if len(pieces) > _PIECES:
        return None
    for piece in pieces:
        low_text, dash, high_text = piece.partition("-")
        low_text, high_text = low_text.strip(), high_text.strip() if dash else low_text.strip()
        for number in (low_text, high_text):
            if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
                return None
        low, high = int(low_text), int(high_text)
        if high < low:
            return None
        spans.append((low, high))
    return tuple(merge_ranges(spans))


def chosen_tasks(jobs: Sequence[Job], ranges: Ranges) -> tuple[tuple[Job, ...], Ranges]:
    """The records of one array behind ``ranges``, and the ranges that no record covers.

    Of the record of the waiting rest only the tasks meant are kept. Where Slurm cut its list
    of tasks it is left out, so that what was named there comes back as not covered.
    """
    found: list[Job] = []
    covered: list[tuple[int, int]] = []
    for job in jobs:
        if job.id.task is not None:
            if any(low <= job.id.task <= high for low, high in ranges):
                found.append(job)
                covered.append((job.id.task, job.id.task))
        elif job.id.tasks is not None:
            both = common(task_ranges(job.id.tasks) or (), ranges)
            if both:
                found.append(_narrowed(job, both))
                covered.extend(both)
    return tuple(found), tuple(without(ranges, covered))


def _narrowed(job: Job, ranges: Sequence[tuple[int, int]]) -> Job:
    text = ",".join(map(span_text, ranges))
    return replace(job, id=replace(job.id, tasks=TaskSet(text, task_count(ranges))))
