"""Whose are the GPUs that can be seen on a node?

A cgroup shows only the GPUs of the job that a login was put into (pam_slurm_adopt takes the
newest) and numbers them anew from 0. So an index of nvidia-smi says nothing about Slurm's IDX,
and what cannot be seen is neither idle nor lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from slurmtop.model.gpu import GpuSample
from slurmtop.model.job import Tres
from slurmtop.model.units import plural


@dataclass(frozen=True, slots=True)
class JobShare:
    """A job on the node and how many of the node's GPUs it holds; None where Slurm does not say.

    Of a job on several nodes Slurm tells the sum alone, and 4 on 2 nodes may be 3 and 1: then
    ``even`` is what each node has if they are spread evenly. ``most`` is how many cards it may
    have here, slices and shards among them. ``started`` None: not known.
    """

    job: str
    gpus: int | None
    started: datetime | None = None
    even: int | None = None
    most: int | None = None


def share_of(job: str, tres: Tres, nodes: int | None, started: datetime | None = None) -> JobShare:
    """The share that each of ``nodes`` has of what ``job`` (its raw number) holds in all."""
    gpus = tres.gpus
    parts = sum(count for _, count in tres.slices_by_type) + (tres.shards or 0) + (tres.mps or 0)
    most = None if gpus is None else gpus + parts
    if gpus is None or nodes == 1 or gpus == 0:
        return JobShare(job, gpus, started, most=most)
    even = gpus // nodes if nodes and gpus % nodes == 0 else None
    return JobShare(job, None, started, even=even, most=most)


def held_text(tres: Tres) -> str:
    """``16 GPUs``, ``4 MIG slices``, ``2 GPU shards``, ``50 MPS shares``; ``GPUs``: not told."""
    if tres.gpus:
        return plural(tres.gpus, "GPU")
    if tres.slices_by_type:
        return plural(sum(count for _, count in tres.slices_by_type), "MIG slice")
    if tres.shards:
        return plural(tres.shards, "GPU shard")
    return plural(tres.mps, "MPS share") if tres.mps else "GPUs"


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
    A cgroup that shows more than its job holds parts nothing (no ``ConstrainDevices``), and where
    it is not known how many that are, it may part nothing.
    """
    all_seen = node_gpus is not None and len(visible) >= node_gpus
    owner = inside
    if owner is not None and _may_part_nothing(len(visible), owner, jobs, node_gpus):
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


def _may_part_nothing(
    seen: int, inside: str, jobs: Sequence[JobShare], node_gpus: int | None
) -> bool:
    """Are, or may, GPUs be seen that are not those of ``inside``?"""
    all_seen = node_gpus is not None and seen >= node_gpus
    if all_seen and any(job.gpus != 0 for job in jobs if job.job != inside):
        return True
    mine = next((job for job in jobs if job.job == inside), None)
    if mine is None or seen in (mine.gpus, mine.even):
        return False
    most = mine.most if mine.most is not None else mine.gpus or None
    if most is not None and seen > most:
        return True
    # Fewer than the node has: the cgroup parts, and all of it is the job's.
    parts = node_gpus is not None and not all_seen
    return mine.gpus is None and not parts


def _by_count(seen: int, jobs: Sequence[JobShare]) -> str | None:
    """The job whose GPUs these must be: fewer are seen than the jobs hold together."""
    fitting = [job for job in jobs if seen and seen in (job.gpus, job.even)]
    if len(jobs) > 1 and sum(job.gpus or 0 for job in jobs) <= seen:
        return None
    if any(_may_hold(seen, job) for job in jobs if job not in fitting):
        return None
    if len(fitting) < 2:
        return fitting[0].job if fitting else None
    if any(job.gpus is None for job in fitting):
        return None
    started = [job.started for job in fitting if job.started is not None]
    newest = [job for job in fitting if started and job.started == max(started)]
    return newest[0].job if len(newest) == 1 and len(started) == len(fitting) else None


def _may_hold(seen: int, job: JobShare) -> bool:
    """Where it is not known how many it holds: may it be as many as are seen?"""
    return job.gpus is None and (job.most is None or job.most >= seen)
