"""The first real error of a log, and Slurm's own last word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.logs.errors import find_first_error, find_slurm_line
from slurmtop.parse.logs.lines import split_lines


def first(text: str) -> tuple[int | None, str] | None:
    line = find_first_error(split_lines(text.encode()))
    return None if line is None else (line.number, line.text)


def slurm(text: str) -> str | None:
    line = find_slurm_line(split_lines(text.encode()))
    return None if line is None else line.text


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: CUDA error: device-side assert triggered",
        "[rank11]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.35 GiB.",
        "/var/spool/slurmd/job77/slurm_script: line 5: 1234 Segmentation fault      ./train",
        "/var/spool/slurmd/job77/slurm_script: line 9: 4711 Killed           python train.py",
        "bash: line 3: torchrn: command not found",
        "python: can't open file '/x/train.py': [Errno 2] No such file or directory",
        "train.py: error: unrecognized arguments: --lr",
        "srun: error: Unable to create step for job 12: Memory required by task is not available",
        "srun: error: gpu01: task 3: Out Of Memory",
        "srun: error: Task launch for StepId=36.0 failed on node gpu02: Job credential expired",
        "slurmstepd: error: execve(): train: No such file or directory",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have",
        "2031-05-05 10:00:00,123 - trainer - ERROR - loss is NaN, giving up",
        "ERROR:root:cannot read shard 7",
        "[2031-05-05 10:00:00] [CRITICAL] checkpoint store is gone",
        "python: malloc.c:2617: sysmalloc: Assertion `old_top == 0' failed.",
        "OSError: [Errno 28] No space left on device",
        "[rank0]:[E1003 18:37:01.832146912 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught it",
        "[E ProcessGroupNCCL.cpp:821] [Rank 3] Watchdog caught collective operation timeout",
        "n1:7:9 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : Got async event : port error",
        "error: could not find native static library `nccl`",
    ],
)
def test_lines_that_tell_an_error(line: str) -> None:
    assert first(f"starting\n{line}\nbye\n") == (2, line)


@pytest.mark.parametrize(
    "line",
    [
        "step 12 loss 0.31 error=0",
        "errors: 0, warnings: 3",
        "ERROR: 0",
        "loss_error 0.1 grad_error 0.2",
        "validation error: 0.187 (best 0.12)",
        "train error: 12.5% test error: 13.0%",
        "srun --error-file=logs/e.txt --output-file=o.txt python train.py",
        "INFO registering ErrorHandler for RuntimeError: ignored",
        "2031-05-05 10:00:00 INFO trainer: retrying after ConnectionError: reset",
        "WARNING: No such file or directory: cache.json, starting without",
        "[W1003 18:37:01.832146912 socket.cpp:607] failed to connect, CUDA error: maybe later",
        "/x/train.py:3: UserWarning: an error: this is deprecated",
        "n1:7:9 [0] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]",
        "n1:7:9 [0] NCCL INFO NET/Plugin: Failed to find ncclNetPlugin symbol, error: none",
        "n1:7:9 [0] net_ib.cc:93 NCCL WARN NET/IB : Got async event : client reregistration",
        "class MyError(Exception): pass",
        "Killed processes are restarted by the launcher",
        "    raise ValueError('x')",
        "",
    ],
)
def test_lines_that_only_look_like_one(line: str) -> None:
    assert first(f"starting\n{line}\nbye\n") is None


def test_a_traceback_is_told_by_its_exception() -> None:
    text = (
        "step 3\nTraceback (most recent call last):\n"
        '  File "train.py", line 12, in <module>\n    main()\n'
        "my.pkg.BadShard: shard 7 has no tokens\nsrun: error: n1: task 0: Exited with exit code 1\n"
    )
    assert first(text) == (5, "my.pkg.BadShard: shard 7 has no tokens")


def test_of_a_chain_the_cause_is_told() -> None:
    text = (
        "Traceback (most recent call last):\n  x\nKeyError: 'tokens'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n  y\nRuntimeError: cannot load\n"
    )
    assert first(text) == (3, "KeyError: 'tokens'")


def test_interleaved_ranks_keep_their_tracebacks_apart() -> None:
    text = (
        "[rank1]: Traceback (most recent call last):\n[rank0]: still fine\n"
        '[rank1]:   File "train.py", line 3\nOther: words\n'
        "[rank1]: ValueError: File data.json not found.\n"
    )
    assert first(text) == (5, "[rank1]: ValueError: File data.json not found.")


def test_a_header_glued_to_a_bar_is_seen() -> None:
    text = (
        " 45%|## | 450/1000 [0:10]Traceback (most recent call last):\n  x\nZeroDivisionError: no\n"
    )
    assert first(text) == (3, "ZeroDivisionError: no")


def test_a_traceback_that_python_swallowed_is_none() -> None:
    text = (
        "Exception ignored in atexit callback: <function f>\n"
        "Traceback (most recent call last):\n  x\nTypeError: 'NoneType'\nstep 4\n"
    )
    assert first(text) is None


def test_a_traceback_cut_by_the_end_is_told_by_its_header() -> None:
    text = "step 3\nTraceback (most recent call last):\n  File 'x'\n"
    assert first(text) == (2, "Traceback (most recent call last):")


def test_the_own_error_wins_over_earlier_reports_of_an_end() -> None:
    text = (
        "n1:7:9 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer\n"
        "[rank0]: Traceback (most recent call last):\n[rank0]:   x\n"
        "[rank0]: torch.distributed.DistBackendError: NCCL error in: remote process exited\n"
        "[rank3]: Traceback (most recent call last):\n[rank3]:   x\n"
        "[rank3]: ValueError: bad batch\n"
        "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2031-05-05T10:00:00 ***\n"
    )
    assert first(text) == (7, "[rank3]: ValueError: bad batch")
    assert first("\n".join(text.splitlines()[:4])) == (1, text.splitlines()[0])


def test_what_a_script_shrugged_off_comes_last() -> None:
    text = "ls: cannot access 'old': No such file or directory\nstep 1\nIndexError: list index\n"
    assert first(text) == (3, "IndexError: list index")
    assert first(text.splitlines()[0]) == (1, text.splitlines()[0])


def test_slurms_ending_wins_over_its_other_lines() -> None:
    ending = (
        "slurmstepd: error: *** JOB 77 ON gpu01 CANCELLED AT 2031-05-05T10:00:00 "
        "DUE TO TIME LIMIT ***"
    )
    text = f"srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n{ending}\n"
    assert slurm(text + "srun: error: n1: task 0: Terminated\n") == ending
    assert (
        slurm("x\nsrun: error: n1: task 0: Terminated\n") == "srun: error: n1: task 0: Terminated"
    )
    assert slurm("step 3: srun is great\nRuntimeError: no\n") is None


def test_slurms_ending_is_found_behind_a_bar_and_with_a_node_name() -> None:
    text = (
        " 46%|## | 31/67 [29:02]slurmstepd-gpu01: error: *** STEP 1.0 ON gpu01 CANCELLED AT 9 ***\n"
    )
    assert slurm(text) == text.rstrip("\n")


@given(
    st.lists(
        st.sampled_from(
            [
                "Traceback (most recent call last):",
                "  x",
                "ValueError: y",
                "[rank1]: ",
                "INFO ",
                "\n",
                "error: ",
                "0",
                "Exception ignored in: z",
                "NCCL WARN ",
                "\r",
                "(",
                "[",
                "srun: error: ",
            ]
        )
        | st.text(max_size=8),
        max_size=25,
    ).map("".join)
)
def test_any_text_gives_a_line_of_it_or_none(text: str) -> None:
    lines = split_lines(text.encode("utf-8", "replace"))
    assert find_first_error(lines) in (None, *lines)
    assert find_slurm_line(lines) in (None, *lines)


def test_long_hostile_lines_cost_little() -> None:
    # Each of these made a careless pattern quadratic or worse; here they end at once.
    for piece in (
        "[",
        "(a",
        "error: ",
        "A.",
        "0:",
        "2031-05-05 10:00:00 ",
        " Killed ",
        "Assertion '",
    ):
        assert first(piece * 4_000 + "\nIndexError: x\n") is not None
