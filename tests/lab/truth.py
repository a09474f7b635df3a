"""The truth table of the lab: what is right to say of each fault and each healthy run.

Written down before the rules were, and not bent to what they say. A fault is in one rank, at one
step, of a training of four ranks on four nodes; :attr:`Truth.culprit` tells who may be blamed for
it. What counts is process level: ranks meet over gloo on CPUs, no GPU takes part.
"""

from dataclasses import dataclass
from enum import StrEnum

#: What Slurm itself calls a job that is at work.
RUNNING = ("RUNNING",)
#: Either a requeue or the end of a batch script may still be under way.
FAILED = ("FAILED", "COMPLETING")


class Blame(StrEnum):
    """Who may be named."""

    RANK = "rank"
    """The rank of the fault, by its number or by its host and pid."""
    HOST = "host"
    """The node of the fault; its rank as well, and nobody else."""
    MAYBE_RANK = "maybe rank"
    """Nobody must be named; who is named must be the rank of the fault. Not counted as a hit."""
    MAYBE_HOST = "maybe host"
    """Nobody must be named; who is named must be on the node of the fault. Not counted as a hit."""
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What is right for one case.

    The first of ``states`` and ``classes`` is the right one, the others are accepted: they are
    counted apart. None among ``classes``: no class may be named. ``unsure`` are classes that are
    accepted where the confidence is not high. The family follows from the class. ``slurm`` are the
    states of the job, by Slurm, in which a run is good: in any other the fault did not come about.
    """

    states: tuple[str, ...]
    classes: tuple[str | None, ...]
    culprit: Blame
    process_level: bool = False
    unsure: tuple[str, ...] = ()
    slurm: tuple[str, ...] = RUNNING
    healthy: bool = False
    """Nothing is wrong: to call it hung is the false alarm that must never be."""

    @property
    def state(self) -> str:
        return self.states[0]

    @property
    def cls(self) -> str | None:
        return self.classes[0]

    @property
    def names_somebody(self) -> bool:
        """Is a culprit counted?"""
        return self.culprit in (Blame.RANK, Blame.HOST)


def _hang(*classes: str | None, culprit: Blame = Blame.RANK, process_level: bool = True) -> Truth:
    return Truth(states=("hung",), classes=classes, culprit=culprit, process_level=process_level)


def _failed(*classes: str, culprit: Blame, unsure: tuple[str, ...] = ()) -> Truth:
    return Truth(states=("failed",), classes=classes, culprit=culprit, unsure=unsure, slurm=FAILED)


def _well(*states: str) -> Truth:
    return Truth(
        states=states or ("healthy", "unknown"),
        classes=("healthy", None),
        culprit=Blame.NOBODY,
        healthy=True,
    )


#: Hangs that process state and stacks can tell: these are what is promised.
_PROCESS_LEVEL = {
    "data-loader": _hang("data-loader-stuck", "rank-elsewhere"),
    "fifo": _hang("rank-elsewhere"),
    "busy-loop": _hang("rank-elsewhere"),
    "gil": _hang("gil-held", "rank-elsewhere"),
    "sigstop": _hang("process-stopped"),
    "d-state": _hang("io-stuck"),
    "other-branch": _hang("collective-op-mismatch", "collective-order-skew"),
    "checkpoint": _hang("checkpoint-stuck", "rank-elsewhere"),
    "teardown": _hang("teardown-hang", "rank-elsewhere"),
    # Every rank there is stopped, which is also true to say.
    "node-frozen": _hang("node-frozen", "process-stopped", culprit=Blame.HOST),
}

#: Hangs for which a process alone is not proof enough.
_OTHER_HANGS = {
    "order-deadlock": _hang(
        "collective-order-skew",
        "collective-op-mismatch",
        "watchdog-timeout-unattributed",
        culprit=Blame.NOBODY,
        process_level=False,
    ),
    # Nothing can be asked of that node: its network is what is missing.
    "nic-cut": Truth(
        states=("hung", "unknown"),
        classes=(
            "net-link-fault",
            None,
            "net-path-unreachable",
            "net-timeout",
            "slurm-node-fail",
            "watchdog-timeout-unattributed",
        ),
        culprit=Blame.MAYBE_HOST,
    ),
    "rendezvous-short": Truth(
        states=("hung", "unknown"), classes=("rendezvous-timeout", None), culprit=Blame.HOST
    ),
    "slow-rank": Truth(states=("slow",), classes=("slow-run",), culprit=Blame.MAYBE_RANK),
}

_ENDED = {
    "sigkill": _failed("task-exit", culprit=Blame.RANK, unsure=("host-oom",)),
    "segfault": _failed("task-exit", culprit=Blame.RANK),
    "exception": _failed("python-exception", culprit=Blame.RANK),
    "host-oom": _failed("host-oom", "task-exit", culprit=Blame.RANK),
    "shape-mismatch": _failed("collective-shape-mismatch", culprit=Blame.MAYBE_RANK),
    "time-limit": Truth(
        states=("failed",),
        classes=("slurm-time-limit",),
        culprit=Blame.NOBODY,
        slurm=("TIMEOUT", "COMPLETING"),
    ),
    "preemption": Truth(
        states=("failed",),
        classes=("slurm-preempted",),
        culprit=Blame.NOBODY,
        slurm=("PREEMPTED", "COMPLETING"),
    ),
}

#: A run that goes on after something went wrong: nobody is to blame for it now.
_GOES_ON = {
    "max-restarts": Truth(
        states=("healthy", "recovering"),
        classes=("healthy", None),
        culprit=Blame.NOBODY,
        healthy=True,
    ),
    "requeue-appended": Truth(
        states=("healthy",),
        classes=("healthy", None, "slurm-requeue"),
        culprit=Blame.NOBODY,
        healthy=True,
    ),
}

#: ``unknown`` says less than is true, but nothing that is false.
_HEALTHY = {
    "long-first-step": _well(),
    "compile": _well(),
    "evaluation": _well(),
    "slow-checkpoint": _well(),
    "buffered-log": _well(),
    "uneven-data": _well(),
    "idle-shell": Truth(
        states=("idle", "unknown"), classes=(None, "healthy"), culprit=Blame.NOBODY, healthy=True
    ),
    "steady": _well(),
}

#: Every case by its name.
TRUTH: dict[str, Truth] = {**_PROCESS_LEVEL, **_OTHER_HANGS, **_ENDED, **_GOES_ON, **_HEALTHY}
