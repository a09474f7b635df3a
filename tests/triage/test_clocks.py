"""Offsets between the clocks of sources."""

from slurmtop.triage.clocks import clock_offsets
from slurmtop.triage.join import join
from tests.triage.traces import init, timed_out, traces

HOUR_S = 3600.0


def both(*pairs: tuple[float, float]) -> dict[str, float]:
    events = [
        init(rank, 2, comm_id=f"c{n}", source=source, seconds=seconds)
        for n, pair in enumerate(pairs)
        for rank, (source, seconds) in enumerate(zip(("a.log", "b.log"), pair, strict=True))
    ]
    return clock_offsets(traces(*events))


def test_one_clock_needs_no_offset() -> None:
    assert both((100.0, 100.4), (200.0, 200.1)) == {}


def test_two_shared_moments_that_agree_tell_an_offset() -> None:
    assert both((100.0, 40.0), (200.0, 140.5)) == {"b.log": 59.75}


def test_shared_moments_that_do_not_agree_tell_none() -> None:
    assert both((100.0, 40.0), (200.0, 190.0)) == {}


def test_one_shared_moment_tells_another_zone_and_nothing_finer() -> None:
    assert both((2 * HOUR_S, 1.0)) == {"b.log": 7199.0}
    assert both((100.0, 40.0)) == {}


def test_sources_with_nothing_in_common_are_left_as_they_are() -> None:
    events = [timed_out(0, source="a.log", seconds=5), timed_out(1, source="b.log", seconds=900)]
    assert clock_offsets(traces(*events)) == {}


def test_moments_of_a_source_are_shown_on_the_common_clock() -> None:
    events = [
        init(rank, 2, comm_id=f"c{n}", source=source, seconds=at + 60.0 * rank)
        for n, at in enumerate((100.0, 200.0))
        for rank, source in enumerate(("a.log", "b.log"))
    ]
    late = timed_out(1, source="b.log", seconds=360.0)
    picture = join(traces(*events, late))
    assert picture.moment(late.at) == 300.0
