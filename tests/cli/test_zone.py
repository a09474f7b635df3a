"""The viewer's zone across a change of the clocks."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from slurmtop.cli.zone import LocalZone


@pytest.fixture(params=["Pacific/Chatham", "Europe/Berlin", "America/St_Johns", "UTC"])
def zone_name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def test_it_is_the_named_zone(zone_name: str) -> None:
    from zoneinfo import ZoneInfo

    named, local = ZoneInfo(zone_name), LocalZone()
    moment = datetime(2031, 1, 1, tzinfo=UTC)
    while moment.year == 2031:
        mine, theirs = moment.astimezone(local), moment.astimezone(named)
        assert mine.replace(tzinfo=None) == theirs.replace(tzinfo=None)
        assert mine.utcoffset() == theirs.utcoffset()
        assert mine.astimezone(UTC) == moment
        assert mine.tzname() == theirs.tzname()
        moment += timedelta(minutes=30 * 13)


def test_the_hour_that_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    first = datetime(2031, 10, 26, 0, 30, tzinfo=UTC).astimezone(LocalZone())
    second = datetime(2031, 10, 26, 1, 30, tzinfo=UTC).astimezone(LocalZone())
    shown = (first.strftime("%H:%M"), second.strftime("%H:%M"))
    gap = second.astimezone(UTC) - first.astimezone(UTC)
    monkeypatch.undo()
    time.tzset()
    assert shown == ("02:30", "02:30")
    assert gap == timedelta(hours=1)


def test_no_moment_has_no_offset() -> None:
    assert LocalZone().utcoffset(None) is None
    assert LocalZone().tzname(None) is None
    assert LocalZone().dst(datetime(2031, 1, 1, tzinfo=UTC)) is None
