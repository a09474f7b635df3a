"""Do the GPUs of a job do useful work? Utilisation alone cannot tell: a kernel that waits for
its peers counts as 100 %.

A hang is said only after two looks that lie apart, on most of the job's GPUs, and only by
counters that also tell waiting from computing. Nothing unknown is ever taken for 0.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from statistics import median

from slurmtop.model.gpu import Answer, GpuSample, NodeGpus
from slurmtop.model.text import visible
from slurmtop.model.units import plural

#: Above this share of its power limit a GPU without utilisation (MIG) does something.
_POWER_BUSY = 0.3
_UTIL_FULL = 95.0
_POWER_WAITS = 0.4
_SM_WAITS = 0.4
_TENSOR_WAITS = 0.01
_DRAM_WAITS = 0.03
_LINKS_WAIT_BYTES_S = 10_000_000
#: Memory traffic of this share is work of its own (inference).
_DRAM_BOUND = 0.4
#: Of the job's GPUs, so many must be known and wait; and for so long.
_SHARE = 0.8
HANG_AFTER_S = 180.0
#: With fewer GPUs nobody is the odd one.
_FEWEST = 3
_FEWEST_COMPARED = 4
_MAD_TO_SIGMA = 1.4826
_ODD_SIGMAS = 3.5


class Work(StrEnum):
    """What one GPU does at one moment, as far as its counters can tell."""

    COMPUTES = "computes"
    WAITS = "waits"
    """A kernel is resident and does nothing: so looks a collective that waits for a peer."""
    PERHAPS_WAITS = "perhaps waits"
    """The same by utilisation and power alone."""
    FULL = "full"
    """Utilisation is full and nothing else is known: it may compute or wait."""
    BUSY = "busy"
    LIKELY_BUSY = "likely (power)"
    """There is no utilisation (MIG), but the power is that of a working GPU."""
    IDLE = "idle"
    UNKNOWN = "unknown"


def work_of(gpu: GpuSample) -> Work:
    """See :class:`Work`; never IDLE where there is no utilisation."""
    util, share = gpu.util_percent, gpu.power_share
    if util is None:
        return Work.LIKELY_BUSY if share is not None and share >= _POWER_BUSY else Work.UNKNOWN
    if util < 1:
        return Work.IDLE
    if util < _UTIL_FULL:
        return Work.BUSY
    if share is not None and share >= _POWER_WAITS:
        return Work.COMPUTES
    if gpu.tensor_active is None or gpu.dram_active is None:
        return Work.FULL if share is None else Work.PERHAPS_WAITS
    links = (
        gpu.pcie_tx_bytes_s,
        gpu.pcie_rx_bytes_s,
        gpu.nvlink_tx_bytes_s,
        gpu.nvlink_rx_bytes_s,
    )
    silent = (
        gpu.tensor_active < _TENSOR_WAITS
        and gpu.dram_active < _DRAM_WAITS
        and (gpu.sm_active is None or gpu.sm_active < _SM_WAITS)
        and sum(value for value in links if value is not None) < _LINKS_WAIT_BYTES_S
    )
    return Work.WAITS if silent else Work.COMPUTES


def work_note(gpu: GpuSample) -> str | None:
    """Why a GPU that computes may look odd: ``memory bound``, ``no tensor use``."""
    if work_of(gpu) is not Work.COMPUTES or gpu.tensor_active is None:
        return None
    if gpu.tensor_active >= _TENSOR_WAITS:
        return None
    if gpu.dram_active is not None and gpu.dram_active > _DRAM_BOUND:
        return "memory bound"
    return "no tensor use"


def mean_util(gpus: Iterable[GpuSample]) -> float | None:
    """Mean per cent over the GPUs that have the number; None where none has it."""
    known = [gpu.util_percent for gpu in gpus if gpu.util_percent is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True, slots=True)
class GpuRef:
    """A GPU of a job: by UUID where it has one; ``number`` is the index, else DCGM's id. Slices
    may have their card's UUID and number and are told apart by ``slice``."""

    host: str
    number: int | None
    uuid: str | None = None
    slice: str | None = None

    @property
    def name(self) -> str:
        part = "" if self.slice is None else f" slice {visible(self.slice)}"
        return f"GPU {'?' if self.number is None else self.number}{part}"


