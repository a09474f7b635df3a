"""An app over fakes: a queue that answers when the test says so, and a clock that waits."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from textual import events
from textual.pilot import Pilot

from slurmtop.config import Config
from slurmtop.control.outcome import Seen, StepsSeen
from slurmtop.control.prepare import ScriptSeen
from slurmtop.model.facts import JobFacts
from slurmtop.model.job import Job, Step
from slurmtop.model.process import NodeProcesses
from slurmtop.model.rights import Rights
from slurmtop.model.script import Reaction, Recipient, ScriptReading
from slurmtop.model.snapshot import Failure, Parsed, Snapshot, SourceHealth, Trouble
from slurmtop.ui.app import SlurmtopApp
from slurmtop.ui.services import OnHealth, OnQueue, Services
from tests.fakes import FakeClock, FakeRunner, settle


class FakePoller:
    """What the app started: whose jobs were asked for, and how often it was poked."""

    def __init__(self, user: str | None, on_value: OnQueue, on_health: OnHealth) -> None:
        self.user = user
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


class FakeQueue:
    """The queue's source. ``answer`` and ``fail`` act on the poller that runs now."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.pollers: list[FakePoller] = []
        self.health = SourceHealth("queue", interval_s=20.0)

    def open(self, *, user: str | None, on_value: OnQueue, on_health: OnHealth) -> FakePoller:
        self.pollers.append(FakePoller(user, on_value, on_health))
        return self.pollers[-1]

    @property
    def poller(self) -> FakePoller:
        return self.pollers[-1]

    def asking(self) -> None:
        self.health = replace(self.health, asking_since=self.clock.now())
        self.poller.on_health(self.health)

    def answer(self, jobs: Sequence[Job], *, took_s: float = 0.3) -> None:
        now = self.clock.now()
        self.health = SourceHealth(
            "queue",
            good_at=now,
            took_s=took_s,
            interval_s=20.0,
            next_at=now + timedelta(seconds=20),
        )
        self.poller.on_value(Snapshot(Parsed(tuple(jobs)), now, took_s))
        self.poller.on_health(self.health)

    def fail(
        self, sentence: str, *, trouble: Trouble = Trouble.DOWN, again_s: float = 40.0
    ) -> None:
        now = self.clock.now()
        self.health = replace(
            self.health,
            asking_since=None,
            failure=Failure(trouble, sentence),
            failing_since=self.health.failing_since or now,
            failures=self.health.failures + 1,
            next_at=now + timedelta(seconds=again_s),
        )
        self.poller.on_health(self.health)


async def no_facts(
    asked: str, *, job: Job | None = None, siblings: tuple[Job, ...] = (), ask_start: bool = False
) -> JobFacts:
    raise AssertionError("this test opens no job")


class NoExecutor:
    async def execute(self, action: Any) -> Any:
        raise AssertionError("this test acts on nothing")


class FakeWorld:
    """Says of the jobs what the test put here. While ``gate`` is closed every question waits."""

    def __init__(self) -> None:
        self.queue: tuple[Job, ...] = ()
        self.failure: Failure | None = None
        self.seen_steps = StepsSeen()
        self.seen_script = ScriptSeen(None, "the controller no longer knows this job")
        self.loops: str | None = None
        self.known_rights = Rights()
        self.given: tuple[Reaction, ...] = ()
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked: list[str] = []
        self.looks: tuple[NodeProcesses, ...] = ()
        self.words = ""

    async def _ask(self, what: str) -> None:
        self.asked.append(what)
        await self.gate.wait()

    async def jobs(self, numbers: Sequence[str], cluster: str, **how: Any) -> Seen:
        await self._ask("jobs")
        return Seen(tuple(job for job in self.queue if job.id.base in numbers), self.failure)

    async def steps(self, numbers: Sequence[str], cluster: str) -> StepsSeen:
        await self._ask("steps")
        return self.seen_steps

    async def script(self, job: Job) -> ScriptSeen:
        await self._ask("script")
        return self.seen_script

    async def looping(self, job: Job) -> str | None:
        await self._ask("looping")
        return self.loops

    async def processes(self, job: str, hosts: Sequence[str]) -> tuple[NodeProcesses, ...]:
        await self._ask("processes")
        return tuple(look for look in self.looks if look.host in hosts)

    def doing(self) -> str:
        return self.words

    async def rights(self) -> Rights:
        await self._ask("rights")
        return self.known_rights

    def reactions(
        self, reading: ScriptReading, signal: str, recipient: Recipient, step: Step | None
    ) -> tuple[Reaction, ...]:
        return tuple(replace(one, why=f"{one.why} ({signal} to {recipient})") for one in self.given)


class Bench:
    """Clock, queue and services of one test; ``app()`` builds the app over them."""

    def __init__(self, **services: Any) -> None:
        self.clock = FakeClock()
        self.queue = FakeQueue(self.clock)
        self.runner = FakeRunner(self.clock)
        self.world = FakeWorld()
        given: dict[str, Any] = {
            "runner": self.runner,
            "clock": self.clock,
            "config": Config(),
            "uid": 20017,
            "user": "anna",
            "open_queue": self.queue.open,
            "gather_facts": no_facts,
            "executor": NoExecutor(),
            "world": self.world,
            "cluster_label": "hpc1",
        }
        self.services = Services(**{**given, **services})

    def app(self) -> SlurmtopApp:
        return SlurmtopApp(self.services)

    async def answer(self, pilot: Pilot[None], jobs: Sequence[Job], **how: Any) -> None:
        """The queue answers, and the screen has been told. The world says the same."""
        self.world.queue = tuple(jobs)
        self.queue.answer(jobs, **how)
        await settle()
        await pilot.pause()

    async def fail(self, pilot: Pilot[None], sentence: str, **how: Any) -> None:
        self.queue.fail(sentence, **how)
        await settle()
        await pilot.pause()

    async def advance(self, pilot: Pilot[None], seconds: float) -> None:
        """Time goes by, second by second, and what ticks has been painted."""
        await self.clock.advance(seconds)
        await pilot.pause()


def burst(app: SlurmtopApp, keys: str) -> None:
    """Keys that arrive faster than the app takes them in, e.g. over a slow link."""
    names = {
        "/": "slash",
        ":": "colon",
        ">": "greater_than_sign",
        "=": "equals_sign",
        "\r": "enter",
    }
    for char in keys:
        app.post_message(events.Key(names.get(char, char), char if char.isprintable() else None))
