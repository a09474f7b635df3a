"""Reads one log in bounded blocks: its tail, what is new, older parts, and hits of a search.

Works on a Runner only. Files that cannot be read have a state and a sentence, not an
exception. At most one block is held besides the window, however large the file is.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from slurmtop.model.facts import LogStatus
from slurmtop.model.ports import FileStat, FileTimeout, Runner, RunnerError
from slurmtop.parse.logs.lines import split_lines
from slurmtop.ui.log_window import LogWindow, shown

TAIL_BYTES = 128 * 1024
PAGE_BYTES = 64 * 1024
SCAN_BYTES = 1024 * 1024
REOPEN_BYTES = 1024 * 1024

OnProgress = Callable[[int, int], None]
"""Called with the bytes looked at so far and the bytes there are."""


@dataclass(frozen=True, slots=True)
class Polled:
    """What a poll brought. ``lost`` rows left the top of the window."""

    changed: bool
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that a search found; ``number`` is known where the scan began at byte 0."""

    offset: int
    text: str
    number: int | None = None


class LogPager:
    """One file. ``status`` and ``why`` say how it is; ``window`` holds what is shown."""

    def __init__(self, runner: Runner, path: str, *, limit: int | None = None) -> None:
        self._runner = runner
        self.path = path
        self.window = LogWindow(limit) if limit else LogWindow()
        self.status: LogStatus | None = None
        self.why = ""
        self.stat: FileStat | None = None

    async def poll(self, marker: Callable[[str], str]) -> Polled:
        """Stat the file and read what is new; an unchanged file costs one stat.

        The first call reads the tail. ``marker`` makes the line that is shown where the file
        was cut short or replaced, from the word for what happened.
        """
        try:
            return await self._poll(marker)
        except (OSError, RunnerError) as error:
            return self._failed(error)

    async def _poll(self, marker: Callable[[str], str]) -> Polled:
        stat = await self._runner.stat(self.path)
        if stat.is_dir:
            raise IsADirectoryError(self.path)
        if not stat.is_regular:
            self.stat = None
            return self._is(LogStatus.NOT_A_FILE, "it is a pipe or a device")
        before, first = self.stat, self.status is not LogStatus.READ
        if before is not None and not first:
            if (stat.device, stat.inode) != (before.device, before.inode):
                return await self._anew(stat, marker("replaced"))
            if stat.size < before.size or stat.size < self.window.end:
                return await self._anew(stat, marker("cut short"))
            if stat.size == before.size and stat.mtime == before.mtime:
                return Polled(changed=False)
        if first:
            await self._load_tail(stat)
            lost = 0
        else:
            lost = await self._grow(stat)
        self.stat, self.status, self.why = stat, LogStatus.READ, ""
        return Polled(changed=True, lost=lost)

    def _failed(self, error: Exception) -> Polled:
        return self._is(*status_of(error))

    def _is(self, status: LogStatus, why: str) -> Polled:
        changed = (status, why) != (self.status, self.why)
        self.status, self.why = status, why
        return Polled(changed=changed)

    async def _anew(self, stat: FileStat, marker: str) -> Polled:
        if stat.size <= REOPEN_BYTES:
            data = await self._runner.read(self.path, 0, stat.size)
            self.window.began_anew(marker, data, max(stat.size, len(data)))
        else:
            self.window.began_anew(marker, b"", 0)
            await self._load_tail(stat)
        self.stat, self.status, self.why = stat, LogStatus.READ, ""
        return Polled(changed=True)

    async def _load_tail(self, stat: FileStat) -> None:
        offset = max(0, stat.size - TAIL_BYTES)
        data = await self._runner.read(self.path, offset, stat.size - offset)
        offset, data = _from_line_start(offset, data)
        self.window.load(offset, data, max(stat.size, offset + len(data)))

    async def _grow(self, stat: FileStat) -> int:
        window = self.window
        if not window.at_end:
            window.size = stat.size
            return 0
        if stat.size - window.end > TAIL_BYTES:
            await self._load_tail(stat)
            return 0
        data = await self._runner.read(self.path, window.end, stat.size - window.end)
        return window.append(data, max(stat.size, window.end + len(data)))

    async def older(self) -> int:
        """Read the block above the window. Returns how many rows came on top."""
        window = self.window
        if window.at_start:
            return 0
        length = PAGE_BYTES
        while True:
            offset = max(0, window.start - length)
            data = await self._runner.read(self.path, offset, window.start - offset)
            whole_from, data = _from_line_start(offset, data)
            if data or offset == 0 or length >= SCAN_BYTES:
                break
            length *= 4
        if not data:
            whole_from, data = (
                offset,
                await self._runner.read(self.path, offset, window.start - offset),
            )
        return window.prepend(whole_from, data)

    async def newer(self) -> int:
        """Read the block below a window that is not at the end. Returns rows lost on top."""
        window = self.window
        if window.at_end:
            return 0
        length = min(PAGE_BYTES, window.size - window.end)
        data = await self._runner.read(self.path, window.end, length)
        if not data:
            window.size = window.end
        return window.append(data, max(window.size, window.end + len(data)))

    async def to_end(self) -> None:
        """Show the tail again after reading elsewhere."""
        stat = await self._runner.stat(self.path)
        await self._load_tail(stat)
        self.stat = stat

    async def show_around(self, offset: int) -> None:
        """Load the part that holds the line at ``offset``, with half a block before it."""
        window = self.window
        if window.index_of(offset) is not None:
            return
        first = max(0, offset - PAGE_BYTES // 2)
        data = await self._runner.read(self.path, first, PAGE_BYTES)
        start, data = _from_line_start(first, data)
        if start > offset:
            start = offset
            data = await self._runner.read(self.path, offset, PAGE_BYTES)
        window.load(start, data, max(window.size, start + len(data)))

    async def blocks(self, start: int, stop: int) -> AsyncIterator[tuple[int, bytes]]:
        """Whole lines from ``start`` (a line start) to ``stop``, a bounded block at a time.

        A line longer than a block comes in pieces.
        """
        at, carry = start, b""
        while at + len(carry) < stop:
            want = min(SCAN_BYTES, stop - at - len(carry))
            data = await self._runner.read(self.path, at + len(carry), want)
            if not data:
                break
            whole, newline, rest = (carry + data).rpartition(b"\n")
            if newline:
                yield at, whole + newline
                at, carry = at + len(whole) + 1, rest
            elif len(rest) >= SCAN_BYTES:
                yield at, rest
                at, carry = at + len(rest), b""
            else:
                carry = rest
        if carry:
            yield at, carry

    async def find(
        self,
        words: str,
        at: int,
        *,
        backwards: bool = False,
        inclusive: bool = False,
        progress: OnProgress,
    ) -> Hit | None:
        """The next line that holds ``words``, from the line at byte ``at``, once round the file.

        Lower-case words match any case. ``inclusive`` lets the line at ``at`` be the answer
        before the others; else it is the last one that is looked at.
        """
        size = (await self._runner.stat(self.path)).size
        at = min(at, size)
        if inclusive and (hit := await self._at_line(words, at)) is not None:
            return hit
        after = await self._line_start_from(at + 1)
        count = _Counter(size, progress)
        if backwards:
            hit = await self._backwards(words, 0, at, count)
            hit = hit or await self._backwards(words, after, size, count)
        else:
            hit = await self._forwards(words, after, size, count)
            hit = hit or await self._forwards(words, 0, at, count)
        return hit or await self._at_line(words, at)

    async def _forwards(self, words: str, start: int, stop: int, count: "_Counter") -> Hit | None:
        async for at, data in self.blocks(start, stop):
            hits = hits_in(words, at, data)
            count.add(len(data))
            if hits:
                return hits[0]
        return None

    async def _backwards(self, words: str, start: int, stop: int, count: "_Counter") -> Hit | None:
        while stop > start:
            low = max(start, stop - SCAN_BYTES)
            low = start if low == start else min(stop, await self._line_start_from(low))
            if low == stop:
                low = max(start, stop - SCAN_BYTES)
            found: Hit | None = None
            async for at, data in self.blocks(low, stop):
                hits = hits_in(words, at, data)
                count.add(len(data))
                found = hits[-1] if hits else found
            if found is not None:
                return found
            stop = low
        return None

    async def _at_line(self, words: str, offset: int) -> Hit | None:
        data = await self._runner.read(self.path, offset, PAGE_BYTES)
        hits = hits_in(words, offset, data.partition(b"\n")[0])
        return hits[0] if hits else None

    async def _line_start_from(self, offset: int) -> int:
        """The first line start at or after ``offset``."""
        if offset <= 0:
            return 0
        at = offset - 1
        while True:
            data = await self._runner.read(self.path, at, PAGE_BYTES)
            if not data:
                return at
            newline = data.find(b"\n")
            if newline >= 0:
                return at + newline + 1
            at += len(data)


def status_of(error: Exception) -> tuple[LogStatus, str]:
    """The state of a file and a few words, from what reading it raised."""
    if isinstance(error, FileTimeout):
        return LogStatus.HANGS, str(error)
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return LogStatus.ABSENT, ""
    if isinstance(error, PermissionError):
        return LogStatus.DENIED, ""
    if isinstance(error, IsADirectoryError):
        return LogStatus.NOT_A_FILE, "it is a directory"
    return LogStatus.FAILED, getattr(error, "strerror", None) or str(error)


def hits_in(words: str, at: int, data: bytes) -> list[Hit]:
    """Lines of ``data`` (which starts at byte ``at``) whose shown text holds ``words``."""
    fold = words == words.lower()
    blanks = " " in words and b"\t" in data
    if words.isascii() and words.isprintable() and b"\x1b" not in data and not blanks:
        needle = words.encode()
        if needle not in (data.lower() if fold else data):
            return []
    out: list[Hit] = []
    for line in split_lines(data, offset=at, number=None):
        text = shown(line.text)
        if words in (text.lower() if fold else text):
            out.append(Hit(line.offset, text))
    return out


class _Counter:
    """Adds up what was looked at and tells it."""

    def __init__(self, total: int, progress: OnProgress) -> None:
        self._total = total
        self._done = 0
        self._progress = progress

    def add(self, count: int) -> None:
        self._done = min(self._total, self._done + count)
        self._progress(self._done, self._total)


def _from_line_start(offset: int, data: bytes) -> tuple[int, bytes]:
    """Drop the end of a line whose start was not read. Nothing is left where no line ends."""
    if offset == 0:
        return offset, data
    newline = data.find(b"\n")
    if newline < 0:
        return offset + len(data), b""
    return offset + newline + 1, data[newline + 1 :]
