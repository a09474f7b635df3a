"""Which bytes of a log the newest run wrote."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.logs.newest_run import newest_run

END = (
    b"slurmstepd-n1: error: *** JOB 30 ON n1 CANCELLED AT 2031-05-05T10:00:00"
    b" DUE TO JOB REQUEUE ***\nsrun: error: n1: task 0: Terminated\n"
)
LIMIT = (
    b"slurmstepd-n1: error: *** JOB 30 ON n1 CANCELLED AT 2031-05-05T13:30:04"
    b" DUE TO TIME LIMIT ***\n"
)
IDS = ("30",)


def test_what_stands_behind_slurms_word_is_the_newest_run() -> None:
    first = b"step 1/9\nValueError: old\n" + END
    parts, sure = newest_run([(0, first + b"step 2/9\n")], IDS, None)
    assert parts == ((len(first), b"step 2/9\n"),)
    assert sure


def test_a_run_that_has_written_nothing_yet_has_no_bytes() -> None:
    assert newest_run([(0, b"step 1/9\n" + END)], IDS, None) == ((), True)


def test_the_word_at_the_end_of_the_newest_run_is_its_own() -> None:
    """In whatever zone the node is: here two hours and a half ahead of UTC."""
    text = END + b"step 2/9\n" + LIMIT
    parts, sure = newest_run([(0, text)], IDS, datetime(2031, 5, 5, 11, 0, 2, tzinfo=UTC))
    assert parts == ((len(END), b"step 2/9\n" + LIMIT),)
    assert sure


def test_without_slurms_word_all_is_given_and_nothing_is_sure() -> None:
    assert newest_run([(0, b"step 1/9\n")], IDS, None) == (((0, b"step 1/9\n"),), False)


def test_a_word_in_the_tail_drops_the_head() -> None:
    tail = b"lf of a line\n" + END
    parts, sure = newest_run([(0, b"old\n"), (900, tail + b"new\n")], IDS, None)
    assert parts == ((900 + len(tail), b"new\n"),)
    assert sure


def test_a_word_in_the_head_keeps_what_is_behind_it() -> None:
    parts, sure = newest_run([(0, b"old\n" + END + b"new\n"), (900, b"newer\n")], IDS, None)
    assert parts == ((4 + len(END), b"new\n"), (900, b"newer\n"))
    assert sure


def test_the_word_on_another_job_parts_nothing() -> None:
    text = b"old\n" + END + b"new\n"
    assert newest_run([(0, text)], ("31",), None) == (((0, text),), False)


@given(st.lists(st.sampled_from([END, LIMIT, b"step 1/9\n", b"\xff\n", b"no end"]), max_size=8))
def test_only_bytes_of_the_log_are_given(pieces: list[bytes]) -> None:
    text = b"".join(pieces)
    for end in (None, datetime(2031, 5, 5, 11, 0, 2, tzinfo=UTC)):
        parts, _ = newest_run([(0, text)], IDS, end)
        for offset, data in parts:
            assert text[offset : offset + len(data)] == data
            assert offset + len(data) == len(text)
