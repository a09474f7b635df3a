"""Rank processes on real nodes: found, signalled by pid, and told what became of each."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from slurmtop.cli.options import Options
from slurmtop.cli.wiring import Wiring, make_executor, open_wiring
from slurmtop.cli.world import make_world
from slurmtop.collect.nodes.processes import read_processes
from slurmtop.config import Config, NodeAccess
from slurmtop.control.actions import Action, Asker, Details, Kind
from slurmtop.control.commands import calls_for
from slurmtop.control.outcome import Result
from slurmtop.control.prepare import Request, prepare
from slurmtop.model.job import Job
from slurmtop.model.process import NodeProcesses, RankProcess, Rung
from slurmtop.model.script import Recipient
from slurmtop.triage.ranks import rank_processes
from tests.cluster.fixtures import Cluster, Mine
from tests.cluster.truth import Process, processes, states
from tests.cluster.ways import WAYS, open_way

JOBS = Path(__file__).parent / "jobs"
#: How a node is reached.
ACCESS = ("ssh", pytest.param("srun", marks=pytest.mark.long))


@contextmanager
def _opened(access: str) -> Iterator[Wiring]:
    config = Config(node_access=NodeAccess(access))
    yield open_wiring(Options(), os.environ, config=config)


async def _looks(wiring: Wiring, job: str, *hosts: str) -> list[NodeProcesses]:
    wiring.expect(job, hosts)
    return [await read_processes(wiring.runner, wiring.clock, host, job=job) for host in hosts]


async def _ranks(wiring: Wiring, job: str, *hosts: str) -> tuple[RankProcess, ...]:
    looks = await _looks(wiring, job, *hosts)
    assert [look.failure for look in looks] == [None] * len(hosts)
    return rank_processes(looks, job)


def _train(cluster: Cluster, mine: Mine, nodes: tuple[str, ...]) -> str:
    export = f"ALL,RANKS={JOBS / 'ranks.py'}"
    job = mine.submit(JOBS / "saves_in_ranks.sh", nodelist=",".join(nodes), export=export)
    cluster.wait_for(
        "both ranks at work", lambda: _text(cluster.log(job)).count(" is at work") == 2, 90
    )
    return job


@pytest.mark.parametrize(
    ("way", "access"),
    [
        ("keys", "ssh"),
        ("command", "srun"),
        pytest.param("keys", "srun", marks=pytest.mark.long),
        pytest.param("command", "ssh", marks=pytest.mark.long),
    ],
)
async def test_ranks_alone_save_and_no_agent_dies(
    cluster: Cluster, mine: Mine, tmp_path: Path, way: str, access: str
) -> None:
    nodes = ("gpu01", "gpu02")
    job = _train(cluster, mine, nodes)
    before = [_alive(cluster, node) for node in nodes]
    async with open_way(way, tmp_path, mine.name, hurried=True, access=access) as hands:
        told = await hands.act("signal", job, signal="USR1", to="ranks")
        assert told.results == {job: "signalled"}, told
        assert "2 ranks (0-1) on gpu[01-02]: handles it" in told.shown, told.shown
        assert "dies of it" not in told.shown, told.shown
        assert "USR1 sent to 2 ranks (0-1) on gpu[01-02]" in told.says[job], told
        assert "all of them are still there; the job still runs" in told.says[job], told
    files = [cluster.dir / f"saved-{job}-{rank}" for rank in range(2)]
    cluster.wait_for("both files", lambda: all(path.exists() for path in files))
    after = [_alive(cluster, node) for node in nodes]
    # Same pids and same parents: no agent has died, and no rank was left to process 1.
    assert after == before
    assert states(cluster, job) == {job: "RUNNING"}


@pytest.mark.parametrize("way", WAYS)
async def test_who_would_die_is_said_of_every_recipient(
    cluster: Cluster, mine: Mine, tmp_path: Path, way: str
) -> None:
    trap = mine.submit(JOBS / "saves_in_trap.sh", nodelist="gpu03")
    cluster.wait_for("its trap", lambda: "ready" in _text(cluster.log(trap)))
    bare = mine.submit(JOBS / "unprepared.sh", nodelist="gpu04")
    cluster.wait_for("its step", lambda: _sleeps(cluster, "gpu04") == 1)
    cluster.wait_for("the other step", lambda: _sleeps(cluster, "gpu03") == 1)
    async with open_way(way, tmp_path, mine.name, hurried=True) as hands:
        for job, node in ((trap, "gpu03"), (bare, "gpu04")):
            for to in ("ranks", "steps"):
                shown = await hands.look("signal", job, signal="USR1", to=to)
                assert f"rank 0 on {node}" in shown, shown
                assert "dies of it: it has no handler for USR1" in shown, shown
        shown = await hands.look("signal", trap, signal="USR1", to="batch")
        assert "handles it" in shown, shown
        assert hands.commands_run() == []
        # Without a handler it dies of it, and what became of it is told.
        told = await hands.act("signal", bare, signal="USR1", to="ranks")
        assert told.results == {bare: "signalled"}, told
        assert "ended since: rank 0 on gpu04" in told.says[bare], told
    assert _sleeps(cluster, "gpu03") == 1
    assert not _alive(cluster, "gpu04")


@pytest.mark.parametrize("access", ACCESS)
async def test_a_pid_that_is_another_process_by_now_is_told_and_not_signalled(
    cluster: Cluster, mine: Mine, tmp_path: Path, access: str
) -> None:
    job = mine.submit(JOBS / "unprepared.sh", nodelist="gpu01")
    cluster.wait_for("its step", lambda: _sleeps(cluster, "gpu01") == 1)
    with _opened(access) as wiring:
        try:
            environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
            executor = make_executor(
                wiring, environ, config=Config(), read_only=False, dry_run=False
            )
            made = await _planned(wiring, job)
            (rank,) = made.details.ranks
            wrong = replace(rank, start_ticks=rank.start_ticks + 1)
            details = replace(made.details, ranks=(wrong,))
            calls = calls_for(made.kind, made.targets, made.cluster, details)
            forged = replace(made, details=details, argvs=tuple(call.argv for call in calls))
            outcome = await executor.execute(forged)
        finally:
            await wiring.aclose()
    (one,) = outcome.jobs
    assert one.result is Result.NOT_SENT, one
    assert "not signalled, the pid belongs to another process now" in one.sentence
    assert _sleeps(cluster, "gpu01") == 1
    assert states(cluster, job) == {job: "RUNNING"}


async def _planned(wiring: Wiring, job: str) -> Action:
    source = wiring.queue_source(all_users=False)
    rows = await source.fetch()
    (own,) = [row for row in rows.rows if row.id.base == job]
    assert isinstance(own, Job)
    details = Details(signal="USR1", recipient=Recipient.RANKS)
    asker = Asker(me=wiring.who.name, now=wiring.clock.now())
    request = Request(kind=Kind.SIGNAL, jobs=(own,), details=details)
    made = await prepare(request, make_world(wiring), asker)
    assert isinstance(made, Action), made
    return made


@pytest.mark.parametrize("access", ACCESS)
async def test_ranks_in_namespaces_of_their_own_are_found_with_their_inner_pids(
    cluster: Cluster, mine: Mine, access: str
) -> None:
    export = f"ALL,TRAINS={JOBS / 'trains.py'}"
    nodes = ("gpu01", "gpu02")
    script = JOBS / "trains_contained.sh"
    job = mine.submit(script, nodelist=",".join(nodes), export=export)
    cluster.wait_for("four ranks", lambda: _text(cluster.log(job)).count(" sees ") == 4, 90)
    said = {}
    for line in _text(cluster.log(job)).splitlines():
        words = line.split()
        if words[:1] == ["rank"] and "sees" in words:
            said[int(words[1])] = (words[3].split(".")[0], int(words[5]))
    with _opened(access) as wiring:
        try:
            found = await _ranks(wiring, job, *nodes)
        finally:
            await wiring.aclose()
    # The pid that a rank itself knows is the inner one.
    assert {one.rank: (one.process.host, one.process.inner_pids[-1]) for one in found} == said
    assert {one.rung for one in found} == {Rung.ENVIRONMENT}
    assert [one.local_rank for one in found] == [0, 1, 0, 1]
    for one in found:
        assert one.process.pid != one.process.inner_pids[-1]
        assert "trains.py" in processes(cluster, one.process.host)[one.process.pid].argv


@pytest.mark.parametrize("access", ACCESS)
async def test_what_a_look_sees_and_that_nothing_of_it_stays(
    cluster: Cluster, mine: Mine, access: str
) -> None:
    job = _train(cluster, mine, ("gpu01", "gpu02"))
    with _opened(access) as wiring:
        try:
            (look,) = await _looks(wiring, job, "gpu01")
        finally:
            await wiring.aclose()
    assert look.complete
    assert look.boot_id
    assert {one.job for one in look.processes} == {job}
    assert not any("slurmtop-processes" in one.argv for one in look.processes)
    truth = _alive(cluster, "gpu01")
    known = {one.pid for one in look.processes}
    assert {pid for pid, one in truth.items() if "ranks.py" in one.argv} <= known
    for one in look.processes:
        if one.name == "slurmstepd":
            # By it a job is known where Slurm keeps no cgroups.
            assert one.user == "root"
            continue
        assert one.start_ticks > 0
        assert one.user == cluster.user
        assert one.env is not None
        assert one.caught is not None

    def clean() -> bool:
        return not any(
            "slurmtop-processes" in one.argv for one in processes(cluster, "gpu01").values()
        )

    await asyncio.to_thread(cluster.wait_for, "nothing of slurmtop", clean)


def _sleeps(cluster: Cluster, node: str) -> int:
    found = processes(cluster, node).values()
    return sum(one.argv.endswith("sleep 900") and "srun" not in one.argv for one in found)


def _alive(cluster: Cluster, node: str) -> dict[int, Process]:
    """The training and its agents, by what does not change while they live."""
    return {
        pid: Process(pid=pid, parent=one.parent, state="", argv=one.argv)
        for pid, one in processes(cluster, node).items()
        if "torch" in one.argv or "sleep 900" in one.argv
    }


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
