"""Which of the GPUs seen on a node are one job's, by everything that a look tells."""

from collections.abc import Sequence
from dataclasses import replace

from slurmtop.model.gpu import GpuSample
from slurmtop.model.look import HostLook
from slurmtop.model.units import plural
from slurmtop.triage.gpu_share import NOT_TOLD, Attributed, JobShare, attribute_gpus


def gpus_of_job(
    look: HostLook,
    share: JobShare,
    others: Sequence[JobShare] = (),
    *,
    node_gpus: int | None = None,
) -> Attributed:
    """The GPUs of ``share.job`` (its raw number) on that node; None where they cannot be told.

    In this order: what the node's prolog wrote down for each GPU; the cgroup that we are in and
    the numbers of GPUs that the jobs there hold; the processes on the GPUs. By processes alone a
    GPU on which nothing runs stays unknown, and ``says`` tells how many were found.
    Notes on more GPUs than it holds are old ones and tell nothing. ``others`` are the other jobs
    known on the node, ``node_gpus`` is how many GPUs the node has, None where nobody said.
    """
    samples = whole_gpus(look)
    noted = tuple(gpu for gpu in samples if share.job in gpu.jobs)
    most = share.most if share.most is not None else share.gpus or len(noted)
    if noted and len(noted) <= most:
        return Attributed(share.job, noted)
    unseen = _unseen(look, samples, node_gpus)
    mine = attribute_gpus(
        (*samples, *unseen), (share, *others), inside=look.inside, node_gpus=node_gpus
    )[0]
    if mine.gpus is not None:
        return replace(mine, gpus=tuple(gpu for gpu in mine.gpus if gpu not in unseen))
    if mine.says != NOT_TOLD:
        return mine
    ours = _by_process(look, samples, share.job)
    if not ours:
        return mine
    if len(ours) in (share.gpus, share.even):
        return Attributed(share.job, ours)
    of = f"{len(ours)} of " if share.gpus else ""
    says = f"{of}{plural(share.gpus or len(ours), 'GPU')} told by the processes on them"
    return Attributed(share.job, ours, says)


def _unseen(
    look: HostLook, samples: Sequence[GpuSample], node_gpus: int | None
) -> tuple[GpuSample, ...]:
    """Cards without values that are still among those given out: the lost, and unreadable rows."""
    if look.gpus is None:
        return ()
    lost = tuple(GpuSample(words=(("lost", name),)) for name in look.gpus.lost)
    # An exporter has many lines a GPU, of which a bad one hides none; its GPUs have no index.
    bad = look.gpus.bad if any(gpu.index is not None for gpu in samples) else 0
    if node_gpus is not None:
        bad = min(bad, max(0, node_gpus - len(samples) - len(lost)))
    return (*lost, *(GpuSample(words=(("unreadable", str(row)),)) for row in range(bad)))


def whole_gpus(look: HostLook) -> tuple[GpuSample, ...]:
    """The GPUs of a look; slices are left to their card."""
    if look.gpus is None:
        return ()
    return tuple(gpu for gpu in look.gpus.samples if gpu.slice_id is None)


def _by_process(look: HostLook, samples: Sequence[GpuSample], job: str) -> tuple[GpuSample, ...]:
    gpus, processes = look.gpus, look.processes
    if gpus is None or not gpus.processes or processes is None:
        return ()
    pids = {process.pid for process in processes.processes if process.job == job}
    used = {process.gpu_uuid for process in gpus.processes if process.pid in pids}
    return tuple(gpu for gpu in samples if gpu.uuid is not None and gpu.uuid in used)
