"""What a requeue takes back, what it warns of, and that completed tasks never run again unasked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.control.actions import Action, Asker, ConfirmLevel, Kind
from slurmtop.control.commands import check_argv
from slurmtop.control.requeue import plan_requeue
from slurmtop.model.job import Job, Phase
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


@pytest.mark.parametrize("word", ["RUNNING", "SUSPENDED", "FAILED", "TIMEOUT", "CANCELLED"])
def test_what_ran_is_put_back(word: str) -> None:
    made = action(plan_requeue([job("4711", word)], asker()))
    assert made.argvs == (("scontrol", "requeue", "4711"),)
    assert (made.kind, made.confirm) == (Kind.REQUEUE, ConfirmLevel.YES)
    assert "the output file may be overwritten" in told(made)
    assert "about 2 minutes (BeginTime)" in told(made)


def test_what_was_held_while_it_ran_will_not_start() -> None:
    """A hold stays through a requeue, and the two minutes are not what it waits for."""
    held = job("4711", reason="JobHeldUser", priority=0)
    made = action(plan_requeue([held], asker()))
    assert "it is held, so it will not start until it is released" in made.warnings
    assert "BeginTime" not in told(made)
    both = action(plan_requeue([held, job("4712")], asker()))
    assert "it is held, so it will not start until it is released: 4711" in both.warnings
    assert "BeginTime" in told(both)


def test_requeue_and_hold_says_that_it_is_held() -> None:
    made = action(plan_requeue([job("4711")], asker(cluster=""), hold=True))
    assert made.argvs == (("scontrol", "requeuehold", "4711"),)
    assert made.kind is Kind.REQUEUE_HOLD
    assert "held then, until it is released" in told(made)
    assert "BeginTime" not in told(made)


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (job("4711", "PENDING"), "already pending: hold it instead"),
        (job("4711", "REQUEUED"), "already pending"),
        (job("4711_[1-4]", "PENDING"), "already pending"),
        (job("4711", batch=False), "interactive jobs cannot be requeued"),
        (
            job("4711", "FAILED", requeueable=False),
            "was submitted with --no-requeue or the site forbids it (JobRequeue=0): resubmit",
        ),
        (job("4711", "COMPLETING"), "still ending: ask again"),
        (job("4711", "REVOKED"), "another cluster"),
        (job("4711", "QUANTUM"), "does not know"),
        (job("4711", user="bob"), "not yours; bob, an operator or a coordinator of account ml"),
    ],
)
def test_what_slurm_would_refuse_is_not_sent(one: Job, says: str) -> None:
    assert says in sentence(plan_requeue([one], asker(rights=NOBODY)))


def test_read_only_and_another_cluster_are_refused() -> None:
    assert "read-only" in sentence(plan_requeue([job("4711")], asker(read_only=True)))
    assert "another cluster" in sentence(plan_requeue([job("4711")], asker(cluster="beta")))


def test_what_is_not_known_is_offered_with_a_word() -> None:
    made = action(plan_requeue([job("4711", requeueable=None)], asker()))
    assert "not known whether Slurm may requeue it (Requeue=): 4711" in made.warnings


def test_completed_tasks_do_not_run_again_with_the_rest() -> None:
    jobs = [job("4711_0", "COMPLETED"), job("4711_1", "FAILED"), job("4711_2", "TIMEOUT")]
    made = action(plan_requeue(jobs, asker()))
    assert made.argvs == (("scontrol", "requeue", "4711_[1-2]"),)
    assert any("completed" in text and text.endswith(": 4711_0") for text in made.warnings)
    assert (made.confirm, made.expected_text) == (ConfirmLevel.TYPE_COUNT, "2")


@pytest.mark.parametrize("id", ["4711", "4711_3"])
def test_a_completed_one_alone_takes_its_id_typed(id: str) -> None:
    made = action(plan_requeue([job(id, "COMPLETED")], asker()))
    assert made.argvs == (("scontrol", "requeue", id),)
    assert (made.confirm, made.expected_text) == (ConfirmLevel.TYPE_ID, id)
    assert f"it has completed, and runs again from its start: {id}" in made.warnings


def test_the_record_of_a_whole_array_is_never_named() -> None:
    emptied = job("4711", "CANCELLED")
    says = sentence(plan_requeue([emptied], asker(), known=[job("4711_3", "FAILED")]))
    assert "ask for tasks" in says
    made = action(plan_requeue([emptied, job("4711_3", "FAILED")], asker()))
    assert made.argvs == (("scontrol", "requeue", "4711_3"),)


def test_a_part_of_a_het_job_stands_for_its_leader() -> None:
    first, second = job("9300+0"), job("9300+1", batch=False, requeueable=None)
    made = action(plan_requeue([second], asker(), known=[first, second]))
    assert made.argvs == (("scontrol", "requeue", "9300"),)
    assert "all of its parts are put back in the queue" in told(made)
    leader = job("9300+0", requeueable=False)
    assert "--no-requeue" in sentence(plan_requeue([second], asker(), known=[leader, second]))


def test_a_het_job_with_a_completed_part_is_not_taken_along() -> None:
    parts = [job("9300+0", "FAILED"), job("9300+1", "COMPLETED")]
    alone = action(plan_requeue(parts, asker()))
    assert (alone.confirm, alone.expected_text) == (ConfirmLevel.TYPE_ID, "9300")
    among = action(plan_requeue([*parts, job("4711", "FAILED")], asker()))
    assert among.argvs == (("scontrol", "requeue", "4711"),)


def test_what_is_lost_is_said_of_what_runs_only() -> None:
    ended = job("4712", "FAILED", start=None)
    made = action(plan_requeue([job("4711"), ended], asker()))
    assert any(text.startswith("24.0 GPU-hours") for text in made.warnings)
    assert "lost" not in told(plan_requeue([ended], asker()))


def test_a_loop_is_told_first_and_takes_the_id_typed() -> None:
    one = job("4711", "FAILED")
    made = action(plan_requeue([one], asker(), looping={one.key: "looping: restarted 3 times"}))
    assert made.warnings[0] == "looping: restarted 3 times"
    assert (made.confirm, made.expected_text) == (ConfirmLevel.TYPE_ID, "4711")


def test_notes_of_the_output_file_replace_the_general_word() -> None:
    made = action(plan_requeue([job("4711")], asker(), notes=["appends: 4711"]))
    assert "appends: 4711" in made.warnings
    assert "may be overwritten" not in told(made)


def test_the_job_of_somebody_else_may_be_an_operators() -> None:
    made = action(plan_requeue([job("4711", user="bob")], asker(rights=OPERATOR)))
    assert (made.confirm, made.expected_text) == (ConfirmLevel.TYPE_ID, "4711")
    assert "not your jobs: they belong to bob" in made.warnings


@given(
    jobs=st.lists(any_job(), max_size=6),
    known=st.lists(any_job(), max_size=4),
    who=any_asker(),
    hold=st.booleans(),
)
def test_no_completed_task_and_nothing_else_than_given(
    jobs: list[Job], known: list[Job], who: Asker, hold: bool
) -> None:
    made = plan_requeue(jobs, who, hold=hold, known=known)
    if not isinstance(made, Action):
        assert made.sentence
        return
    for argv in made.argvs:
        check_argv(argv)
    assert sorted(named(made)) == sorted(set(meant(made)))
    assert set(named(made)) <= {id for one in jobs for id in stands_for(one)}
    if len({one.id.base if _het(one) else one.key.id for one in jobs}) > 1:
        # Of a key that is given twice the last one counts.
        last = {one.key: one for one in jobs}.values()
        done = [one for one in last if one.state.phase is Phase.COMPLETED]
        assert not {id for one in done for id in stands_for(one)} & set(named(made))
    arrays = {one.id.base for one in (*jobs, *known) if one.id.task is not None or one.id.tasks}
    assert not arrays & set(named(made))


def _het(one: Job) -> bool:
    return one.id.het_offset is not None
