"""Times of all common forms become seconds; nothing that is no date becomes one."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.trace import Clock
from slurmtop.parse.logs.stamps import NO_YEAR, glog_stamp, late_stamp, stamp_at, year_in


def seconds(*parts: int, fraction: float = 0.0) -> float:
    year, month, day, hour, minute, second = parts
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp() + fraction


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[2026-05-05 06:16:47] node", seconds(2026, 5, 5, 6, 16, 47)),
        ("2019-06-02T16:13:44.884Z: [1", seconds(2019, 6, 2, 16, 13, 44, fraction=0.884)),
        ("2025-08-12 09:37:02.25487 w", seconds(2025, 8, 12, 9, 37, 2, fraction=0.25487)),
        ("2022-03-23 23:57:28,855 DEBUG", seconds(2022, 3, 23, 23, 57, 28, fraction=0.855)),
        ("[2026-04-20 19:14:34,416][x", seconds(2026, 4, 20, 19, 14, 34, fraction=0.416)),
        ("2019-11-28 16:59:29.5: I tens", seconds(2019, 11, 28, 16, 59, 29, fraction=0.5)),
        ("2025-03-11_18:33:20 x", seconds(2025, 3, 11, 18, 33, 20)),
        ("10/26 11:25:41 - mm", seconds(2023, 10, 26, 11, 25, 41)),
        ("07-21 19:05:29 [core", seconds(2023, 7, 21, 19, 5, 29)),
        ("01/15/2024 12:31:45 - I", seconds(2024, 1, 15, 12, 31, 45)),
        ("Fri Aug 11 12:31:45 2023[1,0]", seconds(2023, 8, 11, 12, 31, 45)),
        ("[Fri Aug 11 12:31:45 2023] x", seconds(2023, 8, 11, 12, 31, 45)),
        ("Fri Aug  1 12:31:45 CEST 2025 x", seconds(2025, 8, 1, 12, 31, 45)),
        ("Aug  1 12:31:45 n1 kernel:", seconds(2023, 8, 1, 12, 31, 45)),
        ("2026-03-01T12:00:00.5+0230 n", seconds(2026, 3, 1, 9, 30, 0, fraction=0.5)),
        ("[1690000000.123456] [h:1]", 1690000000.123456),
    ],
)
def test_a_time_is_read(text: str, told: float) -> None:
    found = stamp_at(text, 0, 2023)
    assert found is not None
    assert found[0] is not None
    assert found[0].seconds == pytest.approx(told, abs=1e-5)
    assert found[0].clock is Clock.WALL


def test_only_a_zone_makes_it_utc() -> None:
    zoned = [stamp_at(f"2026-03-01T12:00:00{zone} x") for zone in ("Z", " UTC", "+00:00", "")]
    assert [one is not None and one[0] is not None and one[0].zoned for one in zoned] == [
        True,
        True,
        True,
        False,
    ]


def test_seconds_since_boot_have_a_clock_of_their_own() -> None:
    for text in ("[74785.660366] pcieport", "<4>[74785.660366] [T12] x", "[74785.660366] [ C3] x"):
        found = stamp_at(text)
        assert found is not None
        assert found[0] is not None
        assert (found[0].clock, found[0].seconds) == (Clock.BOOT, 74785.660366)


def test_three_digits_are_a_month_and_a_day() -> None:
    april, october = glog_stamp("420 19:44:35.5", 2026), glog_stamp("1003 18:37:01.832146912", 2026)
    assert april is not None
    assert april.seconds == seconds(2026, 4, 20, 19, 44, 35, fraction=0.5)
    assert october is not None
    assert october.seconds == pytest.approx(seconds(2026, 10, 3, 18, 37, 1) + 0.832146912)


def test_without_any_year_stamps_compare_among_each_other_only() -> None:
    found = stamp_at("10/26 11:25:41 x")
    assert found is not None
    assert found[0] is not None
    assert found[0].seconds == seconds(NO_YEAR, 10, 26, 11, 25, 41)


def test_a_clock_alone_is_peeled_and_tells_no_moment() -> None:
    assert stamp_at("12:31:45.123 foo") == (None, 12)
    assert stamp_at("[12:31:45] foo") == (None, 10)


@pytest.mark.parametrize(
    "text",
    [
        "2026-13-45 06:16:47 x",
        "2026-02-30 06:16:47 x",
        "[2026-05-05 99:16:47] x",
    ],
)
def test_a_date_that_does_not_exist_is_no_moment(text: str) -> None:
    found = stamp_at(text)
    assert found is None or found[0] is None


@pytest.mark.parametrize("text", ["1.2.3", "[00:29<1:22:01]", "10/1752 [", "[451/1919]", "x 2026"])
def test_other_numbers_are_no_times(text: str) -> None:
    assert stamp_at(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "submitit WARNING (2024-01-01 10:00:00,5) - Caught",
        "[RANK 1] 2024-01-01 10:00:00,5 [ERROR] x",
        "INFO 01-01 10:00:00.5 [core.py:80] x",
        "[INFO|trainer.py:12] 2024-01-01 10:00:00,5 >> x",
        "INFO:root:2024-01-01 10:00:00.5 x",
        "[NeMo W 2024-01-01 10:00:00.5 x]",
    ],
)
def test_a_time_behind_a_level_or_a_logger_is_found(text: str) -> None:
    found = late_stamp(text, 0, 2024)
    assert found is not None
    assert found.seconds == seconds(2024, 1, 1, 10, 0, 0, fraction=0.5)


def test_a_date_inside_a_sentence_is_not_when_it_was_written() -> None:
    assert late_stamp("ckpt of 2024-01-01 10:00:00 loaded") is None


def test_the_year_of_a_file_is_that_of_its_first_full_date() -> None:
    assert year_in("foo 2024-01-01 10:00 2025-01-01 10:00") == 2024
    assert year_in("1752/2024-1 10/26 11:25:41") is None


@given(
    st.text(alphabet=st.characters() | st.sampled_from("0123456789:-/.,[]()TZ JanFri"), max_size=60)
)
def test_any_text_is_read_without_an_exception(text: str) -> None:
    for at in range(min(len(text), 5) + 1):
        stamp_at(text, at)
    late_stamp(text)
    glog_stamp(text)
