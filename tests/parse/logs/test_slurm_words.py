"""Ends of tasks, steps and nodes in Slurm's own words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.events.launch import Interrupted
from slurmtop.model.events.slurm import (
    Ending,
    LaunchFailed,
    NodeTrouble,
    OomKill,
    SlurmNote,
    StepEnded,
    StepNote,
    TaskExit,
)
from slurmtop.parse.logs.slurm_notes import SlurmNoteReader
from slurmtop.parse.logs.slurm_words import SlurmReader
from tests.parse.logs.messages import read


def task_exit(line: str) -> TaskExit:
    (event,) = read(SlurmReader(), line)
    assert isinstance(event, TaskExit)
    return event


@pytest.mark.parametrize(
    ("line", "hosts", "tasks", "code", "signal"),
    [
        (
            "srun: error: node[1-3]: tasks 0-2,9: Exited with exit code 1",
            ("node1", "node2", "node3"),
            (0, 1, 2, 9),
            1,
            None,
        ),
        ("srun: error: n1: task 0: Exited with exit code 134", ("n1",), (0,), 134, 6),
        ("srun: error: 64: task 12: Segmentation fault (core dumped)", ("64",), (12,), None, 11),
        ("srun: error: n-a,m[2-3]: tasks 1-2: Killed", ("n-a", "m2", "m3"), (1, 2), None, 9),
        ("srun: error: n1: task 7: Terminated", ("n1",), (7,), None, 15),
        ("0: srun: error: n1: task 7: Aborted (core dumped)", ("n1",), (7,), None, 6),
        ("srun: error: <2nd node>: task 7: Bus error", ("<2nd node>",), (7,), None, 7),
        ("srun: error: ... Aborted (core dumped)", (), (), None, 6),
        ("n1: task 7: Exited with exit code 2", ("n1",), (7,), 2, None),
        ("srun: error: n1: tasks 0-3: Exited with exit code 255", ("n1",), (0, 1, 2, 3), 255, None),
    ],
)
def test_a_task_exit_names_hosts_tasks_and_how(
    line: str, hosts: tuple[str, ...], tasks: tuple[int, ...], code: int | None, signal: int | None
) -> None:
    event = task_exit(line)
    assert (event.hosts, event.tasks, event.exit_code, event.signal) == (hosts, tasks, code, signal)
    assert not event.out_of_memory


def test_out_of_memory_of_a_task_is_told_by_slurm() -> None:
    assert task_exit("srun: error: n1: task 3: Out Of Memory").out_of_memory


@pytest.mark.parametrize(
    "line",
    [
        "srun: n1: task 3: Exited with exit code 0",
        "INFO: task 3: Killed time by reading",
        "worker: task 12: finished",
        "srun: debug:  task 2 done",
        "srun: error: Something else",
    ],
)
def test_other_lines_about_tasks_are_no_exits(line: str) -> None:
    assert not [event for event in read(SlurmReader(), line) if isinstance(event, TaskExit)]


@pytest.mark.parametrize(
    ("line", "step", "ending", "host"),
    [
        (
            "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2031-05-05T10:00:00 ***",
            "12.0",
            Ending.CANCELLED,
            "n1",
        ),
        (
            "50%|###  | 1/2slurmstepd-n1: error: *** JOB 12_4 ON n1 CANCELLED AT "
            "2031-05-05T10:00:00 DUE TO TIME LIMIT ***",
            "12_4",
            Ending.TIME_LIMIT,
            "n1",
        ),
        (
            "slurmstepd: *** JOB 12 ON n1 CANCELLED AT 2031-05-05T10:00:00 DUE TO PREEMPTION ***",
            "12",
            Ending.PREEMPTION,
            "n1",
        ),
        (
            "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2031-05-05T10:00:00 DUE TO NODE "
            "FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
            "12.0",
            Ending.NODE_FAILURE,
            "n1",
        ),
        (
            "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2031-05-05T10:00:00 DUE to SIGNAL "
            "Terminated ***",
            "12.0",
            Ending.CANCELLED,
            "n1",
        ),
        (
            "slurmstepd: error: *** JOB 12 ON 64 CANCELLED AT 2031-05-05T10:00:00 DUE TO JOB "
            "REQUEUE ***",
            "12",
            Ending.REQUEUE,
            "64",
        ),
        (
            "slurmstepd: error: *** STEP 12.0 ON n1 FAILED (non-zero exit code or other failure "
            "mode) ***",
            "12.0",
            Ending.FAILED,
            "n1",
        ),
        (
            "slurmstepd: error: *** JOB 12 STEPD TERMINATED ON n1 AT 2031-05-05T10:00:00 DUE TO "
            "JOB NOT ENDING WITH SIGNALS ***",
            "12",
            Ending.UNKILLABLE,
            "n1",
        ),
        (
            "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2031-05-05T10:00:00 DUE TO TASK "
            "FAILURE ***",
            "12.0",
            Ending.TASK_FAILURE,
            "n1",
        ),
        (
            "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2031-05-05T10:00:00 DUE TO TIME LI",
            "12",
            Ending.TIME_LIMIT,
            "n1",
        ),
        (
            "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2031-05-05T10:00:00 DUE TO TIMELI"
            "MIT ***",
            "12",
            Ending.TIME_LIMIT,
            "n1",
        ),
        (
            "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2031-05-05T10:00:00 DUE TO T",
            "12",
            Ending.CUT,
            "n1",
        ),
        (
            "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2031-05-05T10:00:00",
            "12",
            Ending.CUT,
            "n1",
        ),
        ("slurmstepd: error: *** STEP 12.0 ON n1 CANC", "12.0", Ending.CUT, ""),
        ("slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2031-05", "12.0", Ending.CUT, ""),
        (
            "slurmstepd: error: *** JOB 12 CANCELLED AT 2031-05-05T10:00:00 DUE TO MOON PHASE ***",
            "12",
            Ending.OTHER,
            "",
        ),
    ],
)
def test_the_end_of_a_step_has_its_reason(line: str, step: str, ending: Ending, host: str) -> None:
    (event,) = read(SlurmReader(), line)
    assert isinstance(event, StepEnded)
    assert (event.step, event.ending, event.first_host) == (step, ending, host)


def test_the_time_of_an_ending_is_read_from_its_line() -> None:
    (event,) = read(
        SlurmReader(), "slurmstepd: error: *** JOB 1 ON n CANCELLED AT 1970-01-02T00:00:01 ***"
    )
    assert isinstance(event, StepEnded)
    assert event.seconds == 86_401


@pytest.mark.parametrize(
    ("line", "step", "events", "host"),
    [
        (
            "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks "
            "have been OOM Killed.",
            "12.0",
            1,
            None,
        ),
        (
            "slurmstepd-n-7: error: Detected 3 oom-kill event(s) in step 12.batch cgroup. Some of "
            "your processes may have been killed by the cgroup out-of-memory handler.",
            "12.batch",
            3,
            "n-7",
        ),
        ("slurmd[n7]: error: Job 12 exceeded memory limit (9 > 8), being killed", "12", 1, "n7"),
        ("slurmstepd: error: Exceeded job memory limit at some point.", "", 1, None),
    ],
)
def test_oom_kills_old_and_new(line: str, step: str, events: int, host: str | None) -> None:
    (event,) = read(SlurmReader(), line)
    assert isinstance(event, OomKill)
    assert (event.step, event.events, event.host) == (step, events, host)


@pytest.mark.parametrize(
    ("line", "node"),
    [
        ("srun: error: Task launch for 36.0 failed on node n-k: Job credential expired", "n-k"),
        (
            "srun: error: Task launch for StepId=36.0 failed on node n2: Invalid job credential",
            "n2",
        ),
        ("srun: error: task 3 launch failed: Slurmd could not execve job", None),
        ("srun: error: Application launch failed: Job credential expired", None),
        ("slurmstepd: error: execve(): /data/run.sh: Permission denied", None),
        ("slurmstepd: error: Could not open stdout file /data/x.out: Permission denied", None),
        ("srun: error: Unable to create step for job 7: Invalid node name specified", None),
        ("slurmstepd: error: pyxis: container start failed with error code: 1", None),
        ("slurmd[n1]: error: Munge decode failed: Expired credential", None),
        ("error: Prolog launch failure, JobId=12", None),
    ],
)
def test_failed_launches(line: str, node: str | None) -> None:
    (event,) = read(SlurmReader(), line)
    assert isinstance(event, LaunchFailed)
    assert event.node == node
    assert event.why


def test_a_step_that_waits_for_its_nodes_has_not_failed() -> None:
    line = "srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are busy)"
    assert read(SlurmReader(), line) == []


@pytest.mark.parametrize(
    ("line", "nodes", "why"),
    [
        ("srun: error: Node failure on n[1-2]", ("n1", "n2"), "Node failure"),
        (
            "[2031-05-05T10:00:00] update_node: node n-8 reason set to: Kill task failed",
            ("n-8",),
            "Kill task failed",
        ),
        (
            "error: Nodes n[1,3] not responding, setting DOWN",
            ("n1", "n3"),
            "not responding, setting DOWN",
        ),
        ("update_node: node n1 state set to DOWN", ("n1",), "state set to DOWN"),
    ],
)
def test_failed_nodes(line: str, nodes: tuple[str, ...], why: str) -> None:
    (event,) = read(SlurmReader(), line)
    assert isinstance(event, NodeTrouble)
    assert (event.nodes, event.why) == (nodes, why)


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (
            "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
            StepNote.ABORTED,
        ),
        ("srun: launch/slurm: _step_signal: Terminating StepId=1.0", StepNote.TERMINATING),
        ("srun: Force Terminated job step 2594.1", StepNote.TERMINATING),
        ("srun: First task exited 60s ago", StepNote.FIRST_EXITED),
        ("salloc: Job allocation 12 has been revoked.", StepNote.REVOKED),
        (
            "submitit WARNING - Caught signal SIGUSR2 on n1: this job is preempted.",
            StepNote.PREEMPTED,
        ),
        ("Caught signal SIGUSR1 on n1: this job is timed-out.", StepNote.TIMED_OUT),
        ("submitit WARNING (2021-03-15 17:50:23,701) - Bypassing signal 15", StepNote.WARNED),
        ("[rank: 0] Received SIGTERM: 15", StepNote.WARNED),
        ("Bypassing SIGTERM: 15", StepNote.WARNED),
        ("Handling auto-requeue signal: SIGUSR1", StepNote.WARNED),
        ("requeing job 12... Requeued job 12", StepNote.REQUEUED),
        ("+ scontrol requeue 4711", StepNote.REQUEUED),
    ],
)
def test_notes_around_the_end(line: str, note: StepNote) -> None:
    (event,) = read(SlurmNoteReader(), line)
    assert isinstance(event, SlurmNote)
    assert event.note is note


@pytest.mark.parametrize(
    "line",
    [
        "[n1:5283 :0:5704] Caught signal 7 (Bus error: nonexistent physical address)",
        "Received 15 death signal, shutting down workers",
        "SignalException: Process 42 got signal: 15",
        "#SBATCH --requeue",
        "batch 12 received 15 samples",
    ],
)
def test_crashes_options_and_counts_are_no_notes(line: str) -> None:
    assert read(SlurmNoteReader(), line) == []


def test_srun_tells_of_a_ctrl_c() -> None:
    (event,) = read(SlurmNoteReader(), "srun: interrupt (one more within 1 sec to abort)")
    assert isinstance(event, Interrupted)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for prefix in ("srun: error: ", "slurmstepd: error: *** JOB 1", "update_node: node "):
        read(SlurmReader(), [prefix + text])
        read(SlurmNoteReader(), [prefix + text])
