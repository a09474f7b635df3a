"""From a key to what became of it: every action, from both screens, over a fake world."""

from dataclasses import replace

import pytest
from textual.screen import ModalScreen

from slurmtop.collect.metered import Ran
from slurmtop.control.actions import Action, Kind
from slurmtop.control.outcome import Outcome, Result, StepsSeen
from slurmtop.control.prepare import ScriptSeen
from slurmtop.model.job import AccountingRecord, Job, Step
from slurmtop.model.rights import Rights
from slurmtop.model.script import (
    Fate,
    Reaction,
    Recipient,
    ScriptReading,
    SignalRequest,
    Trap,
)
from slurmtop.model.snapshot import Failure, Trouble
from slurmtop.ui.keys import KEYS, Level
from slurmtop.ui.screens.asking import AskingScreen
from slurmtop.ui.screens.confirm import ConfirmScreen
from slurmtop.ui.screens.job import JobScreen
from slurmtop.ui.screens.jobs import JobsScreen
from slurmtop.ui.screens.outcome import OutcomeScreen
from slurmtop.ui.screens.signal import SignalScreen
from slurmtop.ui.screens.unlogged import UnloggedScreen
from tests.build import make_id, make_job, make_state
from tests.fakes import START
from tests.ui.acting_bench import ActingBench
from tests.ui.golden import Golden, screen_text
from tests.ui.job_bench import judge_as, part_text
from tests.ui.test_job_screen import RUNNING as RUNNING_VERDICT

SIZE = (80, 24)
HOSTILE = "[/red]\x1b[2J\u202eevil"
WAITS = make_job("4711", "PENDING", gpus=8, name="later", excluded_nodes="")
HELD = replace(WAITS, reason="JobHeldUser", priority=0)
RUNS = make_job("4711", gpus=8, ran_s=10_927, name="llm-pretrain", requeueable=True, batch=True)
STEPS = (
    Step(job=make_id("4711"), id="0", name="train.py", tasks=8, nodes="gpu01"),
    Step(job=make_id("4711"), id="1", name="eval.py", tasks=1, nodes="gpu01"),
    Step(job=make_id("4711"), id="batch", name="batch", nodes="gpu01"),
    Step(job=make_id("4711"), id="extern", name="extern", nodes="gpu01"),
)
READING = ScriptReading(
    signal=SignalRequest("USR1", 120, False, 3),
    traps=(Trap(("USR1",), "save", 7),),
)
GIVEN = (
    Reaction("srun step 0: torchrun agent", Fate.DIES, "it has no handler", 12),
    Reaction("srun step 0: ranks", Fate.UNKNOWN, "Python decides that"),
)


@pytest.mark.parametrize(
    ("job", "keys", "kind", "argv"),
    [
        (WAITS, "H", Kind.HOLD, ("scontrol", "hold", "4711")),
        (HELD, "U", Kind.RELEASE, ("scontrol", "release", "4711")),
        (RUNS, "R1", Kind.REQUEUE, ("scontrol", "requeue", "4711")),
        (RUNS, "R2", Kind.REQUEUE_HOLD, ("scontrol", "requeuehold", "4711")),
        (RUNS, "T90\r", Kind.LIMIT, ("scontrol", "update", "JobId=4711", "TimeLimit=90")),
        (
            WAITS,
            "Dgpu[03-04]\r",
            Kind.EXCLUDE,
            ("scontrol", "update", "JobId=4711", "ExcNodeList=gpu[03-04]"),
        ),
        (RUNS, "S\r", Kind.SIGNAL, ("scancel", "--ctld", "--signal=USR1", "4711")),
        (RUNS, "C1", Kind.CANCEL, ("scancel", "--ctld", "4711.0")),
        (RUNS, "K", Kind.CANCEL, ("scancel", "4711")),
    ],
)
@pytest.mark.parametrize("on_job_page", [False, True])
async def test_a_key_asks_says_what_it_runs_and_does_it_after_a_yes(
    job: Job, keys: str, kind: Kind, argv: tuple[str, ...], on_job_page: bool
) -> None:
    bench = ActingBench()
    bench.world.seen_steps = StepsSeen(STEPS)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        if on_job_page:
            await bench.open(pilot, job)
        else:
            await bench.answer(pilot, [job])
        for key in keys:
            await bench.press(pilot, {"\r": "enter"}.get(key, key))
        action = bench.dialog(pilot).action
        assert (action.kind, action.argvs) == (kind, (argv,))
        assert " ".join(argv) in bench.words(pilot).replace("'", "")
        assert bench.does.actions == [], "nothing before a yes"
        await bench.confirm(pilot)
        assert bench.does.actions == [action]
        assert bench.does.same == [True]
        assert isinstance(app.screen, OutcomeScreen)
        await bench.press(pilot, "escape")
        assert isinstance(app.screen, JobScreen if on_job_page else JobsScreen)


