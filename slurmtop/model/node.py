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
    """One kind of generic resource on a node: ``kind`` is gpu, slice, shard or mps."""

    kind: str
    type: str | None
    total: int | None
    used: int | None = None
    index: tuple[int, ...] | None = None
    """Slurm's indices in use; None where Slurm does not say. Not always nvidia-smi's."""
    shares: tuple[tuple[int, int], ...] = ()
    """Shards used and available on each GPU: (2, 8) is ``2/8``."""


@dataclass(frozen=True, slots=True)
class GpuCount:
    """Whole GPUs of a node, or those of one type; None where Slurm did not say.

    ``lost`` are missing on the node, as Slurm itself says; ``shared`` are handed out in shards
    or by MPS now, so that nobody gets one of them whole.
    """

    total: int | None
    used: int | None
    lost: int | None = None
    shared: int | None = 0

    @property
    def free(self) -> int | None:
        """Neither used, nor lost, nor shared: whether a job may have them is another question."""
        if self.total is None or self.used is None or self.shared is None:
            return None
        return max(0, self.total - self.used - (self.lost or 0) - self.shared)


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
    gpus_lost: int | None = None
    """How many GPUs Slurm misses there, by its own reason; None where it says nothing of it."""
    fields: tuple[tuple[str, str], ...] = field(default=())

    def gpus(self) -> tuple[int | None, int | None]:
        """(total, used) whole GPUs; None where Slurm did not say."""
        count = self.gpu_count()
        return count.total, count.used

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """The types of its whole GPUs, in Slurm's order; empty where they have no type."""
        pools = self.gres or ()
        return tuple(pool.type for pool in pools if pool.kind == "gpu" and pool.type)

    def gpu_count(self, type: str | None = None) -> GpuCount:
        """All its whole GPUs, or those of one ``type``. MIG slices, shards and MPS are none.

        Where a pool without a type stands beside some with one, it is their sum.
        """
        if self.gres is None:
            return GpuCount(None, None, self.gpus_lost, None)
        pools = [pool for pool in self.gres if pool.kind == "gpu"]
        untyped = [pool for pool in pools if pool.type is None]
        if type is not None:
            pools = [pool for pool in pools if (pool.type or "").casefold() == type.casefold()]
        elif untyped and len(untyped) < len(pools):
            pools = untyped
        return GpuCount(
            _sum([pool.total for pool in pools]),
            _sum([pool.used for pool in pools]),
            self.gpus_lost,
            self._shared(),
        )

    def _shared(self) -> int | None:
        """GPUs of which parts are handed out; None where only the number of parts is known."""
        shards = [pool for pool in self.gres or () if pool.kind in ("shard", "mps")]
        if any(pool.used is None or (pool.used and not pool.shares) for pool in shards):
            return None
        return sum(1 for pool in shards for used, _ in pool.shares if used)


def _sum(values: list[int | None]) -> int | None:
    return None if None in values else sum(value for value in values if value is not None)
