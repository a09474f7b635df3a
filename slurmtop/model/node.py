"""A node as sinfo and scontrol describe it."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Usable(StrEnum):
    """Can a new job start here now?"""

    YES = "yes"
    NO = "no"
    AFTER_POWER_UP = "after power-up"
    SPOKEN_FOR = "spoken for"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class NodeState:
    """``text`` as printed; ``base`` and ``flags`` in scontrol's spelling (IDLE, DRAIN …).

    Flags that this version does not know stay in ``flags`` and in ``unknown_flags``.
    """

    text: str
    base: str | None
    flags: tuple[str, ...] = ()
    unknown_flags: tuple[str, ...] = ()
    usable: Usable = Usable.UNKNOWN
    may_run_jobs: bool = False
    """Jobs may be running there now, whatever the base says."""


@dataclass(frozen=True, slots=True)
class GresPool:
    """One kind of generic resource on a node: ``kind`` is gpu, slice or shard."""

    kind: str
    type: str | None
    total: int | None
    used: int | None = None
    index: tuple[int, ...] | None = None
    """Slurm's indices in use; None where Slurm does not say. Not always nvidia-smi's."""
    shares: tuple[tuple[int, int], ...] = ()
    """Shards used and available on each GPU: (2, 8) is ``2/8``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node, once, however many partitions it is in."""

    name: str
    cluster: str = ""
    state: NodeState = NodeState("?", None)
    partitions: tuple[str, ...] = ()
    default_partition: str | None = None
    gres: tuple[GresPool, ...] | None = None
    """None where nobody asked for it; an empty tuple where the node has none."""
    cpus_alloc: int | None = None
    cpus_idle: int | None = None
    cpus_other: int | None = None
    cpus_total: int | None = None
    mem_total_mib: int | None = None
    mem_free_mib: int | None = None
    cpu_load: float | None = None
    reason: str | None = None
    reason_user: str | None = None
    reason_at: datetime | None = None
    fields: tuple[tuple[str, str], ...] = field(default=())

    def gpus(self) -> tuple[int | None, int | None]:
        """(total, used) whole GPUs; None where Slurm did not say."""
        if self.gres is None:
            return None, None
        pools = [pool for pool in self.gres if pool.kind == "gpu"]
        totals = [pool.total for pool in pools]
        used = [pool.used for pool in pools]
        return (
            None if None in totals else sum(value for value in totals if value is not None),
            None if None in used else sum(value for value in used if value is not None),
        )