@pytest.mark.parametrize("keys", ["H", "R1", "T90\r", "S\r", "K", "C1"])
async def test_no_is_what_enter_says(keys: str) -> None:
    bench = ActingBench()
    bench.world.seen_steps = StepsSeen(STEPS)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [RUNS])
        for key in keys:
            await bench.press(pilot, {"\r": "enter"}.get(key, key))
        bench.dialog(pilot)
        await bench.press(pilot, "enter", "escape")
        assert bench.does.actions == []
        assert not isinstance(app.screen, ConfirmScreen)


async def test_while_slurm_is_asked_it_can_be_left_and_what_comes_later_is_dropped() -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [WAITS])
        bench.world.gate.clear()
        await bench.press(pilot, "H")
        bench.asking(pilot)
        await bench.advance(pilot, 3)
        assert "asking Slurm … for 3 s" in screen_text(app)
        await bench.press(pilot, "y")
        bench.asking(pilot)
        await bench.press(pilot, "escape")
        assert isinstance(app.screen, JobsScreen)
        bench.world.gate.set()
        await bench.settled(pilot)
        assert isinstance(app.screen, JobsScreen)
        assert bench.does.actions == []


async def test_a_cancel_of_ones_own_job_asks_slurm_nothing_first() -> None:
    bench = ActingBench()
    bench.world.gate.clear()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [RUNS])
        await bench.press(pilot, "K")
        bench.dialog(pilot)
        assert bench.world.asked == []


async def test_somebody_elses_job_is_refused_in_words_where_it_is_known_to_be() -> None:
    bench = ActingBench()
    bench.world.known_rights = Rights(operator=False, coordinates=frozenset())
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [replace(RUNS, user="bob")])
        await bench.press(pilot, "K")
        assert bench.world.asked == ["rights"]
        assert "not yours; bob, an operator or a coordinator" in bench.words(pilot)
        assert bench.does.actions == []


async def test_a_job_that_became_another_meanwhile_is_refused_before_the_dialog() -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [RUNS])
        bench.world.queue = (replace(RUNS, submit=START, restarts=1),)
        await bench.press(pilot, "R", "1")
        assert isinstance(app.screen, OutcomeScreen)
        assert "not the run you saw" in bench.words(pilot)
        assert bench.does.actions == []


async def test_an_outage_is_said_in_the_dialog() -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [WAITS])
        bench.world.queue = ()
        bench.world.failure = Failure(Trouble.DOWN, "The controller does not answer")
        await bench.press(pilot, "H")
        bench.dialog(pilot)
        assert "this is what was known at 12:00:00 UTC" in bench.words(pilot)


async def test_a_world_that_breaks_leaves_a_sentence() -> None:
    bench = ActingBench()

    async def broken(*_asked: object, **_how: object) -> None:
        raise RuntimeError("[/bold]")

    bench.world.jobs = broken  # type: ignore[assignment, method-assign]
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [WAITS])
        await bench.press(pilot, "H")
        assert "nothing was done: RuntimeError('[/bold]')" in bench.words(pilot)


async def test_the_verdict_that_was_on_the_screen_goes_with_the_action(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge_as(monkeypatch, RUNNING_VERDICT)
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, RUNS)
        await bench.press(pilot, "R", "1")
        assert bench.dialog(pilot).action.verdict == RUNNING_VERDICT.summary
        await bench.press(pilot, "escape", "K")
        assert bench.dialog(pilot).action.verdict == RUNNING_VERDICT.summary


# The log


@pytest.mark.parametrize(("keys", "done"), [("y", True), ("n", False), ("enter", False)])
async def test_what_cannot_be_logged_is_asked_once_more(
    golden: Golden, keys: str, done: bool
) -> None:
    bench = ActingBench()
    bench.does.unlogged = "/home/anna/.local/state/slurmtop is on a full disk"
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [RUNS])
        await bench.press(pilot, "K", "y")
        assert isinstance(app.screen, UnloggedScreen)
        golden("unlogged", part_text(app, "#question"))
        await bench.press(pilot, keys)
        assert bench.does.without_log == ([False, True] if done else [False])
        after: object = app.screen
        assert isinstance(after, OutcomeScreen if done else JobsScreen)
        if done:
            assert "job 4711: cancelled" in bench.words(pilot)


# Read-only


