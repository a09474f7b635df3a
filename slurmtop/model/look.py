"""One look at one node: its GPUs and the processes on them."""

from dataclasses import dataclass
from datetime import datetime

from slurmtop.model.gpu import NodeGpus
from slurmtop.model.nic import NicPort
from slurmtop.model.process import NodeProcesses
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLook:
    """What is known of one node since the last news of it.

    ``gpus`` is the newest answer, merged from the sources that spoke (``sources``, e.g.
    ``("nvidia-smi", "dcgmi")``); it is kept while later looks fail, and ``gpus_at`` is when it was
    true. ``gpus.processes`` are the processes on the GPUs, ``processes`` all of the node, each with
    the age of its own look. ``failure`` says why the newest look failed, None while all is well;
    ``failing_since`` goes with it. ``hints`` are sentences about sources that are not there, told
    once. ``inside`` is the job whose cgroup we are in on that node (pam_slurm_adopt).
    """

    host: str
    way: Way | None = None
    gpus: NodeGpus | None = None
    gpus_at: datetime | None = None
    sources: tuple[str, ...] = ()
    processes: NodeProcesses | None = None
    failure: Failure | None = None
    failing_since: datetime | None = None
    next_at: datetime | None = None
    """When it is tried again, after a failure."""
    hints: tuple[str, ...] = ()
    inside: str | None = None
    nics: tuple[NicPort, ...] | None = None
    """Its network ports, every 15 s; None where nobody asked. Rates need two looks."""
