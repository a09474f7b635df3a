"""The Jobs screen, driven by keys over a queue that answers when told to."""

import random
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from textual import events

from slurmtop.model.facts import JobFacts
from slurmtop.model.ids import JobKey
from slurmtop.model.job import AccountingRecord, Job
from slurmtop.model.snapshot import SourceHealth, Trouble
from slurmtop.model.verdict import Confidence, State, Verdict
from slurmtop.ui.app import SlurmtopApp
from slurmtop.ui.screens.confirm import ConfirmScreen
from slurmtop.ui.screens.jobs import JobsScreen
from slurmtop.ui.widgets.rows import Rows
from tests.build import make_job, make_state, move_to_key
from tests.fakes import START, FakeClock
from tests.ui.golden import FOLDER, Golden, screen_text
from tests.ui.harness import Bench, burst

DOWN = "The Slurm controller on ctl1 does not answer."


def queue() -> list[Job]:
    """A bit of everything that a person may have in the queue."""
    return [
        make_job("4711", name="llama-70b", gpus=64, nodes="gpu[01-08]", node_count=8, ran_s=11_045),
        make_job("4715", name="eval", gpus=1, ran_s=65, limit_s=600, restarts=1),
        make_job("4720", "COMPLETING", name="prep", nodes="cpu07", gpus=0),
        make_job("4723", "PENDING", name="llama-70b", gpus=64, node_count=8, nodes=None),
        make_job("4724", "PENDING", name="later", reason="JobHeldUser", gpus=8),
        *(make_job(f"500_{n}", name="sweep", gpus=1, ran_s=300) for n in range(12)),
        *(make_job(f"500_{n}", "PENDING", name="sweep", gpus=1) for n in (12, 13)),
        make_job("500_14", "FAILED", name="sweep", gpus=1),
        make_job("500_[15-999%12]", "PENDING", name="sweep", reason="JobArrayTaskLimit", gpus=1),
        make_job("93+0", name="coupled", gpus=0, nodes="cpu01", ran_s=50_000),
        make_job("93+1", name="coupled", gpus=8, nodes="gpu09", ran_s=50_000),
    ]


def jobs_screen(app: SlurmtopApp) -> JobsScreen:
    screen = app.screen_stack[0]
    assert isinstance(screen, JobsScreen)
    return screen


def cursor(app: SlurmtopApp) -> str:
    row = jobs_screen(app).view.cursor_row
    assert row is not None
    return row.key.id


def rows_of(app: SlurmtopApp) -> Rows[Any]:
    return app.screen_stack[0].query_one(Rows)


# Each state of the data has its own look


async def test_loading(golden: Golden) -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        bench.queue.asking()
        await bench.advance(pilot, 7)
        golden("jobs-loading", app)


async def test_fresh(golden: Golden) -> None:
    bench = Bench(calls_last_minute=lambda: 6)
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        golden("jobs-fresh-80", app)


async def test_wide_with_everybody(golden: Golden) -> None:
    bench = Bench(calls_last_minute=lambda: 6, read_only=True, private_data=True)
    app = bench.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.press("a")
        await bench.advance(pilot, 2)
        others = [make_job("88", user="bob", account="bio"), make_job("89", "TIMEOUT", user="cy")]
        await bench.answer(pilot, [*queue(), *others])
        move_to_key(jobs_screen(app).view, JobKey("", "93"))
        await pilot.press("enter", "j", "space")
        golden("jobs-fresh-140", app)


async def test_empty(golden: Golden) -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [])
        golden("jobs-empty", app)


async def test_empty_of_everybody_says_what_may_be_hidden() -> None:
    bench = Bench(private_data=True)
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("a")
        await bench.advance(pilot, 2)
        await bench.answer(pilot, [])
        assert "No jobs that you may see" in screen_text(app)
        assert "Some jobs may be hidden" in screen_text(app)


async def test_stale_keeps_the_rows(golden: Golden) -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        fresh = rows_of(app).render_line(1)
        await bench.advance(pilot, 41)
        await bench.fail(pilot, DOWN)
        golden("jobs-stale", app)
        assert rows_of(app).old
        stale = rows_of(app).render_line(1)
        assert [part.style for part in fresh] != [part.style for part in stale], "greyed"
        assert screen_text(app).count("llama-70b") == 2
        await bench.advance(pilot, 30)
        assert "  1:05 " in screen_text(app), "old rows do not tick"
        await bench.answer(pilot, queue())
        assert not rows_of(app).old


