"""Counts what slurmtop costs the controller: the figure in the header, and in the tests."""

import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePath

from slurmtop.collect.streams import closing
from slurmtop.model.ports import Clock, Command, Completed, FileStat, Runner

#: Commands that are kept for whoever wants to see what ran.
KEPT = 200

#: The ids of a change, with commas between them; those inside brackets divide tasks.
_IDS = re.compile(r"(?:JobId=)?[0-9][0-9_,\[\]-]*")
_BETWEEN = re.compile(r",(?![^\[]*\])")
_NO_CALL = frozenset({"-V", "--version", "--help", "--usage", "--helpformat"})


def controller_calls(argv: tuple[str, ...]) -> int:
    """Requests that ``argv`` sends to slurmctld when nothing fails; 0 for other programs.

    Measured with ``sdiag`` before and after, Slurm 22.05.8: a table and the partitions for
    squeue, sinfo and ``show node``; one more, about the federation, for chosen jobs without
    ``--local``; the steps alone for ``squeue -s``; a ping beside ``show config``; the whole job
    table and the federation for scancel with a signal or a filter and without ``--ctld``; else
    one for each id that scancel or scontrol is to change (from 23.11 on ``scancel --ctld`` hands
    over all its ids at once: then this is too much); for a step of srun the job, the step and
    the end of each of its nodes. sacct asks slurmdbd, never the controller.
    """
    words = argv[1:]
    if not argv or _NO_CALL.intersection(words):
        return 0
    program = PurePath(argv[0]).name
    federation = 0 if "--local" in words else 1
    if program == "squeue":
        if "-s" in words:
            return 1 + federation
        chosen = any(word == "--me" or word[:2] in ("-u", "-j") for word in words)
        return 2 + (federation if chosen else 0)
    if program == "scontrol":
        return _scontrol_calls(words, federation)
    if program == "scancel":
        return _scancel_calls(words)
    if program == "srun":
        return _srun_calls(words)
    return 2 if program == "sinfo" else 0


def _srun_calls(words: tuple[str, ...]) -> int:
    """A look at the job, the new step, and from each node its end."""
    nodes = next((word[8:] for word in words if word.startswith("--nodes=")), "")
    return 2 + (int(nodes) if nodes.isdigit() else 1)


def _scancel_calls(words: tuple[str, ...]) -> int:
    ids = sum(1 for word in words if word[:1].isdigit())
    options = [word for word in words if word.startswith("-") and word not in ("-M", "--ctld")]
    return max(1, ids) if "--ctld" in words or not options else 2


def _scontrol_calls(words: tuple[str, ...], federation: int) -> int:
    named = next((word for word in words if _IDS.fullmatch(word)), None)
    if "show" not in words:
        return 1 if named is None else 1 + len(_BETWEEN.findall(named))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One command that was run. ``took_s`` is seconds, None while it runs.

    ``rc`` is None where there is no exit status: it was ended, it never started, or it
    still runs. ``trouble`` says in a few words what was wrong, "" where nothing was.
    """

    argv: tuple[str, ...]
    at: datetime
    host: str | None = None
    took_s: float | None = None
    rc: int | None = None
    trouble: str = ""


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
        self._kept: dict[int, Ran] = {}
        self._number = 0

    def calls_last_minute(self) -> int:
        """Requests to the controller in the last 60 s."""
        limit = self._clock.monotonic() - 60.0
        while self._recent and self._recent[0][0] <= limit:
            self._recent.popleft()
        return sum(calls for _, calls in self._recent)

    def recent(self) -> tuple[Ran, ...]:
        """The last :data:`KEPT` commands, the newest first, those that still run too."""
        return tuple(reversed(self._kept.values()))

    async def run(self, command: Command) -> Completed:
        self._count(command.argv)
        number, started = self._begin(command), self._clock.monotonic()
        try:
            done = await self._inner.run(command)
        except BaseException as error:
            took_s = self._clock.monotonic() - started
            self._end(number, took_s, None, str(error) or "given up")
            raise
        trouble = "" if done.rc == 0 else "time limit" if done.timed_out else f"exit {done.rc}"
        self._end(number, done.took_s, done.rc, trouble)
        return done

    def beside(self, argv: tuple[str, ...]) -> Callable[[int | None, str], None]:
        """Count and keep a command that runs for long and not through here (a step that is held
        open); what comes back is told its exit status and its trouble when it ends."""
        self._count(argv)
        number, started = self._begin(Command(argv)), self._clock.monotonic()
        return lambda rc, trouble: self._end(number, self._clock.monotonic() - started, rc, trouble)

    async def stream(self, command: Command) -> AsyncIterator[bytes]:
        self._count(command.argv)
        number, started = self._begin(command), self._clock.monotonic()
        try:
            async with closing(self._inner.stream(command)) as inner:
                async for chunk in inner:
                    yield chunk
        finally:
            self._end(number, self._clock.monotonic() - started, None, "")

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        return await self._inner.read(path, offset, length, host)

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        return await self._inner.stat(path, host)

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        return await self._inner.list(path, host)

    def _begin(self, command: Command) -> int:
        self._number += 1
        while len(self._kept) >= KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[self._number] = Ran(argv=command.argv, at=self._clock.now(), host=command.host)
        return self._number

    def _end(self, number: int, took_s: float, rc: int | None, trouble: str) -> None:
        ran = self._kept.get(number)
        if ran is not None:
            self._kept[number] = replace(ran, took_s=took_s, rc=rc, trouble=trouble)

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