@pytest.mark.parametrize(
    ("entry", "on_job_page"),
    [
        pytest.param(key, scope == "job", id=f"{key.id} on {scope}")
        for key in KEYS
        if key.level is not Level.SAFE
        for scope in key.scopes
    ],
)
async def test_read_only_refuses_every_key_twice(entry: object, on_job_page: bool) -> None:
    bench = ActingBench(read_only=True)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        if on_job_page:
            await bench.open(pilot, RUNS)
        else:
            await bench.answer(pilot, [RUNS])
        screen = app.screen
        await bench.press(pilot, entry.keys[0])  # type: ignore[attr-defined]
        assert app.screen is screen
        (note,) = [note.message for note in app._notifications]
        assert note.startswith(f"{entry.label} does nothing here: ")  # type: ignore[attr-defined]
        assert "start it without --read-only" in note
        getattr(screen, f"action_{entry.action}")()  # type: ignore[attr-defined]
        await bench.settled(pilot)
        assert isinstance(app.screen, OutcomeScreen)
        assert "read-only" in screen_text(app)
        assert bench.world.asked == []
        assert bench.does.actions == []


@pytest.mark.parametrize(
    "action",
    ["cancel", "cancel_part", "signal", "requeue", "hold", "release", "limit", "exclude"],
)
async def test_without_a_job_there_is_a_sentence(action: str) -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [])
        getattr(app.screen, f"action_{action}")()
        await bench.settled(pilot)
        assert "there is no job under the cursor" in bench.words(pilot)


# Signals


async def signal_screen(bench: ActingBench, pilot: object, job: Job = RUNS) -> SignalScreen:
    await bench.answer(pilot, [job])  # type: ignore[arg-type]
    await bench.press(pilot, "S")  # type: ignore[arg-type]
    screen = pilot.app.screen  # type: ignore[attr-defined]
    assert isinstance(screen, SignalScreen), bench.words(pilot)  # type: ignore[arg-type]
    return screen


@pytest.mark.parametrize("size", [(80, 24), (140, 40), (60, 24)])
async def test_the_chooser_says_who_gets_it_and_what_it_does(
    golden: Golden, size: tuple[int, int]
) -> None:
    bench = ActingBench()
    bench.world.seen_steps = StepsSeen(STEPS)
    bench.world.seen_script = ScriptSeen(READING)
    bench.world.given = GIVEN
    app = bench.app()
    async with app.run_test(size=size) as pilot:
        await signal_screen(bench, pilot)
        text = part_text(app, "#signal")
        golden(f"signal_{size[0]}", text)
        assert "scancel --ctld --signal=USR1 4711" in text
        assert "1 dies of it" in text
        assert "torchrun agent: dies of it" in text
        assert "rank processes" in text
        assert "not available" not in text


async def test_the_chooser_shows_who_can_get_it_on_a_small_screen() -> None:
    bench = ActingBench()
    bench.world.seen_script = ScriptSeen(READING)
    app = bench.app()
    async with app.run_test(size=(50, 12)) as pilot:
        await signal_screen(bench, pilot)
        text = part_text(app, "#signal")
        assert "rank processes" in text
        assert "batch shell" in text
        assert "enter goes on" in text


async def test_the_command_and_the_effect_follow_the_cursors() -> None:
    bench = ActingBench()
    bench.world.seen_steps = StepsSeen(STEPS)
    bench.world.seen_script = ScriptSeen(READING)
    bench.world.given = GIVEN
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await signal_screen(bench, pilot)
        await bench.press(pilot, "down", "down")
        assert "--signal=TERM 4711" in bench.words(pilot)
        assert "(TERM to steps)" in bench.words(pilot)
        await bench.press(pilot, "tab", "down", "down")
        assert "--signal=TERM 4711.1" in bench.words(pilot)
        assert "(TERM to step)" in bench.words(pilot)
        await bench.press(pilot, "down", "down", "down", "down")
        aimed = [screen.choice.receiver.recipient]
        await bench.press(pilot, "up")
        aimed.append(screen.choice.receiver.recipient)
        assert aimed == [Recipient.RANKS, Recipient.EVERYTHING]
        await bench.press(pilot, "enter")
        action = bench.dialog(pilot).action
        assert action.argvs == (("scancel", "--ctld", "--signal=TERM", "--full", "4711"),)
        assert bench.does.actions == []


