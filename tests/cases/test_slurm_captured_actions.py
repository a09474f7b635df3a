"""What hold, release, requeue, update and scancel really printed on three versions, and what a
person is told of it."""

import shlex
from collections.abc import Sequence

import pytest

from slurmtop.control.actions import Action, Recipient, Refusal
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.change import plan_exclude, plan_limit
from slurmtop.control.commands import check_argv
from slurmtop.control.hold import plan_hold, plan_release
from slurmtop.control.outcome import Outcome, Result
from slurmtop.control.requeue import plan_requeue
from slurmtop.control.signals import parse_signal, plan_signal
from slurmtop.model.job import Job
from slurmtop.model.ports import Completed
from slurmtop.parse.slurm.scontrol import parse_scontrol_jobs
from tests.build import make_job
from tests.cases.acting import Acting, Rows, planned, row, said, told
from tests.cases.quirks import FIXTURES, RELEASES, capture

EACH_RELEASE = pytest.mark.parametrize("release", RELEASES)


def answer(release: str, name: str) -> tuple[tuple[str, ...], Completed]:
    """The command of a capture and how it ended."""
    line, status = (FIXTURES / release / f"{name}.cmd").read_text().splitlines()[:2]
    stderr = FIXTURES / release / f"{name}.err"
    words = stderr.read_bytes() if stderr.exists() else b""
    return tuple(shlex.split(line)), said(words, int(status.removeprefix("exit=")))


async def outcome_of(
    release: str, name: str, action: Action | Refusal, looks: Sequence[Rows | None]
) -> Outcome:
    return await Acting(answer(release, name)[1], looks).outcome(action)


def job_of(release: str, name: str, state: str = "RUNNING", **more: object) -> Job:
    """The job that a capture was about, as the queue showed it before."""
    return make_job(answer(release, name)[0][-1], state, **more)


@EACH_RELEASE
@pytest.mark.parametrize("name", ["hold", "release"])
async def test_captured_hold_and_release(release: str, name: str) -> None:
    _, done = answer(release, name)
    held = name == "hold"
    before = {"reason": "Priority"} if held else {"reason": "JobHeldUser", "priority": 0}
    job = job_of(release, name, "PENDING", **before)
    action = planned(plan_hold if held else plan_release, [job])
    if done.rc == 0:
        now = {"reason": "JobHeldUser", "priority": "0"}
        now = now if held else {"reason": "Priority", "priority": "100"}
        outcome = await outcome_of(release, name, action, [[row(job.key.id, "PENDING", **now)]])
        assert [item.result for item in outcome.jobs] == [Result.DONE]
        assert ("held" if held else "released") in outcome.sentence
    else:
        outcome = await outcome_of(release, name, action, [[row(job.key.id, "COMPLETED")]])
        assert [item.result for item in outcome.jobs] == [Result.OVER]
        assert "over" in outcome.sentence
        assert "suspend" not in told(outcome)


@EACH_RELEASE
async def test_captured_hold_of_somebody_elses_job(release: str) -> None:
    job = job_of(release, "hold_not_mine", "PENDING", user="bob", reason="Priority")
    looks = [[row(job.key.id, "PENDING", reason="Priority", priority="100")]]
    outcome = await outcome_of(release, "hold_not_mine", planned(plan_hold, [job]), looks)
    assert [item.result for item in outcome.jobs] == [Result.DENIED]
    text = told(outcome)
    assert "suspend" not in text
    assert "Invalid user id" not in text


@EACH_RELEASE
async def test_captured_requeue_of_a_running_job(release: str) -> None:
    job = job_of(release, "requeue_running")
    line = capture(release, "squeue_after_requeue").decode().strip().split("|")
    waits = row(line[0], line[1], reason=line[2], restarts="1")
    outcome = await outcome_of(release, "requeue_running", planned(plan_requeue, [job]), [[waits]])
    assert [item.result for item in outcome.jobs] == [Result.DONE]
    assert "requeued" in outcome.sentence


