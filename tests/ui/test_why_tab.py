"""The Why tab by its keys: the cursor, what enter opens, X, and verdicts that change."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from slurmtop.control.actions import Kind
from slurmtop.model.collective_table import Cell, Mark, Row, Table
from slurmtop.model.facts import LogsSay
from slurmtop.model.verdict import (
    Confidence,
    Culprit,
    Evidence,
    Missing,
    NextStep,
    State,
    Verdict,
)
from slurmtop.ui.app import SlurmtopApp
from slurmtop.ui.present.spans import line_width
from slurmtop.ui.present.why import WhyState, same_spot, why_page
from slurmtop.ui.screens.choose import ChooseScreen
from slurmtop.ui.screens.confirm import ConfirmScreen
from slurmtop.ui.screens.job import TABS, JobScreen
from slurmtop.ui.screens.text import TextScreen
from tests.build import make_job
from tests.fakes import START
from tests.ui.golden import Golden, screen_text
from tests.ui.job_bench import ERR, JOB, OUT, JobBench, judge_as, part_text
from tests.ui.test_present_hostile import HOSTILE, harmless

SIZE = (80, 24)
DUMP = "/home/anna/run/nccl.gpu04.log"
MINE = replace(JOB, nodes="gpu03", node_count=1)


def proof(source: str, line: int | None, text: str, **more: Any) -> Evidence:
    given: dict[str, Any] = {"family": "log", "says": f"says {text}"}
    return Evidence(source=source, line=line, text=text, **{**given, **more})


FIRST = proof(OUT, 401, "step 00400 loss 2.41")
OTHER = proof(DUMP, 3, "third line")
TOLD = proof("squeue -j 4711", None, "4711 RUNNING", family="slurm")
EXPLAIN = NextStep("what this means", "slurmtop explain missing-rank", "read", "its stack")
COPIED = NextStep("all that Slurm knows", "scontrol show job 4711", "read", "")
CANCEL = NextStep("end it", "scancel 4711", "write", "it waits for ever")
ELSEWHERE = NextStep("end the other", "scancel 4712", "write", "")
SETTING = NextStep("record next time", "export TORCH_FR_BUFFER_SIZE=20000", "write", "")
STEPS = (EXPLAIN, COPIED, CANCEL, ELSEWHERE, SETTING)
HUNG = Verdict(
    job="4711",
    state=State.HUNG,
    cls="missing-rank",
    confidence=Confidence.HIGH,
    summary="Rank 11 never launched operation 53165, which the others wait in",
    culprits=(Culprit(rank=11, host="gpu04", reason="launched nothing after operation 53164"),),
    evidence=(FIRST, OTHER, TOLD),
    missing=(Missing("kernel", "no kernel log was read", "sudo dmesg -T"),),
    next=STEPS,
    made_at=START,
)
OTHERS = tuple(rank for rank in range(16) if rank != 11)
TABLE = Table(
    group="default_pg",
    kind="torch",
    attempt=0,
    size=16,
    unseen=0,
    columns=(53_164, 53_165),
    rows=(
        Row((11,), (11,), (Cell("done"), Cell("", Mark.MISSING)), "launched 53164"),
        Row(OTHERS, OTHERS, (Cell("done"), Cell("allreduce 64", Mark.WAITS)), "launched 53165"),
    ),
)


class WhyBench(JobBench):
    """A job whose verdict is the one that the test gives; :attr:`verdict` may change."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, verdict: Verdict = HUNG, **more: Any):
        super().__init__(**more)
        self.verdict = verdict
        say = LogsSay(verdict=verdict, tables=(TABLE,))
        self.facts.given["logs_say"] = say
        monkeypatch.setattr(
            "slurmtop.ui.screens.job_judging.explain_job", lambda facts: self.verdict
        )

    async def on_spot(self, pilot: Pilot[None], item: object) -> JobScreen:
        """Open the job and bring the cursor to ``item``."""
        screen = await self.open(pilot, MINE)
        for _ in range(60):
            if screen.why.item == item:
                return screen
            await self.press(pilot, "down")
        raise AssertionError(f"never under the cursor: {item}")

    async def judged(self, pilot: Pilot[None], verdict: Verdict) -> str:
        """The verdict is another one from now on."""
        self.verdict = verdict
        await self.advance(pilot, 3)
        return await self.press(pilot, "r")


def cursor_row(app: SlurmtopApp) -> int:
    rows = [at for at, row in enumerate(screen_text(app).splitlines()) if row.startswith("> ")]
    assert len(rows) == 1, screen_text(app)
    return rows[0]


