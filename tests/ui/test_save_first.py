"""A suspect is not ended before what is known of it was saved, and the dialog says so."""

from dataclasses import replace

import pytest
from textual.screen import ModalScreen

from slurmtop.control.actions import Kind
from slurmtop.control.save_first import is_suspect
from slurmtop.model.verdict import State, Verdict
from slurmtop.ui.actions_flow import Selection, act
from slurmtop.ui.screens.confirm import ConfirmScreen
from slurmtop.ui.screens.outcome import OutcomeScreen
from slurmtop.ui.screens.unlogged import UnsavedScreen
from tests.build import make_job, make_state
from tests.ui.acting_bench import ActingBench
from tests.ui.golden import screen_text

SIZE = (80, 24)
RUNS = make_job("4711", gpus=8, ran_s=10_927, name="llm-pretrain", requeueable=True, batch=True)
SUSPECT = Selection(jobs=(RUNS,), suspects=frozenset({RUNS.key}))
FOLDER = "/home/anna/.local/state/slurmtop/bundles"


def bench_of(folder: str = FOLDER) -> ActingBench:
    return ActingBench(save_folder=folder)


async def test_the_dialog_tells_what_is_saved_first_and_the_outcome_where() -> None:
    bench = bench_of()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, (RUNS,))
        act(app, SUSPECT, Kind.CANCEL)
        await bench.settled(pilot)
        words = bench.words(pilot)
        assert "First: saves what is known first" in words
        assert FOLDER in words
        assert "s = do not save" in words
        await bench.confirm(pilot)
        assert isinstance(app.screen, OutcomeScreen)
        assert "saved first: " + FOLDER in bench.words(pilot)
        assert [one.job for one in bench.does.actions[0].saves] == ["4711"]


@pytest.mark.parametrize(("keys", "saves"), [("s", 0), ("ss", 1)])
async def test_one_key_leaves_it_out_and_takes_it_in_again(keys: str, saves: int) -> None:
    bench = bench_of()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, (RUNS,))
        act(app, SUSPECT, Kind.CANCEL)
        await bench.settled(pilot)
        await bench.press(pilot, *keys)
        assert ("nothing is saved first" in bench.words(pilot)) is not bool(saves)
        await bench.confirm(pilot)
        assert [len(one.saves) for one in bench.does.actions] == [saves]


async def test_the_key_works_where_the_id_is_typed() -> None:
    job = replace(RUNS, node_count=2, nodes="gpu[01-02]")
    bench = bench_of()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, (job,))
        act(app, replace(SUSPECT, jobs=(job,)), Kind.CANCEL)
        await bench.settled(pilot)
        await bench.press(pilot, *"4711", "s", "enter")
        assert [one.saves for one in bench.does.actions] == [()]


@pytest.mark.parametrize("answer", ["y", "n"])
async def test_a_save_that_failed_is_asked_once_more(answer: str) -> None:
    bench = bench_of()
    bench.does.unsaved = "what is known could not be saved first: job 4711: [/x]\x1b[2Jdisk full"
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, (RUNS,))
        act(app, SUSPECT, Kind.CANCEL)
        await bench.settled(pilot)
        await bench.confirm(pilot)
        assert isinstance(app.screen, UnsavedScreen)
        assert "disk full" in bench.words(pilot)
        assert "\x1b" not in screen_text(app)
        await bench.press(pilot, answer)
        assert bench.does.without_save == ([False, True] if answer == "y" else [False])
        assert isinstance(app.screen, ModalScreen) is (answer == "y")


async def test_a_job_that_nobody_suspects_is_ended_as_before() -> None:
    bench = bench_of()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, (RUNS,))
        act(app, Selection(jobs=(RUNS,)), Kind.CANCEL)
        await bench.settled(pilot)
        assert isinstance(app.screen, ConfirmScreen)
        assert "saves what is known" not in bench.words(pilot)
        await bench.press(pilot, "s")
        assert "nothing is saved" not in bench.words(pilot)


async def test_a_requeue_of_a_failed_job_saves_what_its_log_still_says() -> None:
    failed = replace(RUNS, state=make_state("FAILED"))
    bench = bench_of()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, (failed,))
        act(app, Selection(jobs=(failed,)), Kind.REQUEUE)
        await bench.settled(pilot)
        assert "saves what is known first" in bench.words(pilot)


def test_the_states_of_a_suspect() -> None:
    said = {state: is_suspect(Verdict(job="1", state=state, summary="")) for state in State}
    assert {state for state, yes in said.items() if yes} == {
        State.HUNG,
        State.FAILED,
        State.SLOW,
    }


async def test_the_list_remembers_what_the_page_found() -> None:
    bench = bench_of()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, (RUNS,))
        app.last_verdict(RUNS.key, Verdict(job="4711", state=State.HUNG, summary=""))
        act(app, Selection(jobs=(RUNS,)), Kind.CANCEL)
        await bench.settled(pilot)
        assert "saves what is known first" in bench.words(pilot)
        await bench.press(pilot, "escape")
        app.last_verdict(RUNS.key, None)
        assert RUNS.key in app.suspects
        app.last_verdict(RUNS.key, Verdict(job="4711", state=State.HEALTHY, summary=""))
        act(app, Selection(jobs=(RUNS,)), Kind.CANCEL)
        await bench.settled(pilot)
        assert "saves what is known first" not in bench.words(pilot)
