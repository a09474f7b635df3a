"""GPUs as their tools describe them, on one node and for one moment.

Every number may be None: not asked, not there (MIG, no NVSwitch), not allowed, or the GPU is
failing. None is never 0. The words that stood in a number's place are kept in ``words``.
"""

from dataclasses import dataclass
from enum import StrEnum

from slurmtop.model.snapshot import Failure


class Level(StrEnum):
    """How bad something is; ``UNKNOWN`` where nobody can say."""

    OK = "ok"
    WARNING = "warning"
    CRITICAL = "critical"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is to be said of a GPU. At level OK it is a note, no alarm."""

    level: Level
    says: str


class Answer(StrEnum):
    """What became of asking one node about its GPUs."""

    OK = "ok"
    UNREACHABLE = "unreachable"
    NO_ANSWER = "no answer"
    """The time limit passed: the driver may be stuck and must not be asked again soon."""
    NOT_LOADED = "driver not loaded"
    MISMATCH = "driver and library differ"
    """Telemetry is lost until a reboot; running jobs go on."""
    GPU_LOST = "GPU lost"
    NO_DEVICES = "no GPU visible"
    NO_TOOL = "tool not there"
    NO_ENGINE = "nv-hostengine not running"
    NO_PROFILING = "no profiling counters"
    BAD_FIELD = "unknown field"
    DENIED = "not allowed"
    NOT_THERE = "not there"
    """Nothing listens where an exporter was expected."""
    NO_DATA = "no data"
    OTHER = "failed"


#: These say that a tool is not for this node: another source is taken without an alarm.
QUIET_ANSWERS = frozenset(
    {Answer.NO_TOOL, Answer.NO_ENGINE, Answer.NO_PROFILING, Answer.BAD_FIELD, Answer.NOT_THERE}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSample:
    """One GPU or MIG slice, as one source saw it.

    ``index`` counts the GPUs that the asker sees (a cgroup renumbers them); ``dcgm_id`` is
    DCGM's own number. Only ``uuid`` and ``bus_id`` (lower case, ``0000:17:00.0``) name a card.
    Shares (``sm_active`` …) are 0–1 as printed: DCGM has been seen above 1. ``xid`` is the last
    code that DCGM saw since it started, not a count. ``words``: attribute and the text that
    stood where a number was expected.
    """

    index: int | None = None
    uuid: str | None = None
    bus_id: str | None = None
    dcgm_id: int | None = None
    host: str | None = None
    name: str | None = None
    driver: str | None = None
    util_percent: float | None = None
    """Per cent of the last moment in which any kernel ran: not how much of the GPU."""
    mem_util_percent: float | None = None
    mem_used_mib: float | None = None
    mem_total_mib: float | None = None
    mem_reserved_mib: float | None = None
    temp_c: float | None = None
    mem_temp_c: float | None = None
    fan_percent: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    energy_mj: float | None = None
    """Millijoules since the driver was loaded."""
    sm_clock_mhz: float | None = None
    pstate: str | None = None
    persistence: bool | None = None
    events: int | None = None
    """The mask of reasons why the clocks are not at their highest (nvml.h)."""
    hw_thermal: bool | None = None
    ecc_uncorrected: float | None = None
    """Since the driver was loaded."""
    remapped_uncorrectable: float | None = None
    remapped_pending: bool | None = None
    remapped_failure: bool | None = None
    recovery_action: str | None = None
    fabric_state: str | None = None
    fabric_status: str | None = None
    fabric_clique: int | None = None
    fabric_cluster: str | None = None
    sm_active: float | None = None
    sm_occupancy: float | None = None
    graphics_active: float | None = None
    tensor_active: float | None = None
    dram_active: float | None = None
    pcie_tx_bytes_s: float | None = None
    pcie_rx_bytes_s: float | None = None
    nvlink_tx_bytes_s: float | None = None
    nvlink_rx_bytes_s: float | None = None
    xid: int | None = None
    mig: bool | None = None
    """True on a parent that is cut into slices: it has no utilisation of its own."""
    slice_id: str | None = None
    """The GPU instance of a slice; None for a whole GPU."""
    slice_profile: str | None = None
    jobs: tuple[str, ...] = ()
    """Jobs that the node's prolog wrote down for it (may be stale: check with the queue)."""
    words: tuple[tuple[str, str], ...] = ()

    @property
    def mem_percent(self) -> float | None:
        """Share of the memory in use, 0–100."""
        if self.mem_used_mib is None or not self.mem_total_mib:
            return None
        return 100 * self.mem_used_mib / self.mem_total_mib

    @property
    def power_share(self) -> float | None:
        """Power against the limit, 0–1."""
        if self.power_w is None or not self.power_limit_w:
            return None
        return self.power_w / self.power_limit_w

    def word(self, attribute: str) -> str | None:
        """The words that stood in the place of this value."""
        return dict(self.words).get(attribute)


