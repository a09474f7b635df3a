"""Counts what slurmtop costs the controller: the figure in the header, and in the tests."""

from collections import Counter, deque
from collections.abc import AsyncIterator
from pathlib import PurePath

from slurmtop.model.ports import Clock, Command, Completed, FileStat, Runner

#: Requests to slurmctld for one run of a program. squeue and sinfo fetch a second table
#: beside their own; the rest is one request a run unless said otherwise below.
_CALLS = {"squeue": 2, "sinfo": 2, "scontrol": 1, "scancel": 1, "sbatch": 1, "srun": 1, "salloc": 1}
#: These talk to slurmdbd, never to slurmctld.
_DATABASE = frozenset({"sacct", "sacctmgr", "sreport", "sshare"})
#: ``scontrol`` words that are worked out in the program itself.
_FREE_SCONTROL = frozenset({"hostnames", "hostlist", "hostlistsorted"})


def controller_calls(argv: tuple[str, ...]) -> int:
    """Requests that ``argv`` sends to slurmctld when nothing fails; 0 for other programs.

    ``scancel`` with a filter or a signal loads the whole job table first, so it counts 2.
    """
    if not argv:
        return 0
    program = PurePath(argv[0]).name
    calls = _CALLS.get(program, 0)
    if program == "scontrol" and _FREE_SCONTROL.intersection(argv[1:]):
        return 0
    if program == "scancel" and any(word.startswith("-") for word in argv[1:]):
        return 2
    if {"-V", "--version", "--help", "--helpformat"}.intersection(argv[1:]):
        return 0
    return calls


class MeteredRunner:
    """Any runner, counted. A call is counted when it starts: a failing one costs as much."""

    def __init__(self, inner: Runner, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock
        self._recent: deque[tuple[float, int]] = deque()
        self.total = 0
        """Requests to the controller since the start."""
        self.database_total = 0
        """Runs of programs that ask slurmdbd."""
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
        if program in _DATABASE:
            self.database_total += 1
        calls = controller_calls(argv)
        if calls:
            self.total += calls
            self._recent.append((self._clock.monotonic(), calls))
            self.calls_last_minute()
