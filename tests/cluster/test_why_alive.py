"""``slurmtop why`` for jobs that wait, are held, can never start, or run."""

from collections.abc import Iterator

import pytest

from tests.cluster.desk import slurmtop
from tests.cluster.fixtures import Cluster
from tests.cluster.verdicts import ask, first_step_works

# The next tests need a job that a time limit ended, and that takes a while.
pytestmark = pytest.mark.usefixtures("time_limit_job")

STEPS = """\
#!/bin/bash
for step in $(seq 1 40); do echo "step $step/1000 | loss 0.$step"; done
while true; do sleep 0.2; step=$((step + 1)); echo "step $step/1000 | loss 0.25"; done
"""


class Alive:
    """Jobs of every kind that is not over."""

    def __init__(self, cluster: Cluster) -> None:
        submit, tag = cluster.submit, f"{cluster.tag}w"
        self.failed = submit("exit 1", job_name=f"{tag}-parent")
        self.training = submit(STEPS, job_name=f"{tag}-steps", gres="gpu:h100:1", time=45)
        self.quiet = submit("sleep 900", job_name=f"{tag}-quiet", time=45)
        self.nowhere = submit("sleep 900", job_name=f"{tag}-nowhere", output="/dev/null")
        self.array = submit(
            "sleep 900", job_name=f"{tag}-array", array="0-7%3", output=f"{cluster.dir}/%A_%a.log"
        )
        for job in (self.training, self.quiet, self.nowhere):
            cluster.wait_state(job, "RUNNING")
        cluster.wait_for("the tasks", lambda: cluster.states(self.array) == {"RUNNING", "PENDING"})
        self.held = submit("true", job_name=f"{tag}-held", hold=True)
        self.never = submit("true", dependency=f"afterok:{self.failed}", job_name=f"{tag}-never")
        self.after = submit("true", dependency=f"afterok:{self.quiet}", job_name=f"{tag}-after")
        self.later = submit("true", begin="now+2hours", job_name=f"{tag}-later")
        self.big = submit("true", nodes=4, gres="gpu:h100:8", job_name=f"{tag}-big")
        self.all = (
            *(self.training, self.quiet, self.nowhere, self.array, self.held, self.never),
            *(self.after, self.later, self.big),
        )
        for job, word in (
            (self.held, "JobHeldUser"),
            (self.never, "DependencyNeverSatisfied"),
            (self.after, "Dependency"),
            (self.later, "BeginTime"),
            (self.big, "Resources"),
        ):
            cluster.wait_reason(job, word)


@pytest.fixture(scope="module")
def alive(cluster: Cluster) -> Iterator[Alive]:
    made = Alive(cluster)
    try:
        yield made
    finally:
        cluster.run("scancel", *made.all, check=False)


def test_waiting_says_why_and_when(cluster: Cluster, alive: Alive) -> None:
    def planned() -> bool:
        return cluster.squeue("-j", alive.big, "-o", "%S") != ["N/A"]

    cluster.wait_for("a guess of the scheduler", planned, 60)
    answer = ask(alive.big)
    assert (answer.rc, answer.state, answer.ended_by) == (0, "pending", None)
    assert "waiting" in answer.summary
    assert "the nodes it needs are busy" in answer.summary
    assert "(Resources)" in answer.summary
    assert "may start in" in answer.summary
    assert "Reason=Resources" in answer.first_evidence["text"]
    assert answer.lines["who"] == "nobody: it is not running"
    first_step_works(answer)


def test_begin_time(alive: Alive) -> None:
    answer = ask(alive.later)
    assert (answer.rc, answer.state) == (0, "pending")
    assert "BeginTime" in answer.summary
    assert "1.9 h" in answer.summary or "2.0 h" in answer.summary or "119 min" in answer.summary


def test_held_says_who_can_release_it(alive: Alive) -> None:
    answer = ask(alive.held)
    assert (answer.rc, answer.state) == (0, "pending")
    assert answer.summary.startswith("held")
    assert answer.lines["do"].startswith(f"scontrol release {alive.held}")
    assert answer.data["next"][0]["effect"] == "write"


def test_dependency_that_can_never_be_met(alive: Alive) -> None:
    answer = ask(alive.never)
    assert (answer.rc, answer.state) == (0, "pending")
    assert answer.summary.startswith("never starts as it is")
    assert "DependencyNeverSatisfied" in answer.summary
    assert answer.data["confidence"] == "high"
    commands = [step["command"] for step in answer.data["next"]]
    assert f"scancel {alive.never}" in commands


def test_dependency_names_the_job_it_waits_for(alive: Alive) -> None:
    answer = ask(alive.after)
    assert (answer.rc, answer.state) == (0, "pending")
    assert alive.quiet in answer.summary
    assert answer.lines["do"].startswith(f"slurmtop why {alive.quiet}")
    first_step_works(answer)


def test_running_with_a_step_counter(cluster: Cluster, alive: Alive) -> None:
    log = cluster.log(alive.training)
    cluster.wait_for("some steps", lambda: "step 45/1000" in log.read_text())
    answer = ask(alive.training)
    last = log.read_text().splitlines()
    assert (answer.rc, answer.state, answer.cls) == (0, "healthy", "healthy")
    assert answer.ended_by is None
    proof = answer.first_evidence
    assert (proof["family"], proof["source"]) == ("log", str(log))
    assert last[proof["line"] - 1] == proof["text"], "the raw line stands where it says"
    step = int(proof["text"].split()[1].partition("/")[0])
    assert f"step {step} of 1,000" in answer.summary
    assert "log written 0 s ago" in answer.summary or "log written 1 s ago" in answer.summary
    assert "min left" in answer.summary
    first_step_works(answer)


def test_quiet_running_job_is_never_called_hung(alive: Alive) -> None:
    for job in (alive.quiet, alive.nowhere):
        answer = ask(job)
        assert answer.rc == 0
        assert answer.state in ("unknown", "healthy", "idle")
        assert answer.data["culprits"] == []
        assert "hang" not in answer.summary.replace("that alone is not a hang", "")
        assert "hung" not in answer.summary


@pytest.mark.long
def test_array_is_told_as_a_whole_and_task_by_task(alive: Alive) -> None:
    answer = ask(alive.array)
    assert answer.rc == 0
    assert "8 tasks: 3 running, 5 waiting" in answer.summary
    task = ask(f"{alive.array}_0")
    assert task.rc == 0
    assert task.data["job"] == f"{alive.array}_0"
    assert "8 tasks" not in task.summary
    waiting = slurmtop("why", f"{alive.array}_7")
    assert waiting.rc == 0, waiting.out
    assert "waiting" in waiting.lines[0]
