"""Gathering what a job left behind: which files are read, how much of them, what is told."""

import asyncio
import gzip
import importlib
import io
import json
import os
import signal
import sys
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.collect import left_behind, log_pool, log_search, log_spans, unpack
from slurmtop.collect.left_behind import read_traces
from slurmtop.collect.local import LocalRunner
from slurmtop.collect.log_content import SAMPLE_BYTES, Content, content_of
from slurmtop.collect.log_spans import END_BYTES
from slurmtop.collect.unpack import BLOCK_BYTES, CannotUnpack, Unpacker
from slurmtop.model.events.slurm import StepEnded
from slurmtop.model.facts import LogStatus
from slurmtop.model.ports import FileStat, FileTimeout
from slurmtop.model.trace import Traces
from slurmtop.parse.logs.reading import read_bytes
from tests.fakes import FakeClock

ENDED = (
    b"slurmstepd: error: *** JOB 4711 ON gn01 CANCELLED AT 2031-05-05T10:00:00"
    b" DUE TO TIME LIMIT ***\n"
)
LINE = b"step 100 loss 2.1034 lr 0.0003 tokens 4096000\n"


class Counted(LocalRunner):
    """Counts the bytes that are read; ``hangs`` are parts of paths that never answer."""

    def __init__(self, hangs: tuple[str, ...] = ()) -> None:
        super().__init__(FakeClock(), os.environ)
        self.bytes_read = 0
        self.hangs = hangs

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        if any(part in path for part in self.hangs):
            raise FileTimeout(f"{path}: the file system did not answer within 5 s.")
        data = await super().read(path, offset, length, host)
        self.bytes_read += len(data)
        return data


@pytest.fixture
async def runner() -> AsyncIterator[Counted]:
    made = Counted()
    yield made
    await made.aclose()


def named(traces: Traces, folder: Path) -> list[str]:
    return [os.path.relpath(source.name, folder) for source in traces.sources]


