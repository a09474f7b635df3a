"""Silence is measured by the job's own pace: what is long for one job is a step of another."""

from dataclasses import replace
from datetime import timedelta

import pytest

from slurmtop.model.facts import JobFacts, LogFacts, LogStatus, StepLines
from slurmtop.model.live import LogMotion
from slurmtop.model.verdict import Confidence, State, Verdict
from slurmtop.triage.live.judge import judge_live
from slurmtop.triage.live.pace import Pace, is_long, pace_of
from tests.triage.builders import NOW, job
from tests.triage.live.builders import JOB, facts, live, ranks_of

BEGAN = NOW - timedelta(seconds=1000)
FAST = StepLines(lines=5, first=1, last=5, begin=1, span_s=2.0, pause_s=1.0)
SLOW = StepLines(lines=5, first=1, last=5, begin=1, span_s=79.0, pause_s=30.0)


def _facts(steps: StepLines | None, quiet_s: float, **job_changes: object) -> JobFacts:
    log = LogFacts(
        label="stdout",
        path="/home/anna/slurm-4711.out",
        status=LogStatus.READ,
        mtime=NOW - timedelta(seconds=quiet_s),
        steps=steps,
    )
    return JobFacts(
        asked=JOB, cluster="", now=NOW, job=job("RUNNING", JOB, **job_changes), logs=(log,)
    )


def _loop(steps: StepLines | None, quiet_s: float | None, **more: object) -> Verdict:
    looked = live(ranks_of("loop"), log=LogMotion(grew=False, quiet_s=quiet_s))
    found = facts(looked, **more)
    log = replace(found.logs[0], steps=steps)
    verdict = judge_live(replace(found, logs=(log,)))
    assert verdict is not None
    return verdict


def test_a_loop_in_a_job_of_fast_steps_is_a_hang_soon() -> None:
    verdict = _loop(FAST, 20.0)
    assert (verdict.state, verdict.cls) == (State.HUNG, "rank-elsewhere")
    assert [one.rank for one in verdict.culprits] == [2]


def test_work_at_one_place_is_no_hang_while_a_step_takes_as_long() -> None:
    verdict = _loop(SLOW, 40.0)
    assert verdict.state is State.UNKNOWN
    assert not verdict.culprits
    assert "a step took about 20 s so far" in verdict.summary
    assert "look again once its log is quiet for 61 s" in verdict.summary


def test_a_silence_of_three_slow_steps_is_a_hang() -> None:
    assert _loop(SLOW, 62.0).state is State.HUNG


def test_without_a_pace_a_minute_is_waited_for_and_nothing_is_sure() -> None:
    short, long = _loop(None, 40.0), _loop(None, 61.0)
    assert short.state is State.UNKNOWN
    assert "nothing tells how long a step takes" in short.summary
    assert (long.state, long.confidence) == (State.HUNG, Confidence.MEDIUM)
    assert [one.rank for one in long.culprits] == [2]


def test_without_a_log_nobody_knows_how_long_it_works() -> None:
    verdict = _loop(None, None)
    assert verdict.state is State.UNKNOWN
    assert "no log tells how long it is at this" in verdict.summary


def test_who_is_stopped_or_blocked_is_not_waited_for() -> None:
    for situation in ("stop", "data-fifo", "gil", "d-state"):
        looked = live(ranks_of(situation), log=LogMotion(grew=False, quiet_s=12.0))
        found = facts(looked)
        verdict = judge_live(replace(found, logs=(replace(found.logs[0], steps=SLOW),)))
        assert verdict is not None
        assert verdict.state is State.HUNG


def test_times_of_lines_tell_the_pace_and_the_longest_pause() -> None:
    pace = pace_of(_facts(SLOW, 20.0), BEGAN)
    assert pace == Pace(step_s=20.0, line_s=20.0, pause_s=31.0)
    assert pace.long_s == pytest.approx(60.0)


def test_a_line_for_every_hundredth_step_may_be_quiet_for_a_hundred() -> None:
    steps = StepLines(lines=5, first=100, last=500, begin=100, span_s=399.0, pause_s=99.0)
    pace = pace_of(_facts(steps, 20.0), BEGAN)
    assert pace is not None
    assert (pace.step_s, pace.line_s) == (1.0, 100.0)
    assert pace.long_s == pytest.approx(300.0)


def test_without_times_the_run_is_divided_by_its_steps() -> None:
    steps = StepLines(lines=5, first=46, last=50, begin=1)
    pace = pace_of(_facts(steps, 100.0), BEGAN)
    assert pace is not None
    assert pace.step_s == pace.line_s == pytest.approx(18.0)


def test_a_counter_that_was_resumed_does_not_make_a_job_fast() -> None:
    steps = StepLines(lines=10, first=48_001, last=48_010, begin=48_001)
    pace = pace_of(_facts(steps, 100.0), BEGAN)
    assert pace is not None
    assert pace.step_s == pytest.approx(90.0)


def test_a_bar_tells_its_own_pace() -> None:
    pace = pace_of(_facts(StepLines(lines=1, first=450, last=450, told_s=3.2), 20.0), BEGAN)
    assert pace == Pace(step_s=3.2, line_s=3.2)


@pytest.mark.parametrize("steps", [FAST, StepLines(lines=5, first=46, last=50, begin=1)])
def test_of_a_requeued_job_the_newest_run_alone_counts(steps: StepLines) -> None:
    assert pace_of(_facts(steps, 20.0, restarts=1), BEGAN) is None
    apart = pace_of(_facts(replace(steps, apart=True), 20.0, restarts=1), BEGAN)
    assert (apart is not None) is (steps.span_s is not None)


def test_what_is_not_known_is_no_pace() -> None:
    steps = StepLines(lines=5, first=46, last=50)
    assert pace_of(_facts(None, 20.0), BEGAN) is None
    assert pace_of(_facts(steps, 20.0), BEGAN) is None
    assert pace_of(_facts(replace(steps, begin=1), 20.0), None) is None
    assert pace_of(_facts(replace(steps, begin=1), 2_000.0), BEGAN) is None


def test_a_log_that_grows_is_not_quiet() -> None:
    assert not is_long(None, live([], log=LogMotion(grew=True, quiet_s=100.0)))
    assert is_long(None, live([], log=LogMotion(grew=False, quiet_s=100.0)))
