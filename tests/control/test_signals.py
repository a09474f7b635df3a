"""To whom a signal goes, what is warned of, and to whom none is ever sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.control.actions import Action, Asker, ConfirmLevel, Recipient
from slurmtop.control.commands import check_argv
from slurmtop.control.signals import SIGNALS, parse_signal, plan_signal, runs_in
from slurmtop.model.job import Job, Phase, Step
from slurmtop.model.script import Fate, Reaction
from tests.control.builders import (
    NOBODY,
    OPERATOR,
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

SAVES = Reaction("batch shell", Fate.HANDLES, "trap in line 3", 3)
TARGETS = [Recipient.STEPS, Recipient.BATCH, Recipient.EVERYTHING]


@pytest.mark.parametrize(
    ("recipient", "flags"),
    [
        (Recipient.STEPS, ()),
        (Recipient.BATCH, ("--batch",)),
        (Recipient.EVERYTHING, ("--full",)),
    ],
)
def test_whom_the_command_reaches(recipient: Recipient, flags: tuple[str, ...]) -> None:
    made = action(
        plan_signal([job("4711")], asker(), signal="USR2", recipient=recipient, reactions=[SAVES])
    )
    assert made.argvs == (("scancel", "--ctld", "--signal=USR2", *flags, "4711"),)
    assert (made.confirm, made.reactions) == (ConfirmLevel.YES, (SAVES,))
    assert made.details.recipient is recipient


@pytest.mark.parametrize(
    ("one", "step", "argument"),
    [
        (job("4711"), a_step("4711.0"), "4711.0"),
        (job("4711_3", raw_id="4720"), a_step("4711_3.2"), "4711_3.2"),
        (job("9300+1", raw_id="9301"), a_step("9300+1.0"), "9301.0"),
    ],
)
def test_one_step(one: Job, step: Step, argument: str) -> None:
    made = action(
        plan_signal(
            [one], asker(), signal="usr2", recipient=Recipient.STEP, step=step, reactions=[SAVES]
        )
    )
    assert made.argvs == (("scancel", "--ctld", "--signal=USR2", argument),)
    assert made.targets[0].step == step.id


def test_a_step_that_no_srun_started_or_that_is_not_said() -> None:
    batch = a_step("4711.batch")
    assert "was not started by srun" in sentence(
        plan_signal([job("4711")], asker(), signal="HUP", recipient=Recipient.STEP, step=batch)
    )
    assert "choose the one step" in sentence(
        plan_signal([job("4711")], asker(), signal="HUP", recipient=Recipient.STEP)
    )


@pytest.mark.parametrize("recipient", TARGETS)
@pytest.mark.parametrize("signal", ["USR1", "KILL"])
def test_a_job_that_has_not_started_gets_none(recipient: Recipient, signal: str) -> None:
    for one in (job("4711", "PENDING"), job("4711_[1-5]", "PENDING")):
        says = sentence(plan_signal([one], asker(), signal=signal, recipient=recipient))
        assert "cannot signal a job that has not started" in says


def test_of_an_array_only_what_runs_is_named() -> None:
    rows = [job("4711_1"), job("4711_2", "FAILED"), job("4711_3"), job("4711_[4-9]", "PENDING")]
    made = action(plan_signal(rows, asker(), signal="USR2", recipient=Recipient.STEPS))
    assert made.argvs == (("scancel", "--ctld", "--signal=USR2", "4711_[1,3]"),)
    assert "left out, cannot signal a job that has not started: 4711_[*]" in made.warnings


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (job("4711", "COMPLETED"), "already over"),
        (job("4711", "COMPLETING"), "already ending"),
        (job("4711", "CONFIGURING"), "nothing of it runs yet"),
        (job("4711", "SUSPENDED"), "until it is resumed"),
        (job("4711", batch=False), "no batch script in an interactive job"),
        (job("4711", user="bob"), "not yours"),
    ],
)
def test_who_gets_no_signal(one: Job, says: str) -> None:
    who = asker(rights=NOBODY)
    assert says in sentence(plan_signal([one], who, signal="USR1", recipient=Recipient.BATCH))


def test_steps_of_an_interactive_job_get_one() -> None:
    one = job("4711", batch=False)
    assert action(plan_signal([one], asker(), signal="USR1", recipient=Recipient.STEPS)).argvs


def test_a_stopped_job_goes_on_and_is_told_to_wait_for_that() -> None:
    one = job("4711", "STOPPED")
    go_on = action(plan_signal([one], asker(), signal="CONT", recipient=Recipient.EVERYTHING))
    assert (go_on.confirm, go_on.warnings) == (ConfirmLevel.YES, ())
    made = plan_signal([one], asker(), signal="USR2", recipient=Recipient.BATCH)
    assert "only after CONT: 4711" in told(made)


def test_without_a_step_nobody_gets_it() -> None:
    steps = [a_step("4711.batch"), a_step("4711.extern"), a_step("4712.0")]
    made = action(
        plan_signal([job("4711")], asker(), signal="USR2", recipient=Recipient.STEPS, steps=steps)
    )
    assert "no srun step runs, so nobody gets it" in told(made)
    assert "choose everything to reach it: 4711" in told(made)
    assert made.confirm is ConfirmLevel.YES
    both = plan_signal(
        [job("4711"), job("4712")],
        asker(),
        signal="USR2",
        recipient=Recipient.STEPS,
        steps=steps,
        reactions=[SAVES],
    )
    assert "to reach it: 4711" in told(both)
    assert "to reach it: 4711, 4712" not in told(both)
    unknown = plan_signal([job("4711")], asker(), signal="USR2", recipient=Recipient.STEPS)
    assert "not known whether an srun step runs" in told(unknown)


@pytest.mark.parametrize("fate", [Fate.DIES, Fate.STOPS, Fate.UNKNOWN])
def test_whoever_suffers_is_named_and_the_id_is_typed(fate: Fate) -> None:
    worse = Reaction("srun step: torchrun agent", fate, "has no handler", 7)
    made = action(
        plan_signal(
            [job("4711")],
            asker(),
            signal="USR2",
            recipient=Recipient.EVERYTHING,
            reactions=[SAVES, worse],
        )
    )
    assert (made.confirm, made.expected_text) == (ConfirmLevel.TYPE_ID, "4711")
    said = {
        Fate.DIES: "dies of USR2: srun step: torchrun agent",
        Fate.STOPS: "stopped by USR2 until CONT: srun step: torchrun agent",
        Fate.UNKNOWN: "not known what USR2 does to: srun step: torchrun agent",
    }
    assert made.warnings[0] == said[fate]
    assert worse in made.reactions, "which says why"


@pytest.mark.parametrize("fate", [Fate.HANDLES, Fate.IGNORES, Fate.CONTINUES])
def test_where_nobody_suffers_one_key_is_enough(fate: Fate) -> None:
    fine = Reaction("rank", fate, "says so")
    made = action(
        plan_signal(
            [job("4711"), job("4712")],
            asker(),
            signal="USR2",
            recipient=Recipient.BATCH,
            reactions=[SAVES, fine],
        )
    )
    assert (made.confirm, made.warnings) == (ConfirmLevel.YES, ())


def test_where_nothing_is_known_of_the_job_it_may_die() -> None:
    made = action(plan_signal([job("4711")], asker(), signal="USR2", recipient=Recipient.BATCH))
    assert "not known what the job does with USR2" in told(made)
    assert made.confirm is ConfirmLevel.TYPE_ID


def test_what_handles_a_signal_and_then_ends_the_job_is_confirmed_by_typing() -> None:
    saves = Reaction("batch shell", Fate.HANDLES, "its trap ends the script", 5, ends_job=True)
    made = action(
        plan_signal(
            [job("4711")], asker(), signal="HUP", recipient=Recipient.BATCH, reactions=[saves]
        )
    )
    assert made.confirm is ConfirmLevel.TYPE_ID
    assert "once HUP is handled the batch script ends, and the job with it" in made.warnings


def test_many_reasons_are_not_all_told() -> None:
    many = [Reaction(f"rank {n}", Fate.DIES, "no handler") for n in range(40)]
    made = action(
        plan_signal([job("1")], asker(), signal="HUP", recipient=Recipient.BATCH, reactions=many)
    )
    assert len(made.warnings) == 1
    assert made.warnings[0].startswith("dies of HUP: rank 0, ")
    assert made.warnings[0].endswith("rank 5 and 34 more")


@pytest.mark.parametrize("recipient", [*TARGETS, Recipient.STEP])
def test_a_kill_is_confirmed_like_a_cancel(recipient: Recipient) -> None:
    step = a_step("4711.0") if recipient is Recipient.STEP else None
    big = job("4711", node_count=4, nodes="gpu[01-04]")
    made = action(plan_signal([big], asker(), signal="9", recipient=recipient, step=step))
    assert made.confirm is ConfirmLevel.TYPE_ID
    assert "KILL" in told(made)
    if step is None:
        assert any(text.startswith("24.0 GPU-hours") for text in made.warnings)
    small = action(
        plan_signal([job("4711")], asker(), signal="KILL", recipient=recipient, step=step)
    )
    assert small.confirm is ConfirmLevel.YES


def test_words_about_single_signals() -> None:
    stop = plan_signal([job("1")], asker(), signal="STOP", recipient=Recipient.EVERYTHING)
    assert "may time out and end the job" in told(stop)
    assert action(stop).confirm is ConfirmLevel.TYPE_ID
    usr1 = plan_signal([job("1")], asker(), signal="USR1", recipient=Recipient.STEPS)
    assert "NCCL catches USR1 in places: USR2 or HUP are safer" in told(usr1)


def test_all_parts_of_a_het_job_get_it() -> None:
    parts = [job("9300+0"), job("9300+1", raw_id="9301")]
    made = action(
        plan_signal([parts[1]], asker(), signal="HUP", recipient=Recipient.STEPS, known=parts)
    )
    assert made.argvs == (("scancel", "--ctld", "--signal=HUP", "9300"),)
    assert "all of its parts get it" in told(made)


@pytest.mark.parametrize("step", ["9300.0", "9301.0"])
def test_the_step_of_one_part_is_enough_for_a_het_job(step: str) -> None:
    one = job("9300+1", raw_id="9301")
    steps = [a_step(step)]
    made = plan_signal([one], asker(), signal="HUP", recipient=Recipient.STEPS, steps=steps)
    assert "nobody gets it" not in told(made)


def test_an_operator_may_signal_others_with_the_id_typed() -> None:
    made = action(
        plan_signal(
            [job("4711", user="bob")],
            asker(rights=OPERATOR),
            signal="USR2",
            recipient=Recipient.BATCH,
            reactions=[SAVES],
        )
    )
    assert (made.confirm, made.expected_text) == (ConfirmLevel.TYPE_ID, "4711")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("usr1", "USR1"), ("SIGUSR1", "USR1"), ("10", "USR1"), (" term ", "TERM"),
        ("sigkill", "KILL"), ("9", "KILL"), ("11", "SEGV"), ("IOT", "ABRT"),
        ("0", None), ("64", None), ("999999", None), ("", None), ("SIG", None),
        ("SIGSIGUSR1", None), ("USR1;rm", None), ("１０", None),
    ],
)  # fmt: skip
def test_names_and_numbers_of_signals(text: str, name: str | None) -> None:
    assert parse_signal(text) == name


@given(st.text(max_size=12))
def test_parse_signal_is_total(text: str) -> None:
    assert parse_signal(text) in (None, *SIGNALS)


@pytest.mark.parametrize("name", SIGNALS)
def test_every_signal_fits_a_command(name: str) -> None:
    made = action(plan_signal([job("1")], asker(), signal=name, recipient=Recipient.EVERYTHING))
    word = made.argvs[0][2].removeprefix("--signal=")
    assert parse_signal(word) == name


@pytest.mark.parametrize("signal", ["SEGV", "PIPE", "CHLD"])
def test_what_scancel_does_not_know_by_name_goes_by_number(signal: str) -> None:
    made = action(plan_signal([job("1")], asker(), signal=signal, recipient=Recipient.BATCH))
    assert made.argvs[0][2].removeprefix("--signal=").isdigit()


def test_a_word_that_is_no_signal() -> None:
    says = sentence(plan_signal([job("1")], asker(), signal="\x1b[2J", recipient=Recipient.STEPS))
    assert says.startswith("not a signal")
    assert "\x1b" not in says


@pytest.mark.parametrize(
    ("step", "one", "same"),
    [
        ("4711.0", job("4711"), True),
        ("4712.0", job("4711"), False),
        ("4711_3.0", job("4711_3", raw_id="4720"), True),
        ("4720.0", job("4711_3", raw_id="4720"), True),
        ("4711_4.0", job("4711_3", raw_id="4720"), False),
        ("9300+1.0", job("9300+1", raw_id="9301"), True),
        ("9300+0.0", job("9300+1", raw_id="9301"), False),
        ("9301.0", job("9300+1", raw_id="9301"), True),
        # What squeue of 22.05 prints for the steps of both parts.
        ("9300.0", job("9300+0", raw_id="9300"), True),
        ("9300.0", job("9300+1", raw_id="9301"), False),
    ],
)
def test_whose_step_it_is(step: str, one: Job, same: bool) -> None:
    assert runs_in(a_step(step), one) is same


@given(
    jobs=st.lists(any_job(), max_size=6),
    known=st.lists(any_job(), max_size=4),
    who=any_asker(),
    signal=st.sampled_from([*SIGNALS, "nonsense"]),
    recipient=st.sampled_from(Recipient),
    step=st.sampled_from([None, a_step("4711.0"), a_step("9300+1.batch"), a_step("4711.٣")]),
    steps=st.sampled_from([None, (), (a_step("4711.0"), a_step("4713_1.0"))]),
    fates=st.lists(st.sampled_from(Fate), max_size=3),
)
def test_nothing_that_waits_and_nothing_else_than_given(
    jobs: list[Job],
    known: list[Job],
    who: Asker,
    signal: str,
    recipient: Recipient,
    step: Step | None,
    steps: tuple[Step, ...] | None,
    fates: list[Fate],
) -> None:
    made = plan_signal(
        jobs,
        who,
        signal=signal,
        recipient=recipient,
        step=step,
        steps=steps,
        reactions=[Reaction("somebody", fate, "why") for fate in fates],
        known=known,
    )
    if not isinstance(made, Action):
        assert made.sentence
        return
    for argv in made.argvs:
        check_argv(argv)
    if made.details.recipient is Recipient.RANKS:
        # Nobody looked at the nodes: it says whom it means, and there is nothing to run.
        assert made.argvs == ()
        return
    assert sorted(named(made)) == sorted(set(meant(made)))
    if step is not None:
        assert len(made.targets) == 1
        assert made.targets[0].key in {one.key for one in jobs}
        return
    can = [one for one in jobs if one.state.phase in (Phase.RUNNING, Phase.SUSPENDED)]
    assert set(named(made)) <= {id for one in can for id in stands_for(one)}
