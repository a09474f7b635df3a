"""Rules about actions that no handed case holds: what scancel and scontrol really do."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from slurmtop.control.actions import Action, Kind, Recipient, Refusal
from slurmtop.control.cancel import plan_cancel, plan_cancel_step
from slurmtop.control.change import plan_exclude, plan_limit
from slurmtop.control.commands import argvs_for, check_argv
from slurmtop.control.hold import plan_hold, plan_release
from slurmtop.control.outcome import Result
from slurmtop.control.requeue import plan_requeue
from slurmtop.control.signals import SIGNALS, parse_signal, plan_signal
from slurmtop.model.job import UNKNOWN_LIMIT, Step
from slurmtop.parse.slurm.scancel import ScancelKind, parse_scancel
from tests.build import make_id, make_job
from tests.cases.acting import ASKER, Acting, dialog, planned, refusal, row, said, told

KILL_ERROR = "scancel: error: Kill job error on job id {}: {}\n"
UNKNOWN = "Invalid job id specified"
USR1: dict[str, Any] = {"signal": "USR1", "recipient": Recipient.STEPS}


def _action(made: Action | Refusal) -> Action:
    assert isinstance(made, Action), made
    return made


# scancel: exit status, silence, --ctld


@pytest.mark.parametrize(
    ("rc", "kind"),
    [
        (60, ScancelKind.HET_COMPONENT),
        (210, ScancelKind.DENIED),
        (217, ScancelKind.NO_SCRIPT),
        (225, ScancelKind.UNKNOWN_JOB),
        (228, ScancelKind.BUSY),
        (229, ScancelKind.ALREADY_OVER),
    ],
)
def test_S046_a_status_is_an_errno_modulo_256(rc: int, kind: ScancelKind) -> None:
    assert [reply.kind for reply in parse_scancel(rc, b"")] == [kind]


def test_S046_disabled_is_said_in_words() -> None:
    (reply,) = parse_scancel(245, b"")
    assert reply.kind is not ScancelKind.SILENT
    assert "exit 245" not in reply.sentence


def _plans() -> list[Action]:
    jobs = [make_job("4711"), make_job("4712_3"), make_job("4713_[0-4]", "PENDING")]
    step = Step(job=make_id("4711"), id="0")
    made: list[Action | Refusal] = [
        plan_cancel(jobs, ASKER),
        plan_cancel_step(jobs[0], step, ASKER),
    ]
    for recipient in (Recipient.STEPS, Recipient.BATCH, Recipient.EVERYTHING):
        made.append(plan_signal(jobs, ASKER, signal="USR1", recipient=recipient))
    made.append(plan_signal(jobs[:1], ASKER, signal="INT", recipient=Recipient.STEP, step=step))
    return [_action(each) for each in made]


def test_S047_no_plan_makes_scancel_load_the_job_table() -> None:
    for action in _plans():
        for argv in action.argvs:
            options = [word for word in argv[1:] if word.startswith("-")]
            if options or any("." in word for word in argv):
                assert argv[1] == "--ctld"
            for option in options:
                assert option in ("--ctld", "--batch", "--full") or option.startswith("--signal=")


@pytest.mark.parametrize(
    "words",
    [
        ("-v", "4711"),
        ("--state=RUNNING", "4711"),
        ("-u", "anna"),
        ("--user=anna",),
        ("--signal=USR1", "4711"),
        ("4711.0",),
        ("--interactive", "4711"),
        ("--ctld", "--signal=USR1", "--batch", "--full", "4711"),
        ("4711_*",),
        ("--hurry", "4711"),
        ("--cron", "4711"),
        (),
    ],
)
def test_S047_other_forms_of_scancel_are_never_run(words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"not a|no job"):
        check_argv(("scancel", *words))


@pytest.mark.parametrize(
    ("rc", "words", "state", "result"),
    [
        # 24.11 and 26.05 deny with exit 0, 22.05 with 210.
        (0, "Access/permission denied", "RUNNING", Result.DENIED),
        (210, "Access/permission denied", "RUNNING", Result.DENIED),
        # A job that is over: silence and exit 0; or, when it ended in between, exit 229.
        (0, "", "COMPLETED", Result.OVER),
        (229, "", "FAILED", Result.OVER),
        (1, UNKNOWN, "COMPLETED", Result.OVER),
        # An id nobody knows: silence and exit 0 on 24.11, a line and exit 1 on 26.05.
        (0, "", None, Result.NO_SUCH_JOB),
        (1, UNKNOWN, None, Result.NO_SUCH_JOB),
    ],
)
@pytest.mark.parametrize("signal", ["USR1", "CONT", "TERM"])
@pytest.mark.parametrize("recipient", [Recipient.STEPS, Recipient.BATCH, Recipient.EVERYTHING])
async def test_S047_a_signal_to_what_was_over_or_not_ones_own(
    rc: int, words: str, state: str | None, result: Result, signal: str, recipient: Recipient
) -> None:
    stderr = KILL_ERROR.format("4711", words) if words else ""
    looks = [[row("4711", state)] if state else []]
    ran = None if state == "RUNNING" else ()
    action = planned(plan_signal, [make_job("4711")], signal=signal, recipient=recipient)
    outcome = await Acting(said(stderr, rc), looks, ran=ran).outcome(action)
    assert [job.result for job in outcome.jobs] == [result]
    assert "signalled" not in outcome.sentence


@pytest.mark.parametrize("state", ["RUNNING", "FAILED", "COMPLETING"])
async def test_S047_a_signal_that_was_taken(state: str) -> None:
    action = planned(plan_signal, [make_job("4711")], **USR1)
    outcome = await Acting(said(rc=0), [[row("4711", state)]]).outcome(action)
    assert [job.result for job in outcome.jobs] == [Result.DONE]
    assert "signalled" in outcome.sentence


async def test_S048_a_signal_to_the_steps_of_a_job_without_any_reached_nobody() -> None:
    action = planned(plan_signal, [make_job("4711")], **USR1)
    looks = [[row("4711", "RUNNING")]]
    outcome = await Acting(said(rc=0), looks, ran=("4711.batch",)).outcome(action)
    assert [job.result for job in outcome.jobs] == [Result.NOT_KNOWN]
    assert "signalled" not in outcome.sentence
    assert "srun" in outcome.sentence


async def test_S047_a_signal_is_not_known_to_have_arrived_without_a_look() -> None:
    action = planned(plan_signal, [make_job("4711")], **USR1)
    outcome = await Acting(said(rc=0), [None]).outcome(action)
    assert [job.result for job in outcome.jobs] == [Result.NOT_KNOWN]
    assert not outcome.ok


async def test_S047_one_of_several_is_told_by_name() -> None:
    jobs = [make_job(str(number)) for number in (4711, 4712, 4713)]
    looks = [[row("4711", "RUNNING"), row("4712", "RUNNING"), row("4713", "CANCELLED")]]
    stderr = KILL_ERROR.format("4712", "Access/permission denied")
    outcome = await Acting(said(stderr, 210), looks).outcome(planned(plan_cancel, jobs))
    by_id = {job.target.key.id: job.result for job in outcome.jobs}
    assert by_id == {"4711": Result.SENT, "4712": Result.DENIED, "4713": Result.DONE}


# scancel: steps, KILL, cron, het parts


@pytest.mark.parametrize(
    ("rc", "stderr"),
    [
        (225, "scancel: error: Kill job error on job step id 4711: Invalid job id specified\n"),
        (0, ""),
    ],
)
async def test_S046_a_step_that_was_over_is_not_called_cancelled_before(
    rc: int, stderr: str
) -> None:
    action = plan_cancel_step(make_job("4711"), Step(job=make_id("4711"), id="0"), ASKER)
    looks = [[row("4711", "COMPLETED")]]
    (job,) = (await Acting(said(stderr, rc), looks, ran=()).outcome(action)).jobs
    assert job.result in (Result.OVER, Result.NO_SUCH_JOB)


async def test_S048_kill_is_read_back_like_a_cancel() -> None:
    action = planned(plan_signal, [make_job("4711")], signal="KILL", recipient=Recipient.STEPS)
    (job,) = (await Acting(said(rc=0), [[row("4711", "RUNNING")]]).outcome(action)).jobs
    assert job.result is Result.SENT
    (job,) = (await Acting(said(rc=0), [[row("4711", "CANCELLED")]]).outcome(action)).jobs
    assert job.result is Result.DONE


async def test_S048_kill_of_a_step_is_done_when_the_step_is_gone() -> None:
    step = Step(job=make_id("4711"), id="0")
    how: dict[str, Any] = {"signal": "KILL", "recipient": Recipient.STEP, "step": step}
    action = planned(plan_signal, [make_job("4711")], **how)
    looks = [[row("4711", "RUNNING")]]
    (job,) = (await Acting(said(rc=0), looks, ran=("4711.0",)).outcome(action)).jobs
    assert job.result is Result.SENT
    assert not job.final
    ended = [[row("4711", "COMPLETED")]]
    (job,) = (await Acting(said(rc=0), ended, ran=("4711.0",)).outcome(action)).jobs
    assert job.result is Result.DONE


async def test_S046_a_scrontab_job_is_refused_in_words() -> None:
    stderr = KILL_ERROR.format("4711", "Refusing to cancel scrontab jobs without --cron option.")
    outcome = await Acting(said(stderr, 1), [[row("4711", "PENDING")]]).outcome(
        planned(plan_cancel, [make_job("4711", "PENDING")])
    )
    assert [job.result for job in outcome.jobs] == [Result.REFUSED]
    assert "scrontab" in outcome.sentence


@pytest.mark.parametrize("leader", ["9302", "20", "4000000"])
async def test_S058_a_refused_part_names_the_way_out(leader: str) -> None:
    parts = [make_job(f"{leader}+{n}", "PENDING") for n in (0, 1)]
    words = "Operation not permitted on individual component of heterogeneous job"
    stderr = KILL_ERROR.format(int(leader) + 1, words)
    looks = [[row(f"{leader}+{n}", "PENDING") for n in (0, 1)]]
    outcome = await Acting(said(stderr, 60), looks).outcome(planned(plan_cancel, parts))
    assert Result.DONE not in [job.result for job in outcome.jobs]


# scontrol: hold and release


@pytest.mark.parametrize("reason", ["JobHeldUser", "JobHeldAdmin"])
async def test_S049_held_is_read_from_the_queue(reason: str) -> None:
    action = planned(plan_hold, [make_job("4711", "PENDING")])
    looks = [[row("4711", "PENDING", reason=reason, priority="0")]]
    (job,) = (await Acting(said(rc=0), looks).outcome(action)).jobs
    assert job.result is Result.DONE
    looks = [[row("4711", "PENDING", reason="Priority", priority="100")]]
    (job,) = (await Acting(said(rc=0), looks).outcome(action)).jobs
    assert job.result is not Result.DONE
    assert "job 4711: held" not in job.sentence


async def test_S049_a_held_running_job_runs_on() -> None:
    action = planned(plan_hold, [make_job("4711")])
    assert "does not stop a job that runs" in dialog(action)
    looks = [[row("4711", "RUNNING", reason="JobHeldUser", priority="0")]]
    (job,) = (await Acting(said(rc=0), looks).outcome(action)).jobs
    assert job.result is Result.DONE
    assert "run" in job.sentence


async def test_S049_release_is_done_when_no_hold_is_left() -> None:
    action = planned(plan_release, [make_job("4711", "PENDING", reason="JobHeldUser", priority=0)])
    looks = [[row("4711", "PENDING", reason="JobHeldUser", priority="0")]]
    (job,) = (await Acting(said(rc=0), looks).outcome(action)).jobs
    assert job.result is not Result.DONE
    looks = [[row("4711", "PENDING", reason="None", priority="4294901758")]]
    (job,) = (await Acting(said(rc=0), looks).outcome(action)).jobs
    assert job.result is Result.DONE


def test_S049_nothing_to_release_is_said() -> None:
    made = planned(plan_release, [make_job("4711", "PENDING", reason="Priority", priority=100)])
    assert "not held" in (made.sentence if isinstance(made, Refusal) else dialog(made))


def test_S049_the_hold_of_an_administrator_is_said_before() -> None:
    made = planned(plan_release, [make_job("4711", "PENDING", reason="JobHeldAdmin", priority=0)])
    assert "administrator" in (made.sentence if isinstance(made, Refusal) else dialog(made))


# scontrol: requeue


async def test_S053_requeue_keeps_the_id_and_counts_the_restarts() -> None:
    action = planned(plan_requeue, [make_job("4711", restarts=3)])
    before = row("4711", "RUNNING", restarts="3")
    cleaning = row("4711", "COMPLETING", restarts="4")
    after = row("4711", "PENDING", reason="BeginTime", restarts="4", submit="2031-05-05T12:00:03")
    outcome = await Acting(said(rc=0), [[before], [cleaning], [after]]).outcome(action)
    (job,) = outcome.jobs
    assert job.result is Result.DONE
    assert job.final
    outcome = await Acting(said(rc=0), [[before]]).outcome(action)
    assert [job.result for job in outcome.jobs] == [Result.SENT]


async def test_S053_a_requeued_job_may_run_again_at_once() -> None:
    action = planned(plan_requeue, [make_job("4711", restarts=0)])
    again = row("4711", "RUNNING", restarts="1", start="2031-05-05T12:00:05")
    (job,) = (await Acting(said(rc=0), [[again]]).outcome(action)).jobs
    assert job.result is Result.DONE


@pytest.mark.parametrize("state", ["COMPLETED", "TIMEOUT", "CANCELLED", "NODE_FAIL"])
async def test_S053_an_ended_job_that_stays_ended_was_not_requeued(state: str) -> None:
    action = planned(plan_requeue, [make_job("4711")])
    (job,) = (await Acting(said(rc=0), [[row("4711", state, restarts="0")]]).outcome(action)).jobs
    assert job.result is not Result.DONE
    assert "job 4711: requeued" not in job.sentence


@pytest.mark.parametrize("state", ["FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"])
def test_S053_a_job_that_failed_may_be_requeued_while_slurm_remembers_it(state: str) -> None:
    action = _action(planned(plan_requeue, [make_job("4711", state)]))
    assert action.argvs == (("scontrol", "requeue", "4711"),)


def test_S049_completed_tasks_are_not_run_again() -> None:
    jobs = [make_job(f"4711_{n}", state) for n, state in enumerate(("COMPLETED", "FAILED"))]
    action = _action(planned(plan_requeue, jobs))
    assert action.argvs == (("scontrol", "requeue", "4711_1"),)


def test_S053_requeue_never_takes_back_what_is_incomplete() -> None:
    for kind in (Kind.REQUEUE, Kind.REQUEUE_HOLD):
        target = _action(planned(plan_requeue, [make_job("4711")])).targets
        for argv in argvs_for(kind, target, ""):
            assert "Incomplete" not in argv
    with pytest.raises(ValueError, match="not a command"):
        check_argv(("scontrol", "requeue", "Incomplete", "4711"))


# scontrol: what a user may not do


@pytest.mark.parametrize(
    "argv",
    [
        ("scontrol", "top", "4711"),
        ("scontrol", "suspend", "4711"),
        ("scontrol", "resume", "4711"),
        ("scontrol", "uhold", "4711"),
        ("scontrol", "update", "JobId=4711", "Nice=-5"),
        ("scontrol", "update", "JobId=4711", "Priority=9999"),
        ("scontrol", "update", "JobId=4711", "TimeLimit=+60"),
        ("scontrol", "update", "JobId=4711", "ExcNodeList="),
        ("scontrol", "update", "NodeName=gpu01", "State=DRAIN"),
        ("scontrol", "reconfigure"),
        ("scontrol", "shutdown"),
    ],
)
def test_S049_other_words_of_scontrol_are_never_run(argv: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="not "):
        check_argv(argv)


async def test_S049_a_limit_is_lowered_but_not_raised() -> None:
    state = "RUNNING"
    job = make_job("4711", state, limit_s=7_200)
    made = planned(plan_limit, [job], minutes=240)
    if isinstance(made, Action):
        assert "raise" in dialog(made) or "longer" in dialog(made)
        stderr = "Access/permission denied for job 4711\n"
        looks = [[row("4711", state, limit="2:00:00")]]
        outcome = await Acting(said(stderr, 1), looks).outcome(made)
        assert [each.result for each in outcome.jobs] == [Result.DENIED]
        assert "administrator" in told(outcome) or "lower" in told(outcome)
        assert "somebody else" not in told(outcome)
    else:
        assert "lower" in made.sentence
    lower = planned(plan_limit, [job], minutes=60)
    done = Acting(said(rc=0), [[row("4711", state, limit="1:00:00")]])
    assert [each.result for each in (await done.outcome(lower)).jobs] == [Result.DONE]
    same = Acting(said(rc=0), [[row("4711", state, limit="2:00:00")]])
    assert Result.DONE not in [each.result for each in (await same.outcome(lower)).jobs]


async def test_S049_a_raise_of_a_limit_that_is_not_known_blames_no_ownership_alone() -> None:
    job = make_job("4711", limit=UNKNOWN_LIMIT)
    stderr = "Access/permission denied for job 4711\n"
    looks = [[row("4711", "RUNNING", limit="2:00:00")]]
    outcome = await Acting(said(stderr, 1), looks).outcome(planned(plan_limit, [job], minutes=240))
    assert [each.result for each in outcome.jobs] == [Result.DENIED]
    assert "longer limit" in outcome.sentence


def test_S049_nodes_are_excluded_only_before_the_start() -> None:
    sentence = refusal(planned(plan_exclude, [make_job("4711")], hosts=["gpu03"]))
    assert "started" in sentence
    waits = make_job("4711", "PENDING", excluded_nodes="gpu[01-02]")
    action = _action(planned(plan_exclude, [waits], hosts=["gpu03"]))
    assert action.argvs == (("scontrol", "update", "JobId=4711", "ExcNodeList=gpu[01-03]"),)


async def test_S049_an_exclusion_of_a_job_that_started_is_told() -> None:
    action = planned(
        plan_exclude, [make_job("4711", "PENDING", excluded_nodes="")], hosts=["gpu03"]
    )
    stderr = "Job is no longer pending execution for job 4711\n"
    looks = [[row("4711", "RUNNING", excluded_nodes="(null)")]]
    outcome = await Acting(said(stderr, 1), looks).outcome(action)
    assert [job.result for job in outcome.jobs] == [Result.REFUSED]
    assert "wait" in outcome.sentence or "started" in outcome.sentence


# Every action with every answer: never a success that the queue does not show

_ANSWERS = [
    "Job has already finished for job 4711\n",
    "Access/permission denied for job 4711\nslurm_suspend error: Access/permission denied\n",
    "Access/permission denied for job 4711\nslurm_suspend error:Access/permission denied\n",
    "Invalid job id specified for job 4711\n",
    "Unable to contact slurm controller (connect failure)\n",
    "slurm_suspend error: Socket timed out on send/recv operation\n",
    "",
]


@pytest.mark.parametrize(
    ("plan", "how", "state"),
    [
        (plan_hold, {}, "PENDING"),
        (plan_release, {}, "PENDING"),
        (plan_requeue, {}, "RUNNING"),
        (plan_requeue, {"hold": True}, "RUNNING"),
        (plan_limit, {"minutes": 5}, "RUNNING"),
        (plan_exclude, {"hosts": ["gpu03"]}, "PENDING"),
    ],
)
async def test_S049_no_answer_makes_a_success_that_the_queue_does_not_show(
    plan: Any, how: dict[str, Any], state: str
) -> None:
    held = plan is plan_release
    more = {"reason": "JobHeldUser" if held else "Priority", "priority": "0" if held else "100"}
    job = make_job("4711", state, excluded_nodes="", **more)
    job = replace(job, priority=int(more["priority"]))
    unchanged = row("4711", state, limit="1-00:00:00", restarts="0", excluded_nodes="", **more)
    for (rc, stderr), look in itertools.product(
        itertools.product((0, 1), _ANSWERS), ([unchanged], [], None)
    ):
        outcome = await Acting(said(stderr, rc), [look]).outcome(planned(plan, [job], **how))
        assert Result.DONE not in [item.result for item in outcome.jobs], (stderr, look)
        assert not outcome.ok
        assert "suspend" not in told(outcome)


def test_S048_every_signal_fits_a_command() -> None:
    for name in SIGNALS:
        made = planned(plan_signal, [make_job("4711")], **{**USR1, "signal": name})
        (option,) = [word for word in _action(made).argvs[0] if word.startswith("--signal=")]
        # scancel has no names for some: those go by number.
        assert parse_signal(option.removeprefix("--signal=")) == name
