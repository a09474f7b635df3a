"""The confirm dialog: what it shows, what confirms it, and what must never confirm it."""

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Button, Input

from slurmtop.control.actions import Action, Asker
from slurmtop.control.cancel import plan_cancel
from slurmtop.model.job import Job, Tres
from slurmtop.ui.app import SlurmtopApp
from slurmtop.ui.present.confirm import body_lines
from slurmtop.ui.present.spans import line_width, plain
from slurmtop.ui.screens.confirm import ConfirmScreen
from tests.build import make_job, make_state
from tests.fakes import START
from tests.ui.golden import Golden
from tests.ui.harness import Bench
from tests.ui.job_bench import part_text

SIZE = (80, 24)

ONE = make_job("4711", gpus=8, ran_s=10_927, name="llm-pretrain")
MANY = tuple(
    make_job(str(5_000 + n), "RUNNING" if n < 40 else "PENDING", gpus=8, nodes=f"gpu{n:02}")
    for n in range(200)
)
OTHERS = make_job("4712", user="bob", gpus=8, name="[/red]\x1b[2J", nodes="gpu02")


def plan(*jobs: Job) -> Action:
    action = plan_cancel(jobs, Asker(me="anna", now=START))
    assert isinstance(action, Action)
    return action


class Dialog:
    """The dialog over the queue, and the answer it gave."""

    def __init__(self, pilot: Pilot[None], bench: Bench, answers: list[bool | None]) -> None:
        self.pilot, self.bench, self.answers = pilot, bench, answers

    @property
    def screen(self) -> ConfirmScreen:
        screen = self.pilot.app.screen
        assert isinstance(screen, ConfirmScreen)
        return screen

    def text(self) -> str:
        return part_text(self.pilot.app, "#dialog")


async def opened(pilot: Pilot[None], bench: Bench, app: SlurmtopApp, jobs: Sequence[Job]) -> Dialog:
    answers: list[bool | None] = []
    await bench.answer(pilot, jobs)
    app.push_screen(ConfirmScreen(plan(*jobs)), answers.append)
    await pilot.pause()
    return Dialog(pilot, bench, answers)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize(
    ("name", "jobs"),
    [("confirm_one", (ONE,)), ("confirm_200", MANY), ("confirm_somebody_else", (OTHERS,))],
)
async def test_it_fits_80_by_24(
    golden: Golden, bench: Bench, name: str, jobs: tuple[Job, ...]
) -> None:
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        dialog = await opened(pilot, bench, app, jobs)
        golden(name, dialog.text())
        for part in ("#no", "#yes"):
            region = dialog.screen.query_one(part, Button).region
            assert region.height == 1
            assert region.bottom < 24


async def test_brackets_of_an_id_stay(bench: Bench) -> None:
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        dialog = await opened(pilot, bench, app, (make_job("4711_[7-8]", "PENDING"),))
        assert "Cancel 2 jobs" in dialog.text()
        assert "4711_[7-8]" in dialog.text()


@pytest.mark.parametrize("key", ["enter", "n", "escape"])
async def test_no_is_the_default(bench: Bench, key: str) -> None:
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        dialog = await opened(pilot, bench, app, (ONE,))
        await pilot.press(key)
        assert dialog.answers == [False]


@pytest.mark.parametrize("keys", [("y",), ("right", "enter"), ("tab", "enter")])
async def test_one_own_job_needs_one_clear_yes(bench: Bench, keys: tuple[str, ...]) -> None:
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        dialog = await opened(pilot, bench, app, (ONE,))
        await pilot.press(*keys)
        assert dialog.answers == [True]


@pytest.mark.parametrize(("jobs", "word"), [(MANY, "200"), ((OTHERS,), "4712")])
async def test_more_than_one_own_job_needs_the_word_typed(
    bench: Bench, jobs: tuple[Job, ...], word: str
) -> None:
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        dialog = await opened(pilot, bench, app, jobs)
        await pilot.press("y", "enter")
        assert dialog.answers == []
        assert "nothing is done" in dialog.text()
        assert dialog.screen.query_one("#yes", Button).disabled
        await pilot.press("backspace", *word)
        assert not dialog.screen.query_one("#yes", Button).disabled
        await pilot.press("enter")
        assert dialog.answers == [True]


async def test_the_letter_n_is_text_in_the_input_and_esc_is_no(bench: Bench) -> None:
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        dialog = await opened(pilot, bench, app, MANY)
        await pilot.press("n")
        assert dialog.answers == []
        assert dialog.screen.query_one("#typed", Input).value == "n"
        await pilot.press("escape")
        assert dialog.answers == [False]


@pytest.mark.parametrize("jobs", [(ONE,), MANY, (OTHERS,)])
@pytest.mark.parametrize("pasted", ["y", "y\n", "200", "200\n", "4712", "4712\n"])
async def test_pasted_text_confirms_nothing(
    bench: Bench, jobs: tuple[Job, ...], pasted: str
) -> None:
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        dialog = await opened(pilot, bench, app, jobs)
        app.post_message(events.Paste(pasted))
        await pilot.pause()
        await pilot.press("left")
        assert dialog.answers == []
        assert all(box.value == "" for box in dialog.screen.query(Input))


