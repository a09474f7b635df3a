"""What the choosers say and hand on: options, typed values, what ran. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect.metered import Ran
from slurmtop.control.actions import Action, Asker, Kind, Refusal
from slurmtop.control.commands import MAX_LIMIT_MINUTES, host_allowed
from slurmtop.control.prepare import ScriptSeen, StepsSeen
from slurmtop.model.job import Job, LimitKind, Step, TimeLimit
from slurmtop.model.script import Fate, Reaction, Recipient, ScriptReading
from slurmtop.ui.keys import KEYS
from slurmtop.ui.present import selection, typed
from slurmtop.ui.present.choose import Option, choice_lines, first_open, moved
from slurmtop.ui.present.command_log import acts, command_log_lines
from slurmtop.ui.present.reach import reach
from slurmtop.ui.present.reactions import reaction_lines, sum_text
from slurmtop.ui.present.signal import (
    SignalFacts,
    effect_lines,
    first_choice,
    list_lines,
    moved_choice,
    other_side,
    plan_of,
    receivers_of,
    with_signal,
)
from slurmtop.ui.present.spans import line_width, plain
from tests.build import make_id, make_job
from tests.fakes import START
from tests.ui.test_present_hostile import HOSTILE, WIDTH, harmless

RUNS = make_job("4711", gpus=8)


def test_footers_hold_at_most_eight_keys() -> None:
    for scopes in ({"app", "jobs"}, {"app", "job"}, {"app", "job", "logs"}):
        shown = [key.id for key in KEYS if key.footer and not scopes.isdisjoint(key.scopes)]
        assert len(shown) <= 8, shown


# Options


def test_the_cursor_passes_over_what_cannot_be_chosen() -> None:
    options = [Option("a", "a", why_not="no"), Option("b", "b"), Option("c", "c", why_not="no")]
    assert first_open(options) == 1
    assert moved(options, 1, 1) == 1
    assert moved(options, 1, -1) == 1
    assert moved([*options, Option("d", "d")], 1, 1) == 3


@given(st.integers(1, 40), st.integers(0, 39), st.integers(1, 12), st.integers(20, 100))
def test_the_chosen_option_is_always_in_sight(count: int, at: int, rows: int, width: int) -> None:
    at = min(at, count - 1)
    options = [Option(str(n), f"option {n}") for n in range(count)]
    lines = choice_lines("", options, at, rows, width)
    assert all(line_width(line) <= width for line in lines)
    (chosen,) = [plain(line) for line in lines if plain(line).startswith(">")]
    assert f"option {at}" in chosen
    assert len(lines) <= rows + 1


def array(*states: str) -> tuple[Job, ...]:
    return tuple(make_job(f"70_{n}", state) for n, state in enumerate(states))


def _reach(kind: Kind, jobs: Sequence[Job]) -> Action | Refusal:
    return reach(kind, jobs, Asker(me="anna", now=START))


def test_completed_tasks_are_in_no_part_of_a_requeue() -> None:
    jobs = (*array("COMPLETED", "FAILED", "TIMEOUT", "RUNNING"), make_job("70_[4-9]", "PENDING"))
    seen: set[str] = set()
    for option in selection.requeue_options(jobs, _reach, grouped=True):
        kind, which = selection.requeue_choice(option.value)
        assert kind in (Kind.REQUEUE, Kind.REQUEUE_HOLD)
        seen |= {job.key.id for job in selection.part_of(jobs, which)}
    assert seen == {"70_1", "70_2", "70_3"}


def test_a_part_without_jobs_cannot_be_chosen() -> None:
    options = selection.requeue_options(array("COMPLETED", "RUNNING"), _reach, grouped=True)
    assert [bool(option.why_not) for option in options] == [True, True, False, False]
    waiting, running, by_number = selection.array_options(array("RUNNING"))
    assert waiting.why_not
    assert not running.why_not
    assert not by_number.why_not


def test_waiting_tasks_are_counted_one_by_one() -> None:
    (waiting, *_) = selection.array_options((make_job("70_[0-499%4]", "PENDING"),))
    assert waiting.label == "the 500 waiting tasks"
    assert selection.jobs_text((make_job("70_[0-499]", "PENDING"),)) == "500 jobs"


def test_only_what_srun_started_is_cancelled_alone() -> None:
    steps = [Step(job=make_id("4711"), id=id) for id in ("batch", "10", "2", "extern", "odd")]
    options = selection.step_options(steps)
    assert [option.value for option in options][:2] == ["2", "10"]
    assert {option.value for option in options if not option.why_not} == {"2", "10"}


# Typed values


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("90", 90),
        (" 90 ", 90),
        ("1:30:00", 90),
        ("1-12:00:00", 2_160),
        ("0:30", 1),
        ("1:01", 2),
        ("1-0", 1_440),
        (str(MAX_LIMIT_MINUTES), MAX_LIMIT_MINUTES),
        (str(MAX_LIMIT_MINUTES + 1), None),
        ("0", None),
        ("-1", None),
        ("UNLIMITED", None),
        ("1h", None),
        ("", None),
    ],
)
def test_minutes_of_a_limit(text: str, minutes: int | None) -> None:
    assert typed.minutes_of(text) == minutes
    assert typed.judge_limit(text, [RUNS])[1] is (minutes is None)


def test_a_raised_limit_is_told_as_such() -> None:
    assert "may refuse" in typed.judge_limit("2-00:00:00", [RUNS])[0]
    assert "may refuse" not in typed.judge_limit("1-00:00:00", [RUNS])[0]
    waits = make_job("4711", "PENDING")
    assert "may refuse" not in typed.judge_limit("2-00:00:00", [waits])[0]
    unknown = replace(RUNS, limit=TimeLimit(LimitKind.UNKNOWN))
    assert "not known" in typed.judge_limit("5", [unknown])[0]
    other = replace(RUNS, limit=TimeLimit(LimitKind.SECONDS, 3_600))
    assert "Limits now are 1:00:00 to 1-00:00:00" in typed.judge_limit("5", [RUNS, other])[0]


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("gpu03", ("gpu03",)),
        ("gpu[03-04],gpu03", ("gpu03", "gpu04")),
        ("gpu[03", None),
        ("(null)", None),
        ("", None),
        ("gpu03 gpu04", ("gpu03", "gpu04")),
        ("gpu03;reboot", None),
        ("-gpu03", None),
        ("gpu[1-9999]", None),
    ],
)
def test_hosts_of_a_list(text: str, hosts: tuple[str, ...] | None) -> None:
    assert typed.hosts_of(text) == hosts
    assert typed.judge_hosts(text)[1] is (hosts is None)


REST = (make_job("70_3", "RUNNING"), make_job("70_[4-9,20]", "PENDING"))


@pytest.mark.parametrize(
    ("text", "says", "wrong"),
    [
        ("3,7-8", "3 tasks: 2 waiting, 1 running", False),
        ("3", "1 task: 1 running", False),
        ("8-20", "3 tasks: 3 waiting; not in the queue: 10-19", False),
        ("30", "None of them is in the queue: 30", True),
        ("", "Type at least one task.", True),
        ("9-3", "That is no list of tasks: write it like 3,7-9.", True),
        ("3,", "That is no list of tasks: write it like 3,7-9.", True),
        ("0-9999999999", "That is no list of tasks: write it like 3,7-9.", True),
    ],
)
def test_tasks_of_a_list(text: str, says: str, wrong: bool) -> None:
    assert typed.judge_tasks(text, REST) == (says, wrong)


@given(HOSTILE)
def test_any_typed_text_is_judged(text: str) -> None:
    for judged in (
        typed.judge_limit(text, [RUNS]),
        typed.judge_hosts(text),
        typed.judge_tasks(text, REST),
    ):
        harmless([((judged[0], ""),)])
    hosts = typed.hosts_of(text)
    assert hosts is None or all(map(host_allowed, hosts))


# Signals


def facts(**given: object) -> SignalFacts:
    base = SignalFacts(
        jobs=(RUNS,),
        asker=Asker(me="anna", now=START),
        known=(RUNS,),
        steps=StepsSeen((Step(job=make_id("4711"), id="0"),)),
        script=ScriptSeen(ScriptReading()),
        react=lambda reading, signal, recipient, step: (),
    )
    return replace(base, **given)  # type: ignore[arg-type]


def test_every_choice_has_a_command_that_fits_or_a_sentence() -> None:
    known = facts()
    choice = first_choice(known)
    for side in range(2):
        for _ in range(12):
            plan = plan_of(known, choice)
            assert choice.signal is None or not isinstance(plan, Refusal)
            choice = moved_choice(choice, 1)
        if not side:
            choice = other_side(with_signal(choice, "QUIT"))
    assert choice.receiver.recipient is Recipient.RANKS


def test_ranks_are_offered_to_their_owner_alone() -> None:
    theirs = facts(jobs=(replace(RUNS, user="bob"),))
    options = {one.recipient: one.option for one in receivers_of(theirs)}
    assert "only their owner" in options[Recipient.RANKS].why_not
    own = facts()
    choice = first_choice(own)
    choice = replace(choice, to=len(choice.receivers) - 1)
    assert choice.receiver.recipient is Recipient.RANKS
    text = " ".join(plain(line) for line in effect_lines(own, choice, 76))
    assert "The nodes are looked at first" in text
    assert "$" not in text, "no command before the look"


def test_a_signal_that_was_typed_joins_the_list_once() -> None:
    choice = with_signal(with_signal(first_choice(facts()), "QUIT"), "QUIT")
    assert choice.signal == "QUIT"
    assert choice.signals.count("QUIT") == 1
    assert with_signal(choice, "USR1").signal == "USR1"


def test_several_jobs_have_neither_steps_nor_script() -> None:
    two = facts(jobs=(RUNS, make_job("4712")), steps=None, script=None)
    text = "\n".join(plain(line) for line in effect_lines(two, first_choice(two), 76))
    assert "What the scripts of these jobs say is told in the dialog" in text
    assert "not known what" not in text


def test_the_worst_stands_first() -> None:
    given = [Reaction("a", Fate.HANDLES, ""), Reaction("b", Fate.DIES, "no handler", 3)]
    assert [plain(line) for line in reaction_lines(given, 60)] == [
        "  b: dies of it: no handler (line 3)",
        "  a: handles it",
    ]
    assert sum_text(given) == "Who gets it (2): 1 dies of it, 1 handles it"


@given(HOSTILE, HOSTILE, st.integers(24, 140))
def test_nothing_hostile_reaches_a_chooser(name: str, why: str, width: int) -> None:
    step = Step(job=make_id("4711"), id="0", name=name, nodes=why)
    known = facts(
        steps=StepsSeen((step,)),
        script=ScriptSeen(None, why),
        react=lambda *_: (Reaction(name, Fate.DIES, why),),
    )
    choice = first_choice(known)
    for lines in (
        list_lines(choice, 8, width),
        effect_lines(known, choice, width),
        effect_lines(replace(known, script=ScriptSeen(ScriptReading(), why)), choice, width),
        reaction_lines([Reaction(name, Fate.UNKNOWN, why)], width),
        choice_lines(name, selection.step_options([step]), 0, 5, width),
    ):
        harmless(lines)
        assert all(line_width(line) <= width for line in lines)


# What ran


@pytest.mark.parametrize(
    ("argv", "changes"),
    [
        (("scancel", "1"), True),
        (("/usr/bin/scancel", "--ctld", "1"), True),
        (("scontrol", "hold", "1"), True),
        (("scontrol", "-M", "a", "update", "JobId=1", "TimeLimit=5"), True),
        (("scontrol", "show", "job", "1"), False),
        (("scontrol", "-M", "a", "show", "config"), False),
        (("squeue", "--me"), False),
        ((), False),
    ],
)
def test_what_changes_something_is_told_from_questions(
    argv: tuple[str, ...], changes: bool
) -> None:
    assert acts(argv) is changes
    (line,) = command_log_lines([Ran(argv=argv, at=START)], UTC)
    assert ("ACT" in plain(line)) is changes


@given(st.lists(HOSTILE, max_size=3), HOSTILE, WIDTH)
def test_what_ran_is_shown_harmless(argv: list[str], trouble: str, width: int) -> None:
    ran = Ran(argv=tuple(argv), at=START, host=trouble, took_s=1.0, trouble=trouble)
    harmless(command_log_lines([ran], UTC))
