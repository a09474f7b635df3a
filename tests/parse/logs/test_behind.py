"""What stands behind the newest step of a log, and when that is more than usual."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.logs.behind import left_behind
from slurmtop.parse.logs.lines import split_lines
from slurmtop.parse.logs.progress import find_progress

STEPS = "".join(f"step {n}/1000 loss 0.7\n" for n in range(1, 11))
BEAT = "heartbeat: alive\n"
EVERY_50 = "".join(f"step {n}/1000\n" + "loss is fine\n" * 49 for n in range(0, 500, 50))


def told(text: str, head: str = "") -> int | None:
    lines = split_lines(text.encode())
    return left_behind(find_progress(lines), lines, split_lines(head.encode()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (STEPS, None),
        (STEPS + BEAT * 3, None),
        (STEPS + BEAT * 4, 4),
        (STEPS + "\n" * 40, None),
        (EVERY_50, None),
        (EVERY_50 + BEAT * 60, None),
        (EVERY_50 + BEAT * 120, 169),
        ("step 1/1000\n" + BEAT * 10, None),
        ("step 1/1000\n" + BEAT * 11, 11),
        (BEAT * 500, None),
        ("", None),
    ],
)
def test_lines_behind_the_newest_step(text: str, expected: int | None) -> None:
    assert told(text) == expected


def test_ranks_that_all_print_a_step_are_one_step() -> None:
    text = "".join(f"[rank{r}] step {n}/1000\n" for n in range(1, 11) for r in range(8))
    assert told(text + BEAT * 24) is None
    assert told(text + BEAT * 25) == 25


def test_a_bar_counts_as_one_line() -> None:
    bars = "".join(f"\r {n}%|##  | {n}/100 [00:10<00:12, 4.9it/s]" for n in range(30))
    assert told("start\n" + bars) is None


def test_steps_at_the_start_of_a_long_log_alone() -> None:
    assert told(BEAT * 900, head=STEPS) == 900
    assert told(BEAT * 900, head=BEAT) is None


@given(st.binary(max_size=400), st.binary(max_size=100))
def test_any_bytes(end: bytes, head: bytes) -> None:
    lines = split_lines(end)
    found = left_behind(find_progress(lines), lines, split_lines(head))
    assert found is None or 0 < found <= len(lines)
