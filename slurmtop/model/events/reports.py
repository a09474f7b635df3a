"""Text reports of other tools that stand in a log: RAS, flight recorder, Horovod, nccl-tests."""

from dataclasses import dataclass

from slurmtop.model.trace import Event


@dataclass(frozen=True, slots=True)
class RasRank:
    rank: int
    gpu: str | None = None
    pid: int | None = None
    node: str | None = None
    """An address of the bootstrap interface."""
    launched: int | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class RasProcess:
    """A process that RAS names without a rank: it gives no data, or is called dead."""

    pid: int
    node: str
    gpus: str = ""
    """Indices as written, e.g. ``0,1``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RasComm(Event):
    """One finding of ``ncclras`` on a communicator, e.g. ``#0-0 (fa93…) MISMATCH``.

    ``errors`` are its words (MISMATCH, INCOMPLETE, ERROR, DEAD). ``counts`` are (ranks, launched
    operations) groups; ``ranks`` the ones listed by number. ``dead`` is true of the block that
    lists ``processes`` called dead; they stand in no communicator, ``comm_id`` is None. ``said``
    is what an ERROR block says (``Remote process error``).
    """

    comm_id: str | None
    status: str | None = None
    errors: tuple[str, ...] = ()
    op: str | None = None
    counts: tuple[tuple[int, int], ...] = ()
    ranks: tuple[RasRank, ...] = ()
    missing: tuple[RasRank, ...] = ()
    dead: bool = False
    processes: tuple[RasProcess, ...] = ()
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RasSummary(Event):
    """The head of a RAS report: how much it saw and whether every row says OK."""

    version: str | None = None
    ranks: int | None = None
    all_ok: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightReport(Event):
    """One block of ``torchfrtrace``.

    ``culprits`` are (rank, type, text) of ``Culprit rank 22; Error type: …``. ``missing`` None
    where the block does not speak of missing ranks. ``frames`` is its stack trace.
    """

    seq: int | None = None
    group: str | None = None
    op: str | None = None
    missing: tuple[int, ...] | None = None
    expected: tuple[int, ...] = ()
    world: int | None = None
    state: str | None = None
    culprits: tuple[tuple[int, str, str], ...] = ()
    frames: tuple[str, ...] = ()
    undecided: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HorovodStall(Event):
    """Horovod's stall check. ``missing`` are named outright by newer versions; of older ones only
    ``ready`` is known. ``tensors`` are the stalled operations."""

    ready: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    tensors: tuple[str, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsApart(Event):
    """Horovod, gloo or MPI found that ranks called different things: ``shape`` is true where
    only sizes or types differ. Which rank is the odd one they do not tell."""

    shape: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFrame(Event):
    """A frame of a stack that somebody took of a living process with gdb, pstack or py-spy:
    ``#4  0x00007f1c in ncclCommAbort () from libnccl.so.2``. Only frames that close a
    communicator or group are told."""

    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRow(Event):
    """What an nccl-tests table tells in all: rows, rows with wrong results, the bandwidth.

    ``at`` is the first wrong row, or the last line. ``complete`` once the ``Avg bus bandwidth``
    or ``Out of bounds`` line came.
    """

    rows: int
    wrong_rows: int = 0
    out_of_bounds: int | None = None
    bus_gb_s: float | None = None
    complete: bool = False
