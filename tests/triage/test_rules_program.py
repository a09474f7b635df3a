"""The program's own failures, its exits and its closing: who is named, and who never."""

import pytest

from slurmtop.model.events.launch import ChildEnded, Crash, ElasticFailure, Interrupted
from slurmtop.model.events.nccl import CommInit, InitPhase
from slurmtop.model.events.program import Closing, ProgramSays, PyException, Step
from slurmtop.model.events.slurm import TaskExit
from slurmtop.model.events.torch import (
    CudaError,
    CudaTrouble,
    FailedStack,
    Heartbeat,
    NcclError,
    UnusedParameters,
)
from slurmtop.model.trace import Event
from slurmtop.model.verdict import State, Verdict
from slurmtop.triage.judge import OURSELVES, explain_traces
from tests.triage.traces import timed_out, traces, where


def verdict(*events: Event) -> Verdict:
    told = explain_traces(traces(*events))
    assert all(one.family != OURSELVES for one in told.missing)
    return told


def thrown(
    rank: int | None = None,
    name: str = "KeyError",
    message: str = "'x'",
    frames: tuple[str, ...] = ("train.py:41 in step",),
) -> PyException:
    at = where(f"{name}: {message}", rank=rank)
    return PyException(at=at, name=name, message=message, frames=frames)


def gone(rank: int) -> NcclError:
    return NcclError(at=where(rank=rank), result="ncclRemoteError")


def test_the_one_rank_that_threw_is_named_where_others_were_seen() -> None:
    told = verdict(thrown(3), gone(1), gone(2))
    assert (told.state, told.cls) == (State.FAILED, "python-exception")
    assert [c.rank for c in told.culprits] == [3]
    assert told.evidence[0].text == "KeyError: 'x'"


def test_an_exception_of_the_only_rank_that_speaks_names_nobody() -> None:
    told = verdict(thrown(0))
    assert (told.cls, told.culprits) == ("python-exception", ())


def test_other_ranks_that_only_print_do_not_make_the_one_that_threw_odd() -> None:
    assert verdict(thrown(3), Step(at=where(rank=0), done=1)).culprits == ()


def test_the_same_exception_on_several_ranks_names_nobody() -> None:
    told = verdict(thrown(3), thrown(6), gone(1))
    assert (told.cls, told.culprits) == ("python-exception", ())


def test_other_words_at_the_same_place_of_the_program_name_nobody() -> None:
    told = verdict(thrown(3), thrown(6, name="ValueError", message="other"), gone(1))
    assert told.culprits == ()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("torch.distributed.DistBackendError", "NCCL error in: …"),
        ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError", ""),
        ("BrokenPipeError", "[Errno 32] Broken pipe"),
        ("torch.distributed.elastic.multiprocessing.api.SignalException", "got signal: 15"),
        ("RuntimeError", "[1]: connection closed by peer"),
        ("SystemExit", "1"),
    ],
)
def test_an_exception_that_tells_of_another_process_is_no_cause(name: str, message: str) -> None:
    told = verdict(thrown(1, name, message), thrown(3), gone(2))
    assert [c.rank for c in told.culprits] == [3]
    assert verdict(thrown(1, name, message)).cls != "python-exception"


def test_an_exception_that_another_reader_knows_better_is_left_to_it() -> None:
    at = where("RuntimeError: CUDA error: device-side assert triggered", rank=2)
    exception = PyException(at=at, name="RuntimeError", message="CUDA error: …")
    error = CudaError(at=at, kind=CudaTrouble.ASSERT, text="device-side assert triggered")
    told = verdict(exception, error, gone(1))
    assert told.cls == "cuda-assert"
    assert [c.rank for c in told.culprits] == [2]


def test_the_cause_of_a_chain_is_shown_not_what_was_thrown_while_handling_it() -> None:
    cause = thrown(None, "FileNotFoundError", "data.json")
    at = where("RuntimeError: could not load")
    effect = PyException(at=at, name="RuntimeError", message="could not load", chain=1)
    assert "FileNotFoundError" in verdict(cause, effect).summary


def test_an_exception_before_a_timeout_is_its_cause() -> None:
    told = verdict(thrown(3), timed_out(0), timed_out(1))
    assert told.cls == "python-exception"
    assert [c.rank for c in told.culprits] == [3]


def test_unused_parameters_name_nobody() -> None:
    told = verdict(UnusedParameters(at=where(rank=1)), gone(0))
    assert (told.cls, told.culprits) == ("ddp-unused-parameters", ())


def task(host: str, code: int | None = None, signal: int | None = None, tasks: int = 1) -> TaskExit:
    at = where(f"srun: error: {host}: task 0: Exited with exit code {code}")
    return TaskExit(at=at, hosts=(host,), tasks=tuple(range(tasks)), exit_code=code, signal=signal)


def test_the_first_task_that_exits_is_named_by_its_host() -> None:
    told = verdict(task("n1", 1), task("n2", signal=15), task("n3", signal=9))
    assert (told.state, told.cls) == (State.FAILED, "task-exit")
    assert [(c.host, c.rank) for c in told.culprits] == [("n1", None)]


