"""Faults that other monitors were reported to have on the screen, with refreshes and actions.

Each test carries the id of the collection of such reports. Those that no test names are held by
tests of their rooms that say in words what they hold.
"""

import pytest

from slurmtop.collect.sacct import Accounting
from slurmtop.config import Config
from slurmtop.control.actions import Action, Asker
from slurmtop.control.cancel import plan_cancel
from slurmtop.control.execute import Executor
from slurmtop.control.outcome import Result
from slurmtop.control.read_back import QueueReadBack
from slurmtop.model.ports import Command, Completed
from slurmtop.model.text import cell_width, fit
from slurmtop.ui.screens.confirm import ConfirmScreen
from tests.build import make_job
from tests.cases.live import Polling
from tests.cases.product import CaseRunner, in_asked_form, until_done
from tests.fakes import START
from tests.ui.golden import screen_text
from tests.ui.harness import Bench
from tests.ui.test_jobs_screen import cursor

NAMES = ("训练任务训练", "e\u0301e\u0301e\u0301", "plain", "für-größe", "🙂🙂")


@pytest.mark.parametrize("width", [0, 1, 2, 3, 7, 8, 20])
@pytest.mark.parametrize("name", NAMES)
def test_B7_names_are_cut_and_padded_by_cells(name: str, width: int) -> None:
    assert cell_width(fit(name, width)) == width


async def test_B7_wide_names_leave_the_columns_in_place() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(100, 24)) as pilot:
        await bench.answer(pilot, [make_job(str(n), name=name) for n, name in enumerate(NAMES, 1)])
        rows = [line for line in screen_text(app).splitlines() if " gpu01" in line]
        assert len(rows) == len(NAMES)
        assert len({cell_width(line.partition(" gpu01")[0]) for line in rows}) == 1


def test_C1_nobody_is_asked_more_often_than_every_5_s() -> None:
    assert Config().queue_interval_s >= 5.0


async def test_C1_an_idle_screen_asks_at_the_configured_pace() -> None:
    runner = CaseRunner()
    runner.queue([{"id": "1", "raw_id": "1", "state": "RUNNING"}])
    starts = await Polling(runner).during(300.0)
    assert len(starts) <= 300 / 5


async def test_C2_failures_cost_the_controller_less_than_answers() -> None:
    good, bad = CaseRunner(), CaseRunner()
    good.queue([])
    words = b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
    bad.on_call("squeue *", lambda _command: Completed(1, b"", words, START, 0.1))
    polling = Polling(bad)
    failed, answered = await polling.during(600.0), await Polling(good).during(600.0)
    assert 0 < len(failed) < len(answered)
    assert polling.healths[-1].next_at is not None


async def test_C5_nothing_known_is_not_shown_as_none() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(100, 24)) as pilot:
        await bench.fail(pilot, "squeue does not reach the Slurm controller.")
        text = screen_text(app)
        assert "not an empty queue" in text
        for wrong in ("0 running", "R 0", "PD 0", "No jobs"):
            assert wrong not in text


async def test_C10_accounting_is_asked_for_named_jobs_since_their_submit() -> None:
    runner = CaseRunner()
    runner.accounting([])
    await until_done(runner.clock, Accounting(runner).history("4711", since=START))
    (argv,) = runner.asked("sacct")
    assert argv[argv.index("-j") + 1] == "4711"
    assert argv[argv.index("-S") + 1].startswith("2031-05-05T11:59")


async def test_C13_an_action_hits_the_job_that_was_under_the_cursor() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(100, 24)) as pilot:
        jobs = [make_job(str(n), ran_s=10_000 - n) for n in range(1, 301)]
        await bench.answer(pilot, jobs)
        await pilot.press(*"jjjjj")
        assert cursor(app) == "6"
        await bench.answer(pilot, [make_job("999", ran_s=50_000), *reversed(jobs)])
        await pilot.press("K")
        await pilot.pause()
        assert isinstance(app.screen, ConfirmScreen)
        assert [target.ids for target in app.screen.action.targets] == [("6",)]


class _Log:
    def record(self, entry: object) -> str | None:
        return None


async def test_E1_of_500_jobs_one_that_is_gone_stops_nothing() -> None:
    runner = CaseRunner()
    sent: set[str] = set()

    def scancel(command: Command) -> Completed:
        sent.update(command.argv[1:])
        words = b"scancel: error: Kill job error on job id 1250: Invalid job id specified\n"
        gone = "1250" in command.argv
        return Completed(1 if gone else 0, b"", words if gone else b"", START, 0.1)

    def squeue(command: Command) -> Completed:
        assert command.argv[command.argv.index("-u") + 1] == "anna"
        rows = [
            {"id": id, "raw_id": id, "state": "CANCELLED" if id in sent else "RUNNING"}
            for id in map(str, range(1_000, 1_600))
            if not sent or id != "1250"
        ]
        return Completed(0, in_asked_form(command.argv, rows), b"", START, 0.1)

    runner.on_call("scancel *", scancel)
    runner.on_call("squeue *", squeue)
    jobs = [make_job(str(n)) for n in range(1_000, 1_500)]
    action = plan_cancel(jobs, Asker(me="anna", now=START))
    assert isinstance(action, Action)
    read_back = QueueReadBack(runner)
    executor = Executor(runner, runner.clock, _Log(), read_only=False, read_back=read_back)
    outcome = await until_done(runner.clock, executor.execute(action))
    assert sent == {str(n) for n in range(1_000, 1_500)}
    assert outcome.count(Result.DONE) == 499
    assert [job.target.ids for job in outcome.jobs if job.result is Result.NO_SUCH_JOB] == [
        ("1250",)
    ]


async def test_E8_a_cancel_without_rows_is_a_hint_and_nothing_else() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(100, 24)) as pilot:
        await bench.answer(pilot, [])
        await pilot.press("K")
        await pilot.pause()
        assert not isinstance(app.screen, ConfirmScreen)
        assert "there is no job under the cursor to cancel" in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert len(app.screen_stack) == 1
    assert bench.runner.calls == []
