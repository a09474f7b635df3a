"""Processes on a node, and which rank of a job each of them is."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slurmtop.model.snapshot import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProcess:
    """One process as ``/proc`` shows it.

    ``(host, pid, start_ticks)`` names it for ever: a pid alone may be given to another process.
    ``start_ticks`` are clock ticks since that node started (field 22 of ``stat``). ``state`` is the
    kernel's letter (R, S, D, Z, T …). ``caught`` and ``ignored`` are the masks ``SigCgt`` and
    ``SigIgn``: bit ``n - 1`` is signal ``n``; None where they could not be read. ``job`` and
    ``step`` are what Slurm's cgroup or else its environment says: the raw job number and ``0``,
    ``batch``, ``extern``. ``env`` holds names of an allow-list only, filtered on the node; None
    where it could not be read. ``inner_pids`` are its pids inside its own pid namespaces.
    """

    host: str
    pid: int
    start_ticks: int
    ppid: int = 0
    uid: int | None = None
    user: str | None = None
    state: str = "?"
    name: str = ""
    """The kernel's short name (``comm``): up to 15 bytes, any bytes."""
    argv: tuple[str, ...] = ()
    """Its first words, cut; empty for a kernel thread, a zombie or where it is not readable."""
    started_at: datetime | None = None
    job: str | None = None
    step: str | None = None
    env: tuple[tuple[str, str], ...] | None = None
    caught: int | None = None
    ignored: int | None = None
    threads: int | None = None
    inner_pids: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[str, int, int]:
        return (self.host, self.pid, self.start_ticks)

    def variable(self, name: str) -> str | None:
        """The value of an environment variable; None where it is not set or not readable."""
        return None if self.env is None else dict(self.env).get(name)

    def catches(self, signal: int) -> bool | None:
        """Has it a handler for signal number ``signal``? None: not known."""
        return None if self.caught is None else bool(self.caught >> (signal - 1) & 1)

    def ignores(self, signal: int) -> bool | None:
        return None if self.ignored is None else bool(self.ignored >> (signal - 1) & 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProcesses:
    """The processes of one look at one node, those of slurmtop itself left out.

    ``at`` is our clock, ``node_at`` the node's own (they may differ). ``complete`` is false where
    the answer was cut. ``failure`` tells why there is no answer; ``processes`` is then empty and
    means nothing.
    """

    host: str
    at: datetime
    processes: tuple[NodeProcess, ...] = ()
    node_at: datetime | None = None
    boot_id: str | None = None
    complete: bool = True
    hidden: bool = False
    """``/proc`` shows only one's own processes there (hidepid)."""
    inside: str | None = None
    """The job whose cgroup we were in (pam_slurm_adopt, or a step of our own)."""
    ptrace_scope: int | None = None
    """Whose stacks may be read (Yama): 0 one's own; 1 and more: not so; None: not restricted."""
    failure: Failure | None = None


class Rung(StrEnum):
    """How a rank was told: each rung is weaker than the one before."""

    ENVIRONMENT = "environment"
    ARGV = "argv"
    NCCL_LOG = "nccl log"
    RAS = "ras"
    GPU_UUID = "gpu uuid"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankProcess:
    """A process that is (or may be) a rank of a job.

    ``rank`` is its number in the world of ``world_size``, None where it is unknown. ``attempt``
    is torchrun's restart count where it is told. ``rung`` says how the rank was told.
    ``perhaps`` are processes that it has started and that may be ranks in its place, each of
    them: then its own number says nothing and ``rank`` is None.
    """

    process: NodeProcess
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    attempt: int | None = None
    rung: Rung = Rung.UNKNOWN
    perhaps: tuple[NodeProcess, ...] = ()
