"""An open Job screen over fakes: facts that are handed out when the test says so."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot

from slurmtop.model.facts import JobFacts, LogFacts, LogStatus
from slurmtop.model.job import Job
from slurmtop.model.verdict import Verdict
from slurmtop.ui.screens.job import JobScreen
from tests.build import make_job
from tests.fakes import START, FakeClock
from tests.ui.golden import screen_text
from tests.ui.harness import Bench

OUT = "/home/anna/run/train-4711.out"
ERR = "/home/anna/run/train-4711.err"
JOB = make_job(
    "4711",
    name="llm-pretrain",
    gpus=8,
    ran_s=10_927,
    waits_s=14_400,
    nodes="gpu[01-02]",
    node_count=2,
    stdout=OUT,
    stderr=ERR,
)


class Facts:
    """Stands for the gathering of facts; ``calls`` keeps what it was asked.

    While ``gate`` is closed a call waits, as it does on a slow controller.
    """

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.calls: list[dict[str, Any]] = []
        self.cancelled = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.given: dict[str, Any] = {}
        self.error: Exception | None = None

    async def __call__(
        self,
        asked: str,
        *,
        job: Job | None = None,
        siblings: tuple[Job, ...] = (),
        ask_start: bool = False,
    ) -> JobFacts:
        self.calls.append({"asked": asked, "job": job, "ask_start": ask_start})
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        given: dict[str, Any] = {
            "logs": (
                LogFacts(label="stdout", path=OUT, status=LogStatus.READ),
                LogFacts(label="stderr", path=ERR, status=LogStatus.READ),
            ),
            "expected_start": START + timedelta(minutes=25) if ask_start else None,
        }
        return JobFacts(
            asked=asked, cluster="", now=self.clock.now(), job=job, **{**given, **self.given}
        )


class JobBench(Bench):
    """A bench whose app has one job open."""

    def __init__(self, **services: Any) -> None:
        super().__init__(**services)
        self.facts = Facts(self.clock)
        object.__setattr__(self.services, "gather_facts", self.facts)
        self.runner.files[OUT] = b"".join(b"step %05d loss 2.41\n" % n for n in range(500))
        self.runner.files[ERR] = b"warning: nothing\n"

    async def open(self, pilot: Pilot[None], job: Job = JOB, *more: Job) -> JobScreen:
        await self.answer(pilot, (job, *more))
        pilot.app.open_job(job.key)  # type: ignore[attr-defined]
        await pilot.pause()
        await self.settled(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, JobScreen)
        return screen

    async def settled(self, pilot: Pilot[None]) -> None:
        """Everything that can go on without more time or answers has gone on."""
        for _ in range(3):
            await self.clock.advance(0)
            await pilot.pause()

    async def press(self, pilot: Pilot[None], *keys: str) -> str:
        await pilot.press(*keys)
        await self.settled(pilot)
        return screen_text(pilot.app)


def judge_as(monkeypatch: pytest.MonkeyPatch, verdict: Verdict) -> None:
    """Let the screen show a fixed verdict: how one is found is tested elsewhere."""
    judge: Callable[[JobFacts], Verdict] = lambda facts: verdict  # noqa: E731
    monkeypatch.setattr("slurmtop.ui.screens.job_judging.explain_job", judge)


def part_text(app: App[Any], selector: str) -> str:
    """What stands in one part of the screen, e.g. a dialog without what is behind it."""
    region = app.screen.query_one(selector).region
    lines = screen_text(app).splitlines()[region.y : region.bottom]
    return "".join(line[region.x : region.right].rstrip() + "\n" for line in lines)
