"""The scorer itself: what it counts as right, as wrong, and as wrong blame."""

import io
from dataclasses import replace
from typing import Any

import pytest

from slurmtop.triage.catalogue import CATALOGUE, family_of
from tests.lab.plan import AT_ENDS, SMALL, full, small, usual
from tests.lab.rows import Look, Row, append, newest, read_rows
from tests.lab.score import counts, score, scores, table
from tests.lab.truth import TRUTH, Blame


def verdict(state: str, cls: str | None, *culprits: dict[str, Any], **more: str) -> dict[str, Any]:
    return {
        "state": state,
        "class": cls,
        "family": family_of(cls),
        "confidence": "high",
        "culprits": list(culprits),
        **more,
    }


def run(case: str, said: dict[str, Any] | None, **look: Any) -> Row:
    one = Look(when="fault", after_s=20.1, slurm="RUNNING", rc=2, took_s=8.0, verdict=said)
    measured = {"first_s": 2.0, "verdict_s": 8.0, "saved": True, "in_time": True, **look}
    return Row(case=case, rank=2, job="7", host="gpu03", pid=70, looks=(replace(one, **measured),))


def judged(case: str, said: dict[str, Any] | None, **look: Any) -> tuple[str, ...]:
    row = run(case, said, **look)
    return score(row, row.looks[0]).wrong


RANK = {"rank": 2, "host": "gpu03", "pid": 70}
OTHER = {"rank": 1, "host": "gpu02", "pid": 70}


def test_the_truth_uses_classes_of_the_catalogue() -> None:
    for truth in TRUTH.values():
        assert {*truth.classes, *truth.unsure} - {None} <= set(CATALOGUE)
    assert sum(truth.process_level for truth in TRUTH.values()) == 10


def test_all_is_right() -> None:
    assert judged("fifo", verdict("hung", "rank-elsewhere", RANK)) == ()
    assert judged("order-deadlock", verdict("hung", "collective-order-skew")) == ()
    assert judged("node-frozen", verdict("hung", "node-frozen", {"host": "gpu03"})) == ()
    assert judged("evaluation", verdict("healthy", None)) == ()
    assert judged("segfault", verdict("failed", "task-exit", RANK)) == ()


def test_a_class_that_is_accepted_is_counted_apart() -> None:
    row = run("node-frozen", verdict("hung", "process-stopped", RANK))
    found = score(row, row.looks[0])
    assert (found.cls, found.cls_accepted, found.culprit, found.wrong) == (False, True, True, ())


def test_a_guess_is_accepted_only_where_it_is_told_as_one() -> None:
    assert judged("sigkill", verdict("failed", "host-oom", RANK)) == ("class",)
    assert judged("sigkill", verdict("failed", "host-oom", RANK, confidence="low")) == ()


@pytest.mark.parametrize("culprits", [(OTHER,), (RANK, OTHER), ({"host": "gpu02"},)])
def test_an_innocent_is_blamed(culprits: tuple[dict[str, Any], ...]) -> None:
    wrong = judged("fifo", verdict("hung", "rank-elsewhere", *culprits))
    assert wrong == ("culprit", "blames an innocent")


def test_nobody_to_blame() -> None:
    assert "blames an innocent" in judged("steady", verdict("healthy", None, RANK))
    assert "blames an innocent" in judged(
        "order-deadlock", verdict("hung", "collective-order-skew", RANK)
    )
    mount = {"rank": None, "host": None, "mount": "/data"}
    assert judged("steady", verdict("healthy", None, mount)) == ()


def test_in_doubt_nobody_is_named() -> None:
    row = run("fifo", verdict("unknown", None))
    found = score(row, row.looks[0])
    assert (found.culprit, found.process_level, found.wrong_blame) == (False, False, False)
    assert TRUTH["nic-cut"].culprit is Blame.MAYBE_HOST
    assert judged("nic-cut", verdict("unknown", None)) == ()
    assert judged("nic-cut", verdict("hung", None, {"host": "gpu03"})) == ()
    assert "blames an innocent" in judged("nic-cut", verdict("hung", None, OTHER))


def test_the_process_is_as_good_as_its_number() -> None:
    process = {"rank": None, "host": "gpu03", "pid": 70}
    assert judged("fifo", verdict("hung", "rank-elsewhere", process)) == ()
    host_alone = {"rank": None, "host": "gpu03", "pid": None}
    assert judged("fifo", verdict("hung", "rank-elsewhere", host_alone)) == ("culprit",)


def test_false_alarm() -> None:
    wrong = judged("evaluation", verdict("hung", "missing-rank"))
    assert wrong == ("state", "class", "healthy called hung")


def test_a_random_second_may_be_before_what_the_case_is_named_after() -> None:
    said = verdict("healthy", None)
    assert "state" in judged("idle-shell", said, when="mid")
    assert judged("idle-shell", said, when="random") == ()


def test_late_or_missing() -> None:
    said = verdict("hung", "rank-elsewhere", RANK)
    assert judged("fifo", said, first_s=5.1) == ("first answer late",)
    assert judged("fifo", said, verdict_s=10.1) == ("verdict late",)
    assert judged("fifo", said, in_time=False) == ("bundle late",)
    assert judged("segfault", verdict("failed", "task-exit", RANK), in_time=False) == ()
    nothing = judged("fifo", None, first_s=None, verdict_s=None, saved=False)
    assert nothing == (
        *("state", "class", "culprit"),
        *("first answer late", "verdict late", "bundle late"),
    )


def test_counts_have_their_denominators() -> None:
    rows = [
        run("fifo", verdict("hung", "rank-elsewhere", RANK)),
        run("sigstop", verdict("unknown", None)),
        run("steady", verdict("healthy", None)),
        replace(run("gil", None), void="it went on"),
    ]
    found = {one.name: (one.good, one.of) for one in counts(scores(rows))}
    assert found["state right"] == (2, 3)
    assert found["right rank on process-level hangs"] == (1, 2)
    assert found["wrong blame"] == (0, 3)
    assert found["healthy called hung"] == (0, 1)
    assert found["bundle in time, where truth is hung"] == (2, 2)
    text = table(rows)
    assert "CPU, gloo, process level" in text
    assert "void: gil" in text


def test_rows_are_read_back_and_a_torn_one_is_left_out() -> None:
    row = run("fifo", verdict("hung", "rank-elsewhere", RANK))
    stream = io.StringIO()
    append(stream, row)
    again = replace(row, void="later")
    append(stream, again)
    lines = stream.getvalue().splitlines(keepends=True)
    assert read_rows(lines) == [row, again]
    assert read_rows([*lines, lines[1][:50]]) == [row, again]
    stream.write(lines[1][:50])
    append(stream, row)
    assert read_rows(stream.getvalue().splitlines(keepends=True)) == [row, again, row]
    assert newest([row, again]) == [again]


def test_plans() -> None:
    plan = usual("stacks", 1)
    assert len({one.key for one in plan}) == len(plan)
    assert {one.case for one in plan} == set(TRUTH)
    assert len(plan) == len(TRUTH) + 2 * len(AT_ENDS) + 2
    every = full("stacks", 1)
    assert {one.key for one in plan} <= {one.key for one in every}
    assert [one.case for one in small()] == list(SMALL)
