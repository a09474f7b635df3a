"""What launchers wrote: torchrun, DeepSpeed, mpirun, Ray, Lightning; how processes ended."""

from dataclasses import dataclass

from slurmtop.model.trace import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticFailure(Event):
    """One entry of torchrun's failure table, or ``failed (exitcode: -9) local_rank: 3 (pid: …)``.

    ``first`` marks ``Root Cause (first observed failure)``: the first on **that node** only.
    ``signal`` is a number, ``exit_code`` as written (-9 for a signal). ``seconds`` is the entry's
    own time as in :class:`~slurmtop.model.trace.Stamp`.
    """

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    first: bool = False
    seconds: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosingSignal(Event):
    """``Sending process 4242 closing signal SIGTERM``: whoever gets it is a victim."""

    pid: int
    signal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeathSignal(Event):
    """The launcher itself got a signal: ``Received 2 death signal``, ``got signal: 15``.

    1 terminal closed, 2 ctrl-C, 15 somebody (Slurm, a supervisor) ends it.
    """

    signal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted(Event):
    """``^C`` or ``KeyboardInterrupt`` of a program at a terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersRestart(Event):
    """``Worker group FAILED. 2/3 attempts left; will restart worker group``: a new attempt.

    ``left`` is None where it is not told. NVRx and Lightning's elastic restarts too.
    """

    left: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unkillable(Event):
    """A process that does not die of SIGKILL (uninterruptible sleep): driver or file system."""

    pid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnded(Event):
    """How one process ended, by its launcher: DeepSpeed's ``exits with return code = -9``,
    mpirun's ``exited on signal 9``, bash's ``Killed``, ``Segmentation fault (core dumped)``.

    A code above 128 is given as its signal. ``node`` and ``address`` are where it ran.
    """

    exit_code: int | None = None
    signal: int | None = None
    rank: int | None = None
    pid: int | None = None
    node: str | None = None
    address: str | None = None
    aside: bool = False
    """A shell tells it of one of its commands, and not of the training by the looks of it:
    whether the script needed that command, only what follows tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLost(Event):
    """A supervisor lost a worker: Ray's ``A worker died or was killed`` (``address``, ``pid``)."""

    address: str | None = None
    pid: int | None = None
    rank: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersOutOfMemory(Event):
    """Ray's monitor killed workers for lack of host memory: ``1 Workers (tasks / actors) killed
    due to memory pressure (OOM)``. ``address`` is the node's."""

    address: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash(Event):
    """A process caught its own end: ``Caught signal 7 (Bus error``, ``Fatal Python error``,
    ``terminate called after throwing``. ``signal`` None where it is not told."""

    signal: int | None
    text: str
    """Up to the first 400 characters of the message."""
    in_nccl: bool = False
    """The backtrace behind it stands in NCCL."""
