"""The Logs tab, driven by keys over files that grow, shrink, vanish or are refused."""

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.segment import Segment
from textual.pilot import Pilot

from slurmtop.collect.log_facts import read_log_facts
from slurmtop.model.facts import LogFacts, LogLine, LogStatus
from slurmtop.model.ports import FileStat, FileTimeout
from slurmtop.ui.present.log import LogBar, bar_line, no_log_lines
from slurmtop.ui.present.spans import line_width, plain
from slurmtop.ui.screens.job import JobScreen
from tests.build import make_job, make_state
from tests.fakes import START, FakeRunner
from tests.ui.golden import Golden, screen_text
from tests.ui.harness import burst
from tests.ui.job_bench import ERR, JOB, OUT, JobBench

SIZE = (80, 24)


class CountingRunner(FakeRunner):
    """Counts what a look at a file costs; a read may be held back."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.stats: list[str] = []
        self.read_gate: asyncio.Event | None = None

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        self.stats.append(path)
        return await super().stat(path, host)

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        if self.read_gate is not None:
            await self.read_gate.wait()
        return await super().read(path, offset, length, host)


def steps(count: int, start: int = 0) -> bytes:
    return b"".join(b"step %05d loss 2.41\n" % n for n in range(start, start + count))


class LogBench(JobBench):
    def __init__(self, out: bytes | Exception = b"", **given: Any) -> None:
        super().__init__()
        self.files = CountingRunner(self.clock)
        self.files.files = {OUT: out, ERR: b"warning: nothing\n"}
        object.__setattr__(self.services, "runner", self.files)
        self.facts.given.update(given)

    async def logs(self, pilot: Pilot[None], job: Any = JOB) -> JobScreen:
        screen = await self.open(pilot, job)
        await self.press(pilot, "tab", "tab")
        return screen

    async def write(self, pilot: Pilot[None], data: bytes | Exception, wait_s: float = 2) -> str:
        """Change the file, and let time pass until it has been looked at."""
        self.files.files[OUT] = data
        await self.advance(pilot, wait_s)
        await self.settled(pilot)
        return screen_text(pilot.app)


def log(label: str, path: str | None, status: LogStatus = LogStatus.READ, **more: Any) -> LogFacts:
    return LogFacts(label=label, path=path, status=status, **more)


async def test_a_growing_log_is_followed_from_its_end(golden: Golden) -> None:
    bench = LogBench(steps(400) + b"\x1b[32m 45%|####5\r\x1b[32m 46%|####6\x1b[0m\nhalf a li")
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.logs(pilot)
        assert "step 00399 loss 2.41" in screen_text(app)
        text = await bench.write(pilot, steps(400) + b" 46%|####6\nhalf a line\nstep 00401 los")
        assert "half a line\n" in text
        golden("logs_following", app)


async def test_a_half_written_line_is_dim() -> None:
    bench = LogBench(b"whole\nhalf")
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.logs(pilot)

        def style(y: int) -> Segment:
            return next(iter(screen.logs.view.render_line(y)))

        assert style(0).text == "whole"
        assert style(1).text == "half"
        assert style(0).style != style(1).style


async def test_it_is_looked_at_every_2_s_while_following_and_else_every_15() -> None:
    bench = LogBench(steps(100))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.press(pilot, "tab", "tab")
        assert len(bench.files.stats) == 1
        await bench.advance(pilot, 20)
        assert len(bench.files.stats) == 11
        await bench.press(pilot, "f", "f", "f")
        assert len(bench.files.stats) == 11
        await bench.advance(pilot, 2)
        assert len(bench.files.stats) == 12
        await bench.advance(pilot, 60)
        assert len(bench.files.stats) == 16
        await bench.press(pilot, "tab")
        before = len(bench.files.stats)
        await bench.advance(pilot, 120)
        assert len(bench.files.stats) == before, "the script is shown"
        await bench.press(pilot, "escape")
        await bench.advance(pilot, 120)
        assert len(bench.files.stats) == before


async def test_the_log_of_a_job_that_has_ended_is_looked_at_every_15_s() -> None:
    bench = LogBench(steps(100))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot, replace(JOB, state=make_state("FAILED"), end=START))
        await bench.advance(pilot, 60)
        assert bench.files.stats == []
        await bench.press(pilot, "tab", "tab")
        await bench.advance(pilot, 60)
        assert len(bench.files.stats) == 5


async def test_beside_the_verdict_a_log_that_stays_as_it_is_costs_a_stat_in_15_s() -> None:
    bench = LogBench(steps(100))
    bench.files.mtimes[OUT] = START
    bench.facts.given["logs"] = (await read_log_facts(bench.files, "stdout", OUT),)
    bench.files.stats.clear()
    bench.files.reads.clear()
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.open(pilot)
        await bench.advance(pilot, 59)
        assert bench.files.stats == [OUT] * 3
        assert bench.files.reads == []


async def test_the_waiting_rest_of_an_array_has_no_log_yet() -> None:
    bench = LogBench(logs=())
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.logs(pilot, make_job("4830_[76-999%8]", "PENDING"))
        assert "No log yet: these tasks of the array wait" in screen_text(app)


@pytest.mark.parametrize("later", [(), (log("stdout", None, LogStatus.UNKNOWN_PATH),)])
async def test_a_path_is_remembered_when_slurm_has_forgotten_the_job(later: Any) -> None:
    bench = LogBench(steps(3))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.logs(pilot)
        bench.facts.given["logs"] = later
        await bench.answer(pilot, ())
        await bench.settled(pilot)
        assert len(bench.facts.calls) == 2
        assert "step 00002 loss" in screen_text(app)


async def test_an_idle_log_is_not_read_again() -> None:
    bench = LogBench(steps(5_000))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.logs(pilot)
        reads = len(bench.files.reads)
        await bench.advance(pilot, 60)
        assert len(bench.files.reads) == reads


def wide(count: int) -> bytes:
    """Lines of 400 bytes: ten pages of the screen are one block of the file."""
    return b"".join(b"step %05d loss 2.41" % n + b" " * 380 + b"\n" for n in range(count))


def numbers_in(seen: str) -> set[int]:
    return {int(number) for number in re.findall(r"step (\d{5}) loss", seen)}


async def test_scrolling_up_stops_following_and_brings_older_parts() -> None:
    bench = LogBench(wide(800))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.logs(pilot)
        seen = screen_text(app)
        assert "following" in seen
        await bench.press(pilot, "k")
        assert not screen.logs.view.follow
        text = await bench.write(pilot, wide(810))
        assert "step 00809" not in text
        for _ in range(40):
            seen += await bench.press(pilot, "pageup")
        numbers = numbers_in(seen)
        assert min(numbers) < 300
        assert set(range(min(numbers), 800)) <= numbers
        text = await bench.press(pilot, "g")
        assert "step 00000 loss" in text
        text = await bench.press(pilot, "G")
        assert "step 00809 loss" in text
        assert "following" in text


async def test_paging_down_from_far_up_reaches_the_end_without_a_gap() -> None:
    bench = LogBench(wide(500))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.logs(pilot)
        seen = await bench.press(pilot, "g")
        for _ in range(40):
            seen += await bench.press(pilot, "pagedown")
        assert numbers_in(seen) == set(range(500))


async def test_long_lines_scroll_sideways() -> None:
    bench = LogBench(b"a" * 200 + b"b" * 40 + b"\n")
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.logs(pilot)
        assert "aabb" not in screen_text(app)
        assert "aabb" in await bench.press(pilot, *["right"] * 9)
        assert "aabb" not in await bench.press(pilot, *["left"] * 9)


async def test_a_log_cut_short_by_a_requeue_shows_a_marker() -> None:
    bench = LogBench(steps(30))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.logs(pilot)
        text = await bench.write(pilot, b"attempt 2 begins\n")
        assert "── this log was cut short at 12:00:02" in text
        assert text.index("step 00029") < text.index("cut short") < text.index("attempt 2")


async def test_a_log_that_is_not_there_yet_appears(golden: Golden) -> None:
    bench = LogBench(FileNotFoundError(2, "No such file"))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.logs(pilot, make_job("4711", "PENDING"))
        assert "Not there yet: it appears when the job starts" in screen_text(app)
        text = await bench.write(pilot, steps(3), wait_s=15)
        assert "step 00002 loss" in text


@pytest.mark.parametrize(
    ("out", "job", "says"),
    [
        (FileTimeout("no answer in 5 s"), JOB, "does not answer"),
        (IsADirectoryError(21, "Is a directory"), JOB, "is not a plain file: it is a folder"),
        (OSError(5, "Input/output error"), JOB, "cannot be read: Input/output error"),
        (FileNotFoundError(2, ""), JOB, "a path on a node's own disk can be seen on"),
        (FileNotFoundError(2, ""), replace(JOB, state=make_state("FAILED")), "No such file"),
        (PermissionError(13, ""), JOB, "forbids it"),
    ],
)
async def test_why_nothing_is_shown_is_said_and_ends(out: Exception, job: Any, says: str) -> None:
    bench = LogBench(out)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.logs(pilot, job)
        assert says in screen_text(app)
        await bench.press(pilot, "E", "n", "slash", *"words", "enter", "f", "G", "g")
        text = await bench.write(pilot, steps(3), wait_s=15)
        assert "step 00002 loss" in text
        assert says not in text


async def test_a_refused_log_says_who_can(golden: Golden) -> None:
    bench = LogBench(PermissionError(13, "Permission denied"))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.logs(pilot, replace(JOB, user="bob"))
        assert "bob can, and can hand it on: slurmtop triage 4711 --save DIR" in screen_text(app)
        golden("logs_refused", app)


async def test_output_that_goes_nowhere_and_a_path_nobody_knows() -> None:
    bench = LogBench(logs=(log("stdout", "/dev/null"), log("stderr", None, LogStatus.UNKNOWN_PATH)))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.logs(pilot)
        assert "this output goes to /dev/null" in screen_text(app)
        assert "does not say where this log is" in await bench.press(pilot, "l")


async def test_stdout_and_stderr_change_places() -> None:
    bench = LogBench(steps(3))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.logs(pilot)
        assert "stdout /home/anna" in screen_text(app)
        text = await bench.press(pilot, "l")
        assert "stderr /home/anna" in text
        assert "warning: nothing" in text
        assert "step 00002" in await bench.press(pilot, "l")
        bench.facts.given["logs"] = (log("stdout", OUT),)
        await bench.press(pilot, "r")
        assert "stdout and stderr are one file" in await bench.press(pilot, "l")


async def test_a_search_finds_marks_and_goes_round(golden: Golden) -> None:
    lines = [b"step %05d loss 2.41\n" % n for n in range(30_000)]
    lines[10], lines[29_990] = b"a NaN here\n", b"another nan there\n"
    bench = LogBench(b"".join(lines))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.logs(pilot)
        text = await bench.press(pilot, "slash", *"nan", "enter")
        assert "another nan there" in text
        assert screen.logs.view.hit is not None
        text = await bench.press(pilot, "n")
        assert "a NaN here" in text
        assert "step 00009" in text
        text = await bench.press(pilot, "N")
        assert "another nan there" in text
        assert "following" not in text
        text = await bench.press(pilot, "slash", *"missing", "enter")
        assert "not in this log: missing" in text


async def test_a_search_typed_in_one_burst_is_text_until_it_is_ended() -> None:
    bench = LogBench(steps(100) + b"Killed\n" + steps(100))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.logs(pilot)
        burst(app, "/Killed")
        await bench.settled(pilot)
        assert app.screen is screen
        await bench.press(pilot, "escape")
        burst(app, "/Killed\rk")
        await bench.settled(pilot)
        assert app.screen is screen
        assert screen.logs.view.words == "Killed"
        assert app.focused is screen.logs.view
        assert screen.logs.view.hit is not None


async def test_keys_are_text_while_the_search_is_typed() -> None:
    bench = LogBench(steps(100))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.logs(pilot)
        await bench.press(pilot, "slash", *"qKEfn")
        assert app.screen is screen
        await bench.press(pilot, "escape")
        assert app.screen is screen
        assert screen.logs.view.follow
        await bench.press(pilot, "escape")
        assert app.screen is not screen


async def test_a_long_search_shows_progress_and_esc_stops_it() -> None:
    bench = LogBench(b"x" * 99 + b"\n")
    bench.files.files[OUT] = (b"x" * 99 + b"\n") * 300_000
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.logs(pilot)
        view = screen.logs
        gate = asyncio.Event()
        progress = view._progress

        def told(done: int, total: int) -> None:
            progress(done, total)
            if done > 8_000_000:
                bench.files.read_gate = gate

        view._progress = told  # type: ignore[method-assign]
        text = await bench.press(pilot, "slash", *"needle", "enter")
        assert "searching 27 %" in text
        assert "esc stops" in text
        text = await bench.press(pilot, "escape")
        assert "search stopped" in text
        assert app.screen is screen
        gate.set()


async def test_the_first_error_is_jumped_to() -> None:
    text = steps(9_000) + b"RuntimeError: CUDA error: device-side assert\n" + steps(9_000)
    bench = LogBench(text)
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.logs(pilot)
        await pilot.press("E")
        deadline = asyncio.get_running_loop().time() + 30
        while screen.logs.view.hit is None and asyncio.get_running_loop().time() < deadline:
            await pilot.pause()
        await bench.settled(pilot)
        shown = screen_text(app)
        assert "RuntimeError: CUDA error" in shown
        assert "line 9,001" in shown


async def test_the_first_error_that_the_facts_know_costs_no_scan() -> None:
    data = steps(9_000) + b"RuntimeError: boom\n" + steps(9_000)
    line = LogLine("RuntimeError: boom", 9_001, data.index(b"Runtime"))
    bench = LogBench(data, logs=(log("stdout", OUT, first_error=line),))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        await bench.logs(pilot)
        reads = len(bench.files.reads)
        assert "RuntimeError: boom" in await bench.press(pilot, "E")
        assert len(bench.files.reads) - reads == 3


async def test_painting_costs_what_is_in_sight() -> None:
    bench = LogBench(steps(5_000))
    app = bench.app()
    async with app.run_test(size=SIZE) as pilot:
        screen = await bench.logs(pilot)
        view = screen.logs.view
        painted: list[int] = []
        render = view.render_line

        def counted(y: int) -> Any:
            painted.append(y)
            return render(y)

        view.render_line = counted  # type: ignore[method-assign]
        await bench.press(pilot, "pageup")
        assert 0 < len(painted) <= 3 * view.size.height


@pytest.mark.parametrize("width", [1, 10, 30, 80])
@pytest.mark.parametrize("path", [None, "/short", "/home/anna/" + "x" * 200 + "\x1b[2J/o.out"])
@pytest.mark.parametrize("busy", ["", "searching 43 %, esc stops"])
def test_the_bar_fits(width: int, path: str | None, busy: str) -> None:
    bar = LogBar(label="stdout", path=path, size=3_000_000, at=1_000_000, at_end=False, busy=busy)
    line = bar_line(bar, width)
    assert line_width(line) <= width
    assert "\x1b" not in plain(line)


@pytest.mark.parametrize(
    ("stdout", "says"),
    [
        ("/home/anna/run-%j.out", "The log appears at /home/anna/run-4711.out when it does"),
        ("/home/anna/run-%N.out", "The log appears at /home/anna/run-%N.out when it does"),
        (None, "Its log appears when it does"),
    ],
)
def test_a_job_that_waits_has_no_log_yet(stdout: str | None, says: str) -> None:
    job = make_job("4711", "PENDING", stdout=stdout, nodes=None)
    lines = no_log_lines(LogStatus.UNKNOWN_PATH, None, "", job, "anna", 80)
    text = "\n".join(plain(line) for line in lines)
    assert "The job has not started" in text
    assert says in text
    assert "does not say" not in text
