"""The Nodes screen over fakes: sinfo answers, and nodes let us in, when the test says so."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from textual.pilot import Pilot

from slurmtop.model.gpu import GpuSample, NodeGpus
from slurmtop.model.job import Job
from slurmtop.model.look import HostLook
from slurmtop.model.node import Node
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure, Parsed, Snapshot, SourceHealth, Trouble
from slurmtop.ui.app import SlurmtopApp
from slurmtop.ui.screens.nodes import NodesScreen
from slurmtop.ui.services import OnHealth
from tests.build import make_node
from tests.fakes import FakeClock, settle
from tests.ui.golden import screen_text
from tests.ui.harness import Bench

REASON_LOST = "gres/gpu count reported lower than configured (7 < 8)"


class NodesPoller:
    """One poller of the nodes, as :class:`tests.ui.harness.FakePoller` is one of the queue."""

    def __init__(
        self, on_value: Callable[[Snapshot[Parsed[Node]]], None], on_health: OnHealth
    ) -> None:
        self.on_value = on_value
        self.on_health = on_health
        self.pokes = 0
        self.factor = 1.0
        self.stopped = False

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped = True

    async def tick(self) -> None:
        self.pokes += 1

    def poke(self) -> None:
        self.pokes += 1

    def slow_down(self, factor: float) -> None:
        self.factor = factor


class Watch:
    """One watch of GPUs; ``closed`` once it was ended."""

    def __init__(
        self, hosts: tuple[str, ...], job: Job | None, on_look: Callable[[HostLook], None]
    ) -> None:
        self.hosts, self.job, self.on_look = hosts, job, on_look
        self.pokes = self.in_turn = 0
        self.closed = False

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.closed = True

    def poke(self) -> None:
        self.pokes += 1

    def in_view(self, hosts: Sequence[str]) -> None:
        """Few nodes: all of them are kept fresh."""


class NodesBench(Bench):
    """``nodes`` are the pollers that were opened, ``watches`` the looks at nodes."""

    def __init__(self, **services: Any) -> None:
        self.nodes: list[NodesPoller] = []
        self.watches: list[Watch] = []
        super().__init__(
            **{"open_nodes": self._open_nodes, "watch_gpus": self._watch_gpus, **services}
        )
        self.runner.on("/bin/sh *slurmtop-kernel*", "")

    def _open_nodes(
        self, *, on_value: Callable[[Snapshot[Parsed[Node]]], None], on_health: OnHealth
    ) -> NodesPoller:
        self.nodes.append(NodesPoller(on_value, on_health))
        return self.nodes[-1]

    def _watch_gpus(
        self, hosts: Sequence[str], *, job: Job | None, on_look: Callable[[HostLook], None]
    ) -> Watch:
        self.watches.append(Watch(tuple(hosts), job, on_look))
        return self.watches[-1]

    async def open(
        self, pilot: Pilot[None], nodes: Sequence[Node] | None = None, jobs: Sequence[Job] = ()
    ) -> NodesScreen:
        """The screen, with an answer of the queue and (unless None) of the nodes."""
        await self.answer(pilot, jobs)
        await pilot.press("3")
        await self.settled(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, NodesScreen)
        if nodes is not None:
            await self.tell_nodes(pilot, nodes)
        return screen

    async def tell_nodes(self, pilot: Pilot[None], nodes: Sequence[Node], *, bad: int = 0) -> None:
        now = self.clock.now()
        poller = self.nodes[-1]
        poller.on_value(Snapshot(Parsed(tuple(nodes), bad), now, 0.2))
        poller.on_health(
            SourceHealth(
                "nodes",
                good_at=now,
                took_s=0.2,
                interval_s=60.0,
                bad_records=bad,
                next_at=now + timedelta(seconds=60),
            )
        )
        await self.settled(pilot)

    async def nodes_asking(self, pilot: Pilot[None]) -> None:
        health = SourceHealth("nodes", interval_s=60.0, asking_since=self.clock.now())
        self.nodes[-1].on_health(health)
        await self.settled(pilot)

    async def nodes_fail(
        self,
        pilot: Pilot[None],
        sentence: str,
        *,
        trouble: Trouble = Trouble.DOWN,
        since: SourceHealth | None = None,
    ) -> None:
        now = self.clock.now()
        health = replace(
            since or SourceHealth("nodes", interval_s=60.0),
            failure=Failure(trouble, sentence),
            failing_since=now,
            failures=1,
            next_at=now + timedelta(seconds=120),
        )
        self.nodes[-1].on_health(health)
        await self.settled(pilot)

    async def look(self, pilot: Pilot[None], look: HostLook) -> None:
        """The watch has news of a node."""
        self.watches[-1].on_look(look)
        await self.advance(pilot, 1)
        await self.settled(pilot)

    async def settled(self, pilot: Pilot[None]) -> None:
        for _ in range(3):
            await self.clock.advance(0)
            await settle()
            await pilot.pause()

    async def press(self, pilot: Pilot[None], *keys: str) -> str:
        await pilot.press(*keys)
        await self.settled(pilot)
        return screen_text(pilot.app)


def some_nodes() -> list[Node]:
    """A node in every state that a person may meet."""
    return [
        make_node("gpu01", "allocated", used=8, partitions=("gpu", "long")),
        make_node("gpu02", "mixed", used=3, partitions=("gpu", "long")),
        make_node("gpu03", "idle"),
        make_node("gpu04", "drained", reason="Kill task failed", reason_user="slurm"),
        make_node("gpu05", "draining", used=8, reason="Xid 79 on GPU 3, ticket 4411"),
        make_node("gpu06", "down*", reason="Not responding", mem_free_mib=None),
        make_node("gpu07", "maint"),
        make_node("gpu08", "planned"),
        make_node("gpu09", "idle~"),
        make_node("gpu10", "inval", used=0, reason=REASON_LOST),
        make_node("gpu11", "mixed", gres="gpu:a100:4,gpu:h100:4", used="gpu:a100:1,gpu:h100:4"),
        make_node("gpu12", "mixed", gres="gpu:gb200:4", used=""),
        make_node("cpu01", "idle", gres="", used="", partitions=("cpu",)),
    ]


def a_look(clock: FakeClock, host: str = "gpu02", **fields: Any) -> HostLook:
    """What eight GPUs tell: one hot, one with errors in its memory."""
    samples = tuple(gpu(index) for index in range(8))
    gpus = NodeGpus(host=host, samples=samples, took_s=0.4)
    given: dict[str, Any] = {
        "host": host,
        "way": Way.SSH,
        "gpus": gpus,
        "gpus_at": clock.now(),
        "sources": ("nvidia-smi", "dcgmi"),
    }
    return HostLook(**{**given, **fields})


def gpu(index: int) -> GpuSample:
    return GpuSample(
        index=index,
        uuid=f"GPU-{index:08x}",
        bus_id=f"0000:{index + 16:02x}:00.0",
        name="NVIDIA H100 80GB HBM3",
        util_percent=97 if index < 3 else 0,
        power_w=655 if index < 3 else 71,
        power_limit_w=700,
        mem_used_mib=71_000 if index < 3 else 4,
        mem_total_mib=81_559,
        temp_c=86 if index == 1 else 44,
        sm_clock_mhz=1_980 if index != 1 else 345,
        sm_active=0.83 if index < 3 else 0.0,
        events=0x40 if index == 1 else 0x4 if index < 3 else 0x1,
        ecc_uncorrected=2 if index == 2 else 0,
        remapped_uncorrectable=1 if index == 2 else 0,
        remapped_pending=index == 2,
        xid=31 if index == 0 else 0,
    )


def nodes_screen(app: SlurmtopApp) -> NodesScreen:
    screen = app.screen
    assert isinstance(screen, NodesScreen)
    return screen
