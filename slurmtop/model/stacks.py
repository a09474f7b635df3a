"""Python stacks of a process, as a tool read them from outside without stopping it."""

from dataclasses import dataclass
from datetime import datetime

from slurmtop.model.snapshot import Failure


@dataclass(frozen=True, slots=True)
class Frame:
    """One call. ``line`` None: not told (frames of C code)."""

    function: str
    file: str
    """The whole path as the interpreter knows it; inside a container it is the container's."""
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStack:
    """One thread. ``frames`` are innermost first; empty where none could be read.

    ``os_id`` is the kernel's number of the thread, in the namespace of the process. ``active``
    is the tool's guess whether it runs on a CPU; ``gil`` whether it holds the interpreter's
    lock; None where the tool does not say.
    """

    name: str = ""
    os_id: int | None = None
    active: bool | None = None
    gil: bool | None = None
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStacks:
    """All threads of one process at ``at`` (our clock), the main thread first.

    ``failure`` tells why there is none: ``threads`` is then empty and means nothing.
    """

    host: str
    pid: int
    start_ticks: int
    at: datetime
    threads: tuple[ThreadStack, ...] = ()
    failure: Failure | None = None

    @property
    def key(self) -> tuple[str, int, int]:
        """As :attr:`slurmtop.model.process.NodeProcess.key`."""
        return (self.host, self.pid, self.start_ticks)

    @property
    def main(self) -> ThreadStack | None:
        return self.threads[0] if self.threads else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StackTool:
    """What reads stacks on one node: where it is, and what was run.

    ``sha256`` is that of its file where it could be read; ``version`` as it prints it.
    """

    path: str
    version: str | None = None
    sha256: str | None = None
    sudo: bool = False
