"""Collect against a real Slurm: what it asks is understood, and costs what it says."""

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

from slurmtop.collect.asking import new_record_mark
from slurmtop.collect.batch_script import read_batch_script
from slurmtop.collect.clock import SystemClock
from slurmtop.collect.cluster_info import read_cluster_info
from slurmtop.collect.facts import gather_job_facts
from slurmtop.collect.local import LocalRunner
from slurmtop.collect.metered import MeteredRunner
from slurmtop.collect.poller import Poller
from slurmtop.collect.sacct import Accounting
from slurmtop.collect.scontrol import fetch_job_detail
from slurmtop.collect.sinfo import NodeSource
from slurmtop.collect.squeue import QueueAnswer, QueueSource, fetch_expected_start
from slurmtop.collect.who import current_user
from slurmtop.model.facts import JobFacts, LogStatus
from slurmtop.model.job import Job, Phase
from slurmtop.model.script import ScriptStatus
from slurmtop.model.snapshot import Snapshot, Trouble
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster

pytestmark = pytest.mark.cluster

HOSTILE = "x JobState=COMPLETED\n   JobState=FAILED Reason=None\x1f|\x1e\x1b[2J [red]\u202e"


@dataclass
class Bench:
    cluster: Cluster
    runner: MeteredRunner
    clock: SystemClock

    def queue(self, **options: object) -> QueueSource:
        return QueueSource(self.runner, self.clock, **options)  # type: ignore[arg-type]

    async def job(self, id: str) -> Job:
        rows = (await self.queue().fetch()).rows
        return next(job for job in rows if job.key.id == id)

    async def facts(self, asked: str, **options: object) -> JobFacts:
        return await gather_job_facts(
            self.runner,
            self.clock,
            asked,
            mark=new_record_mark(),
            accounting=Accounting(self.runner),
            me=current_user(),
            **options,  # type: ignore[arg-type]
        )


@pytest.fixture
async def bench(cluster: Cluster) -> AsyncIterator[Bench]:
    clock = SystemClock()
    async with LocalRunner(clock, os.environ) as inner:
        yield Bench(cluster, MeteredRunner(inner, clock), clock)


