"""Logs of one job on their way to the judge: which bytes, of which run, and who is silent."""

import dataclasses
from collections.abc import Sequence
from datetime import timedelta

import pytest

from slurmtop.collect.facts import gather_job_facts
from slurmtop.collect.judging import judge_again
from slurmtop.collect.log_pool import ReaderLost
from slurmtop.collect.log_spans import END_BYTES
from slurmtop.collect.log_verdict import LogBytes, Runs, judge_beside, judge_here
from slurmtop.model.facts import JobFacts, LogsSay
from slurmtop.model.verdict import State
from tests.build import make_job
from tests.collect.slurm_forms import MARK
from tests.collect.test_facts import block
from tests.fakes import FakeRunner, settle

LOG = "/w/slurm-4711.out"
RAISED = (
    b"step 1/60 loss=2.5\n[rank2]: Traceback (most recent call last):\n"
    b'[rank2]:   File "/w/train.py", line 41, in step\n'
    b"[rank2]: ValueError: shard data-02 is empty\n"
    b"srun: error: gpu03: task 2: Exited with exit code 1\n"
)
REQUEUED = (
    b"slurmstepd: error: *** JOB 4711 ON gpu01 CANCELLED AT 2031-05-05T10:00:00"
    b" DUE TO JOB REQUEUE ***\n"
)


class Judge:
    """Keeps what it was given, and judges it in this process."""

    def __init__(self, error: Exception | None = None) -> None:
        self.given: list[tuple[Sequence[LogBytes], Runs]] = []
        self.error = error

    async def __call__(self, logs: Sequence[LogBytes], runs: Runs) -> LogsSay | None:
        self.given.append((logs, runs))
        if self.error is not None:
            raise self.error
        return await judge_here(logs, runs)


@pytest.fixture
def runner() -> FakeRunner:
    made = FakeRunner()
    made.on("scontrol*show job*", block(state="FAILED", exit="1:0"))
    made.on("sacct*", "")
    made.files[LOG] = RAISED
    return made


async def gather(runner: FakeRunner, judge: Judge, **job: object) -> JobFacts:
    given = {"state": "FAILED", "nodes": "gpu01", "stdout": LOG, "stderr": LOG} | job
    return await gather_job_facts(
        runner,
        runner.clock,
        "4711",
        mark=MARK,
        job=make_job("4711", **given),  # type: ignore[arg-type]
        judge_logs=judge,
    )


async def test_the_logs_of_a_failed_job_are_judged(runner: FakeRunner) -> None:
    judge = Judge()
    facts = await gather(runner, judge)
    assert facts.logs_say is not None
    assert facts.logs_say.verdict.cls == "python-exception"
    ((log,), runs) = judge.given[0]
    assert (log.path, log.parts, runs.ids) == (LOG, ((0, RAISED),), frozenset())
    assert facts.missing == ()


async def test_of_a_long_log_the_judge_is_given_both_ends(runner: FakeRunner) -> None:
    judge = Judge()
    size = 3 * END_BYTES
    runner.files[LOG] = b"step 1/60 loss=2.5\n" * (size // 19 + 1)
    await gather(runner, judge)
    (log,) = judge.given[0][0]
    (at, head), (tail_at, tail) = log.parts
    assert (at, len(head), len(tail)) == (0, END_BYTES, END_BYTES)
    assert tail_at + len(tail) == log.size
    reads = [call for call in runner.reads if call[0] == LOG]
    assert len(reads) == 2, "what is shown and what is judged come from the same reads"


async def test_nobody_judges_what_nobody_asked_for(runner: FakeRunner) -> None:
    facts = await gather_job_facts(runner, runner.clock, "4711", mark=MARK, job=make_job("4711"))
    assert facts.logs_say is None


async def test_a_waiting_job_has_no_log_to_judge(runner: FakeRunner) -> None:
    judge = Judge()
    facts = await gather(runner, judge, state="PENDING", restarts=1)
    assert (facts.logs_say, judge.given) == (None, [])


async def test_a_log_of_before_its_start_is_not_judged(runner: FakeRunner) -> None:
    judge = Judge()
    later = runner.clock.now() + timedelta(hours=2)
    facts = await gather(runner, judge, start=later)
    assert (facts.logs_say, judge.given) == (None, [])


async def test_what_an_earlier_run_left_is_history(runner: FakeRunner) -> None:
    runner.files[LOG] = RAISED + REQUEUED + b"step 1/60 loss=2.5\nstep 2/60 loss=2.4\n"
    judge = Judge()
    facts = await gather(runner, judge, state="RUNNING", restarts=1)
    assert judge.given[0][1].ids == {"4711"}
    assert facts.logs_say is not None
    assert facts.logs_say.verdict.state is State.HEALTHY
    assert facts.logs_say.only_newest


async def test_a_judge_that_is_lost_is_told(runner: FakeRunner) -> None:
    facts = await gather(runner, Judge(ReaderLost("the process that reads logs ended")))
    assert facts.logs_say is None
    (told,) = facts.missing
    assert told.why == "Its logs were not judged: the process that reads logs ended."
    assert told.command == f"slurmtop triage {LOG}"


async def test_logs_can_be_judged_again(runner: FakeRunner) -> None:
    judge = Judge()
    facts = await gather(runner, judge)
    runner.files[LOG] = b"step 1/60 loss=2.5\nstep 2/60 loss=2.4\n"
    said = await judge_again(runner, runner.clock, facts, judge)
    assert said is not None
    assert said.verdict.state is State.HEALTHY
    lost = Judge(ReaderLost("gone"))
    assert await judge_again(runner, runner.clock, facts, lost) is None
    nothing = dataclasses.replace(facts, logs=())
    assert await judge_again(runner, runner.clock, nothing, judge) is None


async def test_another_process_says_the_same_as_this_one() -> None:
    log = LogBytes(path=LOG, size=len(RAISED), year=2031, parts=((0, RAISED),))
    runs = Runs(ids=frozenset({"4711"}))
    beside = await judge_beside((log,), runs)
    assert beside == await judge_here((log,), runs)
    assert beside is not None
    assert not beside.only_newest, "nothing tells where the newest run began"


async def test_judging_that_is_given_up_leaves_no_process(runner: FakeRunner) -> None:
    from slurmtop.collect.clock import cancel_and_wait, spawn

    log = LogBytes(path=LOG, size=len(RAISED), year=2031, parts=((0, RAISED),))
    task = spawn(judge_beside((log,), Runs()), name="judging")
    await settle()
    await cancel_and_wait(task)
    assert task.cancelled()
