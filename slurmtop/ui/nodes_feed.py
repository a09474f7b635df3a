"""The nodes as they come in while the Nodes screen is shown, and what is known of single ones."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from slurmtop.collect.nodes.kernel import INTERVAL_S as KERNEL_S
from slurmtop.collect.nodes.kernel import read_kernel_log
from slurmtop.collect.sinfo import every_s
from slurmtop.model.gpu import KernelLog
from slurmtop.model.job import Phase
from slurmtop.model.node import Node
from slurmtop.model.rights import Rights
from slurmtop.model.snapshot import Parsed, Snapshot, SourceHealth
from slurmtop.store.nodes import NodeRow, NodeView
from slurmtop.ui.gpu_feed import hosts_of
from slurmtop.ui.present.node_card import Admission
from slurmtop.ui.services import QueuePoller, Services


@dataclass(frozen=True, slots=True)
class KernelLook:
    """A node's kernel log; ``tried_s`` is when it was asked for, in monotonic seconds."""

    log: KernelLog
    tried_s: float


class NodesFeed:
    """Fills a :class:`NodeView`, which keeps filter, order and cursor between two visits.

    ``run`` is the one task while the screen is shown; to come back within the interval costs no
    call.
    """

    def __init__(self, services: Services, on_news: Callable[[], None]) -> None:
        self._services = services
        self._clock = services.data_clock or services.clock
        self._on_news = on_news
        self._poller: QueuePoller | None = None
        self._heard_s: float | None = None
        self._factor = 1.0
        self.view = NodeView(expand=hosts_of)
        self.health = SourceHealth("nodes", interval_s=every_s(services.speed))
        self.sampled_at: datetime | None = None
        self.kernel: dict[str, KernelLook] = {}
        self.rights: Rights | None = None

    @property
    def possible(self) -> bool:
        """Can Slurm be asked for its nodes here?"""
        return self._services.open_nodes is not None

    def seconds(self) -> float:
        """The reader's seconds, for how long something is so already."""
        return self._clock.monotonic()

    async def run(self) -> None:
        """Ask until cancelled, the first time when the last answer is old enough."""
        open_nodes = self._services.open_nodes
        if open_nodes is None:
            return
        if self._heard_s is not None:
            due_s = self._heard_s + every_s(self._services.speed) * self._factor
            await self._clock.sleep(due_s - self._clock.monotonic())
        poller = open_nodes(on_value=self._answered, on_health=self._health_came)
        self._poller = poller
        try:
            if self._factor != 1.0:
                poller.slow_down(self._factor)
            await poller.run()
        finally:
            self._poller = None

    def ask_now(self) -> bool:
        """A key asks. True where ``run`` has to be started anew for it."""
        if self._poller is not None:
            self._poller.poke()
            return False
        self._heard_s = None
        return True

    def slow_down(self, factor: float) -> bool:
        """Make every wait ``factor`` times as long; True where that is a change."""
        changed = factor != self._factor
        self._factor = factor
        if changed and self._poller is not None:
            self._poller.slow_down(factor)
        return changed

    def _answered(self, answer: Snapshot[Parsed[Node]]) -> None:
        self._heard_s = self._clock.monotonic()
        self.sampled_at = answer.sampled_at
        self.view.set_nodes(answer.value.rows)
        self._on_news()

    def _health_came(self, health: SourceHealth) -> None:
        before = self.health
        if health.failure is not None and health.failure is not before.failure:
            self._heard_s = self._clock.monotonic()
        if health.good_at is None and before.good_at is not None:
            # A new poller begins without a past; what is on the screen has one.
            health = _carried_on(before, health)
        self.health = health
        self._on_news()

    # One node

    def admission(self, row: NodeRow) -> Admission:
        """May this person look inside the node? By their own running job there, or their rights."""
        services = self._services
        for job in row.jobs:
            if job.user == services.user and job.state.phase is Phase.RUNNING:
                return Admission(True, job)
        if services.uid == 0:
            return Admission(True)
        return Admission(None if self.rights is None else bool(self.rights.operator))

    async def learn_rights(self) -> None:
        """Ask once what this person may do."""
        if self.rights is None:
            self.rights = await self._services.world.rights()
            self._on_news()

    def kernel_due(self, host: str) -> bool:
        """May the kernel log be asked for? At most once a minute, never after a refusal."""
        look = self.kernel.get(host)
        if look is None:
            return True
        failure = look.log.failure
        again_s = KERNEL_S if failure is None else max(KERNEL_S, failure.retry_after_s or 0.0)
        return self._clock.monotonic() - look.tried_s >= again_s

    async def read_kernel(self, host: str) -> None:
        """Read a node's kernel log."""
        tried_s = self._clock.monotonic()
        log = await read_kernel_log(self._services.runner, host)
        self.kernel[host] = KernelLook(log, tried_s)
        self._on_news()


def _carried_on(former: SourceHealth, health: SourceHealth) -> SourceHealth:
    return SourceHealth(
        health.name,
        good_at=former.good_at,
        took_s=former.took_s,
        asking_since=health.asking_since,
        failure=health.failure or former.failure,
        failing_since=former.failing_since or health.failing_since,
        failures=health.failures,
        interval_s=health.interval_s,
        bad_records=former.bad_records,
        next_at=health.next_at,
    )
