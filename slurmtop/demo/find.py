"""The records behind a job id as a person types it."""

import re

from slurmtop.demo.jobs import DemoJob
from slurmtop.demo.text import parse_tasks
from slurmtop.demo.values import View

_ID = re.compile(
    r"([0-9]{1,10})(?:_([0-9]{1,7}|\*|\[[0-9,:%-]{1,9999}\])|\+([0-9]{1,4}))?", re.ASCII
)


def find(view: View, text: str) -> list[DemoJob] | None:
    """The records behind an id as typed; None where it is no id, empty where none is left."""
    match = _ID.fullmatch(text)
    if match is None:
        return None
    number, tasks, offset = int(match[1]), match[2], match[3]
    known = [job for job in view.world.remembered() if number in (job.id, job.array_id, job.het_id)]
    known.sort(key=lambda job: (job.tasks is None, job.het_offset, job.task or 0))
    if offset is not None:
        return [job for job in known if job.het_id == number and job.het_offset == int(offset)]
    if tasks is None:
        exact = [job for job in known if job.id == number]
        whole = [job for job in known if number in (job.array_id, job.het_id)]
        return whole or exact
    if tasks == "*":
        return [job for job in known if job.array_id == number]
    wanted = set(parse_tasks(tasks.strip("[]")) or ())
    return [
        job
        for job in known
        if job.array_id == number and (job.task in wanted or not wanted.isdisjoint(job.tasks or ()))
    ]