def ref_of(host: str, gpu: GpuSample) -> GpuRef:
    number = gpu.dcgm_id if gpu.index is None else gpu.index
    return GpuRef(host, number, gpu.uuid, gpu.slice_id)


@dataclass(frozen=True, slots=True)
class JobLook:
    """The nodes of a job, asked at about one time. ``gpus`` is how many the job holds."""

    at: datetime
    nodes: tuple[NodeGpus, ...]
    gpus: int

    @property
    def samples(self) -> tuple[tuple[GpuRef, GpuSample], ...]:
        """The GPUs whose values are known."""
        return tuple((ref_of(node.host, gpu), gpu) for node in self.nodes for gpu in node.samples)


class JobWork(StrEnum):
    HEALTHY = "healthy"
    HANG = "hang"
    POSSIBLE_HANG = "possible hang"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class WorkVerdict:
    """What the GPUs alone say of a job. ``says`` is short; ``odd`` are the GPUs that do not wait
    with the others: suspects, not culprits."""

    state: JobWork
    says: str = ""
    odd: tuple[GpuRef, ...] = ()


def judge_work(looks: Sequence[JobLook], *, log_silent_s: float | None = None) -> WorkVerdict:
    """From looks in order of time. ``log_silent_s``: seconds since the job's log grew.

    A hang needs looks at least :data:`HANG_AFTER_S` apart in which nearly all GPUs of the job
    wait, and a silent log; with a log that nobody read it is only possible. So it is without
    profiling counters, where the log must be silent and the memory must not have moved.
    """
    if not looks:
        return WorkVerdict(JobWork.UNKNOWN, "nobody looked at the GPUs yet")
    last = looks[-1]
    if len(last.samples) < _SHARE * last.gpus:
        says = f"{len(last.samples)} of {plural(last.gpus, 'GPU')} known: too few to tell"
        return WorkVerdict(JobWork.UNKNOWN, says)
    waiting = _unbroken(looks)
    if not waiting:
        return _no_hang(last)
    first = waiting[0]
    apart = (last.at - first.at).total_seconds()
    if apart < HANG_AFTER_S:
        return WorkVerdict(JobWork.UNKNOWN, "all wait; too early to call it a hang")
    if log_silent_s is not None and log_silent_s < apart:
        return WorkVerdict(JobWork.UNKNOWN, "all wait, but the job's log goes on")
    counted = all(_waits(look, sure=True) for look in waiting)
    if not counted and (log_silent_s is None or not _memory_flat(first, last)):
        return WorkVerdict(JobWork.UNKNOWN, "busy at low power; the counters cannot tell more")
    odd = tuple(ref for ref, gpu in last.samples if _free(gpu))
    sure = counted and log_silent_s is not None
    state = JobWork.HANG if sure else JobWork.POSSIBLE_HANG
    return WorkVerdict(state, _odd_says(last, odd), odd)


def _no_hang(look: JobLook) -> WorkVerdict:
    works = [work_of(gpu) for _, gpu in look.samples]
    good = sum(work in (Work.COMPUTES, Work.BUSY, Work.LIKELY_BUSY) for work in works)
    if good >= _SHARE * look.gpus:
        notes = {note for _, gpu in look.samples if (note := work_note(gpu))}
        return WorkVerdict(JobWork.HEALTHY, ", ".join(sorted(notes)))
    idle = works.count(Work.IDLE)
    says = f"{idle} of {plural(look.gpus, 'GPU')} idle" if idle else "the counters cannot tell"
    return WorkVerdict(JobWork.UNKNOWN, says)


def _unbroken(looks: Sequence[JobLook]) -> list[JobLook]:
    """The looks at the end in which the GPUs waited without a break."""
    kept: list[JobLook] = []
    for look in reversed(looks):
        if not _waits(look):
            break
        kept.insert(0, look)
    return kept


def _waiting(gpu: GpuSample, sure: bool) -> bool:
    work = work_of(gpu)
    return work is Work.WAITS or (not sure and work is Work.PERHAPS_WAITS)