def ratio_text(share: float | None) -> str:
    """A share 0–1 as ``91 %``; ``100 %+`` marks a counter that went above its range."""
    if share is None:
        return "n/a"
    return "100 %+" if share > 1 else f"{100 * share:.0f} %"


def util_text(gpu: GpuSample) -> str:
    """``97 %``; ``n/a (MIG)`` where a GPU cut into slices has no such number; else ``n/a``."""
    if gpu.util_percent is not None:
        return f"{gpu.util_percent:.0f} %"
    return "n/a (MIG)" if gpu.mig else "n/a"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigSlice:
    """A slice as ``nvidia-smi -L`` lists it; ``parent_uuid`` is the card it is cut from."""

    uuid: str
    profile: str
    device: int
    parent_uuid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process on a GPU. A process on two GPUs has two records.

    ``gpu_uuid`` is the parent's under MIG. ``words``: as in :class:`GpuSample`.
    """

    pid: int
    gpu_uuid: str | None = None
    gpu_index: int | None = None
    name: str | None = None
    mem_mib: float | None = None
    sm_percent: float | None = None
    words: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGpus:
    """What one node said of its GPUs when asked once.

    ``samples`` are the GPUs with a row: where ``answer`` is not OK, those without one are
    unknown, never gone or idle. ``lost`` are the cards that the driver cannot reach, by bus id,
    by NVML as ``GPU 3``: it does not tell more.
    ``bad`` rows could not be read. ``remarks`` are lines that came with good data.
    """

    host: str
    answer: Answer = Answer.OK
    samples: tuple[GpuSample, ...] = ()
    slices: tuple[MigSlice, ...] = ()
    lost: tuple[str, ...] = ()
    processes: tuple[GpuProcess, ...] | None = None
    """None where nobody asked."""
    failure: Failure | None = None
    took_s: float | None = None
    bad: int = 0
    remarks: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """Some GPU's values are known."""
        return bool(self.samples)


class KernelKind(StrEnum):
    XID = "xid"
    SXID = "sxid"
    """From an NVSwitch; all GPUs behind it may be affected."""
    LOST = "lost"
    """A card that fell off the bus, told without a code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvent:
    """One message of the NVIDIA kernel driver.

    ``bus_id`` as in :class:`GpuSample`, without the function: ``0000:3b:00``. ``time_text`` is
    the time as printed and ``clock_s`` the same in seconds of that node's own clock: good for
    differences within one log only. ``severity`` stands in SXid lines: Fatal, Non-fatal …
    ``follow_ups``: codes and counts of messages that only follow from this one.
    """

    kind: KernelKind
    code: int | None
    bus_id: str
    text: str
    time_text: str = ""
    clock_s: float | None = None
    pid: int | None = None
    process: str | None = None
    slice_id: str | None = None
    severity: str | None = None
    follow_ups: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLog:
    """A node's kernel log as far as it is about GPUs. ``uuids``: bus id and UUID, as told.
    ``since`` is the time of the oldest line that was looked at, as printed, None where not told:
    what was before is gone."""

    events: tuple[KernelEvent, ...] = ()
    uuids: tuple[tuple[str, str], ...] = ()
    failure: Failure | None = None
    since: str | None = None
