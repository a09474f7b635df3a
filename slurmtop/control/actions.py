"""A job action as data: what it runs, whom it reaches, how it is confirmed.

An :class:`Action` is planned by a pure function, shown whole in a dialog, and only then
handed to :class:`slurmtop.control.execute.Executor`. Nothing here runs anything.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slurmtop.model.ids import JobKey
from slurmtop.model.rights import UNKNOWN_RIGHTS, Rights
from slurmtop.model.script import Reaction, Recipient

__all__ = [
    "Action",
    "Asker",
    "ConfirmLevel",
    "Details",
    "Kind",
    "RankPid",
    "Recipient",
    "Refusal",
    "Saving",
    "Target",
    "differ_by_task",
]


class Kind(StrEnum):
    """What is done; the value is how a person says it, and its name in the log."""

    CANCEL = "cancel"
    REQUEUE = "requeue"
    REQUEUE_HOLD = "requeue and hold"
    HOLD = "hold"
    RELEASE = "release"
    LIMIT = "set the time limit of"
    EXCLUDE = "exclude nodes from"
    SIGNAL = "signal"


def differ_by_task(kind: Kind) -> bool:
    """Can waiting tasks of one array differ in what ``kind`` changes, and stay in one row?"""
    return kind in (Kind.HOLD, Kind.RELEASE, Kind.LIMIT, Kind.EXCLUDE)


class ConfirmLevel(StrEnum):
    """How hard it is made to say yes."""

    YES = "yes"
    """One key: an own job that waits or runs on one node; a hold, a release or excluded nodes
    of any number of own jobs."""
    TYPE_COUNT = "type the count"
    """Several jobs that would end or be requeued, or are not all one's own: how many."""
    TYPE_ID = "type the id"
    """One job that would end or be requeued and is a het job or runs on several nodes; another
    person's; one that keeps failing alike or has completed (requeue); one that may end where
    nobody would expect it (signal, time limit). Of several such jobs it is the count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPid:
    """One rank process as it is signalled: ``pid`` on ``host``, and only if it is still the one
    that started at ``start_ticks`` (clock ticks since that node started).

    ``job`` is the key of its job's record; ``raw_id`` the plain number of that. ``rank`` None: not
    known.
    """

    host: str
    pid: int
    start_ticks: int
    job: JobKey
    raw_id: str
    rank: int | None = None

    @property
    def label(self) -> str:
        """``rank 3 on gpu01``; by its pid where the rank is not known."""
        name = f"pid {self.pid}" if self.rank is None else f"rank {self.rank}"
        return f"{name} on {self.host}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What a kind needs beside its jobs. ``signal`` is a name without SIG, e.g. ``USR1``.

    ``ranks`` are the processes that get it where the recipient is RANKS.

    ``exclude`` are hosts that are added to what each job excludes already. ``one_call`` lets
    scancel hand all its ids to the controller in one request, where it can (23.11 and later).
    """

    signal: str = ""
    recipient: Recipient = Recipient.STEPS
    limit_minutes: int | None = None
    exclude: tuple[str, ...] = ()
    one_call: bool = False
    ranks: tuple[RankPid, ...] = ()


NO_DETAILS = Details()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks for an action, when, of which cluster, and what that person may do.

    ``cluster`` is the name for ``-M``, or "". ``now`` is the time of what is known of the jobs.
    ``verdict`` is the one-line judgement that the person acts on, for the log.
    ``read_only_from`` is the option or the file that made it read-only, where that is known.
    ``suspects`` are jobs that hang, fail or crawl as far as is known: what is known of them is
    saved below ``save_folder`` before they are ended ("": nothing can be, or is to be, saved).
    """

    me: str
    now: datetime
    cluster: str = ""
    read_only: bool = False
    read_only_from: str = ""
    rights: Rights = UNKNOWN_RIGHTS
    one_call: bool = False
    verdict: str | None = None
    suspects: frozenset[JobKey] = frozenset()
    save_folder: str = ""


@dataclass(frozen=True, slots=True)
class Saving:
    """What is known of one ``job`` (its id as typed) is to be saved at ``path``."""

    key: JobKey
    job: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One job that the action reaches, or one ``step`` of it.

    ``ids`` are the arguments that name it; ``tasks`` the inclusive task ranges behind an
    array id (empty for a job without tasks). ``covers`` counts the jobs it stands for: the
    tasks of an array's waiting rest. ``parts`` are the rows that it takes with it (het job).
    ``restarts``, ``priority`` and ``limit_s`` are what they were when it was planned.
    """

    key: JobKey
    ids: tuple[str, ...]
    name: str
    user: str
    state_word: str
    submit: datetime | None = None
    tasks: tuple[tuple[int, int], ...] = ()
    covers: int = 1
    parts: tuple[JobKey, ...] = ()
    nodes: str | None = None
    node_count: int | None = None
    gpus: int | None = None
    started_at: datetime | None = None
    gpu_hours_spent: float | None = None
    step: str | None = None
    restarts: int | None = None
    limit_s: int | None = None
    excluded_nodes: str | None = None

    @property
    def base(self) -> str:
        """The plain number that a query can name."""
        return self.key.id.split("_", 1)[0].split("+", 1)[0]

    @property
    def label(self) -> str:
        """The id that a person reads: of a step with it, ``4711.0``."""
        return self.key.id if self.step is None else f"{self.key.id}.{self.step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What will be done once the person has confirmed it.

    ``argvs`` are the exact commands, in order; ``hosts`` where each of them runs (None: here), or
    () where all run here. ``expected_text`` is what has to be typed for
    ``confirm`` other than YES, else empty. ``warnings`` are sentences. ``reactions`` say who
    gets a signal and what it does to them. ``verdict`` is the one-line judgement that the
    person acted on, for the log. ``saves`` is what is saved before any of it is run.
    """

    kind: Kind
    cluster: str
    targets: tuple[Target, ...]
    argvs: tuple[tuple[str, ...], ...]
    confirm: ConfirmLevel
    expected_text: str = ""
    hosts: tuple[str | None, ...] = ()
    details: Details = NO_DETAILS
    warnings: tuple[str, ...] = ()
    reactions: tuple[Reaction, ...] = ()
    planned_at: datetime | None = None
    verdict: str | None = None
    saves: tuple[Saving, ...] = ()

    @property
    def job_count(self) -> int:
        """How many jobs it reaches, each array task counted."""
        return sum(target.covers for target in self.targets)

    @property
    def command_lines(self) -> tuple[str, ...]:
        """The commands as a person would type them; a script for nodes is told once, behind them,
        as the function that stands in its place."""
        hosts = self.hosts or (None,) * len(self.argvs)
        out: list[str] = []
        scripts: dict[str, None] = {}
        for argv, host in zip(self.argvs, hosts, strict=True):
            if host is None:
                out.append(" ".join(_shown(word) for word in argv))
                continue
            # /bin/sh -c SCRIPT NAME ARGUMENTS
            out.append(f"on {host}: {' '.join(argv[3:])}")
            scripts[f"where {argv[3]}() {{ {' '.join(argv[2].split())} }}"] = None
        return (*out, *scripts)

    def confirmed_by(self, typed: str) -> bool:
        """Does ``typed`` confirm it? Any answer does where one key is enough."""
        return self.confirm is ConfirmLevel.YES or typed.strip() == self.expected_text


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is nothing to confirm, as one sentence for a person."""

    sentence: str


def _shown(word: str) -> str:
    return f"'{word}'" if "[" in word else word