def test_a_later_exit_of_another_kind_is_a_victim_too() -> None:
    told = verdict(task("n1", signal=11), task("n2", 1), task("n3", 1))
    assert [c.host for c in told.culprits] == ["n1"]


def test_tasks_of_several_hosts_that_end_alike_name_nobody() -> None:
    assert verdict(task("n1", 1), task("n2", 1)).culprits == ()


def test_a_first_line_of_several_hosts_names_nobody() -> None:
    both = TaskExit(at=where(), hosts=("n1", "n2"), tasks=(0, 1), exit_code=1)
    told = verdict(both)
    assert (told.cls, told.culprits) == ("task-exit", ())


@pytest.mark.parametrize("signal", [15, 9, 6])
def test_a_task_that_was_sent_a_signal_is_never_named(signal: int) -> None:
    assert verdict(task("n1", signal=signal)).culprits == ()
    assert verdict(task("n1", 128 + signal)).culprits == ()


def test_exits_behind_a_timeout_are_its_effects() -> None:
    told = verdict(timed_out(4), task("n1", 1))
    assert told.culprits == ()


def test_a_task_is_a_rank_only_where_labels_show_it() -> None:
    labelled = [Step(at=where(rank=n, task=n), done=1) for n in range(3)]
    five = TaskExit(at=where(), hosts=("n1",), tasks=(5,), exit_code=1)
    rest = TaskExit(at=where(), hosts=("n1",), tasks=(0, 1), signal=15)
    assert [c.rank for c in verdict(five, rest, *labelled).culprits] == [5]
    other = Step(at=where(rank=9, task=3), done=1)
    assert [c.rank for c in verdict(five, rest, *labelled, other).culprits] == [None]
    assert verdict(five, *labelled).culprits == ()


def test_torchruns_table_names_nobody() -> None:
    told = verdict(ElasticFailure(at=where(), rank=3, host="n1", exit_code=1, first=True))
    assert (told.cls, told.culprits) == ("task-exit", ())


def test_mpiruns_first_crash_names_its_rank() -> None:
    told = verdict(ChildEnded(at=where(), signal=11, rank=3, node="n2"))
    assert [(c.rank, c.host) for c in told.culprits] == [(3, "n2")]
    assert verdict(ChildEnded(at=where(), signal=9, rank=3, node="n2")).culprits == ()


def test_a_crash_names_its_host_where_nobody_else_crashed_alike() -> None:
    def crash(host: str) -> Crash:
        return Crash(at=where(host=host), signal=11, text="Caught signal 11")

    alone = verdict(crash("n3"), task("n3", signal=11), task("n1", 1))
    assert (alone.cls, [c.host for c in alone.culprits]) == ("task-exit", ["n3"])
    assert verdict(crash("n3"), crash("n4")).culprits == ()


def test_an_abort_names_nobody() -> None:
    abort = Crash(at=where(host="n3"), signal=None, text="terminate called after throwing")
    assert verdict(abort, task("n1", 1)).culprits == ()


def test_a_timeout_in_destroy_after_the_work_is_a_teardown_hang() -> None:
    done = ProgramSays(at=where(), closing=Closing.FINISHED)
    stack = FailedStack(at=where(), frames=("destroy_process_group at distributed_c10d.py:2100",))
    told = verdict(done, timed_out(0), stack)
    assert told.cls == "teardown-hang"
    assert told.culprits == ()


def test_ctrl_c_in_a_closing_that_hangs_is_not_why() -> None:
    done = ProgramSays(at=where(), closing=Closing.FINISHED)
    typed = Interrupted(at=where("^C"))
    frames = ("destroy_process_group at distributed_c10d.py:2100",)
    stopped = PyException(at=where(), name="KeyboardInterrupt", message="", frames=frames)
    assert verdict(done, typed, stopped).cls == "teardown-hang"
    assert verdict(typed, stopped).cls == "user-interrupt"


def test_a_wild_access_names_its_rank_where_the_others_only_lost_it() -> None:
    at = where("RuntimeError: CUDA error: an illegal memory access", rank=2)
    error = CudaError(at=at, kind=CudaTrouble.ILLEGAL, text="an illegal memory access")
    told = verdict(error, gone(0))
    assert (told.cls, [c.rank for c in told.culprits]) == ("cuda-assert", [2])


def test_a_heartbeat_behind_destroyed_communicators_is_a_teardown_hang() -> None:
    closed = CommInit(at=where(), phase=InitPhase.ABORTED, comm="0x1", rank=0, nranks=2)
    assert verdict(closed, Heartbeat(at=where(), seconds=480)).cls == "teardown-hang"


def test_a_timeout_after_the_work_alone_is_no_teardown_hang() -> None:
    done = ProgramSays(at=where(), closing=Closing.FINISHED)
    assert verdict(done, timed_out(0)).cls != "teardown-hang"


def test_a_crash_in_nccls_ras_thread_is_its_bug() -> None:
    crash = Crash(at=where(), signal=11, text="rasCollsPurge()", in_nccl=True)
    assert verdict(crash).cls == "nccl-bug"
    other = Crash(at=where(), signal=11, text="ncclGroupEnd()", in_nccl=True)
    assert verdict(other).cls != "nccl-bug"