@pytest.mark.parametrize(
    ("later", "says"),
    [
        (replace(ONE, state=make_state("COMPLETED")), "4711 has ended meanwhile: completed"),
        (None, "4711 has left the queue meanwhile"),
        (
            replace(ONE, submit=START + timedelta(seconds=5)),
            "4711 is another run now, not the one shown",
        ),
    ],
)
async def test_what_ends_while_it_is_open_can_no_longer_be_confirmed(
    bench: Bench, later: Job | None, says: str
) -> None:
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        dialog = await opened(pilot, bench, app, (ONE,))
        await bench.clock.advance(20)
        await bench.answer(pilot, () if later is None else (later,))
        assert says in dialog.text()
        assert "Nothing is left of what was shown" in dialog.text()
        await pilot.press("y")
        await pilot.press("right", "enter")
        assert dialog.answers in ([], [False])


async def test_some_that_end_while_it_is_open_are_counted(bench: Bench) -> None:
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        dialog = await opened(pilot, bench, app, MANY)
        await bench.clock.advance(20)
        later = [replace(job, state=make_state("COMPLETED")) for job in MANY[:7]]
        await bench.answer(pilot, [*later, *MANY[7:190]])
        assert "meanwhile, of 200: 10 left the queue, 7 have ended" in dialog.text()
        await pilot.press(*"200", "enter")
        assert dialog.answers == [True]


async def test_a_start_while_it_is_open_is_said(bench: Bench) -> None:
    waiting = make_job("4711", "PENDING", gpus=8)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        dialog = await opened(pilot, bench, app, (waiting,))
        await bench.clock.advance(20)
        await bench.answer(
            pilot, (replace(waiting, state=make_state("RUNNING"), nodes="gpu[07-08]"),)
        )
        assert "4711 has started meanwhile on gpu[07-08]" in dialog.text()


async def test_in_an_outage_times_stand_still_and_the_age_is_said(bench: Bench) -> None:
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        dialog = await opened(pilot, bench, app, (ONE,))
        assert "running for 3:02:07" in dialog.text()
        assert "as of" not in dialog.text()
        await bench.clock.advance(180)
        await bench.fail(pilot, "The controller does not answer.")
        await pilot.pause()
        assert "as of 3 min ago: The controller does not answer" in dialog.text()
        assert "running for 3:02:07" in dialog.text()
        await pilot.press("y")
        assert dialog.answers == [True]


@pytest.mark.parametrize("size", [(30, 10), (40, 12), (60, 10), (80, 24)])
@pytest.mark.parametrize("jobs", [(ONE,), MANY, (OTHERS,)])
async def test_question_input_and_buttons_are_always_in_sight(
    bench: Bench, size: tuple[int, int], jobs: tuple[Job, ...]
) -> None:
    app = bench.app()
    async with app.run_test(size=size) as pilot:
        dialog = await opened(pilot, bench, app, jobs)
        await bench.fail(pilot, "The controller does not answer, and that is a long sentence.")
        await bench.answer(pilot, jobs)
        await pilot.pause()
        inside = dialog.screen.query_one("#dialog").content_region
        for part in ("#no", "#yes", "#ask", "#body", *(("#typed",) if len(jobs) > 1 else ())):
            region = dialog.screen.query_one(part).region
            assert region.height >= 1, part
            assert inside.contains_region(region), (part, region, inside)
        assert inside.right <= size[0]
        assert "esc" in dialog.text()
        assert "no" in dialog.text()


def test_tasks_of_an_array_on_one_node_reach_one_node() -> None:
    tasks = [make_job(f"4711_{n}", gpus=1, nodes="gpu07") for n in range(8)]
    lines = body_lines(plan(*tasks, make_job("4711_[8-20]", "PENDING")), START, 76, "anna")
    text = "\n".join(plain(line) for line in lines)
    assert "Reaches 1 node of 8 running rows · 8 GPUs" in text


async def test_one_part_of_a_het_job_counts_them_all(bench: Bench) -> None:
    parts = [
        make_job("4815+0", gpus=4, nodes="gpu01"),
        make_job("4815+1", gpus=8, nodes="gpu[02-03]"),
    ]
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.answer(pilot, parts)
        await pilot.press("enter", "j", "K")
        await pilot.pause()
        text = part_text(pilot.app, "#dialog")
        assert "scancel 4815" in text
        assert "Reaches 3 nodes · 12 GPUs" in text


async def test_every_command_can_be_read_by_scrolling(bench: Bench) -> None:
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        dialog = await opened(pilot, bench, app, MANY)
        seen = dialog.text()
        for _ in range(40):
            await pilot.press("pagedown")
            seen += dialog.text()
        for job in MANY:
            assert seen.count(job.key.id) >= 2, job.key.id


@pytest.mark.parametrize("width", [20, 40, 76, 120])
@pytest.mark.parametrize("jobs", [(ONE,), MANY, (OTHERS,), (replace(ONE, tres=Tres()),)])
def test_no_line_is_wider_than_the_dialog(width: int, jobs: tuple[Job, ...]) -> None:
    for line in body_lines(plan(*jobs), START, width, "anna"):
        assert line_width(line) <= width
        assert "\x1b" not in plain(line)
        assert "\n" not in plain(line)


def test_an_unknown_number_of_gpus_is_not_shown_as_none() -> None:
    lines = body_lines(plan(replace(ONE, tres=Tres())), START, 76, "anna")
    text = "\n".join(plain(line) for line in lines)
    assert "GPUs unknown" in text
    assert "GPU-hours so far unknown" in text


@pytest.mark.parametrize(
    ("name", "value"), [("TERM", "linux"), ("TERM", "dumb"), ("NO_COLOR", "1")]
)
async def test_the_labels_of_the_buttons_are_there_without_many_colours(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, name, value)
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        dialog = await opened(pilot, bench, app, MANY)
        assert "Yes, cancel" in dialog.text()
        dialog = await opened(pilot, bench, app, (ONE,))
        assert "Yes, cancel" in dialog.text()
