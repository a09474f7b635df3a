"""``slurmtop doctor`` on the real cluster: what is open, what a fault closes, what it costs."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.desk import Said, slurmtop
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster
from tests.cluster.gpu_desk import Watchman, steps

#: A person waits for it.
LONGEST_S = 30.0


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> Iterator[str]:
    """Two nodes with a process each that has NCCL's settings, as a rank has."""
    script = "export NCCL_DEBUG=INFO; srun bash -c 'export RANK=$SLURM_PROCID; sleep 900'"
    id = cluster.submit(script, nodes=2, gres="gpu:h100:2", job_name=f"{cluster.tag}-doctor")
    cluster.wait_state(id, "RUNNING")
    cluster.wait_for("its step", lambda: bool(cluster.squeue("-s", "-j", id)))
    yield id
    cluster.run("scancel", id, check=False)


def nodes_of(cluster: Cluster, job: str) -> list[str]:
    (text,) = cluster.squeue("-j", job, "-o", "%N")
    return cluster.run("scontrol", "show", "hostnames", text).stdout.split()


def ask(*arguments: str, rc: int = 0) -> dict[str, dict[str, Any]]:
    """Rows by their source."""
    said = slurmtop("doctor", *arguments, "--json")
    assert said.rc == rc, said
    assert said.took_s < LONGEST_S
    assert said.data["schema"] == "slurmtop.doctor/1"
    return {row["source"]: row for row in said.data["rows"]}


def refused(row: dict[str, Any], *words: str) -> str:
    """It was refused, in a sentence with ``words``, and it is told what opens it."""
    assert row["status"] == "refused", row
    for word in words:
        assert word in row["why"].lower(), row
    return str(row["why"])


def test_all_ways_are_open(cluster: Cluster, job: str, faults: Faults) -> None:
    first = nodes_of(cluster, job)[0]
    watchman = Watchman(faults)
    before = len(steps(cluster, job))
    faults.rpc_counts(reset=True)
    rows = ask()
    made = faults.rpc_counts().get(cluster.user, 0)
    for way in ("ssh", "ssh command", "srun step"):
        row = rows[f"{way} to {first}"]
        assert row["status"] == "reachable", row
        assert f"as {cluster.user}" in row["why"]
    for source in ("own queue", "details of a job", "batch script", "accounting (sacct)"):
        assert rows[source]["status"] == "reachable", rows[source]
    assert rows[f"log of {job}"]["status"] == "reachable"
    assert rows["GPU values"]["status"] == "reachable"
    assert rows["GPU activity (DCGM)"]["status"] == "reachable"
    assert rows["debug settings of ranks"]["why"] == "NCCL_DEBUG=INFO"
    assert "ordinary user" in rows["jobs of others"]["why"]
    watchman.all_gone(cluster)
    assert len(steps(cluster, job)) == before + 1, "one step and no more"
    # The questions of doctor itself, and those of its one srun.
    assert made <= 20


def test_a_stopped_sshd_is_refused_in_words_and_srun_goes_on(
    cluster: Cluster, job: str, faults: Faults
) -> None:
    first, second = nodes_of(cluster, job)
    faults.stop_node(first, "sshd")
    rows = ask(first, second)
    for way in ("ssh", "ssh command"):
        row = rows[f"{way} to {first}"]
        refused(row, first, "refuses connections")
        assert row["opens"]
        assert rows[f"{way} to {second}"]["status"] == "reachable"
    assert rows[f"srun step to {first}"]["status"] == "reachable"
    assert rows["debug settings of ranks"]["host"] == first


def test_an_unknown_host_key_is_refused_with_the_line_to_add(
    cluster: Cluster, job: str, faults: Faults
) -> None:
    first = nodes_of(cluster, job)[0]
    faults.set_ssh(first, "unknown key")
    rows = ask(job)
    words = refused(rows[f"ssh to {first}"], "host key", "add this line")
    assert "ssh-ed25519 " in words
    assert "known hosts" in rows[f"ssh to {first}"]["opens"]
    refused(rows[f"ssh command to {first}"], "host key")


def test_a_key_that_is_refused(cluster: Cluster, job: str, faults: Faults) -> None:
    first = nodes_of(cluster, job)[0]
    faults.set_ssh(first, "refuses")
    rows = ask(job)
    refused(rows[f"ssh to {first}"], "key")
    refused(rows[f"ssh command to {first}"], "key")
    assert rows[f"srun step to {first}"]["status"] == "reachable"


def test_without_a_job_no_node_is_tried(cluster: Cluster, job: str, faults: Faults) -> None:
    cluster.cancel_all()
    watchman = Watchman(faults)
    rows = ask()
    assert rows["nodes"]["status"] == "not asked"
    assert "pam_slurm_adopt" in rows["nodes"]["why"]
    assert not watchman.new()


def test_the_job_of_somebody_else(cluster: Cluster, faults: Faults) -> None:
    other = faults.submit_other(gpus=1)
    cluster.wait_state(other, "RUNNING")
    watchman = Watchman(faults)
    rows = ask(other)
    assert rows["nodes"]["status"] == "not asked"
    assert f"only {cluster.users[1]} and operators" in rows["nodes"]["why"]
    assert f"slurmtop doctor {other}" in rows["nodes"]["why"]
    assert not watchman.new()


@pytest.mark.long
def test_a_silent_controller(faults: Faults) -> None:
    faults.kill("slurmctld")
    rows = ask(rc=1)
    refused(rows["own queue"], "controller")
    assert rows["accounting (sacct)"]["status"] == "reachable"
    assert rows["queue, everybody"]["status"] == "not asked"
    assert rows["settings files"]["status"] in ("reachable", "absent")


def test_the_table_fits_into_80_columns(cluster: Cluster) -> None:
    said: Said = slurmtop("doctor", environ={"LANG": "C", "LC_ALL": "C"})
    assert said.rc == 0, said
    assert said.err == ""
    assert said.out.isascii()
    for line in said.lines:
        assert len(line) <= 80 or "/" in line
