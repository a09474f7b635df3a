"""Earlier runs of restarted jobs: real rows of ``sacct -D`` and the logs that belong to them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect.runs import read_looping
from slurmtop.collect.sacct import Accounting
from slurmtop.model.job import Job
from slurmtop.model.ports import RunnerError
from slurmtop.model.text import visible
from slurmtop.parse.slurm.sacct import SACCT_FIELDS
from tests.build import make_job
from tests.collect.slurm_forms import MARK, SACCT_SEPARATOR
from tests.fakes import FakeRunner

NAMES = [name for name, _ in SACCT_FIELDS]
ASKED = ("JobID", "State", "ExitCode", "DerivedExitCode", "Submit", "Start", "End", "ElapsedRaw")

#: Slurm 22.05.8. Job 28 failed by itself and was requeued by hand three times.
BY_HAND = """
28|REQUEUED|1:0|1:0|2026-11-30T16:06:08|2026-11-30T16:06:09|2026-11-30T16:06:11|2
28.batch|FAILED|1:0||2026-11-30T16:06:09|2026-11-30T16:06:09|2026-11-30T16:06:09|0
28.0|FAILED|1:0||2026-11-30T16:06:09|2026-11-30T16:06:09|2026-11-30T16:06:09|0
28|REQUEUED|1:0|1:0|2026-11-30T16:06:11|2026-11-30T16:06:30|2026-11-30T16:06:33|3
28.batch|FAILED|1:0||2026-11-30T16:06:30|2026-11-30T16:06:30|2026-11-30T16:06:30|0
28.0|FAILED|1:0||2026-11-30T16:06:30|2026-11-30T16:06:30|2026-11-30T16:06:30|0
28|REQUEUED|1:0|1:0|2026-11-30T16:06:33|2026-11-30T16:06:50|2026-11-30T16:06:51|1
28.batch|FAILED|1:0||2026-11-30T16:06:50|2026-11-30T16:06:50|2026-11-30T16:06:50|0
28.0|FAILED|1:0||2026-11-30T16:06:50|2026-11-30T16:06:50|2026-11-30T16:06:50|0
28|FAILED|1:0|1:0|2026-11-30T16:06:51|2026-11-30T16:07:07|2026-11-30T16:07:08|1
28.batch|FAILED|1:0||2026-11-30T16:07:07|2026-11-30T16:07:07|2026-11-30T16:07:08|1
28.0|FAILED|1:0||2026-11-30T16:07:07|2026-11-30T16:07:07|2026-11-30T16:07:08|1
"""
#: Job 30 requeued itself each time that its step had failed.
BY_ITSELF = """
30|REQUEUED|0:0|1:0|2026-11-30T16:06:08|2026-11-30T16:06:09|2026-11-30T16:06:14|5
30.batch|CANCELLED|0:15||2026-11-30T16:06:09|2026-11-30T16:06:09|2026-11-30T16:06:14|5
30.0|FAILED|1:0||2026-11-30T16:06:09|2026-11-30T16:06:09|2026-11-30T16:06:14|5
30|REQUEUED|0:0|1:0|2026-11-30T16:06:14|2026-11-30T16:06:30|2026-11-30T16:06:35|5
30.batch|CANCELLED|0:15||2026-11-30T16:06:30|2026-11-30T16:06:30|2026-11-30T16:06:35|5
30.0|FAILED|1:0||2026-11-30T16:06:30|2026-11-30T16:06:30|2026-11-30T16:06:35|5
30|REQUEUED|0:0|1:0|2026-11-30T16:06:35|2026-11-30T16:06:51|2026-11-30T16:06:56|5
30.batch|CANCELLED|0:15||2026-11-30T16:06:51|2026-11-30T16:06:51|2026-11-30T16:06:56|5
30.0|FAILED|1:0||2026-11-30T16:06:51|2026-11-30T16:06:51|2026-11-30T16:06:56|5
30|PENDING|0:0|0:0|2026-11-30T16:06:56|Unknown|Unknown|0
"""
#: Job 31 was requeued by a person while it ran.
BY_A_PERSON = """
31|REQUEUED|0:0|0:0|2026-11-30T16:06:08|2026-11-30T16:06:09|2026-11-30T16:06:11|2
31.batch|CANCELLED|0:15||2026-11-30T16:06:09|2026-11-30T16:06:09|2026-11-30T16:06:11|2
31.0|CANCELLED|0:15||2026-11-30T16:06:09|2026-11-30T16:06:09|2026-11-30T16:06:12|3
31|REQUEUED|0:0|0:15|2026-11-30T16:06:12|2026-11-30T16:06:30|2026-11-30T16:06:33|3
31.batch|CANCELLED|0:15||2026-11-30T16:06:30|2026-11-30T16:06:30|2026-11-30T16:06:33|3
31.0|CANCELLED|0:15||2026-11-30T16:06:30|2026-11-30T16:06:30|2026-11-30T16:06:33|3
31|REQUEUED|0:0|0:15|2026-11-30T16:06:33|2026-11-30T16:06:50|2026-11-30T16:06:51|1
31.batch|CANCELLED|0:15||2026-11-30T16:06:50|2026-11-30T16:06:50|2026-11-30T16:06:51|1
31.0|CANCELLED|0:15||2026-11-30T16:06:50|2026-11-30T16:06:50|2026-11-30T16:06:51|1
31|RUNNING|0:0|0:0|2026-11-30T16:06:51|2026-11-30T16:07:07|Unknown|48
31.0|RUNNING|0:0||2026-11-30T16:07:07|2026-11-30T16:07:07|Unknown|48
"""
WORD = "slurmstepd-gpu01: error: *** JOB {job} ON gpu01 CANCELLED AT 2026-11-30T{at} DUE TO JOB {why} ***"  # noqa: E501


def rows(table: str) -> bytes:
    """The table in the form that we ask for; fields that were not asked for are empty."""
    out = []
    for line in table.strip().splitlines():
        given = dict(zip(ASKED, line.split("|"), strict=True))
        given |= {"JobIDRaw": given["JobID"], "JobName": "loop"}
        out.append(SACCT_SEPARATOR.join(given.get(name, "") for name in NAMES))
    return "".join(f"{line}\n" for line in out).encode()


def run_log(job: str, at: str, *said: str) -> str:
    lines = ("start", *said, WORD.format(job=job, at=at, why="REQUEUE"))
    return "".join(f"{line}\n" for line in lines)


def own_requeues(*errors: str) -> str:
    times = ("16:06:14", "16:06:35", "16:06:56")
    end = "srun: error: gpu01: task 1: Exited with exit code 1"
    return "".join(run_log("30", at, error, end) for at, error in zip(times, errors, strict=True))


def runner_for(table: str, log: str | bytes | Exception, path: str = "/w/b-30.log") -> FakeRunner:
    runner = FakeRunner()
    runner.on("sacct*", rows(table))
    runner.files[path] = log.encode() if isinstance(log, str) else log
    return runner


async def read(runner: FakeRunner, job: Job, **given: Any) -> str | None:
    return await read_looping(runner, runner.clock, Accounting(runner, mark=MARK), job, **given)


def job(number: str, state: str, **given: Any) -> Job:
    given = {"restarts": 3, "workdir": "/w", "stdout": f"/w/b-{number}.log"} | given
    return make_job(number, state, **given)


async def test_a_job_that_requeues_itself_after_the_same_error_loops() -> None:
    log = own_requeues(*(f"RuntimeError: boom at 0x{n}" for n in (31474, 31511, 31795)))
    runner = runner_for(BY_ITSELF, log)
    assert await read(runner, job("30", "PENDING")) == (
        "looping: restarted 3 times, each of the last 3 runs ended with the same error, after 5 s:"
        " RuntimeError: boom at 0x31795"
    )
    (call,) = runner.calls
    assert "-D" in call.argv
    assert call.argv[call.argv.index("-j") + 1] == "30"


async def test_different_errors_are_no_loop() -> None:
    log = own_requeues("RuntimeError: boom", "RuntimeError: boom", "KeyError: 'x'")
    assert await read(runner_for(BY_ITSELF, log), job("30", "PENDING")) is None


async def test_what_a_script_shrugs_off_at_its_start_is_not_how_it_ended() -> None:
    harmless = "bash: module: command not found\nstep 10/100 loss 2.1"
    log = own_requeues(*(f"{harmless}\n{error}" for error in ("KeyError: 1", "OSError: 2", "Xid")))
    assert await read(runner_for(BY_ITSELF, log), job("30", "PENDING")) is None
    log = own_requeues(*(f"{harmless}\nKeyError: 'k{n}'" for n in range(3)))
    told = await read(runner_for(BY_ITSELF, log), job("30", "PENDING"))
    assert told is not None
    assert told.endswith("KeyError: 'k2'")


async def test_a_job_that_gets_further_each_time_is_no_loop() -> None:
    log = own_requeues(*(f"step {n}00/900 loss 2\nKeyError: 'x'" for n in (1, 2, 3)))
    assert await read(runner_for(BY_ITSELF, log), job("30", "PENDING")) is None


async def test_errors_that_only_report_an_end_prove_nothing() -> None:
    log = own_requeues(*["torch.distributed.DistBackendError: NCCL error"] * 3)
    told = await read(runner_for(BY_ITSELF, log), job("30", "PENDING"))
    assert told is not None
    assert "it seems" in told
    assert "NCCL" not in told


async def test_failures_requeued_by_hand_are_told_by_their_exit_codes() -> None:
    log = "".join(f"start\nRuntimeError: boom at 0x{n}\n" for n in range(4))
    runner = runner_for(BY_HAND, log, "/w/b-28.log")
    assert await read(runner, job("28", "FAILED")) == (
        "looping: restarted 3 times, it seems: each of the last 4 runs ended the same way (exit 1,"
        " after 0 s to 1 s), but what the earlier ones wrote cannot be told; the error in its log:"
        " RuntimeError: boom at 0x0"
    )


async def test_what_was_said_at_earlier_requeues_counts() -> None:
    runner = runner_for(BY_HAND, "start\nRuntimeError: boom at 0x7\n", "/w/b-28.log")
    unsure = await read(runner, job("28", "FAILED"), told=["RuntimeError: boom at 0x1"] * 2)
    assert unsure is not None
    assert "it seems" in unsure, "the log may be of any run"


async def test_requeues_by_a_person_are_no_loop_and_cost_no_look_at_the_log() -> None:
    log = "".join(run_log("31", at, "RuntimeError: x") for at in ("16:06:11", "16:06:33"))
    runner = runner_for(BY_A_PERSON, log, "/w/b-31.log")
    assert await read(runner, job("31", "RUNNING")) is None
    assert runner.reads == []


@pytest.mark.parametrize("word", ["NODE_FAIL", "PREEMPTED", "TIMEOUT", "CANCELLED by 0"])
async def test_what_ended_it_from_outside_is_no_failure_of_its_own(word: str) -> None:
    log = own_requeues(*["RuntimeError: boom"] * 3)
    table = BY_ITSELF.replace("30|REQUEUED", f"30|{word}")
    assert await read(runner_for(table, log), job("30", "PENDING")) is None


@pytest.mark.parametrize("given", [{"restarts": 2}, {"restarts": 0}, {"restarts": None}])
async def test_few_restarts_cost_nothing(given: dict[str, Any]) -> None:
    runner = runner_for(BY_ITSELF, own_requeues(*["RuntimeError: boom"] * 3))
    assert await read(runner, job("30", "PENDING", **given)) is None
    assert runner.calls == []


async def test_the_waiting_rest_of_an_array_and_a_missing_accounting_are_not_asked() -> None:
    runner = runner_for(BY_ITSELF, "")
    assert await read(runner, job("30_[1-3]", "PENDING")) is None
    assert await read_looping(runner, runner.clock, None, job("30", "PENDING")) is None
    assert runner.calls == []


async def test_an_earlier_job_with_the_same_id_is_left_out() -> None:
    older = BY_ITSELF.strip().splitlines()[:9]
    long_ago = "\n".join(line.replace("2026-11", "2021-03") for line in older)
    log = own_requeues("RuntimeError: boom", "RuntimeError: boom", "RuntimeError: boom")
    told = await read(runner_for(f"{long_ago}\n{BY_ITSELF.strip()}", log), job("30", "PENDING"))
    assert told is not None
    assert "each of the last 3 runs ended with" in told


async def test_errors_are_looked_for_where_they_go_to() -> None:
    runner = runner_for(BY_ITSELF, own_requeues(*["RuntimeError: boom"] * 3), "/w/30.err")
    runner.files["/w/30.out"] = b"KeyError: never mind\n"
    waiting = job("30", "PENDING", stdout="/w/30.out", stderr="/w/30.err")
    told = await read(runner, waiting)
    assert told is not None
    assert told.endswith("RuntimeError: boom")


async def test_a_record_without_paths_has_them_asked_for() -> None:
    runner = runner_for(BY_ITSELF, own_requeues(*["RuntimeError: boom"] * 3))
    block = (
        "JobId=30 JobName=loop\n   UserId=anna(1001) GroupId=anna(1001) MCS_label=N/A\n"
        "   JobState=PENDING Reason=BeginTime Dependency=(null)\n   WorkDir=/w\n"
        "   StdErr=/w/b-30.log\n   StdIn=/dev/null\n   StdOut=/w/b-30.log\n   \n\n"
    )
    runner.on("scontrol *", block)
    bare = job("30", "PENDING", stdout=None, workdir=None)
    told = await read(runner, bare)
    assert told is not None
    assert "each of the last 3 runs ended with the same error" in told
    runner.on("scontrol *", rc=1, stderr="slurm_load_jobs error: Invalid job id specified\n")
    told = await read(runner, bare)
    assert told is not None
    assert "it seems" in told


async def test_a_long_log_is_read_from_its_end_and_only_so_far() -> None:
    filler = "loss is fine and all is well\n" * 40_000
    log = own_requeues(*[f"{filler}RuntimeError: boom"] * 3)
    runner = runner_for(BY_ITSELF, log)
    told = await read(runner, job("30", "PENDING"))
    assert told is not None
    assert "each of the last 3 runs ended with the same error" in told
    huge = runner_for(BY_ITSELF, b"x\n" * 4_000_000 + log.encode())
    told = await read(huge, job("30", "PENDING"))
    assert told is not None
    assert "it seems" in told, "where the first run began was not read"
    assert sum(length for _, _, length in huge.reads) <= 4 * 1024 * 1024


@pytest.mark.parametrize(
    "trouble",
    [PermissionError(13, "no"), FileNotFoundError(2, "no"), RunnerError("no"), OSError(5, "no")],
)
async def test_a_log_that_cannot_be_read_leaves_the_exit_codes(trouble: Exception) -> None:
    told = await read(runner_for(BY_ITSELF, trouble), job("30", "PENDING"))
    assert told is not None
    assert "it seems" in told


async def test_silence_of_accounting_is_no_loop() -> None:
    runner = runner_for(BY_ITSELF, "")
    runner.on("sacct*", b"", rc=1, stderr=b"sacct: error: Problem talking to the database\n")
    assert await read(runner, job("30", "PENDING")) is None
    runner.on_call("sacct*", RunnerError("no such program"))
    assert await read(runner, job("30", "PENDING")) is None
    runner.on("sacct*", b"")
    assert await read(runner, job("30", "PENDING")) is None


async def test_hostile_errors_are_harmless() -> None:
    log = own_requeues(*["RuntimeError: \x1b]0;x\x07\u202eboom"] * 3)
    told = await read(runner_for(BY_ITSELF, log), job("30", "PENDING"))
    assert told is not None
    assert told.isprintable()


@given(log=st.binary(max_size=200), table=st.binary(max_size=200))
async def test_any_bytes_are_no_exception(log: bytes, table: bytes) -> None:
    runner = runner_for(BY_ITSELF, log)
    told = await read(runner, job("30", "PENDING"))
    assert told is None or visible(told) == told
    runner.on("sacct*", table)
    assert await read(runner, job("30", "PENDING")) is None
