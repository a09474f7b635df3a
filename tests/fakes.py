"""A clock that moves only when told to, and a runner that answers from a table."""

import asyncio
import fnmatch
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

from slurmtop.model.ports import Command, Completed, FileStat

START = datetime(2031, 5, 5, 12, 0, 0, tzinfo=UTC)


class FakeClock:
    """``advance(seconds)`` wakes every sleeper that is due, in order."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._monotonic = 1_000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._monotonic + seconds, future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move time on and let everything that was waiting for it run."""
        target = self._monotonic + seconds
        while True:
            due = sorted(
                (item for item in self._sleepers if item[0] <= target), key=lambda item: item[0]
            )
            if not due:
                break
            when, future = due[0]
            self._sleepers.remove(due[0])
            self._step(when)
            if not future.done():
                future.set_result(None)
            await settle()
        self._step(target)
        await settle()

    def step(self, seconds: float) -> None:
        """The clock on the wall is set; nobody waits for longer or shorter."""
        self._now += timedelta(seconds=seconds)

    def _step(self, when: float) -> None:
        delta = max(0.0, when - self._monotonic)
        self._monotonic += delta
        self._now += timedelta(seconds=delta)


async def settle(turns: int = 20) -> None:
    """Give every ready task its turn."""
    for _ in range(turns):
        await asyncio.sleep(0)


Answer = Completed | Callable[[Command], Completed] | Exception


class FakeRunner:
    """Answers ``run`` by the first matching pattern (shell style, on the joined argv).

    Every command is kept in ``calls``. Files are a dict from path to bytes or an exception.
    """

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.calls: list[Command] = []
        self.answers: list[tuple[str, Answer]] = []
        self.files: dict[str, bytes | Exception] = {}
        self.mtimes: dict[str, datetime] = {}
        self.inodes: dict[str, int] = {}
        self.reads: list[tuple[str, int, int]] = []
        self.gate: asyncio.Event | None = None
        """While set and not open, ``run`` waits: a command that is still in flight."""

    def on(
        self,
        pattern: str,
        stdout: bytes | str = b"",
        *,
        rc: int | None = 0,
        stderr: bytes | str = b"",
        took_s: float = 0.1,
    ) -> None:
        """Newest answers win, so that a test can change its mind."""
        out = stdout.encode() if isinstance(stdout, str) else stdout
        err = stderr.encode() if isinstance(stderr, str) else stderr
        self.answers.insert(0, (pattern, Completed(rc, out, err, self.clock.now(), took_s)))

    def on_call(self, pattern: str, answer: Answer) -> None:
        self.answers.insert(0, (pattern, answer))

    async def run(self, command: Command) -> Completed:
        self.calls.append(command)
        if self.gate is not None:
            await self.gate.wait()
        line = " ".join(command.argv)
        for pattern, answer in self.answers:
            if fnmatch.fnmatchcase(line, pattern):
                if isinstance(answer, Exception):
                    raise answer
                return answer(command) if callable(answer) else answer
        raise AssertionError(f"no answer for: {line!r}")

    async def stream(self, command: Command) -> AsyncIterator[bytes]:
        done = await self.run(command)
        yield done.stdout

    def _bytes(self, path: str) -> bytes:
        content = self.files.get(path, FileNotFoundError(2, "No such file or directory", path))
        if isinstance(content, Exception):
            raise content
        return content

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        self.reads.append((path, offset, length))
        return self._bytes(path)[offset : offset + length]

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        return FileStat(
            size=len(self._bytes(path)),
            mtime=self.mtimes.get(path, self.clock.now()),
            device=1,
            inode=self.inodes.get(path, 1),
        )

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        prefix = path.rstrip("/") + "/"
        return tuple(
            sorted({p[len(prefix) :].split("/")[0] for p in self.files if p.startswith(prefix)})
        )
