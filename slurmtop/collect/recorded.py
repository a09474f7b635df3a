"""A job as a recorded answer of the queue shows it, where nobody asked about it alone."""

from dataclasses import dataclass
from datetime import datetime

from slurmtop.collect.asking import SEPARATOR
from slurmtop.collect.meant import meant
from slurmtop.collect.replay import ReplayRunner
from slurmtop.model.job import Job
from slurmtop.parse.slurm.ids import parse_job_id
from slurmtop.parse.slurm.squeue import QUEUE_FIELDS, parse_squeue


@dataclass(frozen=True, slots=True)
class RecordedJob:
    """``job``, the others of its array or het job, and when the answer was recorded."""

    job: Job
    siblings: tuple[Job, ...]
    at: datetime


def recorded_job(replay: ReplayRunner, asked: str, *, cluster: str = "") -> RecordedJob | None:
    """The newest record of the job in any recorded answer of the queue; None without one."""
    id = parse_job_id(asked)
    field_of = dict(QUEUE_FIELDS)
    for argv, done in reversed(replay.queue_answers):
        names = [piece.partition(":")[0] for piece in argv[argv.index("-O") + 1].split(",")]
        rows = parse_squeue(
            done.stdout,
            fields=[field_of.get(name, "") for name in names],
            separator=SEPARATOR,
            record_mark=replay.mark,
            cluster=cluster,
        ).rows
        job = meant(rows, id)
        if job is not None:
            same = [row for row in rows if row is not job and row.id.base == job.id.base]
            return RecordedJob(job, tuple(same), done.started_at)
    return None
