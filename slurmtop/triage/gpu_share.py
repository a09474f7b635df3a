"""Whose are the GPUs that can be seen on a node?

A cgroup shows only the GPUs of the job that a login was put into (pam_slurm_adopt takes the
newest) and numbers them anew from 0. So an index of nvidia-smi says nothing about Slurm's IDX,
and what cannot be seen is neither idle nor lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from slurmtop.model.gpu import GpuSample


@dataclass(frozen=True, slots=True)
class JobShare:
    """A job on the node and how many of the node's GPUs it holds. ``started`` None: not known."""

    job: str
    gpus: int
    started: datetime | None = None


@dataclass(frozen=True, slots=True)
class Attributed:
    """``gpus`` is None where the job's GPUs cannot be seen or told from others; ``says`` why."""

    job: str
    gpus: tuple[GpuSample, ...] | None
    says: str = ""


NOT_VISIBLE = "not visible from here"
NOT_TOLD = "not told apart from other jobs' GPUs"


def attribute_gpus(
    visible: Sequence[GpuSample],
    jobs: Sequence[JobShare],
    *,
    inside: str | None = None,
    node_gpus: int | None = None,
) -> tuple[Attributed, ...]:
    """The GPUs of each of ``jobs``, in their order, from what one login on the node sees.

    ``inside`` is the job whose cgroup the asker is in, where it could be read. ``node_gpus`` is
    how many the node has: where all are seen, no cgroup parts them. Without ``inside`` it is the
    one job that holds exactly as many GPUs as are seen, the newest where there are several.
    A cgroup that shows more than its job holds parts nothing (no ``ConstrainDevices``).
    """
    all_seen = node_gpus is not None and len(visible) >= node_gpus
    owner = inside
    if owner is not None and _parts_nothing(len(visible), owner, jobs, all_seen):
        return tuple(Attributed(job.job, None, NOT_TOLD) for job in jobs)
    if owner is None and (not all_seen or len(jobs) == 1):
        owner = _by_count(len(visible), jobs)
    if owner is None:
        return tuple(Attributed(job.job, None, NOT_TOLD) for job in jobs)
    return tuple(
        Attributed(job.job, tuple(visible))
        if job.job == owner
        else Attributed(job.job, None, NOT_VISIBLE)
        for job in jobs
    )


def _parts_nothing(seen: int, inside: str, jobs: Sequence[JobShare], all_seen: bool) -> bool:
    held = sum(job.gpus for job in jobs if job.job == inside)
    others = sum(job.gpus for job in jobs if job.job != inside)
    return 0 < held < seen or (all_seen and others > 0)


def _by_count(seen: int, jobs: Sequence[JobShare]) -> str | None:
    """The job whose GPUs these must be: fewer are seen than the jobs hold together."""
    fitting = [job for job in jobs if job.gpus == seen and seen]
    if len(jobs) > 1 and sum(job.gpus for job in jobs) <= seen:
        return None
    if len(fitting) < 2:
        return fitting[0].job if fitting else None
    started = [job.started for job in fitting if job.started is not None]
    newest = [job for job in fitting if started and job.started == max(started)]
    return newest[0].job if len(newest) == 1 and len(started) == len(fitting) else None
