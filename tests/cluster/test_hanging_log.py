"""The log lies on a file system that hangs, and so does a rank: the rank is named all the same."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.desk import slurmtop
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster
from tests.cluster.test_why_live import QUIET_S, culprits, fates, triage
from tests.cluster.training import Training, trains

#: Each takes a minute: left to make test-long.
pytestmark = pytest.mark.long


@pytest.fixture
def apart(cluster: Cluster) -> Iterator[tuple[Training, Path]]:
    """A training whose log has a folder of its own; ranks tell of themselves elsewhere."""
    folder = cluster.dir / "logs"
    folder.mkdir()
    with trains(cluster, output=f"{folder}/%j.log", log=folder) as training:
        yield training, folder


def test_a_rank_is_named_while_its_log_hangs(
    cluster: Cluster, apart: tuple[Training, Path], faults: Faults
) -> None:
    training, folder = apart
    rank, log = training.ranks[3], folder / f"{training.job}.log"
    cluster.ssh(rank.host, "kill", "-STOP", str(rank.pid))
    try:
        cluster.wait_for(
            "a quiet log", lambda: time.time() - log.stat().st_mtime > QUIET_S + 1, QUIET_S + 30
        )
        faults.hang(folder)
        begun = time.monotonic()
        said = triage(training.job)
        took_s = time.monotonic() - begun
        why = slurmtop("why", training.job)
    finally:
        faults.restore()
        cluster.ssh(rank.host, "kill", "-CONT", str(rank.pid))
    print(f"{took_s:.1f} s", said.data["summary"], why.out)
    assert (said.data["state"], said.data["class"]) == ("hung", "process-stopped"), said.out
    assert culprits(said.data) == [(rank.rank, rank.host)]
    assert fates(said.data)["logs"] == {"timed out"}, said.data["sources"]
    assert why.rc == 2
    assert f"rank {rank.rank} " in why.lines[1]
    assert log.exists(), "it answers again"
