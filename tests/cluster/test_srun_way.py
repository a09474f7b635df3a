"""Nodes reached through one held-open step, on real Slurm."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from slurmtop.cli.options import Options
from slurmtop.cli.wiring import Wiring, open_wiring
from slurmtop.collect.nodes import agent
from slurmtop.model.ports import Command, NodeUnreachable
from slurmtop.model.reach import Way
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster, Mine
from tests.collect.helpers import until

pytestmark = pytest.mark.cluster

#: A word in the command lines of this test's own scripts: other sessions have theirs.
TAG = f"slurmtop-tested-{os.getpid()}"
HELD = """
import asyncio, os, sys
from slurmtop.cli.options import Options
from slurmtop.cli.wiring import open_wiring
from slurmtop.model.ports import Command

async def main(job, hosts, tag):
    wiring = open_wiring(Options(node_access="srun"), os.environ)
    wiring.expect(job, hosts)
    loop = "while :; do echo x; sleep 0.1; done"
    async def watch(host):
        script = ("/bin/sh", "-c", loop, tag)
        async for chunk in wiring.runner.stream(Command(script, host=host)):
            print(host, flush=True)
    await asyncio.gather(*map(watch, hosts))

asyncio.run(main(sys.argv[1], sys.argv[2].split(","), sys.argv[3]))
"""


@contextlib.asynccontextmanager
async def wired(tmp_path: Path, access: str = "srun") -> AsyncIterator[Wiring]:
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    wiring = open_wiring(Options(node_access=access), environ)
    try:
        yield wiring
    finally:
        await wiring.aclose()


@pytest.fixture
def closed_ssh(cluster: Cluster, faults: Faults) -> Iterator[None]:
    for node in cluster.nodes:
        faults.stop_node(node, "sshd")
    yield
    for node in cluster.nodes:
        faults.start_node(node, "sshd")


def hosts_of(cluster: Cluster, job: str) -> list[str]:
    """The nodes of one job, task or part, by the id that squeue prints."""
    (line,) = cluster.squeue("-j", job, "-o", "%N")
    return cluster.run("scontrol", "show", "hostnames", line).stdout.split()


def steps(cluster: Cluster, job: str) -> list[str]:
    """``state exit-code`` of the steps of ours that accounting knows, oldest first."""
    rows = cluster.run("sacct", "-nP", "-j", job, "-o", "JobName,State,ExitCode").stdout
    return [row.partition("|")[2] for row in rows.splitlines() if row.startswith("slurmtop|")]


def ours(job: str, *words: str) -> list[str]:
    """Command lines of our processes on any node of ``job``, and of the srun that holds them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            argv = (folder / "cmdline").read_bytes().split(b"\0")
            environ = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        text = b" ".join(argv)
        in_step = b"SLURM_JOB_NAME=slurmtop" in environ and b"SLURM_JOB_ID=%b" % job.encode() in (
            environ
        )
        if (
            in_step
            or b"--jobid=%b" % job.encode() in argv
            or any(w.encode() in text for w in words)
        ):
            found.append(text.decode("utf-8", "replace"))
    return found


async def names(wiring: Wiring, hosts: list[str]) -> list[str]:
    async def one(host: str) -> str:
        argv = ("/bin/sh", "-c", "echo $SLURMD_NODENAME", TAG)
        done = await wiring.runner.run(Command(argv, host=host, timeout_s=20.0))
        assert done.rc == 0, done.stderr
        return done.stdout.decode().strip()

    return await asyncio.gather(*map(one, hosts))


