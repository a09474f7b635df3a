"""How long a host that failed is left alone."""

import pytest

from slurmtop.collect.nodes.backoff import BackOff
from slurmtop.model.ports import NodeUnreachable
from slurmtop.model.snapshot import Failure, Trouble
from tests.fakes import FakeClock


def closed(back_off: BackOff, host: str = "gpu01") -> bool:
    try:
        back_off.check(host)
    except NodeUnreachable:
        return True
    return False


async def wait_s(clock: FakeClock, back_off: BackOff) -> int:
    """Whole seconds until the host is tried again."""
    seconds = 0
    while closed(back_off):
        await clock.advance(1)
        seconds += 1
    return seconds


async def test_each_failure_in_a_row_doubles_the_wait_up_to_a_bound() -> None:
    clock = FakeClock()
    back_off = BackOff(clock, jitter=lambda: 0.0)
    waits = []
    for _ in range(8):
        back_off.failed("gpu01", Failure(Trouble.DOWN, "down"))
        waits.append(await wait_s(clock, back_off))
    assert waits == [2, 4, 8, 16, 32, 64, 120, 120]
    assert back_off.forget("gpu01")
    assert not back_off.forget("gpu01")
    back_off.failed("gpu01", Failure(Trouble.DOWN, "down"))
    assert await wait_s(clock, back_off) == 2


@pytest.mark.parametrize(
    ("retry_after_s", "jitter", "wanted"),
    [(30.0, 0.0, 30), (30.0, 1.0, 45), (300.0, 0.0, 120), (float("inf"), 0.0, 120)],
)
async def test_a_failure_may_ask_for_more(retry_after_s: float, jitter: float, wanted: int) -> None:
    clock = FakeClock()
    back_off = BackOff(clock, jitter=lambda: jitter)
    failure = Failure(Trouble.DENIED, "no", "", retry_after_s)
    back_off.failed("gpu01", failure)
    assert not closed(back_off, "gpu02")
    with pytest.raises(NodeUnreachable) as caught:
        back_off.check("gpu01")
    assert caught.value.failure is failure
    assert await wait_s(clock, back_off) == wanted
