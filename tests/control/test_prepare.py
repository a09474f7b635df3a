"""One look before a plan: what is the same job, what was learnt, what is asked and what not."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.control.actions import Action, Asker, ConfirmLevel, Details, Kind, Refusal
from slurmtop.control.commands import check_argv
from slurmtop.control.outcome import Seen
from slurmtop.control.prepare import (
    LOOPS_AT_MOST,
    READ_AT_MOST,
    Request,
    ScriptSeen,
    StepsSeen,
    prepare,
)
from slurmtop.model.job import Job, Phase
from slurmtop.model.script import Fate, Reaction, Recipient, ScriptReading
from slurmtop.model.snapshot import Failure, Trouble
from tests.control.builders import (
    NOBODY,
    NOW,
    OPERATOR,
    FakeWorld,
    a_step,
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

DOWN = Failure(Trouble.DOWN, "the controller does not answer")
SAVES = Reaction("batch shell", Fate.HANDLES, "trap in line 3", 3)


def ask(
    kind: Kind, jobs: list[Job], world: FakeWorld, who: Asker | None = None, **more: object
) -> Action | Refusal:
    request = Request(kind=kind, jobs=tuple(jobs), **more)  # type: ignore[arg-type]
    return asyncio.run(prepare(request, world, who or asker()))


def test_a_cancel_of_ones_own_jobs_asks_nothing() -> None:
    world = FakeWorld()
    made = action(ask(Kind.CANCEL, [job("4711"), job("4712_[1-3]", "PENDING")], world))
    assert made.argvs == (("scancel", "4711", "4712_[1-3]"),)
    assert world.asked == []


def test_rights_are_asked_for_where_they_decide() -> None:
    world = FakeWorld(may=NOBODY)
    assert "not yours" in sentence(ask(Kind.CANCEL, [job("4711", user="bob")], world))
    assert world.asked == ["rights"]
    held = job("4711", "PENDING", reason="JobHeldAdmin", priority=0)
    world = FakeWorld(Seen((held,)), may=OPERATOR)
    assert action(ask(Kind.RELEASE, [held], world)).argvs
    world = FakeWorld(Seen((job("4711"),)), may=NOBODY)
    raised = ask(Kind.LIMIT, [job("4711")], world, details=Details(limit_minutes=9_999))
    assert "not raise it" in sentence(raised)
    given = asker(rights=NOBODY)
    world = FakeWorld(may=OPERATOR)
    assert "not yours" in sentence(ask(Kind.CANCEL, [job("1", user="bob")], world, given))
    assert world.asked == []


def test_read_only_asks_nothing() -> None:
    world = FakeWorld()
    assert "read-only" in sentence(ask(Kind.HOLD, [job("4711")], world, asker(read_only=True)))
    assert world.asked == []


def test_one_look_for_all_jobs() -> None:
    rows = (job("4711", "PENDING"), job("4712_1", "PENDING"), job("4712_[2-9]", "PENDING"))
    world = FakeWorld(Seen(rows))
    assert action(ask(Kind.HOLD, list(rows), world)).job_count == 10
    assert world.asked == ["jobs 4711,4712"]


def test_the_look_decides_and_keeps_what_it_does_not_know() -> None:
    shown = job("4711", requeueable=None, batch=None, name="mine")
    now = job("4711", requeueable=False, name="", user="", account=None)
    assert "--no-requeue" in sentence(ask(Kind.REQUEUE, [shown], FakeWorld(Seen((now,)))))
    now = replace(now, requeueable=True)
    (target,) = action(ask(Kind.REQUEUE, [shown], FakeWorld(Seen((now,))))).targets
    assert (target.name, target.user) == ("mine", "anna")


@pytest.mark.parametrize(
    ("kind", "says"),
    [(Kind.REQUEUE, "too old to requeue: resubmit"), (Kind.HOLD, "no longer known to Slurm")],
)
def test_a_job_that_is_gone(kind: Kind, says: str) -> None:
    assert says in sentence(ask(kind, [job("4711", "FAILED")], FakeWorld()))
    rest = job("4712_[1-4]", "PENDING")
    assert "no longer known" in sentence(ask(kind, [rest], FakeWorld()))
    other = job("4713", "FAILED" if kind is Kind.REQUEUE else "PENDING")
    made = action(ask(kind, [job("4711"), other], FakeWorld(Seen((other,)))))
    assert [target.key.id for target in made.targets] == ["4713"]
    assert any(says in text and text.endswith(": 4711") for text in made.warnings)


@pytest.mark.parametrize("changed", [{"submit": NOW}, {"restarts": 1}])
def test_another_run_is_not_the_job_that_was_shown(changed: dict[str, object]) -> None:
    shown = job("4711", "FAILED")
    now = replace(shown, **changed)  # type: ignore[arg-type]
    says = sentence(ask(Kind.REQUEUE, [shown], FakeWorld(Seen((now,)))))
    assert "not the run you saw" in says


def test_of_an_arrays_rest_only_the_shown_tasks_that_still_wait_are_meant() -> None:
    shown = job("4711_[5-9%2]", "PENDING")
    rows = (
        job("4711_5"),
        job("4711_6", "PENDING"),
        # 1 was put back in the queue; nobody saw it when this was chosen.
        job("4711_[1,7-9%2]", "PENDING", submit=NOW),
    )
    made = action(ask(Kind.HOLD, [shown], FakeWorld(Seen(rows))))
    assert made.argvs == (("scontrol", "hold", "4711_[6-9]"),)
    assert "left out, no longer waiting: 4711_5" in made.warnings
    assert made.job_count == 4
    gone = sentence(ask(Kind.HOLD, [shown], FakeWorld(Seen((job("4711_5"),)))))
    assert "no longer waiting" in gone


def test_a_waiting_task_may_stand_among_others_now() -> None:
    rows = Seen((job("4711_[2-9]", "PENDING", submit=NOW),))
    made = action(ask(Kind.HOLD, [job("4711_3", "PENDING")], FakeWorld(rows)))
    assert made.argvs == (("scontrol", "hold", "4711_3"),)
    again = sentence(ask(Kind.REQUEUE, [job("4711_3", "FAILED")], FakeWorld(rows)))
    assert "not the run you saw" in again


def test_what_completed_meanwhile_is_not_requeued_because_the_other_is_gone() -> None:
    shown = [job("4711_1"), job("4711_2")]
    world = FakeWorld(Seen((job("4711_1", "COMPLETED"),)))
    says = sentence(ask(Kind.REQUEUE, shown, world))
    assert "completed" in says
    assert "4711_1" in says
    assert "4711_2" in says
    alone = action(ask(Kind.REQUEUE, shown[:1], world))
    assert alone.confirm is ConfirmLevel.TYPE_ID


def test_where_slurm_is_silent_the_plan_says_from_when_it_is() -> None:
    world = FakeWorld(Seen((), DOWN))
    made = action(ask(Kind.HOLD, [job("4711", "PENDING"), job("4712_[1-3]", "PENDING")], world))
    assert made.job_count == 4
    assert "the controller does not answer" in made.warnings[0]
    assert "this is what was known at 12:00:00 UTC" in made.warnings[0]
    half = FakeWorld(Seen((job("4711", "PENDING"),), DOWN))
    made = action(ask(Kind.HOLD, [job("4711", "PENDING"), job("4712", "PENDING")], half))
    assert "this is what was known of 4712 at 12:00:00 UTC" in made.warnings[0]
    refused = sentence(ask(Kind.REQUEUE, [job("4711", "PENDING")], world))
    assert "already pending" in refused
    assert "the controller does not answer" in refused


def test_an_old_list_of_excluded_nodes_is_never_written_back() -> None:
    one = job("4711", "PENDING", excluded_nodes="gpu03")
    wish = Details(exclude=("gpu05",))
    silent = FakeWorld(Seen((), DOWN))
    assert "that list would be lost" in sentence(ask(Kind.EXCLUDE, [one], silent, details=wish))
    fresh = FakeWorld(Seen((replace(one, excluded_nodes="gpu07"),)))
    made = action(ask(Kind.EXCLUDE, [one], fresh, details=wish))
    assert made.argvs == (("scontrol", "update", "JobId=4711", "ExcNodeList=gpu[05,07]"),)
    blind = FakeWorld(Seen((replace(one, excluded_nodes=None),)))
    assert "that list would be lost" in sentence(ask(Kind.EXCLUDE, [one], blind, details=wish))
    none = FakeWorld(Seen((replace(one, excluded_nodes=""),)))
    made = action(ask(Kind.EXCLUDE, [one], none, details=wish))
    assert made.argvs == (("scontrol", "update", "JobId=4711", "ExcNodeList=gpu05"),)


def test_loops_come_first_and_only_what_restarted_is_looked_at() -> None:
    rows = (job("4711", "FAILED", restarts=3), job("4712", "FAILED"))
    world = FakeWorld(Seen(rows), loops={"4711": "looping: restarted 3 times"})
    shown = [*rows, job("4713")]
    made = action(ask(Kind.REQUEUE, shown, world))
    assert made.warnings[0] == "looping: restarted 3 times"
    assert any("4713" in text for text in made.warnings)
    assert [text for text in world.asked if "looping" in text] == ["looping 4711"]
    assert (made.confirm, made.expected_text) == (ConfirmLevel.TYPE_COUNT, "2")


def test_not_every_history_of_many_jobs_is_read_and_that_is_said() -> None:
    rows = tuple(job(str(4_000 + n), "FAILED", restarts=n + 1) for n in range(8))
    world = FakeWorld(Seen(rows))
    made = action(ask(Kind.REQUEUE, list(rows), world))
    read = [text for text in world.asked if text.startswith("looping")]
    assert read == [f"looping {4_007 - n}" for n in range(LOOPS_AT_MOST)]
    assert made.warnings[-1].endswith("each time: 4002, 4001, 4000")


def test_what_the_script_says_of_its_output_file() -> None:
    rows = tuple(job(id, "FAILED") for id in ("4711", "4712_1", "4712_2", "4713"))
    world = FakeWorld(
        Seen(rows),
        scripts={
            "4711": ScriptSeen(ScriptReading(open_mode="append")),
            "4712": ScriptSeen(ScriptReading(open_mode="truncate")),
        },
    )
    made = action(ask(Kind.REQUEUE, list(rows), world))
    assert "so the output file goes on: 4711" in told(made)
    assert "the output file is overwritten: 4712_1, 4712_2" in told(made)
    assert "the output file may be overwritten (--open-mode is not known): 4713" in told(made)
    scripts = [text for text in world.asked if text.startswith("script")]
    assert scripts == ["script 4711", "script 4712_1", "script 4713"]


def test_nothing_more_is_asked_where_the_look_refuses() -> None:
    waiting = job("4711", "PENDING")
    world = FakeWorld(Seen((waiting,)))
    details = Details(signal="USR1", recipient=Recipient.STEPS)
    assert "has not started" in sentence(ask(Kind.SIGNAL, [waiting], world, details=details))
    assert world.asked == ["jobs 4711"]


def test_a_signal_learns_the_steps_and_what_the_script_is_prepared_for() -> None:
    world = FakeWorld(
        Seen((job("4711"),)),
        StepsSeen((a_step("4711.0"), a_step("4711.batch"))),
        scripts={"4711": ScriptSeen(ScriptReading())},
        what=(SAVES,),
    )
    details = Details(signal="USR2", recipient=Recipient.STEPS)
    made = action(ask(Kind.SIGNAL, [job("4711")], world, details=details))
    assert (made.reactions, made.confirm) == ((SAVES,), ConfirmLevel.YES)
    looked = "processes 4711 on gpu01"
    assert world.asked == ["jobs 4711", "steps 4711", "script 4711", looked]


def test_without_a_step_the_script_is_not_even_read() -> None:
    world = FakeWorld(Seen((job("4711"),)), StepsSeen((a_step("4711.batch"),)))
    details = Details(signal="USR2", recipient=Recipient.STEPS)
    made = action(ask(Kind.SIGNAL, [job("4711")], world, details=details))
    assert "nobody gets it" in told(made)
    assert world.asked == ["jobs 4711", "steps 4711"]
    blind = FakeWorld(Seen((job("4711"),)), StepsSeen((), DOWN))
    made = action(ask(Kind.SIGNAL, [job("4711")], blind, details=details))
    assert "not known whether an srun step runs" in told(made)
    assert made.reactions == (
        Reaction("what srun started", Fate.UNKNOWN, "the script cannot be read"),
    )
    assert made.confirm is ConfirmLevel.TYPE_ID


def test_a_script_that_was_cut_leaves_a_doubt() -> None:
    world = FakeWorld(
        Seen((job("4711"),)),
        scripts={"4711": ScriptSeen(ScriptReading(), "the script is longer than what was read")},
        what=(SAVES,),
    )
    details = Details(signal="USR2", recipient=Recipient.BATCH)
    made = action(ask(Kind.SIGNAL, [job("4711")], world, details=details))
    assert SAVES in made.reactions
    assert made.confirm is ConfirmLevel.TYPE_ID


def test_scripts_are_read_once_an_array_and_not_for_a_thousand_jobs() -> None:
    rows = tuple(job(str(4_000 + n)) for n in range(30))
    rows += tuple(job(f"5000_{n}") for n in range(30))
    world = FakeWorld(Seen(rows))
    details = Details(signal="USR2", recipient=Recipient.BATCH)
    made = action(ask(Kind.SIGNAL, list(rows), world, details=details))
    assert sum(text.startswith("script") for text in world.asked) == READ_AT_MOST
    assert any("only 10 scripts are read" in item.why for item in made.reactions)


def test_a_kill_reads_no_script() -> None:
    world = FakeWorld(Seen((job("4711"),)), StepsSeen((a_step("4711.0"),)))
    details = Details(signal="KILL", recipient=Recipient.EVERYTHING)
    assert action(ask(Kind.SIGNAL, [job("4711")], world, details=details)).reactions == ()
    assert world.asked == ["jobs 4711"]


@pytest.mark.parametrize("kind", [Kind.CANCEL, Kind.SIGNAL])
def test_a_step_that_is_over_by_now(kind: Kind) -> None:
    world = FakeWorld(Seen((job("4711"),)), StepsSeen((a_step("4711.1"),)))
    details = Details(signal="USR2", recipient=Recipient.STEP)
    over = ask(kind, [job("4711")], world, details=details, step=a_step("4711.0"))
    assert "step 0 of job 4711 runs no longer" in sentence(over)
    there = ask(kind, [job("4711")], world, details=details, step=a_step("4711.1"))
    assert action(there).targets[0].label == "4711.1"


def test_the_step_of_a_het_part_is_looked_for_under_its_own_number() -> None:
    part = job("9300+1", raw_id="9301")
    world = FakeWorld(Seen((part,)), StepsSeen((a_step("9301.0"),)))
    made = action(ask(Kind.CANCEL, [part], world, step=a_step("9300+1.0")))
    assert made.argvs == (("scancel", "--ctld", "9301.0"),)
    assert world.asked == ["jobs 9300", "steps 9300,9301"]


def test_both_parts_of_a_het_job_count_though_one_was_shown() -> None:
    rows = (job("9300+0", nodes="gpu01", user=""), job("9300+1", nodes="gpu02", user=""))
    made = action(ask(Kind.HOLD, [job("9300+1", nodes="gpu02")], FakeWorld(Seen(rows))))
    (target,) = made.targets
    assert [part.id for part in target.parts] == ["9300+0", "9300+1"]
    assert (target.user, target.nodes) == ("anna", "gpu[01-02]")


@given(
    shown=st.lists(any_job(), min_size=1, max_size=5),
    rows=st.lists(any_job(), max_size=5),
    who=any_asker(),
    kind=st.sampled_from(Kind),
    failure=st.sampled_from([None, DOWN]),
)
def test_nothing_but_what_was_shown(
    shown: list[Job], rows: list[Job], who: Asker, kind: Kind, failure: Failure | None
) -> None:
    world = FakeWorld(Seen(tuple(rows), failure), may=NOBODY)
    details = Details(
        signal="USR1", recipient=Recipient.EVERYTHING, limit_minutes=30, exclude=("gpu09",)
    )
    made = ask(kind, shown, world, who, details=details)
    if isinstance(made, Refusal):
        assert made.sentence
        return
    for argv in made.argvs:
        check_argv(argv)
    assert sorted(named(made)) == sorted(set(meant(made)))
    last = {one.key: one for one in shown}.values()
    assert set(named(made)) <= {id for one in last for id in stands_for(one)}
    if failure is None and kind is Kind.SIGNAL:
        pending = {row.key for row in rows if row.state.phase is Phase.PENDING}
        assert not pending & {target.key for target in made.targets if not target.parts}


def test_the_time_of_the_plan_is_that_of_what_is_known() -> None:
    early = asker()
    early = replace(early, now=NOW - timedelta(hours=2))
    made = action(ask(Kind.HOLD, [job("1", "PENDING")], FakeWorld(Seen((), DOWN)), early))
    assert "at 10:00:00 UTC" in made.warnings[0]
