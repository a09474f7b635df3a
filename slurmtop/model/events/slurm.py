"""What Slurm's programs wrote into a log: srun, slurmstepd, slurmd and slurmctld."""

from dataclasses import dataclass
from enum import StrEnum

from slurmtop.model.trace import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskExit(Event):
    """``srun: error: node[1-3]: tasks 0-7,9: Exited with exit code 1``.

    ``tasks`` are ids of the step. ``signal`` is a number, ``out_of_memory`` Slurm's own word. The
    first such line in time is the best hint; ``Terminated`` and later ``Killed`` are victims.
    """

    hosts: tuple[str, ...]
    tasks: tuple[int, ...]
    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool = False
    step: str | None = None


class Ending(StrEnum):
    """Why Slurm says that it ended a job or step; CANCELLED where it gives no reason."""

    CANCELLED = "cancelled"
    TIME_LIMIT = "time limit"
    PREEMPTION = "preemption"
    NODE_FAILURE = "node failure"
    REQUEUE = "requeue"
    TASK_FAILURE = "task failure"
    UNKILLABLE = "unkillable"
    """``STEPD TERMINATED … DUE TO JOB NOT ENDING WITH SIGNALS``."""
    FAILED = "failed"
    OTHER = "other"
    """A reason that is not known here."""
    CUT = "cut"
    """The line ends before it tells whether there is a reason, or which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnded(Event):
    """``slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT … DUE TO TIME LIMIT ***``.

    ``first_host`` is the first node of the step, **not** the one to blame. ``seconds`` is the
    time in the line, by that node's clock. ``step`` is ``12`` or ``12.0``.
    """

    step: str
    ending: Ending
    first_host: str
    seconds: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OomKill(Event):
    """``Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM Killed.``

    ``host`` where the daemon's prefix tells it (``slurmstepd-node-a:``).
    """

    step: str
    events: int = 1
    host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFailed(Event):
    """``Task launch for 36.0 failed on node node-k: Job credential expired``."""

    node: str | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTrouble(Event):
    """A node failed or was taken out: ``srun: error: Node failure on n1``, slurmctld's
    ``node n1 not responding``, ``update_node: node n1 reason set to: …``."""

    nodes: tuple[str, ...]
    why: str
    listed: bool = False
    """A row of ``sinfo -R``, which lists nodes of the whole cluster."""


class StepNote(StrEnum):
    ABORTED = "aborted"
    """``Job step aborted: Waiting up to 32 seconds for job step to finish.``"""
    TERMINATING = "terminating"
    """``Terminating StepId=…``, ``Force Terminated StepId=…``."""
    FIRST_EXITED = "first exited"
    REVOKED = "revoked"
    """``Job allocation 12 has been revoked``."""
    WARNED = "warned"
    """A signal before the end reached the program (``Caught signal SIGUSR1``, ``Bypassing``)."""
    PREEMPTED = "preempted"
    """The program's own words: ``this job is preempted``."""
    TIMED_OUT = "timed out"
    """The program's own words: ``this job is timed-out``."""
    REQUEUED = "requeued"
    """``scontrol requeue``, or a program that says that it requeues itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNote(Event):
    """A line around the end of a step that names nobody."""

    note: StepNote