@pytest.fixture(autouse=True)
def no_jobs_left(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.cancel_all()


def submit(cluster: Cluster, command: str, **options: str | int | bool) -> str:
    return cluster.submit(command, **options)


async def test_own_jobs_with_hostile_names_are_read_whole(bench: Bench) -> None:
    id = submit(bench.cluster, "sleep 600", job_name=HOSTILE, comment="a\n\x1fb", hold=True)
    answer = await bench.queue().fetch()
    job = next(job for job in answer.rows if job.key.id == id)
    assert answer.bad == 0
    assert job.state.word == "PENDING"
    assert job.user == bench.cluster.user
    assert job.name_unsure, "our separator in two texts: which is whose cannot be told"
    assert job.workdir is None
    assert job.submit is not None
    assert abs((bench.clock.now() - job.submit).total_seconds()) < 120
    (detail,) = await fetch_job_detail(bench.runner, id, names={id: job.name})
    assert detail.job.state.word == "PENDING"
    again = await bench.queue().fetch()
    assert next(job for job in again.rows if job.key.id == id) == job


async def test_a_name_of_several_lines_is_read_as_it_is(bench: Bench) -> None:
    name = "two\nlines |\x1e\x1b[2J [red]\u202e"
    id = submit(bench.cluster, "sleep 600", job_name=name, hold=True)
    job = await bench.job(id)
    assert (job.name, job.workdir) == (name, str(bench.cluster.dir))


async def test_an_unchanged_queue_gives_the_same_objects(bench: Bench) -> None:
    ids = [submit(bench.cluster, "sleep 600", hold=True) for _ in range(3)]
    source = bench.queue()
    first = await source.fetch()
    second = await source.fetch()
    mine = {job.key.id: job for job in first.rows}
    assert second.reused == len(second.rows)
    assert all(job is mine[job.key.id] for job in second.rows if job.key.id in ids)


async def test_the_meter_counts_what_the_controller_counted(bench: Bench, faults: Faults) -> None:
    cluster = bench.cluster
    id = submit(cluster, "sleep 600", hold=True)
    accounting = Accounting(bench.runner)
    job = await bench.job(id)
    asked = (
        bench.queue().fetch,
        bench.queue(all_users=True).fetch,
        bench.queue(job_id=id).fetch,
        lambda: fetch_expected_start(bench.runner, id),
        lambda: fetch_job_detail(bench.runner, id),
        lambda: read_batch_script(bench.runner, id),
        lambda: read_cluster_info(bench.runner),
        NodeSource(bench.runner).fetch,
        lambda: accounting.history(id, since=job.submit),
    )
    for ask in asked:
        faults.rpc_counts(reset=True)
        before = bench.runner.total
        await ask()
        counted = faults.rpc_counts().get(cluster.user, 0)
        assert counted == bench.runner.total - before, bench.runner.by_program


@pytest.mark.long
async def test_a_minute_at_rest_costs_six_calls(bench: Bench) -> None:
    for _ in range(3):
        await bench.queue().fetch()
    assert bench.runner.calls_last_minute() == 6


async def test_arrays_and_het_jobs_are_found_by_every_spelling(bench: Bench) -> None:
    array = submit(bench.cluster, "sleep 600", hold=True, array="0-9%2")
    script = "#!/bin/sh\n#SBATCH -N1\n#SBATCH hetjob\n#SBATCH -N1\nsleep 600\n"
    het = submit(bench.cluster, script, hold=True)
    for asked, key in (
        (array, f"{array}_[*]"),
        (f"{array}_[0-9%2]", f"{array}_[*]"),
        (f"{array}_3", f"{array}_3"),
        (het, f"{het}+0"),
        (f"{het}+1", f"{het}+1"),
        (str(int(het) + 1), f"{het}+1"),
    ):
        facts = await bench.facts(asked)
        assert facts.job is not None, asked
        assert facts.job.key.id == key
        assert facts.job.state.phase is Phase.PENDING
        assert facts.detail is not None, asked
        assert facts.missing == (), asked


async def test_facts_of_a_running_job_with_its_log(bench: Bench) -> None:
    id = submit(bench.cluster, "echo step 12/900; sleep 600")
    bench.cluster.wait_state(id, "RUNNING")
    log = bench.cluster.log(id)
    bench.cluster.wait_for("the log", lambda: log.exists() and "step" in log.read_text())
    before = bench.runner.total
    facts = await bench.facts(id)
    assert bench.runner.total - before == 3
    assert facts.missing == ()
    (read,) = facts.logs
    assert (read.path, read.status) == (str(log), LogStatus.READ)
    assert read.progress is not None
    assert (read.progress.step, read.progress.total) == (12, 900)


async def test_facts_of_a_failed_job_agree_from_both_sides(bench: Bench) -> None:
    id = submit(bench.cluster, "echo RuntimeError: boom; exit 137")
    bench.cluster.wait_state(id, "FAILED")
    accounting = Accounting(bench.runner)

    async def known() -> bool:
        rows = (await accounting.history(id)).rows
        return any(row.state.word == "FAILED" for row in rows)

    for _ in range(300):
        if await known():
            break
        await asyncio.sleep(0.2)
    facts = await bench.facts(id)
    assert facts.exit is not None
    assert facts.exit.ok is False
    assert "137" in facts.exit.sentence
    assert facts.history[0].id.text == id
    assert facts.history[0].state.word == "FAILED"
    assert facts.logs[0].first_error is not None
    assert facts.missing == ()


async def test_an_id_that_nobody_knows(bench: Bench) -> None:
    for asked in ("9999999", "9999999_3", "9999999+1"):
        facts = await bench.facts(asked)
        assert facts.job is None, asked
        assert (facts.controller_answered, facts.accounting_answered) == (True, True), asked
        assert facts.history == ()
        assert facts.missing == ()


async def test_the_script_is_what_was_submitted(bench: Bench) -> None:
    text = "#!/bin/sh\n#SBATCH --comment=\u00fcbung\nsleep 600\n"
    id = submit(bench.cluster, text, hold=True)
    assert (await read_batch_script(bench.runner, id)).text == text
    unknown = await read_batch_script(bench.runner, "9999999")
    assert unknown.status is ScriptStatus.FORGOTTEN


async def test_nodes_and_settings(bench: Bench) -> None:
    nodes = await NodeSource(bench.runner).fetch()
    assert {node.name for node in nodes.rows} == set(bench.cluster.nodes)
    assert {node.gpus()[0] for node in nodes.rows} == {8}
    info = await read_cluster_info(bench.runner)
    assert info.has_accounting
    assert info.name == "slurmtop"
    assert info.version


async def test_a_field_that_this_slurm_does_not_know_is_dropped(bench: Bench) -> None:
    id = submit(bench.cluster, "sleep 600", hold=True)
    source = bench.queue()
    source._fields = (*source._fields[:3], ("NoSuchField", "nothing"), *source._fields[3:])
    answer = await source.fetch()
    assert answer.bad == 0
    assert id in {job.key.id for job in answer.rows}
    assert bench.runner.by_program["squeue"] == 2
    await source.fetch()
    assert bench.runner.by_program["squeue"] == 3


async def test_hostile_environment_changes_nothing(bench: Bench) -> None:
    id = submit(bench.cluster, "sleep 600", hold=True)
    hostile = {
        **os.environ,
        "SQUEUE_STATES": "RUNNING",
        "SQUEUE_FORMAT": "%i",
        "SQUEUE_USERS": "nobody",
        "SLURM_TIME_FORMAT": "relative",
        "TZ": "Pacific/Chatham",
        "LANG": "C",
    }
    async with LocalRunner(bench.clock, hostile) as runner:
        answer = await QueueSource(runner, bench.clock).fetch()
    job = next(job for job in answer.rows if job.key.id == id)
    assert job.submit is not None
    assert abs((bench.clock.now() - job.submit).total_seconds()) < 120


async def test_a_controller_that_is_gone_is_told_and_comes_back(
    bench: Bench, faults: Faults
) -> None:
    id = submit(bench.cluster, "sleep 600", hold=True)
    values: list[Snapshot[QueueAnswer]] = []
    poller = Poller(bench.queue(), bench.clock, values.append, jitter=lambda: 0.0)
    await poller.tick()
    assert len(values) == 1
    # SIGTERM, so that it keeps the job; it may still answer a call while it goes.
    faults.kill("slurmctld")
    for _ in range(100):
        await poller.tick()
        if poller.health.failures:
            break
        await asyncio.sleep(0.1)
    answers = len(values)
    down = poller.health
    assert down.failure is not None
    assert down.failure.trouble is Trouble.DOWN
    assert down.good_at == values[-1].sampled_at
    facts = await bench.facts(id)
    assert not facts.controller_answered
    assert facts.accounting_answered is not None
    faults.start("slurmctld")
    await poller.tick()
    assert len(values) == answers + 1
    assert id in {job.key.id for job in values[-1].value.rows}


async def test_a_log_of_somebody_else_is_denied_with_a_sentence(
    bench: Bench, faults: Faults
) -> None:
    id = faults.submit_other()
    bench.cluster.wait_state(id, {"RUNNING", "PENDING"})
    facts = await bench.facts(id)
    assert facts.job is not None
    assert facts.job.user != bench.cluster.user
    for missing in facts.missing:
        assert missing.command is not None
        shlex.split(missing.command)
