"""One log as a person reads it: its end first, older and newer parts on demand, searching.

Stands on :class:`LogTail`; adds the window and the way back to the end. At most one block is
held besides the window, however large the file is.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from slurmtop.collect.log_files import log_status
from slurmtop.collect.log_tail import BLOCK_BYTES, LogDelta, LogTail
from slurmtop.model.facts import LogLine, LogStatus
from slurmtop.model.ports import Clock, Runner, RunnerError
from slurmtop.parse.logs.lines import split_lines
from slurmtop.ui.log_window import LIMIT, LogWindow

SCAN_BYTES = 1024 * 1024
#: One call of a search, after which its progress is told.
SEARCH_BYTES = 8 * SCAN_BYTES

OnProgress = Callable[[int, int], None]
"""Called with the bytes looked at so far and the bytes there are."""


@dataclass(frozen=True, slots=True)
class Polled:
    """What a poll brought. ``lost`` rows left the top of the window."""

    changed: bool
    lost: int = 0


class CannotRead(Exception):
    """Reading further failed; ``str()`` is a few words for people. What is shown stays."""


class LogPager:
    """One file. ``status`` and ``why`` say how it is; ``window`` holds what is shown."""

    def __init__(self, runner: Runner, path: str, clock: Clock, *, limit: int = LIMIT) -> None:
        self._runner = runner
        self._clock = clock
        self.path = path
        self.window = LogWindow(limit)
        self.status: LogStatus | None = None
        self.why = ""
        self._tail = LogTail(runner, path, clock)
        self._partial: LogLine | None = None
        self._loaded = False

    async def poll(self, marker: Callable[[str], str]) -> Polled:
        """Look at the file; one that did not change costs one stat and no read.

        ``marker`` makes the line that is shown where the file was cut short or replaced,
        from the words for what happened.
        """
        delta = await self._tail.poll()
        was, self.status, self.why = (self.status, self.why), delta.status, delta.why
        if delta.status is not LogStatus.READ:
            return Polled(changed=was != (delta.status, delta.why))
        again = was[0] is not LogStatus.READ
        moved, lost = self._take(delta, marker)
        return Polled(changed=moved or again, lost=lost)

    def _take(self, delta: LogDelta, marker: Callable[[str], str]) -> tuple[bool, int]:
        window, size = self.window, delta.size or 0
        before, self._partial = self._partial, delta.partial
        if not self._loaded:
            self._loaded = True
            window.load(delta.lines, delta.partial, end=size, size=size)
        elif delta.truncated or delta.rotated:
            what = "replaced" if delta.rotated else "cut short"
            window.began_anew(marker(what), delta.lines, delta.partial, size)
        elif not window.at_end:
            moved = window.size != size
            window.size = size
            return moved, 0
        elif delta.skipped_bytes:
            window.load(delta.lines, delta.partial, end=size, size=size)
        else:
            lost = window.append(delta.lines, delta.partial, end=size, size=size)
            return bool(delta.lines) or delta.partial != before, lost
        return True, 0

    async def older(self) -> int:
        """Read the block above the window. Returns how many rows came on top."""
        window = self.window
        if window.at_start:
            return 0
        page = await self._tail.read_before(window.start)
        if page.status is not LogStatus.READ:
            raise CannotRead(page.why)
        lines = page.lines[-self._half :]
        start = page.start if len(lines) == len(page.lines) else lines[0].offset
        return window.prepend(lines, start)

    async def newer(self) -> int:
        """Read the block below a window that is not at the end. Returns rows lost on top."""
        window = self.window
        if window.at_end:
            return 0
        if window.size - window.end <= BLOCK_BYTES:
            lost = await self._join_the_end()
            if lost is not None:
                return lost
        lines, end = await self._lines_from(window.end)
        grown = max(window.size, end) if lines else end
        return window.append(lines, None, end=end, size=grown)

    @property
    def _half(self) -> int:
        """Rows that may come at one edge: what is in sight must not leave at the other."""
        return self.window.limit // 2

    async def _lines_from(self, offset: int) -> tuple[Sequence[LogLine], int]:
        """About a block of whole lines from ``offset`` on, and where the next one starts."""
        data = await self._read(offset, BLOCK_BYTES)
        whole = data[: data.rfind(b"\n") + 1] or data
        lines = split_lines(whole, offset=offset, number=None)
        if len(lines) > self._half:
            return lines[: self._half], lines[self._half].offset
        return lines, offset + len(whole)

    async def _join_the_end(self) -> int | None:
        """Follow the end again, if its last block reaches up to the window."""
        window = self.window
        tail = LogTail(self._runner, self.path, self._clock)
        delta = await tail.poll()
        if delta.status is not LogStatus.READ:
            raise CannotRead(delta.why)
        first = next(iter(delta.lines), delta.partial)
        lines = [line for line in delta.lines if line.offset >= window.end]
        if first is None or first.offset > window.end or len(lines) > self._half:
            return None
        self._tail, self._partial = tail, delta.partial
        size = delta.size or 0
        return window.append(lines, delta.partial, end=size, size=size)

    async def to_end(self) -> None:
        """Show the end again after reading elsewhere."""
        tail = LogTail(self._runner, self.path, self._clock)
        delta = await tail.poll()
        if delta.status is not LogStatus.READ:
            raise CannotRead(delta.why)
        self._tail, self._partial = tail, delta.partial
        size = delta.size or 0
        self.window.load(delta.lines, delta.partial, end=size, size=size)

    async def show_around(self, offset: int) -> None:
        """Load the lines before and after the line that starts at ``offset``."""
        window = self.window
        if window.index_of(offset) is not None:
            return
        page = await self._tail.read_before(offset)
        if page.status is not LogStatus.READ:
            raise CannotRead(page.why)
        lines, end = await self._lines_from(offset)
        before = page.lines[-self._half :]
        window.load((*before, *lines), None, end=end, size=max(window.size, end))

    async def find(
        self, words: str, at: int, *, backwards: bool = False, progress: OnProgress
    ) -> LogLine | None:
        """The next line that holds ``words``, any case, once round the file.

        Forwards among the lines that start at byte ``at`` or later, then among all; backwards
        among those before ``at``, then among all. ``at`` is the start of a line.
        """
        size = self.window.size
        for start in (at, size if backwards else 0):
            hit = await self._find_from(words, start, size, backwards, progress)
            if hit is not None:
                return hit
        return None

    async def _find_from(
        self, words: str, start: int, size: int, backwards: bool, progress: OnProgress
    ) -> LogLine | None:
        at = start
        while True:
            found = await self._tail.search(
                words, start=at, backwards=backwards, most_bytes=SEARCH_BYTES
            )
            if found.status is not LogStatus.READ:
                raise CannotRead(found.why)
            progress(min(size, abs(found.reached - start)), size)
            if found.line is not None or found.done:
                return found.line
            at = found.reached

    async def line_after(self, offset: int) -> int:
        """Where the line after the one at ``offset`` starts; the end of the file if none does."""
        while data := await self._read(offset, BLOCK_BYTES):
            newline = data.find(b"\n")
            if newline >= 0:
                return offset + newline + 1
            offset += len(data)
        return offset

    async def place_of(
        self, line: int | None, offset: int | None, progress: OnProgress
    ) -> int | None:
        """Where a line starts: at ``offset`` if that is known, else it is counted (from 1).

        None where the file does not reach that far.
        """
        if offset is not None:
            return offset if offset < self.window.size else None
        left, at = (line or 1) - 1, 0
        async for data in self.blocks():
            count = data.count(b"\n")
            if count >= left:
                start = 0
                for _ in range(left):
                    start = data.index(b"\n", start) + 1
                return at + start
            left -= count
            at += len(data)
            progress(at, self.window.size)
        return None

    async def blocks(self) -> AsyncIterator[bytes]:
        """The whole file from its first byte, a bounded block at a time."""
        at = 0
        while data := await self._read(at, SCAN_BYTES):
            yield data
            at += len(data)

    async def _read(self, offset: int, length: int) -> bytes:
        try:
            return await self._runner.read(self.path, offset, length)
        except (OSError, RunnerError) as error:
            raise CannotRead(log_status(error)[1]) from error
