"""Cancelling when something is in the way: another's job, an outage, a job that moved."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmtop.control.actions import Action, Asker
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.outcome import Outcome, Result
from slurmtop.model.ids import JobId, JobKey
from slurmtop.model.job import Job
from slurmtop.ui.screens.confirm import ConfirmScreen
from tests.cluster.desk import Desk, HurriedClock, meanwhile, open_desk
from tests.cluster.faults import Faults
from tests.cluster.fixtures import Cluster


@pytest.fixture
def held(cluster: Cluster) -> Iterator[list[str]]:
    """Two held jobs, cancelled afterwards."""
    jobs = [
        cluster.submit("sleep 900", job_name=f"{cluster.tag}-odd", hold=True, time=5)
        for _ in range(2)
    ]
    yield jobs
    cluster.run("scancel", *jobs, check=False)


def _state(cluster: Cluster, job: str) -> set[str]:
    return cluster.states(job)


def _plan(desk: Desk, job: Job) -> Action:
    services = desk.app.services
    plan = plan_cancel([job], Asker(me=services.user, now=services.clock.now()))
    assert isinstance(plan, Action)
    return plan


def _queued(desk: Desk, job: str) -> Job:
    found = desk.app.book.get(JobKey("", job))
    assert found is not None
    return found


async def test_job_that_ended_while_the_dialog_was_open(
    cluster: Cluster, held: list[str], tmp_path: Path
) -> None:
    async with open_desk(tmp_path) as desk:
        dialog = await desk.ask_to_cancel(held[0])
        cluster.run("scancel", held[0])
        await desk.shows(f"{held[0]} has ended meanwhile", "Nothing is left of what was shown")
        await desk.press("y")
        assert desk.app.screen is dialog, "there is no yes any more"
        await desk.press("escape")
        assert desk.sent == []
        assert desk.logged() == []
    assert _state(cluster, held[1]) == {"PENDING"}


async def test_job_that_ended_between_the_yes_and_the_call(
    cluster: Cluster, held: list[str], tmp_path: Path
) -> None:
    """The queue on the screen does not know yet; the look right before the command does."""
    async with open_desk(tmp_path, interval_s=60) as desk:
        await desk.ask_to_cancel(held[0])
        cluster.run("scancel", held[0])
        await desk.say_yes()
        outcome = await desk.outcome()
        assert outcome.ok
        assert outcome.jobs[0].result is Result.OVER
        assert outcome.jobs[0].state_word == "CANCELLED"
        assert desk.sent == []
    assert _state(cluster, held[1]) == {"PENDING"}


async def test_row_that_moves_is_not_another_job(
    cluster: Cluster, held: list[str], tmp_path: Path
) -> None:
    target, other = held
    async with open_desk(tmp_path) as desk:
        await desk.filter(f"{cluster.tag}-odd")
        await desk.ask_to_cancel(target)
        before = [row.key.id for row in desk.jobs.view.rows]
        cluster.run("scontrol", "release", other)
        await desk.until(
            "another order",
            lambda: [row.key.id for row in desk.jobs.view.rows] != before,
        )
        assert f"$ scancel {target}" in desk.text
        await desk.say_yes()
        outcome = await desk.outcome()
        assert [job.target.key.id for job in outcome.jobs] == [target]
        assert desk.sent == [("scancel", target)]
    assert _state(cluster, target) == {"CANCELLED"}
    assert _state(cluster, other) == {"RUNNING"}


async def test_row_that_disappears_is_not_its_neighbour(
    cluster: Cluster, held: list[str], faults: Faults, tmp_path: Path
) -> None:
    target, other = held
    async with open_desk(tmp_path) as desk:
        await desk.filter(f"{cluster.tag}-odd")
        await desk.ask_to_cancel(target)
        await meanwhile(faults.forget_ended)
        cluster.run("scancel", target)
        await desk.until("it gone", lambda: JobKey("", target) in desk.app.book.gone, 60)
        await desk.shows("Nothing is left of what was shown")
        await desk.press("y", "escape")
        assert desk.sent == []
    assert _state(cluster, other) == {"PENDING"}


async def test_job_that_has_ended_is_refused_in_words(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit("true", job_name=f"{cluster.tag}-over")
    cluster.wait_state(job, "COMPLETED")
    async with open_desk(tmp_path) as desk:
        await desk.go_to(job)
        await desk.press("K")
        await desk.shows(f"job {job} is already over (COMPLETED)")
        assert not isinstance(desk.app.screen, ConfirmScreen)
        assert desk.sent == []


async def test_unknown_id_is_not_called_cancelled(held: list[str], tmp_path: Path) -> None:
    """scancel says nothing and exits 0 for a job that does not exist."""
    async with open_desk(tmp_path) as desk:
        unknown = dataclasses.replace(
            _queued(desk, held[0]),
            key=JobKey("", "98765430"),
            id=JobId(text="98765430", base="98765430"),
        )
        outcome = await desk.app.services.executor.execute(_plan(desk, unknown))
        assert [job.result for job in outcome.jobs] == [Result.NO_SUCH_JOB]
        assert not outcome.ok
        assert "no such job in the queue" in outcome.sentence
        assert desk.logged()[0]["jobs"][0]["outcome"] == "no such job"


async def test_others_job_is_refused_before_slurm_is_asked_to_end_it(
    cluster: Cluster, faults: Faults, tmp_path: Path
) -> None:
    theirs = faults.submit_other(name=f"{cluster.tag}-theirs")
    cluster.wait_state(theirs, "RUNNING")
    async with open_desk(tmp_path, all_users=True) as desk:
        await desk.go_to(theirs)
        await desk.press("K")
        await desk.shows("not yours", cluster.users[1])
        assert not isinstance(desk.app.screen, ConfirmScreen)
        assert desk.sent == []
        # Where accounting did not tell what a person may do, Slurm's own word counts.
        outcome = await desk.app.services.executor.execute(_plan(desk, _queued(desk, theirs)))
        assert [job.result for job in outcome.jobs] == [Result.DENIED]
        assert desk.sent == [("scancel", theirs)]
        assert desk.logged()[0]["jobs"][0]["outcome"] == "denied"
    assert _state(cluster, theirs) == {"RUNNING"}


async def test_read_only_takes_the_key_and_the_executor_refuses(
    cluster: Cluster, held: list[str], tmp_path: Path
) -> None:
    async with open_desk(tmp_path, read_only=True) as desk:
        assert "read-only" in desk.head
        await desk.go_to(held[0])
        await desk.press("K")
        assert len(desk.app.screen_stack) == 1
        await desk.press("enter", "K")
        assert not isinstance(desk.app.screen, ConfirmScreen)
        outcome = await desk.app.services.executor.execute(_plan(desk, _queued(desk, held[0])))
        assert outcome.refused == "slurmtop runs read-only: nothing was done"
        assert desk.sent == []
        assert desk.logged() == []
    assert _state(cluster, held[0]) == {"PENDING"}


@pytest.mark.long
async def test_controller_that_hears_but_does_not_answer(
    cluster: Cluster, held: list[str], faults: Faults, tmp_path: Path
) -> None:
    """scancel runs out of patience although the request has arrived: only a look tells."""
    async with open_desk(tmp_path, interval_s=60) as desk:
        await desk.ask_to_cancel(held[0])
        await meanwhile(faults.stop, "slurmctld")
        await desk.say_yes()
        await desk.until("the end of scancel", lambda: bool(desk.wire.answers_of("scancel")), 120)
        done = desk.wire.answers_of("scancel")[0]
        assert done.rc != 0
        assert "reading back" in desk.text
        assert f"job {held[0]}: cancelled" not in desk.text
        await meanwhile(faults.cont, "slurmctld")
        outcome = await desk.outcome(120)
        (state,) = _state(cluster, held[0])
        assert outcome.jobs[0].state_word == state == "CANCELLED"
        assert outcome.jobs[0].result is Result.DONE


@pytest.mark.long
async def test_controller_down_leaves_the_outcome_open(
    cluster: Cluster, held: list[str], faults: Faults, tmp_path: Path
) -> None:
    async with open_desk(tmp_path, executor_clock=HurriedClock()) as desk:
        await desk.ask_to_cancel(held[0])
        await meanwhile(faults.kill, "slurmctld")
        await desk.say_yes()
        outcome: Outcome = await desk.outcome(120)
        assert [job.result for job in outcome.jobs] == [Result.NOT_KNOWN]
        assert not outcome.ok
        assert f"job {held[0]}: not known" in desk.text
        assert "controller" in desk.text
        assert desk.logged()[0]["jobs"][0]["outcome"] == "not known"
        await meanwhile(faults.start, "slurmctld")
        await desk.press("escape")
        await desk.press("r")
        await desk.until("an answer", lambda: desk.app.health.failure is None, 60)
        (state,) = _state(cluster, held[0])
        assert state == "PENDING", "the controller never heard of it"
        assert "pending" in desk.row(held[0])
