"""A job that fails in the same way each time, told from one that does not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.job import ExitCode
from slurmtop.model.text import visible
from slurmtop.triage.loops import EndedRun, looping, same_error

OOM = "RuntimeError: CUDA out of memory. Tried to allocate 4.35 GiB (GPU 3)"
FAILED = EndedRun(failed_itself=True, exit=ExitCode(1, 0), elapsed_s=120, error=OOM)
TAKEN = EndedRun(failed_itself=False, elapsed_s=120)


def errors(*texts: str | None) -> list[EndedRun]:
    return [replace(FAILED, error=text) for text in texts]


def test_the_same_error_each_time_is_a_loop() -> None:
    runs = errors(OOM, OOM.replace("4.35", "12"), OOM.replace("GPU 3", "GPU 11"), OOM)
    assert looping(runs, restarts=3) == (
        "looping: restarted 3 times, each of the last 4 runs ended with the same error, after"
        f" 2 min: {OOM}"
    )


def test_only_the_newest_failures_count() -> None:
    told = looping([TAKEN, *errors(OOM, OOM, OOM)], restarts=3)
    assert told is not None
    assert "each of the last 3 runs" in told


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param(errors(OOM, OOM, "KeyError: 'x'"), id="another error at the end"),
        pytest.param(errors("KeyError: 'x'", "ValueError: y", OOM, OOM), id="different errors"),
        pytest.param([*errors(OOM, OOM, OOM), TAKEN], id="the newest was requeued from outside"),
        pytest.param([FAILED, FAILED, TAKEN, FAILED], id="one in between was preempted"),
        pytest.param([TAKEN, TAKEN, TAKEN, TAKEN], id="preempted each time"),
        pytest.param([FAILED, FAILED], id="two runs"),
        pytest.param([], id="none"),
        pytest.param([replace(FAILED, step=n) for n in (100, 250, 400)], id="gets further"),
    ],
)
def test_no_loop(runs: list[EndedRun]) -> None:
    assert looping(runs, restarts=3) is None


def test_two_restarts_are_no_loop_yet() -> None:
    assert looping([FAILED, FAILED, FAILED], restarts=2) is None
    assert looping([FAILED, FAILED, FAILED], restarts=3) is not None


def test_stuck_at_the_same_step_is_a_loop() -> None:
    assert looping([replace(FAILED, step=120)] * 3, restarts=3) is not None


def test_one_run_whose_log_is_gone_is_told_as_such() -> None:
    told = looping(errors(OOM, None, OOM, OOM), restarts=3)
    assert told is not None
    assert "3 of the last 4 runs are known to have ended with the same error" in told


def test_without_the_earlier_logs_only_the_exit_codes_speak() -> None:
    runs = errors(None, None, None, OOM)
    runs[0] = replace(runs[0], elapsed_s=4)
    assert looping(runs, restarts=3) == (
        "looping: restarted 3 times, it seems: each of the last 4 runs ended the same way (exit 1,"
        " after 4 s to 2 min), but what the earlier ones wrote cannot be told; the error in its"
        f" log: {OOM}"
    )


def test_a_log_of_all_runs_in_one_is_quoted_and_no_more() -> None:
    told = looping(errors(None, None, None), restarts=3, log_error=OOM)
    assert told is not None
    assert "it seems" in told
    assert told.endswith(f"the error in its log: {OOM}")
    told = looping(errors(None, None, None), restarts=3)
    assert told is not None
    assert "the error in its log" not in told


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"exit": ExitCode(2, 0)}, id="another code"),
        pytest.param({"elapsed_s": 7_200}, id="it ran for hours"),
        pytest.param({"elapsed_s": None}, id="nobody knows for how long"),
        pytest.param({"exit": None}, id="no code"),
    ],
)
def test_exit_codes_alone_are_not_enough_where(change: dict[str, ExitCode | int | None]) -> None:
    runs = errors(None, None, None, None)
    assert looping(runs, restarts=3) is not None
    assert looping([*runs[:-1], replace(runs[-1], **change)], restarts=3) is None  # type: ignore[arg-type]


def test_a_signal_is_named() -> None:
    runs = [replace(FAILED, error=None, exit=ExitCode(0, 11))] * 3
    assert "killed by signal 11" in (looping(runs, restarts=3) or "")


def test_earlier_verdicts_stand_in_for_logs_that_are_gone() -> None:
    verdict = "failed: RuntimeError: CUDA out of memory. Tried to allocate 9.1 GiB (GPU 0), rank 2"
    runs = errors(None, None, None, OOM)
    told = looping(runs, restarts=3, told=[verdict, verdict])
    assert told == (
        "looping: restarted 3 times, and the error is that of 2 requeues before, after 2 min:"
        f" {OOM}"
    )
    other = looping(runs, restarts=3, told=[verdict, "failed: KeyError: 'x'"])
    assert other is not None
    assert "it seems" in other
    one = looping(runs, restarts=3, told=[verdict])
    assert one is not None
    assert "it seems" in one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[rank3]: KeyError: 'n02085620/n02085620_7292'", "[rank0]: KeyError: 'n7/n1_2'"),
        ("3: RuntimeError: at 0x7f00aa12", "14: RuntimeError: at 0xdeadbeef"),
        ("slurmstepd-nodea: error: x", "slurmstepd-nodeb: error: x"),
        ("srun: error: alpha: task 3: Out Of Memory", "srun: error: beta: task 0: Out Of Memory"),
        ("2031-05-05 10:00:00,123 - ERROR - NaN", "2031-06-15 11:59:59,001 - ERROR - NaN"),
        ("OSError: /tmp/job4711/a", "OSError: /tmp/job99/a"),
        ("10.1.2.3:29500 refused", "10.1.2.44:30001 refused"),
        ("blob 3f2a9c01bd missing", "blob 77aa00ffee1 missing"),
    ],
)
def test_what_differs_between_runs_is_not_compared(one: str, other: str) -> None:
    assert same_error(one) == same_error(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("OSError: [Errno 28] x", "OSError: [Errno 2] x"),
        ("task 0: Exited with exit code 1", "task 0: Exited with exit code 137"),
        ("Xid 79 seen", "Xid 31 seen"),
        ("ValueError: a", "ValueError: b"),
    ],
)
def test_what_names_the_error_is_compared(one: str, other: str) -> None:
    assert same_error(one) != same_error(other)


def test_a_hostile_error_is_shown_harmless_and_short() -> None:
    told = looping(errors(*["ValueError: \x1b[2J\u202e" + "x" * 9_000] * 3), restarts=3)
    assert told is not None
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert len(told) < 400


runs_of = st.lists(
    st.builds(
        EndedRun,
        failed_itself=st.booleans(),
        exit=st.none() | st.builds(ExitCode, st.integers(0, 2), st.just(0)),
        elapsed_s=st.none() | st.integers(0, 9_000),
        error=st.none() | st.sampled_from([OOM, "KeyError: 'x'"]) | st.text(max_size=20),
        step=st.none() | st.integers(0, 3),
    ),
    max_size=6,
)


@given(runs=runs_of, restarts=st.integers(0, 9), told=st.lists(st.text(max_size=20), max_size=3))
def test_a_loop_is_never_said_without_three_failures_in_a_row(
    runs: list[EndedRun], restarts: int, told: list[str]
) -> None:
    sentence = looping(runs, restarts=restarts, told=told)
    if sentence is not None:
        assert restarts >= 3
        assert len(runs) >= 3
        assert all(run.failed_itself for run in runs[-3:])
        assert visible(sentence) == sentence


@given(st.text(max_size=200))
def test_numbers_never_make_two_errors_of_one(text: str) -> None:
    assert same_error(f"{text} 17") == same_error(f"{text} 4")
