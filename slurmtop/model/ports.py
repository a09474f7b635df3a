"""The two doors to the world, as protocols: a Runner for commands and files, a Clock.

Everything that touches a cluster goes through a :class:`Runner`. Recording and Replay wrap
or stand in for one, so a recording, a bug report, a demo and a test are the same thing.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from slurmtop.model.snapshot import Failure


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run. ``argv`` is a list and never passes a shell.

    ``host`` None is the login node. ``stdin`` is what the child reads (empty: ``/dev/null``).
    Output past ``max_bytes`` is dropped and ``Completed.truncated`` set.
    """

    argv: tuple[str, ...]
    host: str | None = None
    stdin: bytes = b""
    timeout_s: float = 60.0
    max_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Completed:
    """How a command ended. ``rc`` is None when it was stopped at its time limit."""

    rc: int | None
    stdout: bytes
    stderr: bytes
    started_at: datetime
    took_s: float
    truncated: bool = False

    @property
    def timed_out(self) -> bool:
        return self.rc is None


@dataclass(frozen=True, slots=True)
class FileStat:
    """What ``stat`` says of a file. ``(device, inode)`` tells a rotated log from a grown one."""

    size: int
    mtime: datetime
    device: int
    inode: int
    is_dir: bool = False
    is_regular: bool = True
    """False for folders, pipes and devices: those are never opened."""


class RunnerError(Exception):
    """A command could not be started at all; ``str()`` is a sentence for people."""


class FileTimeout(RunnerError):
    """The file system did not answer in time (a mount that hangs)."""


class ReplayMiss(RunnerError):
    """A replay was asked for something that was never recorded."""


class NodeUnreachable(RunnerError):
    """A node could not be reached or not be logged in to; ``failure`` says why and what to do.

    It is never raised for a command that ran there and failed.
    """

    def __init__(self, host: str, failure: Failure) -> None:
        super().__init__(failure.sentence)
        self.host = host
        self.failure = failure


class Runner(Protocol):
    """Runs commands and reads files, here or on a host.

    File calls raise the usual ``OSError`` kinds (``FileNotFoundError``, ``PermissionError``)
    and :class:`FileTimeout`; commands raise :class:`RunnerError` only when they cannot be
    started. ``read`` returns at most ``length`` bytes, fewer at the end of the file.
    """

    async def run(self, command: Command) -> Completed: ...

    def stream(self, command: Command) -> AsyncIterator[bytes]: ...

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes: ...

    async def stat(self, path: str, host: str | None = None) -> FileStat: ...

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]: ...


class Clock(Protocol):
    """Time, handed in. ``now`` is aware UTC; ``monotonic`` is seconds and never jumps."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...