async def test_a_folder_is_read_with_all_below_it_in_order(runner: Counted, tmp_path: Path) -> None:
    for name in ("b.out", "a/3", "a/deep/er/stderr", "nohup"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(LINE)
    traces = await read_traces(runner, [str(tmp_path)])
    assert named(traces, tmp_path) == ["b.out", "nohup", "a/3", "a/deep/er/stderr"]
    assert all(source.status is LogStatus.READ for source in traces.sources)


async def test_what_is_no_log_is_known_by_its_content(runner: Counted, tmp_path: Path) -> None:
    (tmp_path / "model.log").write_bytes(b"PK\x03\x04" + bytes(range(256)) * 40)
    (tmp_path / "random.txt").write_bytes(os.urandom(20_000))
    (tmp_path / "weights.safetensors").write_bytes(b"\x40\x02\0\0\0\0\0\0" + b'{"a": 1}' * 99)
    (tmp_path / "train.py").write_text("import torch\nfrom os import path\n\ndef main():\n  pass\n")
    (tmp_path / "run.sh").write_text("#!/bin/bash\necho CUDA out of memory\n")
    (tmp_path / ".hidden").write_bytes(LINE)
    (tmp_path / "noname").write_bytes(LINE)
    assert named(await read_traces(runner, [str(tmp_path)]), tmp_path) == ["noname"]
    # Named outright, it is told why it is not read.
    (source,) = (await read_traces(runner, [str(tmp_path / "model.log")])).sources
    assert (source.status, source.why) == (LogStatus.NOT_A_FILE, "it holds no text")
    (source,) = (await read_traces(runner, [str(tmp_path / "run.sh")])).sources
    assert "script" in source.why


MANIFEST = b'{\n "schema": "slurmtop.bundle/1",\n "slurmtop": "0.1.0",\n "finished": true\n}\n'


@pytest.mark.parametrize("kept", [MANIFEST, MANIFEST[:45], None])
async def test_what_slurmtop_saved_is_no_log(
    runner: Counted, tmp_path: Path, kept: bytes | None
) -> None:
    """Neither in a folder (whole, with a torn manifest or without one) nor packed."""
    old = tmp_path / "triage-4711"
    old.mkdir()
    for name in ("files.jsonl", "commands.jsonl", "session.json", "verdict.json", "report.txt"):
        (old / name).write_bytes(LINE)
    if kept is not None:
        (old / "manifest.json").write_bytes(kept)
    (tmp_path / "rank0.log").write_bytes(LINE)
    with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo("b/manifest.json")
        info.size = len(MANIFEST)
        tar.addfile(info, io.BytesIO(MANIFEST))
    traces = await read_traces(runner, [str(tmp_path)])
    pairs = zip(named(traces, tmp_path), traces.sources, strict=True)
    told = {name: one.status for name, one in pairs}
    assert told.pop("rank0.log") is LogStatus.READ
    assert LogStatus.READ not in told.values()
    assert all("a bundle that slurmtop saved" in one.why for one in traces.sources if one.why)
    assert set(told) == {"b.tar.gz", "triage-4711"}


async def test_another_manifest_makes_no_bundle(runner: Counted, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(b'{"schema": "other/1"}')
    (tmp_path / "rank0.log").write_bytes(LINE)
    traces = await read_traces(runner, [str(tmp_path)])
    assert "rank0.log" in named(traces, tmp_path)


@pytest.mark.parametrize(
    ("start", "content"),
    [
        (b"", Content.EMPTY),
        (b"\0" * 900, Content.EMPTY),
        (b"\0" * 50_000 + LINE * 9, Content.TEXT),
        (b"\x1b[31merror\x1b[0m\r 1%|#  |\r 2%|## |\a\n", Content.TEXT),
        ("épreuve № 3 — 训练失败\n".encode() * 9, Content.TEXT),
        ("训练失败 rank 3 step 4\n".encode("gbk") * 9, Content.TEXT),
        ("fin de l'étape\n".encode("latin-1") * 9, Content.TEXT),
        (b"\x80\x02}q\x00(X\x05\0\0\0" * 90, Content.BINARY),
        (b"\x7fELF\x02\x01\x01" + b"\0" * 60 + bytes(range(256)) * 31, Content.BINARY),
        (gzip.compress(LINE, mtime=0), Content.GZIP),
        (b"\x28\xb5\x2f\xfdabc", Content.ZSTD),
        (b"Traceback (most recent call last):\n  import x\nImportError: no\n", Content.TEXT),
    ],
)
def test_content(start: bytes, content: Content) -> None:
    assert content_of(start) is content


@given(st.binary(max_size=300))
def test_any_bytes_have_a_content(start: bytes) -> None:
    assert isinstance(content_of(start), Content)


async def test_of_a_long_file_both_ends_are_read_and_the_middle_is_told(
    runner: Counted, tmp_path: Path
) -> None:
    path = tmp_path / "long.out"
    with path.open("wb") as file:
        file.write(LINE)
        file.truncate(40 * 1024 * 1024)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + ENDED)
    size = path.stat().st_size
    traces = await read_traces(runner, [str(path)])
    (source,) = traces.sources
    assert source.size == size
    assert source.unread == ((END_BYTES, size - 2 * END_BYTES),)
    assert runner.bytes_read == 2 * END_BYTES
    (event,) = traces.of(StepEnded)
    assert event.at.offset == size - len(ENDED)
    assert event.at.text == ENDED.decode().strip()
    # Which line it is nobody knows without the middle.
    assert event.at.line is None


async def test_whole_reads_the_middle_too(runner: Counted, tmp_path: Path) -> None:
    path = tmp_path / "long.out"
    before = LINE * 40_000
    path.write_bytes(before + ENDED + before)
    ends = await read_traces(runner, [str(path)])
    assert not ends.of(StepEnded)
    assert ends.sources[0].unread
    whole = await read_traces(runner, [str(path)], whole=True)
    (event,) = whole.of(StepEnded)
    assert event.at.line == 40_001
    assert whole.sources[0].unread == ()
    assert whole.sources[0].read_bytes == path.stat().st_size


async def test_files_that_cannot_be_read_are_told_and_cost_nothing_else(
    runner: Counted, tmp_path: Path
) -> None:
    good = tmp_path / "good.out"
    good.write_bytes(ENDED)
    slow = tmp_path / "dead" / "x.out"
    slow.parent.mkdir()
    slow.write_bytes(LINE)
    runner.hangs = ("/dead/",)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    gone = tmp_path / "gone.out"
    traces = await read_traces(runner, [str(p) for p in (gone, pipe, slow, good)])
    told = {Path(s.name).name: s.status for s in traces.sources}
    assert told == {
        "gone.out": LogStatus.ABSENT,
        "pipe": LogStatus.NOT_A_FILE,
        "x.out": LogStatus.HANGS,
        "good.out": LogStatus.READ,
    }
    assert all(s.why for s in traces.sources if s.status is not LogStatus.READ)
    assert len(traces.of(StepEnded)) == 1


async def test_folders_that_lead_into_themselves_end(runner: Counted, tmp_path: Path) -> None:
    (tmp_path / "x.out").write_bytes(LINE)
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "same.out").symlink_to(tmp_path / "x.out")
    (tmp_path / "nowhere").symlink_to(tmp_path / "not-there")
    assert len((await read_traces(runner, [str(tmp_path)])).sources) == 1