async def test_another_signal_is_typed_by_name_or_number() -> None:
    bench = ActingBench()
    bench.world.seen_steps = StepsSeen(STEPS)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await signal_screen(bench, pilot)
        await bench.press(pilot, *["down"] * 7, "enter", *"nosuch", "enter")
        assert "there is no such signal" in bench.words(pilot)
        await bench.press(pilot, *["backspace"] * 6, *"n3", "escape")
        assert app.screen is screen, "escape leaves the line, not the chooser"
        await bench.press(pilot, "enter", *"sigquit", "enter")
        assert "--signal=QUIT 4711" in bench.words(pilot)
        await bench.press(pilot, "enter")
        assert bench.dialog(pilot).action.details.signal == "QUIT"


@pytest.mark.parametrize(
    ("reading", "signal", "recipient"),
    [
        (READING, "USR1", Recipient.STEPS),
        (
            ScriptReading(signal=SignalRequest("USR2", 60, True, 3)),
            "USR2",
            Recipient.BATCH,
        ),
        (ScriptReading(signal=SignalRequest("34x", 60, True, 3)), "USR1", Recipient.STEPS),
        (ScriptReading(signal=SignalRequest("3", 60, False, 3)), "QUIT", Recipient.STEPS),
        (ScriptReading(traps=(Trap(("USR2",), "save", 3),)), "USR2", Recipient.BATCH),
        (ScriptReading(traps=(Trap(("USR2",), "", 3),)), "USR1", Recipient.STEPS),
        (ScriptReading(traps=(Trap(("TERM",), "rm x", 3),)), "USR1", Recipient.STEPS),
        (ScriptReading(), "USR1", Recipient.STEPS),
        (None, "USR1", Recipient.STEPS),
    ],
)
async def test_what_the_job_is_prepared_for_is_proposed(
    reading: ScriptReading | None, signal: str, recipient: Recipient
) -> None:
    bench = ActingBench()
    bench.world.seen_steps = StepsSeen(STEPS)
    bench.world.seen_script = ScriptSeen(reading, "" if reading else "denied")
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await signal_screen(bench, pilot)
        assert screen.choice.signal == signal
        assert screen.choice.receiver.recipient is recipient


async def test_a_script_that_cannot_be_read_is_said() -> None:
    bench = ActingBench()
    bench.world.seen_script = ScriptSeen(None, "only the owner of the job may read it")
    bench.world.seen_steps = StepsSeen((), Failure(Trouble.DOWN, "no answer"))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await signal_screen(bench, pilot)
        words = bench.words(pilot)
        assert "Script not read (only the owner of the job may read it)" in words
        assert "nothing is known about who would save" in words
        assert "all that srun started (not known which)" in words


async def test_a_signal_to_a_waiting_job_is_refused_before_anything_is_asked() -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [WAITS])
        await bench.press(pilot, "S")
        assert isinstance(app.screen, OutcomeScreen)
        assert "cannot signal a job that has not started" in bench.words(pilot)
        assert bench.world.asked == []


async def test_the_dialog_of_a_signal_lists_who_would_die(golden: Golden) -> None:
    bench = ActingBench()
    bench.world.seen_steps = StepsSeen(STEPS)
    bench.world.seen_script = ScriptSeen(READING)
    bench.world.given = GIVEN
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await signal_screen(bench, pilot, replace(RUNS, name=HOSTILE))
        await bench.press(pilot, "enter")
        text = part_text(app, "#dialog")
        golden("confirm_signal", text)
        assert "Send USR1 to the steps of job 4711" in text
        assert "1 dies of it" in text
        assert "Type the id" in text, "what may kill needs more than a key"
        assert "\x1b" not in text


async def test_a_signal_is_not_sent_to_a_job_that_waits_again() -> None:
    bench = ActingBench()
    bench.world.seen_steps = StepsSeen(STEPS)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await signal_screen(bench, pilot)
        await bench.press(pilot, "enter")
        bench.dialog(pilot)
        await bench.clock.advance(20)
        await bench.answer(pilot, [WAITS])
        assert "4711 waits in the queue again" in screen_text(app)
        assert "Nothing is left of what was shown" in screen_text(app)
        await bench.press(pilot, *"4711", "enter", "y")
        assert bench.does.actions == []


# Parts of a job


ARRAY = (
    make_job("70_0", "COMPLETED", end=START, batch=True, requeueable=True),
    make_job("70_1", "FAILED", end=START, batch=True, requeueable=True),
    make_job("70_2", "FAILED", end=START, batch=True, requeueable=True),
    make_job("70_3", "RUNNING", gpus=1, batch=True, requeueable=True),
    make_job("70_[4-19]", "PENDING", gpus=1),
)


async def test_of_an_array_the_failed_tasks_are_requeued_and_no_completed_one(
    golden: Golden,
) -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, ARRAY)
        await bench.press(pilot, "R")
        golden("requeue_array", part_text(app, "#choose"))
        await bench.press(pilot, "enter")
        action = bench.dialog(pilot).action
        assert action.kind is Kind.REQUEUE
        assert action.argvs == (("scontrol", "requeue", "70_[1-2]"),)


