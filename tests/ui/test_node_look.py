"""The Why tab looks at the nodes: when, how far it is, how it ends, and what stays of it."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slurmtop.model.facts import JobFacts, LogsSay
from slurmtop.model.live import LiveFacts
from slurmtop.model.verdict import (
    Confidence,
    Culprit,
    Evidence,
    Fate,
    NextStep,
    SourceFate,
    State,
    Verdict,
)
from tests.build import make_job, make_state
from tests.fakes import START
from tests.ui.golden import Golden, screen_text
from tests.ui.job_bench import JOB, OUT, judge_as
from tests.ui.look_bench import HOSTS, LookBench, live, sample, two_looks
from tests.ui.test_app import colours_of
from tests.ui.test_why_tab import said

SIZE = (80, 24)
QUIET = Verdict(
    job="4711", state=State.UNKNOWN, summary="its log has been quiet for 90 s", made_at=START
)
HUNG = Verdict(
    job="4711",
    state=State.HUNG,
    cls="rank-elsewhere",
    confidence=Confidence.HIGH,
    summary="Rank 5 on gpu02 reads a pipe while the others wait for it",
    culprits=(Culprit(rank=5, host="gpu02", pid=4_005, reason="reads a pipe at data.py:12"),),
    evidence=(
        Evidence(
            family="stack",
            source="py-spy dump --nonblocking --json -p 4005",
            host="gpu02",
            text="read_batch (data.py:12)",
            says="not in the collective that 7 ranks wait in",
        ),
    ),
    made_at=START,
    sources=(
        SourceFate(source="slurm", fate=Fate.ANSWERED),
        SourceFate(source="stacks", fate=Fate.ANSWERED, hosts=HOSTS),
        SourceFate(
            source="kernel log",
            fate=Fate.REFUSED,
            hosts=HOSTS,
            why="only root may read it there",
            command="ssh gpu01 sudo -n dmesg -T",
        ),
        SourceFate(source="ras", fate=Fate.NOT_ASKED, why="a later version reads it"),
    ),
)


def judge_by_live(monkeypatch: pytest.MonkeyPatch) -> list[LiveFacts | None]:
    """Two whole looks make the verdict hung; what was judged by is kept."""
    seen: list[LiveFacts | None] = []

    def judge(facts: JobFacts) -> Verdict:
        seen.append(facts.live)
        return HUNG if facts.live is not None and facts.live.two_samples else QUIET

    monkeypatch.setattr("slurmtop.ui.screens.job_judging.explain_job", judge)
    return seen


async def test_a_quiet_log_earns_a_look_and_each_news_refines_the_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge_by_live(monkeypatch)
    bench = LookBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, JOB)
        assert "quiet for 90 s" in screen_text(app), "the first answer waits for no node"
        await bench.advance(pilot, 1)
        assert [asked for _, asked in bench.nodes.calls] == [False]
        assert bench.nodes.calls[0][0].job is not None
        text = screen_text(app)
        assert "looking at its processes on gpu[01-02] …; esc stops" in text
        began = bench.clock.now()
        bench.nodes.tell(live(sample(began, HOSTS[:1], whole=False)))
        await bench.settled(pilot)
        assert "first look at gpu[01-02]: 1 of 2 nodes answered, reading stacks …" in screen_text(
            app
        )
        await bench.advance(pilot, 1)
        bench.nodes.tell(live(sample(began)))
        await bench.settled(pilot)
        assert "looked at gpu[01-02] once; the second look is due in 4 s" in screen_text(app)
        await bench.advance(pilot, 4)
        assert "the second look is due now" in screen_text(app)
        await bench.advance(pilot, 1)
        bench.nodes.tell(two_looks(began))
        bench.nodes.tell(None)
        await bench.settled(pilot)
        text = screen_text(app)
        assert "Rank 5 on gpu02 reads a pipe" in text
        assert "nodes looked at twice, 0 s ago; p looks again" in text
        assert bench.nodes.open == 0


async def test_at_most_one_look_at_a_time_and_one_unasked_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge_as(monkeypatch, QUIET)
    bench = LookBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, JOB)
        await bench.advance(pilot, 1)
        bench.nodes.tell(None)
        await bench.settled(pilot)
        await bench.advance(pilot, 57)
        assert len(bench.nodes.calls) == 1
        await bench.advance(pilot, 4)
        assert len(bench.nodes.calls) == 2
        text = await bench.press(pilot, "p")
        assert len(bench.nodes.calls) == 2, "one goes on already"
        assert "looking at its processes" in text
        assert not list(app._notifications), "its line says so: nothing covers the proof"
        assert bench.nodes.most_open == 1


async def test_a_person_asks_any_time_with_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_as(monkeypatch, QUIET)
    bench = LookBench(quiet_s=3)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, JOB)
        await bench.advance(pilot, 30)
        assert bench.nodes.calls == [], "its log was written just now"
        assert "p looks at its processes on the nodes" in screen_text(app)
        await bench.press(pilot, "p")
        assert [asked for _, asked in bench.nodes.calls] == [True]
        bench.nodes.tell(None)
        await bench.settled(pilot)
        await bench.press(pilot, "p")
        assert len(bench.nodes.calls) == 2, "no minute has to go by"
        assert bench.nodes.most_open == 1


@pytest.mark.parametrize("how", ["escape", "tab", "K", "1"])
async def test_a_look_ends_with_the_tab(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    judge_as(monkeypatch, QUIET)
    bench = LookBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.open(pilot, JOB)
        await bench.advance(pilot, 1)
        assert bench.nodes.open == 1
        await bench.press(pilot, how)
        assert bench.nodes.open == 0, "nothing of it is left"
        if how == "escape":
            assert app.screen is screen, "the first escape stops the look"
            assert "the look at its nodes was stopped; p looks again" in screen_text(app)
        if how == "tab":
            await bench.advance(pilot, 130)
            assert len(bench.nodes.calls) == 1, "another tab is shown"
            text = await bench.press(pilot, "shift+tab")
            assert "the look at its nodes ended with the tab; p looks again" in text
            await bench.advance(pilot, 2)
            assert len(bench.nodes.calls) == 2


async def test_a_look_that_never_answers_is_given_up_and_holds_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge_as(monkeypatch, QUIET)
    bench = LookBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, JOB)
        await bench.advance(pilot, 20)
        assert "looking at its processes on gpu[01-02] … for 19 s" in screen_text(app)
        bench.runner.files[OUT] = b"step 1\nstep 2\n"
        bench.runner.mtimes[OUT] = bench.clock.now()
        await bench.advance(pilot, 30)
        await bench.settled(pilot)
        assert "did not end within 45 s and was given up; p looks again" in screen_text(app)
        assert bench.nodes.open == 0
        assert len(bench.nodes.calls) == 1, "its log goes on: no suspicion is left"


async def test_a_fault_of_ours_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_as(monkeypatch, QUIET)
    bench = LookBench()
    bench.nodes.error = RuntimeError("[/bold] broke")
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, JOB)
        await bench.press(pilot, "p")
        bench.nodes.tell(None)
        await bench.settled(pilot)
        assert "the look at its nodes broke: [/bold] broke; p looks again" in screen_text(app)


async def test_what_the_nodes_told_stays_until_it_is_overtaken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged = judge_by_live(monkeypatch)
    bench = LookBench()
    app = bench.app()
    async with app.run_test(size=(100, 50)) as pilot:
        await bench.open(pilot, JOB)
        await bench.press(pilot, "p")
        bench.nodes.tell(two_looks(bench.clock.now()))
        bench.nodes.tell(None)
        await bench.settled(pilot)
        assert "Rank 5" in screen_text(app)
        await bench.press(pilot, "r")
        assert judged[-1] is not None, "Slurm was asked anew, and the nodes' word stays"
        assert "Rank 5" in screen_text(app)
        bench.runner.files[OUT] = b"step 1\nstep 2\n"
        bench.runner.mtimes[OUT] = bench.clock.now() + timedelta(seconds=12)
        await bench.advance(pilot, 16)
        await bench.settled(pilot)
        text = screen_text(app)
        assert judged[-1:] == [None], "it went on: nobody is judged by the past"
        assert "Rank 5 on gpu02 reads" not in text
        assert "its log has grown since; p looks again" in text
        assert "as seen then: its log has grown since" in text


async def test_a_new_look_knows_less_at_first_and_takes_nothing_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge_by_live(monkeypatch)
    bench = LookBench()
    app = bench.app()
    async with app.run_test(size=(100, 50)) as pilot:
        await bench.open(pilot, JOB)
        await bench.press(pilot, "p")
        bench.nodes.tell(two_looks(bench.clock.now()))
        bench.nodes.tell(None)
        await bench.settled(pilot)
        await bench.press(pilot, "p")
        bench.nodes.tell(live(sample(bench.clock.now(), HOSTS[:1], whole=False)))
        await bench.advance(pilot, 1)
        assert "Rank 5 on gpu02 reads" in screen_text(app)
        assert "1 of 2 nodes answered" in screen_text(app)


async def test_another_run_of_the_job_is_not_judged_by_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged = judge_by_live(monkeypatch)
    bench = LookBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, JOB)
        await bench.press(pilot, "p")
        bench.nodes.tell(two_looks(bench.clock.now()))
        bench.nodes.tell(None)
        await bench.settled(pilot)
        await bench.press(pilot, "p")
        again = replace(JOB, restarts=1, submit=START, start=START + timedelta(seconds=1))
        await bench.answer(pilot, (again,))
        await bench.settled(pilot)
        assert bench.nodes.open == 0
        assert judged[-1] is None


async def test_nobody_is_looked_at_who_does_not_run_or_is_somebody_elses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge_as(monkeypatch, QUIET)
    for job, key in (
        (make_job("4711", "PENDING"), "p"),
        (replace(JOB, state=make_state("COMPLETED")), "p"),
        (replace(JOB, user="bob"), ""),
    ):
        bench = LookBench()
        app = bench.app()
        async with app.run_test(size=SIZE) as pilot:
            await bench.open(pilot, job)
            await bench.advance(pilot, 5)
            if key:
                await bench.press(pilot, key)
            assert bench.nodes.calls == []


async def test_where_nodes_cannot_be_looked_at_nothing_of_it_is_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge_as(monkeypatch, QUIET)
    bench = LookBench(look_at_nodes=None)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, JOB)
        text = await bench.press(pilot, "p")
        assert "processes" not in text


async def test_logs_that_tell_of_a_hang_earn_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_as(monkeypatch, QUIET)
    bench = LookBench(quiet_s=1)
    bench.facts.given["logs_say"] = LogsSay(verdict=HUNG)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, JOB)
        await bench.advance(pilot, 1)
        assert len(bench.nodes.calls) == 1


async def test_nobody_there_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_as(monkeypatch, QUIET)
    bench = LookBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, JOB)
        for _ in range(20):
            bench.nodes.tell(None)
        await bench.advance(pilot, 1_800)
        assert 8 <= len(bench.nodes.calls) <= 11, "nobody is there after ten minutes"


@pytest.mark.parametrize("size", [(80, 24), (46, 30), (140, 50)])
async def test_where_the_ranks_are_at_several_sizes(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    judge_by_live(monkeypatch)
    bench = LookBench()
    app = bench.app()
    async with app.run_test(size=size) as pilot:
        await bench.open(pilot, JOB)
        await bench.press(pilot, "p")
        bench.nodes.tell(two_looks(bench.clock.now() - timedelta(seconds=6)))
        bench.nodes.tell(None)
        await bench.settled(pilot)
        golden(f"why_live_{size[0]}", app)


async def test_enter_copies_what_opens_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_as(monkeypatch, HUNG)
    bench = LookBench()
    app = bench.app()
    async with app.run_test(size=(80, 60)) as pilot:
        screen = await bench.open(pilot, JOB)
        text = await bench.press(pilot, "end")
        assert "kernel log: refused on gpu[01-02]: only root may read it there" in text
        item: Any = screen.why.item
        assert isinstance(item, SourceFate)
        await bench.press(pilot, "enter")
        assert app.clipboard == "ssh gpu01 sudo -n dmesg -T"


async def test_a_look_that_is_wanted_before_slurm_answers_begins_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge_as(monkeypatch, QUIET)
    bench = LookBench(quiet_s=1)
    bench.facts.gate.clear()
    app = bench.app()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await bench.open(pilot, JOB)
        await bench.press(pilot, "p")
        assert "as soon as Slurm has answered" in said(app)
        assert bench.nodes.calls == []
        bench.facts.gate.set()
        await bench.settled(pilot)
        assert [asked for _, asked in bench.nodes.calls] == [True]


async def test_a_stack_is_shown_line_by_line_and_no_file_of_this_machine_is_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stack = replace(HUNG.evidence[0], text="    select (selectors.py:415)\n    step (train.py:37)")
    state = replace(stack, family="process", source="/proc/4005 on gpu02", text="S pipe_read")
    judge_as(monkeypatch, replace(HUNG, evidence=(stack, state)))
    bench = LookBench(quiet_s=1)
    app = bench.app()
    async with app.run_test(size=(80, 60)) as pilot:
        screen = await bench.open(pilot, JOB)
        text = screen_text(app)
        assert "\n  │ select (selectors.py:415)" in text
        assert "\n  │ step (train.py:37)" in text
        assert "process  /proc/4005 on gpu02" in text
        while screen.why.item != state:
            await bench.press(pilot, "down")
        await bench.press(pilot, "enter")
        assert screen.tab == 0
        assert app.clipboard == "S pipe_read"


async def test_news_of_hundreds_of_nodes_are_judged_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged = judge_by_live(monkeypatch)
    bench = LookBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, JOB)
        await bench.press(pilot, "p")
        before, began = len(judged), bench.clock.now()
        for _ in range(600):
            bench.nodes.tell(live(sample(began, HOSTS[:1], whole=False)))
        bench.nodes.tell(two_looks(began))
        bench.nodes.tell(None)
        await bench.settled(pilot)
        for _ in range(200):
            await bench.clock.advance(0)
            if bench.nodes.open == 0:
                break
        assert len(judged) - before <= 3
        last = judged[-1]
        assert last is not None
        assert last.two_samples, "the last word is always judged"


async def test_what_thousands_of_processes_tell_is_judged_beside_the_screen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged = judge_by_live(monkeypatch)
    monkeypatch.setattr("slurmtop.ui.screens.job_judging._MANY", 1)
    bench = LookBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.open(pilot, JOB)
        await bench.press(pilot, "p")
        bench.nodes.tell(two_looks(bench.clock.now()))
        bench.nodes.tell(None)
        await bench.settled(pilot)
        async with asyncio.timeout(20):
            while screen.why.state.verdict != HUNG or screen._judging:  # noqa: ASYNC110 - a thread
                await asyncio.sleep(0.01)
        assert judged[-1] is not None
        await pilot.pause()
        assert "Rank 5 on gpu02 reads a pipe" in screen_text(app)
        assert "nodes looked at twice" in screen_text(app)


async def test_the_step_that_says_look_again_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    again = NextStep("look again", "slurmtop why 4711", "read", "a second look tells")
    judge_as(monkeypatch, replace(HUNG, next=(again,)))
    bench = LookBench(quiet_s=1)
    app = bench.app()
    async with app.run_test(size=(80, 60)) as pilot:
        screen = await bench.open(pilot, JOB)
        while screen.why.item != again:
            await bench.press(pilot, "down")
        await bench.press(pilot, "enter")
        assert bench.nodes.calls == [], "nobody has looked at its nodes yet"
        await bench.press(pilot, "p")
        bench.nodes.tell(two_looks(bench.clock.now()))
        bench.nodes.tell(None)
        await bench.settled(pilot)
        await bench.press(pilot, "enter")
        assert len(bench.nodes.calls) == 2


async def test_the_logs_are_read_again_right_before_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what was written before it would count as growth during the look."""
    judge_as(monkeypatch, QUIET)
    bench = LookBench(quiet_s=1)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, JOB)
        bench.runner.files[OUT] = b"step 1\nstep 2\n"
        bench.runner.mtimes[OUT] = bench.clock.now() + timedelta(seconds=3)
        await bench.advance(pilot, 5)
        await bench.press(pilot, "p")
        (facts, _) = bench.nodes.calls[0]
        assert facts.logs[0].size == len(b"step 1\nstep 2\n")
        assert facts.now == bench.clock.now()


async def test_a_log_that_has_gone_on_takes_the_suspicion_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge_as(monkeypatch, QUIET)
    bench = LookBench()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, JOB)
        bench.runner.files[OUT] = b"step 1\nstep 2\n"
        bench.runner.mtimes[OUT] = bench.clock.now()
        await bench.advance(pilot, 2)
        assert bench.nodes.calls == []
        assert "p looks at its processes on the nodes" in screen_text(app)


async def test_without_colour_words_and_signs_still_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    judge_by_live(monkeypatch)
    bench = LookBench()
    app = bench.app()
    assert app.no_color
    async with app.run_test(size=(100, 50)) as pilot:
        await bench.open(pilot, JOB)
        await bench.press(pilot, "p")
        bench.nodes.tell(two_looks(bench.clock.now()))
        bench.nodes.tell(None)
        await bench.settled(pilot)
        lines = screen_text(app).splitlines()
        assert any(line.startswith("  ! rank 5") and " stands " in line for line in lines)
        assert any("7 ranks: 0-4, 6-7" in line and " stands " in line for line in lines)
        assert "  ! named by the verdict" in lines
        assert "kernel log: refused" in screen_text(app)
        assert colours_of(app) == set()