async def test_no_answer_ever(golden: Golden) -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.fail(pilot, DOWN)
        await bench.advance(pilot, 3)
        golden("jobs-silent", app)


async def test_refused(golden: Golden) -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.fail(pilot, "Slurm lets only operators see the queue.", trouble=Trouble.DENIED)
        golden("jobs-refused", app)


async def test_six_states_look_different() -> None:
    names = ("loading", "fresh-80", "empty", "stale", "silent", "refused")
    texts = [(FOLDER / f"jobs-{name}.txt").read_text(encoding="utf-8") for name in names]
    assert len(set(texts)) == len(texts)


async def test_a_call_that_hangs_is_said_and_ticks() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        await bench.advance(pilot, 20)
        bench.queue.asking()
        await bench.advance(pilot, 12)
        assert "slow: no answer for 12 s" in screen_text(app)
        await bench.advance(pilot, 1)
        assert "slow: no answer for 13 s" in screen_text(app)
        await bench.advance(pilot, 30)
        assert "stale: last answer 63 s ago; no answer for 43 s" in screen_text(app)
        assert rows_of(app).old


async def test_a_failed_poll_keeps_counts_and_ages() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(120, 24)) as pilot:
        await bench.answer(pilot, queue())
        before = screen_text(app).splitlines()[0]
        await bench.advance(pilot, 60)
        await bench.fail(pilot, DOWN)
        assert screen_text(app).splitlines()[0] == before
        assert "next try in 40 s" in screen_text(app)
        await bench.advance(pilot, 5)
        assert "next try in 35 s" in screen_text(app)


async def test_an_outage_after_an_empty_answer_is_not_empty_for_sure() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [])
        await bench.advance(pilot, 30)
        await bench.fail(pilot, DOWN)
        assert "That may have changed" in screen_text(app)


async def test_a_priority_is_shown_to_its_last_digit() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(120, 24)) as pilot:
        high = [make_job(f"80{n}", "PENDING", priority=4_294_901_760 - n) for n in range(10, 13)]
        await bench.answer(pilot, high)
        text = screen_text(app)
        assert all(str(job.priority) in text for job in high)


async def test_a_job_that_left_says_that_its_result_is_not_known() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(120, 24)) as pilot:
        await bench.answer(pilot, [make_job("8001"), make_job("8002")])
        await bench.advance(pilot, 20)
        await bench.answer(pilot, [make_job("8002")])
        assert "ended, result not known yet" in screen_text(app)
        await bench.advance(pilot, 300)
        assert "ended, result unknown: slurmtop why 8001" in screen_text(app)


def facts_with(job: Job, word: str, submit: datetime | None) -> Any:
    async def gather(asked: str, **_how: Any) -> JobFacts:
        record = AccountingRecord(id=job.id, user=job.user, state=make_state(word), submit=submit)
        return JobFacts(asked=asked, cluster="", now=START, job=job, history=(record,))

    return gather


@pytest.mark.parametrize(
    ("word", "same", "shown"),
    [
        ("COMPLETED", True, "done"),
        ("RUNNING", True, "result not known yet"),
        ("COMPLETED", False, "result not known yet"),
    ],
)
async def test_opening_a_job_that_left_tells_how_it_ended(
    word: str, same: bool, shown: str
) -> None:
    job = make_job("8001")
    submit = job.submit if same else START
    bench = Bench(gather_facts=facts_with(job, word, submit))
    app = bench.app()
    async with app.run_test(size=(120, 24)) as pilot:
        await bench.answer(pilot, [job])
        await bench.answer(pilot, [])
        await pilot.press("enter")
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert shown in screen_text(app)


# Time


async def test_times_tick_without_an_answer() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job("1", ran_s=65, limit_s=600)])
        assert "1:05" in screen_text(app)
        await bench.advance(pilot, 2)
        text = screen_text(app)
        assert "1:07" in text
        assert "8:53" in text


async def test_only_rows_that_tick_are_painted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        hours = [make_job(str(n), ran_s=50_000) for n in range(2, 12)]
        await bench.answer(pilot, [make_job("1", ran_s=65), *hours])
        painted = count_lines(rows_of(app), monkeypatch)
        await bench.advance(pilot, 1)
        assert len(painted) == 1
        assert "1:06" in screen_text(app)


async def test_nothing_is_painted_when_nothing_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job(str(n), ran_s=50_001) for n in range(1, 12)])
        painted = count_lines(rows_of(app), monkeypatch)
        await bench.advance(pilot, 1)
        assert painted == []


