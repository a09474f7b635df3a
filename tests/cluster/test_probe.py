"""One look at real nodes: what ranks do, what they wait for, and that nothing of the look stays."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from slurmtop.cli.options import Options
from slurmtop.cli.wiring import Wiring, open_wiring
from slurmtop.collect.nodes.probe import read_probe
from slurmtop.config import Config, NodeAccess
from slurmtop.model.gpu import Answer
from slurmtop.model.probe import Activity, NodeProbe
from slurmtop.model.process import NodeProcess
from slurmtop.model.verdict import Fate
from slurmtop.triage.ranks import rank_processes
from tests.cluster.faults import FaultError, Faults
from tests.cluster.fixtures import Cluster, Mine
from tests.cluster.gpu_desk import Watchman
from tests.cluster.layout import NODES
from tests.cluster.torch_env import PYTHON, TORCH
from tests.cluster.training import Training
from tests.lab.node_cpu import NodeCpu

WAITS = Path(__file__).parent / "jobs" / "waits.py"
MIB = 2**20


@asynccontextmanager
async def _opened(access: str = "ssh") -> AsyncIterator[Wiring]:
    wiring = open_wiring(Options(), os.environ, config=Config(node_access=NodeAccess(access)))
    try:
        yield wiring
    finally:
        await wiring.aclose()


async def _probes(wiring: Wiring, job: str, *hosts: str) -> tuple[NodeProbe, ...]:
    wiring.expect(job, hosts)
    looks = (read_probe(wiring.runner, wiring.clock, host, job=job) for host in hosts)
    return tuple(await asyncio.gather(*looks))


def fates(probe: NodeProbe) -> dict[str, Fate]:
    return {one.source: one.fate for one in probe.fates}


def doing(probe: NodeProbe, process: NodeProcess) -> Activity:
    found = probe.activity_of(process)
    assert found is not None, process
    return found


@pytest.mark.parametrize("access", ["ssh", pytest.param("srun", marks=pytest.mark.long)])
async def test_a_healthy_training(
    cluster: Cluster, training: Training, faults: Faults, access: str
) -> None:
    watchman = Watchman(faults)
    async with _opened(access) as wiring:
        # The first look finds the way; the second is one that costs what a look costs.
        first = await _probes(wiring, training.job, *NODES)
        with NodeCpu() as used:
            probes = await _probes(wiring, training.job, *NODES)
    print(
        f"{access}: {[round(probe.took_s, 2) for probe in (*first, *probes)]} s,"
        f" {used.used_s:.2f} s of CPU"
    )
    assert [probe.failure for probe in probes] == [None] * len(NODES)
    looks = [probe.processes for probe in probes if probe.processes is not None]
    ranks = rank_processes(looks, training.job)
    assert [(one.rank, one.process.host, one.process.pid) for one in ranks] == [
        (one.rank, one.host, one.pid) for one in training.ranks
    ]
    by_host = {probe.host: probe for probe in probes}
    for one in ranks:
        did = doing(by_host[one.process.host], one.process)
        assert did.state in "SR", did
        assert did.tracer_pid == 0
        assert did.between_s is not None
        assert did.between_s >= 0.3
        assert did.first.cpu_ticks is not None
        assert did.second.cpu_ticks is not None
        assert did.second.cpu_ticks >= did.first.cpu_ticks > 0
        assert did.second.written_chars is not None
        assert did.syscall is not None
        assert did.threads[0].tid == one.process.pid
        assert len(did.threads) == min(one.process.threads or 0, 48)
    for probe in probes:
        assert probe.processes is not None
        assert probe.processes.complete
        assert {one.job for one in probe.processes.processes} == {training.job}
        assert {one.version.partition("+")[0] for one in probe.libraries} == {
            TORCH.partition("==")[2]
        }
        assert probe.cpus == os.cpu_count()
        assert probe.gpus is not None
        assert probe.gpus.answer is Answer.OK, probe.gpus
        assert {
            fates(probe)[name] for name in ("processes", "environment", "activity", "gpus")
        } == {Fate.ANSWERED}
    watchman.all_gone(cluster)
    training.goes_on()


async def _waiting(cluster: Cluster, mine: Mine) -> tuple[str, dict[int, int]]:
    """A job of six ranks on gpu02, and the pid of each."""
    job = mine.submit(f"srun --ntasks=6 --overcommit {PYTHON} {WAITS}", nodelist="gpu02", ntasks=1)

    def places() -> dict[int, int]:
        return {
            int(path.name.rpartition("-")[2]): int(path.read_text().split()[1])
            for path in cluster.dir.glob(f"waits-{job}-?")
        }

    await asyncio.to_thread(cluster.wait_for, "six ranks", lambda: len(places()) == 6, 60)
    return job, places()


async def test_what_a_rank_waits_for(cluster: Cluster, mine: Mine, faults: Faults) -> None:
    job, pids = await _waiting(cluster, mine)
    cluster.ssh("gpu02", f"kill -STOP {pids[4]}")

    def waits() -> bool:
        states = {one.pid: one.state for one in faults.processes("gpu02")}
        return (states[pids[1]], states[pids[4]]) == ("D", "T")

    await asyncio.to_thread(cluster.wait_for, "states D and T", waits)
    async with _opened() as wiring:
        (probe,) = await _probes(wiring, job, "gpu02")
    assert probe.failure is None
    assert probe.processes is not None
    ranks = {one.rank: one.process for one in rank_processes([probe.processes], job)}
    # One has lost its environment: it is one of the job, and its rank is not known.
    nameless = pids.pop(5)
    assert nameless in {one.pid for one in probe.processes.processes}
    assert {rank: process.pid for rank, process in ranks.items() if rank is not None} == pids
    acts = {rank: doing(probe, process) for rank, process in ranks.items() if rank is not None}
    print(f"{probe.took_s:.2f} s", {n: (a.state, a.wchan, a.syscall) for n, a in acts.items()})
    assert acts[0].open_file is not None
    assert acts[0].open_file.endswith(f"/schedule-{job}")
    assert acts[1].state == "D"
    assert ranks[1].env is not None
    assert acts[3].second.cpu_ticks is not None
    assert acts[3].first.cpu_ticks is not None
    assert acts[3].second.cpu_ticks > acts[3].first.cpu_ticks
    assert acts[3].syscall in ("running", None)
    assert acts[4].state == "T"
    assert acts[4].first == acts[4].second
    assert fates(probe)["environment"] is Fate.ANSWERED
    # Whoever was stopped is so still, and nobody else is.
    states = {one.pid: one.state for one in faults.processes("gpu02")}
    assert states[pids[4]] == "T"
    assert states[pids[0]] == "S"
    cluster.ssh("gpu02", f"kill -CONT {pids[4]}")
    cluster.run("scancel", "--signal=KILL", "--full", job)


async def test_a_process_that_was_killed_for_memory(
    cluster: Cluster, mine: Mine, faults: Faults
) -> None:
    job, pids = await _waiting(cluster, mine)
    try:
        limit = faults.limit_memory("gpu02", pids[2], 256 * MIB)
    except FaultError as error:
        pytest.skip(str(error))
    (cluster.dir / f"limited-{job}").touch()
    lost = cluster.dir / f"lost-{job}"
    await asyncio.to_thread(cluster.wait_for, "the end of its child", lost.exists, 60)
    async with _opened() as wiring:
        (probe,) = await _probes(wiring, job, "gpu02")
    (group,) = [one for one in probe.memory if pids[2] in one.pids]
    assert group.path.endswith(limit)
    assert group.oom_kills == 1
    assert group.limit_bytes == 256 * MIB
    assert fates(probe)["memory events"] is Fate.ANSWERED
    if fates(probe)["kernel log"] is Fate.ANSWERED:
        assert any(limit in line for line in probe.kernel_lines), probe.kernel_lines


@pytest.mark.long
async def test_a_driver_that_hangs_costs_its_own_answer(
    cluster: Cluster, training: Training, faults: Faults
) -> None:
    faults.set_gpu("gpu03", "hung")
    watchman = Watchman(faults)
    async with _opened() as wiring:
        (first,) = await _probes(wiring, training.job, "gpu03")
        (again,) = await _probes(wiring, training.job, "gpu03")
    print(f"nvidia-smi hangs: {first.took_s:.2f} s, then {again.took_s:.2f} s")
    for probe in (first, again):
        assert probe.failure is None
        assert fates(probe)["gpus"] is Fate.TIMED_OUT, probe.fates
        assert probe.gpus is None or probe.gpus.answer is Answer.NO_ANSWER
        assert fates(probe)["activity"] is Fate.ANSWERED
        assert fates(probe)["kernel log"] is not Fate.TIMED_OUT
        assert probe.processes is not None
        ranks = rank_processes([probe.processes], training.job)
        assert [one.rank for one in ranks] == [one.rank for one in training.on("gpu03")]
    # What cannot be ended is there once, however often is looked.
    stuck = [one for host, one in watchman.new(stuck=True) if one.name == "nvidia-smi"]
    assert len(stuck) <= 2, stuck
    faults.set_gpu("gpu03", "normal")
    watchman.all_gone(cluster)
    training.goes_on()


@pytest.mark.long
async def test_a_job_of_somebody_else(cluster: Cluster, faults: Faults) -> None:
    job = faults.submit_other(seconds=300)
    cluster.wait_state(job, "RUNNING")
    (host,) = cluster.squeue("-j", job, "-o", "%N")

    def sleeping() -> bool:
        return any("sleep 300" in one.argv for one in faults.processes(host))

    await asyncio.to_thread(cluster.wait_for, "its sleep", sleeping)
    async with _opened() as wiring:
        (probe,) = await _probes(wiring, job, host)
    print(f"of somebody else: {probe.failure}, {probe.fates}")
    assert probe.failure is None
    assert probe.processes is not None
    # Slurm's own daemon tells whose they are, where there are no cgroups.
    sleeps = [one for one in probe.processes.processes if one.argv[:1] == ("sleep",)]
    assert [(one.job, one.step) for one in sleeps] == [(job, "batch")]
    assert sleeps[0].env is None
    assert doing(probe, sleeps[0]).second.cpu_ticks is not None
    assert doing(probe, sleeps[0]).second.written_bytes is None
    told = {one.source: one for one in probe.fates}
    assert told["environment"].fate is Fate.REFUSED
    assert told["environment"].command == f"slurmtop triage {job} --save DIR"


@pytest.mark.long
async def test_through_sudo_or_as_oneself_where_that_is_refused(
    cluster: Cluster, training: Training
) -> None:
    async with _opened() as wiring:
        wiring.expect(training.job, ("gpu01",))
        probe = await read_probe(wiring.runner, wiring.clock, "gpu01", job=training.job, sudo=True)
    assert probe.failure is None
    assert probe.processes is not None
    ranks = rank_processes([probe.processes], training.job)
    assert [one.rank for one in ranks] == [one.rank for one in training.on("gpu01")]