@EACH_RELEASE
@pytest.mark.parametrize("name", ["requeue_finished", "requeue_array_task"])
async def test_captured_requeue_of_what_had_ended(release: str, name: str) -> None:
    job = job_of(release, name, "FAILED")
    looks = [[row(job.key.id, "PENDING", reason="BeginTime", restarts="1")]]
    outcome = await outcome_of(release, name, planned(plan_requeue, [job]), looks)
    assert [item.result for item in outcome.jobs] == [Result.DONE]
    outcome = await outcome_of(
        release, name, planned(plan_requeue, [job]), [[row(job.key.id, "FAILED", restarts="0")]]
    )
    assert Result.DONE not in [item.result for item in outcome.jobs]


@EACH_RELEASE
async def test_captured_requeue_that_may_not_be(release: str) -> None:
    job = job_of(release, "requeue_norequeue")
    looks = [[row(job.key.id, "RUNNING", restarts="0")]]
    outcome = await outcome_of(release, "requeue_norequeue", planned(plan_requeue, [job]), looks)
    assert [item.result for item in outcome.jobs] == [Result.REFUSED]
    assert "--no-requeue" in outcome.sentence


@EACH_RELEASE
async def test_captured_requeue_of_an_unknown_job(release: str) -> None:
    job = job_of(release, "requeue_unknown", "FAILED")
    outcome = await outcome_of(release, "requeue_unknown", planned(plan_requeue, [job]), [[]])
    assert [item.result for item in outcome.jobs] == [Result.NO_SUCH_JOB]
    assert not outcome.ok


@EACH_RELEASE
async def test_captured_requeue_of_a_waiting_job(release: str) -> None:
    _, done = answer(release, "requeue_pending")
    job = job_of(release, "requeue_pending")
    restarts = "1" if done.rc == 0 else "0"
    looks = [[row(job.key.id, "PENDING", reason="Priority", restarts=restarts)]]
    outcome = await outcome_of(release, "requeue_pending", planned(plan_requeue, [job]), looks)
    (only,) = outcome.jobs
    assert (only.result is Result.DONE) == (done.rc == 0)
    if done.rc:
        assert "wait" in only.sentence


@EACH_RELEASE
async def test_captured_requeuehold(release: str) -> None:
    job = job_of(release, "requeuehold")
    (detail,) = parse_scontrol_jobs(capture(release, "scontrol_job_requeuehold")).rows
    shown = detail.job
    assert shown.key.id == job.key.id
    now = row(
        job.key.id,
        shown.state.word,
        reason=shown.reason or "",
        priority=str(shown.priority),
        restarts=str(shown.restarts),
    )
    action = planned(plan_requeue, [job], hold=True)
    for reason in (now["reason"], "job requeued in held state", "JobHeldUser"):
        outcome = await outcome_of(release, "requeuehold", action, [[{**now, "reason": reason}]])
        assert [item.result for item in outcome.jobs] == [Result.DONE]
        assert "requeued and held" in outcome.sentence
    not_held = {**now, "reason": "BeginTime", "priority": "100"}
    outcome = await outcome_of(release, "requeuehold", action, [[not_held]])
    assert Result.DONE not in [item.result for item in outcome.jobs]


@EACH_RELEASE
async def test_captured_raised_time_limit(release: str) -> None:
    argv, done = answer(release, "update_timelimit_up")
    id = argv[2].partition("=")[2]
    job = make_job(id, "PENDING", limit_s=3_600)
    action = planned(plan_limit, [job], minutes=8 * 24 * 60)
    if isinstance(action, Refusal):
        assert "raise" in action.sentence or "longer" in action.sentence
        return
    old, new = row(id, "PENDING", limit="1:00:00"), row(id, "PENDING", limit="8-00:00:00")
    if done.rc == 0:
        outcome = await outcome_of(release, "update_timelimit_up", action, [[new]])
        assert [item.result for item in outcome.jobs] == [Result.DONE]
        outcome = await outcome_of(release, "update_timelimit_up", action, [[old]])
        assert Result.DONE not in [item.result for item in outcome.jobs]
        return
    over = row(id, "COMPLETED", limit="1:00:00")
    outcome = await outcome_of(release, "update_timelimit_up", action, [[over]])
    assert [item.result for item in outcome.jobs] == [Result.OVER]


