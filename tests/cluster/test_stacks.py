"""Stacks of ranks on real nodes: nobody is stopped by it, and nothing of ours stays."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from slurmtop.cli.options import Options
from slurmtop.cli.wiring import Wiring, open_wiring
from slurmtop.collect.nodes.probe import read_probe
from slurmtop.collect.nodes.stacks import read_stacks
from slurmtop.config import Config, NodeAccess
from slurmtop.model.probe import NodeProbe
from slurmtop.model.process import RankProcess
from slurmtop.model.snapshot import Trouble
from slurmtop.model.stacks import ProcessStacks
from slurmtop.triage.live.call_site import StackClass, group_stacks
from slurmtop.triage.live.doing import site_text
from slurmtop.triage.ranks import rank_processes
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster, Mine
from tests.cluster.gpu_desk import Watchman
from tests.cluster.layout import NODES
from tests.cluster.torch_env import PYTHON
from tests.cluster.training import Training
from tests.lab.node_cpu import NodeCpu

WAITS = Path(__file__).parent / "jobs" / "waits.py"


@asynccontextmanager
async def _opened(access: str = "ssh") -> AsyncIterator[Wiring]:
    wiring = open_wiring(Options(), os.environ, config=Config(node_access=NodeAccess(access)))
    try:
        yield wiring
    finally:
        await wiring.aclose()


async def _probe(wiring: Wiring, job: str, host: str) -> tuple[NodeProbe, tuple[RankProcess, ...]]:
    probe = await read_probe(wiring.runner, wiring.clock, host, job=job)
    assert probe.failure is None, probe.failure
    assert probe.processes is not None
    assert probe.stack_tools, probe.fates
    return probe, rank_processes([probe.processes], job)


async def _stacks(
    wiring: Wiring, probe: NodeProbe, ranks: tuple[RankProcess, ...]
) -> tuple[ProcessStacks, ...]:
    processes = [one.process for one in ranks]
    tools = probe.stack_tools
    return await read_stacks(wiring.runner, wiring.clock, probe.host, processes, tools)


def _sites(classes: tuple[StackClass, ...]) -> set[str]:
    return {site_text(one.site).partition(":")[0] for one in classes}


@pytest.mark.parametrize("access", ["ssh", pytest.param("srun", marks=pytest.mark.long)])
async def test_nobody_is_stopped_and_nothing_stays(
    cluster: Cluster, training: Training, faults: Faults, access: str
) -> None:
    watchman = Watchman(faults)
    letters: set[str] = set()
    pids = {host: {one.pid for one in training.on(host)} for host in NODES}

    async def watch() -> None:
        while True:
            for host in NODES:
                found = await asyncio.to_thread(faults.processes, host)
                letters.update(one.state for one in found if one.pid in pids[host])

    async with _opened(access) as wiring:
        wiring.expect(training.job, NODES)
        looked = [await _probe(wiring, training.job, host) for host in NODES]
        ranks = tuple(one for _, some in looked for one in some)
        watching = asyncio.get_running_loop().create_task(watch())
        begun = wiring.clock.monotonic()
        with NodeCpu() as used:
            parts = await asyncio.gather(*(_stacks(wiring, probe, some) for probe, some in looked))
            took_s = wiring.clock.monotonic() - begun
            again = await asyncio.gather(*(_stacks(wiring, probe, some) for probe, some in looked))
        watching.cancel()
    stacks = tuple(one for part in parts for one in part)
    print(
        f"{access}: {len(stacks)} stacks of 4 nodes in {took_s:.2f} s; twice cost"
        f" {used.used_s:.2f} s of CPU"
    )
    assert [one.failure for one in stacks] == [None] * len(training.ranks)
    assert {one.main.name for one in stacks if one.main is not None} == {"MainThread"}
    now = tuple(one for part in again for one in part)
    classes = group_stacks(now, ranks, stacks)
    assert sorted(rank for one in classes for rank in one.ranks) == list(range(8))
    assert _sites(classes) == {"trains.py"}
    assert {one.moved for one in classes} <= {True, False}
    assert letters, "the watchman saw nobody"
    assert letters <= {"R", "S", "D"}, letters
    watchman.all_gone(cluster)
    training.goes_on()


async def test_ranks_that_wait_are_read_as_they_are(
    cluster: Cluster, mine: Mine, faults: Faults
) -> None:
    job = mine.submit(f"srun --ntasks=6 --overcommit {PYTHON} {WAITS}", nodelist="gpu02", ntasks=1)

    def places() -> dict[int, int]:
        return {
            int(path.name.rpartition("-")[2]): int(path.read_text().split()[1])
            for path in cluster.dir.glob(f"waits-{job}-?")
        }

    await asyncio.to_thread(cluster.wait_for, "six ranks", lambda: len(places()) == 6, 60)
    pids = places()
    cluster.ssh("gpu02", f"kill -STOP {pids[4]}")

    def waits() -> bool:
        states = {one.pid: one.state for one in faults.processes("gpu02")}
        return (states[pids[1]], states[pids[4]]) == ("D", "T")

    await asyncio.to_thread(cluster.wait_for, "states D and T", waits)
    async with _opened() as wiring:
        wiring.expect(job, ["gpu02"])
        probe, ranks = await _probe(wiring, job, "gpu02")
        begun = wiring.clock.monotonic()
        stacks = await _stacks(wiring, probe, ranks)
        took_s = wiring.clock.monotonic() - begun
        by_pid = {one.pid: one for one in stacks}
    told = {
        rank: [frame.function for frame in by_pid[pid].main.frames]  # type: ignore[union-attr]
        for rank, pid in pids.items()
        if pid in by_pid and by_pid[pid].main is not None
    }
    print(f"{took_s:.2f} s", told)
    assert told[0][0] == "reads"
    assert told[1][0] == "waits_in_the_kernel"
    assert told[3][0] == "runs"
    assert told[4] == ["<module>"]
    # The one that was stopped is so still, and nobody else is.
    states = {one.pid: one.state for one in faults.processes("gpu02")}
    assert states[pids[4]] == "T"
    assert states[pids[0]] == "S"
    assert states[pids[3]] in "RS"
    cluster.ssh("gpu02", f"kill -CONT {pids[4]}")
    cluster.run("scancel", "--signal=KILL", "--full", job)


@pytest.mark.long
async def test_stacks_of_somebody_else_are_closed(cluster: Cluster, faults: Faults) -> None:
    job = faults.submit_other(seconds=300)
    cluster.wait_state(job, "RUNNING")
    (host,) = cluster.squeue("-j", job, "-o", "%N")

    def sleeping() -> bool:
        return any("sleep 300" in one.argv for one in faults.processes(host))

    await asyncio.to_thread(cluster.wait_for, "its sleep", sleeping)
    async with _opened() as wiring:
        wiring.expect(job, [host])
        probe = await read_probe(wiring.runner, wiring.clock, host, job=job)
        assert probe.processes is not None
        sleeps = [one for one in probe.processes.processes if one.argv[:1] == ("sleep",)]
        (found,) = await read_stacks(wiring.runner, wiring.clock, host, sleeps, probe.stack_tools)
    assert found.failure is not None
    assert found.failure.trouble is Trouble.DENIED, found.failure
    assert "are closed to you" in found.failure.sentence, found.failure
