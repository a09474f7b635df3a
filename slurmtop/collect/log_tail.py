"""Following one log in bounded blocks: its tail first, then what is new, however large it is.

A log can be missing yet, closed to this user, on a mount that hangs, cut short by a requeue or
replaced by another file. All of these are a :class:`LogStatus` or a mark, never an exception.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from slurmtop.collect.log_files import checked_stat, log_status
from slurmtop.model.facts import LogLine, LogStatus
from slurmtop.model.ports import Clock, FileStat, Runner, RunnerError
from slurmtop.parse.logs.lines import LineDecoder, split_lines

BLOCK_BYTES = 64 * 1024
#: What a log may have grown by between two looks and still be read whole.
_MOST_GROWTH_BLOCKS = 16
_SEARCH_BLOCKS = 16
#: Read again with what is new: where it has changed, the file was written anew in place.
_OVERLAP_BYTES = 64
_LINE_REACH = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDelta:
    """What one look at a log brought.

    ``lines`` are new and whole; ``partial`` is the unfinished last line as it stands.
    ``truncated``, ``rotated`` and ``skipped_bytes`` (it grew faster than it is read) say that
    ``lines`` do not continue the ones before. ``looked_at`` is when.
    """

    status: LogStatus
    looked_at: datetime
    why: str = ""
    lines: tuple[LogLine, ...] = ()
    partial: LogLine | None = None
    truncated: bool = False
    rotated: bool = False
    skipped_bytes: int = 0
    size: int | None = None
    mtime: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """Lines further up; ``start`` is the offset of the first, 0 at the start of the file."""

    status: LogStatus
    why: str = ""
    lines: tuple[LogLine, ...] = ()
    start: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSearch:
    """The nearest line that holds the text, or None with how far the search came.

    ``reached`` is where to go on; ``done`` says that the end (or the start) was reached.
    """

    status: LogStatus
    why: str = ""
    line: LogLine | None = None
    reached: int = 0
    done: bool = True


class LogTail:
    """Follows the log at ``path`` (None where nobody knows where it is)."""

    def __init__(
        self,
        runner: Runner,
        path: str | None,
        clock: Clock,
        block: int = BLOCK_BYTES,
        *,
        host: str | None = None,
    ) -> None:
        self.path = path
        self._runner = runner
        self._clock = clock
        self._block = block
        self._host = host
        self._lock = asyncio.Lock()
        self._identity: tuple[int, int] | None = None
        self._offset = 0
        self._end_bytes = b""
        self._decoder = LineDecoder()

    async def poll(self) -> LogDelta:
        """Look at the log: the last block the first time, then only what was added.

        A log that did not change costs one ``stat`` and no read.
        """
        async with self._lock:
            if self.path is None:
                return self._unread(LogStatus.UNKNOWN_PATH, "nobody says where this log is")
            try:
                stat = await checked_stat(self._runner, self.path, self._host)
                return await self._follow(self.path, stat)
            except (OSError, RunnerError) as error:
                return self._unread(*log_status(error))

    async def read_before(self, offset: int) -> LogPage:
        """The whole lines of about one block that end where the line at ``offset`` starts."""
        if self.path is None:
            return LogPage(status=LogStatus.UNKNOWN_PATH, why="nobody says where this log is")
        try:
            await checked_stat(self._runner, self.path, self._host)
            start = max(0, offset - self._block)
            before = 1 if start else 0
            data = await self._read(self.path, start - before, offset - start + before)
        except (OSError, RunnerError) as error:
            status, why = log_status(error)
            return LogPage(status=status, why=why)
        cut = data.find(b"\n", 0, -1) + 1 if before else 0
        # One line longer than a block is given in pieces rather than not at all.
        cut = cut or before
        lines = split_lines(data[cut:], offset=start - before + cut, number=None if start else 1)
        return LogPage(
            status=LogStatus.READ,
            lines=lines,
            start=lines[0].offset if lines else start,
        )

    async def search(
        self,
        text: str,
        *,
        start: int,
        backwards: bool = False,
        most_bytes: int = 256 * 1024 * 1024,
    ) -> LogSearch:
        """The nearest line with ``text`` (upper and lower case alike) from ``start`` on.

        Forwards from the byte ``start``, or backwards in what lies before it. Never more than
        two blocks are in memory, and every block is a chance to cancel.
        """
        if self.path is None:
            return LogSearch(
                status=LogStatus.UNKNOWN_PATH, why="nobody says where this log is", reached=start
            )
        needle = text.encode("utf-8", "replace").lower()
        if not needle:
            return LogSearch(status=LogStatus.READ, reached=start)
        try:
            stat = await checked_stat(self._runner, self.path, self._host)
            look = self._search_back if backwards else self._search_on
            return await look(self.path, needle, start, stat.size, most_bytes)
        except (OSError, RunnerError) as error:
            status, why = log_status(error)
            return LogSearch(status=status, why=why, reached=start, done=False)

    async def _follow(self, path: str, stat: FileStat) -> LogDelta:
        identity = (stat.device, stat.inode)
        if self._identity is None:
            return await self._begin(path, stat)
        if identity != self._identity:
            return await self._begin(path, stat, rotated=True)
        if stat.size < self._offset:
            return await self._begin(path, stat, truncated=True)
        if stat.size == self._offset:
            return self._seen(stat)
        grown = stat.size - self._offset
        if grown > _MOST_GROWTH_BLOCKS * self._block:
            return await self._begin(path, stat, skipped_bytes=grown - self._block)
        known = len(self._end_bytes)
        data = await self._read(path, self._offset - known, known + grown)
        if data[:known] != self._end_bytes:
            return await self._begin(path, stat, truncated=True)
        lines = self._decoder.feed(data[known:])
        self._offset += len(data) - known
        self._end_bytes = data[-_OVERLAP_BYTES:]
        return self._seen(stat, lines)

    async def _begin(
        self,
        path: str,
        stat: FileStat,
        *,
        truncated: bool = False,
        rotated: bool = False,
        skipped_bytes: int = 0,
    ) -> LogDelta:
        start = max(0, stat.size - self._block)
        # One byte more tells whether a line begins exactly there.
        before = 1 if start else 0
        data = await self._read(path, start - before, stat.size - start + before)
        cut = data.find(b"\n") + 1 if before else 0
        cut = cut or before
        self._identity = (stat.device, stat.inode)
        self._offset = start - before + len(data)
        self._end_bytes = data[-_OVERLAP_BYTES:]
        self._decoder = LineDecoder(offset=start - before + cut, number=None if start else 1)
        return self._seen(
            stat,
            self._decoder.feed(data[cut:]),
            truncated=truncated,
            rotated=rotated,
            skipped_bytes=skipped_bytes,
        )

    async def _read(self, path: str, offset: int, length: int) -> bytes:
        parts = []
        while length > 0:
            part = await self._runner.read(path, offset, min(length, self._block), self._host)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return b"".join(parts)

    async def _search_on(
        self, path: str, needle: bytes, start: int, size: int, most_bytes: int
    ) -> LogSearch:
        at = max(0, start)
        limit = min(size, at + most_bytes)
        step = self._block * _SEARCH_BLOCKS
        while at < limit:
            data = (await self._read(path, at, step + len(needle) - 1)).lower()
            found = data.find(needle)
            while 0 <= found < step:
                line = await self._line_at(path, at + found)
                if _holds(line, needle):
                    return LogSearch(status=LogStatus.READ, line=line, reached=at + found)
                found = data.find(needle, found + 1)
            at += step
        reached = min(at, size)
        return LogSearch(status=LogStatus.READ, reached=reached, done=reached >= size)

    async def _search_back(
        self, path: str, needle: bytes, start: int, size: int, most_bytes: int
    ) -> LogSearch:
        end = min(start, size)
        limit = max(0, end - most_bytes)
        step = self._block * _SEARCH_BLOCKS
        while end > limit:
            at = max(0, end - step)
            # Hits that begin before ``end``; nothing at or behind ``start`` may be part of one.
            length = min(end - at + len(needle) - 1, start - at)
            data = (await self._read(path, at, length)).lower()
            found = data.rfind(needle)
            while found >= 0:
                line = await self._line_at(path, at + found)
                if _holds(line, needle):
                    return LogSearch(status=LogStatus.READ, line=line, reached=at + found)
                found = data.rfind(needle, 0, found + len(needle) - 1)
            end = at
        return LogSearch(status=LogStatus.READ, reached=end, done=end == 0)

    async def _line_at(self, path: str, offset: int) -> LogLine | None:
        """The line around ``offset``; of one that is endless only the part near it."""
        first = max(0, offset - _LINE_REACH)
        data = await self._read(path, first, offset - first + _LINE_REACH)
        begin = data.rfind(b"\n", 0, offset - first) + 1
        end = data.find(b"\n", offset - first)
        piece = data[begin:] if end < 0 else data[begin:end]
        lines = split_lines(piece, offset=first + begin, number=None)
        return lines[0] if lines else None

    def _seen(
        self,
        stat: FileStat,
        lines: tuple[LogLine, ...] = (),
        *,
        truncated: bool = False,
        rotated: bool = False,
        skipped_bytes: int = 0,
    ) -> LogDelta:
        return LogDelta(
            status=LogStatus.READ,
            looked_at=self._clock.now(),
            lines=lines,
            partial=self._decoder.pending,
            truncated=truncated,
            rotated=rotated,
            skipped_bytes=skipped_bytes,
            size=stat.size,
            mtime=stat.mtime,
        )

    def _unread(self, status: LogStatus, why: str) -> LogDelta:
        return LogDelta(status=status, looked_at=self._clock.now(), why=why)


def _holds(line: LogLine | None, needle: bytes) -> bool:
    # A bar that was drawn over still stands in the file, but nobody could see the hit.
    return line is not None and needle in line.text.encode("utf-8", "replace").lower()
