"""What the queue says of a job after its action was planned, and when nothing may be done."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.control.actions import Action, Asker, Kind, Refusal
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.change import plan_exclude, plan_limit
from slurmtop.control.changes import Change, changes_since, nothing_left
from slurmtop.control.hold import plan_hold, plan_release
from slurmtop.control.requeue import plan_requeue
from slurmtop.control.signals import plan_signal
from slurmtop.model.ids import JobKey
from slurmtop.model.job import Job
from slurmtop.model.script import Recipient
from slurmtop.store.jobs import JobBook
from slurmtop.ui.present.changes import change_text
from tests.build import make_id, make_job, make_state
from tests.fakes import START

ASKER = Asker(me="anna", now=START)
WAITS = make_job("4711", "PENDING", excluded_nodes="", reason="Priority")
HELD = replace(WAITS, reason="JobHeldUser", priority=0)
RUNS = make_job("4711", "RUNNING", requeueable=True, batch=True)
FAILED = make_job("4711", "FAILED", requeueable=True, batch=True, end=START)


def planned(kind: Kind, job: Job) -> Action:
    plans: dict[Kind, Callable[[], Action | Refusal]] = {
        Kind.CANCEL: lambda: plan_cancel([job], ASKER),
        Kind.REQUEUE: lambda: plan_requeue([job], ASKER),
        Kind.HOLD: lambda: plan_hold([job], ASKER),
        Kind.RELEASE: lambda: plan_release([job], ASKER),
        Kind.LIMIT: lambda: plan_limit([job], ASKER, minutes=700),
        Kind.EXCLUDE: lambda: plan_exclude([job], ASKER, hosts=["gpu03"]),
        Kind.SIGNAL: lambda: plan_signal(
            [job], ASKER, signal="USR1", recipient=Recipient.STEPS, steps=None
        ),
    }
    action = plans[kind]()
    assert isinstance(action, Action), action
    return action


def later(action: Action, *jobs: Job, at: float = 20) -> tuple[Change, ...]:
    """What is new when the queue answers with ``jobs`` after ``at`` seconds."""
    book = JobBook()
    book.apply((RUNS if action.targets[0].started_at else WAITS,), START - timedelta(seconds=20))
    book.apply(jobs, START + timedelta(seconds=at))
    return changes_since(action, book.get, book.gone, book.sampled_at)


def words(changes: tuple[Change, ...]) -> list[tuple[str, bool]]:
    return [(change_text(change), change.lost) for change in changes]


STARTED = ("4711 has started meanwhile on gpu01", True)
NEWS = ("4711 has started meanwhile on gpu01", False)


@pytest.mark.parametrize(
    ("kind", "shown", "now", "says"),
    [
        (Kind.HOLD, WAITS, RUNS, STARTED),
        (Kind.RELEASE, HELD, RUNS, STARTED),
        (Kind.EXCLUDE, WAITS, RUNS, STARTED),
        (Kind.LIMIT, WAITS, RUNS, NEWS),
        (Kind.CANCEL, WAITS, RUNS, NEWS),
        (Kind.SIGNAL, RUNS, WAITS, ("4711 waits in the queue again", True)),
        (Kind.REQUEUE, RUNS, WAITS, ("4711 waits in the queue again", True)),
        (Kind.CANCEL, RUNS, WAITS, ("4711 waits in the queue again", False)),
        (Kind.SIGNAL, RUNS, FAILED, ("4711 has ended meanwhile: failed", True)),
        (Kind.HOLD, WAITS, FAILED, ("4711 has ended meanwhile: failed", True)),
        (Kind.REQUEUE, FAILED, RUNS, ("4711 is no longer over: running", True)),
        (Kind.REQUEUE, FAILED, WAITS, ("4711 is no longer over: waits in the queue", True)),
        (
            Kind.SIGNAL,
            RUNS,
            replace(RUNS, restarts=1),
            ("4711 is another run now, not the one shown", True),
        ),
        (
            Kind.CANCEL,
            RUNS,
            replace(RUNS, submit=START),
            ("4711 is another run now, not the one shown", True),
        ),
    ],
)
def test_what_has_become_something_else(
    kind: Kind, shown: Job, now: Job, says: tuple[str, bool]
) -> None:
    action = planned(kind, shown)
    changes = later(action, now)
    assert words(changes) == [says]
    assert nothing_left(action, changes) is says[1]


@pytest.mark.parametrize(
    ("kind", "job"),
    [(Kind.REQUEUE, FAILED), (Kind.SIGNAL, RUNS), (Kind.HOLD, WAITS), (Kind.CANCEL, RUNS)],
)
def test_the_same_job_is_no_change(kind: Kind, job: Job) -> None:
    assert later(planned(kind, job), replace(job, nodes=job.nodes)) == ()


def test_an_answer_that_is_older_than_the_plan_is_no_news() -> None:
    action = planned(Kind.SIGNAL, RUNS)
    assert later(action, WAITS, at=-1) == ()
    assert later(action, WAITS, at=1) != ()


def test_a_job_that_left_is_lost_for_every_kind() -> None:
    for kind, job in ((Kind.CANCEL, RUNS), (Kind.HOLD, WAITS), (Kind.SIGNAL, RUNS)):
        action = planned(kind, job)
        assert words(later(action)) == [("4711 has left the queue meanwhile", True)]


def test_a_job_that_had_left_before_the_plan_is_no_news() -> None:
    book = JobBook()
    book.apply((RUNS,), START - timedelta(seconds=60))
    book.apply((), START - timedelta(seconds=40))
    book.apply((), START + timedelta(seconds=20))
    action = planned(Kind.SIGNAL, RUNS)
    assert changes_since(action, book.get, book.gone, book.sampled_at) == ()


def rest(text: str) -> Job:
    return replace(WAITS, id=make_id(text), key=JobKey("", "4711_[*]"))


@pytest.mark.parametrize(
    ("kind", "now"),
    [
        (Kind.CANCEL, "4711_[3-9]"),
        (Kind.HOLD, "4711_[3-9]"),
        (Kind.HOLD, "4711_[0-1,4-9]"),
    ],
)
def test_tasks_of_the_rest_that_started_are_told(kind: Kind, now: str) -> None:
    """The others are still what was shown; right before the command those are left out."""
    changes = later(planned(kind, rest("4711_[0-9]")), rest(now))
    says = "some of the waiting tasks of 4711 have started meanwhile"
    assert words(changes) == [(says, False)]


@pytest.mark.parametrize("now", ["4711_[0-9]", "4711_[0-20]", "4711_[0-4,5-9]"])
def test_a_rest_with_all_of_its_tasks_is_no_change(now: str) -> None:
    assert later(planned(Kind.HOLD, rest("4711_[0-9]")), rest(now)) == ()


@given(
    st.sampled_from([RUNS, WAITS, FAILED]),
    st.sampled_from(["RUNNING", "PENDING", "COMPLETED", "COMPLETING", "CANCELLED", "odd"]),
)
def test_nothing_is_done_to_a_requeue_in_any_other_state(shown: Job, word: str) -> None:
    """Whatever a requeue was confirmed for, it is never done to what would run again by it."""
    if shown is WAITS:
        return
    now = replace(shown, state=make_state(word))
    changes = later(planned(Kind.REQUEUE, shown), now)
    ends = shown is RUNS and word == "COMPLETING"
    others = ("RUNNING", "PENDING", "COMPLETED")
    if ends or (shown.state.ended != now.state.ended and word in others):
        assert changes
        assert changes[0].lost
