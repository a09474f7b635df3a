"""The window on a log and the pager that fills it: bytes read, rows kept, hits found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.model.facts import LogStatus
from slurmtop.model.ports import FileTimeout
from slurmtop.ui.log_pager import PAGE_BYTES, SCAN_BYTES, TAIL_BYTES, LogPager, hits_in
from slurmtop.ui.log_window import LogWindow, RowKind
from tests.fakes import FakeClock, FakeRunner

PATH = "/home/al/run.out"


def texts(window: LogWindow) -> list[str]:
    return [row.text for row in window.rows]


def numbered(count: int, start: int = 0) -> bytes:
    return b"".join(b"line %07d\n" % number for number in range(start, start + count))


async def ignore(pager: LogPager) -> None:
    await pager.poll(lambda what: f"was {what}")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"plain", "plain"),
        (b" 10%\r 20%\r 30%\r", " 30%"),
        (b"\x1b[31mred\x1b[0m \x1b]0;title\x07x", "red x"),
        (b"a\tb", "a       b"),
        (b"\x07bell \xff", "␇bell �"),
        ("‮txt.exe".encode(), "‹202E›txt.exe"),
    ],
)
def test_a_line_is_shown_without_escapes_and_with_the_last_state_of_a_bar(
    raw: bytes, shown: str
) -> None:
    window = LogWindow()
    window.load(0, raw + b"\n", len(raw) + 1)
    assert texts(window) == [shown]


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(3, 50))
def test_appending_in_any_pieces_gives_the_same_rows(pieces: list[bytes], limit: int) -> None:
    whole, parts = LogWindow(limit), LogWindow(limit)
    data = b"".join(pieces)
    whole.load(0, data, len(data))
    parts.load(0, b"", 0)
    done = 0
    for piece in pieces:
        done += len(piece)
        parts.append(piece, done)
    assert parts.rows == whole.rows
    assert len(whole.rows) <= limit
    assert (parts.start, parts.end) == (whole.start, whole.end)


def test_a_half_written_character_waits_for_its_rest() -> None:
    window = LogWindow()
    window.load(0, b"loss f", 6)
    window.append(b"\xc3", 7)
    assert texts(window) == ["loss f"]
    window.append(b"\xbcr\n", 10)
    assert [(row.text, row.kind) for row in window.rows] == [("loss für", RowKind.LINE)]


def test_a_bar_without_line_ends_stays_one_row_and_keeps_offsets_right() -> None:
    window = LogWindow()
    window.load(0, b"", 0)
    size = 0
    for step in range(3_000):
        piece = b"\r%5d/3000 it" % step
        size += len(piece)
        window.append(piece, size)
    assert texts(window) == [" 2999/3000 it"]
    assert window.rows[0].kind is RowKind.PARTIAL
    window.append(b"\nnext\n", size + 6)
    assert [(row.offset, row.text) for row in window.rows] == [
        (0, " 2999/3000 it"),
        (size + 1, "next"),
    ]


def test_an_endless_line_stays_one_bounded_row() -> None:
    window = LogWindow(100)
    window.load(0, b"", 0)
    for number in range(1, 60):
        window.append(b"x" * 65_536, number * 65_536)
    assert len(window.rows) == 1
    assert len(window.rows[0].text) <= 4_002
    assert window.at_end


async def test_the_tail_comes_first_and_an_idle_file_costs_one_stat() -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(100_000)
    runner.mtimes[PATH] = runner.clock.now()
    pager = LogPager(runner, PATH)
    await ignore(pager)
    assert pager.status is LogStatus.READ
    assert sum(length for _, _, length in runner.reads) == TAIL_BYTES
    assert pager.window.rows[-1].text == "line 0099999"
    assert pager.window.rows[0].text.startswith("line ")
    runner.reads.clear()
    polled = await pager.poll(lambda what: what)
    assert not polled.changed
    assert runner.reads == []


async def test_only_what_is_new_is_read() -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(10)
    pager = LogPager(runner, PATH)
    await ignore(pager)
    before = len(runner.files[PATH])  # type: ignore[arg-type]
    runner.files[PATH] = numbered(12)
    runner.reads.clear()
    await ignore(pager)
    assert runner.reads == [(PATH, before, 26)]
    assert texts(pager.window)[-1] == "line 0000011"


async def test_paging_up_reaches_the_first_line_in_bounded_memory() -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(60_000)
    pager = LogPager(runner, PATH, limit=9_000)
    await ignore(pager)
    seen = {row.text for row in pager.window.rows}
    for _ in range(100):
        if not await pager.older():
            break
        assert len(pager.window.rows) <= 9_000
        seen.update(row.text for row in pager.window.rows)
    assert pager.window.at_start
    assert len(seen) == 60_000
    assert not pager.window.at_end
    for _ in range(100):
        await pager.newer()
        if pager.window.at_end:
            break
    assert pager.window.rows[-1].text == "line 0059999"


async def test_growth_does_not_move_a_window_that_looks_elsewhere() -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(60_000)
    pager = LogPager(runner, PATH, limit=5_000)
    await ignore(pager)
    await pager.show_around(0)
    rows = list(pager.window.rows)
    runner.files[PATH] = numbered(60_100)
    await ignore(pager)
    assert pager.window.rows == rows
    await pager.to_end()
    assert pager.window.rows[-1].text == "line 0060099"


@pytest.mark.parametrize(("inode", "word"), [(1, "was cut short"), (2, "was replaced")])
async def test_a_log_that_began_anew_shows_a_marker_and_the_new_text(inode: int, word: str) -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(10)
    pager = LogPager(runner, PATH)
    await ignore(pager)
    runner.files[PATH] = b"attempt 2\n"
    runner.inodes[PATH] = inode
    await ignore(pager)
    assert texts(pager.window)[-3:] == ["line 0000009", word, "attempt 2"]
    assert pager.window.rows[-2].kind is RowKind.MARKER
    assert await pager.older() == 0
    runner.files[PATH] = b"attempt 2\nmore\n"
    await ignore(pager)
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
    pager = LogPager(runner, PATH)
    assert (await pager.poll(str)).changed
    assert pager.status is status
    assert not (await pager.poll(str)).changed
    runner.files[PATH] = b"here\n"
    assert (await pager.poll(str)).changed
    assert texts(pager.window) == ["here"]


async def search(pager: LogPager, words: str, at: int, **how: bool) -> str | None:
    hit = await pager.find(words, at, progress=lambda done, total: None, **how)
    return hit.text if hit else None


async def test_a_search_looks_at_the_whole_file_once_round() -> None:
    runner = FakeRunner()
    lines = [b"line %07d" % number for number in range(300_000)]
    lines[5] = b"needle one"
    lines[150_000] = b"\x1b[31mNee\x1b[0mdle two"
    lines[299_999] = b"needle three"
    data = b"\n".join(lines) + b"\n"
    runner.files[PATH] = data
    pager = LogPager(runner, PATH)
    await ignore(pager)
    middle = data.index(b"line 0000100")
    assert await search(pager, "needle", middle) == "Needle two"
    assert await search(pager, "needle", middle, backwards=True) == "needle one"
    first = data.index(b"needle one")
    assert await search(pager, "needle", first) == "Needle two"
    assert await search(pager, "needle", first, inclusive=True) == "needle one"
    assert await search(pager, "needle", first, backwards=True) == "needle three"
    assert await search(pager, "Needle", middle) == "Needle two"
    assert await search(pager, "no such words", middle) is None
    assert max(length for _, _, length in runner.reads) <= SCAN_BYTES


async def test_a_hit_is_shown_with_lines_before_it() -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(60_000)
    pager = LogPager(runner, PATH)
    await ignore(pager)
    hit = await pager.find("line 0030000", 0, progress=lambda done, total: None)
    assert hit is not None
    await pager.show_around(hit.offset)
    index = pager.window.index_of(hit.offset)
    assert index is not None
    assert pager.window.rows[index].text == "line 0030000"
    assert index > 100
    assert pager.window.end - pager.window.start <= PAGE_BYTES


async def test_progress_is_told_up_to_the_whole_size() -> None:
    runner = FakeRunner()
    runner.files[PATH] = numbered(200_000)
    pager = LogPager(runner, PATH)
    told: list[tuple[int, int]] = []
    await pager.find("nowhere", 0, progress=lambda done, total: told.append((done, total)))
    size = len(runner.files[PATH])  # type: ignore[arg-type]
    assert len(told) == -(-(size - 13) // SCAN_BYTES)
    assert told[-1] == (size - 13, size)


@given(st.binary(max_size=300), st.text(min_size=1, max_size=3))
def test_any_bytes_and_any_words_can_be_searched(data: bytes, words: str) -> None:
    for hit in hits_in(words, 7, data):
        assert hit.offset >= 7


@given(st.lists(st.sampled_from([b"a", b"bb\n", b"\n", b"needle\n", b"c" * 9]), max_size=60))
async def test_every_line_is_found_forwards_and_backwards(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    runner = FakeRunner(FakeClock())
    runner.files[PATH] = data
    pager = LogPager(runner, PATH)
    await ignore(pager)
    wanted = [hit.offset for hit in hits_in("needle", 0, data)]
    at, found = 0, []
    for index in range(len(wanted)):
        hit = await pager.find(
            "needle", at, inclusive=index == 0, progress=lambda done, total: None
        )
        assert hit is not None
        found.append(hit.offset)
        at = hit.offset
    assert found == wanted
