"""Following logs: growth, cuts, rotation, and everything that keeps one from being read."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from slurmtop.collect.clock import SystemClock, cancel_and_wait, spawn
from slurmtop.collect.local import LocalRunner
from slurmtop.collect.log_tail import LogDelta, LogTail
from slurmtop.model.facts import LogStatus
from slurmtop.model.ports import FileTimeout, RunnerError
from tests.collect.helpers import alive, until
from tests.fakes import FakeRunner

PATH = "/w/slurm-7.out"
BLOCK = 64


def tail_of(data: bytes) -> tuple[FakeRunner, LogTail]:
    runner = FakeRunner()
    runner.files[PATH] = data
    return runner, LogTail(runner, PATH, runner.clock, BLOCK)


def texts(delta: LogDelta) -> list[str]:
    return [line.text for line in delta.lines]


def bytes_read(runner: FakeRunner) -> int:
    return sum(length for _, _, length in runner.reads)


async def test_a_small_log_is_read_whole_with_numbers_and_offsets() -> None:
    _, tail = tail_of(b"one\ntwo\n\nfour\n")
    delta = await tail.poll()
    assert delta.status is LogStatus.READ
    assert [(line.number, line.offset, line.text) for line in delta.lines] == [
        (1, 0, "one"),
        (2, 4, "two"),
        (3, 8, ""),
        (4, 9, "four"),
    ]
    assert delta.partial is None
    assert delta.size == 14


async def test_of_a_large_log_only_the_last_block_is_read() -> None:
    runner, tail = tail_of(b"x" * 1_000_000 + b"\n" + b"last line\n" * 3)
    delta = await tail.poll()
    assert texts(delta) == ["last line"] * 3
    assert {line.number for line in delta.lines} == {None}
    assert bytes_read(runner) <= 2 * BLOCK


async def test_a_line_that_begins_exactly_at_the_block_is_kept() -> None:
    _, tail = tail_of(b"older\n" + b"y" * (BLOCK - 1) + b"\n")
    assert texts(await tail.poll()) == ["y" * (BLOCK - 1)]


async def test_F2_an_idle_log_costs_one_stat_and_no_read() -> None:
    runner, tail = tail_of(b"one\n" * 100)
    await tail.poll()
    before = len(runner.reads)
    delta = await tail.poll()
    assert (delta.lines, delta.status, delta.truncated) == ((), LogStatus.READ, False)
    assert len(runner.reads) == before


async def test_growth_is_read_by_offset() -> None:
    runner, tail = tail_of(b"one\n" * 1000)
    await tail.poll()
    runner.reads.clear()
    runner.files[PATH] = b"one\n" * 1000 + b"two\nthree\n"
    assert texts(await tail.poll()) == ["two", "three"]
    assert bytes_read(runner) <= 10 + 64


async def test_numbers_go_on_while_the_start_is_known() -> None:
    runner, tail = tail_of(b"one\n")
    await tail.poll()
    runner.files[PATH] = b"one\ntwo\n"
    (line,) = (await tail.poll()).lines
    assert (line.number, line.offset) == (2, 4)


async def test_F7_a_half_written_line_is_held_back() -> None:
    runner, tail = tail_of(b"done\nhal")
    delta = await tail.poll()
    assert texts(delta) == ["done"]
    assert delta.partial is not None
    assert delta.partial.text == "hal"
    runner.files[PATH] = b"done\nhalf\n"
    delta = await tail.poll()
    assert texts(delta) == ["half"]
    assert delta.partial is None


@pytest.mark.parametrize("cut", range(1, 9))
async def test_B6_a_character_cut_at_any_byte_never_breaks(cut: int) -> None:
    whole = "a\u00e4\u20ac\U0001f600".encode()
    runner, tail = tail_of(whole[:cut])
    delta = await tail.poll()
    assert delta.partial is not None
    assert "\ufffd" not in delta.partial.text
    runner.files[PATH] = whole + b"\n"
    assert texts(await tail.poll()) == ["a\u00e4\u20ac\U0001f600"]


async def test_a_progress_bar_is_its_last_state() -> None:
    runner, tail = tail_of(b"10%\r20%\r")
    delta = await tail.poll()
    assert delta.partial is not None
    assert delta.partial.text == "20%"
    runner.files[PATH] = b"10%\r20%\r30%\n"
    assert texts(await tail.poll()) == ["30%"]


async def test_F1_a_cut_log_is_marked_and_read_again() -> None:
    runner, tail = tail_of(b"old\n" * 100)
    await tail.poll()
    runner.files[PATH] = b"new\n"
    delta = await tail.poll()
    assert delta.truncated
    assert not delta.rotated
    assert [(line.number, line.text) for line in delta.lines] == [(1, "new")]


async def test_F1_a_log_written_anew_past_its_old_size_is_noticed() -> None:
    runner, tail = tail_of(b"old attempt\n")
    await tail.poll()
    runner.files[PATH] = b"new attempt\nwith more lines\n"
    delta = await tail.poll()
    assert delta.truncated
    assert texts(delta) == ["new attempt", "with more lines"]


async def test_F1_a_replaced_file_is_marked_even_when_larger() -> None:
    runner, tail = tail_of(b"old\n")
    await tail.poll()
    runner.files[PATH] = b"old\nnew\n"
    runner.inodes[PATH] = 2
    delta = await tail.poll()
    assert delta.rotated
    assert texts(delta) == ["old", "new"]


async def test_a_log_that_outruns_the_reader_says_how_much_was_skipped() -> None:
    runner, tail = tail_of(b"start\n")
    await tail.poll()
    runner.reads.clear()
    runner.files[PATH] = b"start\n" + b"fast\n" * 10_000
    delta = await tail.poll()
    assert delta.skipped_bytes == 50_000 - BLOCK
    assert bytes_read(runner) <= 2 * BLOCK
    assert set(texts(delta)) == {"fast"}
    assert not delta.truncated


async def test_F4_a_log_appears_when_it_is_created() -> None:
    runner = FakeRunner()
    tail = LogTail(runner, PATH, runner.clock, BLOCK)
    delta = await tail.poll()
    assert (delta.status, delta.why) == (LogStatus.ABSENT, "there is no such file")
    runner.files[PATH] = b"hello\n"
    assert texts(await tail.poll()) == ["hello"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (PermissionError(13, "Permission denied"), LogStatus.DENIED),
        (NotADirectoryError(20, "Not a directory"), LogStatus.ABSENT),
        (FileTimeout("the file system did not answer"), LogStatus.HANGS),
        (RunnerError("the process that reads files could not be started"), LogStatus.FAILED),
        (OSError(116, "Stale file handle"), LogStatus.FAILED),
    ],
)
async def test_trouble_is_a_status_and_never_an_exception(
    error: Exception, status: LogStatus
) -> None:
    runner = FakeRunner()
    runner.files[PATH] = error
    tail = LogTail(runner, PATH, runner.clock, BLOCK)
    delta = await tail.poll()
    assert delta.status is status
    assert delta.why
    assert (await tail.read_before(100)).status is status
    assert (await tail.search("x", start=0)).status is status


async def test_trouble_in_between_loses_nothing() -> None:
    runner, tail = tail_of(b"one\n")
    await tail.poll()
    runner.files[PATH] = FileTimeout("hangs")
    assert (await tail.poll()).status is LogStatus.HANGS
    runner.files[PATH] = b"one\ntwo\n"
    delta = await tail.poll()
    assert (texts(delta), delta.truncated) == (["two"], False)


async def test_an_unknown_path_is_a_status() -> None:
    runner = FakeRunner()
    tail = LogTail(runner, None, runner.clock)
    assert (await tail.poll()).status is LogStatus.UNKNOWN_PATH
    assert (await tail.read_before(5)).status is LogStatus.UNKNOWN_PATH
    assert (await tail.search("x", start=0)).status is LogStatus.UNKNOWN_PATH


async def test_paging_backwards_gives_every_line_once() -> None:
    lines = [f"line {number} " + "z" * (number % 40) for number in range(200)]
    _, tail = tail_of("".join(f"{line}\n" for line in lines).encode())
    delta = await tail.poll()
    seen = texts(delta)
    start = delta.lines[0].offset
    for _ in range(500):
        page = await tail.read_before(start)
        seen = [line.text for line in page.lines] + seen
        assert page.start < start
        start = page.start
        if start == 0:
            break
    assert seen == lines
    assert (await tail.read_before(0)).lines == ()


async def test_paging_through_one_endless_line_ends() -> None:
    _, tail = tail_of(b"head\n" + b"q" * 1000)
    start = 1005
    pages = 0
    while start > 0:
        page = await tail.read_before(start)
        assert page.start < start
        start = page.start
        pages += 1
    assert pages <= 1005 // (BLOCK - 1) + 2


async def test_search_finds_the_nearest_line_in_both_directions() -> None:
    data = b"alpha\n" + b"filler\n" * 700 + b"an ERROR here\n" + b"filler\n" * 700 + b"error\n"
    _, tail = tail_of(data)
    first = await tail.search("Error", start=0)
    assert first.line is not None
    assert first.line.text == "an ERROR here"
    assert data[first.line.offset :].startswith(b"an ERROR")
    second = await tail.search("error", start=first.reached + 1)
    assert second.line is not None
    assert second.line.text == "error"
    back = await tail.search("error", start=second.reached, backwards=True)
    assert back.line == first.line
    none = await tail.search("error", start=first.reached, backwards=True)
    assert (none.line, none.reached, none.done) == (None, 0, True)
    past = await tail.search("error", start=second.reached + 1)
    assert (past.line, past.done) == (None, True)


@pytest.mark.parametrize("gap", range(1000, 1050))
async def test_search_finds_what_lies_across_two_blocks(gap: int) -> None:
    _, tail = tail_of(b"." * gap + b"\nneedle\n" + b"." * 3000)
    hit = await tail.search("needle", start=0)
    assert hit.line is not None
    assert hit.line.offset == gap + 1
    back = await tail.search("needle", start=gap + 3000, backwards=True)
    assert back.line == hit.line


async def test_search_is_bounded_and_can_go_on() -> None:
    runner, tail = tail_of(b"." * 100_000 + b"\nneedle\n")
    part = await tail.search("needle", start=0, most_bytes=10_000)
    assert (part.line, part.done) == (None, False)
    assert 10_000 <= part.reached < 20_000
    assert bytes_read(runner) < 20_000
    assert (await tail.search("needle", start=part.reached)).line is not None


async def test_search_skips_what_a_bar_drew_over_and_the_empty_text() -> None:
    _, tail = tail_of(b"needle\rgone\nneedle\n")
    hit = await tail.search("needle", start=0)
    assert hit.line is not None
    assert hit.line.offset == 12
    assert (await tail.search("", start=0)).line is None


async def test_search_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, tail = tail_of(b"." * 1_000_000)
    stopped = asyncio.Event()
    begun = asyncio.Event()

    async def slow(_path: str, _offset: int, length: int, _host: str | None = None) -> bytes:
        begun.set()
        await stopped.wait()
        return b"." * length

    monkeypatch.setattr(runner, "read", slow)
    task = spawn(tail.search("needle", start=0), name="test")
    await begun.wait()
    await cancel_and_wait(task)
    assert task.cancelled()


@pytest.fixture
async def runner() -> AsyncIterator[LocalRunner]:
    async with LocalRunner(SystemClock(), os.environ, file_timeout_s=10.0) as made:
        yield made


async def test_real_files_grow_are_cut_and_are_replaced(
    runner: LocalRunner, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    tail = LogTail(runner, str(path), SystemClock())
    assert (await tail.poll()).status is LogStatus.ABSENT
    path.write_bytes(b"one\n")
    assert texts(await tail.poll()) == ["one"]
    with path.open("ab") as file:
        file.write(b"two\n")
    assert texts(await tail.poll()) == ["two"]
    path.write_bytes(b"x\n")
    delta = await tail.poll()
    assert (delta.truncated, texts(delta)) == (True, ["x"])
    other = tmp_path / "other"
    other.write_bytes(b"x\ny\n")
    other.rename(path)
    delta = await tail.poll()
    assert (delta.rotated, texts(delta)) == (True, ["x", "y"])


async def test_F2_a_log_of_4_GB_is_followed_by_its_end(
    runner: LocalRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.truncate(4 * 1024**3)
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast\n")
    read = runner.read
    lengths = []

    async def counted(path: str, offset: int, length: int, host: str | None = None) -> bytes:
        lengths.append(length)
        return await read(path, offset, length, host)

    monkeypatch.setattr(runner, "read", counted)
    tail = LogTail(runner, str(path), SystemClock())
    delta = await tail.poll()
    assert (texts(delta), delta.size) == (["last"], 4 * 1024**3 + 6)
    assert sum(lengths) <= 64 * 1024 + 1
    with path.open("ab") as file:
        file.write(b"more\n")
    assert texts(await tail.poll()) == ["more"]
    assert sum(lengths) <= 65 * 1024


async def test_a_pipe_without_writer_a_folder_and_devnull_are_no_files(
    runner: LocalRunner, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (str(pipe), str(tmp_path), "/dev/null"):
        delta = await LogTail(runner, path, SystemClock()).poll()
        assert delta.status is LogStatus.NOT_A_FILE, path


async def test_a_hanging_mount_is_a_status(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    async with LocalRunner(SystemClock(), os.environ, file_timeout_s=10.0) as runner:
        tail = LogTail(runner, str(path), SystemClock())
        await tail.poll()
        runner._files._timeout_s = 0.2
        pid = runner._files.child_pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        assert (await tail.poll()).status is LogStatus.HANGS
        # Not asked again at once: the answer comes without a wait and without a new process.
        assert (await tail.poll()).status is LogStatus.HANGS
        assert runner._files.child_pid is None
        await until(lambda: not alive(pid), "the stopped process was ended")
