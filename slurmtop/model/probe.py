"""What one round trip to a node tells of the processes of a job, beside who they are.

Counters are read twice within a probe, some tenths of a second apart: that shows what is busy at
this moment. Whether anything moved *between* two looks is told by two probes.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slurmtop.model.gpu import NodeGpus
from slurmtop.model.nic import NicPort
from slurmtop.model.process import NodeProcess, NodeProcesses
from slurmtop.model.snapshot import Failure
from slurmtop.model.stacks import StackTool
from slurmtop.model.verdict import SourceFate


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What the kernel has counted for one process since it began; None: not readable.

    ``cpu_ticks`` are user and system time of all its threads, in clock ticks. ``read_bytes`` and
    ``written_bytes`` went to and from storage; ``read_chars`` and ``written_chars`` passed through
    read and write calls of any kind (pipes, sockets, page cache). ``switches`` are voluntary and
    other context switches of the main thread.
    """

    cpu_ticks: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    read_chars: int | None = None
    written_chars: int | None = None
    switches: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadState:
    """One thread as the kernel shows it: its letter, and where in the kernel it waits.

    ``wchan`` is a function of the kernel (``futex_wait``), "" where it waits nowhere, None where it
    is not readable.
    """

    tid: int
    state: str
    name: str = ""
    wchan: str | None = None
    cpu_ticks: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What one process was doing during one probe.

    ``first`` and ``second`` were read ``between_s`` seconds apart. ``state`` is its letter at the
    second reading. ``tracer_pid`` is who traces it (a debugger), 0 for nobody, None unknown.
    ``threads`` are the main one first, then others, at most some dozens. ``open_file`` is what the
    main thread's system call reads, writes or opens, where ``/proc`` tells it.
    """

    host: str
    pid: int
    start_ticks: int
    state: str
    wchan: str | None = None
    syscall: str | None = None
    """The number of the system call that it is in, ``running``, or None where not readable."""
    open_file: str | None = None
    tracer_pid: int | None = None
    first: Counters = Counters()
    second: Counters = Counters()
    between_s: float | None = None
    threads: tuple[ThreadState, ...] = ()

    @property
    def key(self) -> tuple[str, int, int]:
        """As :attr:`slurmtop.model.process.NodeProcess.key`."""
        return (self.host, self.pid, self.start_ticks)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryGroup:
    """A memory cgroup of the job on one node. ``path`` as in ``/proc/PID/cgroup``.

    ``oom_kills`` counts processes that the kernel killed in it for lack of memory since it was
    made; ``used_bytes`` and ``limit_bytes`` None where not readable (limit: or without a limit).
    """

    path: str
    pids: tuple[int, ...] = ()
    """Processes of the look that are in it."""
    oom_kills: int | None = None
    used_bytes: int | None = None
    limit_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A version of a library that a process has loaded: ``nccl`` 2.21.5, ``torch`` 2.4.0+cu124.

    ``source`` is how it is known, e.g. the path of the file.
    """

    pid: int
    name: str
    version: str
    source: str = ""


class KernelSays(StrEnum):
    """What a line of a kernel log is about."""

    MEMORY = "memory ran out"
    CRASH = "a crash"
    XID = "an Xid"
    BLOCKED = "a task that is blocked"
    LINK = "a network link"
    STORAGE = "a server of files"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLine:
    """One line of a node's kernel log that tells something of a process, a card or a server.

    ``at`` is its time by our clock, None where the line has none that can be compared. ``pid`` and
    ``name`` are the process (or thread) that it names, by the kernel's own numbers; ``cgroup`` the
    one whose memory ran out. ``code`` is that of an Xid (a lost card: 79). ``subject`` is the link
    or the server; ``mended``: it says that the link is up, or that the server answers again.
    """

    text: str
    says: KernelSays
    at: datetime | None = None
    pid: int | None = None
    name: str | None = None
    cgroup: str = ""
    code: int | None = None
    bus_id: str | None = None
    subject: str | None = None
    mended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProbe:
    """One node, looked at once for one job.

    ``at`` is when it was asked, by our clock; ``node_at`` its own clock. ``failure``: it did not
    answer at all, and everything else is empty and means nothing. Each part has its fate in
    ``fates``; a part whose fate is not ANSWERED is unknown, never empty. ``kernel_lines`` are the
    raw lines of its kernel log that may matter, newest last; ``kernel`` those of them that were
    understood. ``kernel_pids``: are the pids of the look those that the kernel names? No where it
    was made inside a pid namespace; None: not known. ``ticks_per_s`` is the unit of ``cpu_ticks``;
    ``cpus`` how many the node has, ``arch`` as ``uname -m`` prints it.
    """

    host: str
    at: datetime
    took_s: float = 0.0
    node_at: datetime | None = None
    processes: NodeProcesses | None = None
    activity: tuple[Activity, ...] = ()
    memory: tuple[MemoryGroup, ...] = ()
    gpus: NodeGpus | None = None
    nics: tuple[NicPort, ...] = ()
    kernel_lines: tuple[str, ...] = ()
    kernel: tuple[KernelLine, ...] = ()
    kernel_pids: bool | None = None
    libraries: tuple[Library, ...] = ()
    ptrace_scope: int | None = None
    stack_tools: tuple[StackTool, ...] = ()
    """Those that may be used there, best first."""
    ticks_per_s: int = 100
    cpus: int | None = None
    arch: str | None = None
    fates: tuple[SourceFate, ...] = ()
    failure: Failure | None = None

    def activity_of(self, process: NodeProcess) -> Activity | None:
        """What ``process`` was doing; None where that is not known."""
        return next((one for one in self.activity if one.key == process.key), None)
