"""What a verdict offers to type: the very job that was asked for, and a proof that can be read."""

import pytest

from slurmtop.model.verdict import Evidence, State, Verdict
from slurmtop.triage.subject import Subject
from slurmtop.triage.words import four_lines
from tests.triage.builders import facts, job

PROOF = Evidence(
    family="process",
    host="gpu01",
    source="/proc/26646 on gpu01",
    text="python 26646: State: S (sleeping) wchan: hrtimer_nanosleep cpu: +0.00 s in 5 s",
    says="what it was seen to do",
)


@pytest.mark.parametrize(
    ("asked", "id", "own"),
    [
        ("1550+0", "1550+0", "1550+0"),
        ("1550+1", "1550+1", "1550+1"),
        ("1550", "1550+0", "1550"),
        ("4711_3", "4711_3", "4711_3"),
        ("4711", "4711", "4711"),
        ("1550+1;reboot", "1550+1", "1550"),
    ],
)
def test_a_part_of_a_het_job_stays_that_part(asked: str, id: str, own: str) -> None:
    subject = Subject(facts(asked=asked, job=job("RUNNING", id)))
    assert subject.why() == f"slurmtop why {own}"
    assert subject.save() == f"slurmtop triage {own} --save triage-{own}"
    assert "+" not in subject.show_job(), "Slurm's own commands take the number"


def test_the_cluster_that_was_named_is_named_again() -> None:
    subject = Subject(facts(asked="4711", cluster="beta", job=job("RUNNING")))
    assert subject.save().endswith(" --cluster beta")


def test_the_proof_of_a_process_is_told_by_its_host() -> None:
    verdict = Verdict(job="4711", state=State.UNKNOWN, summary="?", evidence=(PROOF,))
    proof = four_lines(verdict, 80)[2]
    assert proof.startswith(
        "proof  gpu01: python 26646: State: S (sleeping) wchan: hrtimer_nanosleep"
    )
    assert "/proc/26646 on gpu01" in four_lines(verdict, 200)[2]