async def test_with_ssh_closed_a_job_is_reached_by_one_step_that_leaves_nothing(
    cluster: Cluster, mine: Mine, closed_ssh: None, tmp_path: Path, faults: Faults
) -> None:
    job = mine.submit("srun sleep 600", nodes=2, ntasks=2, gres="gpu:h100:1")
    cluster.wait_state(job, "RUNNING")
    hosts = hosts_of(cluster, job)
    assert len(hosts) == 2
    async with wired(tmp_path, "auto") as wiring:
        wiring.expect(job, hosts)
        for _ in range(20):
            assert await names(wiring, hosts) == hosts
        assert wiring.way_to_nodes() == "srun"
        reach = wiring.reach(hosts[0])
        assert reach is not None
        assert reach.failure is None
        assert {way for way, _ in reach.refused} <= {Way.SSH, Way.OPENSSH}
        large = Command(("seq", "1", "700000"), host=hosts[1])
        done = await wiring.runner.run(large)
        assert (len(done.stdout), done.stdout[-7:]) == (4_788_895, b"700000\n")
        assert cluster.squeue("-s", "-j", job, "-o", "%j").count("slurmtop") == 1
        processes = ours(job)
        for name in (agent.AGENT_NAME, "--overlap"):
            assert any(name in text for text in processes), processes
    await until(lambda: not ours(job, TAG), "nothing of ours on any node")
    cluster.wait_for("the end of the step", lambda: "RUNNING" not in str(steps(cluster, job)))
    rows = cluster.run("sacct", "-nP", "-j", job, "-o", "JobID,JobName,State,ExitCode,End").stdout
    assert steps(cluster, job) == ["COMPLETED|0:0"], rows
    # What was found is tried first the next time.
    async with wired(tmp_path, "auto") as wiring:
        wiring.expect(job, hosts)
        assert await names(wiring, hosts[:1]) == hosts[:1]
        reach = wiring.reach(hosts[0])
        assert reach is not None
        assert reach.refused == ()


async def test_nothing_is_left_where_slurmtop_is_killed(
    cluster: Cluster, mine: Mine, tmp_path: Path
) -> None:
    job = mine.submit("sleep 600", nodes=2, ntasks=2)
    cluster.wait_state(job, "RUNNING")
    hosts = hosts_of(cluster, job)
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    with subprocess.Popen(  # noqa: ASYNC220 - it is read line by line, and then killed
        [sys.executable, "-c", HELD, job, ",".join(hosts), TAG],
        stdout=subprocess.PIPE,
        text=True,
        env=environ,
    ) as child:
        assert child.stdout is not None
        seen: set[str] = set()
        for line in child.stdout:
            seen.add(line.strip())
            if seen == set(hosts):
                break
        assert seen == set(hosts)
        assert len(ours(job, TAG)) > 4
        child.send_signal(signal.SIGKILL)
        await until(lambda: not ours(job, TAG), "nothing of ours on any node")
    cluster.wait_for("the end of the step", lambda: len(steps(cluster, job)) == 1)
    assert cluster.states(job) == {"RUNNING"}


def kill_srun_of(job: str) -> None:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"--jobid=%b" % job.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)


async def test_a_killed_srun_leaves_nothing_and_is_told(
    cluster: Cluster, mine: Mine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "SILENCE_S", 5.0)
    job = mine.submit("sleep 600", nodes=2, ntasks=2)
    cluster.wait_state(job, "RUNNING")
    hosts = hosts_of(cluster, job)
    async with wired(tmp_path) as wiring:
        wiring.expect(job, hosts)
        await names(wiring, hosts)
        stream = wiring.runner.stream(Command(("sleep", "500"), host=hosts[0], timeout_s=90.0))
        waiting = asyncio.ensure_future(anext(stream))
        await until(lambda: any("sleep 500" in text for text in ours(job)), "a running request")
        kill_srun_of(job)
        with pytest.raises(NodeUnreachable, match=f"step .* job {job} has ended"):
            await waiting
        await until(lambda: not ours(job), "nothing of ours on any node")
        # No step a poll: one that does not last is not made again at once.
        for _ in range(5):
            with pytest.raises(NodeUnreachable):
                await names(wiring, hosts)
        assert wiring.runner.by_program["srun"] == 1


