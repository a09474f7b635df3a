"""What can be held and released, and what is said where it cannot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.control.actions import Action, Asker, ConfirmLevel
from slurmtop.control.commands import check_argv
from slurmtop.control.hold import is_held, plan_hold, plan_release
from slurmtop.model.job import Job
from tests.control.builders import (
    NOBODY,
    OPERATOR,
    action,
    any_asker,
    any_job,
    asker,
    job,
    meant,
    named,
    sentence,
    stands_for,
    told,
)


def held(id: str, word: str = "PENDING") -> Job:
    return job(id, word, reason="JobHeldUser", priority=0)


def test_waiting_jobs_are_held_with_one_key() -> None:
    jobs = [job("4711", "PENDING"), job("4712_[1-5%2]", "PENDING")]
    made = action(plan_hold(jobs, asker()))
    assert made.argvs == (("scontrol", "hold", "4712_[1-5]"), ("scontrol", "hold", "4711"))
    assert (made.confirm, made.job_count) == (ConfirmLevel.YES, 6)
    assert made.warnings == ()


def test_a_hold_does_not_stop_what_runs_and_says_so() -> None:
    made = action(plan_hold([job("4711")], asker()))
    assert made.argvs == (("scontrol", "hold", "4711"),)
    assert "a hold does not stop a job that runs" in told(made)


@pytest.mark.parametrize("id", ["9300+0", "9300+1"])
def test_a_part_of_a_het_job_stands_for_its_leader(id: str) -> None:
    on = action(plan_hold([job(id, "PENDING")], asker()))
    assert on.argvs == (("scontrol", "hold", "9300"),)
    off = action(plan_release([held(id)], asker()))
    assert off.argvs == (("scontrol", "release", "9300"),)


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (held("4711"), "already held"),
        (job("4711", "COMPLETED"), "already over (COMPLETED): there is nothing to hold"),
        (job("4711", "COMPLETING"), "already ending"),
        (job("4711", "PENDING", user="bob"), "not yours; bob"),
    ],
)
def test_what_is_not_held(one: Job, says: str) -> None:
    assert says in sentence(plan_hold([one], asker(rights=NOBODY)))


@pytest.mark.parametrize(
    ("reason", "priority"),
    [
        ("JobHeldUser", 0),
        ("job requeued in held state", 0),
        ("job_requeued_in_held_state", None),
        ("JobHoldMaxRequeue", 0),
        ("launch failed requeued held", 0),
        ("Priority", 0),
        (None, 0),
        ("JobHeldUser,Priority", 7),
    ],
)
def test_what_is_held_is_released(reason: str | None, priority: int | None) -> None:
    one = job("4711", "PENDING", reason=reason, priority=priority)
    made = action(plan_release([one], asker()))
    assert made.argvs == (("scontrol", "release", "4711"),)
    assert made.confirm is ConfirmLevel.YES


def test_the_hold_of_a_running_job_is_released_too() -> None:
    assert action(plan_release([held("4711", "RUNNING")], asker())).argvs


@pytest.mark.parametrize("word", ["REQUEUE_HOLD", "SPECIAL_EXIT"])
def test_a_state_may_say_that_it_is_held(word: str) -> None:
    assert is_held(job("4711", word)) is True


def test_an_array_that_is_held_in_part_can_be_held_and_released() -> None:
    one = job("4711_[1-5]", "PENDING", reason="JobHeldUser,Priority")
    assert action(plan_hold([one], asker())).argvs
    assert action(plan_release([one], asker())).argvs


def test_what_is_not_held_is_not_released() -> None:
    one = job("4711", "PENDING", reason="Priority")
    assert sentence(plan_release([one], asker())) == "job 4711: it is not held"
    assert "it is not held" in sentence(plan_release([job("4712")], asker()))
    unknown = job("4711", "PENDING", reason=None, priority=None)
    assert "not known whether it is held at all" in told(plan_release([unknown], asker()))


def test_only_an_administrator_releases_what_one_holds() -> None:
    one = job("4711", "PENDING", reason="JobHeldAdmin", priority=0)
    says = "held by an administrator, only they can release it"
    assert says in sentence(plan_release([one], asker(rights=NOBODY)))
    assert says in sentence(plan_release([one], asker()))
    assert action(plan_release([one], asker(rights=OPERATOR))).argvs
    mixed = job("4711_[1-5]", "PENDING", reason="JobHeldAdmin,JobHeldUser", priority=0)
    assert "some of its tasks are held by an administrator" in told(
        plan_release([mixed], asker(rights=NOBODY))
    )


def test_the_owner_cannot_release_what_an_operator_holds() -> None:
    made = action(plan_hold([job("4711", "PENDING", user="bob")], asker(rights=OPERATOR)))
    assert "what an operator holds, its owner cannot release" in made.warnings
    assert made.confirm is ConfirmLevel.TYPE_ID


@given(
    jobs=st.lists(any_job(), max_size=6),
    known=st.lists(any_job(), max_size=4),
    who=any_asker(),
    release=st.booleans(),
)
def test_each_target_is_named_once_and_nothing_else(
    jobs: list[Job], known: list[Job], who: Asker, release: bool
) -> None:
    made = (plan_release if release else plan_hold)(jobs, who, known=known)
    if not isinstance(made, Action):
        assert made.sentence
        return
    for argv in made.argvs:
        check_argv(argv)
    assert sorted(named(made)) == sorted(set(meant(made)))
    alive = [one for one in jobs if not one.state.ended]
    assert set(named(made)) <= {id for one in alive for id in stands_for(one)}
