"""The poller on a clock that moves only when told to."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from slurmtop.collect.clock import cancel_and_wait, spawn
from slurmtop.collect.poller import Poller, SourceFailed
from slurmtop.model.ports import RunnerError
from slurmtop.model.snapshot import Failure, Parsed, Snapshot, SourceHealth, Trouble
from tests.fakes import START, FakeClock, settle

INTERVAL_S = 20.0


@dataclass
class ScriptedSource:
    """Answers what the test put into ``then``; each call takes ``takes_s`` of the clock."""

    clock: FakeClock
    then: Callable[[], object] = lambda: "value"
    takes_s: float = 0.0
    name: str = "queue"
    interval_s: float = INTERVAL_S
    calls: list[float] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    async def fetch(self) -> object:
        self.calls.append(self.clock.monotonic() - 1_000.0)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await self.clock.sleep(self.takes_s)
            return self.then()
        finally:
            self.in_flight -= 1


@dataclass
class Bench:
    clock: FakeClock = field(default_factory=FakeClock)
    values: list[Snapshot[object]] = field(default_factory=list)
    healths: list[SourceHealth] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source = ScriptedSource(self.clock)

    def poller(self, *, floor_s: float = 0.0, jitter: float = 0.0) -> Poller[object]:
        return Poller(
            self.source,
            self.clock,
            self.values.append,
            self.healths.append,
            min_interval_s=floor_s,
            jitter=lambda: jitter,
        )

    async def running(self, poller: Poller[object]) -> asyncio.Task[None]:
        task = spawn(poller.run(), name="poller under test")
        self.tasks.append(task)
        await settle()
        return task

    def fails(self, trouble: Trouble = Trouble.DOWN, retry_after_s: float | None = None) -> None:
        def refuse() -> object:
            raise SourceFailed(Failure(trouble, "no answer", retry_after_s=retry_after_s))

        self.source.then = refuse

    def answers(self) -> None:
        self.source.then = lambda: "value"


@pytest.fixture
async def bench() -> object:
    made = Bench()
    yield made
    await cancel_and_wait(*made.tasks)


async def test_C11_calls_keep_the_configured_pace(bench: Bench) -> None:
    bench.source.takes_s = 0.5
    await bench.running(bench.poller())
    await bench.clock.advance(100)
    assert bench.source.calls == [0, 20, 40, 60, 80, 100]
    assert bench.source.most_in_flight == 1


async def test_jitter_adds_up_to_a_tenth(bench: Bench) -> None:
    await bench.running(bench.poller(jitter=1.0))
    await bench.clock.advance(45)
    assert bench.source.calls == [0, 22, 44]


async def test_the_default_jitter_stays_within_a_tenth(bench: Bench) -> None:
    poller = Poller(bench.source, bench.clock, bench.values.append)
    await bench.running(poller)
    await bench.clock.advance(22.1)
    assert len(bench.source.calls) == 2
    assert 20 <= bench.source.calls[1] <= 22


async def test_health_tells_the_start_the_answer_and_the_next_call(bench: Bench) -> None:
    bench.source.takes_s = 1.0
    await bench.running(bench.poller())
    assert bench.healths[-1].asking_since == START
    assert bench.healths[-1].next_at is None
    await bench.clock.advance(1.0)
    good = bench.healths[-1]
    assert (good.good_at, good.took_s, good.asking_since) == (START, 1.0, None)
    assert good.next_at is not None
    assert (good.next_at - START).total_seconds() == INTERVAL_S
    assert good.interval_s == INTERVAL_S
    assert bench.values == [Snapshot("value", START, 1.0)]


async def test_041_failures_double_the_wait_up_to_five_minutes(bench: Bench) -> None:
    bench.fails()
    await bench.running(bench.poller())
    await bench.clock.advance(1200)
    waits = [b - a for a, b in zip(bench.source.calls, bench.source.calls[1:], strict=False)]
    assert waits == [40, 80, 160, 300, 300, 300]
    assert bench.values == []
    failed = bench.healths[-1]
    assert failed.failing_since == START
    assert failed.failures == 7
    assert failed.good_at is None


async def test_041_an_outage_keeps_the_last_good_time_and_one_call_in_flight(bench: Bench) -> None:
    await bench.running(bench.poller())
    bench.fails()
    bench.source.takes_s = 41.0
    await bench.clock.advance(20)
    asking = bench.healths[-1]
    assert asking.asking_since is not None
    assert asking.good_at == START
    await bench.clock.advance(40.9)
    assert len(bench.source.calls) == 2
    await bench.clock.advance(0.1)
    failed = bench.healths[-1]
    assert failed.failure is not None
    assert failed.good_at == START
    assert failed.interval_s == 40.0
    bench.answers()
    bench.source.takes_s = 0.0
    await bench.clock.advance(40)
    again = bench.healths[-1]
    assert (again.failure, again.failures, again.failing_since) == (None, 0, None)
    assert bench.source.most_in_flight == 1


async def test_C16_a_thousand_failures_do_not_overflow(bench: Bench) -> None:
    bench.fails()
    poller = bench.poller()
    for _ in range(1000):
        await poller.tick()
    assert poller.health.failures == 1000
    assert poller.health.interval_s == 300.0


async def test_an_interval_above_the_back_off_limit_is_kept_on_failure(bench: Bench) -> None:
    bench.source.interval_s = 900.0
    bench.fails()
    poller = bench.poller()
    await poller.tick()
    assert poller.health.interval_s == 900.0


async def test_044_never_earlier_than_the_source_asks_for(bench: Bench) -> None:
    bench.fails(Trouble.RATE_LIMITED, retry_after_s=90.0)
    poller = bench.poller()
    await bench.running(poller)
    await bench.clock.advance(50)
    poller.poke()
    await bench.clock.advance(39)
    assert bench.source.calls == [0]
    await bench.clock.advance(1)
    assert bench.source.calls == [0, 90]


async def test_a_key_asks_at_once_where_only_this_machine_was_the_trouble(bench: Bench) -> None:
    bench.fails(Trouble.AUTH, retry_after_s=60.0)
    poller = bench.poller()
    await bench.running(poller)
    await bench.clock.advance(10)
    assert bench.source.calls == [0]
    poller.poke()
    await settle()
    assert bench.source.calls == [0, 10]
    await bench.clock.advance(59)
    assert bench.source.calls == [0, 10]


async def test_038_never_again_ends_the_loop(bench: Bench) -> None:
    bench.fails(Trouble.NO_ACCOUNTING, retry_after_s=float("inf"))
    poller = bench.poller()
    task = await bench.running(poller)
    assert task.done()
    assert poller.stopped
    assert bench.healths[-1].next_at is None
    poller.poke()
    poller.set_interval(1.0)
    await poller.tick()
    await poller.run()
    assert bench.source.calls == [0]


async def test_044_a_slow_good_answer_lengthens_the_interval(bench: Bench) -> None:
    bench.source.takes_s = 6.3
    await bench.running(bench.poller())
    await bench.clock.advance(6.3)
    assert bench.healths[-1].interval_s == pytest.approx(31.5)
    bench.source.takes_s = 0.2
    await bench.clock.advance(31.4)
    assert len(bench.source.calls) == 1
    await bench.clock.advance(0.2)
    assert len(bench.source.calls) == 2
    await bench.clock.advance(1)
    assert bench.healths[-1].interval_s == INTERVAL_S


async def test_a_poke_asks_now_but_every_two_seconds_at_most(bench: Bench) -> None:
    poller = bench.poller()
    await bench.running(poller)
    await bench.clock.advance(5)
    poller.poke()
    await settle()
    assert bench.source.calls == [0, 5]
    for _ in range(10):
        poller.poke()
        await bench.clock.advance(0.1)
    assert bench.source.calls == [0, 5]
    await bench.clock.advance(1)
    assert bench.source.calls == [0, 5, 7]
    await bench.clock.advance(19.9)
    assert bench.source.calls == [0, 5, 7]
    await bench.clock.advance(0.1)
    assert bench.source.calls == [0, 5, 7, 27]


async def test_a_poke_never_overlaps_and_is_kept_for_afterwards(bench: Bench) -> None:
    bench.source.takes_s = 10.0
    poller = bench.poller()
    await bench.running(poller)
    for _ in range(5):
        poller.poke()
        await bench.clock.advance(1)
    assert bench.source.calls == [0]
    bench.source.takes_s = 0.1
    await bench.clock.advance(5)
    assert bench.source.calls == [0, 10]
    assert bench.source.most_in_flight == 1


async def test_two_ticks_at_once_are_one_call(bench: Bench) -> None:
    bench.source.takes_s = 5.0
    poller = bench.poller()
    await bench.running(poller)
    await poller.tick()
    assert bench.source.calls == [0]


async def test_an_idle_user_costs_a_sixth_and_a_key_restores(bench: Bench) -> None:
    poller = bench.poller()
    await bench.running(poller)
    poller.slow_down(6.0)
    await bench.clock.advance(119)
    assert bench.source.calls == [0]
    await bench.clock.advance(1)
    assert bench.source.calls == [0, 120]
    assert bench.healths[-1].interval_s == 120.0
    await bench.clock.advance(30)
    poller.slow_down(1.0)
    await settle()
    assert bench.source.calls == [0, 120, 150]


async def test_set_interval_takes_effect_at_once_and_none_restores(bench: Bench) -> None:
    poller = bench.poller()
    await bench.running(poller)
    poller.set_interval(60.0)
    assert bench.healths[-1].interval_s == 60.0
    await bench.clock.advance(59)
    assert bench.source.calls == [0]
    poller.set_interval(None)
    await settle()
    assert bench.source.calls == [0, 59]


async def test_the_site_floor_holds_for_every_interval(bench: Bench) -> None:
    poller = bench.poller(floor_s=60.0)
    assert poller.health.interval_s == 60.0
    poller.set_interval(5.0)
    await bench.running(poller)
    await bench.clock.advance(60)
    assert bench.source.calls == [0, 60]


async def test_C8_a_runner_that_cannot_start_is_a_failed_poll(bench: Bench) -> None:
    def refuse() -> object:
        raise RunnerError("squeue could not be started: this machine is out of memory.")

    bench.source.then = refuse
    poller = bench.poller()
    await poller.tick()
    assert poller.health.failure == Failure(
        Trouble.LOCAL, "squeue could not be started: this machine is out of memory."
    )


async def test_C14_a_missing_program_is_no_slurm(bench: Bench) -> None:
    def refuse() -> object:
        raise RunnerError("squeue was not found on this machine.") from FileNotFoundError(2, "x")

    bench.source.then = refuse
    poller = bench.poller()
    await poller.tick()
    assert poller.health.failure is not None
    assert poller.health.failure.trouble is Trouble.NO_SLURM


async def test_a_fault_of_ours_shows_and_does_not_end_the_polling(bench: Bench) -> None:
    def break_down() -> object:
        raise KeyError("oops")

    bench.source.then = break_down
    poller = bench.poller()
    await bench.running(poller)
    assert poller.health.failure is not None
    assert "KeyError" in poller.health.failure.sentence
    bench.answers()
    await bench.clock.advance(40)
    assert len(bench.values) == 1


async def test_cancelling_leaves_no_call_in_flight_and_run_can_begin_anew(bench: Bench) -> None:
    bench.source.takes_s = 5.0
    poller = bench.poller()
    task = await bench.running(poller)
    await bench.clock.advance(1)
    await cancel_and_wait(task)
    assert bench.source.in_flight == 0
    assert bench.healths[-1].asking_since is None
    await bench.running(poller)
    await bench.clock.advance(19)
    assert bench.source.calls == [0, 20]


async def test_bad_records_reach_the_health(bench: Bench) -> None:
    answer: Parsed[str] = Parsed((), bad=3)
    bench.source.then = lambda: answer
    poller = bench.poller()
    await poller.tick()
    assert poller.health.bad_records == 3
