"""The window on a log and the pager that fills it: bytes read, rows kept, hits found."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect.log_tail import BLOCK_BYTES
from slurmtop.model.facts import LogFacts, LogStatus
from slurmtop.model.ports import FileTimeout
from slurmtop.parse.logs.lines import split_lines
from slurmtop.ui.log_errors import first_error_of
from slurmtop.ui.log_pager import SCAN_BYTES, CannotRead, LogPager
from slurmtop.ui.log_window import LogWindow, RowKind
from tests.fakes import FakeClock, FakeRunner

PATH = "/home/al/run.out"


def texts(window: LogWindow) -> list[str]:
    return [row.text for row in window.rows]


def numbered(count: int, start: int = 0) -> bytes:
    return b"".join(b"line %07d\n" % number for number in range(start, start + count))


async def look(pager: LogPager) -> None:
    await pager.poll(lambda what: f"was {what}")


async def grown(pieces: list[bytes], limit: int = 5_000) -> LogPager:
    """A pager that looked at the file after each piece was written."""
    runner = FakeRunner()
    runner.files[PATH] = b""
    pager = LogPager(runner, PATH, runner.clock, limit=limit)
    await look(pager)
    data = b""
    for piece in pieces:
        data += piece
        runner.files[PATH] = data
        await look(pager)
    return pager


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"plain", "plain"),
        (b" 10%\r 20%\r 30%\r", " 30%"),
        (b"\x1b[31mred\x1b[0m \x1b]0;title\x07x", "red x"),
        (b"a\tb", "a       b"),
        (b"\x07bell \xff", "␇bell �"),
        ("\u202etxt.exe".encode(), "‹202E›txt.exe"),
    ],
)
async def test_a_line_is_shown_without_escapes_and_with_the_last_state_of_a_bar(
    raw: bytes, shown: str
) -> None:
    assert texts((await grown([raw + b"\n"])).window) == [shown]


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=20), st.integers(3, 50))
async def test_growing_in_any_pieces_gives_the_same_rows(pieces: list[bytes], limit: int) -> None:
    parts = (await grown(pieces, limit)).window
    whole = (await grown([b"".join(pieces)], limit)).window
    assert parts.rows == whole.rows
    assert len(whole.rows) <= limit
    assert (parts.start, parts.end, parts.at_end) == (whole.start, whole.end, True)


async def test_a_half_written_character_waits_for_its_rest() -> None:
    pieces = [b"loss f", b"\xc3", b"\xbcr\n"]
    assert texts((await grown(pieces[:2])).window) == ["loss f"]
    rows = (await grown(pieces)).window.rows
    assert [(row.text, row.kind) for row in rows] == [("loss für", RowKind.LINE)]


async def test_a_bar_without_line_ends_stays_one_row_and_keeps_offsets_right() -> None:
    bar = [b"\r%5d/300 it" % step for step in range(300)]
    window = (await grown(bar)).window
    assert [(row.text, row.kind) for row in window.rows] == [("  299/300 it", RowKind.PARTIAL)]
    window = (await grown([*bar, b"\nnext\n"])).window
    size = len(b"".join(bar))
    assert [(row.offset, row.text) for row in window.rows] == [
        (0, "  299/300 it"),
        (size + 1, "next"),
    ]


async def test_an_endless_line_stays_one_bounded_row() -> None:
    window = (await grown([b"x" * 65_536] * 20)).window
    assert len(window.rows) == 1
    assert len(window.rows[0].text) <= 4_002
    assert window.at_end


async def test_the_tail_comes_first_and_an_idle_file_costs_one_stat() -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(100_000)
    runner.mtimes[PATH] = runner.clock.now()
    pager = LogPager(runner, PATH, runner.clock)
    await look(pager)
    assert pager.status is LogStatus.READ
    assert sum(length for _, _, length in runner.reads) <= BLOCK_BYTES + 1
    assert pager.window.rows[-1].text == "line 0099999"
    assert pager.window.rows[0].text.startswith("line ")
    runner.reads.clear()
    polled = await pager.poll(lambda what: what)
    assert not polled.changed
    assert runner.reads == []


async def test_only_what_is_new_is_read() -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(10)
    pager = LogPager(runner, PATH, runner.clock)
    await look(pager)
    before = len(runner.files[PATH])  # type: ignore[arg-type]
    runner.files[PATH] = numbered(12)
    runner.reads.clear()
    await look(pager)
    assert runner.reads == [(PATH, before - 64, 64 + 26)]
    assert texts(pager.window)[-1] == "line 0000011"


async def test_paging_up_reaches_the_first_line_in_bounded_memory() -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(60_000)
    pager = LogPager(runner, PATH, runner.clock, limit=9_000)
    await look(pager)
    seen = {row.text for row in pager.window.rows}
    for _ in range(100):
        if not await pager.older():
            break
        assert len(pager.window.rows) <= 9_000
        seen.update(row.text for row in pager.window.rows)
    assert pager.window.at_start
    assert len(seen) == 60_000
    steps = 0
    while not pager.window.at_end and steps < 100:
        await pager.newer()
        steps += 1
    assert steps > 5
    assert pager.window.rows[-1].text == "line 0059999"


async def test_growth_does_not_move_a_window_that_looks_elsewhere() -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(60_000)
    pager = LogPager(runner, PATH, runner.clock, limit=5_000)
    await look(pager)
    await pager.show_around(0)
    rows = list(pager.window.rows)
    runner.files[PATH] = numbered(60_100)
    await look(pager)
    assert pager.window.rows == rows
    await pager.to_end()
    assert pager.window.rows[-1].text == "line 0060099"


@pytest.mark.parametrize(("inode", "word"), [(1, "was cut short"), (2, "was replaced")])
async def test_a_log_that_began_anew_shows_a_marker_and_the_new_text(inode: int, word: str) -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(10)
    pager = LogPager(runner, PATH, runner.clock)
    await look(pager)
    runner.files[PATH] = b"attempt 2\n"
    runner.inodes[PATH] = inode
    await look(pager)
    assert texts(pager.window)[-3:] == ["line 0000009", word, "attempt 2"]
    assert pager.window.rows[-2].kind is RowKind.MARKER
    assert await pager.older() == 0
    runner.files[PATH] = b"attempt 2\nmore\n"
    await look(pager)
    assert texts(pager.window)[-1] == "more"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (FileNotFoundError(2, "No such file or directory"), LogStatus.ABSENT),
        (PermissionError(13, "Permission denied"), LogStatus.DENIED),
        (FileTimeout("no answer in 5 s"), LogStatus.HANGS),
        (IsADirectoryError(21, "Is a directory"), LogStatus.NOT_A_FILE),
        (OSError(5, "Input/output error"), LogStatus.FAILED),
    ],
)
async def test_a_file_that_cannot_be_read_has_a_state_and_comes_back(
    error: Exception, status: LogStatus
) -> None:
    runner = FakeRunner()
    runner.files[PATH] = error
    pager = LogPager(runner, PATH, runner.clock)
    assert (await pager.poll(str)).changed
    assert pager.status is status
    assert not (await pager.poll(str)).changed
    runner.files[PATH] = b"here\n"
    assert (await pager.poll(str)).changed
    assert texts(pager.window) == ["here"]


async def search(pager: LogPager, words: str, at: int, backwards: bool = False) -> str | None:
    hit = await pager.find(words, at, backwards=backwards, progress=lambda done, total: None)
    return hit.text if hit else None


async def test_a_search_looks_at_the_whole_file_once_round() -> None:
    runner = FakeRunner()
    lines = [b"line %07d" % number for number in range(300_000)]
    lines[5] = b"needle one"
    lines[150_000] = b"\x1b[31mNeedle\x1b[0m two"
    lines[299_999] = b"needle three"
    data = b"\n".join(lines) + b"\n"
    runner.files[PATH] = data
    pager = LogPager(runner, PATH, runner.clock)
    await look(pager)
    middle = data.index(b"line 0000100")
    assert await search(pager, "needle", middle) == "Needle two"
    assert await search(pager, "needle", middle, backwards=True) == "needle one"
    first = data.index(b"needle one")
    assert await search(pager, "needle", first) == "needle one"
    assert await search(pager, "needle", await pager.line_after(first)) == "Needle two"
    assert await search(pager, "needle", first, backwards=True) == "needle three"
    assert await search(pager, "NEEDLE", len(data)) == "needle one"
    assert await search(pager, "no such words", middle) is None
    assert max(length for _, _, length in runner.reads) <= SCAN_BYTES


async def test_a_hit_is_shown_with_lines_before_it() -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(60_000)
    pager = LogPager(runner, PATH, runner.clock)
    await look(pager)
    hit = await pager.find("line 0030000", 0, progress=lambda done, total: None)
    assert hit is not None
    await pager.show_around(hit.offset)
    index = pager.window.index_of(hit.offset)
    assert index is not None
    assert pager.window.rows[index].text == "line 0030000"
    assert index > 100
    assert pager.window.end - pager.window.start <= 2 * BLOCK_BYTES


async def test_progress_is_told_up_to_the_whole_size() -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(1_000_000)
    pager = LogPager(runner, PATH, runner.clock)
    await look(pager)
    told: list[tuple[int, int]] = []
    await pager.find("nowhere", 0, progress=lambda done, total: told.append((done, total)))
    size = 13_000_000
    assert told[0] == (8 * 1024 * 1024, size)
    assert told[1] == (size, size)


async def test_a_search_can_be_cancelled_between_blocks() -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(1_000_000)
    pager = LogPager(runner, PATH, runner.clock)
    await look(pager)
    task: asyncio.Task[object] | None = None
    reads = 0

    def stop(done: int, total: int) -> None:
        nonlocal reads
        assert task is not None
        task.cancel()
        reads = len(runner.reads)

    task = asyncio.create_task(pager.find("nowhere", 0, progress=stop))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(runner.reads) <= reads + 17


@pytest.mark.parametrize("error", [PermissionError(13, "no"), FileTimeout("no answer in 5 s")])
async def test_what_fails_further_up_is_said_and_what_is_shown_stays(error: Exception) -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(60_000)
    pager = LogPager(runner, PATH, runner.clock)
    await look(pager)
    rows = list(pager.window.rows)
    runner.files[PATH] = error
    for read in (pager.older, pager.to_end, lambda: pager.show_around(0)):
        with pytest.raises(CannotRead):
            await read()
    with pytest.raises(CannotRead):
        await search(pager, "line", 0)
    assert pager.window.rows == rows


@given(st.lists(st.sampled_from([b"a", b"bb\n", b"\n", b"needle\n", b"c" * 9]), max_size=60))
async def test_every_line_is_found_forwards_and_backwards(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    runner = FakeRunner(FakeClock())
    runner.files[PATH] = data
    pager = LogPager(runner, PATH, runner.clock)
    await look(pager)
    wanted = [line.offset for line in split_lines(data, number=None) if "needle" in line.text]
    forwards, backwards, at, back = [], [], 0, len(data)
    for _ in wanted:
        hit = await pager.find("needle", at, progress=lambda done, total: None)
        assert hit is not None
        forwards.append(hit.offset)
        at = await pager.line_after(hit.offset)
        hit = await pager.find("needle", back, backwards=True, progress=lambda done, total: None)
        assert hit is not None
        backwards.append(hit.offset)
        back = hit.offset
    assert forwards == wanted
    assert backwards == wanted[::-1]


async def test_the_first_error_is_found_in_blocks_with_its_number() -> None:
    runner = FakeRunner()
    text = numbered(200_000) + b"RuntimeError: CUDA out of memory\n" + numbered(100_000)
    runner.files[PATH] = text
    pager = LogPager(runner, PATH, runner.clock)
    await look(pager)
    told: list[tuple[int, int]] = []
    hit = await first_error_of(pager, None, lambda done, total: told.append((done, total)))
    assert hit is not None
    assert (hit.text, hit.number) == ("RuntimeError: CUDA out of memory", 200_001)
    assert hit.offset == text.index(b"RuntimeError")
    assert told
    runner.files[PATH] = numbered(10)
    assert await first_error_of(pager, None, lambda done, total: None) is None
    known = LogFacts(label="stdout", path=PATH, status=LogStatus.READ, first_error=hit)
    assert await first_error_of(pager, known, lambda done, total: None) is hit


async def test_a_line_is_found_by_its_number_over_the_edges_of_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("slurmtop.ui.log_pager.SCAN_BYTES", 7)
    data = b"one\n\ntwo two\nthree\n\n\nend of it"
    pager = await grown([data])
    starts = [0, *(at + 1 for at, byte in enumerate(data) if byte == 10)]
    for number, start in enumerate(starts, start=1):
        assert await pager.place_of(number, None, lambda done, total: None) == start
    assert await pager.place_of(len(starts) + 1, None, lambda done, total: None) is None
    assert await pager.place_of(3, 5, lambda done, total: None) == 5
    assert await pager.place_of(3, len(data), lambda done, total: None) is None