async def test_three_tasks_are_cancelled_by_their_numbers(golden: Golden) -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, ARRAY)
        await bench.press(pilot, "C", "3")
        await bench.press(pilot, *"3,7-8x")
        assert "That is no list of tasks" in bench.words(pilot)
        await bench.press(pilot, "enter")
        assert not isinstance(app.screen, ConfirmScreen)
        await bench.press(pilot, "backspace")
        golden("cancel_tasks", part_text(app, "#ask-line"))
        assert "3 tasks: 2 waiting, 1 running" in bench.words(pilot)
        await bench.press(pilot, "enter")
        action = bench.dialog(pilot).action
        assert action.argvs == (("scancel", "70_[3,7-8]"),)
        assert action.job_count == 3
        await bench.confirm(pilot)
        assert bench.does.same == [True, True]


async def test_the_waiting_or_the_running_tasks_are_cancelled() -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, ARRAY)
        await bench.press(pilot, "C", "1")
        assert bench.dialog(pilot).action.argvs == (("scancel", "70_[4-19]"),)
        await bench.press(pilot, "escape", "C", "2")
        assert bench.dialog(pilot).action.argvs == (("scancel", "70_3"),)


async def test_a_step_is_chosen_from_those_that_run(golden: Golden) -> None:
    bench = ActingBench()
    bench.world.seen_steps = StepsSeen((replace(STEPS[0], name=HOSTILE), *STEPS[1:]))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [RUNS])
        await bench.press(pilot, "C")
        text = part_text(app, "#choose")
        golden("cancel_step", text)
        assert "\x1b" not in text
        await bench.press(pilot, "3")
        assert not isinstance(app.screen, ConfirmScreen), "the batch script is no step of its own"
        await bench.press(pilot, "up", "up", "up", "down", "enter")
        assert bench.dialog(pilot).action.argvs == (("scancel", "--ctld", "4711.1"),)
        assert "Cancel step 1 of job 4711" in screen_text(app)


@pytest.mark.parametrize(
    ("jobs", "seen", "says"),
    [
        ((RUNS,), StepsSeen((), Failure(Trouble.DOWN, "no answer")), "listed: no answer"),
        ((RUNS,), StepsSeen(), "it has none"),
        ((WAITS,), StepsSeen(), "waits in the queue: it has no steps"),
    ],
)
async def test_without_steps_there_is_a_sentence(
    jobs: tuple[Job, ...], seen: StepsSeen, says: str
) -> None:
    bench = ActingBench()
    bench.world.seen_steps = seen
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, jobs)
        await bench.press(pilot, "C")
        assert says in bench.words(pilot)


async def test_a_part_of_several_jobs_is_refused() -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [make_job("1"), make_job("2")])
        await bench.press(pilot, "m", "C")
        assert "one job or one array at a time" in bench.words(pilot)


# Typed values


async def test_a_limit_says_what_it_would_be(golden: Golden) -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [replace(RUNS, name=HOSTILE)])
        await bench.press(pilot, "T", *"1:30:00")
        golden("limit", part_text(app, "#ask-line"))
        await bench.press(pilot, "enter")
        golden("confirm_limit", part_text(app, "#dialog"))
        assert bench.dialog(pilot).action.details.limit_minutes == 90


@pytest.mark.parametrize("text", ["", "soon", "0", "-5", "400-00:00:00", "1:2:3:4", "unlimited"])
async def test_a_limit_that_is_none_goes_nowhere(text: str) -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [RUNS])
        await bench.press(pilot, "T", *text, "enter")
        assert not isinstance(app.screen, AskingScreen | ConfirmScreen)
        assert bench.world.asked == []
        await bench.press(pilot, "escape")
        assert isinstance(app.screen, JobsScreen)


async def test_the_nodes_of_the_last_run_are_offered_for_exclusion(golden: Golden) -> None:
    bench = ActingBench()
    history = (AccountingRecord(id=make_id("4711"), nodes="gpu[05-06]"),)
    bench.facts.given = {"history": history}
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, replace(WAITS, excluded_nodes="gpu01"))
        await bench.press(pilot, "D")
        golden("exclude", part_text(app, "#ask-line"))
        await bench.press(pilot, "enter")
        golden("confirm_exclude", part_text(app, "#dialog"))
        argv = ("scontrol", "update", "JobId=4711", "ExcNodeList=gpu[01,05-06]")
        assert bench.dialog(pilot).action.argvs == (argv,)


