"""Reading what a job left behind: files, folders, packed files and standard input, as traces.

Every file is read in bounded blocks, through the Runner or in a process that may be left behind,
so that a mount that hangs costs its own files. Of a long one the two ends are read; what stands
between them is told as unread, never taken for silence. Nothing here raises for what is wrong
with a file.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Protocol

from slurmtop.collect.local import LocalRunner
from slurmtop.collect.log_content import OURS, PACKED, SAMPLE_BYTES, Content, content_of
from slurmtop.collect.log_files import log_status
from slurmtop.collect.log_pool import ParsePool, ReaderLost
from slurmtop.collect.log_search import A_BUNDLE, AT_ONCE, Found, find_logs
from slurmtop.collect.log_spans import BLOCK_BYTES as BLOCK_BYTES
from slurmtop.collect.log_spans import END_BYTES, spans
from slurmtop.collect.unpack import CannotUnpack, Unpacker
from slurmtop.model.facts import LogStatus
from slurmtop.model.ports import Runner, RunnerError
from slurmtop.model.trace import Source, Traces, joined
from slurmtop.parse.logs.reading import SourceReader

#: Below this the start of other processes costs more than they save.
POOL_FROM_BYTES = 8 * 1024 * 1024
STDIN = "-"
_WHY_NOT_READ = {
    Content.BINARY: "it holds no text",
    Content.CODE: "it is a script or source code, not what a run said",
    Content.BUNDLE: A_BUNDLE,
    Content.SAVED: "it is of a bundle or recording that slurmtop saved, not what a run said",
    Content.PRINTED: "it is what slurmtop printed, not what a run said",
}
_ON_STDIN = "put it into a file and name that"
_ZSTD_BUNDLE = f"{A_BUNDLE}, once it is unpacked (zstd -d)"


class Sink(Protocol):
    """Where the bytes of one source go: a :class:`SourceReader` here or in another process."""

    async def feed(self, data: bytes) -> None: ...

    async def skip(self, count: int) -> None: ...

    async def finish(self, size: int | None) -> Traces: ...


class _Here:
    """Parses in this process; other tasks get their turn after every block."""

    def __init__(self, name: str, year: int | None) -> None:
        self._reader = SourceReader(name, year=year)

    async def feed(self, data: bytes) -> None:
        self._reader.feed(data)
        await asyncio.sleep(0)

    async def skip(self, count: int) -> None:
        self._reader.skip(count)

    async def finish(self, size: int | None) -> Traces:
        return self._reader.finish(size=size)


async def read_traces(
    runner: Runner,
    paths: Sequence[str],
    *,
    whole: bool = False,
    stdin: AsyncIterator[bytes] | None = None,
) -> Traces:
    """All that stands in ``paths``: files, folders with all below them, ``-`` for ``stdin``.

    With ``whole`` long files are read from end to end. A file that cannot be read is a source
    with the reason; files in a folder that hold no text are left out. Two processes at low
    priority do the parsing where there is much of it.
    """
    if STDIN in paths and stdin is not None:
        first = await _read_stdin(stdin)
        rest = [path for path in paths if path != STDIN]
        return joined((first, await read_traces(runner, rest, whole=whole))) if rest else first
    found = await find_logs(runner, paths)
    pool = ParsePool() if _bytes_to_read(found, whole) > POOL_FROM_BYTES else None
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(found: Found) -> Traces:
        async with gate:
            return await _read_one(runner, found, pool, whole=whole)

    try:
        return joined(await asyncio.gather(*(one(file) for file in found)))
    finally:
        if pool is not None:
            pool.close()


def _bytes_to_read(found: Sequence[Found], whole: bool) -> int:
    sizes = (one.stat.size for one in found if one.stat is not None)
    return sum(size if whole else min(size, 2 * END_BYTES) for size in sizes)


async def _read_one(runner: Runner, found: Found, pool: ParsePool | None, *, whole: bool) -> Traces:
    if found.stat is None or found.status is not LogStatus.READ:
        return _not_read(found, found.status, found.why)
    try:
        if pool is not None and isinstance(runner, LocalRunner) and runner.others_may_read:
            told = await pool.read(found.path, found.stat.mtime.year, found.stat.size, whole=whole)
            if isinstance(told, Traces):
                return told
            if told in _WHY_NOT_READ:
                return _no_log(found, told)
        start = await runner.read(found.path, 0, min(found.stat.size, END_BYTES))
        content = content_of(start)
        if content in _WHY_NOT_READ:
            return _no_log(found, content)
        sink = _sink(found, pool)
        if content in PACKED:
            return await _read_packed(runner, found, start, content, sink, whole=whole)
        return await _read_plain(runner, found, start, sink, whole=whole)
    except (OSError, RunnerError) as error:
        return _not_read(found, *log_status(error))
    except ReaderLost as error:
        return _not_read(found, LogStatus.FAILED, str(error))


def _no_log(found: Found, content: Content) -> Traces:
    """A file that a person named is told, one that a folder holds is left out, but for a bundle."""
    why = _WHY_NOT_READ[content]
    told = found.named or content is Content.BUNDLE
    return _not_read(found, LogStatus.NOT_A_FILE, why) if told else Traces()


def _sink(found: Found, pool: ParsePool | None) -> Sink:
    assert found.stat is not None
    year = found.stat.mtime.year
    return _Here(found.path, year) if pool is None else pool.open(found.path, year)


def _not_read(found: Found, status: LogStatus, why: str) -> Traces:
    size = None if found.stat is None else found.stat.size
    return Traces((Source(name=found.path, status=status, why=why, size=size),))


async def _read_plain(
    runner: Runner, found: Found, start: bytes, sink: Sink, *, whole: bool
) -> Traces:
    assert found.stat is not None
    size, at = found.stat.size, 0
    for offset, length in spans(size, whole=whole):
        block = await runner.read(found.path, offset, length) if offset else start
        await sink.skip(offset - at)
        await sink.feed(block)
        at = offset + len(block)
        if offset and not block:
            # Cut short under our hands.
            break
    return await sink.finish(max(size, at))


async def _read_packed(
    runner: Runner, found: Found, start: bytes, content: Content, sink: Sink, *, whole: bool
) -> Traces:
    """All of it is unpacked, but only its two ends are parsed unless ``whole``."""
    assert found.stat is not None
    size, at, block = found.stat.size, len(start), start
    ends = _Ends(sink, whole=whole)
    unpacker: Unpacker | None = None
    trouble = ""
    try:
        unpacker = Unpacker(content)
        while block:
            for part in unpacker.feed(block):
                if not ends.any and (ours := content_of(part)) in OURS:
                    if content is Content.ZSTD and ours is Content.BUNDLE:
                        return _not_read(found, LogStatus.NOT_A_FILE, _ZSTD_BUNDLE)
                    return _no_log(found, ours)
                await ends.feed(part)
            block = await runner.read(found.path, at, min(BLOCK_BYTES, size - at))
            at += len(block)
        if unpacker.open:
            trouble = "it ends in the middle of its packed bytes"
    except CannotUnpack as error:
        trouble = str(error)
    if trouble and not ends.any:
        return _not_read(found, LogStatus.FAILED, trouble)
    return _with_trouble(await ends.finish(), trouble)


def _with_trouble(traces: Traces, trouble: str) -> Traces:
    """What was read, and why it is not all; the end of such a source is no end of the run."""
    if not trouble:
        return traces
    sources = tuple(replace(one, why=trouble, cut=True) for one in traces.sources)
    return replace(traces, sources=sources)


class _Ends:
    """Hands on the first and the last :data:`END_BYTES` of a stream whose length nobody knows."""

    def __init__(self, sink: Sink, *, whole: bool) -> None:
        self._sink = sink
        self._whole = whole
        self._seen = 0
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._dropped = 0

    @property
    def any(self) -> bool:
        return self._seen > 0

    async def feed(self, data: bytes) -> None:
        room = len(data) if self._whole else max(0, END_BYTES - self._seen)
        self._seen += len(data)
        if head := data[:room]:
            await self._sink.feed(head)
        if rest := data[room:]:
            self._held.append(rest)
            self._held_bytes += len(rest)
            while self._held_bytes - len(self._held[0]) >= END_BYTES:
                self._drop(len(self._held[0]))
        await asyncio.sleep(0)

    def _drop(self, count: int) -> None:
        first = self._held.pop(0)
        if len(first) > count:
            self._held.insert(0, first[count:])
        self._held_bytes -= count
        self._dropped += count

    async def finish(self) -> Traces:
        over = self._held_bytes - END_BYTES
        if over > 0:
            self._drop(over)
        if self._dropped:
            await self._sink.skip(self._dropped)
        for part in self._held:
            await self._sink.feed(part)
        return await self._sink.finish(self._seen)


async def _read_stdin(stdin: AsyncIterator[bytes]) -> Traces:
    """All of it: it has to be taken from whoever writes it anyway. It may be packed too."""
    sink = _Here(STDIN, None)
    seen = 0
    trouble = ""
    unpacker: Unpacker | None = None
    kind: Content | None = None
    try:
        async for block in _with_whole_start(stdin):
            if seen == 0 and (content := content_of(block)) in PACKED:
                unpacker = Unpacker(content)
            seen += len(block)
            for part in (block,) if unpacker is None else unpacker.feed(block):
                kind = kind or content_of(part)
                if kind not in OURS:
                    await sink.feed(part)
    except CannotUnpack as error:
        trouble = str(error)
    if kind in OURS:
        why = _WHY_NOT_READ[kind]
        if kind is not Content.PRINTED:
            why += f": {_ON_STDIN}"
        return Traces((Source(name=STDIN, status=LogStatus.NOT_A_FILE, why=why, size=seen),))
    return _with_trouble(await sink.finish(seen), trouble)


async def _with_whole_start(blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes; the first block is long enough to tell what they are."""
    start = b""
    began = False
    async for block in blocks:
        if began:
            yield block
            continue
        start += block
        if len(start) >= SAMPLE_BYTES:
            began = True
            yield start
    if not began and start:
        yield start
