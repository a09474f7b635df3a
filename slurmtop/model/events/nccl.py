"""What NCCL wrote. Formats: ``docs/logs.md``; sources: the release tags 2.8 to 2.30 of NCCL."""

from dataclasses import dataclass
from enum import StrEnum

from slurmtop.model.trace import Event, Where


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclVersion(Event):
    """``NCCL version 2.27.5+cuda12.9``; ``version`` is ``2.27.5``."""

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclSetting(Event):
    """``NCCL_IB_HCA set by environment to mlx5_0``. Once a process and value."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclAddress(Event):
    """The address a process listens on: ``Bootstrap : Using eth0:10.0.0.1<0>``, ``OOB eth0:…``.

    It ties an address that peers name to the host of the line. Bridges that have one address on
    every host (``docker0``, loopback) are left out. ``address`` is as in ``NcclWarn.peer``.
    """

    interface: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclNetwork(Event):
    """``Using network IB`` or ``NET/IB : No device found.`` (then ``name`` is None)."""

    name: str | None


class InitPhase(StrEnum):
    START = "start"
    COMPLETE = "complete"
    LEAVING = "leaving"
    """``Destroy START``, ``Abort START`` …: it was told to end (2.28 and newer say so)."""
    DESTROYED = "destroyed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommInit(Event):
    """A communicator of one process: ``comm 0x5f rank 3 nranks 8 … commId 0x2f - Init COMPLETE``.

    ``comm`` is a pointer of that process only; ``comm_id`` is the same on all ranks (hex, without
    0x), absent up to 2.15 and on splits from 2.23. ``rank`` and ``nranks`` are those of the
    communicator.
    """

    phase: InitPhase
    comm: str
    rank: int | None = None
    nranks: int | None = None
    comm_id: str | None = None
    parent: str | None = None
    split: int | None = None
    """``splitCount`` or ``childCount``."""
    color: int | None = None
    key: int | None = None
    cuda_dev: int | None = None
    bus_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InitTimings(Event):
    """``Init timings - ncclCommInitRank: rank 3 nranks 8 total 55.01 (kernels 52.45, …)``, in s."""

    rank: int
    nranks: int
    total_s: float
    parts: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel(Event):
    """``Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM``: ranks of the communicator, first of its kind.

    Only the first line of each (process, ``via``) is kept: there are thousands.
    """

    sender: int
    receiver: int
    via: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected(Event):
    """``Connected all rings`` or ``Connected all trees``: init has come so far. First of each
    process."""


@dataclass(frozen=True, slots=True)
class Call:
    """One collective as it was called (not: done). ``op`` is e.g. ``AllReduce``.

    ``datatype`` and ``redop`` are NCCL's numbers; ``root`` of a Send or Recv is the peer.
    """

    op: str
    count: int
    datatype: int
    redop: int
    root: int
    op_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommCalls(Event):
    """All calls that one process logged on one communicator (``NCCL_DEBUG_SUBSYS=COLL``).

    ``at`` is the last of the lines, ``first_at`` the first. ``collectives`` counts collectives
    (not Send and Recv); ``last`` are the newest of them, at most 64, with ``last_at`` beside.
    ``sends`` and ``receives`` count calls by peer. ``op_count_moves`` is false where every line
    shows one opCount.
    """

    comm: str
    nranks: int | None
    collectives: int
    last: tuple[Call, ...]
    last_at: tuple[Where, ...] = ()
    sends: tuple[tuple[int, int], ...] = ()
    receives: tuple[tuple[int, int], ...] = ()
    op_count_moves: bool = True
    first_at: Where | None = None
    torn: int = 0
    """Calls of this source of which only a part was found, of whatever process: where there are
    any, no number of calls is sure."""


class Warn(StrEnum):
    """What a WARN (or the ``Last error`` of PyTorch, which quotes one) is about."""

    IB_COMPLETION = "ib completion"
    """``status`` (of ibv_wc_status) and ``vendor`` of a failed work request; ``peer`` is the other
    end. Of EFA: ``call`` is ``libfabric``, ``status`` None, ``vendor`` the provider's number."""
    IB_EVENT = "ib event"
    """``error`` is the event, as libibverbs words it; the adapter (``device``) of **this** host."""
    IB_CALL = "ib call"
    """A call to the adapter's library failed: ``call``, ``error``, maybe ``device``."""
    IB_MEMORY = "ib memory"
    """Registering or pinning memory failed (memlock, EFA): ``call``, ``error``."""
    SIZE_MISMATCH = "size mismatch"
    """The two ends of one transfer differ in bytes: ``sizes`` (here, there). ``call`` is
    ``bootstrap`` where it was no collective's data."""
    CALLS_DIFFER = "calls differ"
    """NCCL compared the calls of its ranks and they differ (2.4): ``ranks`` is about where."""
    CLOSED = "closed"
    """The other end closed the connection."""
    RESET = "reset"
    """An established connection broke: ``call`` (recv, send …) and ``error``."""
    CONNECT = "connect"
    """Connecting failed for good: ``error`` is e.g. ``Connection refused``."""
    NO_INTERFACE = "no interface"
    BAD_ADDRESS = "bad address"
    FOREIGN = "foreign"
    """Something that speaks another protocol knocked (wrong magic); newer NCCL says it as INFO."""
    DUPLICATE_RANK = "duplicate rank"
    """``ranks``: (rank, nranks)."""
    RANK_COUNT = "rank count"
    """``sizes``: what two processes believe the number of ranks to be."""
    VERSION_MISMATCH = "version mismatch"
    """``ranks`` are the two, ``sizes`` their versions as numbers (22705 is 2.27.5)."""
    DUPLICATE_GPU = "duplicate gpu"
    """``ranks`` are the two (not told from 2.30 on), ``device`` the bus id."""
    OUT_OF_MEMORY = "out of memory"
    """CUDA memory, inside NCCL."""
    CUDA = "cuda"
    """Another CUDA failure: ``error``, and ``status`` is CUDA's number where it is told."""
    P2P = "p2p"
    """GPUs joined by NVLink cannot reach each other: NCCL gives up on the host."""
    NVLS = "nvls"
    """NVLink multicast (or MNNVL) could not be set up: ``error`` and ``status`` of CUDA."""
    SHM = "shm"
    """The shared memory of the host is too small or not to be written."""
    HOST_MEMORY = "host memory"
    FILES = "files"
    """Too many open files."""
    TOPOLOGY = "topology"
    """The PCI tree of the host cannot be read."""
    USAGE = "usage"
    """The program called NCCL wrongly (invalid root, group, type)."""
    PROXY = "proxy"
    """The proxy or service thread passes on what happened elsewhere: an effect."""
    BENIGN = "benign"
    """Seen on healthy clusters: no InfiniBand here, client reregistration, port active. An event
    of the adapter has ``error`` and ``device`` as in ``IB_EVENT``."""
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclWarn(Event):
    """A warning. ``text`` is the message without prefix; fields that it does not tell are None.

    ``quoted`` is true where PyTorch printed it (``Last error:``), so that it stands once more.
    """

    kind: Warn
    text: str
    peer: str | None = None
    """``host`` or address of the other end, without port, brackets, zone or scope."""
    status: int | None = None
    vendor: int | None = None
    call: str | None = None
    error: str | None = None
    device: str | None = None
    ranks: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    local_gid: str | None = None
    remote_gid: str | None = None
    """Addresses of the two adapters, IPv4 ones as IPv4."""
    quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedByLocalRank(Event):
    """``[Service thread] Connection closed by localRank 7``: also seen at every normal end."""

    local_rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclRetry(Event):
    """INFO, a connect is tried again: ``Call to connect returned Connection refused, retrying``.

    The first and the last of each process, error and peer: old versions try 20,000 times.
    ``attempt`` of ``attempts`` where they are counted (``retrying (26/34)``).
    """

    error: str
    peer: str | None = None
    attempt: int | None = None
    attempts: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclChain(Event):
    """``transport/net.cc:1298 -> 6``: a failed call on its way up, the first of each process and
    result.

    ``result``: 1 CUDA, 2 system, 3 internal, 4 argument, 5 usage, 6 remote, 8 timeout.
    """

    file: str
    result: int
