"""A job as the queue, the controller and accounting know it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from slurmtop.model.ids import JobId, JobKey

#: Base states that mean the job is over (COMPLETING is a flag on top of one of these).
ENDED_STATES = frozenset(
    {
        "COMPLETED",
        "CANCELLED",
        "FAILED",
        "TIMEOUT",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "DEADLINE",
        "OUT_OF_MEMORY",
    }
)


#: Flags of a job that goes back to the queue, whatever its last run's base state says.
REQUEUE_FLAGS = frozenset(
    {
        "REQUEUED",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "SPECIAL_EXIT",
        "RESV_DEL_HOLD",
        "EXPEDITING",
    }
)


class Phase(StrEnum):
    """The few buckets a person thinks in; every job is in exactly one of them."""

    PENDING = "pending"
    RUNNING = "running"
    SUSPENDED = "suspended"
    ENDING = "ending"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ELSEWHERE = "elsewhere"
    """REVOKED: a federation sibling started on another cluster; not a failure."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class JobState:
    """One base state and any number of flags.

    ``squeue`` and ``sacct`` print one ``word`` only, and a flag wins over the base: behind
    COMPLETING may stand an ended job or one that is about to be queued again, so ``base``
    is None there. ``flags`` keeps words that this version of slurmtop does not know.
    """

    word: str
    base: str | None
    flags: tuple[str, ...] = ()
    by_uid: int | None = None
    """Who cancelled it, where sacct says ``CANCELLED by 20017``."""

    @property
    def phase(self) -> Phase:
        if "REVOKED" in self.flags:
            return Phase.ELSEWHERE
        if "COMPLETING" in self.flags or "STAGE_OUT" in self.flags or "SIGNALING" in self.flags:
            return Phase.ENDING if self.base != "RUNNING" else Phase.RUNNING
        if self.base == "PENDING" or any(flag in self.flags for flag in REQUEUE_FLAGS):
            return Phase.PENDING
        if "STOPPED" in self.flags:
            return Phase.SUSPENDED
        if self.base == "RUNNING" or "CONFIGURING" in self.flags or "RESIZING" in self.flags:
            return Phase.RUNNING
        if self.base == "SUSPENDED":
            return Phase.SUSPENDED
        if self.base == "COMPLETED":
            return Phase.COMPLETED
        if self.base == "CANCELLED":
            return Phase.CANCELLED
        if self.base in ENDED_STATES:
            return Phase.FAILED
        return Phase.UNKNOWN

    @property
    def ended(self) -> bool:
        """True once the job is over and no flag leaves that open."""
        return self.phase in (Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED)


class LimitKind(StrEnum):
    SECONDS = "seconds"
    UNLIMITED = "unlimited"
    OVER_A_YEAR = "over a year"
    """Slurm prints INVALID for anything above 365 days; that is no alarm."""
    PARTITION_DEFAULT = "partition default"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """A limit or a time left. ``seconds`` is set for kind SECONDS only."""

    kind: LimitKind
    seconds: int | None = None


UNKNOWN_LIMIT = TimeLimit(LimitKind.UNKNOWN)


@dataclass(frozen=True, slots=True)
class ExitCode:
    """``code:signal`` as printed. Whether it means success, the state decides."""

    code: int
    signal: int


@dataclass(frozen=True, slots=True)
class Tres:
    """Trackable resources, e.g. ``cpu=16,mem=64G,node=2,gres/gpu=8,gres/gpu:h100=8``.

    None means "not said"; 0 means none. ``gpus`` counts whole GPUs once even where Slurm
    prints typed and untyped entries for the same cards. A MIG slice, a shard
    or a share by MPS is not a GPU.
    """

    cpus: int | None = None
    nodes: int | None = None
    mem_bytes: int | None = None
    gpus: int | None = None
    gpus_by_type: tuple[tuple[str, int], ...] = ()
    slices_by_type: tuple[tuple[str, int], ...] = ()
    shards: int | None = None
    energy_j: int | None = None
    gpu_mem_bytes: int | None = None
    """Only in what accounting says was used (``gres/gpumem``), like the next one."""
    gpu_util_percent: int | None = None
    """``gres/gpuutil``; a total is a sum over tasks and may be above 100."""
    mps: int | None = None
    """Shares of ``gres/mps``, in all: how many make a GPU is the site's to say, often 100."""


