"""Everything the screens need from outside, handed in by the wiring in ``cli``.

The screens never open a socket or start a process: they know these protocols only, so a
test, a replay and the demo hand in their own.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Protocol

from slurmtop.collect.metered import Ran
from slurmtop.config import Config
from slurmtop.model.facts import JobFacts, LogsSay
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.model.live import LiveFacts
from slurmtop.model.look import HostLook
from slurmtop.model.node import Node
from slurmtop.model.ports import Clock, Runner
from slurmtop.model.snapshot import Parsed, Snapshot, SourceHealth
from slurmtop.store.gpu_use import JobUse

if TYPE_CHECKING:
    from slurmtop.control.actions import Action, Target
    from slurmtop.control.execute import Outcome
    from slurmtop.control.prepare import World

OnQueue = Callable[[Snapshot[Parsed[Job]]], None]
OnHealth = Callable[[SourceHealth], None]


class QueuePoller(Protocol):
    """Asks for the queue again and again.

    ``run`` loops until it is cancelled; ``tick`` is one round. ``poke`` ends the present
    wait. ``slow_down(6.0)`` makes every wait six times as long, ``slow_down(1.0)`` restores.
    """

    async def run(self) -> None: ...

    async def tick(self) -> None: ...

    def poke(self) -> None: ...

    def slow_down(self, factor: float) -> None: ...


class OpenQueue(Protocol):
    """Builds a poller: of one user's jobs, or of everybody's with ``user`` None."""

    def __call__(
        self, *, user: str | None, on_value: OnQueue, on_health: OnHealth
    ) -> QueuePoller: ...


class GpuWatching(Protocol):
    """Looks at the GPUs of some nodes while a view is shown.

    ``run`` loops until it is cancelled and then leaves nothing running on any node; ``poke``
    tries at once what has failed. It never raises for a node that does not answer. Of very many
    nodes those that ``in_view`` names are kept fresh, the first ones before all; ``in_turn`` is how
    many others there are, which are looked at one after the other.
    """

    @property
    def in_turn(self) -> int: ...

    async def run(self) -> None: ...

    def poke(self) -> None: ...

    def in_view(self, hosts: Sequence[str]) -> None: ...


class WatchGpus(Protocol):
    """Builds a watch over ``hosts``: the nodes of ``job``, or nodes looked at by themselves
    (``job`` None). ``on_look`` hears of every news of one node, failures too."""

    def __call__(
        self, hosts: Sequence[str], *, job: Job | None, on_look: Callable[[HostLook], None]
    ) -> GpuWatching: ...


class OpenNodes(Protocol):
    """Builds the poller of the cluster's nodes (``sinfo``), for as long as a screen shows them."""

    def __call__(
        self, *, on_value: Callable[[Snapshot[Parsed[Node]]], None], on_health: OnHealth
    ) -> QueuePoller: ...


class GatherFacts(Protocol):
    """Gathers what is known of one job; never raises for a source that is silent.

    ``asked`` is the id as typed; ``job`` and ``siblings`` what the queue already said.
    ``ask_start`` also asks Slurm when a pending job may start.
    """

    async def __call__(
        self,
        asked: str,
        *,
        job: Job | None = None,
        siblings: tuple[Job, ...] = (),
        ask_start: bool = False,
    ) -> JobFacts: ...


class JudgeLogsAgain(Protocol):
    """Reads the logs of ``facts`` anew and tells what they say now; None where it cannot."""

    async def __call__(self, facts: JobFacts) -> LogsSay | None: ...


class LookAtNodes(Protocol):
    """Looks at the processes of a running job on its nodes: all that is known so far, at every
    news, until two rounds have told whether anything moves (or one that nothing is wrong).

    ``asked``: a person wants it: two rounds, with stacks, also of a job that nobody suspects. It
    never raises for a node that does not answer. Closing the iterator ends every question that is
    on its way and leaves nothing on any node.
    """

    def __call__(self, facts: JobFacts, *, asked: bool) -> AsyncGenerator[LiveFacts, None]: ...


class ActionExecutor(Protocol):
    """Does a confirmed action and reads back what became of it.

    ``still_same`` is asked about every job right before anything runs. ``without_log`` does
    it also where it cannot be written down, ``without_save`` where what is known cannot be saved
    first: only after a person was asked once more. ``sent`` is told how many commands were
    handed over and how many there are.
    """

    async def execute(
        self,
        action: "Action",
        *,
        still_same: "Callable[[Target], bool] | None" = None,
        without_log: bool = False,
        without_save: bool = False,
        sent: "Callable[[int, int], None] | None" = None,
    ) -> "Outcome": ...


def _no_calls() -> int:
    return 0


def _no_way() -> str:
    return ""


def _not_recorded() -> None:
    return None


def _nothing_ran() -> tuple[Ran, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """``cluster`` is the name in every key (``""`` for the local one), ``cluster_label`` the
    name on the screen. ``demo`` names the scenario of a simulated cluster and is always
    shown. ``zone`` is the viewer's. ``private_data`` says that Slurm may hide jobs.
    """

    runner: Runner
    clock: Clock
    config: Config
    uid: int
    user: str
    open_queue: OpenQueue
    gather_facts: GatherFacts
    executor: ActionExecutor
    world: "World"
    """What a plan may ask Slurm before its dialog opens."""
    judge_logs: JudgeLogsAgain | None = None
    """None where logs are only looked at (in tests of screens)."""
    look_at_nodes: LookAtNodes | None = None
    """None where the processes on nodes cannot be looked at."""
    watch_gpus: WatchGpus | None = None
    """None where nothing can be asked of nodes (a recording without them, a site that forbids)."""
    open_nodes: OpenNodes | None = None
    job_gpu_use: Callable[[JobKey], JobUse | None] | None = None
    """What the site's exporter says of a job's GPU use now; None where none is set. Must answer
    from memory: it is called at every paint."""
    way_to_nodes: Callable[[], str] = _no_way
    """How slurmtop gets onto nodes (``ssh``, ``srun`` …), "" while that is not known."""
    one_call: bool = False
    """Can the scancel here send many ids in one request?"""
    commands_run: Callable[[], Sequence[Ran]] = _nothing_ran
    """What was run of late, the newest first."""
    calls_last_minute: Callable[[], int] = _no_calls
    cluster: str = ""
    cluster_label: str = ""
    read_only: bool = False
    save_folder: str = ""
    """Where what is known of a suspect is saved before it is ended; "" where nothing is."""
    dry_run: bool = False
    """Actions are asked and shown, and nothing is run."""
    demo: str = ""
    private_data: bool = False
    zone: tzinfo = UTC
    recorded_at: Callable[[], datetime | None] = _not_recorded
    """When what is shown was recorded; None for what is not from a recording."""
    data_clock: Clock | None = None
    """The clock behind ages of data, where it is not ``clock``: in the demo, where the
    cluster's time runs ``speed`` times as fast as the reader's."""
    speed: float = 1.0

    def data_now(self) -> datetime:
        """Now, for how fresh data is and when the next try is."""
        return (self.data_clock or self.clock).now()

    def seen_at(self, at: datetime) -> datetime:
        """``at``, moved so that its age in cluster time is the age that the reader felt."""
        now = self.clock.now()
        return now - (now - at) / self.speed
