"""Two clocks: the cluster's and, in the demo, the slower one of the person who looks."""

from datetime import timedelta

from tests.fakes import START, FakeClock
from tests.ui.harness import Bench


def test_ages_of_data_tick_as_the_reader_does() -> None:
    reader = FakeClock()
    bench = Bench(data_clock=reader, speed=20.0)
    cluster_now = bench.services.clock.now()
    seen = bench.services.seen_at(cluster_now - timedelta(seconds=60))
    assert cluster_now - seen == timedelta(seconds=3)
    assert bench.services.data_now() == reader.now()


def test_one_clock_where_nothing_runs_faster() -> None:
    bench = Bench()
    at = START - timedelta(seconds=60)
    assert bench.services.seen_at(at) == at
    assert bench.services.data_now() == bench.clock.now()
