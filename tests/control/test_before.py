"""The look right before a command: what is no longer what was confirmed is left alone."""

from collections.abc import Mapping

import pytest
from hypothesis import given

from slurmtop.control.actions import Action
from slurmtop.control.before import still_confirmed
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.change import plan_exclude, plan_limit
from slurmtop.control.commands import merge_ranges
from slurmtop.control.hold import plan_hold
from slurmtop.control.outcome import Outcome, Result, Seen
from slurmtop.control.requeue import plan_requeue
from slurmtop.model.job import Job
from slurmtop.model.ports import Completed
from slurmtop.model.snapshot import Failure, Trouble
from tests.control.bench import DOWN, Bench, Row
from tests.control.builders import NOW, any_job, job
from tests.control.test_execute_kinds import (
    ME,
    bench_with,
    one_step,
    ready,
    results,
    running,
    usr1,
    waiting,
)

REQUEUED: Row = {"State": "PENDING", "RestartCnt": "1", "SubmitTime": "2031-05-05T11:00:00"}
NEXT_RUN: Row = {"State": "RUNNING", "RestartCnt": "1"}


async def left_alone(action: Action, before: Mapping[str, Row]) -> Outcome:
    """The outcome where nothing may be sent."""
    bench = Bench()
    bench.before = before
    outcome = await bench.run(action)
    assert bench.sent == []
    assert bench.looks == 0
    assert not any(outcome.count(word) for word in (Result.DONE, Result.SENT))
    asked, ended = bench.logged
    assert asked["commands"] == ended["commands"] == []
    assert outcome.action.command_lines == ()
    return outcome


@pytest.mark.parametrize(
    ("before", "says"),
    [
        ("COMPLETED", "it completed meanwhile, and a requeue would run it again"),
        ("FAILED", "it ended meanwhile (FAILED)"),
        ("COMPLETING", "it is ending by itself (COMPLETING)"),
        ("PENDING", "it waits in the queue again"),
        (REQUEUED, "another run now: it was requeued meanwhile (PENDING)"),
        (NEXT_RUN, "another run now: it was requeued meanwhile (RUNNING)"),
    ],
)
@pytest.mark.parametrize("hold", [False, True])
async def test_a_requeue_never_runs_again_what_is_over(before: Row, says: str, hold: bool) -> None:
    outcome = await left_alone(ready(plan_requeue([running()], ME, hold=hold)), {"4711": before})
    assert results(outcome) == [(Result.NOT_SENT, 1)]
    assert f"not sent: {says}" in outcome.sentence


async def test_what_had_failed_runs_again_already() -> None:
    action = ready(plan_requeue([job("4711", "FAILED", end=NOW)], ME))
    outcome = await left_alone(action, {"4711": "RUNNING"})
    assert "not sent: it is no longer over (RUNNING)" in outcome.sentence


@pytest.mark.parametrize(
    ("before", "result", "says"),
    [
        ("PENDING", Result.NOT_SENT, "it waits in the queue again"),
        (REQUEUED, Result.NOT_SENT, "another run now"),
        (NEXT_RUN, Result.NOT_SENT, "another run now"),
        ("FAILED", Result.OVER, "was sent (FAILED)"),
    ],
)
async def test_a_signal_is_for_the_run_that_was_shown(
    before: Row, result: Result, says: str
) -> None:
    for action in (usr1(running()), one_step(running())):
        outcome = await left_alone(action, {"4711": before})
        assert results(outcome) == [(result, 1)]
        assert says in outcome.sentence


async def test_a_cancel_of_another_run_is_not_sent_and_one_that_is_over_is_told_so() -> None:
    action = ready(plan_cancel([running()], ME))
    for again in (REQUEUED, NEXT_RUN):
        outcome = await left_alone(action, {"4711": again})
        assert results(outcome) == [(Result.NOT_SENT, 1)]
        assert not outcome.ok
    for word in ("COMPLETED", "FAILED", "CANCELLED"):
        outcome = await left_alone(action, {"4711": word})
        assert results(outcome) == [(Result.OVER, 1)]
        assert word in outcome.sentence
        assert outcome.ok
    outcome = await left_alone(action, {})
    assert results(outcome) == [(Result.NO_SUCH_JOB, 1)]


