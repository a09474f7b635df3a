"""State before cause: how the lines alone say that a run ended."""

from typing import Any

import pytest

from slurmtop.model.events.launch import DeathSignal, ElasticFailure, Interrupted, WorkersRestart
from slurmtop.model.events.nccl import Call, ClosedByLocalRank, CommCalls, NcclWarn, Warn
from slurmtop.model.events.program import Closing, ProgramSays, PyException, Step
from slurmtop.model.events.reports import BenchRow, FlightReport, HorovodStall
from slurmtop.model.events.slurm import Ending as End
from slurmtop.model.events.slurm import StepEnded, TaskExit
from slurmtop.model.events.torch import CudaError, CudaTrouble, StoreEvent, StoreTrouble
from slurmtop.model.trace import Event, Source
from slurmtop.model.verdict import EndedBy, State
from slurmtop.triage.ending import how_it_ended
from slurmtop.triage.failures import failures
from slurmtop.triage.join import join
from tests.triage.traces import init, timed_out, traces, where


def state_of(*events: Event) -> State:
    return how_it_ended(join(traces(*events))).state


def step(done: int = 100, **more: Any) -> Step:
    total = more.pop("total", None)
    assert total is None or isinstance(total, int)
    return Step(at=where(f"step {done}", **more), done=done, total=total)


def thrown(name: str = "ValueError", **more: Any) -> PyException:
    return PyException(at=where(f"{name}: bad", **more), name=name, message="bad")


@pytest.mark.parametrize(
    ("event", "state"),
    [
        pytest.param(timed_out(3), State.FAILED, id="watchdog"),
        pytest.param(thrown(), State.FAILED, id="exception"),
        pytest.param(
            NcclWarn(at=where(), kind=Warn.IB_COMPLETION, text="w"), State.FAILED, id="warn"
        ),
        pytest.param(
            TaskExit(at=where(), hosts=("n1",), tasks=(0,), exit_code=1), State.FAILED, id="srun"
        ),
        pytest.param(
            TaskExit(at=where(), hosts=("n1",), tasks=(0,), exit_code=0), State.UNKNOWN, id="exit-0"
        ),
        pytest.param(HorovodStall(at=where()), State.HUNG, id="horovod-stall"),
        pytest.param(FlightReport(at=where(), seq=4), State.HUNG, id="flight-recorder-alone"),
        pytest.param(
            StoreEvent(at=where(), kind=StoreTrouble.BARRIER_WAITS), State.HUNG, id="store-waits"
        ),
        pytest.param(
            StoreEvent(at=where(), kind=StoreTrouble.BARRIER_TIMEOUT), State.FAILED, id="store-late"
        ),
        pytest.param(step(), State.HEALTHY, id="steps"),
        pytest.param(
            ProgramSays(at=where(), closing=Closing.FINISHED), State.HEALTHY, id="finished"
        ),
        pytest.param(BenchRow(at=where(), rows=4, complete=True), State.HEALTHY, id="table"),
        pytest.param(BenchRow(at=where(), rows=4, wrong_rows=1), State.FAILED, id="wrong-results"),
        pytest.param(BenchRow(at=where(), rows=4), State.UNKNOWN, id="table-cut"),
        pytest.param(NcclWarn(at=where(), kind=Warn.BENIGN, text="w"), State.HEALTHY, id="benign"),
        pytest.param(
            NcclWarn(at=where(), kind=Warn.BENIGN, text="NET/OFI plugin initialization failed"),
            State.UNKNOWN,
            id="without-its-network",
        ),
        pytest.param(ClosedByLocalRank(at=where(), local_rank=7), State.UNKNOWN, id="closed"),
        pytest.param(init(0, 2), State.HEALTHY, id="init-complete"),
    ],
)
def test_one_line_alone_tells_the_state(event: Event, state: State) -> None:
    assert state_of(event) is state


def test_nothing_read_is_unknown() -> None:
    assert state_of() is State.UNKNOWN


def test_an_error_that_its_rank_goes_on_from_does_not_fail_the_run() -> None:
    begun, error = step(1, rank=2), thrown(rank=2)
    later = step(89, rank=2), step(90, rank=2)
    assert state_of(begun, error, *later) is State.HEALTHY


def test_a_step_told_once_more_undoes_no_error() -> None:
    assert state_of(step(90, rank=2), thrown(rank=2), step(90, rank=2)) is State.FAILED
    assert state_of(step(90, rank=2), thrown(rank=2), step(91, rank=2)) is State.FAILED


