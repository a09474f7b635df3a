"""Slurm or a person ended it: not a fault, unless something had failed before."""

from typing import Any

import pytest

from slurmtop.model.events.launch import DeathSignal, Interrupted
from slurmtop.model.events.program import PyException, Step
from slurmtop.model.events.reports import HorovodStall
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
from slurmtop.model.events.torch import StoreEvent, StoreTrouble
from slurmtop.model.trace import Event
from slurmtop.model.verdict import EndedBy, State, Verdict
from slurmtop.triage.judge import OURSELVES, explain_traces
from tests.triage.traces import timed_out, traces, where


def verdict(*events: Event) -> Verdict:
    told = explain_traces(traces(*events))
    assert all(one.family != OURSELVES for one in told.missing)
    return told


def ended(ending: Ending, **more: Any) -> StepEnded:
    at = where(f"*** STEP 7.0 ON n1 CANCELLED DUE TO {ending} ***", **more)
    return StepEnded(at=at, step="7.0", ending=ending, first_host="n1")


def killed(host: str = "n1", signal: int | None = 15, code: int | None = None) -> TaskExit:
    return TaskExit(at=where(), hosts=(host,), tasks=(0,), signal=signal, exit_code=code)


@pytest.mark.parametrize(
    ("ending", "cls"),
    [
        (Ending.TIME_LIMIT, "slurm-time-limit"),
        (Ending.PREEMPTION, "slurm-preempted"),
        (Ending.REQUEUE, "slurm-requeue"),
        (Ending.NODE_FAILURE, "slurm-node-fail"),
    ],
)
def test_slurms_reason_is_the_verdict_and_its_first_host_is_innocent(
    ending: Ending, cls: str
) -> None:
    told = verdict(Step(at=where(rank=0), done=4), ended(ending), killed(code=1, signal=None))
    assert (told.state, told.cls, told.ended_by) == (State.FAILED, cls, EndedBy.SLURM)
    assert told.culprits == ()


def test_errors_behind_slurms_end_are_its_effects() -> None:
    end = ended(Ending.PREEMPTION)
    late = StoreEvent(at=where(), kind=StoreTrouble.BARRIER_TIMEOUT)
    thrown = PyException(at=where(), name="RuntimeError", message="unexpected")
    told = verdict(end, late, thrown, timed_out(2))
    assert (told.cls, told.culprits) == ("slurm-preempted", ())


def test_an_exception_long_before_the_limit_is_the_cause() -> None:
    thrown = PyException(at=where(seconds=1_000), name="KeyError", message="3")
    assert verdict(thrown, ended(Ending.TIME_LIMIT, seconds=9_000)).cls == "python-exception"


def test_an_error_within_the_grace_of_the_end_is_an_effect() -> None:
    thrown = PyException(at=where(seconds=8_990), name="RuntimeError", message="stopped")
    assert verdict(thrown, ended(Ending.TIME_LIMIT, seconds=9_000)).cls == "slurm-time-limit"


def test_an_error_behind_the_warning_signal_is_an_effect() -> None:
    warned = SlurmNote(at=where(seconds=100), note=StepNote.WARNED)
    thrown = PyException(at=where(seconds=200), name="RuntimeError", message="stopped")
    told = verdict(warned, thrown, ended(Ending.TIME_LIMIT, seconds=9_000))
    assert told.cls == "slurm-time-limit"


def test_an_error_that_was_got_over_does_not_stand_before_the_end() -> None:
    thrown = PyException(at=where(rank=0), name="OSError", message="again")
    steps = [Step(at=where(rank=0), done=done) for done in (8, 9)]
    assert verdict(thrown, *steps, ended(Ending.TIME_LIMIT)).cls == "slurm-time-limit"


@pytest.mark.parametrize(
    ("note", "cls"),
    [
        (StepNote.PREEMPTED, "slurm-preempted"),
        (StepNote.REQUEUED, "slurm-requeue"),
        (StepNote.TIMED_OUT, "slurm-time-limit"),
    ],
)
def test_the_programs_own_word_explains_a_cancelled_without_a_reason(
    note: StepNote, cls: str
) -> None:
    told = verdict(SlurmNote(at=where(), note=note), ended(Ending.CANCELLED), killed())
    assert (told.cls, told.ended_by) == (cls, EndedBy.SLURM)