async def test_what_is_for_waiting_jobs_is_not_done_to_one_that_started() -> None:
    for made in (plan_hold([waiting()], ME), plan_exclude([waiting()], ME, hosts=["gpu07"])):
        outcome = await left_alone(ready(made), {"4711": "RUNNING"})
        assert results(outcome) == [(Result.NOT_SENT, 1)]
        assert "it has started meanwhile on gpu[01-02]" in outcome.sentence
        outcome = await left_alone(ready(made), {"4711": "COMPLETED"})
        assert results(outcome) == [(Result.OVER, 1)]
        assert not outcome.ok


async def test_what_may_happen_meanwhile_stops_nothing() -> None:
    bench = bench_with({"4711": {"State": "RUNNING", "TimeLimit": "5:00"}})
    bench.before = {"4711": "RUNNING"}
    assert (await bench.run(ready(plan_limit([waiting()], ME, minutes=5)))).ok
    bench = bench_with({"4711": "CANCELLED"})
    bench.before = {"4711": "COMPLETING"}
    assert (await bench.run(ready(plan_cancel([running()], ME)))).ok
    assert bench.sent == [("scancel", "4711")]


# Tasks


async def test_a_cancel_of_tasks_stays_one_where_some_have_started() -> None:
    bench = bench_with({"4711_3": "CANCELLED", "4711_[4-9]": "CANCELLED"})
    bench.before = {"4711_3": "RUNNING", "4711_[4-9]": "PENDING"}
    outcome = await bench.run(ready(plan_cancel([waiting("4711_[3-9]")], ME)))
    assert bench.sent == [("scancel", "4711_[3-9]")]
    assert outcome.ok


async def test_the_command_names_only_the_tasks_that_are_left() -> None:
    held: Row = {"State": "PENDING", "PriorityLong": "0", "Reason": "JobHeldUser"}
    bench = bench_with({"4711_3": "RUNNING", "4711_[4-9]": held})
    bench.before = {"4711_3": "RUNNING", "4711_[4-9]": "PENDING"}
    outcome = await bench.run(ready(plan_hold([waiting("4711_[3-9]")], ME)))
    assert bench.sent == [("scontrol", "hold", "4711_[4-9]")]
    assert outcome.action.argvs == tuple(bench.sent)
    assert results(outcome) == [(Result.DONE, 6), (Result.NOT_SENT, 1)]
    assert outcome.jobs[1].sentence.startswith("job 4711_3: not sent: it has started meanwhile")
    asked, ended = bench.logged
    assert asked["jobs"] == [{"job": "4711_[4-9]", "outcome": "asked", "says": ""}]
    assert isinstance(ended["jobs"], list)
    assert [(item["job"], item["outcome"]) for item in ended["jobs"]] == [
        ("4711_[4-9]", "held"),
        ("4711_3", "not sent"),
    ]


async def test_a_refusal_of_what_is_left_is_found_again() -> None:
    said = "4711_4-5: No error\n4711_6-9: Job has already finished\n"
    held: Row = {"State": "PENDING", "PriorityLong": "0", "Reason": "JobHeldUser"}
    bench = bench_with({"4711_[4-5]": held}, said=said, rc=1)
    bench.before = {"4711_3": "RUNNING", "4711_[4-9]": "PENDING"}
    outcome = await bench.run(ready(plan_hold([waiting("4711_[3-9]")], ME)))
    assert results(outcome) == [(Result.DONE, 2), (Result.OVER, 4), (Result.NOT_SENT, 1)]


