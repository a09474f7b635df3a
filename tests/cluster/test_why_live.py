"""``why`` and ``triage`` on jobs that run on real nodes: what was asked, who is named, how fast.

Times are printed and hardly asserted: the machine that stands in for a cluster has two cores.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.desk import Said, slurmtop
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster
from tests.cluster.training import Rank, Training, trains
from tests.cluster.verdicts import check_verdict

#: A log without a new line for so long makes a command look at stacks.
QUIET_S = 10.0
_LINE = re.compile(r"slurmtop: (\d+\.\d) s: (first answer|so far|verdict): ([a-z]+): ")


def told(said: Said) -> list[tuple[float, str, str]]:
    """(seconds, which answer, state) of each line of progress."""
    found = [_LINE.match(line) for line in said.err.splitlines()]
    assert all(found), said.err
    return [(float(one[1]), one[2], one[3]) for one in found if one is not None]


def fates(data: dict[str, Any]) -> dict[str, set[str]]:
    """By source what came of it; over all nodes."""
    out: dict[str, set[str]] = {}
    for one in data["sources"]:
        out.setdefault(one["source"], set()).add(one["fate"])
    return out


def culprits(data: dict[str, Any]) -> list[tuple[int | None, str | None]]:
    return [(one["rank"], one["host"]) for one in data["culprits"]]


def triage(job: str, *options: str, environ: dict[str, str] | None = None) -> Said:
    said = slurmtop("triage", job, "--json", *options, environ=environ)
    print(said.err, end="")
    check_verdict(said.data)
    return said


@contextmanager
def stopped(cluster: Cluster, training: Training, rank: Rank) -> Iterator[None]:
    """``rank`` is stopped by a signal, and the log is quiet for as long as it takes to notice."""
    cluster.ssh(rank.host, "kill", "-STOP", str(rank.pid))
    try:
        _wait_quiet(cluster, training)
        yield
    finally:
        cluster.ssh(rank.host, "kill", "-CONT", str(rank.pid))
        training.goes_on()


def _wait_quiet(cluster: Cluster, training: Training) -> None:
    log = cluster.log(training.job)

    def quiet() -> bool:
        now = float(cluster.run("date", "+%s.%N").stdout)
        return now - log.stat().st_mtime > QUIET_S + 1

    cluster.wait_for("a quiet log", quiet, QUIET_S + 30)


@pytest.fixture(scope="module")
def four_nodes(cluster: Cluster) -> Iterator[Training]:
    with trains(cluster) as training:
        yield training


def test_a_healthy_training_is_healthy_and_nobody_reads_stacks(
    cluster: Cluster, four_nodes: Training
) -> None:
    why = slurmtop("why", four_nodes.job, "--json")
    print(why.err, f"{why.took_s:.1f} s", end="")
    check_verdict(why.data)
    assert why.data["state"] == "healthy", why.out
    assert fates(why.data)["nodes"] == {"not asked"}
    said = triage(four_nodes.job)
    assert said.data["state"] == "healthy", said.out
    assert said.data["culprits"] == []
    assert fates(said.data)["stacks"] == {"not asked"}
    assert fates(said.data)["processes"] == {"answered"}
    four_nodes.goes_on()


@pytest.mark.long
def test_a_rank_that_is_stopped_is_named(cluster: Cluster, four_nodes: Training) -> None:
    rank = four_nodes.ranks[3]
    with stopped(cluster, four_nodes, rank):
        said = triage(four_nodes.job)
        why = slurmtop("why", four_nodes.job)
    print(why.out, end="")
    assert said.data["state"] == "hung", json.dumps(said.data, indent=1)
    assert said.data["class"] == "process-stopped"
    assert culprits(said.data) == [(rank.rank, rank.host)]
    assert said.data["culprits"][0]["pid"] == rank.pid
    assert said.rc == why.rc == 2
    assert f"rank {rank.rank} " in why.lines[1]
    (first, name, _), *_, (last, final, state) = told(said)
    assert (name, final, state) == ("first answer", "verdict", "hung")
    assert first < last


@pytest.mark.long
def test_without_ssh_a_step_of_the_job_is_the_way(
    cluster: Cluster, four_nodes: Training, faults: Faults
) -> None:
    rank = four_nodes.ranks[5]
    with stopped(cluster, four_nodes, rank):
        faults.close_ssh()
        try:
            said = triage(four_nodes.job)
        finally:
            faults.open_ssh()
    assert culprits(said.data) in ([(rank.rank, rank.host)], []), said.out
    assert said.data["state"] in ("hung", "unknown")
    nodes = [one for one in said.data["sources"] if one["source"] == "nodes"]
    assert [(one["fate"], one["why"]) for one in nodes] == [("answered", "by a step of the job")]


def test_with_no_way_onto_the_nodes_nobody_is_named(
    cluster: Cluster, four_nodes: Training, tmp_path: Path
) -> None:
    rank = four_nodes.ranks[2]
    with stopped(cluster, four_nodes, rank):
        said = triage(four_nodes.job, "--no-nodes")
        closed = tmp_path / "config.yaml"
        closed.write_text("node_access: off\n")
        off = triage(four_nodes.job, "--config", str(closed))
    for one in (said, off):
        assert one.data["state"] in ("unknown", "healthy"), one.out
        assert one.data["culprits"] == []
        assert fates(one.data)["nodes"] == {"not asked"}


@pytest.mark.long
def test_one_silent_node_is_named_as_silent_and_blamed_for_nothing(
    cluster: Cluster, four_nodes: Training, faults: Faults
) -> None:
    rank = next(one for one in four_nodes.ranks if one.host == "gpu02")
    with stopped(cluster, four_nodes, rank):
        faults.set_ssh("gpu03", "closed", cut=True)
        try:
            said = triage(four_nodes.job, "--node-access", "ssh")
        finally:
            faults.open_ssh()
    silent = [
        one
        for one in said.data["sources"]
        if one["source"] == "nodes" and one["fate"] != "answered"
    ]
    assert [one["hosts"] for one in silent] == [["gpu03"]], said.data["sources"]
    assert "gpu03" not in {host for _, host in culprits(said.data)}
    assert culprits(said.data) in ([(rank.rank, rank.host)], [])


@pytest.mark.long
def test_a_look_leaves_nothing_behind(cluster: Cluster, four_nodes: Training) -> None:
    triage(four_nodes.job, "--look")
    for host in ("gpu01", "gpu02", "gpu03", "gpu04"):
        left = cluster.ssh(host, "ps", "-eo", "args")
        assert not re.search(r"slurmtop-(probe|stacks|script|agent|request)|py-spy", left), left


@pytest.mark.long
def test_a_strangers_job_is_read_as_far_as_it_may_be(cluster: Cluster, faults: Faults) -> None:
    job = faults.submit_other(name=f"{cluster.tag}-strange", private_log=True)
    cluster.wait_state(job, "RUNNING")
    said = triage(job)
    assert said.data["culprits"] == []
    assert said.data["state"] in ("unknown", "healthy", "idle"), said.out
    told = fates(said.data)
    assert told["slurm"] == {"answered"}
    assert told["logs"] == {"refused"}
    closed = [one for one in said.data["sources"] if one["fate"] == "refused"]
    assert all(one["why"] for one in closed), closed
    steps = cluster.squeue("-s", "-j", job, "-o", "%j")
    assert "slurmtop" not in steps, "no step is opened in the job of somebody else"