@EACH_RELEASE
@pytest.mark.parametrize("now", ["gpu03", "(null)", "gpu04"])
async def test_captured_exclusion_is_proven_by_the_list(release: str, now: str) -> None:
    argv, done = answer(release, "update_exclude")
    assert done.rc == 0
    id = argv[2].partition("=")[2]
    action = planned(plan_exclude, [make_job(id, "PENDING", excluded_nodes="")], hosts=["gpu03"])
    looks = [[row(id, "PENDING", excluded_nodes=now)]]
    outcome = await outcome_of(release, "update_exclude", action, looks)
    assert (outcome.jobs[0].result is Result.DONE) == (now == "gpu03")


# scancel


@EACH_RELEASE
async def test_captured_cancel_of_an_unknown_and_an_ended_job(release: str) -> None:
    gone = job_of(release, "scancel_unknown")
    outcome = await outcome_of(release, "scancel_unknown", planned(plan_cancel, [gone]), [[]])
    assert [item.result for item in outcome.jobs] == [Result.NO_SUCH_JOB]
    over = job_of(release, "scancel_finished")
    looks = [[row(over.key.id, "COMPLETED")]]
    outcome = await outcome_of(release, "scancel_finished", planned(plan_cancel, [over]), looks)
    assert [item.result for item in outcome.jobs] == [Result.OVER]
    assert "cancelled" not in outcome.sentence


@EACH_RELEASE
async def test_captured_cancel_of_somebody_elses_job(release: str) -> None:
    job = job_of(release, "scancel_not_mine", user="bob")
    looks = [[row(job.key.id, "RUNNING")]]
    outcome = await outcome_of(release, "scancel_not_mine", planned(plan_cancel, [job]), looks)
    assert [item.result for item in outcome.jobs] == [Result.DENIED]


@EACH_RELEASE
@pytest.mark.parametrize(
    ("name", "state", "result"),
    [
        ("scancel_signal_batch", "RUNNING", Result.DONE),
        ("scancel_signal_finished", "COMPLETED", Result.OVER),
        ("scancel_signal_pending", "PENDING", Result.REFUSED),
    ],
)
async def test_captured_signal_to_the_batch_shell(
    release: str, name: str, state: str, result: Result
) -> None:
    job = job_of(release, name)
    action = planned(plan_signal, [job], signal="USR1", recipient=Recipient.BATCH)
    assert isinstance(action, Action)
    assert answer(release, name)[0][1:] == (*action.argvs[0][2:-1], job.key.id)
    outcome = await outcome_of(release, name, action, [[row(job.key.id, state)]])
    assert [item.result for item in outcome.jobs] == [result]
    assert ("signalled" in outcome.sentence) == (result is Result.DONE)


@EACH_RELEASE
def test_captured_unknown_signal_is_never_sent(release: str) -> None:
    argv, done = answer(release, "scancel_badsig")
    assert done.rc == 1
    assert parse_signal(argv[1].removeprefix("--signal=")) is None
    how = {"signal": "NOPE", "recipient": Recipient.STEPS}
    assert isinstance(planned(plan_signal, [make_job(argv[-1])], **how), Refusal)


@EACH_RELEASE
def test_captured_suspend_is_no_command_of_ours(release: str) -> None:
    argv, done = answer(release, "suspend_user")
    assert done.rc == 1
    with pytest.raises(ValueError, match="not a command"):
        check_argv(argv)