async def test_too_many_files_are_told(
    runner: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_search, "MOST_FILES", 3)
    for number in range(5):
        (tmp_path / f"{number}.out").write_bytes(LINE)
    sources = (await read_traces(runner, [str(tmp_path)])).sources
    assert [s.status for s in sources].count(LogStatus.READ) == 3
    (told,) = (s for s in sources if s.status is not LogStatus.READ)
    assert "2 were not looked at" in told.why


async def test_too_deep_a_folder_is_told(runner: Counted, tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*"abcdefghijkl")
    deep.mkdir(parents=True)
    (deep / "x.out").write_bytes(LINE)
    (told,) = (await read_traces(runner, [str(tmp_path)])).sources
    assert told.status is LogStatus.FAILED


# Packed


async def test_packed_logs_are_read_like_others(runner: Counted, tmp_path: Path) -> None:
    path = tmp_path / "old.out.gz"
    # Two members, as gzip -c >> makes them, and the filler that some tapes leave.
    path.write_bytes(gzip.compress(LINE * 3) + gzip.compress(ENDED) + b"\0" * 100)
    traces = await read_traces(runner, [str(path)])
    (event,) = traces.of(StepEnded)
    assert event.at.line == 4
    assert traces.sources[0].read_bytes == len(LINE * 3 + ENDED)
    assert not traces.sources[0].cut


async def test_of_a_long_packed_log_both_ends_are_parsed(runner: Counted, tmp_path: Path) -> None:
    path = tmp_path / "old.out.gz"
    text = LINE * 40_000 + ENDED + LINE * 40_000 + ENDED
    path.write_bytes(gzip.compress(text))
    traces = await read_traces(runner, [str(path)])
    (source,) = traces.sources
    assert len(traces.of(StepEnded)) == 1
    assert source.size == len(text)
    assert source.unread == ((END_BYTES, len(text) - 2 * END_BYTES),)
    whole = await read_traces(runner, [str(path)], whole=True)
    assert len(whole.of(StepEnded)) == 2
    assert whole.sources[0].unread == ()


@pytest.mark.parametrize("length", [0, 1, END_BYTES, END_BYTES + 1, 2 * END_BYTES, 3 * END_BYTES])
async def test_the_ends_of_a_packed_log_are_those_of_the_plain_one(
    runner: Counted, tmp_path: Path, length: int
) -> None:
    text = (LINE * (length // len(LINE) + 1))[:length]
    plain, packed = tmp_path / "a.out", tmp_path / "b.out"
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text))
    one, other = (await read_traces(runner, [str(plain), str(packed)])).sources
    assert one.unread == other.unread
    assert one.read_bytes == other.read_bytes == min(length, 2 * END_BYTES)


