"""Which files there are: those that are named, and all those below the folders that are named."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slurmtop.collect.log_content import SAMPLE_BYTES, begins_bundle
from slurmtop.collect.log_files import NotAFile, log_status
from slurmtop.model.facts import LogStatus
from slurmtop.model.ports import FileStat, Runner, RunnerError

#: More is no folder of one job's logs; what is left out is told.
MOST_FILES = 8_192
MOST_FOLDERS = 1_024
MOST_DEPTH = 8
#: Questions that are in flight at once.
AT_ONCE = 16
#: What tells that slurmtop itself wrote a folder, and what it writes into each.
_MANIFEST = "manifest.json"
_RECORDED = frozenset({"session.json", "commands.jsonl"})
_OF_BUNDLES = frozenset({"said.json", "verdict.json"})
A_BUNDLE = "a bundle that slurmtop saved, not what a run said: slurmtop triage judges it alone"
_NO_MANIFEST = (
    "a bundle that slurmtop saved, but its manifest.json is missing: what it is of is not known"
)
_A_RECORDING = "a recording that slurmtop made, not what a run said: slurmtop why JOB --replay {}"
_NEVER_LOGS = frozenset({"__pycache__", "node_modules", "site-packages"})


@dataclass(frozen=True, slots=True)
class Found:
    """A file that is to be read, or one of which it is known already why it cannot be.

    ``named`` is true for one that a person named, false for one that a folder held.
    """

    path: str
    stat: FileStat | None = None
    named: bool = True
    status: LogStatus = LogStatus.READ
    why: str = ""


class _Search:
    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._seen: set[tuple[int, int]] = set()
        self._folders = 0
        self.found: list[Found] = []

    async def add(self, path: str) -> None:
        """A path as it was named."""
        one = await self._look(path, named=True)
        if one.stat is not None and one.stat.is_dir:
            await self._walk(path, one.stat, depth=0)
        else:
            self._keep(one)

    async def _look(self, path: str, *, named: bool) -> Found:
        try:
            async with self._gate:
                stat = await self._runner.stat(path)
        except (OSError, RunnerError) as error:
            return Found(path, None, named, *log_status(error))
        if not stat.is_dir and not stat.is_regular:
            return Found(path, stat, named, *log_status(NotAFile(path)))
        return Found(path, stat, named)

    def _keep(self, one: Found) -> None:
        """A file that can be reached in two ways is read once."""
        if one.stat is not None:
            key = (one.stat.device, one.stat.inode)
            if key in self._seen and not one.named:
                return
            self._seen.add(key)
        self.found.append(one)

    async def _walk(self, folder: str, stat: FileStat, depth: int) -> None:
        key = (stat.device, stat.inode)
        if key in self._seen:
            return
        self._seen.add(key)
        self._folders += 1
        try:
            async with self._gate:
                names = await self._runner.list(folder)
        except (OSError, RunnerError) as error:
            self._keep(Found(folder, None, True, *log_status(error)))
            return
        if ours := await self._saved(folder, names):
            self._tell(folder, ours)
            return
        inside = [_join(folder, name) for name in sorted(names) if _may_hold_logs(name)]
        room = max(0, MOST_FILES - len(self.found))
        below: list[Found] = []
        for one in await asyncio.gather(*(self._look(path, named=False) for path in inside[:room])):
            if one.stat is not None and one.stat.is_dir:
                below.append(one)
            elif one.status is not LogStatus.NOT_A_FILE and one.status is not LogStatus.ABSENT:
                self._keep(one)
        if len(inside) > room:
            self._tell(folder, f"it holds too many files: {len(inside) - room} were not looked at")
        for one in below:
            assert one.stat is not None
            if depth >= MOST_DEPTH or self._folders >= MOST_FOLDERS:
                self._tell(one.path, "too many folders stand one below the other")
            elif len(self.found) < MOST_FILES:
                await self._walk(one.path, one.stat, depth + 1)

    async def _saved(self, folder: str, names: Sequence[str]) -> str:
        """What slurmtop saved there, in words; empty where that is no folder of ours."""
        if _MANIFEST not in names:
            if not (_RECORDED.issubset(names) or _OF_BUNDLES.issubset(names)):
                return ""
            return _A_RECORDING.format(folder) if _OF_BUNDLES.isdisjoint(names) else _NO_MANIFEST
        if _RECORDED.issubset(names):
            return A_BUNDLE
        try:
            async with self._gate:
                start = await self._runner.read(_join(folder, _MANIFEST), 0, SAMPLE_BYTES)
        except (OSError, RunnerError):
            return ""
        return A_BUNDLE if begins_bundle(start) else ""

    def _tell(self, folder: str, why: str) -> None:
        self.found.append(Found(folder, None, False, LogStatus.FAILED, why))


def _join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder != "." else name


def _may_hold_logs(name: str) -> bool:
    """Hidden files and folders are a program's own matters: ``.git``, ``.venv``."""
    return bool(name) and not name.startswith(".") and name not in _NEVER_LOGS


async def find_logs(runner: Runner, paths: Sequence[str]) -> tuple[Found, ...]:
    """All files at and below ``paths``, in the order given, those of a folder sorted.

    Never raises for what is wrong with a path: its :class:`Found` says it.
    """
    search = _Search(runner)
    for path in _once(paths):
        await search.add(path)
    return tuple(search.found)


def _once(paths: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(paths)