def test_an_error_behind_the_last_step_fails_the_run() -> None:
    assert state_of(step(1), step(90), thrown()) is State.FAILED


def test_a_few_steps_of_another_rank_do_not_undo_an_error() -> None:
    assert state_of(thrown(rank=3), step(91, rank=0)) is State.FAILED
    assert state_of(thrown(rank=3), step(91)) is State.FAILED


def test_a_bar_that_comes_to_its_end_undoes_the_error_of_a_rank() -> None:
    thrown_first = thrown(rank=3)
    bar = step(99, total=100), step(100, total=100)
    assert state_of(thrown_first, *bar) is State.HEALTHY
    assert state_of(bar[0], thrown(rank=3), bar[1]) is State.FAILED


def test_steps_long_after_an_error_undo_it() -> None:
    early = thrown(rank=3, seconds=1_000)
    assert state_of(early, step(500, seconds=10_000)) is State.HEALTHY
    just = thrown(rank=3, seconds=9_990)
    assert state_of(just, step(500, seconds=10_000)) is State.FAILED


def test_among_unknown_writers_a_step_between_error_and_end_undoes_nothing() -> None:
    killed = TaskExit(at=where(order=9), hosts=("n1",), tasks=(0,), exit_code=1)
    events = thrown(order=2), step(order=5), killed
    found = [event for _, event in failures(join(traces(*events)))]
    assert events[0] in found


def test_steps_after_slurm_ended_it_change_nothing() -> None:
    end = StepEnded(at=where(), step="7.0", ending=End.TIME_LIMIT, first_host="n1")
    ending = how_it_ended(join(traces(step(5), end, step(6))))
    assert (ending.state, ending.hard, ending.ended_by) == (State.FAILED, True, EndedBy.SLURM)


def test_a_caught_out_of_memory_is_no_failure() -> None:
    caught = CudaError(at=where(), kind=CudaTrouble.OUT_OF_MEMORY, text="oom", caught=True)
    assert state_of(step(4), caught) is State.HEALTHY


def test_swallowed_exceptions_are_no_failure() -> None:
    ignored = PyException(at=where(), name="OSError", message="", swallowed=True)
    assert state_of(step(4), ignored) is State.HEALTHY


@pytest.mark.parametrize(("signal", "by"), [(2, EndedBy.USER), (1, EndedBy.USER), (15, None)])
def test_a_death_signal_tells_who_ended_it_only_for_terminals(
    signal: int, by: EndedBy | None
) -> None:
    ending = how_it_ended(join(traces(DeathSignal(at=where(), signal=signal))))
    assert (ending.state, ending.ended_by) == (State.FAILED, by)


def test_ctrl_c_is_the_persons_end() -> None:
    assert how_it_ended(join(traces(Interrupted(at=where())))).ended_by is EndedBy.USER


def test_workers_that_start_again_are_recovering_only_at_the_very_end() -> None:
    failed = ElasticFailure(at=where(order=1), exit_code=1)
    restart = WorkersRestart(at=where(order=2), left=2)
    more = where("a line", order=3)
    at_end = Source(name="train.log", last=restart.at)
    goes_on = Source(name="train.log", last=more)
    assert how_it_ended(join(traces(failed, restart, sources=[at_end]))).state is State.RECOVERING
    assert how_it_ended(join(traces(failed, restart, sources=[goes_on]))).state is State.FAILED
    none_left = WorkersRestart(at=where(order=2), left=0)
    assert how_it_ended(join(traces(failed, none_left, sources=[at_end]))).state is State.FAILED


def calls(
    *, moves: bool, collectives: int = 4, nranks: int = 2, op: str = "AllReduce", pid: int = 1
) -> CommCalls:
    return CommCalls(
        at=where(host="a", pid=pid),
        comm="0x1",
        nranks=nranks,
        collectives=collectives,
        last=(Call(op, 1, 7, 0, 0, collectives),),
        op_count_moves=moves,
    )


def test_calls_show_health_only_where_their_counter_moves() -> None:
    assert state_of(calls(moves=True)) is State.HEALTHY
    assert state_of(calls(moves=False)) is State.UNKNOWN
    assert state_of(calls(moves=False, nranks=1)) is State.HEALTHY


def test_processes_that_call_nothing_alike_show_no_health() -> None:
    reduces, gathers = calls(moves=True), calls(moves=True, op="AllGather", pid=2)
    assert state_of(reduces, gathers) is State.UNKNOWN
    assert state_of(reduces, calls(moves=True, pid=2)) is State.HEALTHY
