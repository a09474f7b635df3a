"""What slurmtop can reach from here, as whom, and what opens the rest."""

from dataclasses import dataclass
from enum import StrEnum

from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure
from slurmtop.model.stacks import StackTool


class AccessStatus(StrEnum):
    """What came of trying one source; the value is the word that a person reads."""

    REACHABLE = "reachable"
    REFUSED = "refused"
    """It is there, and this user may not, or it does not answer."""
    ABSENT = "absent"
    """It is not there at all: not installed, not set up, or nothing to try it on."""
    NOT_ASKED = "not asked"


class Group(StrEnum):
    """The part of the table that a source stands in, in this order."""

    SLURM = "Slurm"
    LOGS = "Logs"
    HERE = "Here"
    NODES = "Ways onto nodes"
    ON_NODE = "On the node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One source. ``why`` says what was seen, ``opens`` what would open it ("" where nothing is
    to be opened), ``command`` a command that does or shows it. ``host`` is set for a node's.
    ``copy`` is what ``why`` ends with, where that must be copied whole."""

    group: Group
    source: str
    status: AccessStatus
    why: str = ""
    opens: str = ""
    command: str = ""
    host: str | None = None
    copy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAccess:
    """What one look at a node tells of what may be read there, and how. None: not told.

    ``tools`` are (name, path), the path "" where the tool is not there. ``stack_tools`` are those
    that may be used to read stacks, ``no_stack_tool`` why there is none. ``ptrace_scope`` is Yama's
    number, with ``ptrace_known`` true and no number where the kernel has no such limit.
    ``dmesg_rc`` is the exit status of ``dmesg`` there (127: no such program), ``journal`` is
    readable, refused or absent. ``proc_options`` are the mount options of ``/proc``.
    ``own_processes`` are processes of this user, ``closed_processes`` those of them whose
    environment is closed to us, ``job_processes`` those of the job, ours left out. ``settings``
    are NCCL's and PyTorch's of one of those, by an allow-list. ``inside_job`` and ``inside_step``
    are the cgroup that we are put into. ``complete`` is false where the answer was cut.
    """

    host: str
    uid: int | None = None
    user: str | None = None
    groups: tuple[str, ...] = ()
    system: str = ""
    tools: tuple[tuple[str, str], ...] = ()
    stack_tools: tuple[StackTool, ...] = ()
    no_stack_tool: Failure | None = None
    driver: bool = False
    """The NVIDIA kernel driver is loaded."""
    ptrace_known: bool = False
    ptrace_scope: int | None = None
    dmesg_rc: int | None = None
    dmesg_restrict: int | None = None
    journal: str | None = None
    proc_options: str = ""
    sees_others: bool | None = None
    own_processes: int | None = None
    closed_processes: int | None = None
    job_processes: int | None = None
    settings: tuple[tuple[str, str], ...] = ()
    cgroup: str = ""
    inside_job: str | None = None
    inside_step: str | None = None
    complete: bool = False

    def tool(self, name: str) -> str | None:
        """Where a program is; "" where it is not there, None where nobody looked."""
        return dict(self.tools).get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class WayTried:
    """One way onto one node: what the node told, or why it did not."""

    host: str
    way: Way
    access: NodeAccess | None = None
    failure: Failure | None = None
    took_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmAccess:
    """What Slurm's commands said. A failure is None where the source answered.

    ``job`` is the own job that was asked about, "" without one. ``operator`` is None where nobody
    could say. ``script`` says why a batch script cannot be read, None where it can.
    ``not_recorded`` are the questions that a recording does not hold: ``squeue``, ``config``,
    ``job``, ``batch_script``, ``sacct``, ``sacctmgr``, ``scancel``.
    """

    queue: Failure | None = None
    queue_jobs: int = 0
    config: Failure | None = None
    private_data: tuple[str, ...] = ()
    operator: bool | None = None
    coordinates: tuple[str, ...] | None = None
    job: str = ""
    detail: Failure | None = None
    script: str | None = None
    has_script: bool = False
    accounting: Failure | None = None
    accounting_off: bool = False
    scancel: str | None = None
    """What ``scancel --version`` says; None where there is no scancel."""
    sends_many: bool = False
    not_recorded: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAccess:
    """The log of one own job. ``why`` is set where it cannot be read; ``path`` None: not told.

    ``denied``: there is one, and its mode or that of a folder keeps this user out. ``hangs``: the
    file system does not answer. ``recorded`` is false where a recording does not hold it."""

    job: str
    path: str | None
    readable: bool = False
    denied: bool = False
    hangs: bool = False
    recorded: bool = True
    why: str = ""