async def test_a_damaged_packed_log_is_read_as_far_as_it_goes(
    runner: Counted, tmp_path: Path
) -> None:
    good = gzip.compress(ENDED + LINE * 50_000, compresslevel=0)
    torn = tmp_path / "torn.gz"
    torn.write_bytes(good[: len(good) // 2])
    broken = tmp_path / "broken.gz"
    broken.write_bytes(good[:200_000] + b"\xff" * 90_000)
    nothing = tmp_path / "nothing.gz"
    nothing.write_bytes(good[:10] + b"\xff" * 90)
    traces = await read_traces(runner, [str(p) for p in (torn, broken, nothing)])
    one, two, three = traces.sources
    assert one.cut
    assert "in the middle" in one.why
    assert two.cut
    assert "damaged" in two.why
    assert three.status is LogStatus.FAILED
    assert len(traces.of(StepEnded)) >= 1


def test_what_a_small_packed_file_grows_to_comes_in_blocks() -> None:
    bomb = gzip.compress(b"\n" * 50_000_000)
    sizes = [len(block) for block in Unpacker(Content.GZIP).feed(bomb)]
    assert sum(sizes) == 50_000_000
    assert max(sizes) <= BLOCK_BYTES


def _zstd() -> Any:
    """The module of the standard library from 3.14 on, before that the one of the extra."""
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    return importlib.import_module(name)


async def test_zstd_is_read_where_a_module_is_there(runner: Counted, tmp_path: Path) -> None:
    path = tmp_path / "x.zst"
    path.write_bytes(_zstd().compress(LINE + ENDED))
    traces = await read_traces(runner, [str(path)])
    assert len(traces.of(StepEnded)) == 1
    with pytest.raises(CannotUnpack, match="damaged"):
        list(Unpacker(Content.ZSTD).feed(b"\x28\xb5\x2f\xfdnonsense"))


async def test_zstd_without_a_module_is_told(
    runner: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(unpack, "importlib", SimpleNamespace(import_module=nowhere))
    path = tmp_path / "x.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfdabc")
    (source,) = (await read_traces(runner, [str(path)])).sources
    assert source.status is LogStatus.FAILED
    assert "zstd -d" in source.why


# Standard input


async def _blocks(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


@pytest.mark.parametrize("size", [1, 7, 4_096, 1 << 20])
@pytest.mark.parametrize("packed", [False, True])
async def test_standard_input_in_blocks_of_any_size(
    runner: Counted, size: int, packed: bool
) -> None:
    text = LINE * 300 + ENDED
    data = gzip.compress(text) if packed else text
    traces = await read_traces(runner, ["-"], stdin=_blocks(data, size))
    (source,) = traces.sources
    assert (source.name, source.read_bytes) == ("-", len(text))
    assert traces.of(StepEnded)[0].at.line == 301


async def test_standard_input_beside_files(runner: Counted, tmp_path: Path) -> None:
    path = tmp_path / "x.out"
    path.write_bytes(LINE)
    traces = await read_traces(runner, [str(path), "-"], stdin=_blocks(b"", 9))
    assert [source.name for source in traces.sources] == ["-", str(path)]


def test_the_sample_is_what_one_block_may_be() -> None:
    assert SAMPLE_BYTES < log_spans.BLOCK_BYTES


# Many files


@pytest.mark.parametrize("handed_over", [False, True])
async def test_other_processes_say_the_same_as_this_one(
    runner: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handed_over: bool
) -> None:
    for number in range(7):
        (tmp_path / f"rank{number}.log").write_bytes(LINE * (number * 6_000) + ENDED)
    (tmp_path / "empty").touch()
    (tmp_path / "old.gz").write_bytes(gzip.compress(LINE + ENDED))
    (tmp_path / "old.zst").write_bytes(_zstd().compress(LINE + ENDED))
    (tmp_path / "run.sh").write_text("#!/bin/bash\necho CUDA out of memory\n")
    (tmp_path / "weights").write_bytes(bytes(range(256)) * 40)
    paths = [str(tmp_path), str(tmp_path / "run.sh")]
    here = await read_traces(runner, paths)
    monkeypatch.setattr(left_behind, "POOL_FROM_BYTES", 0)
    monkeypatch.setattr(Counted, "others_may_read", not handed_over)
    before = runner.bytes_read
    assert await read_traces(runner, paths) == here
    # What another process reads is not read here as well.
    assert (runner.bytes_read - before > 2_000_000) is handed_over
    there = await read_traces(runner, paths, whole=True)
    monkeypatch.setattr(left_behind, "POOL_FROM_BYTES", 1 << 40)
    assert await read_traces(runner, paths, whole=True) == there
    assert len(here.of(StepEnded)) == 9


async def test_what_another_process_cannot_read_is_told_as_if_read_here(
    runner: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_behind, "POOL_FROM_BYTES", -1)
    gone = tmp_path / "gone.log"
    gone.write_bytes(LINE)

    async def found(*asked: Any) -> Any:
        told = await log_search.find_logs(*asked)
        gone.unlink()
        return told

    monkeypatch.setattr(left_behind, "find_logs", found)
    (source,) = (await read_traces(runner, [str(gone)])).sources
    assert (source.status, source.why) == (LogStatus.ABSENT, "there is no such file")


async def test_a_parsing_process_that_dies_costs_its_own_files(
    runner: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        (tmp_path / f"{number}.log").write_bytes(LINE + ENDED)
    monkeypatch.setattr(left_behind, "POOL_FROM_BYTES", 0)
    children: list[int] = []
    start = log_pool._Child.__init__

    def started(child: log_pool._Child) -> None:
        start(child)
        children.append(child.pid)
        if len(children) == 1:
            os.kill(child.pid, signal.SIGKILL)

    monkeypatch.setattr(log_pool._Child, "__init__", started)
    sources = (await read_traces(runner, [str(tmp_path)])).sources
    told = [source.status for source in sources]
    assert len(told) == 6
    assert told.count(LogStatus.READ) >= 3
    assert all("ended" in s.why for s in sources if s.status is not LogStatus.READ)


async def test_no_parsing_process_is_left(
    runner: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.log").write_bytes(LINE)
    monkeypatch.setattr(left_behind, "POOL_FROM_BYTES", 0)
    pids: list[int] = []
    close = log_pool._Child.close

    def closed(child: log_pool._Child) -> None:
        pids.append(child.pid)
        close(child)

    monkeypatch.setattr(log_pool._Child, "close", closed)
    await read_traces(runner, [str(tmp_path)])
    assert len(pids) == log_pool.PROCESSES
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_many_files_are_asked_for_side_by_side_but_not_all_at_once(tmp_path: Path) -> None:
    most = 0
    now = 0

    class Slow(Counted):
        async def stat(self, path: str, host: str | None = None) -> FileStat:
            nonlocal most, now
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1
            return await super().stat(path, host)

    for number in range(100):
        (tmp_path / f"{number:03}.log").write_bytes(LINE)
    runner = Slow()
    traces = await read_traces(runner, [str(tmp_path)])
    await runner.aclose()
    assert len(traces.sources) == 100
    assert 2 <= most <= log_search.AT_ONCE


async def test_a_year_that_no_line_tells_is_that_of_the_file(
    runner: Counted, tmp_path: Path
) -> None:
    path = tmp_path / "x.out"
    path.write_bytes(LINE)
    os.utime(path, (1_900_000_000, 1_900_000_000))
    traces = await read_traces(runner, [str(path)])
    assert traces == read_bytes(str(path), LINE, year=2030)
    assert json.dumps([source.name for source in traces.sources])


@pytest.mark.parametrize(
    "data",
    [
        LINE.decode().encode("utf-16"),
        b"\xfe\xff" + LINE.decode().encode("utf-16-be"),
        b"\xff\xfe" + LINE,
    ],
    ids=["utf-16-le", "utf-16-be", "no-utf-16-but-begins-so"],
)
async def test_a_log_in_utf_16_is_read_and_one_that_only_begins_so_is_left_as_it_is(
    runner: Counted, tmp_path: Path, data: bytes
) -> None:
    (tmp_path / "x.out").write_bytes(data)
    traces = await read_traces(runner, [str(tmp_path / "x.out")])
    (source,) = traces.sources
    assert source.status is LogStatus.READ, source.why
    assert source.last is not None
    assert LINE.decode().strip() in source.last.text
