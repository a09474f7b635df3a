"""``slurmtop gpus`` and ``export`` on four real nodes, beside what the ranks say themselves."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.desk import slurmtop
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster
from tests.cluster.gpu_desk import Watchman, steps
from tests.cluster.layout import NODES
from tests.cluster.training import Training, trains

SSH_ONLY = "node_access: ssh\n"


@pytest.fixture(autouse=True)
def nothing_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No way onto nodes of an earlier test is tried first."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def gpus(*arguments: str, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    said = slurmtop("gpus", *arguments, "--json", environ=environ)
    assert said.out, said
    assert said.data["schema"].startswith("slurmtop.gpus/")
    return said.data


def placed(job: dict[str, Any]) -> set[tuple[int, str, int, str]]:
    """(rank, host, pid, UUID) of each rank that was told."""
    return {
        (rank["rank"], gpu["host"], rank["pid"], gpu["uuid"])
        for gpu in job["gpus"]
        for rank in gpu["ranks"]
    }


def truth(training: Training) -> set[tuple[int, str, int, str]]:
    return {(rank.rank, rank.host, rank.pid, rank.uuid) for rank in training.ranks}


def test_every_rank_on_its_gpu(cluster: Cluster, training: Training, faults: Faults) -> None:
    watchman = Watchman(faults)
    (job,) = gpus(training.job)["jobs"]
    assert job["job"] == training.job
    assert job["hosts_answered"] == job["hosts_asked"] == 4
    assert len(job["gpus"]) == job["gpus_allocated"] == 8
    assert placed(job) == truth(training)
    assert {host["way"] for host in job["hosts"]} == {"ssh"}
    for gpu in job["gpus"]:
        assert gpu["pids"] == [rank["pid"] for rank in gpu["ranks"]]
        assert {rank["rung"] for rank in gpu["ranks"]} == {"environment"}
        assert {rank["world_size"] for rank in gpu["ranks"]} == {8}
        assert 95 <= gpu["util_percent"] <= 100
        assert 560 <= gpu["power_w"] <= 610
        assert gpu["level"] == "ok"
    watchman.all_gone(cluster)


def test_the_table_says_the_same(training: Training) -> None:
    said = slurmtop("gpus", training.job)
    assert said.rc == 0, said
    for rank in training.ranks:
        (line,) = [
            line
            for line in said.lines
            if line.split()[:4] == [rank.host, str(rank.gpu), str(rank.rank), str(rank.pid)]
        ]
        assert line.rstrip().endswith("ok")
    assert "4 of 4 hosts answered" in said.out
    assert said.took_s < 20


@pytest.mark.long
def test_ranks_in_containers_of_their_own(cluster: Cluster, faults: Faults) -> None:
    """Pid, mount and user namespaces of their own, and a /tmp that nobody else sees."""
    watchman = Watchman(faults)
    with trains(cluster, "trains_contained.sh", ranks=4) as training:
        (job,) = gpus(training.job)["jobs"]
        told = placed(job)
        assert {(rank, host, uuid) for rank, host, _, uuid in told} == {
            (one.rank, one.host, one.uuid) for one in training.ranks
        }
        # As the node itself numbers them, not as they do inside.
        outside = {(host, one.pid) for host, one in watchman.new() if one.name.startswith("python")}
        assert {(host, pid) for _, host, pid, _ in told} == outside


def test_own_jobs_where_none_is_named(training: Training) -> None:
    found = gpus()
    assert training.job in {job["job"] for job in found["jobs"]}


@pytest.mark.long
def test_nodes_by_name(training: Training) -> None:
    (job,) = gpus(training.job, "--hosts", "gpu02")["jobs"]
    assert {gpu["host"] for gpu in job["gpus"]} == {"gpu02"}
    assert sorted(job["hosts_not_asked"]) == ["gpu01", "gpu03", "gpu04"]


def test_each_failure_in_words_and_the_rest_in_numbers(
    training: Training, faults: Faults, tmp_path: Path
) -> None:
    settings = tmp_path / "config.yaml"
    settings.write_text(SSH_ONLY)
    faults.set_ssh("gpu02", "closed")
    faults.set_ssh("gpu03", "unknown key")
    faults.set_ssh("gpu04", "refuses")
    said = slurmtop("gpus", training.job, "--json", "--config", str(settings))
    assert said.rc == 0, said
    (job,) = said.data["jobs"]
    by_host = {host["host"]: host for host in job["hosts"]}
    assert by_host["gpu01"]["failure"] is None
    assert job["hosts_answered"] == 1
    assert job["mean_util_percent"] is None, "no average over those that did not answer"
    assert {gpu["host"] for gpu in job["gpus"]} == {"gpu01"}
    assert "refuses connections" in by_host["gpu02"]["failure"]
    assert "host key" in by_host["gpu03"]["failure"].lower()
    assert "refused every key" in by_host["gpu04"]["failure"]
    for host in ("gpu02", "gpu03", "gpu04"):
        assert host in by_host[host]["failure"]
        assert by_host[host]["gpus_seen"] is None


@pytest.mark.long
def test_a_driver_that_hangs_costs_its_own_node(
    cluster: Cluster, training: Training, faults: Faults
) -> None:
    watchman = Watchman(faults)
    faults.set_gpu("gpu04", "hung")
    done = subprocess.run(
        [sys.executable, "-m", "slurmtop", "gpus", training.job, "--json"],
        capture_output=True,
        timeout=150,
        check=False,
    )
    (job,) = json.loads(done.stdout)["jobs"]
    by_host = {host["host"]: host for host in job["hosts"]}
    assert job["hosts_answered"] == 3
    assert "driver on gpu04 does not answer" in by_host["gpu04"]["failure"]
    assert placed(job) == {one for one in truth(training) if one[1] != "gpu04"}
    watchman.all_gone(cluster)


def test_where_ssh_is_closed_one_step_does_it(
    cluster: Cluster, training: Training, faults: Faults
) -> None:
    faults.close_ssh()
    watchman = Watchman(faults)
    before = len(steps(cluster, training.job))
    (job,) = gpus(training.job)["jobs"]
    assert placed(job) == truth(training)
    assert {host["way"] for host in job["hosts"]} == {"srun"}
    watchman.all_gone(cluster)
    assert len(steps(cluster, training.job)) == before + 1


def test_a_job_of_somebody_else_is_not_looked_at(cluster: Cluster, faults: Faults) -> None:
    other = faults.submit_other(gpus=1)
    cluster.wait_state(other, "RUNNING")

    def at_work() -> bool:
        found = (one for host in NODES for one in faults.processes(host))
        return any(one.user == cluster.users[1] and one.name == "sleep" for one in found)

    # Its script starts a moment after Slurm calls it running.
    cluster.wait_for("the other's program", at_work)
    watchman = Watchman(faults)
    said = slurmtop("gpus", other)
    assert said.rc == 1
    assert f"{cluster.users[1]}'s" in said.err
    assert len(said.err.splitlines()) == 1
    assert not watchman.new()


def test_export_is_the_truth(training: Training, tmp_path: Path) -> None:
    said = slurmtop("export")
    assert said.rc == 0, said
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(said.out):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    assert found["slurmtop_up"] == [({}, 1.0)]
    power = found["slurmtop_gpu_power_watts"]
    mine = [(labels, value) for labels, value in power if labels.get("job") == training.job]
    assert {labels["uuid"] for labels, _ in mine} == {rank.uuid for rank in training.ranks}
    assert all(560 <= value <= 610 for _, value in mine)
    reachable = {labels["host"]: value for labels, value in found["slurmtop_node_reachable"]}
    assert reachable == dict.fromkeys(NODES, 1.0)
    path = tmp_path / "slurmtop.prom"
    assert slurmtop("export", "--textfile", str(path)).rc == 0
    assert list(text_string_to_metric_families(path.read_text()))


@pytest.mark.parametrize("node", ["gpu03"])
def test_export_says_who_did_not_answer(
    training: Training, faults: Faults, tmp_path: Path, node: str
) -> None:
    settings = tmp_path / "config.yaml"
    settings.write_text(SSH_ONLY)
    faults.set_ssh(node, "closed")
    said = slurmtop("export", "--config", str(settings))
    reachable = {
        sample.labels["host"]: sample.value
        for family in text_string_to_metric_families(said.out)
        for sample in family.samples
        if sample.name == "slurmtop_node_reachable"
    }
    assert reachable == {**dict.fromkeys(NODES, 1.0), node: 0.0}
