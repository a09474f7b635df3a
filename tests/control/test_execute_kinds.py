"""Every kind of action from its command to what is told, over what Slurm was seen to print."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest

from slurmtop.control.action_log import ActionLog, Entry, entry_line, syslog_text
from slurmtop.control.actions import Action, Asker, Recipient, Refusal
from slurmtop.control.cancel import plan_cancel, plan_cancel_step
from slurmtop.control.change import plan_exclude, plan_limit
from slurmtop.control.hold import plan_hold, plan_release
from slurmtop.control.outcome import Outcome, Result
from slurmtop.control.read_back import QueueReadBack
from slurmtop.control.requeue import plan_requeue
from slurmtop.control.signals import plan_signal
from slurmtop.model.job import Job, LimitKind, Step, TimeLimit
from slurmtop.model.ports import Command, Completed
from slurmtop.model.snapshot import Trouble
from slurmtop.parse.slurm.ids import parse_job_id
from tests.control.bench import DOWN, Bench, Lines, Row
from tests.control.builders import NOW, job, plan
from tests.fakes import FakeRunner

ME = Asker(me="anna", now=NOW)
HOUR = TimeLimit(LimitKind.SECONDS, 3_600)


def ready(made: Action | Refusal) -> Action:
    assert isinstance(made, Action), made
    return made


def running(id: str = "4711", **more: object) -> Job:
    values: dict[str, Any] = {
        "restarts": 0,
        "limit": HOUR,
        "requeueable": True,
        "batch": True,
        **more,
    }
    return job(id, "RUNNING", **values)


def waiting(id: str = "4711", **more: object) -> Job:
    values: dict[str, Any] = {
        "reason": "Priority",
        "priority": 100,
        "limit": HOUR,
        "excluded_nodes": "",
        **more,
    }
    return job(id, "PENDING", **values)


def step(job_text: str, id: str = "0") -> Step:
    return Step(job=parse_job_id(f"{job_text}.{id}"), id=id, name="train", nodes="gpu01")


def results(outcome: Outcome) -> list[tuple[Result, int]]:
    return [(item.result, item.target.covers) for item in outcome.jobs]


def bench_with(*looks: Mapping[str, Row], said: str = "", rc: int = 0) -> Bench:
    bench = Bench()
    bench.queue = list(looks)
    for program in ("scontrol *", "scancel *"):
        bench.runner.on(program, rc=rc, stderr=said)
    return bench


# Requeue


async def test_requeued_is_what_the_queue_shows() -> None:
    old = {"State": "RUNNING", "RestartCnt": "0"}
    ending = {"State": "COMPLETING", "RestartCnt": "1"}
    again = {
        "State": "PENDING",
        "RestartCnt": "1",
        "Reason": "BeginTime",
        "SubmitTime": "2031-05-05T12:00:05",
    }
    bench = bench_with({"4711": old}, {"4711": ending}, {"4711": again})
    outcome = await bench.run(ready(plan_requeue([running()], ME)))
    assert bench.sent == [("scontrol", "requeue", "4711")]
    assert bench.looks == 3
    assert outcome.ok
    assert outcome.sentence == (
        "job 4711: requeued: it waits again (BeginTime: about 2 minutes are normal)"
    )
    assert bench.logged[1]["jobs"] == [
        {"job": "4711", "outcome": "requeued", "says": outcome.sentence}
    ]


@pytest.mark.parametrize("restarts", ["0", "N/A"])
async def test_a_requeue_that_never_shows_is_not_called_one(restarts: str) -> None:
    bench = bench_with({"4711": {"State": "RUNNING", "RestartCnt": restarts}})
    outcome = await bench.run(ready(plan_requeue([running()], ME)))
    assert results(outcome) == [(Result.SENT, 1)]
    assert "does not show it yet" in outcome.sentence


async def test_stuck_in_cleaning_up_is_not_final() -> None:
    bench = bench_with({"4711": {"State": "COMPLETING", "RestartCnt": "1"}})
    outcome = await bench.run(ready(plan_requeue([running()], ME)))
    assert results(outcome) == [(Result.SENT, 1)]
    assert "requeue accepted, still cleaning up" in outcome.sentence
    assert not outcome.jobs[0].final


async def test_it_may_have_started_again_or_ended_again_already() -> None:
    for word, says in (("RUNNING", "already runs again"), ("FAILED", "over, too (FAILED)")):
        bench = bench_with({"4711": {"State": word, "RestartCnt": "1"}})
        outcome = await bench.run(ready(plan_requeue([running()], ME)))
        assert results(outcome) == [(Result.DONE, 1)]
        assert says in outcome.sentence


async def test_requeued_and_held_means_both() -> None:
    free = {"State": "PENDING", "RestartCnt": "1", "PriorityLong": "100", "Reason": "BeginTime"}
    held = {**free, "PriorityLong": "0", "Reason": "job requeued in held state"}
    action = ready(plan_requeue([running()], ME, hold=True))
    bench = bench_with({"4711": {"State": "COMPLETING", "RestartCnt": "1"}}, {"4711": held})
    outcome = await bench.run(action)
    assert bench.sent == [("scontrol", "requeuehold", "4711")]
    assert results(outcome) == [(Result.DONE, 1)]
    assert "released" in outcome.sentence
    outcome = await bench_with({"4711": free}).run(action)
    assert results(outcome) == [(Result.SENT, 1)]
    assert "not held" in outcome.sentence


@pytest.mark.parametrize(
    ("words", "result", "says"),
    [
        ("Requested operation is presently disabled", Result.REFUSED, "--no-requeue"),
        ("Only batch jobs are accepted or processed", Result.REFUSED, "interactive jobs cannot"),
        ("Job is pending execution", Result.REFUSED, "already pending"),
        ("Access/permission denied", Result.DENIED, "not your job"),
        ("Socket timed out on send/recv operation", Result.NOT_KNOWN, "not known whether"),
        ("Something of a later version", Result.REFUSED, "something of a later version"),
    ],
)
async def test_a_requeue_that_slurm_refuses(words: str, result: Result, says: str) -> None:
    bench = bench_with(
        {"4711": {"State": "RUNNING", "RestartCnt": "0"}}, said=f"{words} for job 4711\n", rc=1
    )
    outcome = await bench.run(ready(plan_requeue([running()], ME)))
    assert [item.result for item in outcome.jobs] == [result]
    assert says in outcome.sentence


async def test_a_job_that_slurm_has_forgotten_is_to_be_submitted_again() -> None:
    bench = bench_with({}, said="Invalid job id specified for job 4711\n", rc=1)
    outcome = await bench.run(ready(plan_requeue([running()], ME)))
    assert results(outcome) == [(Result.NO_SUCH_JOB, 1)]
    assert "resubmit" in outcome.sentence


async def test_the_refusal_of_one_is_not_that_of_its_neighbour() -> None:
    again = {"State": "PENDING", "RestartCnt": "1"}
    bench = bench_with(
        {"4711": {"State": "RUNNING", "RestartCnt": "0"}, "4712": again, "4713": again},
        said="Access/permission denied for job 4711\n",
        rc=1,
    )
    jobs = [running("4711"), running("4712"), running("4713")]
    outcome = await bench.run(ready(plan_requeue(jobs, ME)))
    assert bench.sent == [("scontrol", "requeue", "4711,4712,4713")]
    assert outcome.sentence == "2 requeued, 1 denied"
    assert not outcome.ok


async def test_all_parts_of_a_het_job_must_come_back() -> None:
    parts = [running("9300+0"), running("9300+1")]
    action = ready(plan_requeue(parts, ME))
    again, not_yet = ({"State": "PENDING", "RestartCnt": "1"}, {"State": "RUNNING"})
    outcome = await bench_with({"9300+0": again, "9300+1": not_yet}).run(action)
    assert results(outcome) == [(Result.SENT, 1)]
    outcome = await bench_with({"9300+0": again, "9300+1": again}).run(action)
    assert results(outcome) == [(Result.DONE, 1)]


# Hold and release


HELD = {"State": "PENDING", "PriorityLong": "0", "Reason": "JobHeldUser"}
FREE = {"State": "PENDING", "PriorityLong": "100", "Reason": "Priority"}


async def test_hold_and_release_of_a_waiting_job() -> None:
    bench = bench_with({"4711": FREE}, {"4711": HELD})
    outcome = await bench.run(ready(plan_hold([waiting()], ME)))
    assert bench.sent == [("scontrol", "hold", "4711")]
    assert outcome.sentence == "job 4711: held (JobHeldUser)"
    assert bench.looks == 2
    bench = bench_with({"4711": HELD}, {"4711": FREE})
    held = waiting(reason="JobHeldUser", priority=0)
    outcome = await bench.run(ready(plan_release([held], ME)))
    assert bench.sent == [("scontrol", "release", "4711")]
    assert outcome.sentence == "job 4711: released: it waits (Priority)"


async def test_a_held_running_job_still_runs_and_it_says_so() -> None:
    row = {"State": "RUNNING", "PriorityLong": "0", "Reason": "JobHeldUser"}
    outcome = await bench_with({"4711": row}).run(ready(plan_hold([running()], ME)))
    assert results(outcome) == [(Result.DONE, 1)]
    assert "still runs" in outcome.sentence


async def test_an_administrators_hold_stays() -> None:
    row = {**HELD, "Reason": "JobHeldAdmin"}
    said = "Access/permission denied for job 4711\nslurm_suspend error: Access/permission denied\n"
    held = waiting(reason="JobHeldUser", priority=0)
    outcome = await bench_with({"4711": row}, said=said, rc=1).run(ready(plan_release([held], ME)))
    assert results(outcome) == [(Result.DENIED, 1)]
    assert "held by an administrator, only they can release it" in outcome.sentence
    assert "suspend" not in outcome.sentence


@pytest.mark.parametrize("form", ["{}", "[{}]"])
async def test_an_array_is_told_task_by_task(form: str) -> None:
    over, rest = form.format("1-19"), form.format("20-99")
    said = f"4711_{over}: Job has already finished\n4711_{rest}: No error\n"
    bench = bench_with({"4711_[20-99]": HELD}, said=said, rc=1)
    outcome = await bench.run(ready(plan_hold([waiting("4711_[1-99]")], ME)))
    assert outcome.sentence == "80 held, 19 already finished"
    assert results(outcome) == [(Result.DONE, 80), (Result.OVER, 19)]
    assert [item.sentence.partition(":")[0] for item in outcome.jobs] == [
        "job 4711_[20-99]",
        "job 4711_[1-19]",
    ]
    assert not outcome.ok
    jobs = bench.logged[1]["jobs"]
    assert isinstance(jobs, list)
    assert [(item["job"], item["outcome"]) for item in jobs] == [
        ("4711_[20-99]", "held"),
        ("4711_[1-19]", "already finished"),
    ]


async def test_tasks_that_are_no_tasks_and_tasks_that_started() -> None:
    said = "4711_0-3: No error\n4711_4-90: Invalid job id specified\n"
    rows: dict[str, Row] = {
        "4711_0": {"State": "RUNNING", "PriorityLong": "0", "Reason": "JobHeldUser"},
        "4711_[1-3]": HELD,
    }
    bench = bench_with(rows, said=said, rc=1)
    outcome = await bench.run(ready(plan_hold([waiting("4711_[0-90]")], ME)))
    assert results(outcome) == [(Result.DONE, 1), (Result.DONE, 3), (Result.NO_SUCH_JOB, 87)]
    assert "no such task" in outcome.jobs[2].sentence


# Limit and excluded nodes


async def test_a_limit_is_what_the_queue_says() -> None:
    action = ready(plan_limit([running()], ME, minutes=5))
    bench = bench_with(
        {"4711": {"State": "RUNNING", "TimeLimit": "1:00:00"}},
        {"4711": {"State": "RUNNING", "TimeLimit": "5:00"}},
    )
    outcome = await bench.run(action)
    assert bench.sent == [("scontrol", "update", "JobId=4711", "TimeLimit=5")]
    assert outcome.sentence == "job 4711: time limit set: it is 5:00 now (was 1:00:00)"
    assert bench.logged[0]["details"] == {"limit_minutes": 5}
    said = "Access/permission denied for job 4711\n"
    bench = bench_with({"4711": {"State": "RUNNING", "TimeLimit": "1:00:00"}}, said=said, rc=1)
    outcome = await bench.run(action)
    assert results(outcome) == [(Result.DENIED, 1)]


async def test_excluded_nodes_are_read_back_with_those_from_before() -> None:
    job_before = waiting(excluded_nodes="gpu01")
    action = ready(plan_exclude([job_before], ME, hosts=["gpu07"]))
    only_new, both = ({"State": "PENDING", "ExcNodes": text} for text in ("gpu07", "gpu[01,07]"))
    bench = bench_with({"4711": only_new}, {"4711": both})
    outcome = await bench.run(action)
    assert bench.looks == 2
    assert results(outcome) == [(Result.DONE, 1)]
    assert "gpu[01,07]" in outcome.sentence
    said = "Job is no longer pending execution for job 4711\n"
    bench = bench_with({"4711": {"State": "RUNNING"}}, said=said, rc=1)
    outcome = await bench.run(action)
    assert results(outcome) == [(Result.REFUSED, 1)]
    assert "started meanwhile" in outcome.sentence


async def test_what_ended_meanwhile_is_over() -> None:
    said = "Job has already finished for job 4711\n"
    for made in (
        plan_hold([waiting()], ME),
        plan_limit([waiting()], ME, minutes=5),
        plan_exclude([waiting()], ME, hosts=["gpu07"]),
    ):
        outcome = await bench_with({"4711": "COMPLETED"}, said=said, rc=1).run(ready(made))
        assert results(outcome) == [(Result.OVER, 1)]
        assert not outcome.ok


@pytest.mark.parametrize("made", [plan_hold([waiting()], ME), plan_requeue([running()], ME)])
async def test_a_silent_controller_is_asked_until_it_answers(made: Action | Refusal) -> None:
    action = ready(made)
    bench = Bench()
    bench.queue = [bench.refuse(DOWN)]
    outcome = await bench.run(action)
    assert results(outcome) == [(Result.NOT_KNOWN, 1)]
    row = {**HELD, "RestartCnt": "1"}
    bench.queue, bench.looks = [bench.refuse(DOWN), bench.refuse(DOWN), {"4711": row}], 0
    outcome = await bench.run(action)
    assert results(outcome) == [(Result.DONE, 1)]


# Signals and steps


def usr1(one: Job, **more: object) -> Action:
    values: dict[str, object] = {"signal": "USR1", "recipient": Recipient.STEPS, **more}
    return ready(plan_signal([one], ME, **values))  # type: ignore[arg-type]


async def test_a_signal_is_looked_at_twice_and_told_as_taken_only() -> None:
    bench = bench_with({"4711": "RUNNING"})
    bench.steps = [("4711.0", "4711.batch")]
    outcome = await bench.run(usr1(running()))
    assert bench.sent == [("scancel", "--ctld", "--signal=USR1", "4711")]
    assert (bench.looks, bench.step_looks) == (2, 3)
    assert results(outcome) == [(Result.DONE, 1)]
    assert outcome.sentence == (
        "job 4711: signalled: USR1 sent to the steps; the job still runs 3 s later"
    )
    assert bench.logged[0]["details"] == {"signal": "USR1", "recipient": "steps"}


async def test_what_died_of_it_is_said_exactly() -> None:
    bench = bench_with({"4711": "RUNNING"})
    bench.steps = [("4711.0", "4711.batch"), ("4711.batch",)]
    assert (
        "step 0 has ended since; the job still runs" in (await bench.run(usr1(running()))).sentence
    )
    bench = bench_with({"4711": {"State": "FAILED", "exit_code": "10"}})
    bench.steps = [("4711.0", "4711.batch"), ()]
    outcome = await bench.run(usr1(running()))
    assert bench.looks == 1
    assert "ended since: FAILED, killed by SIGUSR1" in outcome.sentence


async def test_nobody_was_there_to_get_it() -> None:
    bench = bench_with({"4711": "RUNNING"})
    bench.steps = [("4711.batch",)]
    outcome = await bench.run(usr1(running()))
    assert results(outcome) == [(Result.NOT_KNOWN, 1)]
    assert "no step of srun ran" in outcome.sentence
    assert not outcome.ok
    everything = usr1(running(), recipient=Recipient.EVERYTHING)
    assert (await bench.run(everything)).ok


@pytest.mark.parametrize(
    ("why", "rc", "row", "result", "says"),
    [
        (
            "Job can not be altered now, try again later",
            228,
            {"4711": "PENDING"},
            Result.REFUSED,
            "cannot signal a job that has not started",
        ),
        (
            "Job script not specified",
            217,
            {"4711": "RUNNING"},
            Result.REFUSED,
            "no batch script in an interactive job",
        ),
        ("Access/permission denied", 210, {"4711": "RUNNING"}, Result.DENIED, "not your job"),
        ("Invalid job id specified", 1, {"4711": "COMPLETED"}, Result.OVER, "already ended"),
        ("Invalid job id specified", 1, {}, Result.NO_SUCH_JOB, "no such job"),
        ("Socket timed out", 140, {"4711": "RUNNING"}, Result.NOT_KNOWN, "not known whether"),
    ],
)
async def test_a_signal_that_was_not_taken(
    why: str, rc: int, row: dict[str, Row], result: Result, says: str
) -> None:
    bench = bench_with(row, said=f"scancel: error: Kill job error on job id 4711: {why}\n", rc=rc)
    bench.steps = [("4711.0",)]
    outcome = await bench.run(usr1(running()))
    assert [item.result for item in outcome.jobs] == [result]
    assert says in outcome.sentence
    assert "signalled" not in outcome.sentence


async def test_a_silent_controller_after_a_signal_is_not_known() -> None:
    bench = Bench()
    bench.queue = [bench.refuse(DOWN)]
    outcome = await bench.run(usr1(running()))
    assert results(outcome) == [(Result.NOT_KNOWN, 1)]
    assert not outcome.jobs[0].final


def one_step(one: Job) -> Action:
    return ready(plan_cancel_step(one, step(one.key.id), ME))


async def test_a_step_is_over_when_it_is_no_longer_listed() -> None:
    bench = bench_with({"4711": "RUNNING"})
    bench.steps = [("4711.0", "4711.1"), ("4711.0", "4711.1"), ("4711.1",)]
    outcome = await bench.run(one_step(running()))
    assert bench.sent == [("scancel", "--ctld", "4711.0")]
    assert bench.looks == 2
    assert outcome.sentence == "job 4711.0: step 0 cancelled; the job goes on (RUNNING)"
    assert outcome.ok
    jobs = bench.logged[1]["jobs"]
    assert isinstance(jobs, list)
    assert jobs[0]["job"] == "4711.0"


async def test_a_step_of_a_task_is_not_that_of_another_task() -> None:
    bench = bench_with({"4711_1": "RUNNING", "4711_2": "RUNNING"})
    bench.steps = [("4711_1.0", "4711_2.0"), ("4711_2.0",)]
    outcome = await bench.run(one_step(running("4711_1")))
    assert bench.sent == [("scancel", "--ctld", "4711_1.0")]
    assert results(outcome) == [(Result.DONE, 1)]
    assert bench.looks == 1


@pytest.mark.parametrize(("part", "raw"), [("9300+0", "9300"), ("9300+1", "9301")])
async def test_a_step_of_a_het_part_is_listed_by_a_number_of_its_own(part: str, raw: str) -> None:
    bench = bench_with({"9300+0": "RUNNING", "9300+1": "RUNNING"})
    bench.steps = [(f"{raw}.0",), (f"{raw}.0",), ()]
    outcome = await bench.run(one_step(running(part, raw_id=raw)))
    assert bench.sent == [("scancel", "--ctld", f"{raw}.0")]
    assert results(outcome) == [(Result.DONE, 1)]
    assert bench.looks == 2


async def test_a_step_that_was_over_before_or_whose_job_ended() -> None:
    said = "scancel: error: Kill job error on job step id 4711.0: Invalid job id specified\n"
    bench = bench_with({"4711": "RUNNING"}, said=said, rc=1)
    bench.steps = [("4711.1",)]
    outcome = await bench.run(one_step(running()))
    assert results(outcome) == [(Result.OVER, 1)]
    bench = bench_with({"4711": {"State": "FAILED", "exit_code": "256"}})
    bench.steps = [("4711.0",), ()]
    outcome = await bench.run(one_step(running()))
    assert results(outcome) == [(Result.DONE, 1)]
    assert "the whole job has ended (FAILED, exit 1)" in outcome.sentence


async def test_a_step_that_nobody_can_tell_of_is_not_known() -> None:
    bench = bench_with({"4711": "RUNNING"})
    bench.steps = [("4711.0",), bench.refuse(DOWN)]
    outcome = await bench.run(one_step(running()))
    assert results(outcome) == [(Result.NOT_KNOWN, 1)]
    assert "not known whether step 0 has ended: " in outcome.sentence
    bench.steps, bench.step_looks = [("4711.0",)], 0
    outcome = await bench.run(one_step(running()))
    assert results(outcome) == [(Result.SENT, 1)]


# Requeued between the command and the look back


NEXT_ENDED = {"State": "FAILED", "RestartCnt": "1", "exit_code": "10"}
NEXT_WAITS = {"State": "PENDING", "RestartCnt": "1"}


async def test_a_signal_that_came_late_may_have_reached_the_next_run() -> None:
    for steps in (("4711.batch",), ()):
        bench = bench_with({"4711": NEXT_ENDED})
        bench.steps = [steps]
        outcome = await bench.run(usr1(running()))
        assert results(outcome) == [(Result.NOT_KNOWN, 1)]
        assert outcome.sentence == (
            "job 4711: the job was requeued meanwhile; its next run has ended"
            " (FAILED, killed by SIGUSR1): USR1 may have reached that one"
        )


async def test_a_handler_that_requeues_its_job_got_the_signal() -> None:
    bench = bench_with({"4711": NEXT_WAITS})
    bench.steps = [("4711.0",), ()]
    outcome = await bench.run(usr1(running()))
    assert results(outcome) == [(Result.DONE, 1)]
    assert "requeued since, and its next run is PENDING" in outcome.sentence
    bench.steps, bench.step_looks = [()], 0
    outcome = await bench.run(usr1(running()))
    assert results(outcome) == [(Result.NOT_KNOWN, 1)]
    assert "not known which run USR1 reached" in outcome.sentence


async def test_what_the_signal_killed_had_not_ended_before() -> None:
    """Its first step may have started after the look at the steps."""
    for code in ("10", "35328"):
        bench = bench_with({"4711": {"State": "FAILED", "exit_code": code}})
        bench.steps = [()]
        outcome = await bench.run(usr1(running(), recipient=Recipient.EVERYTHING))
        assert results(outcome) == [(Result.DONE, 1)]
        assert "the job has ended since: FAILED" in outcome.sentence
    bench = bench_with({"4711": {"State": "FAILED", "exit_code": "256"}})
    bench.steps = [()]
    outcome = await bench.run(usr1(running(), recipient=Recipient.EVERYTHING))
    assert results(outcome) == [(Result.OVER, 1)]


async def test_a_cancel_and_the_next_run() -> None:
    action = ready(plan_cancel([running()], ME))
    outcome = await bench_with({"4711": NEXT_WAITS}).run(action)
    assert results(outcome) == [(Result.SENT, 1)]
    assert "it was requeued meanwhile: its next run is PENDING" in outcome.sentence
    outcome = await bench_with({"4711": NEXT_ENDED}).run(action)
    assert results(outcome) == [(Result.OVER, 1)]
    assert "its next run has ended (FAILED)" in outcome.sentence
    outcome = await bench_with({"4711": {**NEXT_ENDED, "State": "CANCELLED"}}).run(action)
    assert results(outcome) == [(Result.DONE, 1)]
    assert "requeued meanwhile" in outcome.sentence
    bench = bench_with({"4711": NEXT_WAITS})
    bench.steps = [("4711.0",), ()]
    outcome = await bench.run(one_step(running()))
    assert results(outcome) == [(Result.NOT_KNOWN, 1)]
    assert "requeued meanwhile" in outcome.sentence


async def test_a_hold_of_what_was_requeued_meanwhile_says_so() -> None:
    outcome = await bench_with({"4711": {**HELD, "RestartCnt": "1"}}).run(
        ready(plan_hold([running()], ME))
    )
    assert results(outcome) == [(Result.DONE, 1)]
    assert "requeued meanwhile" in outcome.sentence


async def test_requeued_while_held_says_that_it_will_not_start() -> None:
    again = {**HELD, "RestartCnt": "1"}
    outcome = await bench_with({"4711": again}).run(ready(plan_requeue([running()], ME)))
    assert results(outcome) == [(Result.DONE, 1)]
    assert outcome.sentence == (
        "job 4711: requeued, but held: release it to let it start (JobHeldUser)"
    )


# A dry run, many jobs, the trail


async def test_a_dry_run_runs_and_writes_nothing() -> None:
    bench = Bench(dry_run=True)
    action = plan(job("4711"), job("4712"))
    outcome = await bench.run(action)
    assert (bench.runner.calls, bench.lines.lines, bench.syslog) == ([], [], [])
    assert outcome.dry_run
    assert outcome.ok
    assert outcome.sentence == ("dry run: nothing was done; it would run: scancel 4711 4712")
    outcome = await bench.run(action, still_same=lambda target: target.key.id == "4712")
    assert outcome.action.argvs == (("scancel", "4712"),)
    assert not outcome.ok
    closed = Bench(dry_run=True, read_only=True)
    assert "read-only" in (await closed.run(action)).sentence


async def test_200_cancels_cost_no_more_than_10_other_requests() -> None:
    """Of the commands here scancel sends one request an id, and squeue two a call."""
    bench = Bench()
    ids = [str(1000 + n) for n in range(200)]
    bench.queue = [
        dict.fromkeys(ids, "COMPLETING"),
        {id: "COMPLETING" if id == "1000" else "CANCELLED" for id in ids},
    ]
    outcome = await bench.run(plan(*(job(id) for id in ids)))
    assert outcome.count(Result.DONE) == 199
    assert sum(len(argv) - 1 for argv in bench.sent) == 200
    questions = [call.argv for call in bench.runner.calls if call.argv[0] == "squeue"]
    assert len(questions) <= 5
    assert all("--local" in argv for argv in questions)
    assert "-u" in questions[0]
    assert questions[-1][questions[-1].index("-j") + 1] == "1000"


async def test_one_request_for_all_where_scancel_can() -> None:
    bench = Bench()
    ids = [str(1000 + n) for n in range(200)]
    bench.queue = [dict.fromkeys(ids, "CANCELLED")]
    jobs = [job(id) for id in ids]
    action = ready(plan_cancel(jobs, dataclasses.replace(ME, one_call=True)))
    outcome = await bench.run(action)
    assert len(bench.sent) == 1
    assert outcome.sentence == "200 cancelled"


async def test_syslog_gets_one_line_and_never_fails_an_action() -> None:
    bench = Bench(log=Lines(OSError(28, "No space left on device")))
    bench.queue = [{"4711": HELD}]
    outcome = await bench.run(ready(plan_hold([waiting()], ME)), without_log=True)
    assert outcome.ok
    assert bench.syslog == ["anna hold 4711: held"]

    def broken(text: str) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    lines = Lines()
    log = ActionLog(lambda: lines, who="anna", uid=20011, syslog=broken)
    assert log.record(entry()) is None
    assert len(lines.lines) == 1


def entry(**changes: object) -> Entry:
    values: dict[str, object] = {
        "id": "1f",
        "event": "outcome",
        "when": NOW,
        "kind": "signal",
        "cluster": "",
        "argvs": (("scancel", "--ctld", "--signal=USR1", "4711"),),
        "outcomes": {"4711": ("signalled", "x")},
        "details": {"signal": "USR1", "recipient": "steps"},
        **changes,
    }
    return Entry(**values)  # type: ignore[arg-type]


def test_a_syslog_line_says_who_what_and_what_came_of_it() -> None:
    assert syslog_text(entry(), who="anna") == (
        "anna signal 4711 (signal USR1, recipient steps): signalled"
    )
    many = {str(n): ("held" if n % 2 else "denied", "") for n in range(30)}
    text = syslog_text(entry(kind="hold", outcomes=many, details={}), who="a\nb\x1b")
    assert text.endswith(" and 10 more: 15 denied, 15 held")
    assert "\n" not in text
    assert "\x1b" not in text
    secret = "hf_" + "aB3dE5gH7j" * 3 + "kLmN"
    assert secret not in syslog_text(entry(outcomes={secret: ("held", "")}), who="anna")


def test_secrets_are_masked_in_the_commands_and_details_of_the_log_too() -> None:
    secret = "hf_" + "aB3dE5gH7j" * 3 + "kLmN"
    odd = entry(argvs=(("scancel", secret),), details={"nodes": [secret], "x": secret, "n": 5})
    line = json.loads(entry_line(odd, who="anna", uid=1))
    assert secret not in json.dumps(line)
    assert line["details"]["n"] == 5


async def test_owners_that_squeue_does_not_know_are_asked_for_by_number() -> None:
    runner = FakeRunner()
    runner.on("squeue *")
    runner.on("squeue * -u *", rc=0, stderr="squeue: error: Invalid user: bob\n")
    ids = [str(1000 + n) for n in range(60)]
    seen = await QueueReadBack(runner).read(ids, "", owners={"anna", "bob"})
    assert seen.failure is None
    assert ["-u" in call.argv for call in runner.calls] == [True, False, False]
    runner.calls.clear()
    runner.on("squeue * -u *", rc=1, stderr=DOWN)
    seen = await QueueReadBack(runner).read(ids, "", owners={"anna"})
    assert seen.failure is not None
    assert seen.failure.trouble is Trouble.DOWN
    assert len(runner.calls) == 1
    runner.calls.clear()
    await QueueReadBack(runner).read(ids, "", owners={"-x"})
    assert ["-u" in call.argv for call in runner.calls] == [False, False]


async def test_a_squeue_without_local_is_asked_without_it_from_then_on() -> None:
    runner = FakeRunner()

    def squeue(command: Command) -> Completed:
        old = "--local" in command.argv
        words = b"squeue: unrecognized option '--local'\n" if old else b""
        return Completed(1 if old else 0, b"", words, NOW, 0.1)

    runner.on_call("squeue *", squeue)
    read_back = QueueReadBack(runner)
    assert (await read_back.read(["1"], "")).failure is None
    assert (await read_back.read_steps(["1"], "")).failure is None
    assert ["--local" in call.argv for call in runner.calls] == [True, False, False]
