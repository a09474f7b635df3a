"""What all logs said, on one clock, one line an event."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.nccl import NcclVersion
from slurmtop.model.events.program import Closing, ProgramSays
from slurmtop.model.text import cell_width
from slurmtop.model.trace import Clock, Event, Stamp
from slurmtop.triage.join import join
from slurmtop.triage.timeline import timeline_lines
from tests.triage.traces import init, traces, where

TEN = datetime(2031, 5, 5, 10, tzinfo=UTC).timestamp()


def says(text: str, source: str, rank: int | None = None, seconds: float | None = None) -> Event:
    at = where(text, source=source, rank=rank, seconds=seconds)
    return ProgramSays(at=at, closing=Closing.FINISHED)


def lines(*events: Event, width: int = 80) -> tuple[str, ...]:
    return timeline_lines(join(traces(*events)), width=width)


def test_lines_of_several_files_stand_in_the_order_of_time() -> None:
    assert lines(
        says("late", "a.log", 0, TEN + 60.25),
        says("later", "a.log", 0, TEN + 86_400),
        says("early", "b.log", 1, TEN),
    ) == (
        "-- 2031-05-05",
        "10:00:00.000 rank 1: early",
        "10:01:00.250 rank 0: late",
        "-- 2031-05-06",
        "10:00:00.000 rank 0: later",
    )


def test_a_line_without_a_stamp_stands_at_the_last_one_of_its_file() -> None:
    assert lines(
        says("one", "a.log", 0, TEN),
        says("two", "a.log", 0),
        says("three", "b.log", 1, TEN + 1),
        says("four", "c.log"),
    ) == (
        "-- 2031-05-05",
        "10:00:00.000 rank 0: one",
        "10:00:00.000~rank 0: two",
        "10:00:01.000 rank 1: three",
        "-- no time told: in each file's order",
        "c.log: four",
    )


def test_seconds_since_a_boot_are_no_time_of_day() -> None:
    at = where("Xid 79", source="dmesg", stamp=Stamp(74_785.6, Clock.BOOT))
    assert lines(ProgramSays(at=at, closing=Closing.FINISHED))[0].startswith("-- no time told")


def test_what_many_ranks_say_alike_is_one_line_with_a_count() -> None:
    many = [says(f"rank {n} timed out after 600{n} ms", "a.log", n, TEN + n) for n in range(9)]
    other = says("something else", "a.log", 3, TEN + 20)
    assert lines(*many, other) == (
        "-- 2031-05-05",
        "10:00:00.000 rank 0: rank 0 timed out after 6000 ms (and 8 alike)",
        "10:00:20.000 rank 3: something else",
    )


def test_what_one_rank_repeats_is_told_each_time() -> None:
    assert len(lines(*(says(f"again {n}", "a.log", 0, TEN + n) for n in range(3)))) == 4


def test_how_it_was_set_up_is_left_out() -> None:
    version = NcclVersion(at=where("NCCL version 2.27.5", seconds=TEN), version="2.27.5")
    assert lines(version) == ("nothing that a rule could use was said",)


def test_a_clock_that_was_off_is_moved_and_told() -> None:
    """Set-up that ends on all ranks at once shows how far two clocks are apart."""
    shared = [
        init(rank, 2, source=f"{rank}.log", seconds=TEN + rank * 3_600, comm_id=comm_id)
        for comm_id in ("aa", "bb")
        for rank in (0, 1)
    ]
    text = "\n".join(lines(*shared, says("end", "1.log", 1, TEN + 3_605)))
    assert "10:00:05.000 rank 1: end" in text
    assert "1.log: -3600.0 s" in text


@given(
    st.lists(
        st.tuples(
            st.text(max_size=90),
            st.sampled_from(["a", "b"]),
            st.none() | st.floats(allow_nan=False) | st.integers(-(10**18), 10**18),
        ),
        max_size=9,
    ),
    st.integers(40, 120),
)
def test_any_text_and_any_time_is_shown_within_the_width(
    said: list[tuple[str, str, float | None]], width: int
) -> None:
    events = [says(text, source, None, seconds) for text, source, seconds in said]
    for line in lines(*events, width=width):
        assert cell_width(line) <= width
        assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in line)
