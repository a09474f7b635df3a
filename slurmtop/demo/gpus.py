"""What the GPUs of the simulated nodes do: numbers for a moment, from the job that holds each.

The figures of a healthy training, of one that waits and of an idle card are those that were seen on
H100s; they move a little with time so that a screen looks alive.
"""

from dataclasses import dataclass

from slurmtop.demo.jobs import DemoJob
from slurmtop.demo.nodes import GPUS, DemoNode
from slurmtop.demo.specs import scatter
from slurmtop.demo.values import View, tasks_per_node

MODEL = "NVIDIA H100 80GB HBM3"
DRIVER = "550.90.07"
POWER_LIMIT_W = 700.0
MEMORY_MIB = 81_559
BUS_IDS = ("1B", "43", "52", "61", "9D", "C3", "D1", "DF")
ASIDE = 11
"""The rank that never comes to the collective in the job that hangs."""
#: (node, GPU) of a card that runs hot and is slowed down by it.
HOT = ("gpu02", 5)
#: (node, GPU) of a card that fell off the bus.
LOST = ("gpu07", 3)

_MAX_MHZ = 1_980
_SW_THERMAL = 0x20
_IDLE = 0x01
_POWER_CAP = 0x04


@dataclass(frozen=True, slots=True)
class Numbers:
    """One GPU at one moment. Shares are 0-1, rates are bytes a second."""

    util_percent: int
    power_w: float
    temp_c: int
    clock_mhz: int
    mem_mib: int
    events: int = 0
    sm: float = 0.0
    occupancy: float = 0.0
    tensor: float = 0.0
    dram: float = 0.0
    pcie: int = 0
    nvlink: int = 0


@dataclass(frozen=True, slots=True)
class Holder:
    """The process on a GPU: rank ``rank`` of ``job``, the ``local``-th on its node."""

    job: DemoJob
    rank: int
    local: int
    pid: int


def uuid_of(node: str, gpu: int) -> str:
    """The same card has the same UUID for ever, and no other card has it."""
    number = scatter(int(node[-2:]) * GPUS + gpu, 1 << 31)
    return f"GPU-{number:08x}-7a1c-4e0b-9f3d-{int(node[-2:]):04x}{gpu:08x}"


def bus_of(gpu: int) -> str:
    return f"00000000:{BUS_IDS[gpu]}:00.0"


def holder(view: View, node: DemoNode, gpu: int) -> Holder | None:
    """Who computes on the GPU; None where it is free or held by nothing that runs."""
    ident = node.gpu_owner[gpu]
    job = view.world.jobs.get(ident) if ident is not None else None
    if job is None or not job.running:
        return None
    ids = job.gpu_ids.get(node.name, ())
    if gpu not in ids:
        return None
    local = ids.index(gpu)
    rank = job.nodes.index(node.name) * tasks_per_node(job.spec) + local
    return Holder(job, rank, local, pid_of(job, local))


def pid_of(job: DemoJob, local: int) -> int:
    """The pid of a rank on its node; the launcher and Slurm's own processes stand before it."""
    return 20_000 + scatter(job.id, 9_000) * 20 + 4 + local


def hangs(view: View, job: DemoJob) -> bool:
    """Has its log gone silent?"""
    spec = job.spec
    silent = spec.hang_s is not None and not job.restarts
    return silent and job.used_s(view.t) >= (spec.hang_s or 0)


def numbers(view: View, node: DemoNode, gpu: int) -> Numbers:
    """What the card shows now."""
    seed = view.t // 2 * 64 + int(node.name[-2:]) * GPUS + gpu
    who = holder(view, node, gpu)
    if who is None or who.job.spec.story == "quiet":
        held = 0 if who is None else 18_204
        return Numbers(0, 68 + scatter(seed, 9), 29 + gpu % 4, 345, held, _IDLE)
    if hangs(view, who.job):
        return _in_the_hang(who, seed)
    return _training(node.name, gpu, who, seed)


def _in_the_hang(who: Holder, seed: int) -> Numbers:
    """Who waits spins on a few of its processors; who is waited for does nothing at all."""
    held = 71_300 + scatter(who.rank, 400)
    if who.rank == ASIDE:
        return Numbers(0, 118 + scatter(seed, 3), 37, _MAX_MHZ, held)
    power = 186 + scatter(seed, 9)
    return Numbers(100, power, 41, _MAX_MHZ, held, sm=0.148, occupancy=0.031, tensor=0.0, dram=0.01)


def _training(node: str, gpu: int, who: Holder, seed: int) -> Numbers:
    held = 71_300 + scatter(who.rank, 900)
    if who.job.spec.gpus == 1:
        util, power = 71 + scatter(seed, 22), 330 + scatter(seed, 60)
        return Numbers(util, power, 48, _MAX_MHZ, 38_912, sm=0.52, occupancy=0.2, tensor=0.11,
                       dram=0.19, pcie=412_000_000)  # fmt: skip
    if (node, gpu) == HOT:
        return Numbers(99, 468 + scatter(seed, 12), 86, 1_455, held, _SW_THERMAL, sm=0.74,
                       occupancy=0.21, tensor=0.19, dram=0.16, pcie=640_000_000,
                       nvlink=3_610_000_000)  # fmt: skip
    return Numbers(
        97 + scatter(seed, 4),
        572 + scatter(seed, 44),
        58 + scatter(gpu + 7, 9),
        _MAX_MHZ - 15 * scatter(seed + 1, 3),
        held,
        _POWER_CAP if scatter(seed, 5) == 0 else 0,
        sm=0.9 + scatter(seed, 20) / 1_000,
        occupancy=0.244,
        tensor=0.27 + scatter(seed, 15) / 1_000,
        dram=0.213,
        pcie=873_509_672,
        nvlink=4_991_558_873 + scatter(seed, 90_000_000),
    )
