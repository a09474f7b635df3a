"""The runs of one job in a log that each of them appended to."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.logs.attempts import match_ends, split_attempts
from slurmtop.parse.logs.lines import split_lines

#: Two runs that were requeued from outside, and one that goes on: as Slurm 22.05.8 wrote it.
REQUEUED_TWICE = b"""start
srun: Job step aborted: Waiting up to 7 seconds for job step to finish.
slurmstepd-gpu01: error: *** STEP 31.0 ON gpu01 CANCELLED AT 2026-11-30T16:06:11 DUE TO JOB REQUEUE ***
slurmstepd-gpu01: error: *** JOB 31 ON gpu01 CANCELLED AT 2026-11-30T16:06:11 DUE TO JOB REQUEUE ***
srun: got SIGCONT
srun: forcing job termination
srun: error: gpu01: task 0: Terminated
start
slurmstepd-gpu01: error: *** STEP 31.0 ON gpu01 CANCELLED AT 2026-11-30T16:06:33 DUE TO JOB REQUEUE ***
slurmstepd-gpu01: error: *** JOB 31 ON gpu01 CANCELLED AT 2026-11-30T16:06:33 DUE TO JOB REQUEUE ***
srun: got SIGCONT
start
"""  # noqa: E501
AT = datetime(2026, 11, 30, 16, 6, tzinfo=UTC)


def second(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def word(job: str, at: datetime, why: str = " DUE TO JOB REQUEUE") -> str:
    return f"slurmstepd: error: *** JOB {job} ON n1 CANCELLED AT {at:%Y-%m-%dT%H:%M:%S}{why} ***\n"


def log(*texts: str) -> bytes:
    return "".join(texts).encode()


def test_real_requeues_part_the_log_and_what_slurm_says_after_belongs_before() -> None:
    attempts = split_attempts(split_lines(REQUEUED_TWICE), ["31"], from_start=True)
    assert [attempt.lines[0].text for attempt in attempts] == ["start"] * 3
    assert [len(attempt.lines) for attempt in attempts] == [7, 4, 1]
    assert [attempt.ended_at for attempt in attempts] == [
        second(11).replace(tzinfo=None),
        second(33).replace(tzinfo=None),
        None,
    ]
    assert attempts[0].why == "JOB REQUEUE"
    assert all(attempt.whole for attempt in attempts)


def test_another_job_of_the_same_log_and_a_step_part_nothing() -> None:
    data = log("a\n", word("99", AT), "b\n", word("31", AT).replace("JOB 31", "STEP 31.0"), "c\n")
    (only,) = split_attempts(split_lines(data), ["31"], from_start=False)
    assert len(only.lines) == 5
    assert only.ended_at is None
    assert not only.whole


def test_every_cause_and_the_newer_spelling_count() -> None:
    causes = ["", " DUE TO PREEMPTION", " DUE to SIGNAL Terminated", " DUE TO TIME LIMIT"]
    text = log(*(f"run\n{word('31', second(60 * n), why)}" for n, why in enumerate(causes)))
    attempts = split_attempts(split_lines(text), ["31"], from_start=True)
    assert [attempt.why for attempt in attempts] == [
        "",
        "PREEMPTION",
        "SIGNAL Terminated",
        "TIME LIMIT",
    ]


def test_a_word_said_twice_is_one_end() -> None:
    data = log("a\n", word("31", AT), word("31", AT), "b\n")
    assert len(split_attempts(split_lines(data), ["31"], from_start=True)) == 2


def test_two_words_in_a_row_are_two_runs() -> None:
    data = log("a\n", word("31", AT), word("31", second(60)))
    assert len(split_attempts(split_lines(data), ["31"], from_start=True)) == 2


def matched(data: bytes, *ends: float | None, whole: bool = True) -> tuple[int | None, ...]:
    runs = [(second(-60 if e is None else e - 30), None if e is None else second(e)) for e in ends]
    return match_ends(split_attempts(split_lines(data), ["31"], from_start=whole), runs)


def test_each_word_finds_its_run_by_time() -> None:
    assert matched(REQUEUED_TWICE, 11, 33, None) == (0, 1, 2)
    assert matched(REQUEUED_TWICE, 11, 33) == (0, 1, None), "no run is left for the last lines"


def test_the_zone_of_the_nodes_does_not_matter() -> None:
    east = REQUEUED_TWICE.replace(b"T16:", b"T21:")
    assert matched(east, 11, 33, None) == (0, 1, 2)
    nepal = REQUEUED_TWICE.replace(b"T16:06", b"T21:51")
    assert matched(nepal, 11, 33, None) == (0, 1, 2)


def test_a_run_that_ended_by_itself_in_between_leaves_its_neighbour_unsure() -> None:
    assert matched(REQUEUED_TWICE, 11, 22, 33, None) == (0, None, 3)
    assert matched(REQUEUED_TWICE, -20, 11, 33, None) == (None, 2, 3)
    assert matched(REQUEUED_TWICE, 11, 33, 50, None) == (0, 1, None)


def test_a_beginning_that_was_not_read_is_no_runs() -> None:
    assert matched(REQUEUED_TWICE, 11, 33, None, whole=False) == (None, 1, 2)


def test_words_that_fit_no_run_or_two_match_nothing() -> None:
    assert matched(REQUEUED_TWICE, 11, 80, None) == (None, None, None)
    assert matched(REQUEUED_TWICE, 10, 13, 33, None) == (None, None, None)
    assert matched(REQUEUED_TWICE) == (None, None, None)
    quarters = log("a\n", word("31", AT), "b\n")
    assert matched(quarters, 0, 900) == (None, None), "which of two, the zone would have to say"


def test_a_log_without_any_word_matches_nothing() -> None:
    assert matched(b"start\nRuntimeError: boom\nstart\n", 11, 33) == (None,)


pieces = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from([b"\n", b"srun: x\n", b"slurmstepd: error: *** JOB 31 ON"]),
        st.integers(0, 500).map(lambda s: word("31", second(s)).encode()),
        st.just(word("31", AT).replace("2026-11", "2026-99").encode()),
    ),
    max_size=12,
).map(b"".join)


@given(data=pieces, from_start=st.booleans())
def test_any_bytes_keep_every_line_in_its_order(data: bytes, from_start: bool) -> None:
    lines = split_lines(data)
    attempts = split_attempts(lines, ["31"], from_start=from_start)
    assert tuple(line for attempt in attempts for line in attempt.lines) == lines
    assert all(attempt.lines for attempt in attempts)
    assert all(attempt.ended_at is not None for attempt in attempts[:-1])


@given(data=pieces, ends=st.lists(st.integers(0, 2_000) | st.none(), max_size=5))
def test_no_run_is_matched_twice(data: bytes, ends: list[float | None]) -> None:
    attempts = split_attempts(split_lines(data), ["31"], from_start=True)
    places = matched(data, *ends)
    assert len(places) == len(attempts)
    known = [place for place in places if place is not None]
    assert known == sorted(set(known))
    assert all(0 <= place < len(ends) for place in known)
