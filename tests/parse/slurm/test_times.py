from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slurmtop.model.job import LimitKind, TimeLimit
from slurmtop.model.units import clock_text
from slurmtop.parse.slurm.times import parse_duration, parse_limit, parse_seconds, parse_time
from tests.parse.slurm.support import case, expected


def test_a_time_is_aware_utc() -> None:
    assert parse_time("2031-05-02T08:00:00") == datetime(2031, 5, 2, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "N/A",
        "NONE",
        "None",
        "Unknown",
        "",
        "2031-02-30T08:00:00",
        "2031-05-02T08:00+01",
        "2031-W18-5T08:00:00",
    ],
)
def test_words_and_wrong_dates_are_no_time(text: str) -> None:
    assert parse_time(text) is None


@pytest.mark.parametrize("command", [1, 2])
def test_case_013_other_time_formats_are_unknown_and_not_guessed(command: int) -> None:
    for line in case("013", command).decode().splitlines():
        assert [parse_time(text) for text in line.split("|")[1:]] == [None, None, None]


def test_case_013_a_bad_format_falls_back_to_good_data() -> None:
    assert parse_time(case("013", 3).decode().strip().split("|")[1]) == datetime(
        2031, 5, 5, 14, 24, 22, tzinfo=UTC
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0:00", 0.0),
        ("3:04", 184.0),
        ("21:48:51", 78_531.0),
        ("364-02:11:09", 31_457_469.0),
        ("00:03.042", 3.042),
        ("58:12.500", 3_492.5),
        ("11-02:46:01", 960_361.0),
        ("1-02:03:04", 93_784.0),
        ("2-12", 216_000.0),
        ("2-12:30", 217_800.0),
        ("30:00", 1_800.0),
        ("90", 5_400.0),
        ("1-00:00:00.500", 86_400.5),
    ],
)
def test_every_shape_of_a_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)
    assert parse_seconds(text) == int(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "INVALID",
        "UNLIMITED",
        "N/A",
        "-1:00",
        "1:2:3:4",
        "1-",
        "-",
        "1-2-3",
        "1.5",
        "1:x",
        "²:00",
    ],
)
def test_words_are_no_duration(text: str) -> None:
    assert parse_duration(text) is None


def test_case_001_limits_and_times_left() -> None:
    kinds = {
        "unlimited": LimitKind.UNLIMITED,
        "over a year": LimitKind.OVER_A_YEAR,
        "partition default": LimitKind.PARTITION_DEFAULT,
    }
    for line, row in zip(case("001").decode().splitlines(), expected("001")["rows"], strict=True):
        id, limit_text, left_text, used_text, _ = line.split("|")
        assert id == row["id"]
        assert parse_seconds(used_text) == row["used_s"]
        if isinstance(row["limit_s"], int):
            assert parse_limit(limit_text) == TimeLimit(LimitKind.SECONDS, row["limit_s"])
            assert parse_limit(left_text) == TimeLimit(LimitKind.SECONDS, row["left_s"])
        else:
            kind = kinds[row["limit_s"] or row["limit_text"]]
            assert parse_limit(limit_text) == parse_limit(left_text) == TimeLimit(kind)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("infinite", LimitKind.UNLIMITED),
        ("Partition_Limit", LimitKind.PARTITION_DEFAULT),
        ("n/a", LimitKind.UNKNOWN),
        ("", LimitKind.UNKNOWN),
    ],
)
def test_words_of_a_limit(text: str, kind: LimitKind) -> None:
    assert parse_limit(text) == TimeLimit(kind)


@given(st.text(alphabet="0123456789:-.T NOinfte²", max_size=25))
@example("9" * 5_000)
@example("1-" + "9" * 5_000)
@example("1:00." + "9" * 5_000)
@example("0001-01-01T00:00:00")
def test_any_text_is_taken(text: str) -> None:
    parse_time(text)
    seconds = parse_duration(text)
    assert seconds is None or seconds >= 0
    assert (parse_limit(text).seconds is None) is (parse_limit(text).kind is not LimitKind.SECONDS)


@given(st.integers(0, 400 * 86_400))
def test_a_duration_comes_back(seconds: int) -> None:
    assert parse_seconds(clock_text(seconds)) == seconds


@given(st.integers(0, 7_000_000_000))
def test_a_time_comes_back(seconds: int) -> None:
    moment = datetime.fromtimestamp(seconds, UTC)
    assert parse_time(moment.strftime("%Y-%m-%dT%H:%M:%S")) == moment