def test_cancelled_without_a_reason_is_a_persons_with_little_confidence() -> None:
    told = verdict(Step(at=where(), done=31), ended(Ending.CANCELLED), killed())
    assert (told.state, told.cls, told.culprits) == (State.FAILED, "user-interrupt", ())
    assert told.confidence.value != "high"
    assert any(one.family == "slurm" and one.command for one in told.missing)


@pytest.mark.parametrize("ending", [Ending.CUT, Ending.OTHER])
def test_of_a_reason_that_is_not_known_nobody_is_said_to_be_it(ending: Ending) -> None:
    told = verdict(Step(at=where(rank=0), done=4), ended(ending))
    assert (told.state, told.cls, told.culprits) == (State.FAILED, None, ())
    assert told.ended_by is (None if ending is Ending.CUT else EndedBy.SLURM)
    assert any(one.command and one.command.startswith("sacct -j 7 ") for one in told.missing)


def test_cancelled_behind_a_task_that_failed_is_only_clearing_up() -> None:
    told = verdict(killed("n2", None, 1), ended(Ending.CANCELLED), killed("n1"))
    assert told.cls == "task-exit"
    assert [c.host for c in told.culprits] == ["n2"]


def test_cancelled_behind_an_out_of_memory_kill_is_no_persons() -> None:
    oom = OomKill(at=where(), step="7.0")
    assert verdict(oom, ended(Ending.CANCELLED)).cls != "user-interrupt"


def test_the_one_node_where_the_launch_failed_is_named() -> None:
    told = verdict(LaunchFailed(at=where(), node="n9", why="Job credential expired"))
    assert (told.state, told.cls) == (State.FAILED, "slurm-launch-failure")
    assert [c.host for c in told.culprits] == ["n9"]


def test_a_launch_that_fails_on_several_nodes_names_none() -> None:
    pair = (LaunchFailed(at=where(), node=n, why="credential expired") for n in ("n1", "n2"))
    assert verdict(*pair).culprits == ()


def test_the_node_that_srun_reports_is_named_and_the_first_of_the_step_is_not() -> None:
    trouble = NodeTrouble(at=where("srun: error: Node failure on n4"), nodes=("n4",), why="failed")
    told = verdict(trouble, ended(Ending.NODE_FAILURE))
    assert told.cls == "slurm-node-fail"
    assert [c.host for c in told.culprits] == ["n4"]


def test_the_controllers_log_alone_does_not_say_that_this_job_failed() -> None:
    line = "[2031-05-05T00:54:23.932] update_node: node n4 reason set to: health"
    told = verdict(NodeTrouble(at=where(line), nodes=("n4",), why="health"))
    assert (told.state, told.cls) == (State.UNKNOWN, "slurm-node-fail")


@pytest.mark.parametrize("signal", [1, 2])
def test_a_terminal_that_is_closed_or_ctrl_c_is_a_person(signal: int) -> None:
    told = verdict(DeathSignal(at=where(), signal=signal))
    assert (told.state, told.cls, told.ended_by) == (
        State.FAILED,
        "user-interrupt",
        EndedBy.USER,
    )
    assert told.culprits == ()


def test_tracebacks_behind_ctrl_c_are_its_effects() -> None:
    typed = Interrupted(at=where("^C"))
    thrown = PyException(at=where(rank=3), name="RuntimeError", message="died")
    assert verdict(typed, thrown).cls == "user-interrupt"


def test_ctrl_c_on_a_run_that_was_stuck_is_not_why() -> None:
    stalled = HorovodStall(at=where(), ready=(1, 2))
    told = verdict(stalled, Interrupted(at=where("^C")))
    assert (told.state, told.cls) == (State.FAILED, "missing-rank")


def test_sigterm_of_the_launcher_alone_leaves_open_who_ended_it() -> None:
    told = verdict(DeathSignal(at=where(), signal=15))
    assert (told.state, told.cls, told.ended_by) == (State.FAILED, None, None)