def _free(gpu: GpuSample) -> bool:
    return work_of(gpu) is Work.IDLE


def _waits(look: JobLook, *, sure: bool = False) -> bool:
    """Most GPUs of the job wait; or all known ones but a single idle one."""
    gpus = [gpu for _, gpu in look.samples]
    count = sum(_waiting(gpu, sure) for gpu in gpus)
    if not count or len(gpus) < _SHARE * look.gpus:
        return False
    all_but_one = count >= _FEWEST and count == look.gpus - 1 and sum(map(_free, gpus)) == 1
    return count >= _SHARE * look.gpus or all_but_one


def _memory_flat(first: JobLook, last: JobLook) -> bool:
    before = {ref: gpu.mem_used_mib for ref, gpu in first.samples}
    return all(
        gpu.mem_used_mib is not None and before.get(ref) == gpu.mem_used_mib
        for ref, gpu in last.samples
    )


def _odd_says(look: JobLook, odd: Sequence[GpuRef]) -> str:
    if len(odd) != 1:
        return (
            "no GPU stands out" if not odd else f"{plural(len(odd), 'GPU')} idle, all others wait"
        )
    (one,) = odd
    node = next(node for node in look.nodes if node.host == one.host)
    gone = (
        node.processes
        and one.uuid is not None
        and all(process.gpu_uuid != one.uuid for process in node.processes)
    )
    return f"{one.name} is the odd one: " + ("its process is gone" if gone else "it does nothing")


@dataclass(frozen=True, slots=True)
class Odd:
    """A GPU far from the others of its kind. ``value`` and ``usual`` in the metric's own unit."""

    gpu: GpuRef
    value: float
    usual: float


def odd_ones(
    gpus: Sequence[tuple[GpuRef, GpuSample]],
    metric: Callable[[GpuSample], float | None],
    *,
    least: float,
) -> tuple[Odd, ...]:
    """GPUs that stand out by their median absolute deviation, within one model and power limit;
    slices among those of their profile.

    ``least`` is the smallest difference from the median that counts, in the metric's unit. Where
    more than a quarter of a group stands out, that is a pattern and nobody is the odd one.
    """
    groups: dict[tuple[str | float | None, ...], list[tuple[GpuRef, float]]] = {}
    for ref, gpu in gpus:
        value = metric(gpu)
        if value is not None:
            kind = (gpu.name, gpu.power_limit_w, gpu.slice_profile)
            groups.setdefault(kind, []).append((ref, value))
    found: list[Odd] = []
    for members in groups.values():
        if len(members) < _FEWEST_COMPARED:
            continue
        usual = median(value for _, value in members)
        spread = _MAD_TO_SIGMA * median(abs(value - usual) for _, value in members)
        border = max(least, _ODD_SIGMAS * spread)
        out = [Odd(ref, value, usual) for ref, value in members if abs(value - usual) > border]
        if 4 * len(out) <= len(members):
            found.extend(out)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A job's GPUs in one line. ``mean_util_percent`` is None unless every node answered."""

    answered: int
    hosts: int
    known_gpus: int
    mean_util_percent: float | None
    warnings: tuple[str, ...]

    @property
    def says(self) -> str:
        return f"{self.answered} of {plural(self.hosts, 'host')} answered"


def summarise(nodes: Sequence[NodeGpus]) -> JobSummary:
    """Nodes that did not answer are named, never averaged over."""
    answered = [node for node in nodes if node.answered]
    gpus = [gpu for node in answered for gpu in node.samples]
    warnings = [
        f"{visible(node.host)}: {node.failure.sentence}"
        for node in nodes
        if node.failure is not None and (not node.answered or node.answer is Answer.GPU_LOST)
    ]
    for node in answered:
        if node.bad:
            warnings.append(f"{visible(node.host)}: {plural(node.bad, 'row')} could not be read")
    whole = len(answered) == len(nodes) and not any(node.bad or node.lost for node in nodes)
    return JobSummary(
        len(answered), len(nodes), len(gpus), mean_util(gpus) if whole else None, tuple(warnings)
    )
