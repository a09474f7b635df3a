"""The whole program on the real cluster: in a terminal, without one, and while Slurm is down."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.cluster.desk import slurmtop
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> Iterator[str]:
    made = cluster.submit("sleep 900", job_name=f"{cluster.tag}-start")
    cluster.wait_state(made, "RUNNING")
    yield made
    cluster.run("scancel", made, check=False)


def _environ(state: Path) -> Mapping[str, str]:
    return {**os.environ, "XDG_STATE_HOME": str(state)}


def test_first_rows_in_a_terminal(
    cluster: Cluster, job: str, faults: Faults, tmp_path: Path
) -> None:
    before = faults.rpc_counts().get(cluster.user, 0)
    with Terminal(_environ(tmp_path), columns=140) as terminal:
        terminal.wait_for(job)
        terminal.wait_for(f"{cluster.tag}-start")
        terminal.type("q")
        assert terminal.leave() == 0
        assert terminal.restored
    spent = faults.rpc_counts()[cluster.user] - before
    # One squeue, and what the cluster calls itself.
    assert 2 <= spent <= 4
    assert not (tmp_path / "slurmtop").exists(), "looking leaves nothing behind"


def test_started_while_nothing_answers(job: str, faults: Faults, tmp_path: Path) -> None:
    faults.kill("munged")
    with Terminal(_environ(tmp_path), columns=140) as terminal:
        terminal.wait_for("This is not an empty queue")
        assert "munge" in terminal.text
        terminal.type("q")
        assert terminal.leave() == 0
        assert terminal.restored


def test_left_while_squeue_hangs(job: str, faults: Faults, tmp_path: Path) -> None:
    faults.stop("slurmctld")
    with Terminal(_environ(tmp_path), columns=140) as terminal:
        terminal.wait_for("asking Slurm for your jobs")
        terminal.type("q")
        assert terminal.leave(8) == 0
        assert terminal.restored


def test_plain_report_and_tables(cluster: Cluster, job: str) -> None:
    report = slurmtop()
    assert (report.rc, report.err) == (0, "")
    assert f"of {cluster.user}" in report.lines[0]
    assert any(line.startswith(job) and "RUNNING" in line for line in report.lines)
    table = slurmtop("jobs", "--filter", f"{cluster.tag}-start state:running")
    assert table.rc == 0
    assert table.lines[0].startswith("1 job of ")
    data = slurmtop("jobs", "--json", "--filter", f"{cluster.tag}-start").data
    assert [found["id"] for found in data["jobs"]] == [job]


def test_what_cannot_be_read_is_one_line_and_exit_1(job: str, faults: Faults) -> None:
    faults.kill("munged")
    for arguments in ((), ("jobs",), ("jobs", "--json")):
        said = slurmtop(*arguments)
        assert said.rc == 1
        assert said.out == "", "nothing that looks like an empty queue"
        assert said.err.count("\n") == 1
        assert said.err.startswith("slurmtop: ")
        assert "munge" in said.err
