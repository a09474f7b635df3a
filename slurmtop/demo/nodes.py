"""The eight nodes, what is in use on them, and whether a job fits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from slurmtop.demo.jobs import DemoJob, Spec

CLUSTER = "aurora"
NODE_NAMES = tuple(f"gpu{number:02}" for number in range(1, 9))
PARTITIONS: dict[str, tuple[str, ...]] = {"gpu": NODE_NAMES, "long": NODE_NAMES[:4]}
DEFAULT_PARTITION = "gpu"
MAX_TIME_S = {"gpu": 2 * 86_400, "long": 14 * 86_400}
GPUS = 8
CPUS = 128
MEMORY_MIB = 2_063_360


@dataclass(slots=True)
class DemoNode:
    """``trouble`` is None, "drain" or "down"; ``reason`` says why, ``reason_t`` since when."""

    name: str
    trouble: str | None = None
    reason: str | None = None
    reason_t: int | None = None
    gpu_owner: list[int | None] = field(default_factory=lambda: [None] * GPUS)
    cpus: dict[int, int] = field(default_factory=dict)
    memory: dict[int, int] = field(default_factory=dict)
    last_busy_t: int = -900
    kept_for: int | None = None
    """A requeued job that will be back in two minutes and would find its nodes taken."""

    @property
    def usable(self) -> bool:
        return self.trouble is None

    @property
    def gpus_used(self) -> tuple[int, ...]:
        return tuple(at for at, owner in enumerate(self.gpu_owner) if owner is not None)

    @property
    def cpus_used(self) -> int:
        return sum(self.cpus.values())

    @property
    def memory_used(self) -> int:
        return sum(self.memory.values())

    def fits(self, spec: Spec, without: Iterable[int] = ()) -> bool:
        """Is there room for one node's share of ``spec``, were the jobs ``without`` gone?"""
        gone = set(without)
        free = sum(1 for owner in self.gpu_owner if owner is None or owner in gone)
        cpus = sum(count for job, count in self.cpus.items() if job not in gone)
        memory = sum(count for job, count in self.memory.items() if job not in gone)
        return (
            free >= spec.gpus and cpus + spec.cpus <= CPUS and memory + spec.mem_mib <= MEMORY_MIB
        )

    def take(self, job: DemoJob, gpu_ids: Sequence[int] | None = None) -> tuple[int, ...]:
        """Give the job its share; the indices of its GPUs here."""
        free = [at for at, owner in enumerate(self.gpu_owner) if owner is None]
        chosen = tuple(gpu_ids) if gpu_ids is not None else tuple(free[: job.spec.gpus])
        for at in chosen:
            self.gpu_owner[at] = job.id
        self.cpus[job.id] = job.spec.cpus
        self.memory[job.id] = job.spec.mem_mib
        return chosen

    def release(self, job: DemoJob, t: int) -> None:
        self.gpu_owner = [None if owner == job.id else owner for owner in self.gpu_owner]
        if self.cpus.pop(job.id, None) is not None:
            self.last_busy_t = t
        self.memory.pop(job.id, None)


def choose(nodes: Iterable[DemoNode], job: DemoJob, without: Iterable[int] = ()) -> list[DemoNode]:
    """The first nodes that fit the job, as many as it asks for; empty where they do not.

    A node that is kept for another job is left alone.
    """
    spec = job.spec
    gone = tuple(without)
    allowed = PARTITIONS.get(spec.partition, ())
    found = [
        node
        for node in nodes
        if node.usable
        and node.name in allowed
        and node.name not in job.exc_nodes
        and node.kept_for in (None, job.id)
        and (not spec.req_nodes or node.name in spec.req_nodes)
        and node.fits(spec, gone)
    ]
    return found[: spec.nodes] if len(found) >= spec.nodes else []
