"""Trying every source once: what is asked, how often, and what a refusal costs."""

import asyncio

import pytest

from slurmtop.collect.doctor import (
    COMMAND_LIMIT_S,
    HurriedRunner,
    ask_slurm,
    newest_first,
    try_logs,
    try_ways,
)
from slurmtop.collect.metered import controller_calls
from slurmtop.collect.nodes.access import NAME
from slurmtop.collect.nodes.stack_tools import tool_words
from slurmtop.collect.who import Who
from slurmtop.model.ports import Command, Completed, FileTimeout, NodeUnreachable
from slurmtop.model.reach import Way
from slurmtop.model.snapshot import Failure, Trouble
from tests.build import make_job
from tests.collect.slurm_forms import MARK, queue_record
from tests.fakes import START, FakeClock, FakeRunner, settle

ANNA = Who(1001, "anna")
ANSWER = "user\t1001 anna\nprocesses\t4 0 2\nend\t1\n"
DENIED = Failure(Trouble.DENIED, "gpu01 refused every key of anna: ask the site.")


def cluster(jobs: bytes) -> FakeRunner:
    runner = FakeRunner()
    runner.on("squeue *", jobs)
    runner.on("scontrol*show config", "ClusterName = mini\nPrivateData = jobs\n")
    runner.on("scontrol*show job *", "JobId=4711 JobName=train\n   JobState=RUNNING\n")
    runner.on("scontrol*write batch_script *", "#!/bin/sh\n")
    runner.on("sacctmgr *", "anna|ml|None|\n")
    runner.on("sacct *", "")
    runner.on("scancel --version", "slurm 23.11.4\n")
    return runner


async def test_every_question_is_asked_once_and_bounded_in_time() -> None:
    runner = cluster(queue_record())
    asked = await ask_slurm(HurriedRunner(runner), runner.clock, ANNA, mark=MARK)
    assert asked.jobs is not None
    assert [job.id.text for job in asked.jobs] == [asked.slurm.job]
    assert asked.slurm.queue is None
    assert asked.slurm.private_data == ("jobs",)
    assert asked.slurm.operator in (None, False)
    assert asked.slurm.script is None
    assert asked.slurm.sends_many
    argvs = [call.argv for call in runner.calls]
    assert len(argvs) == len(set(argvs))
    assert {argv[0] for argv in argvs} == {"squeue", "scontrol", "sacctmgr", "sacct", "scancel"}
    assert all(call.timeout_s <= COMMAND_LIMIT_S for call in runner.calls)
    assert sum(map(controller_calls, argvs)) <= 10


async def test_without_a_job_nothing_is_asked_about_one() -> None:
    runner = cluster(b"")
    asked = await ask_slurm(HurriedRunner(runner), runner.clock, ANNA, mark=MARK)
    assert asked.jobs == ()
    assert asked.slurm.job == ""
    assert not [call for call in runner.calls if "job" in call.argv or "write" in call.argv]


async def test_a_silent_controller_is_no_empty_queue() -> None:
    runner = cluster(b"")
    words = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    runner.on("squeue *", rc=1, stderr=words)
    runner.on("scontrol *", rc=1, stderr=words)
    asked = await ask_slurm(HurriedRunner(runner), runner.clock, ANNA, mark=MARK)
    assert asked.jobs is None
    assert asked.slurm.queue is not None
    assert asked.slurm.config is not None
    assert asked.slurm.queue.trouble is Trouble.DOWN


def test_running_jobs_with_gpus_come_first() -> None:
    jobs = [
        make_job("1", "PENDING"),
        make_job("2", "COMPLETED"),
        make_job("3", gpus=0),
        make_job("4", gpus=8),
        make_job("5", gpus=8),
    ]
    assert [job.id.text for job in newest_first(jobs)] == ["5", "4", "3", "2", "1"]