# Many at once


async def test_all_that_match_go_into_one_dialog_and_are_told_one_by_one(
    golden: Golden,
) -> None:
    bench = ActingBench()
    jobs = [make_job(str(5_000 + n), "PENDING", gpus=8, name="sweep") for n in range(60)]
    jobs.append(make_job("9000", "PENDING", name="other"))
    bench.does.result = lambda target: Result.DENIED if target.key.id == "5040" else Result.DONE
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, jobs)
        await bench.press(pilot, "slash", *"sweep", "enter", "m")
        assert "60 marked" in screen_text(app)
        await bench.press(pilot, "H")
        golden("confirm_hold_60", part_text(app, "#dialog"))
        assert bench.dialog(pilot).action.job_count == 60
        await bench.confirm(pilot)
        golden("outcome_hold_60", part_text(app, "#outcome"))
        first = next(line for line in part_text(app, "#outcome").splitlines() if "job 5" in line)
        assert "job 5040: denied" in first
        await bench.press(pilot, "escape")
        assert "1 marked" in screen_text(app), "what failed stays marked, to be tried again"


async def test_a_range_goes_into_one_dialog() -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [make_job(str(n), ran_s=900 - n) for n in range(1, 7)])
        await bench.press(pilot, "j", "space", "j", "v", "K")
        ids = [target.key.id for target in bench.dialog(pilot).action.targets]
        assert ids == ["2", "3", "4"]


async def test_rows_that_move_between_key_and_yes_change_nothing() -> None:
    bench = ActingBench()
    jobs = [make_job(str(n), "PENDING", priority=n) for n in range(1, 6)]
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, jobs)
        await bench.press(pilot, "j", "H")
        assert [target.key.id for target in bench.dialog(pilot).action.targets] == ["4"]
        await bench.clock.advance(20)
        turned = [
            replace(job, priority=9 - (job.priority or 0)) for job in jobs if job.key.id != "5"
        ]
        await bench.answer(pilot, turned)
        await bench.confirm(pilot)
        assert [target.key.id for target in bench.does.actions[0].targets] == ["4"]
        assert bench.does.same == [True]


async def test_a_row_that_starts_between_key_and_yes_is_not_held() -> None:
    bench = ActingBench()
    jobs = (make_job("1", "PENDING"), make_job("2", "PENDING"))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, jobs)
        await bench.press(pilot, "m", "H")
        await bench.clock.advance(20)
        started = replace(jobs[0], state=make_state("RUNNING"), nodes="gpu01", start=START)
        await bench.answer(pilot, (started, jobs[1]))
        assert "1 has started meanwhile on gpu01" in screen_text(app)
        await bench.confirm(pilot)
        same: dict[str, bool] = {
            target.key.id: same
            for target, same in zip(bench.does.actions[0].targets, bench.does.same, strict=True)
        }
        assert same == {"1": False, "2": True}


async def test_a_signal_to_several_says_that_scripts_are_told_later() -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [make_job("1"), make_job("2")])
        await bench.press(pilot, "m", "S")
        assert "scancel --ctld --signal=USR1 1 2" in bench.words(pilot)
        assert "What the scripts of these jobs say is told in the dialog" in bench.words(pilot)
        assert bench.world.asked == []
        await bench.press(pilot, "enter")
        assert bench.dialog(pilot).action.argvs == (
            ("scancel", "--ctld", "--signal=USR1", "1", "2"),
        )


# Every dialog, at every size


@pytest.mark.parametrize("size", [(30, 10), (40, 12), (60, 20), (80, 24), (200, 60)])
@pytest.mark.parametrize("keys", ["S", "R", "T", "D", "C", "c", "H"])
async def test_any_size_survives_with_a_hostile_name(size: tuple[int, int], keys: str) -> None:
    bench = ActingBench()
    bench.world.seen_steps = StepsSeen((replace(STEPS[0], name=HOSTILE),))
    bench.world.seen_script = ScriptSeen(READING)
    bench.world.given = (replace(GIVEN[0], who=HOSTILE, why=HOSTILE),)
    app = bench.app()
    async with app.run_test(size=size) as pilot:
        await bench.answer(pilot, [replace(RUNS, name=HOSTILE, nodes="gpu01")])
        await bench.press(pilot, keys)
        assert isinstance(app.screen, ModalScreen)
        assert "\x1b" not in screen_text(app)
        assert "\u202e" not in screen_text(app)
        await bench.press(pilot, "escape")
        assert isinstance(app.screen, JobsScreen)


