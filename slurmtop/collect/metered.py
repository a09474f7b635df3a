"""Counts what slurmtop costs the controller: the figure in the header, and in the tests."""

from collections import Counter, deque
from collections.abc import AsyncIterator
from pathlib import PurePath

from slurmtop.model.ports import Clock, Command, Completed, FileStat, Runner

_NO_CALL = frozenset({"-V", "--version", "--help", "--usage", "--helpformat"})


def controller_calls(argv: tuple[str, ...]) -> int:
    """Requests that ``argv`` sends to slurmctld when nothing fails; 0 for other programs.

    Measured with ``sdiag`` before and after twelve runs of each, Slurm 22.05.8: a table and the
    partitions for squeue, sinfo and ``show node``; one more, about the federation, for chosen
    jobs without ``--local``; a ping beside ``show config``; the whole job table and the
    federation for scancel with a signal or a filter. sacct asks slurmdbd, never the controller.
    """
    words = argv[1:]
    if not argv or _NO_CALL.intersection(words):
        return 0
    program = PurePath(argv[0]).name
    federation = 0 if "--local" in words else 1
    if program == "squeue":
        chosen = any(word == "--me" or word[:2] in ("-u", "-j") for word in words)
        return 2 + (federation if chosen else 0)
    if program == "scontrol":
        return _scontrol_calls(words, federation)
    if program == "scancel":
        return 2 if any(word.startswith("-") for word in words) else 1
    return 2 if program == "sinfo" else 0


def _scontrol_calls(words: tuple[str, ...], federation: int) -> int:
    if "show" not in words:
        return 1
    what = words[words.index("show") + 1 : words.index("show") + 2]
    match what:
        case ("job",) | ("jobs",):
            return 1 + federation
        case ("config",) | ("node",) | ("nodes",):
            return 2
        case ("hostnames",) | ("hostlist",) | ("hostlistsorted",):
            return 0
        case _:
            return 1


class MeteredRunner:
    """Any runner, counted. A call is counted when it starts: a failing one costs as much."""

    def __init__(self, inner: Runner, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock
        self._recent: deque[tuple[float, int]] = deque()
        self.total = 0
        """Requests to the controller since the start."""
        self.database_total = 0
        """Runs of sacct, which ask slurmdbd."""
        self.by_program: Counter[str] = Counter()
        """Runs of each program, whatever they cost."""

    def calls_last_minute(self) -> int:
        """Requests to the controller in the last 60 s."""
        limit = self._clock.monotonic() - 60.0
        while self._recent and self._recent[0][0] <= limit:
            self._recent.popleft()
        return sum(calls for _, calls in self._recent)

    async def run(self, command: Command) -> Completed:
        self._count(command.argv)
        return await self._inner.run(command)

    async def stream(self, command: Command) -> AsyncIterator[bytes]:
        self._count(command.argv)
        async for chunk in self._inner.stream(command):
            yield chunk

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        return await self._inner.read(path, offset, length, host)

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        return await self._inner.stat(path, host)

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        return await self._inner.list(path, host)

    def _count(self, argv: tuple[str, ...]) -> None:
        program = PurePath(argv[0]).name if argv else ""
        self.by_program[program] += 1
        if program == "sacct":
            self.database_total += 1
        calls = controller_calls(argv)
        if calls:
            self.total += calls
            self._recent.append((self._clock.monotonic(), calls))
            self.calls_last_minute()