def said(app: SlurmtopApp) -> str:
    """What was told beside the screen."""
    return "\n".join(str(one.message) for one in app._notifications)


def tab_of(app: SlurmtopApp) -> str:
    screen = app.screen
    assert isinstance(screen, JobScreen)
    return TABS[screen.tab]


@pytest.mark.parametrize("size", [(80, 24), (46, 24), (140, 50)])
async def test_the_tab_at_several_sizes(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    bench = WhyBench(monkeypatch)
    app = bench.app()
    async with app.run_test(size=size) as pilot:
        await bench.open(pilot, MINE)
        golden(f"why_hung_{size[0]}", app)


async def test_the_tables_second_page_at_80_by_24(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = WhyBench(monkeypatch)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, MINE)
        await bench.press(pilot, "pagedown")
        golden("why_hung_80_below", app)


async def test_enter_opens_the_log_at_the_line_of_the_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = WhyBench(monkeypatch)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.on_spot(pilot, FIRST)
        text = await bench.press(pilot, "enter")
        assert tab_of(app) == "Logs"
        assert "line 401" in text
        assert screen.logs.view.hit is not None
        assert screen.logs.view.hit.offset == 400 * len(b"step 00000 loss 2.41\n")
        assert "step 00400" in text
        assert not screen.logs.view.follow
        await bench.press(pilot, "shift+tab", "shift+tab")
        assert screen.why.item == FIRST, "back where it was"


async def test_a_proof_without_a_line_number_is_found_by_its_offset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = replace(FIRST, line=None, offset=21 * 450)
    bench = WhyBench(monkeypatch, replace(HUNG, evidence=(late,)))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.on_spot(pilot, late)
        assert "step 00450" in await bench.press(pilot, "enter")
        assert len(bench.runner.reads) < 6, "no line was counted"


async def test_a_proof_of_an_unknown_place_opens_the_end_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bare = replace(FIRST, line=None)
    bench = WhyBench(monkeypatch, replace(HUNG, evidence=(bare,)))
    app = bench.app()
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await bench.on_spot(pilot, bare)
        assert "step 00499" in await bench.press(pilot, "enter")
        assert "/ searches for it" in said(app)


async def test_a_proof_in_another_file_is_opened_beside_the_logs_of_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = WhyBench(monkeypatch)
    bench.runner.files[DUMP] = b"one\ntwo\nthird line\nfour\n"
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.on_spot(pilot, OTHER)
        text = await bench.press(pilot, "enter")
        assert f"proof {DUMP}" in text
        assert "third line" in text
        assert screen.logs.view.hit is not None
        assert screen.logs.view.hit.offset == 8
        assert f"stdout {OUT}" in await bench.press(pilot, "l")
        assert f"stderr {ERR}" in await bench.press(pilot, "l")
        assert f"proof {DUMP}" in await bench.press(pilot, "l"), "it stays in the round"


async def test_a_proof_in_a_file_that_is_gone_or_shorter_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    past = replace(FIRST, offset=10_000_000)
    bench = WhyBench(monkeypatch, replace(HUNG, evidence=(OTHER, past)))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.on_spot(pilot, OTHER)
        text = await bench.press(pilot, "enter")
        assert DUMP in text
        assert "Not there (yet)" in text
        await bench.press(pilot, "shift+tab", "shift+tab", "down")
        assert "it was written anew" in await bench.press(pilot, "enter")


async def test_what_a_command_said_opens_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = WhyBench(monkeypatch)
    app = bench.app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await bench.on_spot(pilot, TOLD)
        await bench.press(pilot, "enter")
        assert said(app) == "no file to open: squeue -j 4711 said it"
        assert tab_of(app) == "Why"


async def test_a_step_that_changes_something_goes_through_its_dialog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = WhyBench(monkeypatch)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.on_spot(pilot, CANCEL)
        await bench.press(pilot, "enter")
        assert isinstance(app.screen, ConfirmScreen)
        assert app.screen.action.kind is Kind.CANCEL
        assert app.screen.action.argvs == (("scancel", "4711"),)
        await bench.press(pilot, "escape")
        assert bench.runner.calls == []


async def test_a_requeue_chooses_how_first(monkeypatch: pytest.MonkeyPatch) -> None:
    again = NextStep("run it again", "scontrol requeue 4711", "write", "")
    bench = WhyBench(monkeypatch, replace(HUNG, next=(again,)))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.on_spot(pilot, again)
        await bench.press(pilot, "enter")
        assert isinstance(app.screen, ChooseScreen)
        assert "Requeue" in part_text(app, "#choose")


@pytest.mark.parametrize("step", [ELSEWHERE, SETTING], ids=["of another job", "of a script"])
async def test_a_step_that_slurmtop_does_not_run_is_copied(
    monkeypatch: pytest.MonkeyPatch, step: NextStep
) -> None:
    bench = WhyBench(monkeypatch)
    app = bench.app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await bench.on_spot(pilot, step)
        await bench.press(pilot, "enter")
        assert "slurmtop does not run this one" in said(app)
        assert app.clipboard == step.command
        assert isinstance(app.screen, JobScreen)


async def test_a_step_that_only_looks_is_opened_or_copied(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = WhyBench(monkeypatch)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.on_spot(pilot, EXPLAIN)
        await bench.press(pilot, "enter")
        assert isinstance(app.screen, TextScreen)
        golden("why_explain", part_text(app, "#text"))
        await bench.press(pilot, "down", "escape", "down")
        await bench.press(pilot, "enter")
        assert app.clipboard == COPIED.command


async def test_steps_that_name_a_log_or_a_job_open_it(monkeypatch: pytest.MonkeyPatch) -> None:
    less = NextStep("read there", f"less +401 {OUT}", "read", "")
    tail = NextStep("its end", f"tail -n 50 {ERR}", "read", "")
    again = NextStep("look again", "slurmtop why 4711", "read", "")
    parent = NextStep("its parent", "slurmtop why 4700", "read", "")
    bench = WhyBench(monkeypatch, replace(HUNG, next=(less, tail, again, parent)))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.on_spot(pilot, less)
        assert "step 00400" in await bench.press(pilot, "enter")
        await bench.press(pilot, "shift+tab", "shift+tab", "down")
        assert screen.why.item == tail
        assert f"stderr {ERR}" in await bench.press(pilot, "enter")
        await bench.press(pilot, "shift+tab", "shift+tab", "down")
        await bench.advance(pilot, 3)
        asked = len(bench.facts.calls)
        await bench.press(pilot, "enter")
        assert len(bench.facts.calls) == asked + 1
        await bench.press(pilot, "down", "enter")
        assert isinstance(app.screen, JobScreen)
        assert app.screen.key.id == "4700"


async def test_what_is_out_of_sight_is_shown_before_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = WhyBench(monkeypatch)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.open(pilot, MINE)
        screen.why.scroll_by("end")
        await bench.press(pilot, "enter")
        assert tab_of(app) == "Why"
        assert screen.why.item == FIRST
        await bench.press(pilot, "enter")
        assert tab_of(app) == "Logs"


async def test_every_line_can_be_reached_with_up_and_down(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = WhyBench(monkeypatch)
    app = bench.app()
    async with app.run_test(size=(60, 12)) as pilot:
        screen = await bench.open(pilot, MINE)
        seen: set[str] = set()
        for key in ("down", "up"):
            for _ in range(2 * len(screen.why.lines)):
                seen.update(screen_text(app).splitlines())
                await pilot.press(key)
            if key == "down":
                assert screen.why.item == SETTING
        assert screen.why.scroll_offset.y == 0
        shown = {"".join(text for text, _ in line).rstrip()[1:] for line in screen.why.lines}
        assert not {text for text in shown if text} - {row[:59].rstrip()[1:] for row in seen}


async def test_x_lists_the_steps(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = WhyBench(monkeypatch)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, MINE)
        await bench.press(pilot, "tab", "tab")
        await bench.press(pilot, "X")
        golden("why_act", part_text(app, "#choose"))
        await bench.press(pilot, "3")
        assert isinstance(app.screen, ConfirmScreen)
        await bench.press(pilot, "escape", "X", "escape")
        assert isinstance(app.screen, JobScreen)


async def test_x_needs_a_verdict_with_steps_and_leave_to_act(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = WhyBench(monkeypatch, replace(HUNG, next=()))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, MINE)
        await bench.press(pilot, "X")
        assert isinstance(app.screen, JobScreen)
    bench = WhyBench(monkeypatch, read_only=True)
    app = bench.app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await bench.on_spot(pilot, CANCEL)
        await bench.press(pilot, "X")
        assert "does nothing here" in said(app)
        await bench.press(pilot, "enter")
        assert not isinstance(app.screen, ConfirmScreen), "read-only is read-only"


async def test_the_cursor_stays_with_its_item_when_the_verdict_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = WhyBench(monkeypatch)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.on_spot(pilot, CANCEL)
        before = cursor_row(app)
        await bench.judged(pilot, replace(HUNG, evidence=(*HUNG.evidence, FIRST, OTHER)))
        assert screen.why.item == CANCEL
        assert cursor_row(app) == before, "nothing jumps under the eyes"
        for _ in range(3):
            await bench.advance(pilot, 1)
        assert cursor_row(app) == before
        await pilot.resize_terminal(60, 30)
        await pilot.pause()
        assert screen.why.item == CANCEL


async def test_a_proof_that_grows_keeps_the_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = WhyBench(monkeypatch)
    app = bench.app()
    async with app.run_test(size=(80, 60)) as pilot:
        screen = await bench.on_spot(pilot, OTHER)
        await bench.press(pilot, "up")
        grown = replace(FIRST, line=402, text="step 00401 loss 2.40")
        await bench.judged(pilot, replace(HUNG, evidence=(grown, OTHER)))
        assert screen.why.item == grown


async def test_when_the_item_is_gone_nothing_else_is_acted_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = WhyBench(monkeypatch)
    app = bench.app()
    async with app.run_test(size=(80, 60), notifications=True) as pilot:
        screen = await bench.on_spot(pilot, COPIED)
        await bench.judged(pilot, replace(HUNG, next=(EXPLAIN, CANCEL)))
        assert screen.why.item is None
        await bench.press(pilot, "enter")
        assert "what the cursor was on is gone" in said(app)
        assert isinstance(app.screen, JobScreen)
        await bench.press(pilot, "down")
        assert screen.why.item is not None


async def test_a_click_puts_the_cursor_and_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = WhyBench(monkeypatch)
    app = bench.app()
    async with app.run_test(size=(80, 60)) as pilot:
        screen = await bench.open(pilot, MINE)
        row = next(
            at for at, line in enumerate(screen_text(app).splitlines()) if "scancel 4711" in line
        )
        await pilot.click("#why", offset=(10, row - screen.why.region.y))
        assert screen.why.item == CANCEL
        assert isinstance(app.screen, JobScreen)


async def test_runs_that_may_be_mixed_show_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = WhyBench(monkeypatch)
    bench.facts.given["logs_say"] = LogsSay(verdict=HUNG, tables=(TABLE,), only_newest=False)
    app = bench.app()
    async with app.run_test(size=(80, 60)) as pilot:
        await bench.open(pilot, MINE)
        assert "Collectives" not in screen_text(app)


async def test_an_array_is_not_cancelled_where_a_task_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = NextStep("end all", "scancel 4711", "write", "")
    judge_as(monkeypatch, replace(HUNG, next=(whole,)))
    bench = JobBench()
    app = bench.app()
    async with app.run_test(size=(80, 60)) as pilot:
        await bench.open(pilot, make_job("4711_3", nodes="gpu03"))
        await bench.press(pilot, "end", "enter")
        assert app.clipboard == "scancel 4711"
        assert isinstance(app.screen, JobScreen)


def test_equal_items_are_told_apart() -> None:
    page = why_page(WhyState(verdict=replace(HUNG, evidence=(FIRST,) * 3)), START, 80)
    first, second, third, *_ = page.spots
    assert {spot.first for spot in (first, second, third)} == {
        first.first,
        first.first + 3,
        first.first + 6,
    }
    assert same_spot(page.spots, second) == second
    shorter = why_page(WhyState(verdict=replace(HUNG, evidence=(FIRST,))), START, 80)
    assert same_spot(shorter.spots, third) == shorter.spots[0]


@given(HOSTILE, HOSTILE, st.integers(1, 140))
def test_hostile_text_stands_on_the_page_unharmed(one: str, two: str, width: int) -> None:
    verdict = replace(
        HUNG,
        summary=one,
        culprits=(Culprit(rank=11, host=two, reason=one),),
        evidence=(proof(one, None, two, says=one, host=two),),
        against=(proof(two, 3, one),),
        missing=(Missing(one, two, one),),
        next=(NextStep(two, one, "write", two),),
    )
    table = replace(TABLE, group=two)
    page = why_page(WhyState(verdict=verdict, tables=(table,), note=one), START, width)
    harmless(page.lines)
    for spot in page.spots:
        assert 0 <= spot.first < spot.end <= len(page.lines)
    if width >= 20:
        assert all(line_width(line) <= width for line in page.lines)