async def test_what_ran_is_shown_live_and_nothing_can_be_done_there(golden: Golden) -> None:
    ran: list[Ran] = [
        Ran(argv=("squeue", "--me", "-h"), at=START, took_s=0.31, rc=0),
        Ran(argv=("scancel", "4711_[3,7]"), at=START, took_s=0.02, rc=0),
        Ran(argv=("squeue", "-j", "9"), at=START, took_s=3.0, rc=1, trouble="exit 1"),
        Ran(argv=("scontrol", "hold", "4711"), at=START),
        Ran(argv=("scontrol", "show", "job", HOSTILE), at=START, took_s=1.0, rc=0),
    ]
    bench = ActingBench(commands_run=lambda: tuple(ran))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, RUNS)
        await bench.press(pilot, "c")
        golden("command_log", part_text(app, "#command-log"))
        ran.insert(0, Ran(argv=("scancel", "1"), at=START, took_s=0.1, rc=0))
        await bench.advance(pilot, 1)
        assert "scancel 1" in screen_text(app)
        await bench.press(pilot, "K", "H")
        assert bench.does.actions == []
        await bench.press(pilot, "c")
        assert isinstance(app.screen, JobScreen)


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_a_requeue_of_a_job_that_loops_says_so_first(
    golden: Golden, size: tuple[int, int]
) -> None:
    bench = ActingBench()
    bench.world.loops = "job 4711 was restarted 3 times with the same first error: ImportError"
    app = bench.app()
    async with app.run_test(size=size) as pilot:
        await bench.answer(pilot, [replace(RUNS, restarts=3, name=HOSTILE)])
        await bench.press(pilot, "R")
        golden(f"requeue_{size[0]}", part_text(app, "#choose"))
        await bench.press(pilot, "enter")
        golden(f"confirm_requeue_{size[0]}", part_text(app, "#dialog"))
        warnings = bench.dialog(pilot).action.warnings
        assert warnings[0] == bench.world.loops
        await bench.press(pilot, "y")
        assert bench.does.actions == [], "one key is not enough"


async def test_while_it_is_asked_the_screen_says_so(golden: Golden) -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [HELD])
        bench.world.gate.clear()
        await bench.press(pilot, "U")
        golden("asking", part_text(app, "#asking"))
        bench.world.gate.set()
        await bench.settled(pilot)
        golden("confirm_release", part_text(app, "#dialog"))


async def test_a_het_job_is_requeued_whole_and_not_by_failed_tasks() -> None:
    bench = ActingBench()
    parts = [
        make_job("4815+0", gpus=4, nodes="gpu01", requeueable=True, batch=True),
        make_job("4815+1", gpus=8, nodes="gpu02"),
    ]
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, parts)
        await bench.press(pilot, "R")
        assert "Requeue het job 4815, all parts" in bench.words(pilot)
        await bench.press(pilot, "1")
        action = bench.dialog(pilot).action
        assert action.argvs == (("scontrol", "requeue", "4815"),)
        assert "all of its parts" in bench.words(pilot)


async def test_the_marks_of_what_could_not_be_done_stay() -> None:
    bench = ActingBench()
    bench.does.result = lambda target: Result.NOT_KNOWN if target.key.id == "2" else Result.DONE
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [make_job(str(n), "PENDING") for n in range(1, 4)])
        await bench.press(pilot, "m", "H")
        await bench.confirm(pilot)
        await bench.press(pilot, "escape")
        screen = app.screen
        assert isinstance(screen, JobsScreen)
        assert {key.id for key in screen.view.marks} == {"2"}


async def test_a_dry_run_says_so_all_along_and_what_it_would_have_run(golden: Golden) -> None:
    bench = ActingBench(dry_run=True)

    class Dry:
        async def execute(self, action: Action, **_how: object) -> Outcome:
            return Outcome(action=action, dry_run=True, started_at=START)

    object.__setattr__(bench.services, "executor", Dry())
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [WAITS])
        assert "DRY RUN" in screen_text(app)
        await bench.press(pilot, "H")
        golden("confirm_dry_run", part_text(app, "#dialog"))
        await bench.press(pilot, "y")
        words = bench.words(pilot)
        assert "Dry run: Hold job 4711" in words
        assert "dry run: nothing was done" in words
        assert "scontrol hold 4711" in words
        assert "read back" not in words
        await bench.press(pilot, "escape", "enter")
        assert isinstance(app.screen, JobScreen)
        assert "DRY RUN" in screen_text(app)


# Marks that the filter hides


