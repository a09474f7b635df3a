"""Somebody else's job hangs: what is read as a plain user, as root, and through ``sudo -n``."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.planted import ENVIRONMENT, SECRETS
from tests.cluster.desk import slurmtop
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster
from tests.cluster.layout import NODES
from tests.cluster.test_why_live import culprits, triage
from tests.cluster.verdicts import check_verdict

#: Each takes a minute: left to make test-long.
pytestmark = pytest.mark.long

QUIET_S = 11.0
STOPPED = 2


@dataclass(frozen=True)
class Theirs:
    """A training of the second user, and one rank of it: its node, and its pid there."""

    job: str
    host: str
    pid: int
    log: Path

    @property
    def rank(self) -> tuple[int, str]:
        return (STOPPED, self.host)


@pytest.fixture(scope="module")
def training(cluster: Cluster) -> Iterator[Theirs]:
    with Faults(cluster.layout.fault_socket) as faults:
        env = dict(word.partition("=")[::2] for word in ENVIRONMENT if "MASTER" not in word)
        job, folder = faults.train_other(name=f"{cluster.tag}-theirs", env=env)
        log, place = folder / f"{job}.log", folder / f"rank-{job}-{STOPPED}"

        def at_work() -> bool:
            return place.exists() and "\nstep 2/" in log.read_text()

        cluster.wait_for("a training of the other user", at_work, 120)
        host, pid = place.read_text().split()[:2]
        yield Theirs(job, host, int(pid), log)


@pytest.fixture
def theirs(cluster: Cluster, training: Theirs, faults: Faults) -> Theirs:
    """The rank is stopped; whatever mends the cluster after a test lets it go on."""
    faults.signal_other(training.host, training.pid, stop=True)

    def quiet() -> bool:
        return time.time() - training.log.stat().st_mtime > QUIET_S

    cluster.wait_for("a quiet log", quiet, QUIET_S + 30)
    return training


def refusals(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["source"]: one for one in data["sources"] if one["fate"] == "refused"}


def nobody_innocent(data: dict[str, Any], theirs: Theirs) -> None:
    for one in data["culprits"]:
        assert (one["host"], one["pid"]) == (theirs.host, theirs.pid), one


def told_who_may(data: dict[str, Any], theirs: Theirs, owner: str) -> None:
    """What is closed stands there with what opens it."""
    closed = refusals(data)
    assert {"environment", "stacks"} <= set(closed), data["sources"]
    for one in closed.values():
        assert one["why"], one
    words = json.dumps(list(closed.values()))
    assert owner in words or "its owner" in words, closed
    assert "sudo" in words or "root" in words, closed
    commands = [one["command"] for one in closed.values() if one["command"]]
    assert commands, closed
    print(json.dumps(list(closed.values()), indent=1))


def sudo_config(tmp_path: Path) -> str:
    path = tmp_path / "config.yaml"
    path.write_text("node_sudo: true\n")
    return str(path)


def test_a_plain_user_reads_what_is_open_and_is_told_the_rest(
    cluster: Cluster, theirs: Theirs
) -> None:
    said = triage(theirs.job)
    print(said.data["state"], said.data["class"], said.data["summary"])
    nobody_innocent(said.data, theirs)
    assert said.data["state"] in ("hung", "unknown"), said.out
    fates = {one["source"]: one["fate"] for one in said.data["sources"]}
    assert fates["processes"] == "answered"
    told_who_may(said.data, theirs, cluster.users[1])
    # Nothing is opened in the job of somebody else.
    assert "slurmtop" not in cluster.squeue("-s", "-j", theirs.job, "-o", "%j")


def test_root_names_the_rank(cluster: Cluster, theirs: Theirs, faults: Faults) -> None:
    faults.let_root_in()
    said = faults.as_root("triage", theirs.job, "--json")
    print(said["err"], end="")
    assert said["rc"] == 2, said
    data = json.loads(said["out"])
    check_verdict(data)
    assert (data["state"], data["class"]) == ("hung", "process-stopped"), data["summary"]
    assert culprits(data) == [theirs.rank]
    assert data["culprits"][0]["pid"] == theirs.pid
    assert not {"environment", "stacks", "processes"} & set(refusals(data)), data["sources"]
    _nothing_left(faults)


def test_through_sudo_the_rank_is_named_and_the_bundle_is_masked(
    cluster: Cluster, theirs: Theirs, faults: Faults, tmp_path: Path
) -> None:
    faults.set_sudo("granted")
    to = tmp_path / "bundle"
    said = triage(theirs.job, "--config", sudo_config(tmp_path), "--save", str(to))
    assert (said.data["state"], said.data["class"]) == ("hung", "process-stopped"), said.out
    assert culprits(said.data) == [theirs.rank]
    assert not {"environment", "stacks"} & set(refusals(said.data)), said.data["sources"]
    kept = b"".join(one.read_bytes() for one in sorted(to.iterdir()))
    assert [one for one in SECRETS if one.encode() in kept or one in said.out] == []
    again = slurmtop("triage", "--json", str(to))
    for name in ("state", "class", "culprits", "summary", "sources"):
        assert again.data[name] == said.data[name], name
    _nothing_left(faults)


def test_where_sudo_refuses_it_is_as_for_anybody(
    cluster: Cluster, theirs: Theirs, faults: Faults, tmp_path: Path
) -> None:
    faults.set_sudo("refused")
    said = triage(theirs.job, "--config", sudo_config(tmp_path))
    print(said.data["state"], said.data["class"], said.data["summary"])
    nobody_innocent(said.data, theirs)
    told_who_may(said.data, theirs, cluster.users[1])
    assert "sudo" in json.dumps([one["why"] for one in said.data["sources"]])
    _nothing_left(faults)


def _nothing_left(faults: Faults) -> None:
    for node in NODES:
        words = " ".join(one.argv for one in faults.processes(node))
        assert not re.search(r"slurmtop-(probe|stacks|script|agent|request)|py-spy", words), words
