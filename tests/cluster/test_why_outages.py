"""``slurmtop why`` while a part of Slurm does not answer: words, never a wrong statement."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster.desk import Said, slurmtop
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster
from tests.cluster.verdicts import LONGEST_S, check_verdict, four, tells_only_how_it_came

UNKNOWN = "98765431"
#: What nobody may be told while the controller is silent.
WRONG = ("no such job", "not in the queue", "unknown: ", "never existed", "completed")


class Known:
    """A running job and one that has ended, both in accounting."""

    def __init__(self, cluster: Cluster) -> None:
        tag = cluster.tag
        self.running = cluster.submit("echo working; sleep 900", job_name=f"{tag}-running")
        self.failed = cluster.submit("exit 7", job_name=f"{tag}-failed")
        cluster.wait_state(self.running, "RUNNING")
        cluster.wait_state(self.failed, "FAILED")
        cluster.wait_accounting(self.running, "RUNNING")
        cluster.wait_accounting(self.failed, "FAILED")


@pytest.fixture(scope="module")
def known(cluster: Cluster) -> Iterator[Known]:
    made = Known(cluster)
    try:
        yield made
    finally:
        cluster.run("scancel", made.running, check=False)


def _ask(*jobs: str) -> list[Said]:
    """Ask for several jobs at once, each as JSON."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        answers = list(pool.map(lambda job: slurmtop("why", job, "--json"), jobs))
    for said in answers:
        assert said.took_s < LONGEST_S
        assert tells_only_how_it_came(said.err), said.err
        check_verdict(said.data)
    return answers


def _summary(said: Said) -> str:
    return str(said.data["summary"])


def _missing(said: Said) -> str:
    return " ".join(f"{item['why']} {item['command']}" for item in said.data["missing"])


@pytest.mark.parametrize("how", ["killed", pytest.param("stopped", marks=pytest.mark.long)])
def test_controller_that_does_not_answer(
    known: Known, faults: Faults, cluster: Cluster, how: str
) -> None:
    if how == "killed":
        faults.kill("slurmctld")
    else:
        faults.stop("slurmctld")
    running, failed, unknown = _ask(known.running, known.failed, UNKNOWN)
    for said in (running, unknown):
        assert said.data["state"] == "unknown"
        assert "the controller is silent" in _summary(said)
        for words in WRONG:
            assert words not in _summary(said)
        assert "scontrol show job" in _missing(said)
        assert "scontrol ping" in {step["command"] for step in said.data["next"]}
    assert "RUNNING" in _summary(running), "what accounting has"
    assert running.rc == 0
    assert unknown.rc == 1
    assert failed.rc == 2, "accounting knows how it ended"
    assert failed.data["state"] == "failed"
    assert "exit code 7" in _summary(failed)
    assert failed.data["confidence"] != "high"


def test_controller_and_accounting_down(known: Known, faults: Faults) -> None:
    faults.kill("slurmctld")
    faults.kill("slurmdbd")
    (said,) = _ask(known.running)
    assert said.rc == 1
    assert "neither the controller nor accounting answers" in _summary(said)
    assert "sacct" in _missing(said)


def test_munge_down_is_told_as_that(known: Known, faults: Faults) -> None:
    faults.kill("munged")
    (said,) = _ask(known.running)
    assert said.data["state"] == "unknown"
    assert "munge" in _missing(said).lower()
    for words in WRONG:
        assert words not in _summary(said)


def test_accounting_down_costs_only_what_it_alone_knows(
    cluster: Cluster, known: Known, faults: Faults
) -> None:
    faults.kill("slurmdbd")
    running, failed = _ask(known.running, known.failed)
    assert running.rc == 0
    assert running.data["state"] in ("healthy", "idle", "unknown")
    assert "controller is silent" not in _summary(running)
    assert failed.rc == 2
    assert failed.data["state"] == "failed"
    assert "exit code 7" in _summary(failed)
    assert "sacct" in _missing(failed)
    assert "accounting" in _missing(failed)
    faults.forget_ended()
    cluster.wait_forgotten(known.failed)
    told = slurmtop("why", known.failed)
    assert told.rc == 1
    what = four(told)["what"]
    assert "accounting" in what
    assert "not in accounting" not in what
    assert not any(words in what for words in ("no such job", "never existed"))