async def test_marks_that_the_filter_hides_are_told_in_header_and_dialog(golden: Golden) -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [make_job(str(n), ran_s=900 - n) for n in range(1, 4)])
        await bench.press(pilot, "m", "slash", *"id:1", "enter")
        assert "3 marked, 2 of them hidden by the filter" in screen_text(app)
        await bench.press(pilot, "K")
        golden("confirm_hidden", part_text(app, "#dialog"))
        assert "! 2 of these are marked and hidden by the filter" in bench.words(pilot)
        assert bench.dialog(pilot).action.job_count == 3
        await bench.press(pilot, "escape", "escape", "K")
        assert "hidden by the filter" not in bench.words(pilot)


async def test_a_mark_that_is_hidden_is_acted_on_and_not_the_cursor_and_that_is_said() -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        jobs = [make_job("4817", ran_s=90_000), make_job("4830_12", ran_s=9)]
        await bench.answer(pilot, jobs)
        await bench.press(pilot, "space", "slash", *"4830_12", "enter", "K")
        assert bench.dialog(pilot).action.argvs == (("scancel", "4817"),)
        assert "the cursor is not on it" in bench.words(pilot)


async def test_the_waiting_tasks_behind_a_hidden_mark_are_counted() -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, ARRAY)
        await bench.press(pilot, "m", "slash", *"state:running", "enter", "K")
        assert "! 16 of these are marked and hidden by the filter" in bench.words(pilot)
        assert bench.dialog(pilot).action.job_count == 17


async def test_a_marked_rest_of_which_a_task_starts_is_cancelled_with_that_task() -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [make_job("70_[4-19]", "PENDING")])
        await bench.press(pilot, "space")
        await bench.clock.advance(20)
        await bench.answer(pilot, [make_job("70_4"), make_job("70_[5-19]", "PENDING")])
        await bench.press(pilot, "K")
        assert bench.dialog(pilot).action.job_count == 16


# What cannot be done is refused before anything is chosen or typed


FAILED_JOB = make_job("4711", "FAILED", end=START, batch=True, requeueable=True)


@pytest.mark.parametrize(
    ("job", "key", "says"),
    [
        (FAILED_JOB, "T", "job 4711 is already over (FAILED)"),
        (FAILED_JOB, "C", "job 4711 is already over (FAILED): there is nothing to cancel"),
        (FAILED_JOB, "S", "job 4711 is already over (FAILED)"),
        (FAILED_JOB, "D", "requeue and hold it, exclude the node, release it"),
        (RUNS, "D", "it has started and keeps its nodes: requeue and hold it, exclude, release"),
        (WAITS, "R", "job 4711: already pending: hold it instead"),
    ],
)
async def test_what_cannot_be_done_is_refused_at_once(job: Job, key: str, says: str) -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [job])
        await bench.press(pilot, key)
        assert isinstance(app.screen, OutcomeScreen), screen_text(app)
        assert says in bench.words(pilot)
        assert bench.world.asked == []


@pytest.mark.parametrize(
    ("key", "title"),
    [
        ("S", "Signal 2 jobs"),
        ("R", "Requeue 3 jobs"),
        ("T", "Time limit of 5 jobs"),
        ("D", "Exclude nodes from 3 jobs"),
    ],
)
async def test_a_title_counts_what_would_be_reached(key: str, title: str) -> None:
    bench = ActingBench()
    app = bench.app()
    jobs = [make_job(str(n), requeueable=True, batch=True) for n in (1, 2)]
    jobs += [replace(WAITS, key=make_job(str(n)).key, id=make_id(str(n))) for n in (3, 4, 5)]
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [*jobs, replace(FAILED_JOB, requeueable=True)])
        await bench.press(pilot, "m", key)
        assert title in bench.words(pilot)
        assert "6 jobs" not in bench.words(pilot)


# The costs


async def test_what_it_costs_stands_above_what_is_left_out() -> None:
    bench = ActingBench()
    app = bench.app()
    jobs = [make_job(str(n), gpus=8, ran_s=36_000) for n in range(1, 900)]
    jobs += [make_job(f"{5_000 + n}+{part}", gpus=1) for n in range(9) for part in (0, 1)]
    jobs += [replace(FAILED_JOB, key=make_job(str(n)).key, id=make_id(str(n))) for n in (901, 902)]
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, jobs)
        await bench.press(pilot, "m", "K")
        text = part_text(app, "#dialog")
        assert "GPU-hours run so far" in text
        assert "Cancel 908 jobs" in text


async def test_a_het_job_is_named_whole_also_from_one_of_its_parts() -> None:
    bench = ActingBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, [make_job("4815+0"), make_job("4815+1")])
        await bench.press(pilot, "enter", "j", "j", "K")
        assert "Cancel het job 4815, all parts" in bench.words(pilot)
