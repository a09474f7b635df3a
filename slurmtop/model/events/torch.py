"""What PyTorch's distributed layer (c10d) wrote: watchdog, heartbeat, store, checks."""

from dataclasses import dataclass
from enum import StrEnum

from slurmtop.model.trace import Event, Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A process group as a line names it. ``guid`` is comparable across ranks, ``id`` is not."""

    id: int | None = None
    guid: str | None = None
    desc: str | None = None
    """``default_pg``, ``mesh_tp`` …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfGroup(Event):
    """``group_rank`` is the number in the message (``[Rank 3]``): a rank of *some* group of this
    process, the global one only where ``at.rank`` agrees or nothing else is known."""

    group_rank: int | None = None
    group: Group | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchdogTimeout(OfGroup):
    """``Watchdog caught collective operation timeout: WorkNCCL(SeqNum=6, OpType=ALLREDUCE, …)``.

    One event a (source, rank, seq, op): the text stands up to three times. A field is None where
    the line is older than it, or cut before it.
    """

    seq: int | None = None
    op: str | None = None
    """As written, e.g. ``_ALLGATHER_BASE``."""
    numel_in: int | None = None
    numel_out: int | None = None
    shape: str | None = None
    timeout_ms: int | None = None
    ran_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus(OfGroup):
    """``… at work: 6, last enqueued NCCL work: 9, last completed NCCL work: 5`` of one rank.

    ``completed`` above ``enqueued`` is garbage of torch 2.3 and given as None.
    """

    seq: int | None = None
    enqueued: int | None = None
    completed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpSignal(OfGroup):
    """``Received a dump signal due to a collective timeout from  rank 2 …``.

    ``from_rank`` is whose watchdog fired first (usually a victim); None: this rank's own.
    """

    from_rank: int | None = None
    own: bool = False
    enqueued: int | None = None
    completed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(OfGroup):
    """The watchdog itself was stuck for ``seconds``; ``pending`` is ``workMetaList_.size()``."""

    seconds: int | None = None
    pending: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenDown(OfGroup):
    """``we are taking the entire process down``, ``watchdog thread terminated with exception``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedStack(OfGroup):
    """``Stack trace of the failed collective:`` with ``frames`` (``all_reduce at …py:2707``)."""

    frames: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """One side of ``Detected mismatch between collectives``. ``empty``: only seq and op are given
    (a barrier, or a side that never arrived: its op is then not to be believed)."""

    rank: int | None
    seq: int | None = None
    op: str | None = None
    shape: str | None = None
    dtype: str | None = None
    empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintMismatch(OfGroup):
    """``Rank 1 is running collective: CollectiveFingerPrint(…), but Rank 2 is running …``.

    ``there`` is None where the line is cut before it.
    """

    here: Fingerprint
    there: Fingerprint | None = None
    aspects: Where | None = None
    """The same line where it goes on ``Collectives differ in the following aspects: …``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCollective(OfGroup):
    """``[Rank 1] Running collective: CollectiveFingerPrint(…)`` of TORCH_DISTRIBUTED_DEBUG."""

    print: Fingerprint


class StoreTrouble(StrEnum):
    BARRIER_WAITS = "barrier waits"
    """``Waiting in store based barrier … (world_size=16, worker_count=7)``."""
    BARRIER_TIMEOUT = "barrier timeout"
    CLIENTS_TIMEOUT = "clients timeout"
    """``Timed out after 901 seconds waiting for clients. 7/8 clients joined.``"""
    KEY_TIMEOUT = "key timeout"
    """``wait timeout after 300000ms, keys: …``."""
    CONNECT_TIMEOUT = "connect timeout"
    REFUSED = "refused"
    RESET = "reset"
    """The connection to the store broke: its server (rank 0, or the agent) has gone."""
    FAILED = "failed"
    """``The connection to the C10d store has failed``: whether it ever was there is not told."""
    PORT_IN_USE = "port in use"
    NO_HOST = "no host"
    """The name of the master does not resolve or there is no route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreEvent(OfGroup):
    """Trouble with the store. ``joined`` of ``expected``; ``asking`` is the rank that asks, and
    ``owner`` the one that was to publish (``ncclUniqueId from [0]``)."""

    kind: StoreTrouble
    joined: int | None = None
    expected: int | None = None
    asking: int | None = None
    owner: int | None = None
    host: str | None = None
    port: int | None = None
    key: str | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredBarrier(OfGroup):
    """gloo's monitored barrier. ``late`` are the ranks that it names; ``reached`` is a rank that
    passed and then lost rank 0 (``check rank 0 logs``), which names nobody."""

    late: tuple[int, ...] = ()
    reached: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Desync(OfGroup):
    """The desync report: ``lagging`` never came, ``states`` are (rank, text).

    ``broken``: PyTorch could not make the report (``Failed to retrieve NCCL_DESYNC_DEBUG report``).
    """

    lagging: tuple[int, ...] = ()
    states: tuple[tuple[int, str], ...] = ()
    broken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamsDiffer(Event):
    """``DDP expects same model across all ranks, but Rank 3 has 2247 params, while rank 0 has …``

    ``none_there`` is true for ``inconsistent 0 params``: the other side never came, it has no
    other model.
    """

    rank: int
    other: int
    none_there: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedParameters(Event):
    """DDP: ``Expected to have finished reduction in the prior iteration …`` and its kin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclError(Event):
    """``NCCL error in: …``, ``DistBackendError`` and the line that names the result.

    ``result`` is ``ncclSystemError``, ``ncclRemoteError``, ``ncclInternalError`` … The
    ``Last error:`` behind it comes as an :class:`~slurmtop.model.events.nccl.NcclWarn`.
    """

    result: str | None
    version: str | None = None
    seq: int | None = None
    op: str | None = None


class GlooTrouble(StrEnum):
    CLOSED = "closed"
    """``Connection closed by peer [10.0.0.5]:4242``: the other process has gone."""
    RESET = "reset"
    REFUSED = "refused"
    TIMED_OUT = "timed out"
    """``Timed out waiting 1800000ms for recv operation to complete``."""
    MESH = "mesh"
    """``Gloo connectFullMesh failed with …``: ranks could not connect when the group was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlooError(Event):
    """gloo lost or waited for another process: an effect, as NCCL's closed connections are.

    ``peer`` is an address without port, where one is told.
    """

    kind: GlooTrouble
    peer: str | None = None
    timeout_s: float | None = None


class CudaTrouble(StrEnum):
    OUT_OF_MEMORY = "out of memory"
    ECC = "ecc"
    """Uncorrectable memory error."""
    HARDWARE = "hardware"
    """Fallen off the bus, hardware stack error, unknown device state."""
    NVLINK = "nvlink"
    ASSERT = "assert"
    """Device-side assert."""
    ILLEGAL = "illegal"
    """Illegal memory access or instruction: usually the program."""
    LAUNCH = "launch"
    """Unspecified launch failure and the like."""
    DRIVER = "driver"
    """No device, driver too old, wrong kernel image, system not ready."""
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaError(Event):
    """A CUDA error outside NCCL: ``CUDA error: uncorrectable ECC error encountered``.

    ``caught`` is true where the program went on (a retry with a smaller batch).
    """

    kind: CudaTrouble
    text: str
    gpu: int | None = None
    """Index in the process (``GPU 3``): never a rank."""
    other_process: bool = False
    """Another process of the GPU holds much of its memory, by the words of the line."""
    caught: bool = False
    passed_on: bool = False
    """The words stand in another exception's message, about another process: whose GPU it was
    they do not tell."""
