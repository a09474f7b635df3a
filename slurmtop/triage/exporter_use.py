"""Whose GPUs an exporter speaks of, checked against the queue: its job labels may be stale."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from slurmtop.model.gpu import GpuSample


@dataclass(frozen=True, slots=True)
class JobOnHosts:
    """A job that runs: its raw number, its nodes and how many GPUs it holds on each of them;
    None where Slurm does not say how they are spread."""

    job: str
    hosts: frozenset[str]
    gpus_each: int | None = None


def gpus_by_job(
    seen: Mapping[str, Sequence[GpuSample]],
    jobs: Sequence[JobOnHosts],
    *,
    running: Collection[str] = (),
) -> dict[str, tuple[GpuSample, ...]]:
    """The GPUs of each of ``jobs``, out of what was seen of nodes; jobs without any are left out.

    A label counts only for a job that runs on that node: the file behind it outlives a dead
    epilog. A GPU that several running jobs share is nobody's: its value cannot be divided; for
    that ``running`` names the others that run anywhere. Where no GPU of a node has a label, they
    are those of the job that holds as many as are there.
    """
    out: dict[str, list[GpuSample]] = {}
    on_host: dict[str, list[JobOnHosts]] = {}
    for job in jobs:
        for host in job.hosts:
            on_host.setdefault(host, []).append(job)
    for host, gpus in seen.items():
        here = on_host.get(host, [])
        names = {job.job for job in here}
        whole = [gpu for gpu in gpus if gpu.slice_id is None]
        if any(gpu.jobs for gpu in gpus):
            for gpu in whole:
                alive = [job for job in gpu.jobs if job in names or job in running]
                if len(alive) == 1 and alive[0] in names:
                    out.setdefault(alive[0], []).append(gpu)
        elif len(here) == 1 and whole and here[0].gpus_each == len(whole):
            out.setdefault(here[0].job, []).extend(whole)
    return {job: tuple(gpus) for job, gpus in out.items()}