def count_lines(rows: Rows[Any], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every ``render_line`` from now on; the header line is not counted."""
    painted: list[int] = []
    real = rows.render_line

    def counted(y: int) -> Any:
        if y:
            painted.append(y)
        return real(y)

    monkeypatch.setattr(rows, "render_line", counted)
    return painted


# Many rows


async def test_20_000_rows_cost_what_is_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(120, 40)) as pilot:
        jobs = [make_job(str(n), "PENDING", waits_s=50_000) for n in range(1, 20_001)]
        rows = rows_of(app)
        painted = count_lines(rows, monkeypatch)
        await bench.answer(pilot, jobs)
        assert 0 < len(painted) <= 2 * rows.size.height
        painted.clear()
        await pilot.press("j")
        assert 0 < len(painted) <= 2
        painted.clear()
        await pilot.press("G")
        assert 0 < len(painted) <= rows.size.height
        assert cursor(app) == "20000"
        view = jobs_screen(app).view
        before = view.rebuilds
        painted.clear()
        await bench.advance(pilot, 20)
        painted.clear()
        await bench.answer(pilot, list(jobs))
        assert view.rebuilds == before
        assert painted == []
        await bench.answer(pilot, [*jobs[:-2], jobs[-1]])
        assert cursor(app) == "20000"


# Keys


async def test_moving_about() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        jobs = [make_job(str(n), ran_s=10_000 - n) for n in range(1, 101)]
        await bench.answer(pilot, jobs)
        steps = [("j", "2"), ("down", "3"), ("k", "2"), ("G", "100"), ("up", "99"), ("g", "1")]
        for key, expected in steps:
            await pilot.press(key)
            assert cursor(app) == expected
        await pilot.press("pagedown")
        page = rows_of(app).page
        assert cursor(app) == str(1 + page)
        await pilot.press("pageup", "pageup")
        assert cursor(app) == "1"


async def test_the_cursor_keeps_its_job_and_its_line_when_rows_come_above() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        jobs = [make_job(str(n), ran_s=10_000 - n) for n in range(1, 101)]
        await bench.answer(pilot, jobs)
        for _ in range(50):
            await pilot.press("j")
        assert cursor(app) == "51"
        line = next(i for i, text in enumerate(screen_text(app).splitlines()) if text[:1] == ">")
        new = [make_job(str(n), ran_s=20_000) for n in range(200, 230)]
        await bench.answer(pilot, [*jobs, *new])
        assert cursor(app) == "51"
        shown = screen_text(app).splitlines()
        assert shown[line].startswith(">  51 ")


async def test_a_filter_opened_before_the_screen_has_settled_keeps_the_keys() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        await pilot.press("slash")
        # A busy screen is painted first; its mount event comes behind the key then.
        jobs_screen(app).on_mount()
        await pilot.press(*"eval")
        assert jobs_screen(app).view.query.text == "eval"


async def test_filter_takes_letters_as_text() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        await pilot.press("slash", *"qaKs?:t1!")
        assert app.is_running
        assert len(app.screen_stack) == 1
        assert jobs_screen(app).view.query.text == "qaKs?:t1!"
        assert not app.feed.all_users
        await pilot.press("escape")
        assert jobs_screen(app).view.query.text == ""
        assert app.focused is rows_of(app)


async def test_a_burst_of_keys_is_taken_in_order() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        burst(app, "jj/gpu:>=64Ka")
        await pilot.pause()
        assert len(app.screen_stack) == 1
        assert jobs_screen(app).view.query.text == "gpu:>=64Ka"
        assert not app.feed.all_users


async def test_a_burst_that_ends_the_filter_acts_on_the_list_again() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        burst(app, "/gpu:64\rj")
        await pilot.pause()
        await pilot.pause()
        assert jobs_screen(app).view.query.text == "gpu:64"
        assert jobs_screen(app).view.cursor_index == 1


async def test_a_dialog_is_not_answered_before_it_is_up() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job("1")])
        burst(app, "Ky")
        await pilot.pause()
        assert isinstance(app.screen, ConfirmScreen)


async def test_filter_is_kept_by_enter_and_cleared_by_escape() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        await pilot.press("slash", *"name:eval", "enter")
        assert len(jobs_screen(app).view.rows) == 1
        assert "1 of 1,007 jobs" in screen_text(app)
        await pilot.press("escape")
        assert len(jobs_screen(app).view.rows) > 1
        assert "filter:" not in screen_text(app)


async def test_a_filter_that_finds_nothing(golden: Golden) -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        await pilot.press("slash", *"usr:anna nothing")
        golden("jobs-filter-nothing", app)


async def test_paste_into_the_list_does_nothing() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        before = screen_text(app)
        app.post_message(events.Paste("Kqa2/\n"))
        await pilot.pause()
        assert app.is_running
        assert screen_text(app) == before


async def test_paste_into_the_filter_is_text() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        await pilot.press("slash")
        app.post_message(events.Paste("eval"))
        await pilot.pause()
        assert jobs_screen(app).view.query.text == "eval"


async def test_fold_and_unfold() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        move_to_key(jobs_screen(app).view, JobKey("", "500"))
        await pilot.press("enter")
        assert " 500_3" in screen_text(app)
        await pilot.press("j", "o")
        assert " 500_3" not in screen_text(app)
        assert cursor(app) == "500"


async def test_marks_and_what_they_say() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        await pilot.press("space", "space")
        assert "2 marked" in screen_text(app)
        assert screen_text(app).count("\n *") == 2
        await pilot.press("escape")
        assert "marked" not in screen_text(app)


async def test_sort_is_named_and_turned_round() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        await pilot.press("s", "i")
        assert "by id, reversed" in screen_text(app)
        assert "JOB▴" in screen_text(app)


async def test_problems_only() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        await pilot.press("exclamation_mark")
        keys = {row.key.id for row in jobs_screen(app).view.rows}
        assert keys == {"4724", "500_14"}
        assert "only problems" in screen_text(app)


async def test_what_a_verdict_of_this_session_called_hung_needs_somebody() -> None:
    hung = make_job("4711")
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [hung, make_job("4712")])
        await pilot.press("exclamation_mark")
        for state, seen in ((State.HUNG, "4711"), (State.HEALTHY, ""), (State.FAILED, "4711")):
            app.last_verdict(hung.key, verdict_of(state))
            await pilot.pause()
            assert " ".join(row.key.id for row in jobs_screen(app).view.rows) == seen
        # What is over says itself how it ended.
        await bench.answer(pilot, [make_job("4711", "COMPLETED"), make_job("4712")])
        assert "Nothing needs you" in screen_text(app)


def verdict_of(state: State) -> Verdict:
    return Verdict(job=None, state=state, confidence=Confidence.HIGH, summary="")


async def test_no_problem_is_said() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job("4711")])
        await pilot.press("exclamation_mark")
        assert "Nothing needs you" in screen_text(app)


async def test_all_users_asks_anew_and_shows_the_old_rows_meanwhile() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(100, 24)) as pilot:
        await bench.answer(pilot, queue())
        first = bench.queue.poller
        assert first.user == "anna"
        await pilot.press("a")
        await bench.advance(pilot, 2)
        assert first.stopped
        assert bench.queue.poller.user is None
        bench.queue.poller.on_health(bench.queue.health.__class__("queue", interval_s=20.0))
        await pilot.pause()
        assert "loading: asking Slurm for everybody's jobs" in screen_text(app)
        assert "llama-70b" in screen_text(app)
        await bench.answer(pilot, [*queue(), make_job("88", user="bob")])
        assert "bob" in screen_text(app)
        await pilot.press("a")
        await bench.advance(pilot, 2)
        await bench.answer(pilot, queue())
        assert "bob" not in screen_text(app)
        assert not app.book.gone


async def test_other_peoples_rows_are_not_called_mine_nor_fresh_until_the_answer() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(100, 24)) as pilot:
        await pilot.press("a")
        await bench.advance(pilot, 2)
        await bench.answer(pilot, [*queue(), make_job("88", user="bob")])
        assert "USER" in screen_text(app)
        assert not rows_of(app).old
        await pilot.press("a")
        text = screen_text(app)
        assert "everybody" in text.splitlines()[0]
        assert "USER" in text
        assert rows_of(app).old
        await bench.advance(pilot, 2)
        await bench.answer(pilot, queue())
        text = screen_text(app)
        assert "jobs of anna" in text.splitlines()[0]
        assert "USER" not in text
        assert not rows_of(app).old


async def test_another_poller_does_not_end_an_outage() -> None:
    reader = FakeClock()
    bench = Bench(data_clock=reader, speed=20.0)
    app = bench.app()
    async with app.run_test(size=(120, 24)) as pilot:
        await bench.advance(pilot, 30)
        await bench.answer(pilot, queue())
        good_at = reader.now()
        bench.queue.health = replace(bench.queue.health, good_at=good_at)
        bench.queue.poller.on_health(bench.queue.health)
        await bench.fail(pilot, "The controller does not answer.")
        await pilot.press("a")
        await bench.advance(pilot, 40)
        bench.queue.health = SourceHealth("queue", interval_s=20.0)
        bench.queue.asking()
        await pilot.pause()
        assert app.health.failure is not None
        assert app.health.good_at == good_at
        assert "The controller does not answer since" in screen_text(app)
        assert "jobs of anna" in screen_text(app)
        since = app.health.failing_since
        await bench.fail(pilot, "Still nothing.")
        assert app.health.failing_since == since
        assert "Still nothing" in screen_text(app)
        await bench.answer(pilot, queue())
        assert app.health.failure is None


async def test_answers_after_the_clock_stepped_back_are_shown() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(100, 24)) as pilot:
        await bench.answer(pilot, [make_job("1")])
        bench.clock.step(-3600)
        await bench.advance(pilot, 1)
        assert "the clock of this machine stepped back" in screen_text(app)
        await bench.answer(pilot, [make_job("2")])
        assert {job.key.id for job in app.book.jobs} == {"2"}
        assert "stepped back" not in screen_text(app)


async def test_pressing_a_many_times_asks_no_more_than_every_two_seconds() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press(*"aaaaaa")
        assert len(bench.queue.pollers) == 1
        await bench.advance(pilot, 2)
        assert len(bench.queue.pollers) == 2


async def test_refresh_at_most_every_two_seconds() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("r", "r", "r")
        assert bench.queue.poller.pokes == 1
        await bench.advance(pilot, 2)
        await pilot.press("r")
        assert bench.queue.poller.pokes == 2


async def test_no_key_for_ten_minutes_slows_down_and_a_key_restores() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("j")
        await bench.advance(pilot, 599)
        assert bench.queue.poller.factor == 1.0
        await bench.advance(pilot, 2)
        assert bench.queue.poller.factor == 6.0
        await bench.answer(pilot, queue())
        assert "idle, asking less often" in screen_text(app)
        await pilot.press("j")
        assert bench.queue.poller.factor == 1.0
        assert bench.queue.poller.pokes == 1


async def test_copy_gives_the_id() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job("4711")])
        await pilot.press("y")
        assert app.clipboard == "4711"


async def test_click_moves_the_cursor() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job(str(n), ran_s=1_000 - n) for n in range(1, 9)])
        await pilot.click(Rows, offset=(10, 4))
        assert cursor(app) == "4"
        await pilot.click(Rows, offset=(10, 0))
        await pilot.click(Rows, offset=(10, 15))
        assert cursor(app) == "4"


# Hostile and odd text


@pytest.mark.parametrize(
    "name",
    [
        "[experiment",
        "100%[x",
        "[/b]",
        "\x1b[2J\x1b[31m",
        "exe\u202egnp.x",
        "a\nb",
        "训练任务训练任务训练任务",
    ],
)
async def test_names_are_only_text(name: str) -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job("1", name=name, nodes=name), make_job("2")])
        text = screen_text(app)
        assert "\x1b" not in text
        assert "\u202e" not in text
        lines = text.splitlines()
        assert len(lines) == 24
        one = next(line for line in lines if line.startswith(">  1 "))
        assert "running" in one
        rows = rows_of(app)
        assert rows.render_line(1).cell_length == rows.render_line(2).cell_length == 80


async def test_at_80_columns_id_state_time_and_name_are_readable() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        job = make_job("57829110_9999", name="llama-70b-long", ran_s=65)
        await bench.answer(pilot, [job])
        line = next(text for text in screen_text(app).splitlines() if text.startswith(">"))
        for word in ("57829110_9999", "running", "1:05", "llama-70b"):
            assert word in line


async def test_any_size_survives() -> None:
    chance = random.Random(7)
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, queue())
        await pilot.press("slash", "e")
        for step in range(80):
            width = min(chance.randint(10, 300), chance.randint(10, 300))
            height = min(chance.randint(3, 100), chance.randint(3, 100))
            await pilot.resize_terminal(width, height)
            if step % 20 == 0:
                await pilot.press("escape", "question_mark")
            if step % 20 == 10:
                await pilot.press("escape", "j", "slash", "t")
        await pilot.resize_terminal(80, 24)
        await pilot.press("escape", "escape", "escape")
        assert len(app.screen_stack) == 1
        assert "llama-70b" in screen_text(app)
