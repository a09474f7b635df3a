"""The queue polled on the fake clock, alone and under the whole app."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.poller import Poller
from slurmtop.collect.squeue import QueueAnswer, QueueSource
from slurmtop.model.snapshot import Snapshot, SourceHealth
from slurmtop.ui.services import OnHealth, OnQueue
from tests.cases.product import CaseRunner
from tests.fakes import FakeClock, settle
from tests.ui.harness import Bench


class Polling:
    """The queue asked again and again; ``calls`` are seconds on the fake clock."""

    def __init__(self, runner: CaseRunner) -> None:
        self.runner = runner
        self.values: list[Snapshot[QueueAnswer]] = []
        self.healths: list[SourceHealth] = []
        self.poller = Poller(
            QueueSource(runner, runner.clock, user="anna"),
            runner.clock,
            self.values.append,
            self.healths.append,
            jitter=lambda: 0.0,
        )

    async def during(self, seconds: float) -> list[float]:
        """When calls started, in ``seconds`` of polling."""
        began = self.runner.clock.monotonic()
        task = spawn(self.poller.run(), name="polling under test")
        await settle()
        await self.runner.clock.advance(seconds)
        await cancel_and_wait(task)
        return [moment - began for moment in self.runner.started_at]


class Live:
    """The whole app over a queue that is polled on the fake clock."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.runner = CaseRunner(self.clock)
        self.bench = Bench(open_queue=self._open, clock=self.clock, runner=self.runner)

    def _open(
        self, *, user: str | None, on_value: OnQueue, on_health: OnHealth
    ) -> Poller[QueueAnswer]:
        source = QueueSource(self.runner, self.clock, user=user)
        return Poller(source, self.clock, on_value, on_health, jitter=lambda: 0.0)  # type: ignore[arg-type]

    @asynccontextmanager
    async def screen(self) -> AsyncIterator[Pilot[None]]:
        app = self.bench.app()
        async with app.run_test(size=(100, 24)) as pilot:
            await self.wait(pilot, 3)
            yield pilot

    async def wait(self, pilot: Pilot[None], seconds: float) -> None:
        await self.clock.advance(seconds)
        await pilot.pause()
