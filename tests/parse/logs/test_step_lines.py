"""How fast the step counters of a log follow each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.facts import StepLines
from slurmtop.parse.logs.lines import split_lines
from slurmtop.parse.logs.step_lines import step_lines

STAMPED = """\
[2026-12-01 09:44:00] [rank0] world size 4, host gpu01, pid 5
[2026-12-01 09:44:02] [rank0] step 1/100000 loss 0.9
[2026-12-01 09:44:03] [rank0] step 2/100000 loss 0.8
[2026-12-01 09:44:09] [rank0] step 3/100000 loss 0.7
"""
REQUEUED = (
    "slurmstepd: error: *** JOB 30 ON n1 CANCELLED AT 2026-11-30T16:06:14 DUE TO JOB REQUEUE ***\n"
)


def _read(text: str) -> StepLines | None:
    lines = split_lines(text.encode())
    return step_lines(lines, lines)


def test_lines_with_a_time_tell_how_far_they_lie_apart() -> None:
    assert _read(STAMPED) == StepLines(lines=3, first=1, last=3, span_s=7.0, pause_s=6.0, begin=1)


@pytest.mark.parametrize("label", ["0: ", "[rank0]: ", "INFO ", "[INFO] "])
def test_a_time_behind_a_label_is_found(label: str) -> None:
    found = _read("".join(f"{label}{line}\n" for line in STAMPED.splitlines()))
    assert found is not None
    assert found.span_s == pytest.approx(7.0)


def test_without_times_steps_are_counted() -> None:
    found = _read("step 10 loss 2\nstep 20 loss 2\nstep 30 loss 2\n")
    assert found == StepLines(lines=3, first=10, last=30, begin=10)


def test_ranks_that_all_print_tell_each_step_once() -> None:
    rows = [f"[rank{rank}]: step {step}/90 loss 2\n" for step in (7, 8, 9) for rank in range(4)]
    found = _read("".join([*rows[:5], rows[6], rows[5], *rows[7:]]))
    assert found is not None
    assert (found.lines, found.first, found.last) == (3, 7, 9)


def test_an_epoch_or_a_run_before_is_another_pace() -> None:
    found = _read("step 98 loss 2\nstep 99 loss 2\nstep 1 loss 2\nstep 2 loss 2\n")
    assert found is not None
    assert (found.lines, found.first, found.begin) == (2, 1, None)


def test_a_requeue_ends_what_counts() -> None:
    found = _read("step 1/9 loss 2\nstep 2/9 loss 2\n" + REQUEUED + "step 3/9 loss 2\n")
    assert found == StepLines(lines=1, first=3, last=3, begin=1, apart=True)


@pytest.mark.parametrize(
    ("bar", "seconds"),
    [("[00:10<00:12, 44.9it/s, loss=2.41]", 10 / 450), ("[29:02<35:12, 58.67s/it]", 58.67)],
)
def test_a_bar_tells_its_rate(bar: str, seconds: float) -> None:
    found = _read(f"Epoch 3:  45%|####5     | 450/1000 {bar}\n")
    assert found is not None
    assert found.told_s == pytest.approx(seconds, rel=0.01)


def test_nothing_counts_in_a_log_without_steps() -> None:
    assert _read("hello\n") is None
    assert _read("") is None


@given(st.binary(max_size=400))
def test_any_bytes_are_read(data: bytes) -> None:
    lines = split_lines(b"step 3/9 loss 2\n" + data + b"\nstep 4/9 loss 2\n")
    found = step_lines(lines, lines)
    assert found is None or (found.lines >= 1 and found.first <= found.last)
