"""A cancel against the simulated cluster: planned, done, read back, as on a real one."""

import asyncio

import pytest

from slurmtop.cli.demo import NoLog, open_demo
from slurmtop.cli.wiring import Wiring
from slurmtop.control.actions import Action, Asker
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.execute import Executor, Outcome, Result
from slurmtop.control.read_back import QueueReadBack
from slurmtop.model.job import Job
from slurmtop.model.ports import Clock, Command, Completed, Runner
from tests.fakes import FakeClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    made = FakeClock()
    monkeypatch.setattr("slurmtop.cli.demo.SystemClock", lambda: made)
    return made


async def queue(wiring: Wiring, *, all_users: bool = False) -> dict[str, Job]:
    answer = await wiring.queue_source(all_users=all_users).fetch()
    return {job.key.id: job for job in answer.rows}


def plan(wiring: Wiring, *jobs: Job) -> Action:
    made = plan_cancel(jobs, Asker(me=wiring.who.name, now=wiring.clock.now()))
    assert isinstance(made, Action), made
    return made


async def do(wiring: Wiring, clock: FakeClock, action: Action) -> Outcome:
    executor = Executor(
        wiring.runner,
        wiring.clock,
        NoLog(),
        read_only=False,
        read_back=QueueReadBack(wiring.runner),
    )
    task = asyncio.ensure_future(executor.execute(action))
    for _ in range(400):
        if task.done():
            break
        await clock.advance(0.5)
    return await task


async def test_a_waiting_job(clock: FakeClock) -> None:
    wiring = open_demo("busy", 1.0)
    jobs = await queue(wiring)
    outcome = await do(wiring, clock, plan(wiring, jobs["4910"]))
    assert outcome.jobs[0].result is Result.DONE
    assert (await queue(wiring))["4910"].state.base == "CANCELLED"


async def test_a_running_job_ends_only_after_its_nodes_are_clean(clock: FakeClock) -> None:
    wiring = open_demo("busy", 1.0)
    jobs = await queue(wiring)
    outcome = await do(wiring, clock, plan(wiring, jobs["4811"]))
    assert outcome.jobs[0].result is Result.DONE
    assert outcome.took_s > 2


async def test_a_hung_job_needs_the_kill(clock: FakeClock) -> None:
    wiring = open_demo("busy", 1.0)
    jobs = await queue(wiring)
    outcome = await do(wiring, clock, plan(wiring, jobs["4817"]))
    assert outcome.jobs[0].result is Result.DONE
    assert outcome.took_s > 30


async def test_somebody_elses_job(clock: FakeClock) -> None:
    wiring = open_demo("busy", 1.0)
    jobs = await queue(wiring, all_users=True)
    action = plan(wiring, jobs["4824"])
    assert action.expected_text == "4824"
    outcome = await do(wiring, clock, action)
    assert outcome.jobs[0].result is Result.DENIED
    assert (await queue(wiring, all_users=True))["4824"].state.base == "RUNNING"


async def test_the_rest_of_an_array_leaves_its_running_tasks(clock: FakeClock) -> None:
    wiring = open_demo("busy", 1.0)
    jobs = await queue(wiring)
    running = [
        id for id, job in jobs.items() if id.startswith("4830_") and job.state.base == "RUNNING"
    ]
    outcome = await do(wiring, clock, plan(wiring, jobs["4830_[*]"]))
    assert outcome.jobs[0].result in (Result.DONE, Result.SENT), outcome.sentence
    after = await queue(wiring)
    assert running
    assert all(after[id].state.base in ("RUNNING", "COMPLETED") for id in running)


async def test_both_parts_of_a_het_job(clock: FakeClock) -> None:
    wiring = open_demo("busy", 1.0)
    jobs = await queue(wiring)
    outcome = await do(wiring, clock, plan(wiring, jobs["4815+1"]))
    assert outcome.jobs[0].result is Result.DONE
    after = await queue(wiring)
    assert {after[id].state.base for id in ("4815+0", "4815+1")} == {"CANCELLED"}


class NoScancel:
    """A cluster whose scancel says nothing and does nothing."""

    def __init__(self, inner: Runner, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock

    async def run(self, command: Command) -> Completed:
        if command.argv[0] == "scancel":
            return Completed(0, b"", b"", self._clock.now(), 0.1)
        return await self._inner.run(command)


async def test_silence_with_exit_0_is_not_a_cancel(clock: FakeClock) -> None:
    wiring = open_demo("busy", 1.0)
    jobs = await queue(wiring)
    silent = NoScancel(wiring.runner, wiring.clock)
    executor = Executor(
        silent,  # type: ignore[arg-type]
        wiring.clock,
        NoLog(),
        read_only=False,
        read_back=QueueReadBack(silent),  # type: ignore[arg-type]
    )
    task = asyncio.ensure_future(executor.execute(plan(wiring, jobs["4811"])))
    for _ in range(400):
        if task.done():
            break
        await clock.advance(0.5)
    outcome = await task
    assert outcome.jobs[0].result is Result.SENT
    assert outcome.sentence == "job 4811: cancel sent, not final yet; it is still RUNNING"