async def test_logs() -> None:
    runner = FakeRunner()
    runner.files = {
        "/w/1.out": b"text",
        "/w/2.out": PermissionError(13, "Permission denied"),
        "/w/3.out": FileTimeout("/w/3.out: the file system did not answer within 5 s."),
    }
    jobs = [make_job(str(number), stdout=f"/w/{number}.out") for number in (1, 2, 3, 4)]
    found = await try_logs(runner, [make_job("9", "PENDING"), *jobs])
    assert [(one.job, one.readable) for one in found] == [("1", True), ("2", False), ("3", False)]
    assert [(one.denied, one.hangs) for one in found[1:]] == [(True, False), (False, True)]
    assert found[1].why == "this user may not read it"
    assert "did not answer" in found[2].why
    assert runner.reads == [("/w/1.out", 0, 1)]
    (gone,) = await try_logs(runner, [jobs[3]])
    assert (gone.denied, gone.why) == (False, "there is no such file")
    (untold,) = await try_logs(runner, [make_job("8", stdout=None)])
    assert untold.path is None


def node(clock: FakeClock, answer: Completed | Exception) -> FakeRunner:
    runner = FakeRunner(clock)
    runner.on_call("*", answer)
    return runner


def said(stdout: str, rc: int | None = 0, stderr: str = "") -> Completed:
    return Completed(rc, stdout.encode(), stderr.encode(), START, 0.5)


async def test_each_way_is_tried_once_and_srun_on_one_node_only() -> None:
    clock = FakeClock()
    ways = {
        Way.SSH: node(clock, NodeUnreachable("gpu01", DENIED)),
        Way.OPENSSH: node(clock, said(ANSWER)),
        Way.SRUN: node(clock, said(ANSWER)),
    }
    tried = await try_ways(ways, clock, ("gpu01", "gpu02"), job="4711", timeout_s=10.0)
    assert [(one.host, one.way) for one in tried] == [
        ("gpu01", Way.SSH),
        ("gpu01", Way.OPENSSH),
        ("gpu01", Way.SRUN),
        ("gpu02", Way.SSH),
        ("gpu02", Way.OPENSSH),
    ]
    assert tried[0].failure == DENIED
    assert tried[1].access is not None
    assert tried[1].access.job_processes == 2
    for runner in ways.values():
        for call in runner.calls:
            assert call.argv[:2] == ("/bin/sh", "-c")
            assert call.argv[3:] == (NAME, "4711", *tool_words())
            assert call.timeout_s == 10.0
    assert len(ways[Way.SRUN].calls) == 1


async def test_without_a_job_srun_is_not_tried() -> None:
    clock = FakeClock()
    ways = {Way.SRUN: node(clock, said(ANSWER))}
    assert await try_ways(ways, clock, ("gpu01",), timeout_s=10.0) == ()
    assert ways[Way.SRUN].calls == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (said("user\t1 a\n", rc=None), "did not end in 10 s"),
        (said("This account is currently not available.\n", rc=1), "runs no plain commands"),
        (said("", rc=127, stderr="sh: not found"), "exit 127"),
    ],
)
async def test_a_login_that_runs_nothing_is_told_from_one_that_fails(
    answer: Completed, words: str
) -> None:
    clock = FakeClock()
    (tried,) = await try_ways(
        {Way.SSH: node(clock, answer)}, clock, ("gpu01",), job="1", timeout_s=10.0
    )
    assert tried.access is None
    assert tried.failure is not None
    assert words in tried.failure.sentence


async def test_a_way_that_hangs_is_left_after_its_time() -> None:
    clock = FakeClock()
    runner = node(clock, said(ANSWER))
    runner.gate = asyncio.Event()
    work = asyncio.ensure_future(
        try_ways({Way.SSH: runner}, clock, ("gpu01",), job="1", timeout_s=10.0)
    )
    await settle()
    await clock.advance(10.0)
    (tried,) = await work
    assert tried.failure is not None
    assert tried.failure.sentence == "gpu01 did not let us in and answer within 10 s."


async def test_the_same_question_costs_one_call() -> None:
    runner = FakeRunner()
    runner.on("scontrol *", "x")
    hurried = HurriedRunner(runner)
    for _ in range(2):
        await hurried.run(Command(("scontrol", "show", "config")))
    assert len(runner.calls) == 1
