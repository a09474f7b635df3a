"""``slurmtop why`` for jobs that are over, one for every way to end."""

from collections.abc import Iterator

import pytest

from tests.cluster.desk import slurmtop
from tests.cluster.endings import BROKEN_NODE, Endings
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster
from tests.cluster.verdicts import ask, first_step_works


@pytest.fixture(scope="module")
def ended(cluster: Cluster) -> Iterator[Endings]:
    with Faults(cluster.layout.fault_socket) as faults:
        made = Endings(cluster, faults)
    try:
        yield made
    finally:
        made.clean()


def test_python_exception_is_the_proof(ended: Endings) -> None:
    answer = ask(ended.traceback)
    log = ended.log(ended.traceback)
    lines = log.read_text().splitlines()
    number = lines.index("ValueError: shard data-07 is empty") + 1
    assert answer.rc == 2
    assert (answer.state, answer.cls, answer.ended_by) == ("failed", "python-exception", "self")
    assert "ValueError: shard data-07 is empty" in answer.summary
    assert "exit code 1" in answer.summary
    proof = answer.first_evidence
    assert (proof["family"], proof["source"]) == ("log", str(log))
    assert (proof["text"], proof["line"]) == ("ValueError: shard data-07 is empty", number)
    assert answer.lines["proof"].endswith("ValueError: shard data-07 is empty")
    assert f"{log.name}:{number}:" in answer.lines["proof"]
    assert answer.lines["do"] == f"less +{number} {log}"
    first_step_works(answer)


def test_output_that_cannot_be_written(ended: Endings) -> None:
    answer = ask(ended.no_log)
    assert answer.rc == 2
    assert (answer.state, answer.cls) == ("failed", "slurm-launch-failure")
    assert answer.ended_by == "fault"
    assert "output file or its directory could not be created" in answer.summary
    assert f"/root/nowhere/{ended.no_log}.log" in answer.summary
    assert "ExitCode=0:53" in answer.first_evidence["text"]
    told = str(answer.data)
    assert "signal 53" not in told.lower()
    assert not any(step["command"].startswith(("tail", "less")) for step in answer.data["next"])
    first_step_works(answer)


def test_segmentation_fault(ended: Endings) -> None:
    answer = ask(ended.segfault)
    assert answer.rc == 2
    assert answer.state == "failed"
    assert answer.cls != "slurm-launch-failure", "it was started"
    assert "SIGSEGV" in answer.summary
    assert "could not be started" not in answer.summary
    assert any("ExitCode=0:11" in item["text"] for item in answer.data["evidence"])


def test_completed(ended: Endings) -> None:
    answer = ask(ended.completed)
    assert answer.rc == 0
    assert (answer.state, answer.cls, answer.ended_by) == ("healthy", "healthy", "self")
    assert answer.data["confidence"] == "high"
    assert answer.summary.startswith("completed")
    assert answer.data["culprits"] == []
    first_step_works(answer)


def test_cancelled_while_it_ran(ended: Endings) -> None:
    answer = ask(ended.cancelled)
    assert answer.rc == 2
    assert (answer.state, answer.cls, answer.ended_by) == ("failed", "user-interrupt", "user")
    assert "cancelled" in answer.summary
    assert "by its owner" in answer.summary
    assert answer.lines["who"] == "a person ended it, no rank did"
    assert any("CANCELLED" in item["text"] for item in answer.data["evidence"])
    first_step_works(answer)


def test_cancelled_before_it_ran(ended: Endings) -> None:
    answer = ask(ended.never_ran)
    assert answer.rc == 2
    assert (answer.state, answer.ended_by) == ("failed", "user")
    assert "before it started" in answer.summary
    assert answer.data["missing"] == [], "there is no log to miss"


def test_node_failure_names_the_node_that_failed(ended: Endings) -> None:
    answer = ask(ended.node_fail)
    assert answer.rc == 2
    assert (answer.state, answer.cls, answer.ended_by) == ("failed", "slurm-node-fail", "fault")
    hosts = [culprit["host"] for culprit in answer.data["culprits"]]
    assert hosts == [BROKEN_NODE], "and not the batch host, which only reports it"
    assert answer.lines["who"].startswith(BROKEN_NODE)
    assert f"Node failure on {BROKEN_NODE}" in answer.first_evidence["text"]
    assert BROKEN_NODE in answer.data["next"][0]["command"]
    first_step_works(answer)


def test_preempted(ended: Endings) -> None:
    answer = ask(ended.preempted)
    assert answer.rc == 2
    assert (answer.state, answer.cls, answer.ended_by) == ("failed", "slurm-preempted", "slurm")
    assert answer.data["culprits"] == []
    assert "a job that goes first" in answer.summary
    # What its ranks threw when they were told to end is no cause.
    assert "cannot save" in ended.log(ended.preempted).read_text()
    assert "PREEMPTION" in answer.first_evidence["text"]


def test_requeued_waits_and_has_not_failed(ended: Endings) -> None:
    answer = ask(ended.requeued)
    assert answer.rc == 0
    assert (answer.state, answer.cls, answer.ended_by) == ("pending", "slurm-requeue", None)
    assert "again (1 restart)" in answer.summary


def test_time_limit(cluster: Cluster, time_limit_job: str) -> None:
    cluster.wait_state(time_limit_job, "TIMEOUT", 180)
    answer = ask(time_limit_job)
    assert answer.rc == 2
    assert (answer.state, answer.cls, answer.ended_by) == ("failed", "slurm-time-limit", "slurm")
    assert "time limit of 1:00" in answer.summary
    assert "DUE TO TIME LIMIT" in answer.first_evidence["text"]
    assert answer.data["culprits"] == []
    assert "cannot save" in cluster.log(time_limit_job).read_text()


def test_copy_is_a_block_with_times_and_versions(ended: Endings) -> None:
    said = slurmtop("why", ended.traceback, "--copy")
    assert said.rc == 2
    assert said.lines[0] == (
        f"job {ended.traceback}, state failed, class python-exception, confidence high"
    )
    assert any(line.startswith("proof:") and "ValueError" in line for line in said.lines)
    assert "Slurm 22." in said.lines[-1]


def test_from_accounting_once_the_controller_has_forgotten(
    cluster: Cluster, ended: Endings, faults: Faults
) -> None:
    """Its exit code, its owner and its end stand in accounting; where its log was does not."""

    jobs = {
        ended.traceback: ("FAILED", "failed", 2),
        ended.completed: ("COMPLETED", "healthy", 0),
        ended.cancelled: ("CANCELLED", "failed", 2),
    }
    for job, (word, _, _) in jobs.items():
        cluster.wait_accounting(job, word)
    faults.forget_ended()
    for job in jobs:
        cluster.wait_forgotten(job)
    for job, (word, state, rc) in jobs.items():
        answer = ask(job)
        assert (answer.rc, answer.state) == (rc, state)
        assert "sacct" in answer.first_evidence["source"]
        assert word in answer.first_evidence["text"]
        if state == "failed":
            assert "log" in {item["family"] for item in answer.data["missing"]}
            assert "where it is" in answer.missing
        first_step_works(answer)
    assert "exit code 1" in ask(ended.traceback).summary
    assert "by its owner" in ask(ended.cancelled).summary


def test_unknown_everywhere(cluster: Cluster) -> None:
    unknown = "98765432"
    said = slurmtop("why", unknown)
    assert said.rc == 1
    assert said.took_s < 10
    assert "not in the queue and not in accounting" in said.lines[0]
    data = slurmtop("why", unknown, "--json")
    assert data.rc == 1
    assert data.data["state"] == "unknown"
    assert data.data["culprits"] == []
