"""Ends of processes in the words of those who started them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.launch import (
    ChildEnded,
    ClosingSignal,
    DeathSignal,
    Interrupted,
    WorkerLost,
)
from slurmtop.parse.logs.launchers import LauncherReader
from tests.parse.logs.messages import read


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("['python', 'x.py'] exits with return code = -9", {"signal": 9, "exit_code": None}),
        ("['python', 'x.py'] exits with return code = 1", {"signal": None, "exit_code": 1}),
        (
            "mpirun noticed that process rank 3 with PID 4242 on node node-a exited on signal 9 "
            "(Killed).",
            {"signal": 9, "rank": 3, "pid": 4242, "node": "node-a"},
        ),
        (
            "mpirun noticed that process rank 3 with PID 0 on node node-a exited on\nsignal 11 "
            "(Segmentation fault).",
            {"signal": 11, "rank": 3, "pid": None, "node": "node-a"},
        ),
        ("  Process name: [[63017,1],5]\n  Exit code:    1", {"rank": 5, "exit_code": 1}),
        ("Process name: [3]\nExit code: 137", {"rank": 3, "signal": 9}),
        ("=   PID 12 RUNNING AT n1\n=   EXIT CODE: 139", {"pid": 12, "node": "n1", "signal": 11}),
        ("=   PID 12 RUNNING AT n1\n=   EXIT CODE: 9", {"signal": 9}),
        (
            "=   RANK 7 PID 12 RUNNING AT n1\n=   KILLED BY SIGNAL: 9 (Killed)",
            {"rank": 7, "signal": 9},
        ),
        (
            "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD with errorcode 5.",
            {"rank": 2, "exit_code": 5},
        ),
        (
            "./run.sh: line 12:  4242 Killed                  python train.py",
            {"pid": 4242, "signal": 9},
        ),
        ("Killed", {"signal": 9}),
        ("Segmentation fault (core dumped)", {"signal": 11}),
        ("Bus error (core dumped)", {"signal": 7}),
        ("Command '['python']' died with <Signals.SIGKILL: 9>.", {"signal": 9}),
        ("Command '['python']' returned non-zero exit status 2.", {"exit_code": 2}),
        (
            "ProcessExitedException: process 3 terminated with signal SIGABRT",
            {"signal": 6, "rank": None},
        ),
        (
            "Child process with PID 71 terminated with code -11. Forcefully",
            {"pid": 71, "signal": 11},
        ),
        ("Process 3 exit with status code 137.", {"rank": 3, "signal": 9}),
        ("container failed with non-zero exit code: 137", {"signal": 9}),
    ],
)
def test_an_end_is_told_with_all_that_the_line_names(text: str, fields: dict[str, Any]) -> None:
    (event,) = read(LauncherReader(), text)
    assert isinstance(event, ChildEnded)
    assert {name: getattr(event, name) for name in fields} == fields


@pytest.mark.parametrize(
    "text",
    [
        "['python', 'x.py'] exits with return code = 0",
        "srun: error: node-a: task 3: Killed",
        "slurmstepd: error: line 1: 42 Killed",
        "Killed 3 stale processes",
        "the actor model",
        "kept 5 checkpoints by user request",
    ],
)
def test_other_lines_are_no_ends(text: str) -> None:
    assert read(LauncherReader(), text) == []


@pytest.mark.parametrize(
    ("text", "address", "pid"),
    [
        (
            "A worker died or was killed while executing a task by an unexpected system error. "
            "Worker "
            "IP address: 10.0.0.110 Worker port: 10185 Worker PID: 90738 Worker exit type: "
            "SYSTEM_ERROR",
            "10.0.0.110",
            90_738,
        ),
        (
            "The node with node id: ab and address: 10.0.0.5 and node name: 10.0.0.5 has been "
            "marked "
            "dead because the detector has missed too many heartbeats from it.",
            "10.0.0.5",
            None,
        ),
        ("RayActorError: The actor died unexpectedly before finishing this task. pid: 7", None, 7),
        ("ERROR: Worker proc VllmWorker-3 died unexpectedly, shutting down executor.", None, None),
        ("  Remote daemon: [[23,0],1] on node node-b", "node-b", None),
    ],
)
def test_a_lost_worker_is_told(text: str, address: str | None, pid: int | None) -> None:
    (event,) = read(LauncherReader(), text)
    assert isinstance(event, WorkerLost)
    assert (event.address, event.pid, event.rank) == (address, pid, None)


def test_a_child_that_deepspeed_ends_is_a_victim() -> None:
    (event,) = read(LauncherReader(), "[launch.py:315:sigkill_handler] Killing subprocess 71")
    assert isinstance(event, ClosingSignal)
    assert event.pid == 71


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("Main process received SIGINT, exiting", 2),
        ("Received SIGTERM: 15", 15),
        ("Received signal 15, saving", 15),
        ("exiting after receiving SIGTERM", 15),
    ],
)
def test_a_signal_to_the_program_is_told(text: str, signal: int) -> None:
    (event,) = read(LauncherReader(), text)
    assert isinstance(event, DeathSignal)
    assert event.signal == signal


@pytest.mark.parametrize(
    "text", ["^C", "^CTraceback (most recent call last):", "KeyboardInterrupt", "Aborted by user!"]
)
def test_a_person_at_the_terminal_is_told(text: str) -> None:
    assert [type(one) for one in read(LauncherReader(), text)] == [Interrupted]


@given(
    st.lists(
        st.sampled_from([word.decode() for word in LauncherReader.words]) | st.text(), max_size=9
    )
)
def test_any_text_is_read_without_an_error(lines: list[str]) -> None:
    read(LauncherReader(), [*lines, " ".join(lines)])