async def test_of_running_tasks_only_those_that_still_run_are_requeued_or_signalled() -> None:
    tasks = [running(f"4711_{number}") for number in (1, 2, 3)]
    bench = bench_with({"4711_2": {"State": "PENDING", "RestartCnt": "1"}})
    bench.before = {"4711_1": "COMPLETED", "4711_2": "RUNNING", "4711_3": REQUEUED}
    outcome = await bench.run(ready(plan_requeue(tasks, ME)))
    assert bench.sent == [("scontrol", "requeue", "4711_2")]
    assert [item.result for item in outcome.jobs] == [
        Result.NOT_SENT,
        Result.DONE,
        Result.NOT_SENT,
    ]


async def test_a_het_job_goes_on_as_long_as_a_part_does() -> None:
    parts = [running("9300+0"), running("9300+1")]
    action = ready(plan_cancel(parts, ME))
    bench = bench_with({"9300+0": "CANCELLED", "9300+1": "CANCELLED"})
    bench.before = {"9300+0": "COMPLETED", "9300+1": "RUNNING"}
    assert (await bench.run(action)).ok
    assert bench.sent == [("scancel", "9300")]
    over: Mapping[str, Row] = {"9300+0": "COMPLETED", "9300+1": "FAILED"}
    assert results(await left_alone(action, over)) == [(Result.OVER, 1)]


# Where the look fails


async def test_a_silent_controller_leaves_it_to_what_the_caller_knows() -> None:
    bench = bench_with({"4711": "CANCELLED"})
    bench.before = bench.refuse(DOWN)
    outcome = await bench.run(ready(plan_cancel([running()], ME)))
    assert bench.sent == [("scancel", "4711")]
    assert results(outcome) == [(Result.DONE, 1)]
    bench = bench_with({"4711": "CANCELLED"})
    bench.before = bench.refuse(DOWN)
    outcome = await bench.run(ready(plan_cancel([running()], ME)), still_same=lambda target: False)
    assert bench.sent == []
    assert results(outcome) == [(Result.NOT_SENT, 1)]


@pytest.mark.parametrize(
    "answer",
    [
        Completed(1, b"", b"squeue: error: a plugin is broken\n", NOW, 0.1),
        Completed(0, b"nonsense\x1e\n", b"", NOW, 0.1),
        Completed(0, b"", b"", NOW, 0.1, truncated=True),
    ],
)
async def test_any_other_failure_lets_nothing_through(answer: Completed) -> None:
    for action in (ready(plan_cancel([running()], ME)), ready(plan_requeue([running()], ME))):
        bench = bench_with({"4711": "RUNNING"})
        bench.before = answer
        outcome = await bench.run(action)
        assert bench.sent == []
        assert results(outcome) == [(Result.NOT_SENT, 1)]
        assert "slurmtop could not see whether it is still the job you confirmed" in (
            outcome.sentence
        )
        assert outcome.sentence.endswith("try again")


def test_a_record_that_cannot_be_read_costs_no_neighbour() -> None:
    action = ready(plan_cancel([running("4711"), running("4712")], ME))
    seen = Seen((running("4711"),), Failure(Trouble.OTHER, "squeue answered unreadably"))
    (kept, none), (left, why) = (
        still_confirmed(action, target, seen, True) for target in action.targets
    )
    assert (kept, none) == (action.targets[0], ())
    assert left is None
    assert [item.result for item in why] == [Result.NOT_SENT]


@given(any_job(), any_job())
def test_what_is_kept_and_what_is_left_out_is_what_was_confirmed(shown: Job, now: Job) -> None:
    made = plan_cancel([shown], ME)
    if not isinstance(made, Action):
        return
    for target in made.targets:
        kept, left = still_confirmed(made, target, Seen((now,)), True)
        parts = [one.target for one in left] + ([kept] if kept else [])
        assert parts
        spans = [span for part in parts for span in part.tasks]
        assert merge_ranges(spans) == merge_ranges(target.tasks)