@pytest.mark.long
async def test_a_job_whose_ranks_use_everything_and_what_a_step_costs(
    cluster: Cluster, mine: Mine, tmp_path: Path, faults: Faults
) -> None:
    job = mine.submit(
        "srun sleep 600", nodes=4, ntasks_per_node=8, exclusive=True, mem=0, gres="gpu:h100:8"
    )
    cluster.wait_state(job, "RUNNING")
    cluster.wait_for("its step", lambda: len(cluster.squeue("-s", "-j", job)) >= 2)
    hosts = hosts_of(cluster, job)
    before = faults.sdiag()["types"]
    async with wired(tmp_path) as wiring:
        wiring.expect(job, hosts)
        for _ in range(3):
            assert await names(wiring, hosts) == hosts
        done = await wiring.runner.run(
            Command(("/bin/sh", "-c", "echo $SLURM_STEP_GPUS"), host=hosts[0])
        )
        assert done.stdout == b"0,1,2,3,4,5,6,7\n"
        counted = wiring.runner.total
    cluster.wait_for("the end of the step", lambda: steps(cluster, job) == ["COMPLETED|0:0"])
    after = faults.sdiag()["types"]
    # squeue and sacct of this test, and what nodes say by themselves, are left out.
    mine_alone = ("REQUEST_JOB_STEP_CREATE", "REQUEST_HET_JOB_ALLOC_INFO", "REQUEST_STEP_COMPLETE")
    cost = {name: after.get(name, 0) - before.get(name, 0) for name in mine_alone}
    assert cost["REQUEST_JOB_STEP_CREATE"] == 1
    assert sum(cost.values()) == counted, cost


@pytest.mark.long
async def test_tasks_of_an_array_and_parts_of_a_het_job(
    cluster: Cluster, mine: Mine, tmp_path: Path
) -> None:
    array = mine.submit("sleep 600", array="1-2", ntasks=1)
    first = ["--nodes=1", "--ntasks=1", ":", "--nodes=1", "--ntasks=1"]
    het = mine.submit("#!/bin/sh\nsleep 600\n", *first)
    cluster.wait_state(array, "RUNNING")
    cluster.wait_state(het, "RUNNING")
    rows = cluster.squeue("-r", "-j", f"{array},{het}", "-O", "JobID:20,JobArrayID:20,NodeList:20")
    found = [row.split() for row in rows]
    assert len(found) == 4
    async with wired(tmp_path) as wiring:
        for job, name, host in found:
            # The same node may hold several of them: what is told last counts.
            wiring.expect(job, [host])
            argv = ("/bin/sh", "-c", "echo $SLURM_JOB_ID $SLURMD_NODENAME", TAG)
            done = await wiring.runner.run(Command(argv, host=host))
            # To a part of a het job Slurm gives the number of its leader.
            id = name.partition("+")[0] if "+" in name else job
            assert done.stdout.decode().split() == [id, host], name
            assert wiring.nodes is not None
            wiring.nodes.forget(job)


async def test_a_step_that_cannot_be_made_is_told_in_words(
    cluster: Cluster, mine: Mine, faults: Faults, tmp_path: Path
) -> None:
    waiting = mine.submit("sleep 600", hold=True)
    running = mine.submit("sleep 600", nodes=1)
    cluster.wait_state(running, "RUNNING")
    other = faults.submit_other(seconds=300)
    cluster.wait_for("another's job", lambda: cluster.states(other) == {"RUNNING"})
    (host,) = hosts_of(cluster, running)
    async with wired(tmp_path) as wiring:

        async def why(job: str, node: str) -> str:
            wiring.expect(job, [node])
            with pytest.raises(NodeUnreachable) as error:
                await names(wiring, [node])
            assert wiring.nodes is not None
            wiring.nodes.forget(job)
            return error.value.failure.sentence

        assert re.search("waiting in the queue", await why(waiting, "gpu03"))
        assert re.search("ending or over", await why("4000000", "gpu03"))
        far = next(node for node in cluster.nodes if node != host)
        assert re.search("down or no longer its", await why(running, far))
        (place,) = hosts_of(cluster, other)
        assert re.search("only the owner of job", await why(other, place))
        with pytest.raises(NodeUnreachable, match="running job of yours"):
            await names(wiring, ["gpu04"])