NO_TRES = Tres()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One record of ``squeue``: a job, an array task, an array's pending rest, a het part.

    Times are aware UTC; None means that Slurm said nothing. Nothing here ticks: elapsed and
    time left are computed when they are shown. User-written text (``name``, ``comment``,
    paths) is raw and must go through :func:`slurmtop.model.text.visible` before a screen.
    """

    key: JobKey
    id: JobId
    raw_id: str | None = None
    """The number behind an array task or het part (squeue ``%A``)."""
    name: str = ""
    user: str = ""
    account: str | None = None
    partitions: tuple[str, ...] = ()
    qos: str | None = None
    state: JobState = JobState("?", None)
    reason: str | None = None
    exit_code: ExitCode | None = None
    """None before the job has ended, and where a record was not asked for it."""
    derived_exit_code: ExitCode | None = None
    """The worst end of its steps; None as above."""
    submit: datetime | None = None
    eligible: datetime | None = None
    start: datetime | None = None
    """For a pending job this is the scheduler's guess."""
    end: datetime | None = None
    """For a running job this is start plus limit."""
    limit: TimeLimit = UNKNOWN_LIMIT
    left: TimeLimit = UNKNOWN_LIMIT
    """Only where a record was asked for TIME_LEFT; ticking, so never polled."""
    used_s: int | None = None
    """Only where a record was asked for TIME; ticking, so never polled."""
    node_count: int | None = None
    nodes: str | None = None
    """The host list as printed, e.g. ``gpu[01-02]``; None while there is none."""
    tres: Tres = NO_TRES
    """Allocated, or requested while pending."""
    priority: int | None = None
    restarts: int | None = None
    dependency: str | None = None
    workdir: str | None = None
    command: str | None = None
    stdout: str | None = None
    """May still hold the pattern, e.g. ``slurm-%A_%a.out``."""
    stderr: str | None = None
    comment: str | None = None
    het_leader: str | None = None
    """Raw id of the first component of a het job."""
    array_id: str | None = None
    requeueable: bool | None = None
    """``Requeue=``; only where a record was asked for it, like the next two."""
    batch: bool | None = None
    """False for an interactive job (salloc, srun), which has no batch script."""
    excluded_nodes: str | None = None
    """The host list of ``ExcNodeList=``, as printed."""
    name_unsure: bool = False
    """True where a separator inside user text made the split ambiguous: ``name`` then holds
    all of that text as it came, and the other text fields are None."""

    @property
    def group_id(self) -> str | None:
        """What this row folds under: the array or the het job; None for a plain job."""
        if self.id.task is not None or self.id.tasks is not None or self.id.het_offset is not None:
            return self.id.base
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail:
    """One block of ``scontrol show job``: what the queue does not say."""

    job: Job
    user_id: int | None = None
    exit_code: ExitCode | None = None
    derived_exit_code: ExitCode | None = None
    run_time_s: int | None = None
    requeueable: bool | None = None
    batch: bool | None = None
    batch_host: str | None = None
    excluded_nodes: str | None = None
    requested_nodes: str | None = None
    nodes_max: int | None = None
    """Upper end where a pending job asks for a range (``NumNodes=1-4``)."""
    requested: Tres = NO_TRES
    allocated: Tres = NO_TRES
    submit_line: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    """Every field as printed, in order, for those that have no place above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One running step of ``squeue -s``; ``id`` is ``0``, ``batch``, ``extern``, ``interactive``.

    ``job`` is the id as squeue printed it, of an array task or a het part too.
    """

    job: JobId
    id: str
    name: str = ""
    state: JobState = JobState("?", None)
    start: datetime | None = None
    node_count: int | None = None
    nodes: str | None = None
    tasks: int | None = None

    @property
    def by_srun(self) -> bool:
        """True for what srun started: such steps get a plain ``scancel -s``."""
        return self.id.isdigit()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingRecord:
    """One row of ``sacct``: a job (``id.step`` None) or one of its steps."""

    id: JobId
    raw_id: str | None = None
    cluster: str | None = None
    name: str = ""
    user: str | None = None
    account: str | None = None
    partition: str | None = None
    state: JobState = JobState("?", None)
    exit_code: ExitCode | None = None
    derived_exit_code: ExitCode | None = None
    submit: datetime | None = None
    eligible: datetime | None = None
    start: datetime | None = None
    end: datetime | None = None
    never_started: bool = False
    elapsed_s: int | None = None
    limit: TimeLimit = UNKNOWN_LIMIT
    node_count: int | None = None
    nodes: str | None = None
    allocated: Tres = NO_TRES
    requested: Tres = NO_TRES
    usage_total: Tres = NO_TRES
    """``TRESUsageInTot``, and so on: on rows of steps only, and only where asked for."""
    usage_average: Tres = NO_TRES
    usage_max: Tres = NO_TRES
    req_mem_bytes: int | None = None
    req_mem_per: str | None = None
    """``cpu`` or ``node`` where sacct says so (20.11 and older)."""
    req_mem_each_bytes: int | None = None
    total_cpu_s: float | None = None
    user_cpu_s: float | None = None
    cpu_time_s: int | None = None
    ave_cpu_s: float | None = None
    max_rss_bytes: int | None = None
    disk_read_mib: float | None = None
    energy_j: int | None = None
    reason: str | None = None
    workdir: str | None = None
    comment: str | None = None
    submit_line: str | None = None
    stdout: str | None = None
    """The pattern, e.g. ``slurm-%j.out``; sacct tells it since 24.05."""
    stderr: str | None = None
    restarts: int | None = None
    name_unsure: bool = False
    """True where a separator inside user text made the split ambiguous."""


def job_row(rows: Sequence[AccountingRecord]) -> AccountingRecord | None:
    """The row of the job itself among those of its steps; None where only steps or nothing came."""
    return next((row for row in rows if row.id.step is None), None)


@dataclass(frozen=True, slots=True)
class ReasonInfo:
    """A pending or ending reason in plain words.

    ``kind`` is queue, limit, user, held, never, site, transient, failure, ok or unknown.
    """

    word: str
    kind: str
    meaning: str
    advice: str
    detail: str | None = None
    """Free text that followed the word, e.g. the nodes that are not available."""


@dataclass(frozen=True, slots=True)
class ExitMeaning:
    """What an exit code says once the state is known. ``sentence`` is for people."""

    ok: bool | None
    sentence: str
    ended_by: str | None = None
    """self, user, slurm, fault, or None where it cannot be told."""
    warning: str | None = None
    notes: tuple[str, ...] = field(default=())
    short: str = ""
    """The same in a few words for a row: ``exit 3``, ``killed by SIGSEGV``."""
