"""Time of the demo."""

import asyncio
from datetime import timedelta

import pytest

from slurmtop.demo import make_demo
from slurmtop.demo.clock import DemoClock
from tests.fakes import START, FakeClock, settle


async def test_now_runs_faster_than_the_real_clock() -> None:
    real = FakeClock()
    clock = DemoClock(real, 60.0)
    assert clock.now() == START
    await real.advance(2.5)
    assert clock.now() == START + timedelta(seconds=150)
    assert clock.elapsed_s() == 150
    assert clock.real_elapsed_s() == 2.5


async def test_monotonic_stays_real() -> None:
    real = FakeClock()
    clock = DemoClock(real, 60.0)
    before = clock.monotonic()
    await real.advance(7)
    assert clock.monotonic() - before == 7
    assert clock.speed == 60.0


async def test_a_sleep_lasts_its_real_seconds() -> None:
    real = FakeClock()
    clock = DemoClock(real, 60.0)
    waiting = asyncio.create_task(clock.sleep(20))
    await settle()
    await real.advance(19.5)
    assert not waiting.done()
    await real.advance(0.5)
    assert waiting.done()


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan")])
def test_a_speed_must_be_positive(speed: float) -> None:
    with pytest.raises(ValueError, match="speed"):
        make_demo("busy", FakeClock(), speed)


def test_an_unknown_scenario_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        make_demo("nosuch", FakeClock())
