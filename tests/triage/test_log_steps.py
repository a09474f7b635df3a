"""Where a log tells steps, progress is a step, and no other line."""

from datetime import timedelta

import pytest

from slurmtop.model.facts import LogFacts, LogStatus
from slurmtop.model.verdict import State
from slurmtop.triage.live.enough import QUIET_S, quiet_s, wanted
from slurmtop.triage.log_steps import last_progress, step_behind, written_at
from slurmtop.triage.why import explain_job
from slurmtop.triage.words import four_lines
from tests.triage.builders import NOW, STEP, line, live, log

BEATS = log(quiet_s=1.0, progress=STEP, left_behind=9, last_line=line("heartbeat: alive", 990))
MOVES = log(quiet_s=1.0, progress=STEP, last_line=STEP.line)
CANCELLED = line("slurmstepd: error: *** JOB 4711 CANCELLED AT 2031-05-05 ***", 990)


def test_a_log_that_goes_on_without_a_step_is_not_healthy() -> None:
    facts = live("RUNNING", logs=(BEATS,))
    verdict = explain_job(facts)
    assert verdict.state is State.UNKNOWN
    assert "its last 9 lines tell no new step" in verdict.summary
    assert "nothing is wrong" not in "".join(four_lines(verdict))
    assert verdict.since is None, "a heartbeat is no progress"
    assert [one.text for one in verdict.evidence[:2]] == [STEP.line.text, "heartbeat: alive"]


def test_it_is_worth_a_look_with_stacks() -> None:
    want = wanted(live("RUNNING", logs=(BEATS,)))
    assert (want.stacks, want.second) == (True, True)
    want = wanted(live("RUNNING", logs=(MOVES,)))
    assert (want.stacks, want.second) == (False, False)


def test_other_lines_of_another_log_are_no_step() -> None:
    """Steps in stdout that stand, heartbeats in stderr that come."""
    stands = log(quiet_s=QUIET_S + 20, progress=STEP, last_line=STEP.line)
    beats = log("stderr", quiet_s=1.0)
    facts = live("RUNNING", logs=(stands, beats))
    assert quiet_s(facts) == QUIET_S + 20
    assert wanted(facts).stacks
    verdict = explain_job(facts)
    assert verdict.since == NOW - timedelta(seconds=QUIET_S + 20)


def test_one_log_whose_steps_move_is_enough() -> None:
    facts = live("RUNNING", logs=(BEATS, log("stderr", quiet_s=2.0, progress=STEP)))
    assert explain_job(facts).state is State.HEALTHY
    assert not wanted(facts).stacks


def test_without_any_step_bytes_count_as_before() -> None:
    facts = live("RUNNING", logs=(log(quiet_s=1.0),))
    assert explain_job(facts).state is State.HEALTHY
    assert not wanted(facts).second


def test_slurms_own_word_is_no_sign_of_life() -> None:
    logs = (log(quiet_s=0.0, progress=STEP, slurm_line=CANCELLED, last_line=CANCELLED),)
    verdict = explain_job(live("RUNNING", logs=logs))
    assert verdict.state is State.UNKNOWN
    assert "the last word in its log is Slurm's" in verdict.summary
    assert wanted(live("RUNNING", logs=logs)).second


@pytest.mark.parametrize("logs", [(), (log(status=LogStatus.DENIED),)])
def test_what_was_not_read_tells_nothing(logs: tuple[LogFacts, ...]) -> None:
    assert step_behind(logs) is None
    assert written_at(logs) is None
    assert last_progress(logs) is None
